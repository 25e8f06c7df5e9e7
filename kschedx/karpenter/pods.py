"""The pods of a round: which of them Karpenter evaluates, their requirements on a node, and the pods of DaemonSets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.karpenter.devices import PodDevices
from kschedx.karpenter.instance_types import DaemonOverhead, InstanceType
from kschedx.karpenter.nodes import is_of_daemon_set, is_static, tolerates_all
from kschedx.karpenter.requirements import (
    CAPACITY_TYPES,
    NORMALIZED,
    Amounts,
    Requirements,
    is_bound,
    is_reserved_label,
    pod_requests,
    reserved_domains,
    well_known,
)
from kschedx.kube.autoscalers import CAPACITY_TYPE, NODE_POOL
from kschedx.kube.conditions import UNSCHEDULABLE, condition_of
from kschedx.kube.decoding import decode
from kschedx.kube.names import HOSTNAME, label_key_errors, label_value_errors
from kschedx.kube.selectors import NodeSelector, PreferredSchedulingTerm, SelectorRequirement, terms_of
from kschedx.kube.storage import (
    BIND_COMPLETED,
    IMMEDIATE,
    PersistentVolume,
    PersistentVolumeClaim,
    claim_name,
    plugin_named,
)
from kschedx.kube.types import (
    Affinity,
    Labels,
    NodeAffinity,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodTemplateSpec,
    Taint,
    Toleration,
    WeightedPodAffinityTerm,
    controller_of,
)
from kschedx.releases.karpenter import KarpenterBehavior
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.storage import Storage

# The requirements of a pod's volumes, the claims that Karpenter accepts, and the volume limits of nodes. Upstream:
# scheduling/volumetopology.go, pkg/scheduling/volumeusage.go, pkg/utils/volume.

_EBS = "ebs.csi.aws.com"


def _claim_names(pod: Pod) -> Iterator[str]:
    names = (claim_name(pod.metadata.name, volume) for volume in pod.spec.volumes)
    return (name for name in names if name is not None)


def _volume_refusal(pod: Pod, storage: Storage) -> str:
    """Return why Karpenter ignores the pod because of its claims, as its message, or an empty string."""
    namespace = pod.metadata.namespace
    for name in _claim_names(pod):
        claim = storage.claim(namespace, name)
        if claim is None:
            missing = f'persistentvolumeclaims "{name}" not found'
            return f"getting persistent volume claim, {missing} (PersistentVolumeClaim={name})"
        phrase = _claim_refusal(claim, storage)
        if phrase:
            return phrase
    return ""


def _claim_refusal(claim: PersistentVolumeClaim, storage: Storage) -> str:
    key, volume, named = claim.key, claim.spec.volume_name, claim.spec.storage_class_name or ""
    about = f"(PersistentVolumeClaim={key}, StorageClass={named})"
    if claim.metadata.deletion_timestamp:
        return f"persistentvolumeclaim is being deleted (PersistentVolumeClaim={key})"
    if claim.status.phase == "Lost":
        both = f"(PersistentVolume={volume}, PersistentVolumeClaim={key})"
        return f"persistentvolumeclaim bound to non-existent persistentvolume {both}"
    if volume:
        known_volume = storage.volumes.get(volume)
        all_three = f"(PersistentVolume={volume}, PersistentVolumeClaim={key}, StorageClass={named})"
        if known_volume is None:
            return f'failed to validate pvc, persistentvolumes "{volume}" not found {all_three}'
        if known_volume.metadata.deletion_timestamp:
            return f"failed to validate pvc, persistentvolume is being deleted {all_three}"
        if BIND_COMPLETED not in claim.metadata.annotations:
            both = f"(PersistentVolume={volume}, PersistentVolumeClaim={claim.name}, annotation={BIND_COMPLETED})"
            return f"pvc is considered unbound because it does not contain annotation {both}"
        return ""
    if not named:
        return f"unbound pvc must define a storage class (PersistentVolumeClaim={key}, StorageClass=)"
    of_class = storage.classes.get(named)
    if of_class is None:
        missing = f'storageclasses.storage.k8s.io "{named}" not found'
        return f"failed to validate pvc, failed to get storage class, {missing} {about}"
    if of_class.volume_binding_mode == IMMEDIATE:
        return f"failed to validate pvc, pvc with immediate volume binding mode must be bound {about}"
    return ""


def volume_alternatives(pod: Pod, storage: Storage) -> tuple[Requirements | None, ...]:
    """Return alternative requirements for the pod's volumes; None requires nothing. As upstream, all combinations are
    kept, even for volumes without a common location."""
    alternatives: list[Requirements | None] = [None]
    for name in _claim_names(pod):
        claim = storage.claim(pod.metadata.namespace, name)
        own = _claim_requirements(claim, storage) if claim is not None else ()
        if not own:
            continue
        pairs = [(before, more) for before in alternatives for more in own]
        fitting = [pair for pair in pairs if pair[0] is None or pair[0].overlaps(pair[1])]
        alternatives = [(before or Requirements()).together(more.values()) for before, more in fitting or pairs]
    return tuple(alternatives)


def _claim_requirements(claim: PersistentVolumeClaim, storage: Storage) -> tuple[Requirements, ...]:
    if claim.spec.volume_name:
        volume = storage.volumes.get(claim.spec.volume_name)
        return () if volume is None else tuple(_volume_requirements(volume))
    of_class = storage.classes.get(claim.spec.storage_class_name or "")
    if of_class is None:
        return ()
    terms = (term.match_label_expressions for term in of_class.allowed_topologies)
    return tuple(
        Requirements.of_expressions(
            SelectorRequirement(key=expression.key, operator="In", values=expression.values)
            for expression in expressions
        )
        for expressions in terms
        if expressions
    )


def _volume_requirements(volume: PersistentVolume) -> Iterator[Requirements]:
    """The host name of a volume on a node's own disk does not count: a pod that moves leaves it."""
    for term in terms_of(volume.required_node_affinity):
        expressions = term.match_expressions
        if volume.spec.is_on_node:
            expressions = tuple(expression for expression in expressions if expression.key != HOSTNAME)
            if term.match_expressions and not expressions:
                yield Requirements()
        if expressions:
            yield Requirements.of_expressions(expressions)


