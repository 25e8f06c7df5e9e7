"""Labels that a node must have for a pod: what the pod, its volumes, and its profile require. All requirements must
hold together; two that no label satisfies are a contradiction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from typing import Protocol

from msgspec.structs import replace

from kschedx.controllers.daemon_set import agents_down, is_running
from kschedx.controllers.workloads import is_of_daemon_set
from kschedx.findings.constraints import CONDITION_OF_TAINT
from kschedx.fixes.proposal import CONTROLLER_MANAGER
from kschedx.fixes.steps.node import DOMAIN_OF_ITS_OWN, NodeFault
from kschedx.framework.args import NodeAffinityArgs
from kschedx.framework.config import Profile
from kschedx.grouping import group_pairs
from kschedx.kube.autoscalers import NODE_POOL, NodePool
from kschedx.kube.conditions import condition_of
from kschedx.kube.names import NEW_NAMES, OF_CONTROL_PLANE, REGION_LABELS, ZONE_LABELS
from kschedx.kube.scalars import parse_int64
from kschedx.kube.selectors import (
    NODE_NAME_FIELD,
    NODE_OPERATORS,
    NodeSelectorTerm,
    Operator,
    Requirement,
    SelectorRequirement,
    terms_of,
)
from kschedx.kube.storage import PersistentVolume, PersistentVolumeClaim, claim_name
from kschedx.kube.tolerations import DELETION_CANDIDATE, DO_NOT_SCHEDULE, TO_BE_DELETED, find_untolerated
from kschedx.kube.types import OUT_OF_SERVICE, Node, Pod, Taint
from kschedx.kube.typos import nearest_name
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.daemon_sets import pods_of_daemon_sets
from kschedx.snapshot.snapshot import Snapshot

STANDARD_KEYS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
)

_MOST_TERMS = 3
_MOST_COMBINATIONS = 9


class _PodInContext(Protocol):
    """A pod, with the profile and snapshot that add requirements for its node."""

    @property
    def pod(self) -> Pod: ...

    @property
    def profile(self) -> Profile: ...

    @property
    def snapshot(self) -> Snapshot: ...


def intended_key(key: str, known: frozenset[str]) -> str:
    """Return the label that was meant by `key`, which no node has: its new name, the standard label of the same name
    (`zone`), or one with a similar name. Empty if there is none."""
    name = key.rpartition("/")[2].lower()
    standard = [key for key in STANDARD_KEYS if key in known]
    same = [
        new_key
        for new_key in (NEW_NAMES.get(key, ""), *standard)
        if new_key in known and new_key.rpartition("/")[2] == name
    ]
    return same[0] if same else nearest_name(key, standard) or nearest_name(key, known)


def required_terms(situation: _PodInContext, *, devices: bool = True) -> Iterator[tuple[SelectorRequirement, ...]]:
    """Yield alternatives, each with all requirements for the labels of one node. Without `devices`, claims may get
    devices other than those allocated."""
    of_devices = _device_terms(situation) if devices else (None,)
    combinations = product(own_terms(situation.pod), _terms_of_profile(situation), _volume_terms(situation), of_devices)
    selector = tuple(
        SelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in situation.pod.spec.node_selector.items()
    )
    for terms in islice(combinations, _MOST_COMBINATIONS):
        yield (*selector, *(requirement for term in terms if term for requirement in _requirements(term)))


def own_terms(pod: Pod) -> tuple[NodeSelectorTerm | None, ...]:
    """Return the required terms of the pod's node affinity, any of which suffices."""
    return terms_of(pod.spec.required_node_affinity)[:_MOST_TERMS] or (None,)


def _terms_of_profile(situation: _PodInContext) -> tuple[NodeSelectorTerm | None, ...]:
    """Return the terms of the node affinity that the profile adds, any of which suffices."""
    args = situation.profile.args.get("NodeAffinity")
    rules = args.added_affinity if isinstance(args, NodeAffinityArgs) else None
    required = rules.required_during_scheduling_ignored_during_execution if rules else None
    return terms_of(required)[:_MOST_TERMS] or (None,)


