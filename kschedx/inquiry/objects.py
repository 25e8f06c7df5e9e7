"""The state of an object that is neither a pod nor a workload: a namespace, a claim, a budget, or an autoscaler without
a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kschedx.apiserver.resource_quota import MUST_BE_SPECIFIED
from kschedx.controllers import states
from kschedx.controllers.disruption_budgets import budgets_of
from kschedx.controllers.pod_autoscaling import kept_by, not_scaled, pod_autoscalers
from kschedx.controllers.pod_lifecycle import namespace_lifecycle
from kschedx.controllers.workloads import Workload
from kschedx.errors import InputError
from kschedx.explain.advice import FixGroup
from kschedx.explain.claim_causes import wrong_attributes_class
from kschedx.explain.cycle_notes import claim_expansions
from kschedx.explain.device_classes import unused_claims
from kschedx.explain.known_part import is_unread
from kschedx.explain.setup import Setup, Subject
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.object_answer import ObjectAnswer, ObjectQuestion
from kschedx.inquiry.pod import answer_with_fixes, answer_without_cycle, explain, remedies_of, workloads_without_pods
from kschedx.inquiry.target import find_target, rows_with_devices, selected_pod, selected_rows
from kschedx.kube.autoscalers import POD_AUTOSCALERS, HorizontalPodAutoscaler, PodAutoscaler, ScaleTarget
from kschedx.kube.conditions import reports_ready
from kschedx.kube.documents import with_spec
from kschedx.kube.escaping import shell_command
from kschedx.kube.kinds import KINDS
from kschedx.kube.kubectl import add_to_dump, merge_patch
from kschedx.kube.resources import ResourceQuota, Service, nano_units
from kschedx.kube.selectors import Operator, Selector, compile_selector, selector_from_set
from kschedx.kube.storage import PersistentVolume, PersistentVolumeClaim, VolumeAttachment, is_bound_to
from kschedx.kube.types import ObjectMeta, Pod, PodDisruptionBudget
from kschedx.kube.typos import nearest_name
from kschedx.simulate.object_changes import NamedObject
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import AutoscalingOptions
    from kschedx.inquiry.fix import Fix


def explain_namespace(snapshot: Snapshot, setup: Setup, name: str) -> Explanation | None:
    """Return why a namespace stays in deletion; None if it is not being deleted."""
    lifecycle = namespace_lifecycle(snapshot, name, f"namespace/{name}")
    if lifecycle is None:
        return None
    subject = Subject(snapshot=snapshot, pod=Pod(metadata=ObjectMeta(name=name, namespace=name)), is_new=True)
    return answer_with_fixes(subject, setup, lifecycle)


def explain_object(
    snapshot: Snapshot, setup: Setup, reference: NamedObject, autoscaling: AutoscalingOptions | None = None
) -> Explanation | None:
    """Return the state of an object without pods of its own: a PersistentVolumeClaim, a PodDisruptionBudget, an
    autoscaler whose target does not exist, or an object behind nodes; None for other kinds, for an object that does not
    exist, and for a claim about which a pod shows more."""
    find = ANSWERS.get(reference.kind.key)
    pod = Pod(metadata=ObjectMeta(name=reference.name, namespace=reference.namespace))
    subject = Subject(snapshot=snapshot, pod=pod, is_new=True)
    asked = ObjectQuestion(subject=subject, setup=setup, reference=reference, autoscaling=autoscaling)
    answer = None if find is None else find(asked)
    if answer is None:
        return None
    return answer_without_cycle(subject, setup, answer.state, lambda: tuple(answer.fixes()))


def _budget_fixes(subject: Subject, setup: Setup, node: str) -> tuple[Fix, ...]:
    """Return what lets the drain of a node with one of the budget's pods end; each was tried with the drain."""
    from kschedx.inquiry.fix import Fix  # needed only for a budget in the way
    from kschedx.inquiry.stalled_drain import preview_drain
    from kschedx.simulate.simulator import SimulationOptions

    snapshot, budgets = subject.snapshot, [*budgets_of(subject.snapshot, subject.snapshot)]
    own = next(budget for budget in budgets if budget.name == subject.pod.key)
    rows = [row for row in range(len(snapshot.pods)) if own.covers(snapshot.pods, row)]
    names = {it.name for it in budgets if any(it.covers(snapshot.pods, row) for row in rows)}
    involved = tuple(it for it in snapshot.disruption_budgets if f"{it.metadata.namespace}/{it.metadata.name}" in names)
    # the question is the budget, not kubectl's flags
    options = SimulationOptions(force=True, delete_emptydir_data=True)
    preview = preview_drain(replace(snapshot, disruption_budgets=involved), setup, [node], options=options)
    return tuple(
        Fix.untried(f"{each.title}, then its pods on {node} can be evicted", *each.commands, of_group=FixGroup.CLUSTER)
        for each in preview.remedies.fixes
    )


