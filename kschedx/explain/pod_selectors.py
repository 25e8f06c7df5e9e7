"""Causes in the labels of pods: pods that an affinity or spread constraint selects, or does not, and waiting groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from kschedx.explain.advice import FixGroup, RootCause, root_cause
from kschedx.explain.ranking import RECREATING
from kschedx.findings import (
    ExistingAntiAffinityConflict,
    Finding,
    InsufficientResource,
    PodAffinityUnsatisfied,
    PodAntiAffinityConflict,
    TopologySpreadSkew,
)
from kschedx.framework.cycle import Cycle
from kschedx.grouping import group_pairs
from kschedx.kube.autoscalers import (
    EXCLUSIVE_TOPOLOGY,
    GROUP_LABELS,
    JOB_SET_NAME,
    RAY_CLUSTER,
    RAY_ROLE,
    SPARK_APPLICATION,
    SPARK_ROLE,
    TRAINING_JOB,
)
from kschedx.kube.controllers import stored_controller, stored_metadata
from kschedx.kube.decoding import map_at
from kschedx.kube.escaping import add_cluster_options, shell_command, why_command
from kschedx.kube.kubectl import delete_pod, scale_workload
from kschedx.kube.names import HOSTNAME
from kschedx.kube.selectors import LabelSelector, Selector, compile_selector
from kschedx.kube.types import FINISHED, ObjectMeta, Pod, controller_of
from kschedx.kube.workloads import TEMPLATE_HASH
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names


class MatchingPodCordoned(RootCause, frozen=True, kw_only=True):
    """The only pod that a podAffinity term selects runs on a cordoned node."""

    pod: str
    node: str
    controller: str  # what recreates it: `StatefulSet affinity-assistant`; empty if nothing does


def more_pods_text(others: int) -> str:
    return f" and {count(others, 'more pod')}" if others else ""


def absent_matches(cycle: Cycle, finding: PodAffinityUnsatisfied) -> Iterator[RootCause]:
    """Yield the selected pods if all of them have ended or have no node, or if the only one is on a cordoned node.
    Otherwise a running one's domain is out of reach."""
    terms = cycle.pod.spec.required_pod_affinity
    if finding.term >= len(terms):
        return
    pods, selector = cycle.snapshot.pods, compile_selector(terms[finding.term].label_selector)
    inside = pods.labels.where(selector.matches)
    if not finding.every_namespace:
        inside &= pods.namespaces.where(lambda name: name in finding.namespaces)
    rows = [row for row in np.flatnonzero(inside).tolist() if pods.key(row) != cycle.pod.key]
    left = [row for row in rows if pods.phases[row] not in FINISHED]
    if not rows:
        namespaces = None if finding.every_namespace else finding.namespaces
        yield from _without_pods(cycle.snapshot, selector, namespaces, f"podAffinity term {finding.term + 1}")
        yield from _without_assistant(cycle, terms[finding.term].label_selector)
    there = [row for row in left if pods.node_names[row]]
    if len(there) == 1 and finding.topology_key == HOSTNAME:
        yield from _cordoned_match(cycle.snapshot, there[0], finding.term + 1)
    if not rows or there:
        return
    key, others = pods.key((left or rows)[0]), len(left or rows) - 1
    text = f"podAffinity term {finding.term + 1} selects {key}{more_pods_text(others)}, which"
    if left:
        verb = "have no node themselves" if others else "has no node itself"
        is_mutual = all(_requires(pods[row], cycle.pod) for row in left)
        then = ", and requires this pod in turn" if is_mutual else ""
        title = "" if is_mutual else f"make room for {key} first, which this pod follows"
        yield root_cause(f"{text} {verb}{then}", title, why_command(key))
    else:
        yield RootCause(text=f"{text} {'have' if others else 'has'} ended and {'do' if others else 'does'} not count")


