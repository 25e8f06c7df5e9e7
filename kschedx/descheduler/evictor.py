"""The DefaultEvictor, which decides what must not be evicted, and the evictions with their limits.

Upstream: pkg/framework/plugins/defaultevictor, pkg/descheduler/evictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct

from kschedx.apiserver.pod_classes import SYSTEM_CRITICAL
from kschedx.descheduler.arguments import DefaultEvictorArgs, NameFilter, Protection
from kschedx.descheduler.cluster import Cluster, FitCheck, PodFacts, nodes_for
from kschedx.descheduler.policy import Policy, PolicyProfile
from kschedx.errors import InputError
from kschedx.kube.autoscalers import MIRROR
from kschedx.kube.descheduling import CONFIG_SOURCE, EVICT, PREFER_NO_EVICTION
from kschedx.kube.field_errors import aggregate_texts, quote_go
from kschedx.kube.selectors import EVERYTHING, compile_selector, parse_label_query
from kschedx.kube.types import Node

_FITS_NOWHERE = (
    "pod does not fit on any other node because of nodeSelector(s), Taint(s), or nodes marked as unschedulable"
)
_NAMESPACE_DIFFERS = "pod namespace do not match the namespaceLabelSelector filter in the policy parameter"
_SEVERAL_OWNERS = "pod has multiple owner references which is not supported for minReplicas check"
_NODES_UNKNOWN = "unable to list ready nodes"

_T = TypeVar("_T")
_Say = Callable[[PodFacts, str], None]


class EvictorVerdict(Struct, frozen=True, kw_only=True):
    """The evictor's verdict about a pod before anything is evicted."""

    filter: bool
    failed: tuple[str, ...]  # failed checks, in the descheduler's words; empty if the descheduler has no text
    pre_eviction: bool
    message: str

    @property
    def checks(self) -> str:
        """The descheduler's text for the failed checks."""
        return aggregate_texts(self.failed) if self.failed else ""

    @property
    def reasons(self) -> tuple[str, ...]:
        """The separate reasons why the pod may not be evicted."""
        own = () if self.filter or self.failed else ("it prefers no eviction, and noEvictionPolicy is Mandatory",)
        return (*own, *self.failed, *((self.message,) if not self.pre_eviction else ()))


