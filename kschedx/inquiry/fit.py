"""How many more identical pods fit, one after the other, and how many nodes are missing for more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from kschedx.controllers import states, workloads
from kschedx.controllers.pod_autoscaling import autoscaler_of
from kschedx.controllers.stateful_set import admit_pods
from kschedx.errors import ConfigError, InputError, Place, UndecidableError
from kschedx.explain.admission import QuotaLedger, quotas_of
from kschedx.explain.missing_kinds import depends_on_unread, require_for_decision
from kschedx.explain.notes import Note, note
from kschedx.explain.setup import Setup
from kschedx.framework.cycle import Outcome, Stake, Unevaluated, UnevaluatedDocument
from kschedx.framework.runtime import request_options
from kschedx.inquiry.autoscalers import autoscalers_of
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.manifests import PodInQuestion
from kschedx.inquiry.node_usage import NodeUsage
from kschedx.inquiry.pod import find_fixes
from kschedx.kube.documents import Document, Json, document
from kschedx.kube.names import CPU, MEMORY, PODS
from kschedx.kube.resources import node_allocatable, pod_request
from kschedx.kube.types import Pod
from kschedx.progress import Phase, report_progress
from kschedx.results import Shown
from kschedx.simulate import changes
from kschedx.simulate.changes import SHAPES, another_like, shapes
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.columns import ClusterRow, each_cluster_row
from kschedx.snapshot.daemon_sets import daemon_pods, overhead, with_less_allocatable
from kschedx.snapshot.edits import with_only_pods, with_pods
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count

_MOST_COPIES = 5_000  # the maximum number of pods that are tried by default; if all fit, the answer is "or more"


class MissingNodes(Document, frozen=True):
    """Nodes that would make the wanted number fit."""

    like: str  # an existing node of that kind
    nodes: int


class FitPod(Document, frozen=True):
    namespace: str
    name: str
    of: str


class FitDocument(Document, frozen=True, omit_defaults=True):
    kubernetes_version: str
    unknown_plugins: tuple[UnevaluatedDocument, ...]
    pod: FitPod
    count: int = field(name="fits")
    wanted: int | None
    nodes: Mapping[str, int]
    message: str
    undecided: tuple[UnevaluatedDocument, ...]
    missing: tuple[MissingNodes, ...]
    state: states.StateDocument
    refusal: str = ""


class Fit(Shown, Struct, frozen=True, kw_only=True):
    """The number of further pods that fit, by node."""

    pod: Pod  # one of the pods, as the API server would store it
    title: str
    setup: Setup
    snapshot: Snapshot
    nodes: Mapping[str, int]  # each node with the number of pods that go there
    wanted: int | None
    stopped: Explanation | None  # why the next pod does not fit; None if that was not requested
    missing: tuple[MissingNodes, ...]  # the fewest nodes first
    usage_before: NodeUsage
    usage_after: NodeUsage
    fill: Callable[[], Snapshot]
    refusal: str = ""
    """Why the API server admits no more than `count` pods, or fewer than wanted, as their controller reports it."""
    lifecycle: states.Lifecycle | None = None  # why no such pod is created or assigned, whatever the nodes have free

    def __repr__(self) -> str:
        return f"<Fit of {self.title}: {self.count} more>"

    @property
    def cluster_after(self) -> Snapshot:
        return self.fill()

    @property
    def count(self) -> int:
        return sum(self.nodes.values())

    @property
    def is_enough(self) -> bool:
        return self.count >= (1 if self.wanted is None else self.wanted)

    @property
    def state(self) -> states.StateRow:
        """The row of the table of states that answers the question: that of the pods' own state, unless they can be
        created in that state and do not fit."""
        if self.lifecycle is not None:
            row = states.row_of(self.lifecycle)
            if self.is_enough or row.exit_code is not states.ExitCode.SCHEDULABLE:
                return row
        if self.is_enough:
            return states.row_named("Schedulable")
        if self.could_reject:
            return states.row_named("Undecided")
        if self.stopped is None:
            return states.row_named("Refused" if self.refusal else "Unschedulable")
        stopped_state = self.stopped.state
        if stopped_state.exit_code is not states.ExitCode.UNSCHEDULABLE:
            return states.row_named("Unschedulable")
        return stopped_state

    @property
    def is_held(self) -> bool:
        """Whether the pods' own state is the answer, not the free resources of the nodes."""
        return self.lifecycle is not None and self.state is states.row_of(self.lifecycle)

    @property
    def could_reject(self) -> tuple[Unevaluated, ...]:
        """Extenders and plugins that were not run and could reject the next pod, which otherwise fits."""
        if self.stopped is None or self.stopped.outcome is not Outcome.UNDECIDED:
            return ()
        return tuple(it for it in self.stopped.cycle.unevaluated if it.stake is Stake.FIT and not it.is_waived)

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """The fixes for the next pod that delete none of the counted ones."""
        known, fixes = self.snapshot.pods.rows, () if self.stopped is None else self.stopped.fixes
        return tuple(
            fix
            for fix in fixes
            if all(it.target.key in known for it in fix.changes if it.delete and it.target.kind == "Pod")
        )

    @property
    def is_bounded(self) -> bool:
        """Whether no more pods were tried, so that more may fit."""
        return self.stopped is None and not self.refusal

    def records(self) -> list[dict[str, object]]:
        """Return a row for each node that gets pods."""
        return [{"node": name, "fits": number} for name, number in self.nodes.items()]

    def to_dict(self) -> Json:
        return document(
            "Fit",
            FitDocument,
            self,
            kubernetes_version=self.setup.release.version,
            unknown_plugins=self.setup.unknown_plugin_documents,
            pod=FitPod(self.pod.metadata.namespace, self.pod.metadata.name, self.title),
            message="" if self.stopped is None else self.stopped.message,
            undecided=tuple(unevaluated.document for unevaluated in self.could_reject),
            state=states.state_document(self.lifecycle)
            if self.lifecycle is not None and self.is_held
            else {"name": self.state.name},
        )


