"""Kinds and objects that a cluster must have, or that other objects name, and that are not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kschedx.api.kinds import KINDS
from kschedx.api.priority import BUILT_IN_CLASSES
from kschedx.doctor.contents import Contents
from kschedx.doctor.findings import Certainty, Lacking, MissingKind, PerhapsNone, Reaction
from kschedx.doctor.needs import weakness, weakness_without
from kschedx.doctor.versions import minor_of
from kschedx.snapshot.source import Missing
from kschedx.sources.dumps import Dump

IN_EVERY_CLUSTER = frozenset({"Node", "Pod", "Namespace", "Service", "PriorityClass"})
"""The API server makes the namespace kube-system, the service kubernetes and two classes by itself."""
SHOWN = 5
"""Names of missing objects."""
FIRST_CSI_NODE = (1, 18)
"""From this release on a kubelet does not become ready before its CSINode is there."""
_DEVICES = ("ResourceClaim", "ResourceSlice", "DeviceClass")
_GROUP = "PodGroup"
_FEW_HAVE = (
    "Cohort.kueue.x-k8s.io",
    "PodMigrationJob.scheduling.koordinator.sh",
    "Reservation.scheduling.koordinator.sh",
)
"""Kinds of which there may be no object where the others of their kind are in use."""


def missing_kinds(contents: Contents) -> Iterator[MissingKind | Lacking | PerhapsNone]:
    """In the order of what hangs on them. What is known to be complete lacks nothing."""
    told = {kind for kind in KINDS if contents.is_complete(kind) or contents.missing(kind) is Missing.ABSENT}
    if contents.only_namespaces:
        told |= {key for key, kind in KINDS.items() if kind.is_namespaced}
    for kind in KINDS:
        row = KINDS[kind]
        is_ours = row.is_of_kubernetes and bool(row.leaves)
        is_forbidden = contents.missing(kind) is Missing.FORBIDDEN and is_ours
        is_in_every_cluster = kind in IN_EVERY_CLUSTER and not contents.objects[kind]
        if kind not in told and (is_forbidden or is_in_every_cluster):
            told.add(kind)
            yield _whole(contents, kind)
    for found in _named(contents):
        if found.kind not in told:
            told.add(found.kind)
            yield found
    none = [
        key
        for key, kind in KINDS.items()
        if key not in told and kind.leaves and kind.is_of_kubernetes and not contents.objects[key]
    ]
    lacked: set[str] = set()
    for dump in contents.dumps:
        yield from _lacking(dump, none)
        lacked |= {lack.kind for lack in dump.lacks}
    perhaps = tuple(kind for kind in none if kind not in lacked)
    if perhaps:
        yield PerhapsNone(certainty=Certainty.POSSIBLE, kinds=perhaps, weakens=weakness_without(perhaps))


def _lacking(dump: Dump, none: Sequence[str]) -> Iterator[Lacking]:
    """`none` are kinds of which nothing is there."""
    in_part = [lack for lack in dump.lacks if lack.kind not in none and not lack.is_whole]
    kinds = [lack.kind for lack in dump.lacks if lack.kind in none]
    if in_part or kinds:
        yield Lacking(
            certainty=Certainty.LIKELY,
            weakens=weakness_without([*(lack.kind for lack in in_part), *kinds]),
            format=dump.format,
            place=dump.place,
            what=tuple(lack.what for lack in in_part),
            kinds=tuple(kinds),
        )


def _whole(contents: Contents, kind: str) -> MissingKind:
    """Nothing of a kind is there."""
    is_forbidden = contents.missing(kind) is Missing.FORBIDDEN
    reaction = Reaction.SHOWS if is_forbidden else Reaction.REFUSES if kind == "Node" else Reaction.SILENT
    return MissingKind(
        certainty=Certainty.CERTAIN,
        reaction=reaction,
        weakens=weakness(kind),
        kind=kind,
        is_forbidden=is_forbidden,
    )


def _named(contents: Contents) -> Iterator[MissingKind]:
    """Kinds of which objects are named that are not there."""
    pods = [pod for pod in contents.pods.values() if not pod.is_finished]
    claims, nodes = contents.claims.values(), contents.nodes.values()
    named = ((f"{pod.namespace}/{claim}" for claim in pod.claims) for pod in pods if pod.claims)
    yield from _absent(
        contents, "PersistentVolumeClaim", (one for many in named for one in many), "pods", Certainty.CERTAIN
    )
    bound = (claim.volume for claim in claims if claim.volume)
    yield from _absent(contents, "PersistentVolume", bound, "claims", Certainty.CERTAIN)
    # the class of a bound claim is never asked for, and need not be there
    classes = (claim.storage_class for claim in claims if claim.storage_class and not claim.volume)
    yield from _absent(contents, "StorageClass", classes, "unbound claims", Certainty.LIKELY)
    ready = (node.name for node in nodes if node.is_ready and minor_of(node.kubelet) >= FIRST_CSI_NODE)
    yield from _absent(contents, "CSINode", ready, "nodes", Certainty.CERTAIN)
    spaces = (one.namespace for kind in contents.objects.values() for one in kind.values() if one.namespace)
    yield from _absent(contents, "Namespace", spaces, "objects in them", Certainty.CERTAIN)
    for kind in ("ReplicaSet", "StatefulSet", "ReplicationController"):
        owners = (
            f"{pod.namespace}/{owner.name}"
            for pod in pods
            if (owner := pod.owner).kind == kind and owner.group == KINDS[kind].group
        )
        yield from _absent(contents, kind, owners, "their pods", Certainty.LIKELY)
    priorities = (pod.priority_class for pod in pods if pod.priority_class not in ("", *BUILT_IN_CLASSES))
    yield from _absent(contents, "PriorityClass", priorities, "pods", Certainty.LIKELY)
    runtimes = (pod.runtime_class for pod in pods if pod.runtime_class)
    yield from _absent(contents, "RuntimeClass", runtimes, "pods", Certainty.LIKELY)
    for kind in pointed_to(contents):
        if not contents.number(kind):
            addon = KINDS[kind].addon
            named_by = (
                f"pods of {addon}" if addon else "pods of groups" if kind == _GROUP else "pods with device claims"
            )
            yield _missing(contents, kind, (), named_by, Certainty.LIKELY)


def pointed_to(contents: Contents) -> Iterator[str]:
    """Optional kinds that pods need, so that their API server serves them."""
    pods = [pod for pod in contents.pods.values() if not pod.is_finished]
    if any(pod.has_device_claims for pod in pods):
        yield from _DEVICES
    if any(pod.is_in_group for pod in pods):
        yield _GROUP
    addons = {pod.addon for pod in pods}
    yield from (key for key, kind in KINDS.items() if kind.addon and kind.addon in addons and key not in _FEW_HAVE)


def _absent(
    contents: Contents, kind: str, named: Iterable[str], named_by: str, certainty: Certainty
) -> Iterator[MissingKind]:
    there = contents.objects[kind]
    names = sorted({name for name in named if name not in there})
    if names:
        yield _missing(contents, kind, names, named_by, certainty)


def _missing(contents: Contents, kind: str, names: Iterable[str], named_by: str, certainty: Certainty) -> MissingKind:
    names = tuple(names)
    return MissingKind(
        certainty=certainty,
        reaction=Reaction.SHOWS if kind in ("PersistentVolumeClaim", "PersistentVolume") else Reaction.SILENT,
        weakens=weakness(kind),
        kind=kind,
        present=contents.number(kind),
        missing=len(names),
        names=names[:SHOWN],
        named_by=named_by,
    )
