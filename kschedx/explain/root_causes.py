"""The cause behind a rejection, if the cluster's objects show it, such as a pending resize or partitioned hardware."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from kschedx.apiserver.admission import PROJECT_NODE_SELECTOR, SELECTOR_ANNOTATIONS
from kschedx.apiserver.pod_classes import PREEMPT_NEVER
from kschedx.explain.cycle_notes import attached_elsewhere
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.hardware import (
    RootCause,
    SharedByHami,
    device_claim_refusal,
    incomplete_pool,
    is_of_hami,
    of_other_vendors,
    partitioned,
    plugins_down,
    resource_amount,
    taint_rules,
    unhealthy,
    unpublished,
)
from kschedx.findings import (
    ClaimInUse,
    ClaimNotFound,
    ClaimUnbound,
    DeviceClaimNotCreated,
    ExistingAntiAffinityConflict,
    Finding,
    GangTooSmall,
    HostPortConflict,
    InsufficientDevices,
    InsufficientResource,
    InsufficientStorageCapacity,
    NodeAffinityMismatch,
    PodAffinityUnsatisfied,
    PodAntiAffinityConflict,
    PodGroupIncomplete,
    TermMatch,
    TooManyPods,
    TopologySpreadSkew,
    VolumeLimitExceeded,
    VolumeNodeAffinityMismatch,
)
from kschedx.findings.volumes import VolumeCandidate
from kschedx.framework.cycle import Cycle
from kschedx.kube.autoscalers import COMPUTE_TYPE, HAMI_SCHEDULER, NodePool
from kschedx.kube.conditions import condition_of
from kschedx.kube.controllers import stored_controller
from kschedx.kube.names import HOSTNAME, ZONE
from kschedx.kube.quantity import Unit, format_quantities
from kschedx.kube.resources import container_requests
from kschedx.kube.selectors import compile_selector
from kschedx.kube.storage import CSINode, PersistentVolumeClaim, own_claims
from kschedx.kube.types import AUTOSCALER_STATUS, Affinity, ObjectMeta, Pod, PodAffinity
from kschedx.kube.workloads import GENERATION_OF_TEMPLATE, REVISION_HASH, TEMPLATE_GENERATION, TEMPLATE_HASH, pinned_to
from kschedx.plugins.volume_binding.matching import SearchError, VolumeSearch
from kschedx.render.wording import count, listed
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.events import RecordedEvent
from kschedx.snapshot.nodes import ClusterNodes
from kschedx.snapshot.snapshot import Snapshot

RESIZE_PENDING = "PodResizePending"
MOST_NODES = 50
"""The maximum number of nodes of a group that are searched for a cause."""


class ResizePending(RootCause, frozen=True, kw_only=True):
    """kube-scheduler counts the larger of a pod's requests and the resources that its node has allocated."""

    pod: str
    node: str


class MembersNotCreated(RootCause, frozen=True, kw_only=True):
    """Why the controller of a gang's pods creates no more of them."""

    message: str
    """What the API server refuses them with."""


class MatchingPodPending(RootCause, frozen=True, kw_only=True):
    """The pod that a podAffinity term selects is itself pending."""

    pod: str


class NodeGone(RootCause, frozen=True, kw_only=True):
    """The pod is for one node alone, which does not exist."""

    node: str
    daemon_set: str = ""
    """The DaemonSet that created the pod for this node."""

    @property
    def leaves_no_node(self) -> bool:
        return bool(self.daemon_set)


class SelectorOfNamespace(RootCause, frozen=True, kw_only=True):
    """Admission adds the node selector of a namespace's annotation, or OpenShift's default, to each of its pods."""

    namespace: str
    annotation: str
    """The annotation with the selector, or the one that replaces the default."""


class SharedClaim(RootCause, frozen=True, kw_only=True):
    """Pods of one controller use a claim that only one pod at a time may use."""

    claim: str


class PortOfService(RootCause, frozen=True, kw_only=True):
    """Pods of k3s' load balancer use a host port for each port of a Service."""

    ports: tuple[int, ...]
    service: str
    """`namespace/name`."""
    own_service: str
    """The pending pod's own Service, if the pod belongs to the load balancer as well."""


class VirtualNode(RootCause, frozen=True, kw_only=True):
    """A node without its own machine, which a provider creates only for certain pods."""

    key: str
    value: str
    provider: str
    node: str = ""
    """The node for which a DaemonSet created the pod; empty if the cluster has no other nodes."""
    kept_off: bool = False
    """Whether an annotation of the pod, with the same key, keeps it off these nodes."""

    @property
    def leaves_no_node(self) -> bool:
        return bool(self.node)


class DriverNotRegistered(RootCause, frozen=True, kw_only=True):
    """A node lacks the topology label of a volume, which the driver's node plugin sets."""

    driver: str
    node: str


