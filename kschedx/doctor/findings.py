"""What doctor can find, as facts. `render.doctor_words` has the sentences, `Diagnosis.to_dict` the document.

Every finding says how sure it is, what it weakens, and whether `kschedx why` would have said so itself.
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
    LIKELY = "likely"
    """There are other explanations, and they are rarer."""
    POSSIBLE = "possible"


class Reaction(StrEnum):
    """How `kschedx why` treats it."""

    REFUSES = "refuses"
    """It reads nothing of the dump: exit code 2."""
    SHOWS = "shows"
    """An answer that depends on it names it."""
    SILENT = "silent"
    """It answers as if nothing were amiss."""


class Weakness(Struct, frozen=True, kw_only=True):
    """Which verdicts it makes less reliable."""

    plugins: tuple[str, ...]
    """Empty: whatever `effect` says, and no plugin's verdict."""
    effect: str


class _Finding(Struct, frozen=True, kw_only=True, rename="camel", tag_field="id"):
    certainty: Certainty
    reaction: Reaction = Reaction.SILENT
    weakens: tuple[Weakness, ...] = ()

    counts: ClassVar[bool] = True
    """It weakens answers, so the exit code shows it."""


# --- what cannot be read


class Problem(Struct, frozen=True, kw_only=True, rename="camel"):
    """A file, a part of one, or an object that `kschedx why` refuses."""

    place: Place
    message: str
    hint: str = ""


class Unreadable(_Finding, frozen=True, kw_only=True, tag="unreadable"):
    problems: tuple[Problem, ...]
    """The first of them."""
    number: int
    """Of all of them."""
    is_all: bool = True
    """Always: the search is never given up. The document keeps its keys."""


class Difference(StrEnum):
    """The difference between two objects of one name."""

    NONE = "none"
    UNKNOWN = "unknown"
    """They do not say who they are: manifests, or fields were taken out."""
    STATE = "state"
    """The same object at two times: its resourceVersion differs."""
    OBJECT = "object"
    """Two objects: their uid differs."""


class Copies(_Finding, frozen=True, kw_only=True, tag="copies"):
    """Objects that occur twice, in the same two files or in many files."""

    difference: Difference
    pairs: int
    """Of files."""
    kinds: Mapping[str, int]
    example: str
    """`Pod shop/web-0`."""
    first: Place
    second: Place
    first_value: str = ""
    """The uid or resourceVersion of the example."""
    second_value: str = ""


# --- what is missing


class Lacking(_Finding, frozen=True, kw_only=True, tag="lacking"):
    """A dump of another tool, which does not hold everything."""

    format: str
    """"must-gather"."""
    place: str
    what: tuple[str, ...]
    """Of the kinds that it holds in part: "pods of namespaces that were not gathered"."""
    kinds: tuple[str, ...]
    """Those of which it holds nothing."""


class MissingKind(_Finding, frozen=True, kw_only=True, tag="missing-kind"):
    """A kind that every cluster has is missing, or objects that others name are."""

    kind: str
    present: int = 0
    missing: int = 0
    """How many are known to be missing; 0: the kind is known to be missing as a whole, and not how many there are."""
    names: tuple[str, ...] = ()
    """Some of them."""
    named_by: str = ""
    """What names them: `claims`, `nodes`."""
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
    """How many they are; `present` may be fewer, and so `absent`."""
    absent: tuple[str, ...]
    """Namespaces without any pod that other objects show to have some, or that are in every cluster."""
    namespaces_absent: int
    evidence: str
    """An object that says that it has pods: `ReplicaSet shop/web-5d7b9 has 3`; empty where that is not the evidence."""
    pods: int = 0
    """Which are known to be missing."""


class WorkloadPods(_Finding, frozen=True, kw_only=True, tag="workload-pods"):
    """Workloads that report more pods than are present, in namespaces whose pods are present."""

    pods: int
    workloads: tuple[str, ...]
    of: int
    """Pods that all workloads of the dump say they have."""


class Cut(_Finding, frozen=True, kw_only=True, tag="cut"):
    """A snapshot that held more objects of a kind than it does now: it was truncated or edited."""

    kinds: Mapping[str, int]
    """Kind to number of objects that it held."""
    there: Mapping[str, int]