def _without_assistant(cycle: Cycle, selector: LabelSelector | None) -> Iterator[RootCause]:
    """Yield Tekton's affinity assistant that a term selects, and which does not exist: it mounts the workspace of a
    PipelineRun, whose pods follow it."""
    labels, snapshot = {} if selector is None else selector.match_labels, cycle.snapshot
    name, run = labels.get("app.kubernetes.io/instance", ""), cycle.pod.metadata.labels.get("tekton.dev/pipelineRun")
    is_known = ("StatefulSet", cycle.pod.metadata.namespace, name) in snapshot.workloads or snapshot.source.may_lack(
        "Pod"
    )
    if labels.get("app.kubernetes.io/component") == "affinity-assistant" and run and not is_known:
        title = f"cancel PipelineRun {run}, and start it again: Tekton creates an affinity assistant with it"
        yield root_cause(f"Tekton's affinity assistant {name}, which the pods of {run} follow, has no pod", title)


def _cordoned_match(snapshot: Snapshot, row: int, term: int) -> Iterator[MatchingPodCordoned]:
    """Yield the pod in the row if its node is cordoned."""
    pods, name = snapshot.pods, snapshot.pods.node_names[row]
    at = snapshot.cluster.index.get(name)
    if at is None or not snapshot.cluster.nodes[at].spec.unschedulable:
        return
    key, controller = pods.key(row), controller_of(pods.owners[row])
    is_recreated = controller is not None and controller.kind in RECREATING and not pods.deletion_timestamps[row]
    by = f"{controller.kind} {controller.name}" if controller is not None and is_recreated else ""
    text = f"podAffinity term {term} selects only {key}, on cordoned node {name}"
    yield MatchingPodCordoned(text=text, pod=key, node=name, controller=by)


def _requires(pod: Pod, other: Pod) -> bool:
    """Whether a required podAffinity term of `pod` selects the other pod, which has no node."""
    labels, namespace = other.metadata.labels, other.metadata.namespace
    return any(
        compile_selector(term.label_selector).matches(labels)
        and namespace in (term.namespaces or (pod.metadata.namespace,))
        for term in pod.spec.required_pod_affinity
    ) and not all(
        compile_selector(term.label_selector).matches(pod.metadata.labels) for term in pod.spec.required_pod_affinity
    )


def _without_pods(
    snapshot: Snapshot, selector: Selector, namespaces: Sequence[str] | None, term: str
) -> Iterator[RootCause]:
    """Yield the first workload whose pods a term selects, and which has none."""
    for (kind, namespace, name), raw in sorted(snapshot.workloads.items()):
        if kind not in _SCALED or (namespaces is not None and namespace not in namespaces):
            continue
        manifest = msgspec.json.decode(raw)
        labels = map_at(manifest, "spec", "template", "metadata", "labels")
        if selector.matches({key: str(value) for key, value in labels.items()}):
            is_at_zero = stored_controller(raw).spec.replicas == 0
            if not is_at_zero and snapshot.source.may_lack("Pod"):
                return
            has = "is scaled to zero" if is_at_zero else "has no pods"
            title = f"find out first why {kind} {name} has no pods, which this pod follows"
            command = add_cluster_options(shell_command("kschedx why {} -n {}", f"{kind.lower()}/{name}", namespace))
            if is_at_zero:
                title = f"scale {kind} {name} up first: this pod follows its pods"
                command = scale_workload(kind, namespace, name, 1)
            yield root_cause(f"{term} selects the pods of {kind} {name}, which {has}", title, command)
            return


_SCALED = ("Deployment", "StatefulSet", "DaemonSet")


def unselected_namespaces(cycle: Cycle, finding: PodAffinityUnsatisfied) -> Iterator[RootCause]:
    """Yield the namespace with the pods that a term selects, if it looks only in others."""
    terms = cycle.pod.spec.required_pod_affinity
    if finding.term >= len(terms) or finding.every_namespace:
        return
    pods, term = cycle.snapshot.pods, terms[finding.term]
    rows = np.flatnonzero((pods.node >= 0) & pods.labels.where(compile_selector(term.label_selector).matches))
    there = sorted({pods.namespaces[int(row)] for row in rows})
    if not there or {*there} & {*finding.namespaces}:
        return
    inside = f"in namespace {list_names(finding.namespaces, 2)}"
    if term.namespace_selector is not None:
        inside = f"in namespaces with {compile_selector(term.namespace_selector)}"
    chosen = f"podAffinity term {finding.term + 1} selects pods only {inside}"
    yield RootCause(text=f"{chosen}; pods {finding.selector} run in namespace {there[0]}")