class CapacityNotPublished(RootCause, frozen=True, kw_only=True):
    """The driver publishes no capacity for a storage class, which counts as no capacity."""

    driver: str
    storage_class: str


def root_causes(diagnosis: Diagnosis) -> tuple[RootCause, ...]:
    """Return the distinct causes for an unschedulable pod, and failed provisioning for a schedulable one."""
    snapshot, pod = diagnosis.cycle.snapshot, diagnosis.cycle.pod
    reported = provisioning_reports(snapshot, pod) if snapshot.failed_creates else ()
    failed = tuple(
        RootCause(text=f"the last event of claim {claim.key}: {create.message}") for claim, create in reported if create
    )
    if diagnosis.feasible:
        return failed
    findings = [finding for stop in diagnosis.stops for finding in stop.status.findings]
    findings += [finding for group in diagnosis.groups for finding in group.exemplar.findings]
    found_causes = [cause for finding in findings for cause in _of(diagnosis, finding)]
    cycle = diagnosis.cycle
    nominees = _counted_nominees(diagnosis)
    causes: list[RootCause] = [
        *_gone(diagnosis),
        *_outdated(cycle),
        *(RootCause(text=why) for _, why in attached_elsewhere(snapshot, pod, "") if "ReadWriteOncePod" not in why),
        *_taken(cycle),
        *nominees,
        *_services(cycle, findings),
        *failed,
        *found_causes,
    ]
    causes += [*_virtual(cycle), *_unregistered(diagnosis), *_unpublished_capacity(cycle, findings)]
    return tuple(dict.fromkeys((*causes, *_reported(cycle))))


class NewerTemplate(Struct, frozen=True, kw_only=True):
    """The controller of a pod, which has a newer template and keeps the pod."""

    kind: str
    name: str
    why: str
    """`replaces this pod only once it is ready (OrderedReady)`."""
    is_deleted: bool = True
    """Whether the pod has to be deleted for the newer template."""
    partition: int = 0
    """The partition that keeps the pod at its revision; 0 if none does."""

    @property
    def owner(self) -> str:
        return f"{self.kind} {self.name}"


def newer_template(snapshot: Snapshot, pod: Pod) -> NewerTemplate | None:
    """Return the controller that does not replace a pending pod of an older template
    (pkg/controller/statefulset/stateful_set_control.go, pkg/controller/daemon/update.go)."""
    owner = pod.metadata.controller
    if owner is None or owner.kind not in ("StatefulSet", "DaemonSet"):
        return None
    raw = snapshot.workloads.get((owner.kind, pod.metadata.namespace, owner.name))
    if raw is None:
        return None
    labels, updated = pod.metadata.labels, stored_controller(raw)
    strategy = updated.spec.update_strategy
    if owner.kind == "DaemonSet":
        key, newest = TEMPLATE_GENERATION, updated.metadata.annotations.get(GENERATION_OF_TEMPLATE, "")
    else:
        key, newest = REVISION_HASH, updated.status.update_revision
    if not newest or labels.get(key, newest) == newest:
        return None
    if strategy.type == "OnDelete":
        why = "replaces this pod only once it is deleted (OnDelete)"
        return NewerTemplate(kind=owner.kind, name=owner.name, why=why)
    if owner.kind == "DaemonSet":
        return None
    ordinal, is_ordered = pod.metadata.name.rpartition("-")[2], updated.spec.pod_management_policy != "Parallel"
    if ordinal.isdecimal() and int(ordinal) < (partition := strategy.rolling_update.partition):
        why = f"keeps this pod at its own: partition is {partition}"
        return NewerTemplate(kind=owner.kind, name=owner.name, why=why, is_deleted=is_ordered, partition=partition)
    why = "replaces this pod only once it is ready (OrderedReady)"
    return NewerTemplate(kind=owner.kind, name=owner.name, why=why) if is_ordered else None


def newer_revision(snapshot: Snapshot, pod: Pod) -> str:
    """Return `StatefulSet web` if the deletion of its pod is enough for its newer revision."""
    template = newer_template(snapshot, pod)
    return template.owner if template is not None and template.kind == "StatefulSet" and not template.partition else ""


VIRTUAL_NODES = (
    (COMPUTE_TYPE, "fargate", "EKS Fargate"),
    ("type", "virtual-kubelet", "Virtual Kubelet"),
)


def _gone(diagnosis: Diagnosis) -> Iterator[NodeGone]:
    cycle, excluded = diagnosis.cycle, diagnosis.excluded
    if excluded is not None and len(excluded.names) == 1 and excluded.names[0] not in cycle.snapshot.cluster.index:
        owner, name = cycle.pod.metadata.controller, excluded.names[0]
        daemon_set = owner.name if owner is not None and owner.kind == "DaemonSet" else ""
        who = f"DaemonSet {daemon_set} created the pod for it" if daemon_set else "the pod names only this node"
        yield NodeGone(text=f"node {name} does not exist, and {who}", node=name, daemon_set=daemon_set)