def mounted_claims(pod: Pod, storage: Storage) -> Mapping[str, frozenset[str]]:
    """Driver to the keys of the pod's claims."""
    names_by_driver: dict[str, set[str]] = {}
    for name in _claim_names(pod):
        claim = storage.claim(pod.metadata.namespace, name)
        driver = _driver(claim, storage) if claim is not None else ""
        if claim is not None and driver:
            names_by_driver.setdefault(driver, set()).add(claim.key)
    return {driver: frozenset(keys) for driver, keys in names_by_driver.items()}


def _driver(claim: PersistentVolumeClaim, storage: Storage) -> str:
    if claim.spec.volume_name:
        volume = storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            return ""
        if volume.spec.csi is not None:
            return volume.spec.csi.driver
        return _EBS if volume.spec.aws_elastic_block_store is not None else ""
    of_class = storage.classes.get(claim.spec.storage_class_name or "")
    if of_class is None:
        return ""
    plugin = plugin_named(of_class.provisioner)
    return of_class.provisioner if plugin is None else plugin.driver


# A pod's requirements, with preferences as requirements first, and the order in which they are relaxed. Upstream:
# scheduling/preferences.go, newPodRequirements in pkg/scheduling/requirements.go.

_PREFER_NO_SCHEDULE = Toleration(operator="Exists", effect="PreferNoSchedule")


_W = TypeVar("_W", PreferredSchedulingTerm, WeightedPodAffinityTerm)


def pod_requirements(pod: Pod, *, prefers: bool) -> Requirements:
    """Combine node selector, first required term, and, with `prefers`, the preferred term with the highest weight."""
    requirements = Requirements.of_labels(pod.spec.node_selector)
    affinity = _node_affinity(pod)
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    if prefers and preferred:
        heaviest = _heaviest_first(preferred)[0].preference
        requirements = requirements.together(Requirements.of_expressions(heaviest.match_expressions).values())
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None and required.node_selector_terms:
        first = required.node_selector_terms[0]
        requirements = requirements.together(Requirements.of_expressions(first.match_expressions).values())
    return requirements


def relax(pod: Pod, *, tolerates_preferred_taints: bool) -> Pod | None:
    """Return the pod with one requirement relaxed, or None if there is nothing to relax."""
    return (
        _without_first_required_term(pod)
        or _without_heaviest(pod, rules="pod_affinity")
        or _without_heaviest(pod, rules="pod_anti_affinity")
        or _without_node_preference(pod)
        or _without_soft_spread(pod)
        or (_tolerating_preferred_taints(pod) if tolerates_preferred_taints else None)
    )