class DefaultEvictor:
    def __init__(self, profile: PolicyProfile, cluster: Cluster, now: int, say: _Say) -> None:
        """`now` is in nanoseconds since 1970; `say` receives the evictor's messages about pods while plugins run."""
        self.args: DefaultEvictorArgs = profile.evictor
        self._threshold = profile.priority_threshold
        self._cluster = cluster
        self._now = now
        self._say = say
        self._protections = self.args.protections
        self._labels = compile_selector(self.args.label_selector) if self.args.label_selector else EVERYTHING
        namespace_selector = self.args.namespace_label_selector
        self._namespaces = compile_selector(namespace_selector) if namespace_selector else EVERYTHING
        self._before: dict[str, tuple[str, ...]] = {}  # pod to the failed checks that no eviction changes
        self._known: dict[str, tuple[bool, tuple[str, ...]]] = {}  # pod to its result, if no eviction changes that
        self._fits: set[str] = set()
        """Pods that passed `pre_eviction`: evictions only free resources, so they pass it again."""
        self._fit: FitCheck | None = None  # None if the args' nodeSelector is invalid
        with suppress(InputError):
            self._fit = FitCheck(cluster, nodes_for(cluster, parse_label_query(self.args.node_selector)))

    def filter(self, pod: PodFacts) -> bool:
        """Return whether the pod passes the first checks."""
        return self._filter(pod, self._say)[0]

    def pre_eviction(self, pod: PodFacts) -> bool:
        """Return whether the pod passes the second checks: it fits another node, and its namespace is selected."""
        if pod.key in self._fits:
            return True
        fault = self._second_fault(pod)
        if fault:
            self._say(pod, fault)
            return False
        self._fits.add(pod.key)
        return True

    def both(self, pod: PodFacts) -> bool:
        return self.filter(pod) and self.pre_eviction(pod)

    def verdict(self, pod: PodFacts) -> EvictorVerdict:
        """Return the results of both checks, without messages to the run."""
        said: list[str] = []
        is_evictable, failed = self._filter(pod, lambda _, message: said.append(message))
        fault = self._second_fault(pod)
        if fault:
            said.append(fault)
        else:
            self._fits.add(pod.key)
        message = said[-1] if said else ""
        return EvictorVerdict(filter=is_evictable, failed=failed, pre_eviction=not fault, message=message)

    def _filter(self, pod: PodFacts, say: _Say) -> tuple[bool, tuple[str, ...]]:
        known = self._known.get(pod.key)
        if known is not None:
            return known
        if EVICT in pod.annotations:
            return _EVICTABLE
        if self.args.no_eviction_policy == "Mandatory" and PREFER_NO_EVICTION in pod.annotations:
            return False, ()
        failed = self._before.get(pod.key)
        if failed is None:
            failed = self._before[pod.key] = tuple(self._failed_checks(pod))
        if self.args.min_replicas <= 1:
            verdict = self._known[pod.key] = (not failed, failed)
            return verdict
        replicas = self._replicas_fault(pod, say)
        if replicas:
            is_young = bool(failed) and failed[-1].startswith(_AGE_STARTS)
            failed = (*failed[:-1], replicas, failed[-1]) if is_young else (*failed, replicas)
        return not failed, failed

    def _replicas_fault(self, pod: PodFacts, say: _Say) -> str:
        least = self.args.min_replicas
        if least <= 1 or not pod.owners:
            return ""
        if len(pod.owners) > 1:
            say(pod, _SEVERAL_OWNERS)
            return ""
        there = self._cluster.replicas(pod.owners[0].uid)
        return f"owner has {there} replicas which is less than minReplicas of {least}" if there < least else ""

    def _failed_checks(self, pod: PodFacts) -> Iterator[str]:
        """Yield all failed checks but minReplicas, in the descheduler's order."""
        if MIRROR in pod.annotations:
            yield "pod is a mirror pod"
        if pod.annotations.get(CONFIG_SOURCE, "api") != "api":
            yield "pod is a static pod"
        if pod.is_terminating:
            yield "pod is terminating"
        protected = self._protections
        if Protection.SYSTEM_CRITICAL in protected:
            if pod.priority is not None and pod.priority >= SYSTEM_CRITICAL:
                yield "pod has system critical priority and is protected against eviction"
            if pod.priority is not None and pod.priority >= self._threshold:
                yield "pod has higher priority than specified priority class threshold"
        if not pod.owners:
            if Protection.FAILED_BARE in protected:
                yield "pod does not have any ownerRefs"
            elif pod.phase != "Failed":
                yield "pod does not have any ownerRefs and is not in failed phase"
        if Protection.LOCAL_STORAGE in protected and any(
            volume.host_path is not None or volume.empty_dir is not None for volume in pod.spec.volumes
        ):
            yield "pod has local storage and is protected against eviction"
        if Protection.DAEMON_SET in protected and pod.is_daemon:
            yield "daemonset pods are protected against eviction"
        if Protection.PVC in protected:
            yield from self._claim_fault(pod)
        if Protection.WITHOUT_PDB in protected and not self._cluster.budgets(pod):
            yield "pod does not have a PodDisruptionBudget and is protected against eviction"
        if Protection.RESOURCE_CLAIMS in protected and pod.spec.resource_claims:
            yield "pod has ResourceClaims and descheduler is configured to protect ResourceClaims pods"
        if not self._labels.matches(pod.labels):
            yield "pod labels do not match the labelSelector filter in the policy parameter"
        age = self.args.min_pod_age
        if age is not None and (pod.started is None or self._now - pod.started < age):
            yield f"{_AGE_STARTS}: &Duration{{Duration:{age},}} seconds"

    def _claim_fault(self, pod: PodFacts) -> Iterator[str]:
        """Yield the failed check for a pod with PersistentVolumeClaims; if storage classes are named, only their claims
        count."""
        names = [it.persistent_volume_claim.claim_name for it in pod.spec.volumes if it.persistent_volume_claim]
        classes = self.args.pod_protections.protected_storage_classes
        if not classes:
            if names:
                yield "pod with PVC is protected against eviction"
            return
        protected = {storage_class.name for storage_class in classes}
        used: dict[str, None] = {}
        for name in names:
            claim = self._cluster.claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                missing = f"persistentvolumeclaim {quote_go(name)} not found"
                yield f"failed to get persistent volume claim {quote_go(pod.namespace)}/{quote_go(name)}: {missing}"
                return
            if not claim.spec.storage_class_name:
                yield f"failed to resolve storage class for pod {quote_go(pod.namespace)}/{quote_go(name)}"
                return
            used[claim.spec.storage_class_name] = None
        for name in used:
            if name in protected:
                yield f"pod using protected storage class {quote_go(name)}"
                return

    def _second_fault(self, pod: PodFacts) -> str:
        if self.args.node_fit:
            if self._fit is None:
                return _NODES_UNKNOWN
            if not self._fit.other(pod):
                return _FITS_NOWHERE
        if self._namespaces.empty:
            return ""
        labels = self._cluster.namespaces.get(pod.namespace)
        return _NAMESPACE_DIFFERS if labels is None or not self._namespaces.matches(labels) else ""