def _virtual(cycle: Cycle) -> Iterator[VirtualNode]:
    cluster, owner = cycle.snapshot.cluster, cycle.pod.metadata.controller
    if owner is not None and owner.kind == "DaemonSet":
        row = cluster.index.get(name := pinned_to(cycle.pod.spec) or "")
        nodes = [] if row is None else [cluster.nodes[row]]
    else:
        name, nodes = "", list(cluster.nodes)
    for key, label, provider in VIRTUAL_NODES:
        if nodes and all(node.metadata.labels.get(key) == label for node in nodes):
            text = f"{provider} creates each node for a pod that it selects, and it has not selected this pod"
            if name:
                text = f"{name} is a node of {provider}, which runs no pods of DaemonSets"
            written = cycle.pod.metadata.annotations.get(key, label)
            if written != label and not name:
                text = f"its annotation {key}={written} keeps it off {provider}, which has all nodes"
            is_kept_off = written != label
            yield VirtualNode(text=text, key=key, value=label, provider=provider, node=name, kept_off=is_kept_off)


def _unregistered(diagnosis: Diagnosis) -> Iterator[DriverNotRegistered]:
    """Yield drivers on nodes that are in the volume's zone, as far as it is known."""
    storage, cycle = diagnosis.cycle.snapshot.storage, diagnosis.cycle
    for group in diagnosis.groups:
        mismatch = next(
            (finding for finding in group.exemplar.findings if isinstance(finding, VolumeNodeAffinityMismatch)), None
        )
        volume = None if mismatch is None else storage.volumes.get(mismatch.persistent_volume)
        driver = "" if volume is None or volume.spec.csi is None else volume.spec.csi.driver
        if mismatch is None or not driver or cycle.nodes is None:
            continue
        unmet = [
            requirement for term in mismatch.terms[:1] for requirement in term.requirements if not requirement.matched
        ]
        keys = {key for node in storage.csi_nodes.values() for key in _topology_keys(node, driver)}
        for row in group.rows[:MOST_NODES] if len(unmet) == 1 and unmet[0].key in keys else ():
            node, key = cycle.nodes.node(row), unmet[0].key
            zone, own = node.metadata.labels.get(ZONE), storage.csi_nodes.get(node.name)
            is_known = own is not None and any(csi_driver.name == driver for csi_driver in own.spec.drivers)
            is_there = zone is None or zone in unmet[0].values
            if key not in node.metadata.labels and not is_known and is_there:
                text = f"{driver} is not registered on {node.name}, so that the node has no label {key}"
                yield DriverNotRegistered(text=text, driver=driver, node=node.name)
                break


def _topology_keys(node: CSINode, driver: str) -> Iterator[str]:
    for csi_driver in node.spec.drivers:
        yield from csi_driver.topology_keys if csi_driver.name == driver else ()


def _unpublished_capacity(cycle: Cycle, findings: Iterable[Finding]) -> Iterator[CapacityNotPublished]:
    known = sorted(cycle.snapshot.storage.capacities_of_class)
    instead = f"; it is published for class {listed(known, 3)}" if known else ""
    for finding in findings:
        if isinstance(finding, InsufficientStorageCapacity) and not finding.capacity_count:
            name = finding.claim.storage_class
            none = f"{finding.driver} publishes no CSIStorageCapacity for class {name}, which counts as no storage"
            yield CapacityNotPublished(text=f"{none}{instead}", driver=finding.driver, storage_class=name)


def _outdated(cycle: Cycle) -> Iterator[RootCause]:
    is_stored = cycle.pod.key in cycle.snapshot.pods.rows
    if is_stored and (template := newer_template(cycle.snapshot, cycle.pod)) is not None:
        yield RootCause(text=f"{template.owner} has a newer revision, and {template.why}")


def _and_more(others: int) -> str:
    return f" and {count(others, 'more pod')}" if others else ""


def _taken(cycle: Cycle) -> Iterator[RootCause]:
    node, pods = cycle.pod.status.nominated_node_name, cycle.snapshot.pods
    if not node or node not in cycle.snapshot.cluster.index or not cycle.pod.metadata.creation_timestamp:
        return
    is_kept = (pods.node == cycle.snapshot.cluster.index[node]) & (pods.priorities >= cycle.pod.priority)
    since = cycle.pod.metadata.creation_timestamp
    rows = [row for row in np.flatnonzero(is_kept).tolist() if (pods.creation_timestamps[row] or "") > since]
    if rows:
        first = max(rows, key=lambda row: (int(pods.priorities[row]), pods.creation_timestamps[row] or ""))
        by = f"{pods.key(first)} (priority {pods.priorities[first]}){_and_more(len(rows) - 1)}"
        yield RootCause(text=f"nominated node {node} was taken: {by} runs there and is newer")