def others_counted(cycle: Cycle, finding: TopologySpreadSkew) -> Iterator[RootCause]:
    """Yield the other workloads whose pods a constraint of the pod counts, or that it does not count the pod itself."""
    if not finding.itself:
        missed = f"the labelSelector of the spread constraint over {finding.topology_key} does not match the pod itself"
        yield RootCause(text=f"{missed}: it counts other pods")
        return
    constraints, pods = cycle.pod.spec.topology_spread_constraints, cycle.snapshot.pods
    if not constraints:
        text = f"the constraint over {finding.topology_key} is a default of profile {cycle.profile.scheduler_name}"
        yield RootCause(text=f"{text}: the pod has none")
        return
    maker = _controller_title(cycle.pod.metadata)
    if finding.constraint >= len(constraints) or not maker:
        return
    constraint, labels = constraints[finding.constraint], cycle.pod.metadata.labels
    selector, own = (
        compile_selector(constraint.label_selector),
        {key: labels.get(key) for key in constraint.match_label_keys},
    )
    counted = (pods.node >= 0) & pods.in_namespace(cycle.pod.metadata.namespace)
    counted &= pods.labels.where(lambda other: selector.matches(other) and own.items() <= other.items())
    others = Counter(
        _controller_title(pods[row].metadata) or f"pod {pods.names[row]}" for row in np.flatnonzero(counted).tolist()
    )
    del others[maker]
    if others:
        (name, number), more = others.most_common(1)[0], len(others) - 1
        text = f"the spread constraint over {finding.topology_key} also counts {count(number, 'pod')} of {name}"
        yield RootCause(text=f"{text}{more_pods_text(more)}")


def _controller_title(metadata: ObjectMeta) -> str:
    """Return the controller of a pod, `Deployment web` for its ReplicaSets; empty without a controller."""
    owner, template = metadata.controller, metadata.labels.get(TEMPLATE_HASH)
    if owner is None:
        return ""
    is_of_deployment = owner.kind == "ReplicaSet" and template and owner.name.endswith(f"-{template}")
    return f"Deployment {owner.name.removesuffix(f'-{template}')}" if is_of_deployment else f"{owner.kind} {owner.name}"


def covered_namespace(cycle: Cycle, finding: ExistingAntiAffinityConflict) -> Iterator[RootCause]:
    """Yield the field by which the anti-affinity of a pod in another namespace covers this pod."""
    namespace, first = cycle.pod.metadata.namespace, finding.pods[0]
    if first.partition("/")[0] == namespace:
        return
    pods = cycle.snapshot.pods
    terms = pods.specs[pods.rows[first]].required_anti_affinity
    if finding.term < len(terms):
        field = "namespaces" if namespace in terms[finding.term].namespaces else "namespaceSelector"
        yield RootCause(text=f"the anti-affinity of {first} covers namespace {namespace} by its {field}")


def misses_pod(pod: Pod, term: int) -> bool:
    """Return whether a required podAntiAffinity term selects only other pods, and no other term separates the pod from
    its own kind. Such a rule was probably copied, unless it is about a neighbor or excludes its own kind by NotIn."""
    terms = pod.spec.required_anti_affinity
    if term >= len(terms) or any(compile_selector(term.label_selector).matches(pod.metadata.labels) for term in terms):
        return False
    results = compile_selector(terms[term].label_selector).explain(pod.metadata.labels)
    return any(not result.matched and result.requirement.operator not in _LEAVES_OUT for result in results)


_LEAVES_OUT = ("NotIn", "DoesNotExist")


def exclusive_topology(pod: Pod, findings: Iterable[Finding]) -> Iterator[RootCause]:
    """Yield the exclusive topology because of which the anti-affinity of a leader excludes nodes, or a follower selects
    an empty domain: the node of its leader did not exist when the follower was created."""
    excluded = {finding.topology_key for finding in findings if isinstance(finding, PodAntiAffinityConflict)}
    for annotation, (kind, label, part) in EXCLUSIVE_TOPOLOGY.items():
        key, name = pod.metadata.annotations.get(annotation, ""), pod.metadata.labels.get(label, "")
        owner = f"{kind} {name}".strip()
        if key and pod.spec.node_selector.get(key) == "":
            text = f'{owner} (exclusive topology) set {key}="": the node of the pod\'s leader did not exist'
            title = f"delete the pod, which is recreated with the {key} of its leader's node"
            yield root_cause(text, title, delete_pod(pod.key), group=FixGroup.WORKLOAD, leaves_no_node=True)
        elif key in excluded:
            yield RootCause(text=f"{owner} has an exclusive topology: each {part} needs a {key} of its own")