_EVICTABLE: tuple[bool, tuple[str, ...]] = (True, ())
_AGE_STARTS = "pod age is not older than MinPodAge"


# --- evictions


class EvictionOutcome(StrEnum):
    """The outcome of an eviction that a plugin requested."""

    EVICTED = "evicted"
    TOTAL_LIMIT = "maximum number of evicted pods per a descheduling cycle reached"
    NODE_LIMIT = "maximum number of evicted pods per node reached"
    NAMESPACE_LIMIT = "maximum number of evicted pods per namespace reached"
    REFUSED = "refused"  # by the API server


class RequestedEviction(Struct, frozen=True, kw_only=True):
    pod: PodFacts
    profile: str
    plugin: str
    because: str  # in kschedx's words
    outcome: EvictionOutcome
    error: str = ""  # the descheduler's text if the pod was not evicted


class Evictions:
    """The evictions of one run, checked against the limits of the policy; only successful ones count."""

    def __init__(self, policy: Policy, cluster: Cluster) -> None:
        self._policy = policy
        self._cluster = cluster
        self.requested: list[RequestedEviction] = []
        self.per_node: Counter[str] = Counter()
        self._per_namespace: Counter[str] = Counter()
        self.total = 0

    def evict(self, pod: PodFacts, profile: str, plugin: str, because: str) -> EvictionOutcome:
        outcome, error = self._try(pod)
        self.requested.append(
            RequestedEviction(pod=pod, profile=profile, plugin=plugin, because=because, outcome=outcome, error=error)
        )
        return outcome

    def _try(self, pod: PodFacts) -> tuple[EvictionOutcome, str]:
        policy = self._policy
        if not pod.uid:
            return EvictionOutcome.REFUSED, f"pod {pod.key} is missing UID"
        for outcome, most, count in (
            (EvictionOutcome.TOTAL_LIMIT, policy.most, self.total),
            (EvictionOutcome.NODE_LIMIT, policy.most_per_node, self.per_node[pod.node]),
            (EvictionOutcome.NAMESPACE_LIMIT, policy.most_per_namespace, self._per_namespace[pod.namespace]),
        ):
            if most is not None and count >= most:
                return outcome, outcome.value
        if refusal := self._cluster.evict(pod):
            return EvictionOutcome.REFUSED, refusal
        self.per_node[pod.node] += 1
        self._per_namespace[pod.namespace] += 1
        self.total += 1
        return EvictionOutcome.EVICTED, ""


class PassedOver(Struct, frozen=True, kw_only=True):
    """Why the descheduler does not evict a pod."""

    profile: str
    plugin: str
    pod: str
    message: str


class EvictorHandle(Struct, kw_only=True):
    """The run as a plugin sees it; one for each plugin of a profile."""

    profile: str
    plugin: str
    cluster: Cluster
    evictor: DefaultEvictor
    evictions: Evictions
    nodes: Sequence[Node]  # in the order of the run
    now: int  # nanoseconds since 1970
    say: _Say
    see: Callable[[float], None]  # called with the completed share of the plugin's work

    def each(self, items: Collection[_T]) -> Iterator[_T]:
        """Yield the items of the plugin's longest loop, and report its progress."""
        for number, item in enumerate(items):
            self.see(number / len(items))
            yield item

    def evict(self, pod: PodFacts, because: str) -> EvictionOutcome:
        return self.evictions.evict(pod, self.profile, self.plugin, because)

    def evict_each(self, pods: Iterable[tuple[PodFacts, str]]) -> bool:
        """Evict the pods of one node, given with the reasons, until a node limit is reached; return False if the plugin
        must end."""
        for pod, because in pods:
            outcome = self.evict(pod, because)
            if outcome is EvictionOutcome.TOTAL_LIMIT:
                return False
            if outcome is EvictionOutcome.NODE_LIMIT:
                return True
        return True


def is_in_namespaces(namespaces: NameFilter | None, pod: PodFacts) -> bool:
    if namespaces is None:
        return True
    if namespaces.include and pod.namespace not in namespaces.include:
        return False
    return pod.namespace not in namespaces.exclude