_SERVICE_LABELS = ("svccontroller.k3s.cattle.io/svcnamespace", "svccontroller.k3s.cattle.io/svcname")


def balanced_service(labels: Mapping[str, str]) -> str:
    """Return the Service, `namespace/name`, of a pod of k3s' load balancer (ServiceLB), or an empty string."""
    namespace, name = (labels.get(key, "") for key in _SERVICE_LABELS)
    return f"{namespace}/{name}" if namespace and name else ""


def _services(cycle: Cycle, findings: Iterable[Finding]) -> Iterator[PortOfService]:
    ports: dict[str, set[int]] = {}
    for finding in findings:
        row = cycle.snapshot.pods.rows.get(finding.holder) if isinstance(finding, HostPortConflict) else None
        if isinstance(finding, HostPortConflict) and row is not None:
            ports.setdefault(balanced_service(cycle.snapshot.pods.labels[row]), set()).add(finding.port)
    own = balanced_service(cycle.pod.metadata.labels)
    for service in filter(None, ports):
        used = tuple(sorted(ports[service]))
        numbers = f"host port{'' if len(used) == 1 else 's'} {listed(map(str, used), 4)}"
        text = f"k3s' load balancer (ServiceLB) uses {numbers} for Service {service}"
        yield PortOfService(text=text, ports=used, service=service, own_service=own)


def _of_namespace(cycle: Cycle, finding: NodeAffinityMismatch) -> Iterator[SelectorOfNamespace]:
    namespace = cycle.pod.metadata.namespace
    if finding.source != "nodeSelector":
        return
    unmatched = {
        (requirement.key, *requirement.values)
        for term in finding.terms
        for requirement in term.requirements
        if not requirement.matched
    }
    annotations, default = cycle.snapshot.namespace_annotations.get(namespace), cycle.snapshot.default_node_selector
    if annotations is None:
        return
    is_default = bool(default) and not {*SELECTOR_ANNOTATIONS} & {*annotations}
    for annotation, written in ({PROJECT_NODE_SELECTOR: default} if is_default else annotations).items():
        pairs = [tuple(map(str.strip, part.split("="))) for part in written.split(",")]
        if annotation in SELECTOR_ANNOTATIONS and unmatched & {*pairs}:
            whence = f"comes from annotation {annotation} of namespace {namespace}"
            if is_default:
                whence = "is spec.defaultNodeSelector of OpenShift's Scheduler cluster"
            text = f"node selector {written} {whence}"
            yield SelectorOfNamespace(text=text, namespace=namespace, annotation=annotation)


def _of_runtime_class(cycle: Cycle, finding: NodeAffinityMismatch) -> Iterator[RootCause]:
    """Yield the RuntimeClass that adds an unmet selector to its pods."""
    name = cycle.pod.spec.runtime_class_name or ""
    known = cycle.snapshot.runtime_classes.get(name)
    selector = known.scheduling.node_selector if known is not None and known.scheduling is not None else {}
    unmet = {item.key for term in finding.terms for item in term.requirements if not item.matched}
    for key in selector.keys() & unmet:
        yield RootCause(text=f"RuntimeClass {name} selects nodes with its runtime: {key}={selector[key]}")


def provisioning_reports(snapshot: Snapshot, pod: Pod) -> Iterator[tuple[PersistentVolumeClaim, RecordedEvent | None]]:
    """Yield the claims of a pod without a volume, each with its event, unless that belongs to an earlier claim with the
    same name."""
    for key in own_claims(pod):
        claim = snapshot.storage.claims.get(key)
        if claim is not None and not claim.spec.volume_name:
            report = snapshot.failed_creates.get(("PersistentVolumeClaim", claim.metadata.namespace, claim.name))
            yield claim, report if report is not None and report.uid in ("", claim.metadata.uid) else None


def _reported(cycle: Cycle) -> Iterator[RootCause]:
    """Yield an autoscaler's event if the snapshot lacks its groups, which would explain more."""
    snapshot, key = cycle.snapshot, cycle.pod.key
    scaling, provisioning = snapshot.autoscaler_events.get(key), snapshot.karpenter_events.get(key)
    if scaling is not None and AUTOSCALER_STATUS not in snapshot.config_maps:
        yield RootCause(text=f"cluster-autoscaler reports: {scaling.message}")
    if provisioning is not None and not snapshot.of(NodePool):
        yield RootCause(text=f"Karpenter reports: {provisioning.message}")