def _volume_terms(situation: _PodInContext) -> list[NodeSelectorTerm | None]:
    """Return terms from which the pod's volumes can be reached: each joins one term of every volume."""
    storage = situation.snapshot.storage
    of_each: list[tuple[NodeSelectorTerm, ...]] = []
    for volume in situation.pod.spec.volumes:
        name = claim_name(situation.pod.metadata.name, volume)
        claim = storage.claim(situation.pod.metadata.namespace, name) if name else None
        if claim is None:
            continue
        bound = storage.volumes.get(claim.spec.volume_name) or _reserved_volume(claim, situation)
        if bound is not None:
            of_each.append(terms_of(bound.required_node_affinity))
            of_each.append(tuple(_zone_terms(bound.metadata.labels)))
        else:
            of_each.append(tuple(_unbound_terms(claim, situation)))
    joined = islice(product(*(terms for terms in of_each if terms)), _MOST_TERMS)
    return [
        NodeSelectorTerm(
            match_expressions=tuple(expression for term in terms for expression in term.match_expressions),
            match_fields=tuple(field for term in terms for field in term.match_fields),
        )
        for terms in joined
    ] or [None]


def _reserved_volume(claim: PersistentVolumeClaim, situation: _PodInContext) -> PersistentVolume | None:
    """Return the volume that names the claim in its claimRef; the claim gets no other volume."""
    for volume in situation.snapshot.storage.volumes.values():
        reference = volume.spec.claim_ref
        if reference is not None and (reference.namespace, reference.name) == (claim.metadata.namespace, claim.name):
            return volume
    return None


def _unbound_terms(claim: PersistentVolumeClaim, situation: _PodInContext) -> Iterator[NodeSelectorTerm]:
    """Yield the terms of nodes for which volumes of the claim's class can be provisioned, or which can reach unbound
    volumes."""
    storage = situation.snapshot.storage
    storage_class = storage.classes.get(claim.storage_class)
    if storage_class is not None and storage_class.can_provision:
        for topology in storage_class.allowed_topologies:
            yield NodeSelectorTerm(
                match_expressions=tuple(
                    SelectorRequirement(key=expression.key, operator="In", values=expression.values)
                    for expression in topology.match_label_expressions
                )
            )
        return
    free = (volume for volume in storage.volumes_of(claim.storage_class) if volume.spec.claim_ref is None)
    terms = [term for volume in free for term in terms_of(volume.required_node_affinity)]
    if terms:
        yield from terms[: _MOST_TERMS - 1]
        yield NodeSelectorTerm()  # a volume that is not created yet


def _device_terms(situation: _PodInContext) -> tuple[NodeSelectorTerm | None, ...]:
    """Return the nodes of the devices that are allocated to the pod's claims; None stands for other devices."""
    claims = situation.snapshot.devices.claims
    for reference in situation.pod.spec.resource_claims:
        claim = claims.get(f"{situation.pod.metadata.namespace}/{reference.resource_claim_name}")
        if claim is not None and claim.status.allocation is not None:
            terms = terms_of(claim.status.allocation.node_selector)
            if terms:
                return (None, *terms[:_MOST_TERMS])
    return (None,)


def _zone_terms(labels: Mapping[str, str]) -> Iterator[NodeSelectorTerm]:
    """Yield the zones in a volume's own labels (VolumeZone)."""
    requirements = tuple(
        SelectorRequirement(key=key, operator="In", values=tuple(labels[key].split("__")))
        for key in (*ZONE_LABELS, *REGION_LABELS)
        if key in labels
    )
    if requirements:
        yield NodeSelectorTerm(match_expressions=requirements)


def _requirements(term: NodeSelectorTerm) -> Iterator[SelectorRequirement]:
    yield from term.match_expressions
    for field in term.match_fields:
        yield replace(field, key=NODE_NAME_FIELD)


def labels_for(
    labels: Mapping[str, str], requirements: tuple[SelectorRequirement, ...]
) -> tuple[str, dict[str, str]] | None:
    """A node name (empty for any) and labels that satisfy all requirements; None if they contradict each other."""
    new_labels: dict[str, str | None] = dict(labels)
    by_key = group_pairs((requirement.key, requirement) for requirement in requirements)
    for key, together in by_key.items():
        listed = [requirement for requirement in together if requirement.operator == "In"]
        strictest = min(listed, key=lambda requirement: len(requirement.values), default=None)
        others = (_value(requirement) for requirement in together) if strictest is None else strictest.values
        values = dict.fromkeys((new_labels.get(key), *others))
        possible = [value for value in values if all(_holds(requirement, value) for requirement in together)]
        if not possible:
            return None
        new_labels[key] = possible[0]
    named = {key: value for key, value in new_labels.items() if value is not None}
    return named.pop(NODE_NAME_FIELD, ""), named