def _autoscaler(snapshot: Snapshot, reference: NamedObject) -> PodAutoscaler | None:
    named = reference.kind.name, reference.namespace, reference.name
    for item in pod_autoscalers(snapshot):
        if (type(item).__name__, item.metadata.namespace, item.metadata.name) == named:
            return item
    return None


def _other_targets(snapshot: Snapshot, kind: str, namespace: str) -> list[str]:
    return sorted(name for key, space, name in snapshot.workloads if (key, space) == (kind, namespace))


def _explain_autoscaler(asked: ObjectQuestion) -> ObjectAnswer | None:
    """Return the state of an autoscaler whose target does not exist or is not read; None for any other."""
    snapshot, reference = asked.snapshot, asked.reference
    item, namespace = _autoscaler(snapshot, reference), reference.namespace
    if item is None:
        return None
    target, short = item.spec.scale_target_ref, reference.kind.short_names[0]
    is_there = (target.kind, namespace, target.name) in snapshot.workloads
    failed = (each for each in item.status.conditions if each.status == "False" and "not found" in (each.message or ""))
    report = next((each.message or "" for each in failed), "")
    others = _other_targets(snapshot, target.kind, namespace)
    is_missing = bool(report or others) or snapshot.source.is_complete(target.kind, namespace)
    if is_there or target.kind in POD_AUTOSCALERS or (not is_missing and _has_pods(snapshot, namespace, target)):
        return None
    subject = f"{namespace}/{short}/{reference.name}"
    if not is_missing:
        return ObjectAnswer(state=_autoscaler_state(snapshot, item, subject))
    near = nearest_name(target.name, others)
    does = f"scales nothing: there is no {target.kind} {target.name} in namespace {namespace}"
    does += f" (did you mean {near}?)" if near else ""
    state = states.ObjectState(subject=subject, does=does, facts=(report,) if report else ())
    return ObjectAnswer(state=state, fixes=partial(_target_fixes, snapshot, reference))


def _has_pods(snapshot: Snapshot, namespace: str, target: ScaleTarget) -> bool:
    """Return whether pods or a custom resource show the target of an autoscaler."""
    with suppress(InputError):
        find_target(snapshot, f"{namespace}/{target.kind.lower()}/{target.name}")
        return True
    return False


def _autoscaler_state(snapshot: Snapshot, item: PodAutoscaler, subject: str) -> states.Lifecycle:
    """Return the state of an autoscaler whose target is not read, as its own conditions report it."""
    target, namespace = item.spec.scale_target_ref, item.metadata.namespace
    named, workload = f"{target.kind} {target.name}", Workload(target.kind, namespace, target.name)
    most = item.spec.max_replicas if isinstance(item, HorizontalPodAutoscaler) else None
    if (held := not_scaled(snapshot, workload, most or 0)) is not None:
        facts = tuple(filter(None, ("" if held.down is None else held.down.report, held.message)))
        return states.ObjectState(subject=subject, does=f"{held.why}: {named} keeps its replicas", facts=facts)
    if kept := kept_by(snapshot, workload):
        return states.ObjectState(subject=subject, does=f"leaves {named} at its replicas", facts=(kept,))
    if item.status.conditions:
        return states.ObjectState(subject=subject, does=f"scales {named}, of which no pod is known")
    because = f"the dump holds no {target.kind} of namespace {namespace}"
    command = add_to_dump(target.kind) if target.kind in KINDS else ""
    return states.NotRead(subject=subject, unknown=f"its target {named}", because=because, command=command)


