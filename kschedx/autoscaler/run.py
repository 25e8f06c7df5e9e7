"""From a snapshot to cluster-autoscaler's decision and the value of the key `autoscaler`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.autoscaler.cluster import Autoscaler, scheduler_config
from kschedx.autoscaler.flags import Flags, FlagValue
from kschedx.autoscaler.loop import Loop
from kschedx.autoscaler.pods import PodEquivalence, PodOutcome
from kschedx.autoscaler.sandbox import TemplateVerdict
from kschedx.autoscaler.sizes import Resize
from kschedx.autoscaler.state import GroupChoice, GroupResult, LoopOutcome, LoopResult, LoopState, PodResult
from kschedx.autoscaler.status import NodeGroupStatus, ScaleUp, read_status
from kschedx.autoscaler.templates import Template, cloud_templates
from kschedx.errors import InputError
from kschedx.framework.runtime import Framework
from kschedx.kube.documents import Document, Json, part_of, to_json
from kschedx.kube.names import added_node_name
from kschedx.kube.types import AUTOSCALER_STATUS, Node, NodeCondition, Pod, PodStatus
from kschedx.releases import resolve
from kschedx.releases.autoscaler import autoscaler_behaviour
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

# The loop as a document, the value of the key `autoscaler`.


class _LoopEntry(Struct, frozen=True, kw_only=True):
    """Pending pods that differ only in their names. The loop may choose among them at random."""

    name: str
    """`namespace/name` of the first pod."""
    pods: tuple[PodResult, ...]


def _entries_of(answer: LoopResult, pods: PodTable) -> tuple[_LoopEntry, ...]:
    kinds = PodEquivalence(pods)
    together: dict[Hashable, list[PodResult]] = {}
    for pod in answer.pods:
        together.setdefault(_identity(pods, kinds, pod.row), []).append(pod)
    return tuple(_LoopEntry(name=pods.key(some[0].row), pods=tuple(some)) for some in together.values())


def _identity(pods: PodTable, kinds: PodEquivalence, row: int) -> Hashable:
    controller = kinds.controller(row)
    if controller is None:
        return row
    return (
        controller,
        kinds.template(row),
        int(pods.annotations.codes[row]),
        int(pods.namespaces.codes[row]),
        pods.creation_timestamps[row],
        pods.deletion_timestamps[row],
        pods.nominated_node_names[row],
        int(pods.statuses.codes[row]),
        int(pods.phases.codes[row]),
    )


def loop_document(answer: LoopResult, pods: PodTable) -> Json:
    entries = _entries_of(answer, pods)
    name_of = {pod.row: entry.name for entry in entries for pod in entry.pods}

    def counted(rows: Iterable[int]) -> dict[str, int]:
        return dict(Counter(name_of[row] for row in rows))

    document: Json = {
        "result": answer.result.value,
        "groups": {group.group.name: _group(group) for group in answer.groups},
        "pods": {entry.name: _entry(entry, pods) for entry in entries},
        "options": [
            {
                "group": option.group,
                "nodes": option.nodes,
                "pods": counted(option.pods),
                "similar": list(option.similar),
            }
            for option in answer.options
        ],
        "candidates": [choice.option.group for choice in answer.choices],
        "choices": {choice.option.group: _choice(choice, counted) for choice in answer.choices},
        "clusterEvents": list(answer.events),
    }
    if answer.error:
        document["error"] = answer.error
    if answer.unknown_expanders:
        document["unknownExpanders"] = list(answer.unknown_expanders)
    return document


def _group(group_result: GroupResult) -> Json:
    status = group_result.group.status
    document: Json = {
        "health": status.health.value,
        "target": status.target,
        "minSize": status.min_size,
        "maxSize": status.max_size,
        "upcoming": group_result.group.upcoming,
    }
    if group_result.skipped:
        document["skipped"] = list(group_result.skipped)
    if status.backoff_code or status.backoff_message:
        document["backoff"] = {"errorCode": status.backoff_code, "errorMessage": status.backoff_message}
    if group_result.template is not None:
        document["template"] = _template(group_result.template)
    return document


def _template(template: Template) -> Json:
    node = template.node
    return {
        "from": template.source,
        "labels": dict(node.metadata.labels),
        "taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.spec.taints],
        "unschedulable": node.spec.unschedulable,
        "allocatable": {name: str(text) for name, text in node.status.allocatable.items()},
        "capacity": {name: str(text) for name, text in node.status.capacity.items()},
        "pods": [_pod_name(pod) for pod in template.pods],
        "requested": {"cpu": f"{template.milli_cpu}m", "memory": str(template.memory)},
    }


def _pod_name(pod: Pod) -> str:
    controller = pod.metadata.controller
    if controller is not None and controller.kind == "DaemonSet":
        return f"DaemonSet {pod.metadata.namespace}/{controller.name}"
    return f"Pod {pod.key}"


def _entry(entry: _LoopEntry, pods: PodTable) -> Json:
    rows: list[Json] = []
    counts: list[int] = []
    for pod in entry.pods:
        row = _outcome(pod)
        if row in rows:
            counts[rows.index(row)] += 1
        else:
            rows.append(row)
            counts.append(1)
    return {
        "members": [pods.key(pod.row) for pod in entry.pods],
        "outcomes": [{"count": count, **row} for count, row in zip(counts, rows, strict=True)],
    }


def _outcome(pod_result: PodResult) -> Json:
    document: Json = {"outcome": pod_result.outcome.value}
    if pod_result.outcome is PodOutcome.SCHEDULABLE:
        document["on"] = "upcoming" if pod_result.is_on_upcoming else "existing"
    if pod_result.verdicts:
        document["groups"] = {group: _verdict(verdict) for group, verdict in pod_result.verdicts.items()}
    if pod_result.remains:
        document |= {"remains": True, "parts": list(pod_result.parts), "event": pod_result.is_told}
    return document


def _verdict(verdict: TemplateVerdict) -> Json:
    if verdict.fits:
        return {"fits": True}
    document: Json = {"fits": False, "plugin": verdict.plugin, "reasons": list(verdict.reasons)}
    if verdict.error:
        document["error"] = verdict.error
    return document


def _choice(choice: GroupChoice, count: Callable[[Iterable[int]], dict[str, int]]) -> Json:
    document: Json = {
        "result": choice.result.value,
        "scaleUps": list(map(to_json, choice.resizes)),
        "triggered": count(choice.triggered),
        "awaiting": count(choice.awaiting),
        "event": choice.event,
    }
    if choice.error:
        document["error"] = choice.error
    return document


# From a snapshot to cluster-autoscaler's decision.


class Autoscaling(Struct, frozen=True, kw_only=True):
    """A loop's decision about the pending pods of a snapshot."""

    answer: LoopResult
    pods: PodTable

    def __repr__(self) -> str:
        return f"<Autoscaling of {len(self.pods.pending):,} pending pods>"

    def records(self) -> list[dict[str, object]]:
        """Return a row per pending pod and node group: flat, for `pandas.DataFrame` and `polars.DataFrame`."""
        untried: dict[str, TemplateVerdict | None] = {"": None}
        return [
            {
                "pod": self.pods.key(pod.row),
                "outcome": pod.outcome.value,
                "group": group,
                "verdict": "" if verdict is None else "fits" if verdict.fits else "does not fit",
                "plugin": "" if verdict is None else verdict.plugin,
                "reasons": "" if verdict is None else "; ".join(verdict.reasons),
            }
            for entry in _entries_of(self.answer, self.pods)
            for pod in entry.pods
            for group, verdict in (pod.verdicts or untried).items()
        ]

    def to_dict(self) -> Json:
        return loop_document(self.answer, self.pods)