def contradiction(situation: _PodInContext) -> tuple[SelectorRequirement, SelectorRequirement] | None:
    """Return two requirements that no label satisfies, if every combination of terms has such a pair."""
    contradicting: tuple[SelectorRequirement, SelectorRequirement] | None = None
    for requirements in required_terms(situation, devices=False):
        if labels_for({}, requirements) is not None:
            return None
        pairs = ((requirement, two) for number, two in enumerate(requirements) for requirement in requirements[:number])
        apart = (pair for pair in pairs if pair[0].key == pair[1].key and labels_for({}, pair) is None)
        contradicting = contradicting or next(apart, None)
    return contradicting


def _value(requirement: SelectorRequirement) -> str | None:
    """Return a value that satisfies a requirement other than `In`; None for no label."""
    bound = parse_int64(requirement.values[0]) if requirement.operator in ("Gt", "Lt") and requirement.values else None
    if bound is not None:
        return str(bound + (1 if requirement.operator == "Gt" else -1))
    is_zone = requirement.key in ZONE_LABELS
    return (DOMAIN_OF_ITS_OWN if is_zone else "true") if requirement.operator == "Exists" else None


def _holds(requirement: SelectorRequirement, value: str | None) -> bool:
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if operator not in NODE_OPERATORS or (operator in ("Gt", "Lt") and not values):
        return False
    labels = {} if value is None else {key: value}
    return Requirement(key=key, operator=Operator(operator), values=values).matches(labels)


# Taints that no pod should tolerate: the fault of the node, the component that removes the taint, and the pods for
# which the node is reserved.

_CLOUD = "cloud-controller-manager"

_GENERAL_PARTS = ("node", "csi")
AGENT_NOT_READY = ("/agent-not-ready", "/not-ready")
"""The suffixes of taints that new nodes have until an agent of their network or storage runs and removes them."""

OF_READINESS = "readiness.k8s.io/"
"""The prefix of the taints that the Node Readiness Controller keeps on a node until it reports certain conditions."""

REMOVED_BY: Mapping[str, str] = {
    **dict.fromkeys(CONDITION_OF_TAINT, CONTROLLER_MANAGER),
    "node.cloudprovider.kubernetes.io/uninitialized": _CLOUD,
    "node.cloudprovider.kubernetes.io/shutdown": _CLOUD,
    "karpenter.sh/unregistered": "Karpenter",
    "node.cluster.x-k8s.io/uninitialized": "Cluster API",
}
"""Taints of nodes that are unhealthy or not initialized, to the component that removes them afterwards."""

OF_ROLES = ("node-role.kubernetes.io/", "CriticalAddonsOnly")
"""Taints of nodes that are reserved for the control plane or the provider's own pods."""
_OF_VIRTUAL_NODES = ("virtual-kubelet.io/",)
"""Taints of nodes without a machine, which run a pod as a container of the provider."""
KEPT = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node.cluster.x-k8s.io/",
    "karpenter.sh/",
    "aws-node-termination-handler/",
    "cloud.google.com/impending-node-termination",
    TO_BE_DELETED,
    OF_READINESS,
    "components.gke.io/",
    "eks.amazonaws.com/compute-type",
    "sandbox.gke.io/",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    *OF_ROLES,
    *_OF_VIRTUAL_NODES,
)
"""Taints of nodes that are unhealthy, about to be removed, or reserved for the control plane, the provider's own pods,
or a single pod. Neither tolerating nor removing them is a fix."""


ABOUT_TO_BE_REMOVED = (
    TO_BE_DELETED,
    DELETION_CANDIDATE,
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "aws-node-termination-handler/",
    "cloud.google.com/impending-node-termination",
    OUT_OF_SERVICE,
)


def taint_remover(taint: Taint) -> str:
    """The component that removes the taint once the node is healthy; empty for a taint that was set on purpose."""
    if taint.key.startswith(OF_READINESS):
        return "node-readiness-controller"
    agent = taint.key.rpartition("/")[0] if taint.key.endswith(AGENT_NOT_READY) else ""
    return REMOVED_BY.get(taint.key, agent)