def _target_fixes(snapshot: Snapshot, reference: NamedObject) -> tuple[Fix, ...]:
    """Return the correction of an autoscaler's target, if one has nearly that name."""
    from kschedx.inquiry.fix import Fix  # needed only for an autoscaler without a target

    item = _autoscaler(snapshot, reference)
    target = ScaleTarget() if item is None else item.spec.scale_target_ref
    near = nearest_name(target.name, _other_targets(snapshot, target.kind, reference.namespace))
    if not near:
        return ()
    patch = {"spec": {"scaleTargetRef": {"name": near}}}
    command = merge_patch(reference.kind.short_names[0], reference.namespace, reference.name, patch)
    title = f"set its scaleTargetRef.name to {near} instead of {target.name}"
    return (Fix.untried(title, command, of_group=FixGroup.CLUSTER),)


def _budget(snapshot: Snapshot, namespace: str, name: str) -> PodDisruptionBudget:
    named = namespace, name
    return next(it for it in snapshot.disruption_budgets if (it.metadata.namespace, it.metadata.name) == named)


def _explain_budget(asked: ObjectQuestion) -> ObjectAnswer | None:
    """Return how many evictions a budget allows, with what lets the drain of a node with one of its pods end."""
    if (state := _budget_state(asked.snapshot, asked.reference)) is None:
        return None
    if state.node:
        return ObjectAnswer(state=state, fixes=partial(_budget_fixes, asked.subject, asked.setup, state.node))
    budget = _budget(asked.snapshot, asked.reference.namespace, asked.reference.name)
    if not state.facts or budget.spec.selector is None:
        return ObjectAnswer(state=state)
    selector = compile_selector(budget.spec.selector)
    fixes = partial(_selector_fixes, asked.snapshot, asked.reference, selector, "spec.selector.matchLabels")
    return ObjectAnswer(state=state, fixes=fixes)


def _budget_state(snapshot: Snapshot, reference: NamedObject) -> states.ObjectState | None:
    namespace, name = reference.namespace, reference.name
    budgets = [*budgets_of(snapshot, snapshot)]
    if (budget := next((it for it in budgets if it.name == f"{namespace}/{name}"), None)) is None:
        return None
    subject, pods = f"{namespace}/pdb/{name}", snapshot.pods
    status = budget.current_status(snapshot, pods, ())
    covered = [row for row in range(len(pods)) if budget.covers(pods, row) and not pods.finished[row]]
    if not covered:
        selector = compile_selector(_budget(snapshot, namespace, name).spec.selector)
        unmatched = tuple(_unmatched_labels(snapshot, namespace, selector))
        return states.ObjectState(subject=subject, does="protects no pods: its selector matches none", facts=unmatched)
    shared = [row for row in covered if any(it is not budget and it.covers(pods, row) for it in budgets)]
    if shared or status.allowed <= 0:
        on = (pods.node_names[row] for row in (*shared, *covered) if pods.node[row] >= 0)
        why = "other PDBs cover its pods as well, which the API server then does not evict"
        does = f"allows no eviction: {why if shared else f'it {status.text}'}"
        return states.ObjectState(subject=subject, does=does, node=next(on, ""))
    does = f"allows {count(status.allowed, 'eviction')} at a time"
    fact = f"{status.healthy:,} of {count(len(covered), 'pod')} healthy, of which it needs {status.needed:,}"
    if budget.lag:
        does = f"allows no eviction until kube-controller-manager updates its status ({budget.lag})"
    return states.ObjectState(subject=subject, does=does, facts=(fact,))


