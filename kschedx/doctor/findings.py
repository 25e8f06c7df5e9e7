"""What doctor can find, as facts. `render.doctor` has the sentences, `DumpDiagnosis.to_dict` the document.

Every finding states how certain it is, what it weakens, and whether `kschedx why` would have reported it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import ClassVar, TypeAlias

from msgspec import Struct

from kschedx.errors import Place
from kschedx.kube.kinds import KINDS


class Certainty(StrEnum):
    CERTAIN = "certain"
    LIKELY = "likely"  # there are other explanations, but they are rarer
    POSSIBLE = "possible"


class Reaction(StrEnum):
    """How `kschedx why` treats it."""

    REFUSES = "refuses"  # `kschedx why` reads nothing of the dump and exits with code 2
    SHOWS = "shows"  # an answer that depends on the finding names it
    SILENT = "silent"  # `kschedx why` answers as if nothing were wrong


class Weakness(Struct, frozen=True, kw_only=True):
    """Which verdicts it makes less reliable."""

    plugins: tuple[str, ...]  # empty if no plugin's verdict is weaker, only what `effect` describes
    effect: str


class _Finding(Struct, frozen=True, kw_only=True, rename="camel", tag_field="id"):
    certainty: Certainty
    reaction: Reaction = Reaction.SILENT
    weakens: tuple[Weakness, ...] = ()

    counts: ClassVar[bool] = True  # whether it weakens answers; then the exit code shows it


# --- what cannot be read


class Problem(Struct, frozen=True, kw_only=True, rename="camel"):
    """A file, a part of one, or an object that `kschedx why` refuses."""

    place: Place
    message: str
    hint: str = ""


class Unreadable(_Finding, frozen=True, kw_only=True, tag="unreadable"):
    problems: tuple[Problem, ...]  # the first problems
    number: int  # the number of all problems
    is_all: bool = True  # Always true, since the search never ends early. The document keeps its keys


class ObjectDifference(StrEnum):
    """The difference between two objects of one name."""

    NONE = "none"
    UNKNOWN = "unknown"  # the objects have no identity: they are manifests, or fields were removed
    STATE = "state"  # the same object at two times: its resourceVersion differs
    OBJECT = "object"  # two objects: their uid differs


class Copies(_Finding, frozen=True, kw_only=True, tag="copies"):
    """Objects that occur twice, in the same two files or in many files."""

    difference: ObjectDifference
    pairs: int  # the number of pairs of files
    kinds: Mapping[str, int]
    example: str  # `Pod shop/web-0`
    first: Place
    second: Place
    first_value: str = ""  # the uid or resourceVersion of the example
    second_value: str = ""


# --- what is missing


class IncompleteDump(_Finding, frozen=True, kw_only=True, tag="lacking"):
    """A dump of another tool, which does not hold everything."""

    format: str  # "must-gather"
    place: str
    what: tuple[str, ...]
    """What is missing of the kinds that it holds in part: "pods of namespaces that were not gathered"."""
    kinds: tuple[str, ...]  # the kinds of which it holds nothing


class MissingKind(_Finding, frozen=True, kw_only=True, tag="missing-kind"):
    """A kind that every cluster has is missing, or objects that others name are."""

    kind: str
    present: int = 0
    missing: int = 0  # known to be missing; 0 if the whole kind is missing and the number is unknown
    names: tuple[str, ...] = ()  # some of the missing names
    named_by: str = ""  # the objects that refer to them: `claims`, `nodes`
    is_forbidden: bool = False


class PerhapsNone(_Finding, frozen=True, kw_only=True, tag="perhaps-none"):
    """Kinds without objects. kubectl's output does not show whether the cluster has none."""

    counts: ClassVar[bool] = False
    kinds: tuple[str, ...]


class NamespacesOnly(_Finding, frozen=True, kw_only=True, tag="namespaces-only"):
    """A snapshot that was limited to namespaces (`kschedx snapshot --namespace`)."""

    namespaces: tuple[str, ...]


class PodsOfNamespaces(_Finding, frozen=True, kw_only=True, tag="pods-of-namespaces"):
    """Pods of some namespaces are present, and those of others are missing."""

    present: tuple[str, ...]
    namespaces: int
    """The number of namespaces with pods; `present` may list only some of them, `absent` only some of the others."""
    absent: tuple[str, ...]
    """Namespaces without any pod that, according to other objects, have some, or that exist in every cluster."""
    namespaces_absent: int
    evidence: str
    """An object whose status counts pods: `ReplicaSet shop/web-5d7b9 has 3`; empty if there is other evidence."""
    pods: int = 0  # the number of pods that are known to be missing


class WorkloadPods(_Finding, frozen=True, kw_only=True, tag="workload-pods"):
    """Workloads that report more pods than are present, in namespaces whose pods are present."""

    pods: int
    workloads: tuple[str, ...]
    of: int  # the number of pods in the status of all workloads of the dump


class Cut(_Finding, frozen=True, kw_only=True, tag="cut"):
    """A snapshot that held more objects of a kind than it does now: it was truncated or edited."""

    kinds: Mapping[str, int]  # number of objects that it held, by kind
    there: Mapping[str, int]


class EmptyNodes(_Finding, frozen=True, kw_only=True, tag="empty-nodes"):
    """Nodes on which nothing runs, not even a DaemonSet's pod."""

    nodes: tuple[str, ...]  # some of the nodes
    empty: int
    total: int


# --- what is inconsistent