def initializes(pod: Pod, taint: Taint) -> bool:
    """Whether the pod belongs to the component that removes the taint, which therefore has to tolerate it."""
    by = taint_remover(taint)
    names = (pod.metadata.name, *(container.image for container in pod.spec.containers))
    if by == _CLOUD:
        return any(agent in name for name in names for agent in (_CLOUD, "cloud-node-manager"))
    if taint.key.startswith(OF_READINESS):
        return any(by in name for name in names)
    return (
        taint.key.endswith(AGENT_NOT_READY)
        and is_of_daemon_set(pod.metadata.owner_references)
        and any(word in pod.metadata.name for word in _agent_words(by))
    )


def _agent_words(by: str) -> list[str]:
    """Return what the name of an agent contains that removes taints with a prefix such as `node.cilium.io`."""
    return [part for part in by.split(".")[:2] if part not in _GENERAL_PARTS]


def _startup_pool(taint: Taint, node: Node, snapshot: Snapshot) -> str:
    """Return the NodePool that gives its nodes this startup taint, which an agent removes; empty for another taint."""
    name = node.metadata.labels.get(NODE_POOL, "")
    pool = next((pool for pool in snapshot.of(NodePool) if pool.name == name), None) if name else None
    startup = () if pool is None else pool.spec.template.spec.startup_taints
    if any((startup_taint.key, startup_taint.effect) == (taint.key, taint.effect) for startup_taint in startup):
        return name
    return ""


def is_removed_by_itself(taint: Taint, node: Node, snapshot: Snapshot) -> bool:
    """Whether a component removes the taint once the node is healthy."""
    return bool(taint_remover(taint) or _startup_pool(taint, node, snapshot))


def faults_of(node: Node, taints: Iterable[Taint], snapshot: Snapshot) -> tuple[NodeFault, ...]:
    """Return a fault for each taint, with what the node reports and the agents that should have initialized it."""
    agents = agents_down(snapshot, node.name)
    pods = snapshot.pods
    rows = [row for row, name in enumerate(pods.names) if _CLOUD in name and not is_running(pods, row)]
    clouds, waiting = tuple(map(pods.key, rows)), "" if not rows or pods.node_names[rows[0]] else pods.key(rows[0])
    return tuple(
        NodeFault(
            taint=taint,
            by=taint_remover(taint) or taint.key,
            reported=_reported_condition(node, taint),
            agents=clouds if taint_remover(taint) == _CLOUD else agents,
            waiting=waiting if taint_remover(taint) == _CLOUD else "",
            pool=_startup_pool(taint, node, snapshot),
            intolerant=_intolerant_agent(taint, node, snapshot),
            ready=_ready_agent(taint, node, snapshot),
            is_absent=_is_agent_absent(taint, snapshot),
        )
        for taint in taints
    )


def _intolerant_agent(taint: Taint, node: Node, snapshot: Snapshot) -> str:
    """Return the DaemonSet, `namespace/name`, that selects the node and removes the taint, but has no pod there because
    of it. Empty if another one does or none is known."""
    daemons = _DAEMONS.of(snapshot.derived, lambda: pods_of_daemon_sets(snapshot))
    agents = {
        key: pod.spec.tolerations
        for key, pod in daemons.items()
        if initializes(pod, taint) and pod.spec.node_selector.items() <= node.metadata.labels.items()
    }
    pods, row = snapshot.pods, snapshot.cluster.index.get(node.name)
    there = () if row is None or not agents else pods.on_node(row).tolist()
    running = {(pods.namespaces[each], owner.name) for each in there for owner in pods.owners[each]}
    names = [
        "/".join(key)
        for key, tolerations in agents.items()
        if key not in running
        and find_untolerated((taint,), tolerations, effects=DO_NOT_SCHEDULE, comparison=False) is not None
    ]
    return names[0] if names and len(names) == len(agents) else ""


def _is_of_agent(taint: Taint) -> bool:
    return taint.key.endswith(AGENT_NOT_READY) and taint.key not in REMOVED_BY


def _ready_agent(taint: Taint, node: Node, snapshot: Snapshot) -> str:
    """Return the pod that is ready on the node and removes the taint; empty if none is."""
    pods, row = snapshot.pods, snapshot.cluster.index.get(node.name)
    there = pods.on_node(row).tolist() if row is not None and _is_of_agent(taint) else ()
    ready = (row for row in there if is_running(pods, row) and initializes(pods[row], taint))
    return next(map(pods.key, ready), "")


