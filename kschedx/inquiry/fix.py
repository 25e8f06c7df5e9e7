"""A fix as it is reported: with its title."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kschedx import fixes
from kschedx.controllers.states import ComponentDown
from kschedx.controllers.workloads import Workload, first_ordinal, member_rows, ordinal_of, wanted_replicas
from kschedx.explain.advice import Advice
from kschedx.explain.creators import configured_in, creator, declared_tolerations
from kschedx.fixes import FixCertainty
from kschedx.fixes import steps as s
from kschedx.fixes.changes import add_operation, apply_patch
from kschedx.fixes.owners import ClaimTemplate, Owner, owner_change
from kschedx.fixes.phrases import join_phrases
from kschedx.fixes.proposal import CONTROLLER_MANAGER, Proposal, apply_steps
from kschedx.fixes.steps.storage import ClassedClaim
from kschedx.fixes.storage_remedies import fate_of_data
from kschedx.kube.autoscalers import NODE_POOL
from kschedx.kube.decoding import map_at, value_at
from kschedx.kube.documents import Change, Json, Target, part_of, to_json
from kschedx.kube.escaping import shell_command, why_command
from kschedx.kube.kinds import KINDS
from kschedx.kube.kubectl import merge_patch, pod_logs, scale_workload
from kschedx.kube.storage import PersistentVolumeClaim
from kschedx.kube.tolerations import Tolerations
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

if TYPE_CHECKING:
    from kschedx.framework.config import Profile
    from kschedx.framework.scheduler import Scheduler
    from kschedx.inquiry.document import FixCoverage, FixDocument
    from kschedx.kueue.verdict import Verdict

_MOST_PREEMPTED = 3
_MOST_UNCORDONED = 8  # cordoned nodes that are tried besides the first one
_OF_CLAIM = (ClassedClaim, s.NextAttempt, s.ObjectStep)  # steps about the claim itself and its volume
_NO_CLASS = '""'
_OF_ADMINISTRATORS = frozenset({"LimitRange", "Namespace", "PriorityClass", "ResourceQuota", "RuntimeClass"})


def uncordoning_more(
    fix: Fix, snapshot: Snapshot, drained: Collection[str], helped: Callable[[Fix], int], most: int
) -> Fix:
    """Return a fix that uncordons a node, with each other cordoned node that lets it help more of `most` pods. `helped`
    tries a fix and returns their number; nodes that the question drains stay cordoned."""
    if len(fix.steps) != 1 or not isinstance(fix.steps[0], s.Uncordon) or (best := helped(fix)) >= most:
        return fix
    cluster, first, tried = snapshot.cluster, fix.steps[0], 0
    for row, name in enumerate(cluster.names):
        if cluster.unschedulable[row] and name != first.node and name not in drained and tried < _MOST_UNCORDONED:
            tried += 1
            steps = (*fix.steps, replace(first, row=ClusterRow(row), node=name))
            nodes = dict.fromkeys((*fix.feasible_nodes, name))
            changes = tuple(apply_steps(steps, Proposal(pod=Pod()), snapshot).changes(Pod(), snapshot))
            wider = replace(
                fix,
                steps=steps,
                changes=changes,
                apply=changes,
                feasible_nodes=tuple(nodes),
                commands=tuple(command for step in steps for command in step.commands()),
                title=", ".join(step.title for step in steps),
            )
            if (number := helped(wider)) > best:
                fix, best = wider, number
        if best >= most:
            break
    return fix


def activation(namespace: str, workload: str) -> Fix:
    """Return the fix for a Workload of Kueue that is deactivated."""
    command = merge_patch("workloads.kueue.x-k8s.io", namespace, workload, {"spec": {"active": True}})
    return Fix.untried(f"activate Workload {workload}, once its cause is fixed", command)


def queue_creation(queue: str, namespace: str, others: Sequence[str]) -> Fix:
    """Return the fix for a LocalQueue that only other namespaces have, if any."""
    like = f", as {list_names(others, 3)} {'has' if len(others) == 1 else 'have'} it" if others else ""
    return Fix.untried(f"create LocalQueue {queue} in namespace {namespace}{like}", of_group=s.FixGroup.CLUSTER)


def component_repair(down: ComponentDown) -> Fix:
    """Return the fix for a component of which no instance runs."""
    if down.scaled:
        namespace, kind, name = down.scaled.split("/")
        command = scale_workload(kind, namespace, name, 1)
        return _of_cluster(f"scale {down.scaled} to 1 replica, which runs {down.component}", command)
    if down.unready:
        namespace, kind, name = down.unready.split("/")
        command = shell_command("kubectl describe {} -n {}", f"{kind}/{name}", namespace)
        return _of_cluster(f"repair {down.component}: see why no pod of {down.unready} is ready", command)
    if down.sibling:
        namespace, _, name = down.sibling.partition("/")
        command = shell_command("kubectl get pod {} -n {} -o wide", name, namespace)
        manifest = f"/etc/kubernetes/manifests/{down.component}.yaml"
        return _of_cluster(f"restore {manifest} on the nodes of the control plane", command)
    if down.is_pending:
        title = f"make room for {down.pods[0]} first: {down.component} has no node"
        return _of_cluster(title, why_command(down.pods[0]))
    if down.renewed and not down.pods:
        command = shell_command("kubectl get lease {} -n kube-system -o yaml", down.component)
        return _of_cluster(f"repair {down.component}: none of its instances renews its lease", command)
    command = pod_logs(down.pods[0], previous=not down.renewed)
    return _of_cluster(f"repair {down.component}: its logs say why it {down.absence}", command)


def _of_cluster(title: str, command: str) -> Fix:
    return Fix.untried(title, command, by_default=s.FixGroup.CLUSTER)


class FixedCluster(Struct, frozen=True, eq=False):
    """A cluster in which a fix was tried, with the fixed pod."""

    scheduler: Scheduler
    pod: Pod
    profile: Profile


_SHOWN_DELETED = 2


class _Delivery(Struct, frozen=True):
    """Changes that have to follow a change of the template, so that the pod is created from it."""

    phrase: str  # what you do then, and why the controller does not: `delete {pods} (StatefulSet db is OnDelete)`
    changes: tuple[Change, ...]

    @property
    def text(self) -> str:
        names = [it.target.name for it in self.changes if it.delete]
        named = f"pod{'' if len(names) == 1 else 's'} {' and '.join(names)}"
        return self.phrase.format(pods=named if len(names) <= _SHOWN_DELETED else f"its {len(names):,} pending pods")


def _delivery(owner: Owner, pod: Pod, snapshot: Snapshot, *, old_first: bool = False) -> _Delivery | None:
    """Return what else has to be done; None if the owner's controller replaces the pod by itself. Where pods keep an
    old template until they are deleted, all pending ones are. `old_first` is that of `TriedFix`.

    Upstream: pkg/controller/statefulset/stateful_set_control.go, pkg/controller/daemon/update.go.
    """
    spec = map_at(owner.manifest, "spec")
    strategy = map_at(spec, "updateStrategy")
    namespace, workload = pod.metadata.namespace, f"{owner.kind} {owner.name}"
    target, gone = owner.target(namespace), Target.pod(pod.key).deletion
    pending = tuple(Target.pod(key).deletion for key in _siblings(pod, snapshot, snapshot.pods.pending)) or (gone,)
    match owner.kind:
        case "StatefulSet" if old_first:  # its other pods still repel the pod, and are updated after it
            every = tuple(Target.pod(key).deletion for key in _siblings(pod, snapshot))
            return _Delivery(f"delete all pods of {workload}, which keep the earlier rule until then", every)
        case "StatefulSet" | "DaemonSet" if strategy.get("type") == "OnDelete":
            return _Delivery(f"delete {{pods}} (the update strategy of {workload} is OnDelete)", pending)
        case "StatefulSet":
            partition = value_at(strategy, "rollingUpdate", "partition")
            index = ordinal_of(pod.metadata.name) - first_ordinal(owner.manifest)
            if isinstance(partition, int) and index < partition:
                lower = add_operation("/spec/updateStrategy/rollingUpdate/partition", index)
                why = f"{workload} updates from its partition on"
                return _Delivery(f"lower its partition and delete {{pods}} ({why})", (target.patched(lower), gone))
            if spec.get("podManagementPolicy") == "Parallel":
                return None
            why = f"{workload} is OrderedReady: it does not replace a pod that is not ready"
            return _Delivery(f"delete {{pods}} ({why})", (gone,))
        case "ReplicaSet" | "ReplicationController":
            return _Delivery(f"delete {{pods}} ({workload} uses its template for new pods only)", pending)
        case "Deployment" if spec.get("paused") is True:  # it creates no pods from a new template
            resume = target.patched(add_operation("/spec/paused", False))
            return _Delivery(f"resume {workload}, which is paused", (resume,))
        case "Deployment" if old_first and map_at(spec, "strategy").get("type") != "Recreate":
            rows = member_rows(snapshot, Workload("Deployment", namespace, owner.name))
            missing = wanted_replicas(owner.manifest) - sum(int(snapshot.pods.node[row]) >= 0 for row in rows)
            number = max(missing, 0) + 1  # running pods keep new ones pending, so that one has to go first
            rolling = {**map_at(spec, "strategy", "rollingUpdate"), "maxUnavailable": number}
            patch = target.patched(add_operation("/spec/strategy", {"type": "RollingUpdate", "rollingUpdate": rolling}))
            return _Delivery(f"set maxUnavailable: {number} on {workload}, whose rollout would stall", (patch,))
        case _:
            return None


def _siblings(pod: Pod, snapshot: Snapshot, among: Iterable[int] | None = None) -> list[str]:
    """Return the pods of the same controller: of pods that an API server has stored, only those."""
    pods, controller = snapshot.pods, pod.metadata.controller
    if controller is None:
        return []
    rows = [
        row
        for row in (pods.in_namespace(pod.metadata.namespace).nonzero()[0].tolist() if among is None else among)
        if pods.namespaces[row] == pod.metadata.namespace
        and not pods.deletion_timestamps[row]
        and any(it.controller and (it.kind, it.name) == (controller.kind, controller.name) for it in pods.owners[row])
    ]
    stored = [row for row in rows if pods.creation_timestamps[row]]
    return list(map(pods.key, stored or rows))


class Fix(Struct, frozen=True, kw_only=True):
    """A fix: changes after which the pod would be scheduled. `certainty` is UNTRIED for fixes that no trial shows."""

    title: str
    certainty: FixCertainty
    changes: tuple[Change, ...]  # the changes in the order in which they are made
    feasible_nodes: tuple[str, ...]
    steps: tuple[s.FixStep, ...]
    commands: tuple[str, ...] = ()  # empty if the fix takes a patch

    apply: tuple[Change, ...] = ()
    """The changes that a user would send. Changes of the pod are made to its owner's template, if that is known."""

    of_group: s.FixGroup | None = None  # the group of a fix without steps
    by_default: s.FixGroup = s.FixGroup.WORKLOAD  # the group of a fix without steps and changes
    costs: tuple[str, ...] = ()
    """The cost for others: where the pods recreated by a deleted pod's controller land, which budget is used."""
    left: int | None = None
    """The number of the workload's pods that stay pending after a change of its template; None if not tried."""
    helps: frozenset[str] | None = None
    """The pending pods, `namespace/name`, for which an autoscaler adds nodes after the fix; None if unknown."""
    reshapes_pool: bool = False  # whether Karpenter's nodes get other labels or types than a NodePool has now
    is_completed: bool = False  # whether a partial fix names the verified fix with which the pod is scheduled
    then: FixedCluster | None = None  # the cluster after a fix that its steps do not describe

    def __repr__(self) -> str:
        return f"<Fix: {self.title}>"

    @classmethod
    def of(
        cls, fix: fixes.TriedFix, owner: Owner | None, pod: Pod, *, stored_in: Snapshot | None = None, title: str = ""
    ) -> Fix:
        """Return the reported form of a tried fix. `stored_in` is the cluster that has the pod, which a new template
        then has to reach. The default title describes the steps."""
        sent = tuple(change for change in fix.changes if not change.by)
        apply = sent if owner is None else tuple(owner_change(change, owner, pod) for change in sent)
        if owner is not None and owner.job is not None and stored_in is not None and apply != sent:
            apply = (*(owner_change(change, owner.job, pod) for change in sent if change not in apply), *apply)
        of_owner = owner is not None and any(change.target == owner.target(pod.metadata.namespace) for change in apply)
        title = title or fix.title
        reaches = apply == sent or (fix.trial.is_delivered and not fix.old_first)
        left = None
        if not reaches and owner is not None and stored_in is not None:
            left = _delivery(owner, pod, stored_in, old_first=fix.old_first)
        if owner is not None and left is not None:
            title += f", then {left.text}"
            apply = (*apply, *(change for change in left.changes if change not in apply))
        return cls(
            title=title,
            certainty=fix.certainty,
            changes=fix.changes,
            feasible_nodes=fix.feasible_nodes,
            steps=fix.steps,
            commands=fix.commands,
            apply=apply,
            costs=(
                *fix.costs,
                *(_creator(apply, fix.steps, pod, stored_in) if owner is None else _owners(owner) if of_owner else ()),
            ),
        )

    def with_claims_of(self, owner: Owner | None, pod: Pod, before: Snapshot | None, snapshot: Snapshot) -> Fix:
        """Return the fix with changes of a claim's manifest or template, if recreating the claim alone is not enough.

        That is the case if the claim is in a manifest that is not applied yet, or if a StatefulSet's template has the
        same claim for its other pods. `before` is the cluster without the subject.
        """
        for change in self.changes:
            target, spec = change.target, map_at(change.create or {}, "spec")
            was = snapshot.storage.claim(target.namespace, target.name) if change.create is not None else None
            if target.kind != "PersistentVolumeClaim" or was is None or not (phrases := list(_claim_edits(was, spec))):
                continue
            if any(isinstance(step, s.SetEphemeralClass) for step in self.steps):
                continue  # the pod's own manifest has the claim
            template = ClaimTemplate.of(target.name, owner, pod)
            is_stored = before is None or before.storage.claim(target.namespace, target.name) is not None
            if template is None and is_stored:
                continue
            key = target.key
            where = f"the manifest of claim {key}" if template is None else template.title
            title = f"{join_phrases(phrases)} in {where}{f', and recreate claim {key}' if is_stored else ''}"
            others = (step.title for step in self.steps if not isinstance(step, _OF_CLAIM))
            title = ", ".join((title, *others))
            if is_stored and (data := fate_of_data(was, snapshot)) and data not in self.costs:
                title = f"{title}; {data}"
            recreated = [other for other in self.changes if other.target == target and not other.patch]
            first = () if template is None else template.changes(spec, target.namespace)
            own = [replace(other, by=CONTROLLER_MANAGER) if template and other.create else other for other in recreated]
            own = own if is_stored else [] if template else [other for other in own if not other.delete]
            rest = [other for other in self.changes if other not in recreated]
            changes = (*first, *own, *rest)
            apply = tuple(other for other in changes if not other.by)
            if template is not None and (moved := _moved_to_template(apply, template.owner, pod)) is not None:
                left, apply = _delivery(template.owner, pod, snapshot), moved
                if left is not None and is_stored:
                    title, apply = f"{title}, then {left.text}", (*apply, *left.changes)
            return replace(self, title=title, changes=changes, apply=apply)
        return self

    @classmethod
    def untried(
        cls,
        title: str,
        *commands: str,
        changes: tuple[Change, ...] = (),
        of_group: s.FixGroup | None = None,
        by_default: s.FixGroup = s.FixGroup.WORKLOAD,
    ) -> Fix:
        """Return a fix for an operator that no trial can show. `by_default` is the group of one without changes whose
        screen says that it was not tried."""
        return cls(
            title=title,
            certainty=FixCertainty.UNTRIED,
            changes=changes,
            feasible_nodes=(),
            steps=(),
            commands=commands,
            apply=changes,
            of_group=of_group,
            by_default=by_default,
        )

    @classmethod
    def of_advice(cls, advice: Advice) -> Fix:
        return cls.untried(
            advice.title, *advice.commands, changes=advice.changes, of_group=advice.group, by_default=advice.by_default
        )

    def repairs_what_exists(self, *, is_of_pool: bool) -> bool:
        """Return whether no further node is needed once something broken or misspelled is corrected, or once
        kube-scheduler or the rollout replaces pods. With `is_of_pool`, only a startup taint counts, which new nodes of
        the pool get as well."""
        costs = [step.cost for step in self.steps]
        repaired = [fault for step in self.steps if isinstance(step, s.RepairNode) for fault in step.faults]
        if is_of_pool and not any(fault.pool for fault in repaired):
            return False
        return bool(costs) and max(costs) <= s.Cost.ROLLOUT and self.certainty is FixCertainty.VERIFIED

    @property
    def is_without_karpenter(self) -> bool:
        """Whether it adds a node like an existing one that Karpenter has not created."""
        added = [step for step in self.steps if isinstance(step, s.AddNode)]
        is_own = all(step.model and NODE_POOL not in step.node.metadata.labels for step in added)
        return self.adds_node and len(added) == len(self.steps) and is_own

    @property
    def group(self) -> s.FixGroup:
        """The group that is responsible: that of the most expensive step, or of the changed objects."""
        if self.of_group is not None:
            return self.of_group
        if self.steps:
            return max(self.steps, key=lambda step: step.cost).group
        kinds = {change.target.kind for change in self.apply}
        return s.FixGroup.CLUSTER if kinds and kinds <= _OF_ADMINISTRATORS else self.by_default

    @property
    def awaits_preemption(self) -> bool:
        return s.awaits_preemption(self.steps)

    @property
    def adds_node(self) -> bool:
        """Whether nothing else is changed, apart from a toleration of the node's taint."""
        return [it.cost for it in self.steps if not isinstance(it, s.Tolerate)] == [s.Cost.NEW_NODE]

    def to_dict(self) -> Json:
        return to_json(self.document())

    def document(self, covered: FixCoverage | None = None) -> FixDocument:
        from kschedx.inquiry.document import FixDocument

        sent = tuple(change for change in self.changes if not change.by)
        return part_of(
            FixDocument,
            self,
            certainty=self.certainty.value,
            group=self.group.value,
            apply=None if self.apply == sent else self.apply,
            replicas=covered,
        )