def run_loop(setup: LoopState) -> Autoscaling:
    return Autoscaling(answer=Loop(setup).result, pods=setup.pods)


def setup_of(
    snapshot: Snapshot,
    *,
    group_label: str,
    templates: Mapping[str, object] | None = None,
    flags: Mapping[str, FlagValue] | None = None,
    config: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    now: str | None = None,
) -> LoopState:
    """Return the input of a loop. Raises `InputError` without a valid status of an autoscaler."""
    release = resolve(kube_version)
    behaviour = autoscaler_behaviour(release.version)
    written = snapshot.config_maps.get(AUTOSCALER_STATUS)
    if written is None:
        raise InputError(f"the snapshot has no ConfigMap {AUTOSCALER_STATUS}, which the cluster-autoscaler writes")
    status = read_status(written.data.get("status", ""))
    names = {group.name for group in status.groups}
    scheduler = scheduler_config(config, release)
    framework = Framework(scheduler.profiles[0], scheduler, snapshot, release)

    def group_of(node: Node) -> str | None:
        name = node.metadata.labels.get(group_label)
        return name if name in names else None

    return LoopState(
        framework=framework,
        group_of=group_of,
        status=status,
        cloud=cloud_templates(templates),
        flags=Flags.read(flags or {}, behaviour),
        behaviour=behaviour,
        now=snapshot.moment(now),
    )


# The cluster after all scale-ups: loops run until none adds a node.

_MOST_LOOPS = 50