def _is_agent_absent(taint: Taint, snapshot: Snapshot) -> bool:
    """Whether the cluster has nothing of the network or storage plugin whose agent removes the taint."""
    by = taint_remover(taint)
    is_known = _is_of_agent(taint) and not {"cilium", "csi"}.isdisjoint(by.split("."))
    return is_known and not snapshot.may_run(*_agent_words(by))


_DAEMONS = Memo[Mapping[tuple[str, str], Pod]]()


_OF_KUBELET = frozenset({"Ready", *CONDITION_OF_TAINT.values()})


def _reported_condition(node: Node, taint: Taint) -> str:
    if taint.key.startswith(OF_READINESS):
        others = (each for each in node.status.conditions if each.type not in _OF_KUBELET)
        reports = (f"{each.type}={each.status} ({each.reason})" for each in others)
        return ", ".join(islice(reports, 3))
    reported = condition_of(node.status.conditions, CONDITION_OF_TAINT.get(taint.key, ""))
    return "" if reported is None else reported.message or reported.reason


def is_kept(taint: Taint, node: Node, pod: Pod, requested: Mapping[str, int]) -> bool:
    """Whether the taint reserves the node for pods other than one that requests `requested`. A taint named like a
    resource that the node offers reserves it for pods that request the resource. One named like a label reserves it for
    pods that select the label."""
    is_agent = is_of_daemon_set(pod.metadata.owner_references)  # which may be meant for every node
    if taint.key.startswith(OF_ROLES) and is_agent:
        return False
    tolerated, own = {each.key for each in pod.spec.tolerations}, {each.key for each in node.spec.taints}
    if taint.key.startswith(OF_ROLES) and not {*OF_CONTROL_PLANE}.isdisjoint(tolerated & own):
        return False  # the pod is meant for the control plane
    keys = _selected_keys(pod)
    if any(key in keys and key in node.metadata.labels for key in OF_CONTROL_PLANE):
        return False
    platform = f"kubernetes.io/{taint.key.rpartition('/')[2]}"  # of node.kubernetes.io/os=windows
    if not keys.isdisjoint({taint.key, platform}) or (
        taint.key.startswith(_OF_VIRTUAL_NODES) and _selects_virtual(pod)
    ):
        return False
    if taint.key.endswith(AGENT_NOT_READY) or taint.key.startswith(KEPT):
        return True
    if any(toleration.key == taint.key for toleration in pod.spec.tolerations):
        return False  # of another value or effect: the pod is meant for such nodes
    offered = node.status.allocatable.get(taint.key, "0") != "0"
    return offered and not is_agent and not requested.get(taint.key) and not _selects_pool(pod, node)


def _selects_pool(pod: Pod, node: Node) -> bool:
    """Whether the pod's nodeSelector or required affinity chooses the node's pool: by a label that is not standard."""
    selector, labels = pod.spec.node_selector, node.metadata.labels
    return any(labels.get(key) == value for key, value in selector.items() if key not in STANDARD_KEYS) or any(
        labels[wanted.key] in wanted.values if wanted.operator == "In" else wanted.operator == "Exists"
        for term in own_terms(pod)
        if term is not None
        for wanted in term.match_expressions
        if wanted.key in labels and wanted.key not in STANDARD_KEYS
    )


def _selects_virtual(pod: Pod) -> bool:
    """Whether the pod selects the label that Virtual Kubelet gives its nodes."""
    return pod.spec.node_selector.get("type") == "virtual-kubelet" or any(
        (expression.key, "virtual-kubelet" in expression.values) == ("type", True)
        for term in own_terms(pod)
        if term is not None
        for expression in term.match_expressions
    )


def _selected_keys(pod: Pod) -> frozenset[str]:
    """Return the labels with which the pod selects nodes, and their present names."""
    terms = (expression for term in own_terms(pod) if term is not None for expression in term.match_expressions)
    keys = {*pod.spec.node_selector, *(term.key for term in terms)}
    return frozenset({*keys, *(NEW_NAMES[key] for key in keys if key in NEW_NAMES)})


def are_all_of_control_plane(nodes: Iterator[Node]) -> bool:
    """Whether all nodes are reserved for the control plane."""
    return all(any(taint.key in OF_CONTROL_PLANE for taint in node.spec.taints) for node in nodes)