def _meant_labels(snapshot: Snapshot, namespace: str, selector: Selector) -> dict[str, str]:
    """Return the labels that a selector probably means, if no pod of the namespace has all of its own ones."""
    pods, meant = snapshot.pods, dict[str, str]()
    rows = (pods.in_namespace(namespace) & ~pods.finished).nonzero()[0].tolist()
    labels = {int(pods.labels.codes[row]): pods.labels[row] for row in rows}.values()
    for need in (it for it in selector.requirements if it.operator is Operator.EQUALS):
        values = sorted({own[need.key] for own in labels if need.key in own})
        if near := "" if need.values[0] in values else nearest_name(need.values[0], values):
            meant[need.key] = near
    wanted = {**{it.key: it.values[0] for it in selector.requirements if it.operator is Operator.EQUALS}, **meant}
    return meant if any(wanted.items() <= own.items() for own in labels) else {}


def _selector_fixes(snapshot: Snapshot, reference: NamedObject, selector: Selector, path: str) -> Iterator[Fix]:
    """Yield the correction of a selector that matches no pod; `path` is the field with its labels."""
    from kschedx.inquiry.fix import Fix  # needed only for such a selector

    if meant := _meant_labels(snapshot, reference.namespace, selector):
        patch: dict[str, object] = dict(meant)
        for name in reversed(path.split(".")):
            patch = {name: patch}
        short, texts = reference.kind.short_names[0], [f"{key}={value}" for key, value in meant.items()]
        command = merge_patch(short, reference.namespace, reference.name, patch)
        title = f"select {', '.join(texts)} in {reference.kind.name} {reference.name}"
        yield Fix.untried(title, command, of_group=FixGroup.CLUSTER)


def _unmatched_labels(snapshot: Snapshot, namespace: str, selector: Selector) -> Iterator[str]:
    """Yield each requirement of a selector that no pod of the namespace meets, with the value that is probably
    meant; if there is none, what the pod that is nearest to meeting all of them lacks. If only finished pods match,
    yield one of them."""
    pods = snapshot.pods
    there = pods.in_namespace(namespace)
    if ended := (there & pods.finished & pods.labels.where(selector.matches)).nonzero()[0].tolist():
        yield f"only finished pods match, such as {pods.key(ended[-1])}"
        return
    rows = (there & ~pods.finished).nonzero()[0].tolist()
    labels, first = pods.labels, dict[int, int]()
    for row in rows:  # pods with the same labels lack the same
        first.setdefault(int(labels.codes[row]), row)
    lacking = {
        row: [it.requirement for it in selector.explain(labels[row]) if not it.matched] for row in first.values()
    }
    unmet = [need for need in selector.requirements if lacking and all(need in lacks for lacks in lacking.values())]
    for need in unmet:
        values = {labels[row][need.key] for row in lacking if need.key in labels[row]}
        meant = nearest_name(need.values[0], sorted(values)) if need.operator is Operator.EQUALS else ""
        yield f"no pod in namespace {namespace} has {need}{meant and f' (did you mean {need.key}={meant}?)'}"
    if lacking and not unmet and selector.selectable:
        nearest = min(lacking, key=lambda row: (len(lacking[row]), pods.key(row)))
        yield f"no pod meets all of {selector}: {pods.key(nearest)} lacks {', '.join(map(str, lacking[nearest]))}"