def _without_first_required_term(pod: Pod) -> Pod | None:
    """Remove the first required term, except the last one, because one term must match."""
    affinity = _node_affinity(pod)
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is None or len(required.node_selector_terms) < 2:
        return None
    rest = NodeSelector(node_selector_terms=required.node_selector_terms[1:])
    return _with_node_affinity(pod, replace(affinity, required_during_scheduling_ignored_during_execution=rest))


def _tolerating_preferred_taints(pod: Pod) -> Pod | None:
    if _PREFER_NO_SCHEDULE in [replace(toleration, toleration_seconds=None) for toleration in pod.spec.tolerations]:
        return None  # MatchToleration: tolerationSeconds do not count
    return replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, _PREFER_NO_SCHEDULE)))


def _without_node_preference(pod: Pod) -> Pod | None:
    affinity = _node_affinity(pod)
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    if not preferred:
        return None
    rest = _heaviest_first(preferred)[1:]
    return _with_node_affinity(pod, replace(affinity, preferred_during_scheduling_ignored_during_execution=rest))


def _without_heaviest(pod: Pod, *, rules: str) -> Pod | None:
    """Remove the preferred term with the highest weight from one of the rules about other pods."""
    affinity = pod.spec.affinity
    terms: PodAffinity | None = getattr(affinity, rules) if affinity is not None else None
    if affinity is None or terms is None or not terms.preferred_during_scheduling_ignored_during_execution:
        return None
    rest = _heaviest_first(terms.preferred_during_scheduling_ignored_during_execution)[1:]
    fewer = replace(terms, preferred_during_scheduling_ignored_during_execution=rest)
    return _with_affinity(pod, replace(affinity, **{rules: fewer}))


def _without_soft_spread(pod: Pod) -> Pod | None:
    """Replace the first soft constraint with the last constraint."""
    constraints = list(pod.spec.topology_spread_constraints)
    for index, constraint in enumerate(constraints):
        if constraint.when_unsatisfiable == "ScheduleAnyway":
            constraints[index] = constraints[-1]
            return replace(pod, spec=replace(pod.spec, topology_spread_constraints=tuple(constraints[:-1])))
    return None


def _heaviest_first(terms: tuple[_W, ...]) -> tuple[_W, ...]:
    return tuple(sorted(terms, key=lambda term: -term.weight))


def _node_affinity(pod: Pod) -> NodeAffinity:
    return (pod.spec.affinity and pod.spec.affinity.node_affinity) or NodeAffinity()


def _with_node_affinity(pod: Pod, affinity: NodeAffinity) -> Pod:
    return _with_affinity(pod, replace(pod.spec.affinity or Affinity(), node_affinity=affinity))


def _with_affinity(pod: Pod, affinity: Affinity) -> Pod:
    return replace(pod, spec=replace(pod.spec, affinity=affinity))


# The data of a round about a pending pod.


class PodData(Struct, frozen=True, kw_only=True):
    """A pod with its relaxed preferences."""

    pod: Pod
    key: str
    requests: Amounts
    requirements: Requirements  # including the preference with the highest weight
    strict: Requirements  # without preferences, which do not affect where other pods are counted
    volumes: tuple[Requirements | None, ...]  # alternatives, one of which must match
    asks_for_devices: bool
    devices: PodDevices | None = None  # the devices, if Karpenter allocates them

    @classmethod
    def of(
        cls, pod: Pod, volumes: tuple[Requirements | None, ...], *, prefers: bool, behavior: KarpenterBehavior
    ) -> PodData:
        return cls(
            pod=pod,
            key=pod.key,
            requests=pod_requests((pod,)),
            requirements=pod_requirements(pod, prefers=prefers),
            strict=pod_requirements(pod, prefers=False),
            volumes=volumes,
            asks_for_devices=_requests_devices(pod, behavior),
        )


def _requests_devices(pod: Pod, behavior: KarpenterBehavior) -> bool:
    """Whether the pod requests devices; Karpenter ignores such pods unless it runs with --ignore-dra-requests=false."""
    if behavior.claims_of_pods_count and pod.spec.resource_claims:
        return True
    return any(container.resources.claims for container in (*pod.spec.init_containers, *pod.spec.containers))


# The pods of DaemonSets on a new node, and what they leave to other pods. Upstream: getDaemonSetPods in provisioner.go,
# isDaemonPodCompatible and getDaemonOverhead in scheduler.go. If no pool matches a DaemonSet's first required terms,
# later checks omit them, because upstream shares the pods.


