"""Missing kinds and objects that a cluster must have, or that other objects name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kschedx.apiserver.pod_classes import BUILT_IN_CLASSES
from kschedx.doctor import findings as f
from kschedx.doctor.contents import DumpContents, DumpWorkload, minor_of
from kschedx.doctor.findings import UNKNOWN_PODS, Weakness
from kschedx.errors import closest
from kschedx.grouping import group_pairs
from kschedx.kube.autoscalers import KARPENTER_GROUP, PROGRAM
from kschedx.kube.kinds import KINDS, key_of, kind_of
from kschedx.kube.names import SYSTEM_NAMESPACES
from kschedx.kube.types import AUTOSCALER_STATUS
from kschedx.snapshot.snapshot import MissingCause
from kschedx.sources.dumps import Dump

_IN_EVERY_CLUSTER = frozenset({"Node", "Pod", "Namespace", "Service", "PriorityClass"})
"""The API server itself creates the namespace kube-system, the service kubernetes, and two classes."""
_OBJECTS_SHOWN = 5
_FIRST_CSI_NODE = (1, 18)  # the version from which a kubelet becomes ready only after its CSINode exists
_DEVICES = ("ResourceClaim", "ResourceSlice", "DeviceClass")
_GROUP = "PodGroup"
_FEW_HAVE = (
    "Cohort.kueue.x-k8s.io",
    "MultiKueueConfig.kueue.x-k8s.io",
    "MultiKueueCluster.kueue.x-k8s.io",
    "PodMigrationJob.scheduling.koordinator.sh",
    "Reservation.scheduling.koordinator.sh",
)
"""Kinds that may have no object although their project's other kinds are in use."""


def missing_kinds(contents: DumpContents) -> Iterator[f.MissingKind | f.IncompleteDump | f.PerhapsNone]:
    """Yield missing kinds, the most important first. Kinds that are known to be complete are skipped."""
    kinds = {it for it in KINDS if contents.is_complete(it) or contents.missing_cause(it) is MissingCause.ABSENT}
    if contents.only_namespaces:
        kinds |= {key for key, kind in KINDS.items() if kind.is_namespaced}
    for kind in KINDS:
        row = KINDS[kind]
        is_ours = row.is_of_kubernetes and bool(row.leaves)
        is_forbidden = contents.missing_cause(kind) is MissingCause.FORBIDDEN and is_ours
        is_in_every_cluster = kind in _IN_EVERY_CLUSTER and not contents.objects[kind]
        if kind not in kinds and (is_forbidden or is_in_every_cluster):
            kinds.add(kind)
            yield _missing_entirely(contents, kind)
    for missing_kind in _referenced_kinds(contents):
        if missing_kind.kind not in kinds:
            kinds.add(missing_kind.kind)
            yield missing_kind
    none = [
        key
        for key, kind in KINDS.items()
        if key not in kinds and kind.leaves and kind.is_of_kubernetes and not contents.objects[key]
    ]
    lacked: set[str] = set()
    for dump in contents.dumps:
        yield from _incomplete_dump(dump, none)
        lacked |= {lack.kind for lack in dump.lacks}
    perhaps = tuple(kind for kind in none if kind not in lacked)
    if perhaps:
        yield f.PerhapsNone(certainty=f.Certainty.POSSIBLE, kinds=perhaps, weakens=f.weakness_without(perhaps))


def _incomplete_dump(dump: Dump, none: Sequence[str]) -> Iterator[f.IncompleteDump]:
    """Yield what a dump of another tool lacks. `none` are the kinds without any object."""
    in_part = [lack for lack in dump.lacks if lack.kind not in none and not lack.is_whole]
    kinds = [lack.kind for lack in dump.lacks if lack.kind in none]
    if in_part or kinds:
        yield f.IncompleteDump(
            certainty=f.Certainty.LIKELY,
            reaction=f.Reaction.SHOWS if any(lack.kind == "Pod" for lack in dump.lacks) else f.Reaction.SILENT,
            weakens=f.weakness_without([*(lack.kind for lack in in_part), *kinds]),
            format=dump.format,
            place=dump.place,
            what=tuple(lack.what for lack in in_part),
            kinds=tuple(kinds),
        )