def _explain_quota(asked: ObjectQuestion) -> ObjectAnswer | None:
    """Return which resources of a ResourceQuota are used up or must be set, with the workloads that it refuses."""
    snapshot, quota, namespace = asked.snapshot, asked.object, asked.reference.namespace
    if not isinstance(quota, ResourceQuota):
        return None
    hard, used = quota.spec.hard, quota.status.used
    texts = {name: f"{name} {used[name]} of {hard[name]}" for name in hard if name in used}
    full = [name for name in texts if nano_units(used[name]) >= nano_units(hard[name])]
    without = workloads_without_pods(snapshot, asked.setup, namespace)
    refused = {it.lifecycle: it for _, it in without if isinstance(it.lifecycle, states.Refused)}
    unset = f"failed quota: {quota.name}: must specify"
    own = [state for state in refused if f"exceeded quota: {quota.name}," in state.message or unset in state.message]
    needed = list_names([name for name in hard if name in MUST_BE_SPECIFIED], 4, conjunction="or")
    pods = "pods in its scopes" if [*quota.scopes] else "pods"
    demands = f"refuses {pods} that do not set {needed}" if needed else ""
    facts = [texts[name] for name in texts if name not in full]
    if full:
        does = f"is used up: {', '.join(texts[name] for name in full)}"
    elif any(unset in state.message and not state.past for state in own):
        does, demands = demands, ""
    else:
        does = "has room for each of its resources" if texts else "has no usage in its status"
    facts += [f"it {demands}, unless a LimitRange does"] if demands and texts else []
    facts += [f"it refused pods of {state.subject}" for state in own[:3]]
    state = states.ObjectState(subject=f"{namespace}/quota/{quota.name}", does=does, facts=tuple(facts))
    return ObjectAnswer(state=state, fixes=lambda: refused[own[0]].fixes if own else ())


def _explain_volume(asked: ObjectQuestion) -> ObjectAnswer | None:
    """Return the phase of a PersistentVolume, and what uses it or keeps it from being used."""
    snapshot, volume = asked.snapshot, asked.object
    if not isinstance(volume, PersistentVolume):
        return None
    subject, pods, reference = f"pv/{volume.name}", snapshot.pods, volume.spec.claim_ref
    key = "" if reference is None else reference.key
    claim = snapshot.storage.claims.get(key)
    is_bound = volume.status.phase == "Bound" or (claim is not None and is_bound_to(volume, claim))
    rows = [row for row in pods.rows_with_claim(key) if not pods.finished[row]] if is_bound else []
    facts = [f"pod {pods.key(row)} on {pods.node_names[row] or 'no node'} uses it" for row in rows[:3]]
    attached = (it for it in snapshot.of(VolumeAttachment) if it.spec.source.persistent_volume_name == volume.name)
    facts += [f"{it.spec.attacher} has it attached to node {it.spec.node_name}" for it in attached][:3]
    if deleted := volume.metadata.deletion_timestamp:
        why = f"claim {key} is bound to it" if is_bound else ""
        state = states.BeingDeleted(subject=subject, since=deleted, is_workload=True, why=why, facts=tuple(facts))
        return ObjectAnswer(state=state)
    policy = volume.spec.persistent_volume_reclaim_policy
    match volume.status.phase:
        case "Released":
            does = f"is Released: its claim {key} is deleted"
            then = "its driver has not deleted it yet" if policy == "Delete" else "no other claim is bound to it"
            facts.append(f"reclaim policy {policy}: {then}")
        case "Failed":
            does = f"is Failed: its deletion after that of claim {key} has failed"
        case _ if key and is_bound:
            does = f"is bound to claim {key}"
        case phase:
            does = f"is {phase}, and reserved for claim {key}" if key else f"is {phase}: no claim is bound to it"
            facts += [its for claim in snapshot.storage.claims.values() if (its := _class_apart(claim, volume))][:3]
    state_of_volume = states.ObjectState(subject=subject, does=does, facts=tuple(facts))
    return ObjectAnswer(state=state_of_volume, fixes=partial(_volume_fixes, volume))


def _class_apart(claim: PersistentVolumeClaim, volume: PersistentVolume) -> str:
    """Return that an unbound claim matches a free volume but for its class; otherwise, an empty string."""
    from kschedx.fixes.changed_volumes import fits_claim  # needed only for objects that are not bound

    wanted, own = claim.storage_class, volume.spec.storage_class_name
    if wanted == own or claim.spec.volume_name or volume.spec.claim_ref is not None:
        return ""
    if not fits_claim(with_spec(claim, storage_class_name=own), volume):
        return ""
    return f"volume {volume.name} has class {own or '<none>'}, and claim {claim.key} has {wanted or '<none>'}"