def kueue_fixes(verdict: Verdict, *, is_full: bool) -> Iterator[Fix]:
    """Yield the changes after which Kueue admits a Workload, each tried by Kueue's rules. `is_full`: its pod then fits
    no node as long as the same pods run."""
    from kschedx.kueue.verdict import RemedyKind  # needed only for clusters with Kueue

    yield from (Fix.untried(repair, of_group=s.FixGroup.CLUSTER) for repair in verdict.repairs)
    of_queue = {RemedyKind.QUOTA, RemedyKind.PREEMPTION, RemedyKind.ORDER, RemedyKind.NAMESPACE, RemedyKind.RESUME}
    unhelpful = [it for it in verdict.remedies if is_full and not it.victims and it.kind is RemedyKind.QUOTA]
    for remedy in sorted(verdict.remedies, key=unhelpful.__contains__):
        changes = () if remedy.target is None else (Change(target=remedy.target, patch=remedy.patch),)
        costs = (f"preempts {list_names(remedy.victims, _MOST_PREEMPTED)}",) if remedy.victims else ()
        costs = ("then it fits no node",) if remedy in unhelpful else costs
        group = s.FixGroup.CLUSTER if remedy.kind in of_queue else s.FixGroup.WORKLOAD
        yield replace(Fix.untried(remedy.title, changes=changes, of_group=group), costs=costs)