def _weakness(kind: str) -> tuple[Weakness, ...]:
    """Return what is weaker if a kind is missing."""
    if kind == "Pod":
        return UNKNOWN_PODS
    return (Weakness(plugins=KINDS[kind].read_by, effect=f"unknown: {KINDS[kind].leaves}"),)


def _missing_entirely(contents: DumpContents, kind: str) -> f.MissingKind:
    """Return the finding for a kind without any object."""
    is_forbidden = contents.missing_cause(kind) is MissingCause.FORBIDDEN
    reaction = f.Reaction.SHOWS if is_forbidden else f.Reaction.REFUSES if kind == "Node" else f.Reaction.SILENT
    return f.MissingKind(
        certainty=f.Certainty.CERTAIN,
        reaction=reaction,
        weakens=_weakness(kind),
        kind=kind,
        is_forbidden=is_forbidden,
    )


def _referenced_kinds(contents: DumpContents) -> Iterator[f.MissingKind]:
    """Yield kinds of which objects are named but missing."""
    pods = [pod for pod in contents.pods.values() if not pod.is_finished]
    claims, nodes = contents.claims.values(), contents.nodes.values()
    named = ((f"{pod.namespace}/{claim}" for claim in pod.claims) for pod in pods if pod.claims)
    yield from _absent(
        contents,
        "PersistentVolumeClaim",
        (claim_name for many in named for claim_name in many),
        "pods",
        f.Certainty.CERTAIN,
    )
    bound = (claim.volume for claim in claims if claim.volume)
    yield from _absent(contents, "PersistentVolume", bound, "claims", f.Certainty.CERTAIN)
    # the class of a bound claim is never read, and need not exist
    classes = (claim.storage_class for claim in claims if claim.storage_class and not claim.volume)
    yield from _absent(contents, "StorageClass", classes, "unbound claims", f.Certainty.LIKELY)
    ready = (node.name for node in nodes if node.is_ready and minor_of(node.kubelet) >= _FIRST_CSI_NODE)
    yield from _absent(contents, "CSINode", ready, "nodes", f.Certainty.CERTAIN)
    spaces = (
        dump_object.namespace
        for kind in contents.objects.values()
        for dump_object in kind.values()
        if dump_object.namespace
    )
    yield from _absent(contents, "Namespace", spaces, "objects in them", f.Certainty.CERTAIN)
    for kind in ("ReplicaSet", "StatefulSet", "ReplicationController"):
        owners = (
            f"{pod.namespace}/{owner.name}"
            for pod in pods
            if (owner := pod.owner).kind == kind and owner.group == KINDS[kind].group
        )
        yield from _absent(contents, kind, owners, "their pods", f.Certainty.LIKELY)
    priorities = (pod.priority_class for pod in pods if pod.priority_class not in ("", *BUILT_IN_CLASSES))
    yield from _absent(contents, "PriorityClass", priorities, "pods", f.Certainty.LIKELY)
    runtimes = (pod.runtime_class for pod in pods if pod.runtime_class)
    yield from _absent(contents, "RuntimeClass", runtimes, "pods", f.Certainty.LIKELY)
    for kind in pointed_to(contents):
        if not contents.number(kind):
            addon = KINDS[kind].addon
            named_by = (
                f"pods of {addon}" if addon else "pods of groups" if kind == _GROUP else "pods with device claims"
            )
            yield _missing_kind(contents, kind, (), named_by, f.Certainty.LIKELY)


def pointed_to(contents: DumpContents) -> Iterator[str]:
    """Yield optional kinds that pods need, so their API server serves them."""
    pods = [pod for pod in contents.pods.values() if not pod.is_finished]
    if any(pod.has_device_claims for pod in pods):
        yield from _DEVICES
    if any(pod.is_in_group for pod in pods):
        yield _GROUP
    addons = {pod.addon for pod in pods}
    yield from (key for key, kind in KINDS.items() if kind.addon and kind.addon in addons and key not in _FEW_HAVE)


def _absent(
    contents: DumpContents, kind: str, named: Iterable[str], named_by: str, certainty: f.Certainty
) -> Iterator[f.MissingKind]:
    there = contents.objects[kind]
    names = sorted({name for name in named if name not in there})
    if names:
        yield _missing_kind(contents, kind, names, named_by, certainty)