def _volume_fixes(volume: PersistentVolume) -> Iterator[Fix]:
    """Yield what makes a volume of a deleted claim usable again, or removes it."""
    from kschedx.inquiry.fix import Fix  # needed only for such a volume

    name, policy = volume.name, volume.spec.persistent_volume_reclaim_policy
    steps = {
        "release it, so that another claim can use it; its data stays": merge_patch(
            "pv", "", name, {"spec": {"claimRef": None}}
        ),
        "delete it, if its data is not needed; its disk stays": shell_command("kubectl delete pv {}", name),
    }
    if volume.status.phase == "Failed" or (volume.status.phase == "Released" and policy == "Delete"):
        steps = {"see in its events why it is not deleted": shell_command("kubectl describe pv {}", name)}
    for title, command in steps.items() if volume.status.phase in ("Released", "Failed") else ():
        yield Fix.untried(title, command, of_group=FixGroup.CLUSTER)


def _explain_service(asked: ObjectQuestion) -> ObjectAnswer | None:
    """Return which pods a Service selects; None for one with a pod that is pending or not ready, and for one that
    Knative creates."""
    snapshot, service, namespace = asked.snapshot, asked.object, asked.reference.namespace
    is_of_knative = ("Service.serving.knative.dev", namespace, asked.reference.name) in snapshot.custom_resources
    if not isinstance(service, Service) or is_of_knative:
        return None
    subject, selected = f"{namespace}/svc/{service.name}", service.spec.selector
    if (chosen := selected_pod(snapshot, asked.reference)) is not None:
        pods, rows = snapshot.pods, selected_rows(snapshot, service)
        row = -1 if chosen.stored is None else pods.rows[chosen.stored.key]
        if row not in rows or row in pods.pending or not reports_ready(pods.statuses[row].conditions):
            return None
        if service.awaits_address and service.metadata.is_stored:
            return _without_address(snapshot, service, f"selects {count(len(rows), 'pod')}")
        on = (f"{pods.key(it)} on {pods.node_names[it]}" for it in rows[:3])
        does = f"selects {count(len(rows), 'pod')}: none is pending or reported as not ready"
        return ObjectAnswer(state=states.ObjectState(subject=subject, does=does, facts=tuple(on)))
    facts: tuple[str, ...] = ("its endpoints are not pods that it selects",)
    if not selected:
        return ObjectAnswer(state=states.ObjectState(subject=subject, does="has no selector", facts=facts))
    if snapshot.source.may_lack("Pod", namespace):
        because, command = "the dump holds no pods", add_to_dump("Pod")
        state = states.NotRead(subject=subject, unknown="which pods it selects", because=because, command=command)
        return ObjectAnswer(state=state)
    selector = selector_from_set(selected)
    facts = (*_unmatched_labels(snapshot, namespace, selector),) or (f"no pod is in namespace {namespace}",)
    state_of_service = states.ObjectState(subject=subject, does="selects no pods", facts=facts)
    fixes = partial(_selector_fixes, snapshot, asked.reference, selector, "spec.selector")
    return ObjectAnswer(state=state_of_service, fixes=fixes)


_LOAD_BALANCERS = (
    "metallb",
    "load-balancer",
    "loadbalancer",
    "cloud-controller",
    "kube-vip",
    "svclb",
    "cilium",
    "purelb",
)
"""Parts of the names of what gives load balancers their addresses."""