def _of(diagnosis: Diagnosis, finding: Finding) -> Iterator[RootCause]:
    cycle = diagnosis.cycle
    match finding:
        case InsufficientResource() if is_of_hami(cycle.snapshot, finding):
            phrase = "HAMi counts parts of a device, and no node publishes them"
            yield SharedByHami(text=f"{phrase}: {HAMI_SCHEDULER} has to schedule the pod")
        case InsufficientResource():
            yield from _resizes(diagnosis, finding)
            yield from _unfinished_resizes(diagnosis, finding)
            yield from partitioned(cycle.snapshot, finding)
            yield from of_other_vendors(cycle.snapshot, finding)
            yield from unhealthy(cycle.snapshot, finding.resource)
            yield from plugins_down(cycle.snapshot, cycle.all_nodes.options, finding.resource, diagnosis.hardware)
            yield from _never_preempts(diagnosis)
        case NodeAffinityMismatch():
            yield from _of_namespace(cycle, finding)
            yield from _of_runtime_class(cycle, finding)
        case TooManyPods():
            yield from _daemon_pods(diagnosis)
        case ClaimUnbound():
            yield from _unusable(cycle.snapshot, finding)
        case VolumeNodeAffinityMismatch(terms=terms):
            yield from _unreachable(cycle.snapshot.cluster, terms)
        case ClaimNotFound(ephemeral=False, claim=claim):
            namespace, _, name = claim.partition("/")
            others = sorted(key for key in cycle.snapshot.storage.claims if key.partition("/")[2] == name)
            if others:
                uses = f"a pod of namespace {namespace} uses only claims of that namespace"
                yield RootCause(text=f"claim {listed(others, 2)} exists, but {uses}")
        case InsufficientDevices(shortages=shortages):
            for shortage in shortages:
                if shortage.stage == "none":
                    yield from unpublished(cycle.snapshot, shortage.device_class)
                yield from (incomplete_pool(cycle.snapshot, pool) for pool in shortage.updating)
                yield from taint_rules(cycle.snapshot, shortage)
        case DeviceClaimNotCreated():
            yield from device_claim_refusal(cycle.snapshot, cycle.pod, finding)
        case ClaimInUse():
            yield from _shared_claim(cycle, finding)
        case VolumeLimitExceeded():
            yield from _unused_attachments(diagnosis)
        case GangTooSmall() | PodGroupIncomplete():
            owner = cycle.pod.metadata.controller
            controller = owner and (owner.kind, cycle.pod.metadata.namespace, owner.name)
            event = cycle.snapshot.failed_creates.get(controller) if controller else None
            if owner is not None and event is not None and event.uid in ("", owner.uid):
                why = event.message.removeprefix("Error creating: ")
                text = f"{owner.kind} {owner.name} cannot create the others: {why}"
                yield MembersNotCreated(text=text, message=why)
        case TopologySpreadSkew():
            yield from _others_counted(cycle, finding)
        case ExistingAntiAffinityConflict():
            yield from _covered_namespace(cycle, finding)
        case PodAffinityUnsatisfied(matches_itself=False):
            yield from _absent_matches(cycle, finding)
            yield from _unselected_namespaces(cycle, finding)
        case PodAntiAffinityConflict(term=term) if misses_pod(cycle.pod, term):
            missed = f"the labelSelector of podAntiAffinity term {term + 1} ({finding.selector})"
            yield RootCause(text=f"{missed} does not match the pod itself: it avoids other pods")
        case _:
            return


def _shared_claim(cycle: Cycle, finding: ClaimInUse) -> Iterator[RootCause]:
    own, row = cycle.pod.metadata.controller, cycle.snapshot.pods.rows.get(finding.holder)
    if own is not None and row is not None and own in cycle.snapshot.pods.owners[row]:
        yield SharedClaim(text=f"the pods of {own.kind} {own.name} share this claim", claim=finding.claim)


def _unreachable(cluster: ClusterNodes, terms: Sequence[TermMatch]) -> Iterator[RootCause]:
    """Yield that the node of a volume is gone, or that its zone has no nodes."""
    gone = {ZONE: "no node is in zone {}", HOSTNAME: "node {} does not exist, and the volume is on its disks"}
    for requirement in terms[0].requirements if terms else ():
        if requirement.key in gone and not {*requirement.values} & {*cluster.label(requirement.key).values}:
            yield RootCause(text=gone[requirement.key].format(listed(requirement.values, 2)))