class DaemonSets:
    """One pod for each DaemonSet of the cluster."""

    def __init__(self, pods: Sequence[Pod], behavior: KarpenterBehavior, *, leaves_out_devices: bool = True) -> None:
        self._pods = [pod for pod in pods if not (leaves_out_devices and _requests_devices(pod, behavior))]
        self._behavior = behavior
        self._seen: dict[tuple[object, ...], bool] = {}

    def overhead_of_pool(
        self,
        taints: Sequence[Taint],
        requirements: Requirements,
        allowed: frozenset[str],
        types: Sequence[InstanceType],
    ) -> tuple[DaemonOverhead, ...]:
        """Return the pods on new nodes of a pool, by instance types."""
        if not self._behavior.daemons_depend_on_type or not types:
            return (self._overhead(self._indexes_in_pool(taints, requirements, allowed, None), None),)
        names: dict[tuple[int, ...], list[str]] = {}
        for host in types:
            indices = self._indexes_in_pool(taints, requirements, allowed, host.requirements)
            names.setdefault(indices, []).append(host.name)
        return tuple(self._overhead(indices, frozenset(its)) for indices, its in names.items())

    def _overhead(self, indices: Sequence[int], types: frozenset[str] | None) -> DaemonOverhead:
        pods = tuple(self._pods[index] for index in indices)
        return DaemonOverhead(pods=pods, requests=pod_requests(pods) if pods else {}, types=types)

    def _indexes_in_pool(
        self,
        taints: Sequence[Taint],
        requirements: Requirements,
        allowed: frozenset[str],
        of_type: Requirements | None,
    ) -> tuple[int, ...]:
        return tuple(
            index
            for index in range(len(self._pods))
            if self._runs_in_pool(index, taints, requirements, allowed, of_type)
        )

    def _runs_in_pool(
        self,
        index: int,
        taints: Sequence[Taint],
        requirements: Requirements,
        allowed: frozenset[str],
        of_type: Requirements | None,
    ) -> bool:
        self._pods[index] = _tolerating_preferred_taints(self._pods[index]) or self._pods[index]
        if not tolerates_all(self._pods[index].spec.tolerations, taints):
            return False
        while True:
            own = pod_requirements(self._pods[index], prefers=False)
            is_of_type = of_type is None or of_type.overlaps(own)
            if is_of_type and requirements.is_compatible(own, allowed):
                return True
            fewer = _without_first_required_term(self._pods[index])
            if fewer is None:
                return False
            self._pods[index] = fewer

    def pods_of_node(self, taints: Sequence[Taint], labels: Labels) -> tuple[Pod, ...]:
        """Return the pods on a node; called after `overhead_of_pool` for all pools."""
        return tuple(pod for index, pod in enumerate(self._pods) if self._runs_on(index, pod, taints, labels))

    def _runs_on(self, index: int, pod: Pod, taints: Sequence[Taint], labels: Labels) -> bool:
        """Cached for nodes that the pod cannot distinguish."""
        strict = pod_requirements(pod, prefers=False)
        key = (index, tuple(taints), tuple((name, labels.get(name)) for name in strict))
        if key not in self._seen:
            named = {name: labels[name] for name in strict if name in labels}
            own = Requirements.of_labels({**named, **{name: labels[name] for name in labels if name in NORMALIZED}})
            self._seen[key] = tolerates_all(pod.spec.tolerations, taints) and own.is_compatible(strict)
        return self._seen[key]


class _Template(Struct, frozen=True, kw_only=True):
    template: PodTemplateSpec = PodTemplateSpec()


class _Workload(Struct, frozen=True, kw_only=True):
    spec: _Template = _Template()


def template_of(raw: bytes) -> PodTemplateSpec:
    """Return the pod template of a workload's manifest."""
    return decode(raw, _Workload).spec.template


def karpenter_daemon_pods(snapshot: Snapshot) -> Iterator[Pod]:
    """Yield the newest pod of each DaemonSet, or one from its template. The template's node affinity counts."""
    newest = _newest_pods(snapshot)
    for (kind, namespace, name), raw in snapshot.workloads.items():
        if kind == "DaemonSet":
            template = template_of(raw)
            daemon = Pod(metadata=ObjectMeta(namespace=namespace, labels=template.metadata.labels), spec=template.spec)
            pod = newest.get((namespace, name), daemon)
            if (terms := daemon.spec.required_node_affinity) is not None:
                affinity = replace(_node_affinity(pod), required_during_scheduling_ignored_during_execution=terms)
                pod = _with_node_affinity(pod, affinity)
            yield pod