def _missing_kind(
    contents: DumpContents, kind: str, names: Iterable[str], named_by: str, certainty: f.Certainty
) -> f.MissingKind:
    names = tuple(names)
    return f.MissingKind(
        certainty=certainty,
        reaction=f.Reaction.SHOWS if kind in ("PersistentVolumeClaim", "PersistentVolume") else f.Reaction.SILENT,
        weakens=_weakness(kind),
        kind=kind,
        present=contents.number(kind),
        missing=len(names),
        names=names[:_OBJECTS_SHOWN],
        named_by=named_by,
    )


# Pods that must exist but are missing, and pods whose status is missing.

_PODS_SHOWN = 10
_TOLERATED = 50  # one pod in this many may be created or deleted between the list of pods and that of workloads


def pod_findings(contents: DumpContents) -> Iterator[f.Finding]:
    """Yield findings about pods; none if there are no pods at all, which is a finding of its own."""
    namespaces = contents.only_namespaces
    if namespaces:
        yield f.NamespacesOnly(certainty=f.Certainty.CERTAIN, weakens=f.UNKNOWN_PODS, namespaces=namespaces)
    if contents.pods:
        if contents.nodes and not contents.is_complete("Node"):
            yield from _orphans(contents)
        if not namespaces and not contents.is_complete("Pod"):
            yield from _namespace_findings(contents)
            yield from _empty_nodes(contents)
        yield from _without_status(contents)


def _is_system(namespace: str) -> bool:
    return namespace.startswith(SYSTEM_NAMESPACES)


def _namespace_findings(contents: DumpContents) -> Iterator[f.PodsOfNamespaces | f.WorkloadPods]:
    present = {pod.namespace for pod in contents.pods.values()}
    short = _short(contents)
    elsewhere = [(workload, pods) for workload, pods in short if workload.namespace not in present]
    absent = {workload.namespace for workload, _ in elsewhere}
    runs = any(pod.node for pod in contents.pods.values())
    certainty = f.Certainty.CERTAIN
    if not absent and contents.nodes:
        if runs and not any(map(_is_system, present)):
            absent, certainty = {"kube-system"}, f.Certainty.LIKELY
        elif all(map(_is_system, present)):
            certainty = f.Certainty.POSSIBLE
    if absent or certainty is f.Certainty.POSSIBLE:
        evidence = f"{elsewhere[0][0].title} has {elsewhere[0][0].pods:,}" if elsewhere else ""
        yield f.PodsOfNamespaces(
            certainty=certainty,
            weakens=f.UNKNOWN_PODS,
            present=tuple(sorted(present)[:_PODS_SHOWN]),
            namespaces=len(present),
            absent=tuple(sorted(absent)[:_PODS_SHOWN]),
            namespaces_absent=len(absent),
            evidence=evidence,
            pods=sum(pods for _, pods in elsewhere),
        )
    here = [(workload, pods) for workload, pods in short if workload.namespace in present]
    missing, total = sum(pods for _, pods in here), sum(workload.pods for workload in contents.workloads)
    if missing > total // _TOLERATED:
        yield f.WorkloadPods(
            certainty=f.Certainty.LIKELY,
            weakens=f.UNKNOWN_PODS,
            pods=missing,
            workloads=tuple(workload.title for workload, _ in here[:_PODS_SHOWN]),
            of=total,
        )


def _short(contents: DumpContents) -> list[tuple[DumpWorkload, int]]:
    """Return workloads whose status counts more pods than are present, and how many more."""
    owned = Counter(
        (owner.kind, f"{pod.namespace}/{owner.name}")
        for pod in contents.pods.values()
        if not pod.is_finished and kind_of((owner := pod.owner).kind or "", owner.group)
    )
    shortages = ((workload, workload.pods - owned[workload.kind, workload.key]) for workload in contents.workloads)
    return sorted(((workload, pods) for workload, pods in shortages if pods > 0), key=lambda it: (-it[1], it[0].key))