def _unusable(snapshot: Snapshot, finding: ClaimUnbound) -> Iterator[RootCause]:
    """Yield the causes for a claim whose class does not provision volumes, so that an existing volume has to match."""
    claim = snapshot.storage.claims.get(finding.claim.claim)
    storage_class = None if claim is None else snapshot.storage.classes.get(claim.storage_class)
    is_provisioned = storage_class is not None and storage_class.can_provision
    if claim is None or finding.cause == "class-missing" or (is_provisioned and not claim.spec.volume_name):
        return
    try:
        nearest = VolumeSearch(claim, snapshot.storage, attributes_classes=True).nearest(frozenset())
    except SearchError:
        return
    named = claim.spec.volume_name
    volume = next((candidate for candidate in nearest if not named or candidate.name == named), None)
    if volume is not None and (why := _why_lost(volume, claim.key)):
        about = f"volume {volume.name}, which claim {claim.key} names," if named else f"volume {volume.name}"
        yield RootCause(text=f"{about} {why}")


def _why_lost(volume: VolumeCandidate, claim: str) -> str:
    """Return why the volume does not match, or an empty string for other reasons."""
    reserved = "is Released: it still has the claimRef of an earlier claim of that name"
    why = {
        "access-modes": f"has the access modes {volume.detail}",
        "bound-to-another-claim": reserved if volume.detail == claim else f"is bound to claim {volume.detail}",
        "selector": "is not selected by the claim",
        "too-small": f"has only {format_quantities((volume.capacity,), Unit.BYTE)[0]}",
        "volume-mode": f"has volumeMode {volume.detail}",
        "not-available": f"is {volume.detail}",
    }
    return why.get(volume.lost, "")


def _never_preempts(diagnosis: Diagnosis) -> Iterator[RootCause]:
    pod, pods = diagnosis.cycle.pod, diagnosis.cycle.snapshot.pods
    if pod.spec.preemption_policy != PREEMPT_NEVER:
        return
    is_there = np.isin(pods.node, [*_rejected(diagnosis, InsufficientResource)])
    if np.any(is_there & (pods.priorities < pod.priority)):
        name = pod.spec.priority_class_name
        named = f"PriorityClass {name} has" if name else "the pod has"
        yield RootCause(text=f"{named} preemptionPolicy Never, so that no pod of a lower priority is evicted")


def _absent_matches(cycle: Cycle, finding: PodAffinityUnsatisfied) -> Iterator[RootCause]:
    """Yield the selected pods if all of them have ended or have no node. Otherwise a running one's domain is out of
    reach."""
    affinity = cycle.pod.spec.affinity or Affinity()
    terms = (affinity.pod_affinity or PodAffinity()).required_during_scheduling_ignored_during_execution
    if finding.term >= len(terms):
        return
    pods, selector = cycle.snapshot.pods, compile_selector(terms[finding.term].label_selector)
    inside = pods.labels.where(selector.matches)
    if not finding.every_namespace:
        inside &= pods.namespaces.where(lambda name: name in finding.namespaces)
    rows = [row for row in np.flatnonzero(inside).tolist() if pods.key(row) != cycle.pod.key]
    left = [row for row in rows if pods.phases[row] not in ("Succeeded", "Failed")]
    if not rows or any(pods.node_names[row] for row in left):
        return
    key, others = pods.key((left or rows)[0]), len(left or rows) - 1
    text = f"podAffinity term {finding.term + 1} selects {key}{_and_more(others)}, which"
    if left:
        verb = "have no node themselves" if others else "has no node itself"
        yield MatchingPodPending(text=f"{text} {verb}", pod=key)
    else:
        yield RootCause(text=f"{text} {'have' if others else 'has'} ended and {'do' if others else 'does'} not count")


def _unselected_namespaces(cycle: Cycle, finding: PodAffinityUnsatisfied) -> Iterator[RootCause]:
    """Yield the namespace with the pods that a term selects, if it looks only in others."""
    affinity = cycle.pod.spec.affinity or Affinity()
    terms = (affinity.pod_affinity or PodAffinity()).required_during_scheduling_ignored_during_execution
    if finding.term >= len(terms) or finding.every_namespace:
        return
    pods, term = cycle.snapshot.pods, terms[finding.term]
    rows = np.flatnonzero((pods.node >= 0) & pods.labels.where(compile_selector(term.label_selector).matches))
    there = sorted({pods.namespaces[int(row)] for row in rows})
    if not there or {*there} & {*finding.namespaces}:
        return
    inside = f"in namespace {listed(finding.namespaces, 2)}"
    if term.namespace_selector is not None:
        inside = f"in namespaces with {compile_selector(term.namespace_selector)}"
    chosen = f"podAffinity term {finding.term + 1} selects pods only {inside}"
    yield RootCause(text=f"{chosen}; pods {finding.selector} run in namespace {there[0]}")