def _without_address(snapshot: Snapshot, service: Service, selects: str) -> ObjectAnswer:
    """Return the state of a Service whose load balancer has no address."""
    namespace, name = service.metadata.namespace, service.name
    event = snapshot.failed_create("Service", service.metadata)
    is_cloud = any(node.spec.provider_id for node in snapshot.cluster.nodes)
    is_absent = not (event or is_cloud or snapshot.may_run(*_LOAD_BALANCERS))
    fact = "no controller has given its load balancer an address"
    if event is not None:
        fact = f"its controller reports: {event.message}"
    elif is_absent:
        fact = "nothing in this cluster gives a load balancer an address"

    def fixes() -> Iterator[Fix]:
        from kschedx.inquiry.fix import Fix  # needed only for such a Service

        advice = "find out whether a load balancer controller runs, and why it gives no address"
        if event is not None:
            advice = "correct what its load balancer controller reports"
        elif is_absent:
            advice = "install a load balancer controller, such as MetalLB or that of the cloud"
        yield Fix.untried(advice, of_group=FixGroup.CLUSTER)
        patch = merge_patch("svc", namespace, name, {"spec": {"type": "NodePort"}})
        yield Fix.untried("reach it through a port of the nodes", patch, of_group=FixGroup.CLUSTER)

    does = f"{selects}, and has no external address: type LoadBalancer is pending"
    return ObjectAnswer(
        state=states.ObjectState(subject=f"{namespace}/svc/{name}", does=does, facts=(fact,)), fixes=fixes
    )


def _explain_claim(asked: ObjectQuestion) -> ObjectAnswer | None:
    if (state := _claim_state(asked.snapshot, asked.reference)) is None:
        return None
    if isinstance(state, states.Failed):  # what helps the pod that uses it
        user = find_target(asked.snapshot, f"{asked.reference.namespace}/pvc/{asked.reference.name}")
        return ObjectAnswer(
            state=state, fixes=lambda: explain(user.admit(asked.snapshot, asked.setup), asked.setup).fixes
        )
    claim = asked.snapshot.storage.claim(asked.reference.namespace, asked.reference.name)
    if claim is not None and any(kind.endswith("ResizeError") for kind, _ in claim_expansions(claim)):
        from kschedx.inquiry.fix import Fix  # needed only for such a claim

        title = "request a smaller size that its storage can provide, above the present one"
        return ObjectAnswer(state=state, fixes=lambda: (Fix.untried(title),))
    is_repaired = isinstance(state, states.NotBound)
    return ObjectAnswer(state=state, fixes=remedies_of(asked.subject, asked.setup, state) if is_repaired else tuple)


def _claim_state(snapshot: Snapshot, reference: NamedObject) -> states.Lifecycle | None:
    """Return the state of a claim that no pending pod uses. It is None if a pod shows more: one that is pending, or any
    pod with a claim that has no volume and does not wait for a pod."""
    namespace, name = reference.namespace, reference.name
    claim, pods = snapshot.storage.claim(namespace, name), snapshot.pods
    rows = [row for row in pods.rows_with_claim(f"{namespace}/{name}") if not pods.finished[row]]
    if claim is None or any(row in pods.pending for row in rows):
        return None
    users = [f"pod {pods.key(row)} on {pods.node_names[row]} uses it" for row in rows[:3]]
    deleted, subject = claim.metadata.deletion_timestamp, f"{namespace}/pvc/{name}"
    storage_class, volumes = snapshot.storage.classes.get(claim.storage_class), snapshot.storage.volumes
    volume, report = claim.spec.volume_name, snapshot.failed_create("PersistentVolumeClaim", claim.metadata)
    class_is_unread = storage_class is None and not snapshot.cluster.nodes and snapshot.source.may_lack("StorageClass")
    reported = states.NotBound(subject=subject, message="", claim=claim.key)
    lifecycle: states.Lifecycle
    if deleted:
        kept = ("kubernetes.io/pvc-protection",) if rows else ()
        why = "; ".join(users)
        lifecycle = states.BeingDeleted(subject=subject, since=deleted, finalizers=kept, is_workload=True, why=why)
    elif claim.status.phase == "Lost":
        lifecycle = states.Failed(subject=subject, reason="Lost", message=f"its volume {volume} no longer exists")
    elif claim.status.phase == "Bound" and (volume in volumes or is_unread(snapshot, "PersistentVolume")):
        grows = [f"it {text}" for _, text in claim_expansions(claim)]
        facts = (*grows, *(users or ["no pod uses it"]))
        lifecycle = states.ObjectState(subject=subject, does=f"is bound to volume {volume}", facts=facts)
    elif report is not None and class_is_unread and not (volume or rows):
        lifecycle = replace(reported, provisioner=claim.provisioner, report=report.message)
    elif volume or rows or storage_class is None or not storage_class.waits_for_first_consumer:
        return None
    elif any(volume.spec.claim_ref and volume.spec.claim_ref.key == claim.key for volume in volumes.values()):
        return None  # the volume of an earlier claim of this name
    elif storage_class.can_provision and report is not None:
        lifecycle = replace(reported, provisioner=storage_class.provisioner, report=report.message)
    else:
        fact = f"class {claim.storage_class} binds it where its pod is scheduled (WaitForFirstConsumer)"
        wrong_class = wrong_attributes_class(snapshot, claim)
        apart = [its for volume in volumes.values() if (its := _class_apart(claim, volume))]
        facts = (fact, *apart[:3]) if wrong_class is None else (fact, wrong_class.text)
        lifecycle = states.ObjectState(subject=subject, does="is pending until a pod uses it", facts=facts)
        if snapshot.source.may_lack("Pod", namespace):
            because = f"{fact}; the dump holds no pods"
            lifecycle = states.NotRead(subject=subject, unknown="its pod", because=because, command=add_to_dump("Pod"))
    return lifecycle