def _moved_to_template(changes: Iterable[Change], owner: Owner, pod: Pod) -> tuple[Change, ...] | None:
    """Return the changes, with those of the pod in the manifest from which its workload is recreated; None if there are
    none of the pod."""
    target, kept, operations = owner.target(pod.metadata.namespace), [], list[Json]()
    for change in changes:
        of_owner = owner_change(change, owner, pod)
        if change.patch and of_owner.target == target:
            operations += of_owner.patch
        else:
            kept.append(change)
    if not operations:
        return None
    return tuple(
        replace(change, create=apply_patch(change.create, operations))
        if change.target == target and change.create is not None
        else change
        for change in kept
    )


def _claim_edits(was: PersistentVolumeClaim, spec: Mapping[str, object]) -> Iterator[str]:
    """Yield the changes in a claim's new spec, such as `use class gp3 instead of fast`."""
    named, modes = spec.get("storageClassName"), spec.get("accessModes")
    if named is not None and named != was.spec.storage_class_name:
        old = was.spec.storage_class_name
        instead = "" if old is None else f" instead of {old or _NO_CLASS}"
        yield f"use class {named}{instead}"
    if isinstance(modes, list) and tuple(modes) != was.spec.access_modes:
        yield f"request {join_phrases(map(str, modes))}"
    size = map_at(map_at(spec, "resources"), "requests").get("storage")
    if size is not None and size != was.spec.resources.requests.get("storage"):
        yield f"request {size}"


def _creator(
    changes: Sequence[Change], steps: Sequence[s.FixStep], pod: Pod, snapshot: Snapshot | None
) -> Iterator[str]:
    """Yield which custom resource a change of its pod belongs in, or that it has the tolerations already."""
    controller = None if snapshot is None else creator(snapshot, pod)
    is_of_pod = any(change.target == Target.pod(pod.key) for change in changes)
    if snapshot is None or controller is None or not is_of_pod or controller.kind in KINDS:
        return
    declared = Tolerations(declared_tolerations(snapshot, pod), comparison=True)
    if steps and all(isinstance(step, s.Tolerate) and all(map(declared.cover, step.taints)) for step in steps):
        yield f"{controller.kind} {controller.name} has it already"
    else:
        place = configured_in(snapshot, pod.metadata.namespace, controller, pod.metadata.labels)
        yield f"change it in {place}, which creates the pod"


def _owners(owner: Owner) -> Iterator[str]:
    """Yield that another controller writes the template, and may revert a change."""
    if owner.above:
        yield f"change it in {owner.above}, which may revert {owner.kind} {owner.name}"