class EmptyNodes(_Finding, frozen=True, kw_only=True, tag="empty-nodes"):
    """Nodes on which nothing runs, not even a DaemonSet's pod."""

    nodes: tuple[str, ...]
    """Some of them."""
    empty: int
    total: int


# --- what does not go together


class UnknownNode(Struct, frozen=True, kw_only=True, rename="camel"):
    """A missing node that pods name."""

    name: str
    pods: int
    example: str
    place: Place
    nearest: str = ""
    """The name of a node that is there."""


class Orphans(_Finding, frozen=True, kw_only=True, tag="orphans"):
    """Unfinished pods bound to missing nodes."""

    nodes: tuple[UnknownNode, ...]
    pods: int
    total: int
    """Nodes that are named and not there; `nodes` may be fewer."""


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
    owner: str
    """`ReplicaSet shop/web-5d7b9`."""
    owner_place: Place
    named_uid: str
    found_uid: str


class Clouds(_Finding, frozen=True, kw_only=True, tag="clouds"):
    """Nodes of several clouds."""

    nodes: Mapping[str, int]
    """Cloud (`aws`) to number of nodes."""
    examples: Mapping[str, str]
    """Cloud to the name of a node."""
    places: Mapping[str, str]
    """Cloud to a file that holds such a node."""


class Skew(_Finding, frozen=True, kw_only=True, tag="skew"):
    """Versions that Kubernetes does not run together."""

    server: str
    """The API server's; empty: kubelets are compared with each other."""
    newest: str
    newest_node: str
    oldest: str
    oldest_node: str
    allowed: int
    """Minor versions by which a kubelet may be older than the API server."""


class NodesOfTwoTimes(_Finding, frozen=True, kw_only=True, tag="nodes-of-two-times"):
    """Ready nodes whose last heartbeats are too far apart for one moment."""

    newest: str
    newest_node: str
    newest_place: Place
    oldest: str
    oldest_node: str
    oldest_place: Place
    older: int
    """Nodes that are as far behind the newest."""


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


# --- what to know


class AutoscalerFlags(_Finding, frozen=True, kw_only=True, tag="autoscaler-flags"):
    """cluster-autoscaler's status is present, and the Deployment with its flags is missing."""

    counts: ClassVar[bool] = False
    config_map: str


class Secrets(_Finding, frozen=True, kw_only=True, tag="secrets"):
    """Secrets are in the dump."""

    counts: ClassVar[bool] = False
    secrets: int
    files: tuple[str, ...]


Mixture: TypeAlias = (
    TwoClusters | Copies | OtherOwner | Clouds | Skew | NodesOfTwoTimes | PodsAfterNodes | YoungNodes | TakenTwice
)
"""Of several clusters or times."""
Absence: TypeAlias = (
    Lacking
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
"""What is not there."""
Finding: TypeAlias = Unreadable | Mixture | Absence | Secrets


# What each kind is needed for: which plugins ask for it, and what is unknown without it.

UNKNOWN_PODS = (
    Weakness(plugins=("NodeResourcesFit", "NodePorts"), effect="optimistic: missing pods use nothing"),
    Weakness(plugins=("InterPodAffinity", "PodTopologySpread"), effect="missing pods do not count"),
    Weakness(plugins=("DefaultPreemption",), effect="missing pods cannot be victims"),
)
"""What is weaker where pods are missing."""


def weakness(kind: str) -> tuple[Weakness, ...]:
    """Of what depends on a kind that is missing."""
    if kind == "Pod":
        return UNKNOWN_PODS
    return (Weakness(plugins=KINDS[kind].read_by, effect=f"unknown: {KINDS[kind].leaves}"),)


def weakness_without(kinds: Iterable[str]) -> tuple[Weakness, ...]:
    """Of what depends on several kinds of which not everything is there: a line for the plugins that need the same."""
    found: list[Weakness] = []
    needing: dict[tuple[str, ...], list[str]] = {}
    for kind in dict.fromkeys(kinds):
        if kind == "Pod":
            found += UNKNOWN_PODS
        else:
            needing.setdefault(KINDS[kind].read_by, []).append(kind)
    for plugins, needed in sorted(needing.items(), key=lambda item: not item[0]):
        without = f"without {', '.join(needed)}"
        found.append(
            Weakness(plugins=plugins, effect=without if plugins else f"how admission changes manifests, {without}")
        )
    return tuple(found)