def _others_counted(cycle: Cycle, finding: TopologySpreadSkew) -> Iterator[RootCause]:
    """Yield the other workloads whose pods a constraint of the pod counts, or that it does not count the pod itself."""
    if not finding.itself:
        missed = f"the labelSelector of the spread constraint over {finding.topology_key} does not match the pod itself"
        yield RootCause(text=f"{missed}: it counts other pods")
        return
    constraints, pods = cycle.pod.spec.topology_spread_constraints, cycle.snapshot.pods
    maker = _maker(cycle.pod.metadata)
    if finding.constraint >= len(constraints) or not maker:
        return
    constraint, labels = constraints[finding.constraint], cycle.pod.metadata.labels
    selector, own = (
        compile_selector(constraint.label_selector),
        {key: labels.get(key) for key in constraint.match_label_keys},
    )
    counted = (pods.node >= 0) & pods.namespaces.where(lambda name: name == cycle.pod.metadata.namespace)
    counted &= pods.labels.where(lambda other: selector.matches(other) and own.items() <= other.items())
    others = Counter(_maker(pods[row].metadata) or f"pod {pods.names[row]}" for row in np.flatnonzero(counted).tolist())
    del others[maker]
    if others:
        (name, number), more = others.most_common(1)[0], len(others) - 1
        text = f"the spread constraint over {finding.topology_key} also counts {count(number, 'pod')} of {name}"
        yield RootCause(text=f"{text}{_and_more(more)}")


def _maker(metadata: ObjectMeta) -> str:
    """Return the controller of a pod, `Deployment web` for its ReplicaSets; empty without a controller."""
    owner, template = metadata.controller, metadata.labels.get(TEMPLATE_HASH)
    if owner is None:
        return ""
    is_of_deployment = owner.kind == "ReplicaSet" and template and owner.name.endswith(f"-{template}")
    return f"Deployment {owner.name.removesuffix(f'-{template}')}" if is_of_deployment else f"{owner.kind} {owner.name}"


def _covered_namespace(cycle: Cycle, finding: ExistingAntiAffinityConflict) -> Iterator[RootCause]:
    """Yield the field by which the anti-affinity of a pod in another namespace covers this pod."""
    namespace, first = cycle.pod.metadata.namespace, finding.pods[0]
    if first.partition("/")[0] == namespace:
        return
    pods = cycle.snapshot.pods
    affinity = pods.specs[pods.rows[first]].affinity or Affinity()
    terms = (affinity.pod_anti_affinity or PodAffinity()).required_during_scheduling_ignored_during_execution
    if finding.term < len(terms):
        field = "namespaces" if namespace in terms[finding.term].namespaces else "namespaceSelector"
        yield RootCause(text=f"the anti-affinity of {first} covers namespace {namespace} by its {field}")


def misses_pod(pod: Pod, term: int) -> bool:
    """Return whether a required podAntiAffinity term selects only other pods, and no other term separates the pod from
    its own kind. Such a rule was probably copied, unless it is about a neighbor or excludes its own kind by NotIn."""
    affinity = pod.spec.affinity or Affinity()
    rules = affinity.pod_anti_affinity or PodAffinity()
    terms = rules.required_during_scheduling_ignored_during_execution
    if term >= len(terms) or any(compile_selector(term.label_selector).matches(pod.metadata.labels) for term in terms):
        return False
    results = compile_selector(terms[term].label_selector).explain(pod.metadata.labels)
    return any(not result.matched and result.requirement.operator not in _LEAVES_OUT for result in results)


_LEAVES_OUT = ("NotIn", "DoesNotExist")


def _rejected(diagnosis: Diagnosis, kind: type[Finding]) -> Iterator[ClusterRow]:
    """Yield some of the nodes that are rejected for a reason of this type."""
    nodes = diagnosis.cycle.nodes
    if nodes is None:
        return
    for group in diagnosis.groups:
        if any(isinstance(finding, kind) for finding in group.exemplar.findings):
            for row in group.rows[:MOST_NODES]:
                yield nodes.cluster_row(row)


def _resizes(diagnosis: Diagnosis, finding: InsufficientResource) -> Iterator[ResizePending]:
    names = diagnosis.cycle.all_nodes.cluster.names
    at = {names[row] for row in _rejected(diagnosis, InsufficientResource)}
    yield from (
        pending for pending in pending_resizes(diagnosis.cycle.snapshot, finding.resource) if pending.node in at
    )


def _unfinished_resizes(diagnosis: Diagnosis, finding: InsufficientResource) -> Iterator[RootCause]:
    """Yield a pod with lower requests than its node still has allocated for it, which count until then."""
    pods, resource = diagnosis.cycle.snapshot.pods, finding.resource
    is_reported = pods.statuses.where(lambda status: any(its.allocated_resources for its in status.container_statuses))
    for node in _rejected(diagnosis, InsufficientResource) if is_reported.any() else ():
        on_node = pods.on_node(node)
        for row in on_node[is_reported[on_node]].tolist():
            requested, allocated = _requested(pods[row], resource), allocated_amount(pods[row], resource)
            if allocated > requested:
                needs, has = format_quantities((requested, allocated), Unit.of(resource))
                name = "CPU" if resource == "cpu" else resource
                text = f"{pods.key(row)} on {pods.node_names[row]} still has {has} {name} allocated"
                yield RootCause(text=f"{text}, which counts: its resize to {needs} is not complete")
                return