def _newest_pods(snapshot: Snapshot) -> dict[tuple[str, str], Pod]:
    """Newest pods by namespace and name of the DaemonSet."""
    pods = snapshot.pods
    newest: dict[tuple[str, str], tuple[str, int]] = {}
    for row in np.flatnonzero(pods.owners.where(is_of_daemon_set)).tolist():
        owner = controller_of(pods.owners[row])
        if owner is None:
            continue
        key, time = (pods.namespaces[row], owner.name), pods.creation_timestamps[row] or ""
        if key not in newest or time > newest[key][0]:
            newest[key] = time, row
    return {key: pods[row] for key, (_, row) in newest.items()}


# The pods that Karpenter evaluates, and why it ignores others. Upstream: pkg/utils/pod (IsProvisionable,
# IsReschedulable), Validate in provisioner.go.


class PodEligibility(StrEnum):
    """What Karpenter does with a pending pod."""

    CONSIDERED = "considered"
    NOT_MARKED = "not-marked-unschedulable"
    NOMINATED = "nominated"
    DAEMON_SET = "daemonset"
    STATIC = "static"
    AVOIDS_KARPENTER = "avoids-karpenter"
    REFUSED = "refused"  # Karpenter reports the reason in an event
    NO_POOLS = "no-pools"
    WAITING = "waiting-for-nodeclaim"


class EligibilityCheck(Struct, frozen=True, kw_only=True):
    outcome: PodEligibility
    reason: str = ""  # Karpenter's message, if there is one


def eligibility(pod: Pod, storage: Storage, group: str) -> EligibilityCheck:
    """`group` is the API group of the cluster's node classes."""
    is_written = not pod.status.phase  # from a manifest: no API server has stored it, and no scheduler has seen it
    scheduled = condition_of(pod.status.conditions, "PodScheduled")
    if not is_written and (scheduled is None or scheduled.reason != UNSCHEDULABLE):
        return EligibilityCheck(outcome=PodEligibility.NOT_MARKED)
    if pod.status.nominated_node_name:
        return EligibilityCheck(outcome=PodEligibility.NOMINATED)
    if is_of_daemon_set(pod.metadata.owner_references):
        return EligibilityCheck(outcome=PodEligibility.DAEMON_SET)
    if is_static(pod.metadata.owner_references):
        return EligibilityCheck(outcome=PodEligibility.STATIC)
    pool = pod_requirements(pod, prefers=True).get(NODE_POOL)
    if pool is not None and pool.operator == "DoesNotExist":
        return EligibilityCheck(outcome=PodEligibility.AVOIDS_KARPENTER)
    wrong = [*_selector_errors(pod, group)]
    wrong += filter(None, [_volume_refusal(pod, storage)])
    outcome = PodEligibility.REFUSED if wrong else PodEligibility.CONSIDERED
    return EligibilityCheck(outcome=outcome, reason="; ".join(wrong))


def _selector_errors(pod: Pod, group: str) -> Iterator[str]:
    """Yield the errors of the node selector and the required terms."""
    for key, value in sorted(pod.spec.node_selector.items()):
        yield from _requirement_errors(SelectorRequirement(key=key, operator="In", values=(value,)), group)
    for term in terms_of(pod.spec.required_node_affinity):
        if term.match_fields:
            yield "node selector term with matchFields is not supported"
        for match_expression in term.match_expressions:
            yield from _requirement_errors(match_expression, group)


def _requirement_errors(requirement: SelectorRequirement, group: str) -> Iterator[str]:
    key = NORMALIZED.get(requirement.key, requirement.key)
    if is_reserved_label(key, group):
        known, domains = " ".join(sorted(well_known(group))), " ".join(reserved_domains(group))
        yield (
            f"using label {key} is not allowed as it might interfere with the internal provisioning logic; specify a "
            f"well known label: [{known}], or a custom label that does not use a restricted domain: [{domains}]"
        )
    if key == CAPACITY_TYPE and requirement.operator == "In" and not set(requirement.values) & set(CAPACITY_TYPES):
        named, known = " ".join(requirement.values), " ".join(f"{name}:{{}}" for name in CAPACITY_TYPES)
        yield f"no valid values found in [{named}] for {key}, expected one of: map[{known}], got: [{named}]"
    for error in label_key_errors(key):
        yield f"key {key} is not a qualified name, {error}"
    for value in requirement.values:
        for error in label_value_errors(value):
            yield f"invalid value {value} for key {key}, {error}"
    if requirement.operator == "In" and not requirement.values:
        yield f"key {key} with operator In must have a value defined"
    if requirement.operator in ("Gt", "Lt") and not is_bound(requirement.values):
        yield f"key {key} with operator {requirement.operator} must have a single positive integer value"