class UnknownNode(Struct, frozen=True, kw_only=True, rename="camel"):
    """A missing node that pods name."""

    name: str
    pods: int
    example: str
    place: Place
    nearest: str = ""  # the most similar name of a node that is present


class Orphans(_Finding, frozen=True, kw_only=True, tag="orphans"):
    """Unfinished pods bound to missing nodes."""

    nodes: tuple[UnknownNode, ...]
    pods: int
    total: int  # the number of missing nodes that pods name; `nodes` may list fewer


class NoStatus(_Finding, frozen=True, kw_only=True, tag="no-status"):
    """Pods that are bound to a node and have no status."""

    pods: int
    examples: tuple[str, ...]


class TwoClusters(_Finding, frozen=True, kw_only=True, tag="two-clusters"):
    """The namespace kube-system, which exists as long as its cluster, has two uids."""

    first: Place
    second: Place
    first_uid: str
    second_uid: str


class OtherOwner(_Finding, frozen=True, kw_only=True, tag="other-owner"):
    """Objects whose owner has the name of a present object, but another uid."""

    objects: int
    example: str
    place: Place
    owner: str  # `ReplicaSet shop/web-5d7b9`
    owner_place: Place
    named_uid: str
    found_uid: str


class Clouds(_Finding, frozen=True, kw_only=True, tag="clouds"):
    """Nodes of several clouds."""

    nodes: Mapping[str, int]  # by cloud (`aws`)
    examples: Mapping[str, str]  # the name of a node, by cloud
    places: Mapping[str, str]  # a file that holds such a node, by cloud


class Skew(_Finding, frozen=True, kw_only=True, tag="skew"):
    """Versions that Kubernetes does not run together."""

    server: str  # the API server's version; empty if kubelets are compared with each other
    newest: str
    newest_node: str
    oldest: str
    oldest_node: str
    allowed: int  # minor versions by which a kubelet may be older than the API server


class NodesOfTwoTimes(_Finding, frozen=True, kw_only=True, tag="nodes-of-two-times"):
    """Ready nodes whose last heartbeats are too far apart for one moment."""

    newest: str
    newest_node: str
    newest_place: Place
    oldest: str
    oldest_node: str
    oldest_place: Place
    older: int  # the number of nodes that are equally far behind the newest


class PodsAfterNodes(_Finding, frozen=True, kw_only=True, tag="pods-after-nodes"):
    """Pods that are newer than every node."""

    pod: str
    pod_time: str
    pod_place: Place
    node: str
    node_time: str
    node_place: Place


class YoungNodes(_Finding, frozen=True, kw_only=True, tag="young-nodes"):
    """Pods that started on nodes before these were created."""

    nodes: int
    pods: int
    node: str
    created: str
    pod: str
    started: str


class TakenTwice(_Finding, frozen=True, kw_only=True, tag="taken-twice"):
    """Snapshots that were taken at different times."""

    first: str
    first_source: str
    second: str
    second_source: str


class NoAutoscalerStatus(_Finding, frozen=True, kw_only=True, tag="no-autoscaler-status"):
    """cluster-autoscaler runs, and its status is missing."""

    pod: str
    config_map: str


class NoNodePools(_Finding, frozen=True, kw_only=True, tag="no-node-pools"):
    """Karpenter created nodes, and its NodePools are missing."""

    nodes: int
    example: str


# --- notes


class AutoscalerFlags(_Finding, frozen=True, kw_only=True, tag="autoscaler-flags"):
    """cluster-autoscaler's status is present, and the Deployment with its flags is missing."""

    counts: ClassVar[bool] = False
    config_map: str


class Secrets(_Finding, frozen=True, kw_only=True, tag="secrets"):
    counts: ClassVar[bool] = False
    secrets: int
    files: tuple[str, ...]


Mixture: TypeAlias = (
    TwoClusters | Copies | OtherOwner | Clouds | Skew | NodesOfTwoTimes | PodsAfterNodes | YoungNodes | TakenTwice
)
"""Findings of several clusters or several times."""
Absence: TypeAlias = (
    IncompleteDump
    | MissingKind
    | PerhapsNone
    | NamespacesOnly
    | PodsOfNamespaces
    | Cut
    | Orphans
    | WorkloadPods
    | EmptyNodes
    | NoStatus
    | NoAutoscalerStatus
    | NoNodePools
    | AutoscalerFlags
)
Finding: TypeAlias = Unreadable | Mixture | Absence | Secrets


# What each kind is needed for: which plugins read it, and what is unknown without it.

UNKNOWN_PODS = (
    Weakness(plugins=("NodeResourcesFit", "NodePorts"), effect="optimistic: missing pods use nothing"),
    Weakness(plugins=("InterPodAffinity", "PodTopologySpread"), effect="missing pods do not count"),
    Weakness(plugins=("DefaultPreemption",), effect="missing pods cannot be victims"),
)


def weakness_without(kinds: Iterable[str]) -> tuple[Weakness, ...]:
    """Return what is weaker if several kinds are missing or incomplete: one entry per set of plugins."""
    weaknesses: list[Weakness] = []
    needing: dict[tuple[str, ...], list[str]] = {}
    for kind in dict.fromkeys(kinds):
        if kind == "Pod":
            weaknesses += UNKNOWN_PODS
        else:
            needing.setdefault(KINDS[kind].read_by, []).append(kind)
    for plugins, needed in sorted(needing.items(), key=lambda item: not item[0]):
        without = f"without {', '.join(needed)}"
        weaknesses.append(
            Weakness(plugins=plugins, effect=without if plugins else f"how admission changes manifests, {without}")
        )
    return tuple(weaknesses)