def _explain_device_claim(asked: ObjectQuestion) -> ObjectAnswer | None:
    """Return the state of a ResourceClaim that no pod uses; None for any other."""
    reference, snapshot = asked.reference, asked.snapshot
    claim = snapshot.devices.claims.get(f"{reference.namespace}/{reference.name}")
    if claim is None or rows_with_devices(snapshot, reference):
        return None
    subject = f"{reference.namespace}/resourceclaim/{reference.name}"
    if deleted := claim.metadata.deletion_timestamp:
        return ObjectAnswer(state=states.BeingDeleted(subject=subject, since=deleted, is_workload=True))
    results = () if claim.status.allocation is None else claim.status.allocation.devices.results
    does = "keeps devices, and no pod uses it" if results else "is not allocated: no pod uses it"
    devices = tuple(f"{result.driver}/{result.pool}/{result.device} is allocated" for result in results)
    causes = unused_claims(snapshot, (claim.key,)) if results else ()

    def fixes() -> Iterator[Fix]:
        from kschedx.inquiry.fix import Fix  # needed only for a claim that keeps devices

        yield from (Fix.of_advice(advice) for cause in causes for advice in cause.advice)

    return ObjectAnswer(state=states.ObjectState(subject=subject, does=does, facts=devices), fixes=fixes)


# Objects behind nodes, which few clusters have and few questions are about.


def _explain_karpenter(asked: ObjectQuestion) -> ObjectAnswer | None:
    from kschedx.inquiry.karpenter_objects import explain_karpenter

    return explain_karpenter(asked)


def _explain_machines(asked: ObjectQuestion) -> ObjectAnswer | None:
    from kschedx.inquiry.machine_objects import explain_machines

    return explain_machines(asked)


ANSWERS: Mapping[str, Callable[[ObjectQuestion], ObjectAnswer | None]] = {
    "PersistentVolumeClaim": _explain_claim,
    "ResourceClaim": _explain_device_claim,
    "PersistentVolume": _explain_volume,
    "ResourceQuota": _explain_quota,
    "Service": _explain_service,
    "PodDisruptionBudget": _explain_budget,
    "HorizontalPodAutoscaler": _explain_autoscaler,
    "VerticalPodAutoscaler": _explain_autoscaler,
    "ScaledObject.keda.sh": _explain_autoscaler,
    **dict.fromkeys(("NodePool.karpenter.sh", "NodeClaim.karpenter.sh"), _explain_karpenter),
    **dict.fromkeys(
        (
            "Machine.cluster.x-k8s.io",
            "Machine.machine.openshift.io",
            "MachineDeployment.cluster.x-k8s.io",
            "MachineSet.cluster.x-k8s.io",
            "MachinePool.cluster.x-k8s.io",
            "MachineSet.machine.openshift.io",
        ),
        _explain_machines,
    ),
}
"""By kind, the answer about an object without pods of its own."""