class _GangKind(Struct, frozen=True, kw_only=True):
    """Pods that are useful only together and that no gang scheduler starts together."""

    keys: tuple[str, ...]  # the labels that the pods of a group share
    plural: str
    singular: str
    leader: tuple[str, str] | None = None
    """The label of the pod that holds room for nothing as long as no other pod runs."""
    alone: str = "none has all its pods"
    ends: bool = True  # whether a group with all of its pods completes and then frees its room


_GANG_KINDS = (
    _GangKind(
        keys=(SPARK_APPLICATION,),
        plural="Spark applications",
        singular="Spark application",
        leader=(SPARK_ROLE, "driver"),
        alone="their drivers run, and no executor fits",
    ),
    _GangKind(
        keys=(RAY_CLUSTER,),
        plural="Ray clusters",
        singular="Ray cluster",
        leader=(RAY_ROLE, "head"),
        alone="their heads run, and no worker fits",
        ends=False,
    ),
    _GangKind(keys=GROUP_LABELS, plural="groups of LeaderWorkerSet", singular="group", ends=False),
    _GangKind(keys=(JOB_SET_NAME,), plural="JobSets", singular="JobSet"),
    _GangKind(keys=(TRAINING_JOB,), plural="training jobs", singular="training job"),
)


def _gang_kind(labels: Mapping[str, str]) -> _GangKind | None:
    return next((kind for kind in _GANG_KINDS if all(labels.get(key) for key in kind.keys)), None)


_MOST_ENDING = 20  # groups with all of their pods for which it is computed whether their end frees enough room


def waiting_groups(cycle: Cycle, findings: Iterable[Finding]) -> Iterator[RootCause]:
    """Yield the groups like the pod's that hold room with only some of their pods, if the pod lacks resources and
    belongs to one of several; and a Ray head's own workers, which hold room and do not start without it."""
    own, pods = cycle.pod.metadata, cycle.snapshot.pods
    kind = _gang_kind(own.labels)
    if kind is None or not any(isinstance(finding, InsufficientResource) for finding in findings):
        return
    name = own.labels[GROUP_LABELS[0]] if kind.keys == GROUP_LABELS else ""
    shared = {GROUP_LABELS[0]: name} if name else {}
    members = pods.labels.where(lambda of: all(key in of for key in kind.keys) and shared.items() <= of.items())
    if name:
        members &= pods.in_namespace(own.namespace)
    groups: dict[tuple[str, ...], list[int]] = {}
    for row in np.flatnonzero(members & ~pods.finished).tolist():
        labels = pods.labels[row]
        groups.setdefault((pods.namespaces[row], *(labels[key] for key in kind.keys)), []).append(row)

    def is_leader(labels: Mapping[str, str]) -> bool:
        return kind.leader is not None and labels.get(kind.leader[0]) == kind.leader[1]

    mine = (own.namespace, *(own.labels[key] for key in kind.keys))
    if is_leader(own.labels):
        started = sum(pods.node[row] >= 0 for row in groups.get(mine, ()))
        if started and kind.keys == (RAY_CLUSTER,):
            hold = "holds" if started == 1 else "hold"
            text = (
                f"{count(started, 'worker')} of Ray cluster {mine[-1]} {hold} room and cannot start without this head"
            )
            title = f"give the head of Ray cluster {mine[-1]} a higher priorityClassName than its workers"
            yield root_cause(text, title, group=FixGroup.WORKLOAD)
        return
    waiting, held, whole = set[tuple[str, ...]](), 0, 0
    for group, rows in groups.items():
        assigned = [row for row in rows if pods.node[row] >= 0]
        is_useless = kind.leader is None or all(is_leader(pods.labels[row]) for row in assigned)
        whole += len(assigned) == len(rows)
        if assigned and len(assigned) < len(rows) and is_useless:
            waiting.add(group)
            held += len(assigned)
    if mine in waiting and len(waiting) > 1:
        size = max(len(rows) for rows in groups.values())
        of, end = f"{len(waiting):,} {kind.plural} {name}".rstrip(), ""
        others = [group for group in groups if group not in waiting] if kind.ends else []
        others = [group for group in others if not all(is_leader(pods.labels[row]) for row in groups[group])]
        tried = others[:_MOST_ENDING]
        ending = next((group for group in tried if _frees_room(cycle, groups[group], findings)), None)
        text = f"{of} wait for each other: {kind.alone}"
        if ending is not None:
            end = f"{kind.singular} {ending[-1]}"
            text = f"{of} hold room and lack pods: {end} has its own, and frees room when it ends"
        if name:
            whole += held // size
            title = f"scale LeaderWorkerSet {name} to {whole:,}: the room of all its groups suffices for that"
            template = "kubectl scale leaderworkerset {} -n {} --replicas={}"
            command = shell_command(template, name, own.namespace, str(whole))
            yield root_cause(text, title if whole else "", command)
        else:
            some = "some drivers" if kind.plural == "Spark applications" else "some"
            first = f"wait until {end} ends" if end else f"run fewer {kind.plural} at once: delete {some}"
            yield root_cause(text, f"{first}, and let Kueue, Volcano, or YuniKorn start each as a gang")


