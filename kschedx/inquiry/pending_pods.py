"""Fixes for the pods that are pending at the end of a simulation: a fix of one pod, tried for all of them."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import count, islice, pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.stateful_set import admit_pods
from kschedx.controllers.workloads import member_rows, new_pods
from kschedx.errors import InputError, UndecidableError
from kschedx.explain.admission import QuotaLedger
from kschedx.fixes import FixCertainty
from kschedx.fixes import steps as s
from kschedx.fixes.proposal import Proposal, apply_steps
from kschedx.fixes.steps import AddNode, ClassedClaim, PodStep, RepairNode, TakeOldFirst
from kschedx.framework.moving import Run
from kschedx.inquiry.autoscalers import autoscalers_of
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.fix import Fix, uncordoning_more
from kschedx.inquiry.pod_keys import PodKeys
from kschedx.inquiry.simulation import Simulation, WorkloadResult
from kschedx.kube.documents import Document, Json, part_of, to_json, with_spec
from kschedx.kube.names import REGION_LABELS, ZONE_LABELS, first_label
from kschedx.kube.storage import PersistentVolumeClaim
from kschedx.kube.types import Node, Pod
from kschedx.simulate.added_nodes import left_over
from kschedx.simulate.changes import another_like
from kschedx.simulate.simulator import run_on
from kschedx.snapshot.columns import IntArray, rows_by_group
from kschedx.snapshot.daemon_sets import with_less_allocatable
from kschedx.snapshot.edits import with_changed_pods, with_pods
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import NodeAutoscaler

_MOST_SHARED_FIXES = 4  # fixes of one pod that are tried for the others
_MOST_CLASSES = 200  # the limit counts equivalence classes. At least one fix is tried, however many there are
_MOST_PODS_TRIED = 40_000  # the limit is over all fixes. At least one fix is tried, however many pods there are
_MANY_PODS = 50_000  # the number of pods above which a cluster's memory is freed after a fix was tried in it
_SEARCHES_PER_COLLECTION = 4
_MOST_ADDED_NODES = 5_000  # each copies the table of nodes: together about 3 s


class SharedFixDocument(Document, frozen=True):
    workload: str
    title: str
    certainty: FixCertainty
    pods: int
    of: int


def _with_nodes(steps: Iterable[s.FixStep], number: int, zones: Sequence[str] = ()) -> str:
    """Return the title of a fix that adds `number` nodes, in these zones or all in one."""
    return ", ".join(step.title_of(number, zones) if isinstance(step, s.AddNode) else step.title for step in steps)


class SharedFix(Struct, frozen=True, kw_only=True):
    """A fix of the first of several pods, and how many of them it helps."""

    fix: Fix
    pods: int
    """The number of pods with a node after the fix, placed one by one, including the first. No pod is evicted."""
    of: int
    nodes: int = 1  # the number of added nodes, if the fix adds a node
    zones: tuple[str, ...] = ()  # the zones of the added nodes, if there are several

    @property
    def is_enough(self) -> bool:
        return self.pods == self.of

    @property
    def is_of_steps(self) -> bool:
        """Whether the fix can be tried for other pods."""
        return self.fix.certainty is FixCertainty.VERIFIED and self.fix.then is None

    @property
    def title(self) -> str:
        return self.fix.title if self.nodes == 1 else _with_nodes(self.fix.steps, self.nodes, self.zones)

    @property
    def commands(self) -> tuple[str, ...]:
        if self.nodes == 1:
            return self.fix.commands
        steps = (replace(it, number=self.nodes) if isinstance(it, s.AddNode) else it for it in self.fix.steps)
        return tuple(command for step in steps for command in step.commands())


class PendingStory(Struct, frozen=True, kw_only=True):
    """Pending pods: the explanation of the first one, and a fix for all of them."""

    explanation: Explanation
    shared_fix: SharedFix | None


class SharedFixes:
    """The cluster at the end of a simulation, and the fixes for its pending pods."""

    def __init__(
        self,
        simulation: Simulation,
        scene: Snapshot | None = None,
        *,
        autoscalers: tuple[NodeAutoscaler, ...] | None = None,
    ) -> None:
        """`scene` is the cluster after a drain, used instead of the one at the end. The autoscalers decide about the
        cluster in which the pods are pending; by default, they are those of that cluster."""
        self._simulation = simulation
        self._scene = scene
        self._known_autoscalers = autoscalers
        self._known: dict[bytes, PendingStory | None] = {}
        self._explanations: dict[str, Explanation | None] = {}
        self._fixes: dict[str, list[Fix]] = {}  # the fixes of a pod that were found so far
        self._searches = count()

    def shared_fix(self, pods: Sequence[str]) -> SharedFix | None:
        """Return a fix for these pods; None if none is known."""
        story = self.story(pods)
        return None if story is None else story.shared_fix

    def story(self, pods: Sequence[str]) -> PendingStory | None:
        """Return the story of pending pods, `namespace/name`. It is None if there are no pods, if kschedx cannot
        decide, or if the first pod is in no queue."""
        rows = self._rows(pods)
        key = rows.tobytes()
        if key not in self._known:
            self._known[key] = self._story(rows)
        return self._known[key]

    def story_of(self, result: WorkloadResult) -> PendingStory | None:
        """Return the story of a workload's pending pods, with those of an ordered StatefulSet that come after them."""
        manifest = self._then.manifest_of(result.workload) if result.to_come and result.pending else None
        if manifest is None:
            return self.story(result.pending)
        members = member_rows(self._then, result.workload)
        taken, setup = (self._then.pods.names[row] for row in members), self._simulation.setup
        try:
            snapshot, to_come = new_pods(self._then, setup, manifest, result.to_come, taken)
        except (InputError, UndecidableError):
            return self.story(result.pending)
        quotas = QuotaLedger(snapshot, setup.release)
        admitted = admit_pods(snapshot, quotas, to_come, self._then.storage.claims)
        scene = with_pods(admitted.snapshot, admitted.created)
        later = SharedFixes(self._simulation, scene, autoscalers=self._known_autoscalers)
        return later.story((*result.pending, *(pod.key for pod in admitted.created)))

    def _rows(self, pods: Sequence[str]) -> IntArray:
        """Return the pods' rows; -1 for a pod that does not exist."""
        if isinstance(pods, PodKeys) and self._scene is None and pods.table is self._simulation.run.cluster.pods:
            return pods.rows
        known = self._then.pods.rows
        return np.array([known.get(key, -1) for key in pods], dtype=np.int64)

    def admission_fix(self, result: WorkloadResult) -> Fix | None:
        """Return a fix after which the API server admits the refused replicas of a workload, or all pods of a rollout;
        None if none is known."""
        from kschedx.controllers.workload_lifecycle import refusal_state
        from kschedx.inquiry.manifests import written_from
        from kschedx.inquiry.pod import WithoutDecision

        maker = self._then.manifest_of(result.workload)
        if maker is None or self._scene is not None:
            return None
        then, setup = self._then if result.refused else self._simulation.start, self._simulation.setup
        written = written_from(then, dict(maker))
        decision = WithoutDecision(written=written, before=then, snapshot=then, setup=setup)
        lifecycle = refusal_state(result.workload.reference, result.refusal, is_workload=True)
        return next(iter(decision.fixes(lifecycle, count=max(result.refused, 1))()), None)

    def to_list(self, most: int) -> list[Json]:
        """Return the fixes of the `most` workloads with the most pending pods, for the document."""
        documents = []
        for workload_result in sorted(self._simulation.workloads, key=lambda result: -len(result.pending))[:most]:
            story = self.story_of(workload_result) if workload_result.pending else None
            if story is not None and (shared := story.shared_fix) is not None:
                workload, certainty = workload_result.workload.reference, shared.fix.certainty
                documents.append(to_json(part_of(SharedFixDocument, shared, workload=workload, certainty=certainty)))
        return documents

    def _story(self, rows: IntArray) -> PendingStory | None:
        pods, simulation = self._then.pods, self._simulation
        if (rows < 0).any():
            return None
        self._free_tried()
        first = pods.key(int(rows[0]))
        if self._scene is None and (
            first not in simulation.messages or np.isin(rows, simulation.placed.pods.rows).any()
        ):
            return None
        try:
            explanation = self._explanation(first)
        except UndecidableError:
            return None
        if explanation is None:
            return None
        best: SharedFix | None = None
        most = min(_MOST_SHARED_FIXES, _MOST_CLASSES // self._kinds(rows), _MOST_PODS_TRIED // len(rows))
        for narrow in islice(self._each_fix(first, explanation), max(most, 1)):
            fix = uncordoning_more(
                narrow,
                self._then,
                self._simulation.closed_nodes,
                lambda wider: self._try_shared(explanation, wider, rows).pods,
                len(rows),
            )
            tried = self._try_shared(explanation, fix, rows)
            adds_node = any(isinstance(step, AddNode) for step in fix.steps)
            changes_pods = best is not None and any(isinstance(step, PodStep) for step in best.fix.steps)
            if best is not None and adds_node and not changes_pods and 2 * best.pods >= best.of:
                break  # nodes that have room come before more nodes, as for a single pod
            if best is None or tried.pods > best.pods:
                best = tried
            is_repair = bool(fix.steps) and all(isinstance(step, RepairNode) for step in fix.steps)
            if tried.is_enough or (is_repair and 2 * tried.pods >= tried.of):
                best = tried
                break  # what is broken comes before more nodes
            if best is tried and fix.certainty is not FixCertainty.PARTIAL and not tried.is_of_steps:
                break  # a repair, or an autoscaler's node, comes before the others, though not tried for every pod
        return PendingStory(explanation=explanation, shared_fix=best)

    def _explanation(self, pod: str) -> Explanation | None:
        if pod not in self._explanations:
            simulation, scene = self._simulation, self._scene
            explanation = simulation.explain_now(pod) if scene is None else simulation.explain_in(scene, pod)
            if explanation is not None:
                explanation = replace(explanation, autoscalers=self._autoscalers)
            self._explanations[pod] = explanation
        return self._explanations[pod]

    def _each_fix(self, pod: str, explanation: Explanation) -> Iterator[Fix]:
        """Yield the fixes of a pod; those that were found for other pods with the same first one are not retried."""
        known = self._fixes.setdefault(pod, [])
        yield from known
        for fix in islice(explanation.each_fix(), len(known), None):
            known.append(fix)
            yield fix

    def try_for_all(self, explanation: Explanation, fix: Fix, pods: Sequence[str]) -> SharedFix | None:
        """Try a fix of the first of these pods for all of them, in the cluster at the end of the simulation. Return
        None if the pods have too many equivalence classes to try every fix."""
        rows = self._rows(pods)
        if _MOST_SHARED_FIXES * self._kinds(rows) > _MOST_CLASSES:
            return None
        tried = self._try_shared(explanation, fix, rows)
        return tried if tried.is_of_steps else None

    def _kinds(self, rows: IntArray) -> int:
        pods = self._then.pods
        codes = (column.codes[rows].tolist() for column in (pods.namespaces, pods.labels, pods.specs))
        return len({*zip(*codes, strict=True)})

    def _try_shared(self, explanation: Explanation, fix: Fix, rows: IntArray) -> SharedFix:
        asks_others, of = explanation.scheduler.config.extenders, len(rows)
        alone = SharedFix(fix=fix, pods=1, of=of)
        if not alone.is_of_steps:
            helps = fix.helps or ()
            return replace(alone, pods=sum(self._then.pods.key(row) in helps for row in rows.tolist()))
        if of == 1 or asks_others:
            # extenders are called only for the actual pods, never for changed ones
            return alone
        if self._kinds(rows) == 1 and any(isinstance(step, TakeOldFirst) for step in fix.steps):
            return replace(alone, pods=of)  # the trial of the first pod ends the whole rollout
        self._free_tried()
        first = apply_steps(fix.steps, Proposal(pod=explanation.cycle.pod), self._then)
        first = first.with_objects(*self._claims_of_replicas(fix, explanation.cycle.pod, rows))
        its_own = [step for step in fix.steps if isinstance(step, PodStep)]
        cluster, table = first.cluster(self._then), self._then.pods
        if len(cluster.pods) != len(table) or first.resized or first.moved:
            rows = np.array([cluster.pods.rows[table.key(row)] for row in rows.tolist()], dtype=np.int64)

        def changed() -> Iterator[tuple[IntArray, Pod]]:
            """Yield the changed pods, identical ones together; none of them preempts others."""
            numbers = cluster.pods.class_numbers(rows)
            order, start = rows_by_group(numbers, int(numbers.max()) + 1)
            for low, high in pairwise(start.tolist()):
                pod = apply_steps(its_own, Proposal(pod=cluster.pods[int(rows[order[low]])]), self._then).pod
                yield rows[order[low:high]], without_preemption(pod)
            yield rows[:1], without_preemption(first.pod)

        def without_preemption(pod: Pod) -> Pod:
            return with_spec(pod, preemption_policy="Never")

        run = run_on(with_changed_pods(cluster, changed()), self._simulation.setup)
        left, zones = list(left_over(run, rows.tolist())), Counter({"": 1})
        if first.added is not None and len(its_own) + 1 == len(fix.steps):
            zones, left = _place_on_more_nodes(run, first, left)
        several = tuple(sorted(zones)) if len(zones) > 1 else ()
        # a gang may fit without the new node where the fix is tried for a part of it alone
        return SharedFix(fix=fix, pods=of - len(left), of=of, nodes=max(zones.total(), 1), zones=several)

    def _claims_of_replicas(self, fix: Fix, pod: Pod, rows: IntArray) -> Iterator[PersistentVolumeClaim]:
        """Yield the unbound claims of other replicas with the class that the fix sets in the first pod's claim: all of
        them come from one claim template. A volume of its own would be known only after it is provisioned."""
        claims, table, ending = self._then.storage.claims, self._then.pods, f"-{pod.metadata.name}"
        for step in fix.steps:
            if not isinstance(step, ClassedClaim) or step.volume is not None or not step.claim.key.endswith(ending):
                continue
            template = step.claim.key.removesuffix(ending)
            for row in rows.tolist():
                claim = claims.get(f"{template}-{table.names[row]}")
                if claim is not None and claim.key != step.claim.key and not claim.spec.volume_name:
                    name = step.claim.spec.storage_class_name
                    yield with_spec(claim, storage_class_name=name)

    def _free_tried(self) -> None:
        """Free the clusters in which fixes were tried, because a framework and its plugins refer to each other. Most
        are young; to look at all objects for the others takes longer than some fixes."""
        if len(self._then.pods) > _MANY_PODS:
            gc.collect(1 if next(self._searches) % _SEARCHES_PER_COLLECTION else 2)

    @cached_property
    def _autoscalers(self) -> tuple[NodeAutoscaler, ...]:
        if self._known_autoscalers is not None:
            return self._known_autoscalers
        simulation = self._simulation
        return autoscalers_of(self._then, simulation.autoscaling, simulation.setup.scheduler)[0]

    @cached_property
    def _then(self) -> Snapshot:
        return self._scene or self._simulation.run.cluster.frozen()


def _place_on_more_nodes(run: Run, proposal: Proposal, left: list[int]) -> tuple[Counter[str], list[int]]:
    """Return how many nodes identical to the added one are needed in each zone, and the pods without a node even then.
    Other zones of the cluster are tried for pods that more nodes in the zone of the first one do not help. The number
    of new nodes assumes that each gets as many pods as the first."""
    template = proposal.added
    assert template is not None, "a node is added"
    offered = with_less_allocatable(template, proposal.taken)
    index = run.cluster.snapshot.cluster.index
    names = islice(
        (name for number in count(2) if (name := f"{template.name}-{number}") not in index), _MOST_ADDED_NODES
    )
    zone = first_label(template.metadata.labels, ZONE_LABELS)
    others = _other_zones(run.cluster.snapshot.cluster.nodes, template) if zone else ()
    added, each = [(zone, index[template.name])], len(run.cluster.pods.on_node(index[template.name]))
    before, size = 0, -(-len(left) // max(each, 1))
    while left and each and len(left) != before:
        before = len(left)
        for place in (zone, *others):
            labels = {key: place if key in ZONE_LABELS else value for key, value in offered.metadata.labels.items()}
            node = replace(offered, metadata=replace(offered.metadata, labels=labels))
            helped = 1
            while left and helped:
                added += [(place, run.cluster.add_node(another_like(node, name))) for name in islice(names, size)]
                still = list(left_over(run, left))
                helped, left = len(left) - len(still), still
                size = -(-len(left) // each) if helped >= size or not others else 1
    return Counter(place for place, row in added if len(run.cluster.pods.on_node(row))), left


def _other_zones(nodes: Iterable[Node], template: Node) -> tuple[str, ...]:
    region = first_label(template.metadata.labels, REGION_LABELS)
    labels = [node.metadata.labels for node in nodes]
    zones = {first_label(each, ZONE_LABELS) for each in labels if first_label(each, REGION_LABELS) == region}
    return tuple(sorted(zones - {"", first_label(template.metadata.labels, ZONE_LABELS)}))