def room_to_maximum(snapshot: Snapshot, setup: Setup, target: PodInQuestion) -> tuple[Note, ...]:
    """Return how many of the pods fit that the HorizontalPodAutoscaler of a workload may add; empty if it may add none,
    or if that is not known."""
    if target.workload is None:
        return ()
    workload = workloads.workload_of(target.workload)
    hpa, rows = autoscaler_of(snapshot, workload), workloads.member_rows(snapshot, workload)
    most = 0 if hpa is None else hpa.spec.max_replicas or 0
    if hpa is None or (more := most - sum(bool(snapshot.pods.node_names[row]) for row in rows)) <= 0:
        return ()
    try:
        subject = target.admit(snapshot, setup)
        if depends_on_unread(subject.snapshot, subject.pod):
            return ()
        room = fit(subject.snapshot, setup, subject.pod, manifest=target.workload, wanted=more)
    except (ConfigError, InputError, UndecidableError):
        return ()
    if room.could_reject:
        return ()
    number = "all of them fit" if room.is_enough else f"{room.count:,} of them fit{'s' if room.count == 1 else ''}"
    refused = f", and the API server refuses the next: {room.refusal}" if room.refusal else ""
    may = f"HorizontalPodAutoscaler {hpa.metadata.name} may add {count(more, 'pod')} (maxReplicas {most:,})"
    text = f"{may}: {number}{refused}"
    return (note("room-to-maximum", text, autoscaler=hpa.metadata.name, pods=more, fits=room.count),)


def fit(
    snapshot: Snapshot,
    setup: Setup,
    pod: Pod,
    *,
    manifest: Mapping[str, object] | None = None,
    title: str = "",
    wanted: int | None = None,
) -> Fit:
    """Place identical pods until the next one is unschedulable, or `wanted` are placed. No pod is evicted for them.

    `manifest` is the StatefulSet that creates them, whose pods have their own claims. Raises `InputError` for more pods
    than are tried.
    """
    if wanted is not None and wanted > changes.MOST_COUNT:
        raise InputError(f"found {wanted:,}, at most {changes.MOST_COUNT:,} are tried", place=Place(object="replicas"))
    known, quotas = snapshot.storage.claims, QuotaLedger(snapshot, setup.release)
    snapshot, pods = _new_pods(snapshot, setup, pod, manifest, wanted)
    admitted = admit_pods(snapshot, quotas, pods[:-1], known)
    most = len(admitted.created)
    pods = pods[: most + 1]
    first = len(snapshot.pods)
    world = with_pods(snapshot, pods)
    simulator = Simulator(world, setup, SimulationOptions(needs_volumes=False))
    before = NodeUsage(simulator.run.scheduler.nodes)
    rows = range(first, first + most)
    placed = np.fromiter(_placed_nodes(simulator, rows), dtype=np.int64)
    names = simulator.run.cluster.node_names
    counts = {names[node]: number for node, number in enumerate(np.bincount(placed).tolist()) if number}
    after = NodeUsage(simulator.run.scheduler.nodes)
    kept = np.arange(first + len(placed))
    stopped: Explanation | None = None
    if len(placed) < most:
        stopped = _explain(simulator, setup, rows[len(placed)])
    missing: tuple[MissingNodes, ...] = ()
    if wanted is not None and len(placed) < wanted and not admitted.refusal:  # no node raises a quota
        nodeses = _missing_nodes(simulator, rows[len(placed) :], wanted - len(placed))
        missing = tuple(sorted(nodeses, key=lambda nodes: (nodes.nodes, nodes.like)))
    return Fit(
        pod=pod,
        title=title or pod.key,
        setup=setup,
        snapshot=snapshot,
        nodes=dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        wanted=wanted,
        stopped=stopped,
        missing=missing,
        usage_before=before,
        usage_after=after,
        fill=lambda: with_only_pods(simulator.after, kept),
        refusal=admitted.refusal if len(placed) == most or wanted is not None else "",
    )