def _orphans(contents: DumpContents) -> Iterator[f.Orphans]:
    nodes = contents.nodes
    pods_of = group_pairs(
        (pod.node, pod) for pod in contents.pods.values() if pod.node and pod.node not in nodes and not pod.is_finished
    )
    if not pods_of:
        return
    most = sorted(pods_of.items(), key=lambda item: (-len(item[1]), item[0]))
    effect = "the requests of these pods count on no node"
    is_stored = all(pod.uid or pod.seen for pods in pods_of.values() for pod in pods)  # a node may be deleted first
    yield f.Orphans(
        certainty=f.Certainty.CERTAIN,
        reaction=f.Reaction.SHOWS if is_stored else f.Reaction.REFUSES,
        weakens=(f.Weakness(plugins=("NodeResourcesFit",), effect=effect),),
        nodes=tuple(
            f.UnknownNode(
                name=name,
                pods=len(pods),
                example=pods[0].key,
                place=pods[0].place,
                nearest=closest(name, nodes, least_similarity=0.8),
            )
            for name, pods in most[:3]
        ),
        pods=sum(map(len, pods_of.values())),
        total=len(pods_of),
    )


def _empty_nodes(contents: DumpContents) -> Iterator[f.EmptyNodes]:
    used = {pod.node for pod in contents.pods.values()}
    empty = [name for name in contents.nodes if name not in used]
    if not empty:
        return
    served = {pod.node for pod in contents.pods.values() if pod.owner.kind == "DaemonSet"}
    # if DaemonSets reach most nodes, a ready node without their pods is an exception
    is_odd = 2 * len(served) > len(contents.nodes) and any(contents.nodes[name].is_ready for name in empty)
    yield f.EmptyNodes(
        certainty=f.Certainty.LIKELY if is_odd else f.Certainty.POSSIBLE,
        weakens=(f.Weakness(plugins=("NodeResourcesFit",), effect="optimistic on these nodes, if they run pods"),),
        nodes=tuple(sorted(empty)[:_PODS_SHOWN]),
        empty=len(empty),
        total=len(contents.nodes),
    )


def _without_status(contents: DumpContents) -> Iterator[f.NoStatus]:
    pods = [pod for pod in contents.pods.values() if pod.node and not pod.phase and (pod.uid or pod.creation_time)]
    if pods:
        effect = "pods that have finished may be counted on their nodes"
        yield f.NoStatus(
            certainty=f.Certainty.CERTAIN,
            weakens=(f.Weakness(plugins=("NodeResourcesFit",), effect=effect),),
            pods=len(pods),
            examples=tuple(pod.key for pod in pods[:_PODS_SHOWN]),
        )


# What is missing to decide whether the cluster would scale up.

_GROWS = (f.Weakness(plugins=(), effect="whether the cluster would grow for a pod that fits nowhere"),)


def autoscaler_findings(contents: DumpContents) -> Iterator[f.NoAutoscalerStatus | f.AutoscalerFlags | f.NoNodePools]:
    """Yield findings about cluster-autoscaler and Karpenter, in clusters that have them."""
    yield from _cluster_autoscaler(contents)
    nodes = [node for node in contents.nodes.values() if node.owner.kind == "NodeClaim"]
    if nodes and not contents.objects[key_of("NodePool", KARPENTER_GROUP)]:
        yield f.NoNodePools(certainty=f.Certainty.CERTAIN, weakens=_GROWS, nodes=len(nodes), example=nodes[0].name)


def _cluster_autoscaler(contents: DumpContents) -> Iterator[f.NoAutoscalerStatus | f.AutoscalerFlags]:
    """Yield findings about cluster-autoscaler, recognized by the names that its charts give its pod and Deployment."""
    name = AUTOSCALER_STATUS.rpartition("/")[2]
    if any(key.rpartition("/")[2] == name for key in contents.objects["ConfigMap"]):
        if not any(PROGRAM in dump_object.name for dump_object in contents.objects["Deployment"].values()):
            yield f.AutoscalerFlags(certainty=f.Certainty.LIKELY, config_map=AUTOSCALER_STATUS)
        return
    pod = next((pod for pod in contents.pods.values() if PROGRAM in pod.name), None)
    if pod is not None:
        yield f.NoAutoscalerStatus(
            certainty=f.Certainty.LIKELY,
            weakens=_GROWS,
            pod=pod.key,
            config_map=AUTOSCALER_STATUS,
        )