class AutoscalerGrowth(Struct, frozen=True, kw_only=True):
    """All nodes that the autoscaler adds."""

    snapshot: Snapshot
    """The cluster with the new nodes and the pods on them."""
    groups: tuple[Resize, ...]
    loops: int
    """The number of loops that added nodes."""
    helped: int
    """The number of pods for which nodes were added."""
    last: LoopResult
    """The loop that added no node."""
    by_chance: bool
    """Whether several options were equally good somewhere; the first was chosen."""

    @property
    def document(self) -> AutoscalerGrowthDocument:
        groups = {step.group: step for step in self.groups}
        return part_of(AutoscalerGrowthDocument, self, groups=groups, result=self.last.result)


def grow_by_autoscaler(autoscaler: Autoscaler) -> AutoscalerGrowth:
    """Run loops; new nodes are ready at the next loop. Of equally good options, the first is chosen."""
    snapshot, status = autoscaler.snapshot, autoscaler.status
    first = {group.name: group for group in status.groups}
    new: dict[str, str] = {}
    loops = helped = 0
    by_chance = False
    while True:
        answer = autoscaler.loop(snapshot, status=status, more=new).result
        choice = answer.choices[0] if answer.choices else None
        if choice is None or not choice.resizes or loops == _MOST_LOOPS:
            break
        loops += 1
        helped += len(choice.triggered)
        by_chance = by_chance or len(answer.choices) > 1
        templates = {group.group.name: group.template for group in answer.groups if group.template is not None}
        nodes = _new_nodes(choice, templates)
        new |= {node.name: group for group, node, _ in nodes}
        snapshot = with_new_nodes(snapshot, [(node, pods) for _, node, pods in nodes])
        sizes = {resize.group: resize.after for resize in choice.resizes}
        status = replace(status, groups=tuple(_with_target(group, sizes) for group in status.groups))
    grown = (
        Resize(group=group.name, before=first[group.name].target, after=group.target, maximum=group.max_size)
        for group in status.groups
        if group.target != first[group.name].target
    )
    return AutoscalerGrowth(
        snapshot=snapshot, groups=tuple(grown), loops=loops, helped=helped, last=answer, by_chance=by_chance
    )


def _with_target(status: NodeGroupStatus, sizes: Mapping[str, int]) -> NodeGroupStatus:
    size = sizes.get(status.name)
    return status if size is None else replace(status, target=size, scale_up=ScaleUp.NO_ACTIVITY)


def _new_nodes(choice: GroupChoice, templates: Mapping[str, Template]) -> list[tuple[str, Node, Sequence[Pod]]]:
    ready = (NodeCondition(type="Ready", status="True"),)
    new_nodes: list[tuple[str, Node, Sequence[Pod]]] = []
    for resize in choice.resizes:
        template = templates[resize.group]
        for number in range(resize.before + 1, resize.after + 1):
            name = added_node_name(resize.group, number)
            labels = {**template.node.metadata.labels, "kubernetes.io/hostname": name}
            node = replace(
                template.node,
                metadata=replace(template.node.metadata, name=name, labels=labels),
                status=replace(template.node.status, conditions=ready),
            )
            new_nodes.append((resize.group, node, template.pods))
    return new_nodes


def with_new_nodes(snapshot: Snapshot, nodes: Sequence[tuple[Node, Sequence[Pod]]]) -> Snapshot:
    """Append nodes, with copies of pods that run on them."""
    cluster = snapshot.cluster
    new_pods: list[Pod] = []
    places: list[int] = []
    for node, pods in nodes:
        row = len(cluster.nodes)
        cluster = cluster.with_added(node)
        new_pods += [_copy_to_node(pod, node) for pod in pods]
        places += [row] * len(pods)
    table = snapshot.pods.with_pods(new_pods)
    where = np.concatenate([snapshot.pods.node, np.array(places, dtype=np.int64)])
    return replace(snapshot, cluster=cluster, pods=table.moved(where, len(cluster.nodes)), _tables={})


def _copy_to_node(pod: Pod, node: Node) -> Pod:
    return replace(
        pod,
        metadata=replace(pod.metadata, name=f"{pod.metadata.name}-{node.name}", uid=""),
        spec=replace(pod.spec, node_name=node.name),
        status=PodStatus(),
    )


class SizeDocument(Document, frozen=True):
    before: int = field(name="from")
    after: int = field(name="to")
    maximum: int = field(name="max")


class AutoscalerGrowthDocument(Document, frozen=True, tag_field="kind", tag="cluster-autoscaler"):
    """What the autoscaler adds in the end, as the value of the key `autoscaler` of a Simulation document."""

    loops: int
    groups: Mapping[str, SizeDocument]
    helped: int
    result: LoopOutcome
    by_chance: bool