def _frees_room(cycle: Cycle, rows: Sequence[int], findings: Iterable[Finding]) -> bool:
    """Return whether all of these pods run, and a node has the resources that the pod lacks once they have ended."""
    pods, nodes, needed = cycle.snapshot.pods, cycle.all_nodes, dict[str, int]()
    for finding in findings:
        if isinstance(finding, InsufficientResource):
            needed[finding.resource] = finding.requested
    by_node = group_pairs((ClusterRow(int(pods.node[row])), row) for row in rows)
    if any(row < 0 for row in by_node):
        return False

    def free(node: ClusterRow, resource: str) -> int:
        """Return what is free on the node without these pods."""
        row, column = nodes.row_of(node), nodes.resources.index.get(resource)
        if row is None or column is None:
            return 0
        ended = nodes.requests.matrix[np.array(by_node[node]), column].sum()
        return int(nodes.allocatable[row, column] - nodes.requested[row, column] + ended)

    return any(all(free(node, name) >= amount for name, amount in needed.items()) for node in by_node)


def refused_members(cycle: Cycle) -> Iterator[RootCause]:
    """Yield the workloads with the other pods of the pod's gang for which the API server refuses pods."""
    snapshot, own = cycle.snapshot, cycle.pod.metadata
    kind = _gang_kind(own.labels)
    if kind is None:
        return
    shared = {key: own.labels[key] for key in kind.keys}
    for key, event in sorted(snapshot.failed_creates.items()):
        raw = snapshot.workloads.get(key)
        if raw is None or key[1] != own.namespace or event.reason != "FailedCreate":
            continue
        labels = map_at(msgspec.json.decode(raw), "spec", "template", "metadata", "labels")
        is_member = shared.items() <= labels.items()
        lacking = _wanted_pods(raw) - _pods_of(snapshot, *key)
        if is_member and lacking > 0 and snapshot.failed_create(key[0], stored_metadata(raw)) is not None:
            pods, why = count(lacking, "pod"), event.message.rpartition(" is forbidden: ")[2]
            text = f"{key[0]} {key[2]} cannot create {pods} of the same {kind.singular}: {why}"
            yield RootCause(text=text)


def _wanted_pods(raw: bytes) -> int:
    """Return how many pods a stored Job runs at a time, or the replicas of another workload."""
    spec = stored_controller(raw).spec
    if spec.parallelism is not None:
        return min(spec.parallelism, spec.parallelism if spec.completions is None else spec.completions)
    return 1 if spec.replicas is None else spec.replicas


def _pods_of(snapshot: Snapshot, kind: str, namespace: str, name: str) -> int:
    pods = snapshot.pods
    is_owned = pods.owners.where(lambda owners: any((owner.kind, owner.name) == (kind, name) for owner in owners))
    return int((is_owned & pods.in_namespace(namespace)).sum())