def _new_pods(
    snapshot: Snapshot, setup: Setup, pod: Pod, manifest: Mapping[str, object] | None, wanted: int | None
) -> tuple[Snapshot, Sequence[Pod]]:
    """Return the pods to place and one more, and the cluster with the objects that were created for them."""
    most = _MOST_COPIES if wanted is None else min(wanted, _most_pods(snapshot, pod, setup))
    if manifest is None or manifest.get("kind") != "StatefulSet":
        return workloads.copy_pod(snapshot, pod, most + 1)
    taken = [name.partition("/")[2] for name in snapshot.pods.rows]
    most = min(most, _MOST_COPIES // 10) if wanted is None else most
    return workloads.new_pods(snapshot, setup, manifest, most + 1, taken)


def _placed_nodes(simulator: Simulator, rows: Sequence[int]) -> Iterator[ClusterRow]:
    """Yield the nodes of these pods, until a pod has none."""
    run, left = simulator.run, np.asarray(rows, dtype=np.int64)
    if len(left):
        require_for_decision(run.cycle(int(left[0])))

    def say_placed(more: int) -> None:
        report_progress(Phase.SCHEDULING, len(rows) - len(left) + more, len(rows), "pods")

    while len(left):
        row, left = int(left[0]), left[1:]
        decision = run.decide(row)
        if decision.outcome is not Outcome.SCHEDULED:
            return
        node = simulator.pick(decision.choice)
        run.bind(row, node, int(left[0]) if len(left) else None)
        yield node
        nodes = run.bind_identical(left, simulator.pick, seen=say_placed)
        yield from each_cluster_row(nodes)
        left = left[len(nodes) :]


def _explain(simulator: Simulator, setup: Setup, row: int) -> Explanation:
    then = simulator.run.cluster.frozen()
    scheduler = simulator.run.scheduler.on(then)
    pod, before = then.pods[row], with_only_pods(then, np.arange(row))
    autoscalers, unread = autoscalers_of(before, None, scheduler)
    cycle = scheduler.schedule(pod, setup.profile_of(pod))
    return Explanation(cycle, scheduler, (*setup.notes, *unread), autoscalers=autoscalers, fix_search=find_fixes)


def _most_pods(snapshot: Snapshot, pod: Pod, setup: Setup) -> int:
    """Return more pods than fit on all nodes and one more, by the checks of NodeResourcesFit. With a quota, only the
    nodes' limits on the number of pods count, because the quota refuses first."""
    has_quota = any(quota.covers(pod.metadata.namespace) for quota in quotas_of(snapshot))
    is_compared = "NodeResourcesFit" in setup.profile_of(pod).points.get("filter", ()) and not has_quota
    fresh = pod_request(pod.spec, type(pod.status)(), request_options(setup.release))  # a copy was never resized
    needed = fresh.amounts if is_compared else {}
    numbers = []
    for node in snapshot.cluster.nodes:
        if PODS not in node.status.allocatable:
            return changes.MOST_COUNT
        amounts, allowed = node_allocatable(node.status.allocatable)
        rooms = [amounts.get(name, 0) // needed[name] for name in (CPU, MEMORY) if needed.get(name)]
        numbers.append(min([allowed, *rooms]))
    return sum(numbers) + max(numbers, default=0) + 1


def _is_independent(pod: Pod) -> bool:
    """Return whether the pods on one node do not affect how many fit on another."""
    affinity, spec = pod.spec.affinity, pod.spec
    beside = affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity)
    return not (beside or spec.topology_spread_constraints or spec.volumes or spec.resource_claims)


def _missing_nodes(simulator: Simulator, rows: Sequence[int], count: int) -> Iterator[MissingNodes]:
    """Yield, for each kind of node on which the pod fits, how many more nodes `count` pods need. `rows` are the first
    of the pods, more than one node can have."""
    cluster = simulator.run.cluster
    mark = cluster.mark()
    options = simulator.run.scheduler.nodes.options
    daemons = daemon_pods(cluster.snapshot, options, but=cluster.pods[rows[0]])
    comparison = simulator.setup.release.compares_taints
    for template in shapes(cluster.snapshot.cluster.nodes, cluster.pods[rows[0]])[:SHAPES]:
        left, added, needed = rows, 0, count
        while left and needed > 0:
            added += 1
            node = another_like(template, f"{template.name}-missing{added}")
            cluster.add_node(with_less_allocatable(node, overhead(daemons, node, comparison=comparison)))
            placed = list(_placed_nodes(simulator, left))
            if not placed:
                break
            left, needed = left[len(placed) :], needed - len(placed)
            if left and _is_independent(cluster.pods[rows[0]]):  # the next node has as many
                added += -(-needed // len(placed))
                needed = 0
        if needed <= 0:
            yield MissingNodes(like=template.name, nodes=added)
        cluster.revert(mark)