def pending_resizes(snapshot: Snapshot, resource: str) -> Iterator[ResizePending]:
    pods = snapshot.pods
    pending = pods.statuses.where(lambda status: condition_of(status.conditions, RESIZE_PENDING, "True") is not None)
    if not pending.any():
        return
    for row in np.flatnonzero(pending).tolist():
        pod = pods[row]
        requested, allocated = _requested(pod, resource), allocated_amount(pod, resource)
        condition = condition_of(pod.status.conditions, RESIZE_PENDING, "True")
        if condition is not None and requested > allocated:
            needs, has = format_quantities((requested, allocated), Unit.of(resource))
            name, node = "CPU" if resource == "cpu" else resource, pods.node_names[row]
            counts = ", which counts," if condition.reason != "Infeasible" else " in vain,"
            amounts = f"it requests {needs} {name}{counts} and has {has} allocated"
            text = f"the resize of {pod.key} on {node} is {condition.reason}: {amounts}"
            yield ResizePending(text=text, pod=pod.key, node=node)


def _requested(pod: Pod, resource: str) -> int:
    quantity = container_requests(pod.spec).get(resource)
    return 0 if quantity is None else quantity.milli_value() if resource == "cpu" else quantity.value()


def allocated_amount(pod: Pod, resource: str, container: str = "") -> int:
    """Return what the kubelet has allocated to a container, or to all."""
    total = 0
    for status in pod.status.container_statuses:
        given = status.allocated_resources or (status.resources.requests if status.resources is not None else {})
        total += resource_amount(resource, given.get(resource)) if container in ("", status.name) else 0
    return total


def _daemon_pods(diagnosis: Diagnosis) -> Iterator[RootCause]:
    """Yield nodes that are full of DaemonSets' pods."""
    snapshot, nodes = diagnosis.cycle.snapshot, diagnosis.cycle.all_nodes
    most, text = 0, ""
    for row in _rejected(diagnosis, TooManyPods):
        rows = snapshot.pods.on_node(row).tolist()
        daemons = sum(
            any(owner.kind == "DaemonSet" and owner.controller for owner in snapshot.pods.owners[pod]) for pod in rows
        )
        if 2 * daemons > len(rows) and daemons > most:
            allowed = int(resource_amount("pods", snapshot.cluster.nodes[row].status.allocatable.get("pods")))
            on_node = f"the {count(len(rows), 'pod')} on {nodes.cluster.names[row]}"
            most, text = daemons, f"{daemons:,} of {on_node} belong to DaemonSets; the node allows {allowed:,}"
    if most:
        yield RootCause(text=text)


def _unused_attachments(diagnosis: Diagnosis) -> Iterator[RootCause]:
    """Yield a node with attached volumes that none of its pods uses."""
    for group in diagnosis.groups:
        exceeded = (finding for finding in group.exemplar.findings if isinstance(finding, VolumeLimitExceeded))
        for finding in exceeded:
            unused = [holder.volume for holder in finding.holders if not holder.pods]
            if unused:
                text = f"{len(unused):,} of {count(finding.attached, 'volume')} attached to {group.exemplar.name}"
                yield RootCause(
                    text=f"{text} {'has' if len(unused) == 1 else 'have'} no pod there: {listed(unused, 3)}"
                )
                return


def _counted_nominees(diagnosis: Diagnosis) -> Iterator[RootCause]:
    """Yield the nominated pods without which a node would have room."""
    cycle = diagnosis.cycle
    pods = cycle.snapshot.pods
    counting = [
        group for group in diagnosis.groups if any(blocker.with_nominated for blocker in group.exemplar.blockers)
    ]
    names = (
        {cycle.nodes.node(row).name for node_group in counting for row in node_group.rows}
        if cycle.nodes is not None
        else set()
    )
    rows = [
        row
        for row in pods.pending
        if pods.nominated_node_names[row] in names
        and pods.priorities[row] >= cycle.pod.priority
        and pods.key(row) != cycle.pod.key
    ]
    if rows:
        first = max(rows, key=lambda row: int(pods.priorities[row]))
        node, others = pods.nominated_node_names[first], len(rows) - 1
        phrase = f"{pods.key(first)} (priority {pods.priorities[first]}) is nominated to {node}"
        counts = (
            f", as {'is' if others == 1 else 'are'} {count(others, 'more pod')}: they count"
            if others
            else ": it counts"
        )
        yield RootCause(text=f"{phrase}{counts} there as if {'they' if others else 'it'} ran")
