"""The cause behind a rejection, if the cluster's objects show it, such as a pending resize or partitioned hardware."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec import Struct

from kschedx import findings as f
from kschedx.apiserver.admission import PROJECT_NODE_SELECTOR, SELECTOR_ANNOTATIONS
from kschedx.apiserver.pod_classes import PREEMPT_NEVER
from kschedx.explain.advice import Advice, FixGroup, RootCause, root_cause
from kschedx.explain.agent_labels import lacks_feature_labels, lost_labels, unlabeled_hardware
from kschedx.explain.claim_causes import claim_causes, shared_by_replicas
from kschedx.explain.creators import members_not_created, not_passed_on, piled_up_jobs
from kschedx.explain.device_classes import device_claim_refusal, failed_selector, unmapped_classes, unused_claims
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.elastic_quotas import elastic_quota
from kschedx.explain.hardware import (
    container_state,
    counted_by_extender,
    idle_plugins,
    idle_profiles,
    incomplete_pool,
    is_of_hami,
    missing_driver,
    missing_features,
    other_vendor_causes,
    partitioned_resources,
    plugins_down,
    reserved_memory,
    taint_rules,
    unhealthy,
    unpublished_devices,
    used_slices,
)
from kschedx.explain.pod_selectors import (
    absent_matches,
    covered_namespace,
    exclusive_topology,
    misses_pod,
    others_counted,
    refused_members,
    unselected_namespaces,
    waiting_groups,
)
from kschedx.explain.preemption_causes import counted_nominees, lost_nomination, preempted_before
from kschedx.framework.cycle import Cycle
from kschedx.kube.autoscalers import COMPUTE_TYPE, FARGATE_SCHEDULER, HAMI_SCHEDULER, ComputeClass, NodePool
from kschedx.kube.conditions import condition_of, condition_text
from kschedx.kube.controllers import stored_metadata
from kschedx.kube.documents import Target
from kschedx.kube.escaping import shell_command
from kschedx.kube.kubectl import delete_pod
from kschedx.kube.names import HOSTNAME, ZONE, ZONE_LABELS
from kschedx.kube.quantity import Unit, format_quantities, resource_amount
from kschedx.kube.resources import requested_amount
from kschedx.kube.scalars import parse_int64
from kschedx.kube.selectors import Operator, compile_selector, terms_of
from kschedx.kube.storage import CSINode, PersistentVolumeClaim, identifying_parts
from kschedx.kube.types import AUTOSCALER_STATUS, Node, Pod
from kschedx.kube.typos import nearest_name
from kschedx.kube.workloads import GENERATION_OF_TEMPLATE, REVISION, REVISION_HASH, TEMPLATE_GENERATION, pinned_to
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.events import RecordedEvent
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.storage import Storage
from kschedx.wording import count, list_names

RESIZE_PENDING = "PodResizePending"
_MOST_NODES = 50  # the maximum number of nodes of a group that are searched for a cause


class _ResizePending(RootCause, frozen=True, kw_only=True):
    """kube-scheduler counts the larger of a pod's requests and the resources that its node has allocated."""

    pod: str
    node: str


class SelectorOfNamespace(RootCause, frozen=True, kw_only=True):
    """Admission adds the node selector of a namespace's annotation, or OpenShift's default, to each of its pods."""


class DriverNotRegistered(RootCause, frozen=True, kw_only=True):
    """A node lacks the topology label of a volume, which the driver's node plugin sets."""

    driver: str
    node: str


def root_causes(diagnosis: Diagnosis) -> tuple[RootCause, ...]:
    """Return the distinct causes for an unschedulable pod; for another, failed provisioning, what a constraint counts
    that leaves it one node, and what keeps it from the queue."""
    snapshot, pod = diagnosis.cycle.snapshot, diagnosis.cycle.pod
    reported = provisioning_reports(snapshot, pod) if snapshot.failed_creates else ()
    failed = tuple(
        RootCause(text=f"the last event of claim {claim.key}: {create.message}") for claim, create in reported if create
    )
    findings = [finding for stop in diagnosis.stops for finding in stop.status.findings]
    if diagnosis.feasible:
        skews = (it for it in diagnosis.findings if isinstance(it, f.TopologySpreadSkew) and diagnosis.feasible == 1)
        counted = (cause for skew in skews for cause in others_counted(diagnosis.cycle, skew))
        held = (cause for finding in findings for cause in _of(diagnosis, finding))
        return tuple(dict.fromkeys((*failed, *counted, *held)))
    findings += diagnosis.findings
    found_causes = [cause for finding in findings for cause in _of(diagnosis, finding)]
    cycle = diagnosis.cycle
    nominees = (*counted_nominees(diagnosis), *preempted_before(cycle, findings))
    causes: list[RootCause] = [
        *_missing_node(diagnosis),
        *_newer_revision(cycle),
        *shared_by_replicas(snapshot, pod),
        *lost_nomination(cycle),
        *nominees,
        *_services(cycle, findings),
        *failed,
        *found_causes,
        *exclusive_topology(pod, findings),
        *waiting_groups(cycle, findings),
        *refused_members(cycle),
    ]
    causes += [
        *_compute_class(cycle),
        *_virtual(cycle),
        *_unregistered_drivers(diagnosis),
        *_unpublished_capacity(cycle, findings),
    ]
    causes += map(root_cause, autoscaler_reports(cycle.snapshot, cycle.pod.key))
    return tuple(dict.fromkeys(causes))


_COMPUTE_CLASS = "cloud.google.com/compute-class"


def _compute_class(cycle: Cycle) -> Iterator[RootCause]:
    """Yield that a pod of GKE selects a ComputeClass that is misspelled, or that reports a problem."""
    name = cycle.pod.spec.node_selector.get(_COMPUTE_CLASS, "")
    classes = {it.name: it for it in cycle.snapshot.of(ComputeClass)} if name else {}
    if name in classes:
        conditions = classes[name].status.conditions
        untrue = [condition for condition in conditions if condition.status == "False" and condition.message]
        for condition in untrue[:1]:
            text = f"ComputeClass {name}: {condition_text(condition)}"
            yield root_cause(text, f"correct ComputeClass {name}", by_default=FixGroup.CLUSTER)
    elif meant := nearest_name(name, classes):
        text = f"there is no ComputeClass {name} (did you mean {meant}?)"
        yield root_cause(text, f"require {_COMPUTE_CLASS}={meant} instead of {name}")


class NewerTemplate(Struct, frozen=True, kw_only=True):
    """The controller of a pod, which has a newer template and keeps the pod."""

    kind: str
    name: str
    why: str  # `replaces this pod only once it is ready (OrderedReady)`
    is_deleted: bool = True  # whether the pod has to be deleted for the newer template
    partition: int = 0  # the partition that keeps the pod at its revision; 0 if none does
    index: int = 0  # the pod's ordinal, counted from the first: the largest partition that updates it

    @property
    def owner(self) -> str:
        return f"{self.kind} {self.name}"


def newer_template(snapshot: Snapshot, pod: Pod) -> NewerTemplate | None:
    """Return the controller that does not replace a pending pod of an older template
    (pkg/controller/statefulset/stateful_set_control.go, pkg/controller/daemon/update.go)."""
    owner, updated = pod.metadata.controller, snapshot.controller_of(pod, "StatefulSet", "DaemonSet")
    if owner is None or updated is None:
        return None
    labels = pod.metadata.labels
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
    ordinal = parse_int64(pod.metadata.name.rpartition("-")[2])
    partition, is_ordered = strategy.rolling_update.partition, updated.spec.pod_management_policy != "Parallel"
    if ordinal is not None and (index := ordinal - updated.spec.first_ordinal) < partition:
        why = f"keeps this pod at its own: partition is {partition}"
        return NewerTemplate(
            kind=owner.kind, name=owner.name, why=why, is_deleted=is_ordered, partition=partition, index=index
        )
    why = "replaces this pod only once it is ready (OrderedReady)"
    return NewerTemplate(kind=owner.kind, name=owner.name, why=why) if is_ordered else None


def superseding(snapshot: Snapshot, pod: Pod) -> str:
    """Return the name of the Deployment that deletes a pod of an earlier ReplicaSet in its rollout; empty if there is
    none, or if a pod of its newest ReplicaSet is pending as well. Both have the revision of their template in an
    annotation (pkg/controller/deployment/util)."""
    owner, namespace = pod.metadata.controller, pod.metadata.namespace
    if owner is None or owner.kind != "ReplicaSet":
        return ""
    replica_set = snapshot.workloads.get(("ReplicaSet", namespace, owner.name))
    above = None if replica_set is None else stored_metadata(replica_set).controller
    if replica_set is None or above is None or above.kind != "Deployment":
        return ""
    deployment = snapshot.workloads.get(("Deployment", namespace, above.name))
    own = parse_int64(stored_metadata(replica_set).annotations.get(REVISION, ""))
    newest = None if deployment is None else parse_int64(stored_metadata(deployment).annotations.get(REVISION, ""))
    if own is None or newest is None or own >= newest:
        return ""
    pods = snapshot.pods
    pending = {owner.name for row in pods.pending if pods.namespaces[row] == namespace for owner in pods.owners[row]}
    others = (raw for (kind, where, name), raw in snapshot.workloads.items() if where == namespace and name in pending)
    is_held = any(
        other.controller is not None
        and other.controller.name == above.name
        and parse_int64(other.annotations.get(REVISION, "")) == newest
        for other in map(stored_metadata, others)
    )
    return "" if is_held else above.name


def newer_revision(snapshot: Snapshot, pod: Pod) -> str:
    """Return `StatefulSet web` if the deletion of its pod is enough for its newer revision."""
    template = newer_template(snapshot, pod)
    return template.owner if template is not None and template.kind == "StatefulSet" and not template.partition else ""


_EKS_FARGATE = "EKS Fargate"
_VIRTUAL_NODES = ((COMPUTE_TYPE, "fargate", _EKS_FARGATE), ("type", "virtual-kubelet", "Virtual Kubelet"))


def virtual_node(node: Node) -> tuple[str, str, str] | None:
    """Return the label, key and value, and the provider of a node on which it never runs pods of DaemonSets."""
    return next((each for each in _VIRTUAL_NODES if node.metadata.labels.get(each[0]) == each[1]), None)


def _missing_node(diagnosis: Diagnosis) -> Iterator[RootCause]:
    """Yield that the pod is for one node alone, which does not exist."""
    cycle, excluded = diagnosis.cycle, diagnosis.excluded
    if excluded is not None and len(excluded.names) == 1 and excluded.names[0] not in cycle.snapshot.cluster.index:
        owner, name = cycle.pod.metadata.controller, excluded.names[0]
        daemon_set = f"DaemonSet {owner.name}" if owner is not None and owner.kind == "DaemonSet" else ""
        who = f"{daemon_set} created the pod for it" if daemon_set else "the pod names only this node"
        title = f"restore node {name}; if it is gone for good, {daemon_set} deletes the pod" if daemon_set else ""
        yield root_cause(f"node {name} does not exist, and {who}", title, leaves_no_node=bool(daemon_set))


def off_virtual_nodes(daemon_set: str, key: str, value: str, provider: str) -> str:
    """Return the title of the fix for a DaemonSet whose pods a provider's nodes do not run."""
    return f"keep DaemonSet {daemon_set} off nodes of {provider}: require {key} NotIn [{value}] in its nodeAffinity"


def _virtual(cycle: Cycle) -> Iterator[RootCause]:
    """Yield that all nodes, or the one for which a DaemonSet created the pod, have no machine of their own."""
    cluster, owner = cycle.snapshot.cluster, cycle.pod.metadata.controller
    if owner is not None and owner.kind == "DaemonSet":
        row = cluster.index.get(name := pinned_to(cycle.pod.spec) or "")
        nodes = [] if row is None else [cluster.nodes[row]]
    else:
        name, nodes = "", list(cluster.nodes)
    for key, label, provider in _VIRTUAL_NODES:
        annotations = cycle.pod.metadata.annotations if provider == _EKS_FARGATE else {}
        is_kept_off = not cluster.nodes and key in annotations  # and Fargate creates the nodes
        if not (nodes or is_kept_off) or any(node.metadata.labels.get(key) != label for node in nodes):
            continue
        if name and owner is not None:
            text = f"{name} is a node of {provider}, which runs no pods of DaemonSets"
            yield root_cause(text, off_virtual_nodes(owner.name, key, label, provider), leaves_no_node=True)
            continue
        written = annotations.get(key, label)
        if written == label and cycle.pod.spec.scheduler_name == FARGATE_SCHEDULER:
            continue  # a profile has selected the pod: its webhook sets this name
        text = f"{provider} creates each node for a pod that it selects, and it has not selected this pod"
        if written != label:
            text = f"its annotation {key}={written} keeps it off {provider}{', which has all nodes' if nodes else ''}"
        advice = Advice(
            title=_fargate_advice(key if written != label else "", cycle.pod.metadata.namespace),
            by_default=FixGroup.CLUSTER if written == label else FixGroup.WORKLOAD,
            is_second_to_nodes=written != label
            and (AUTOSCALER_STATUS in cycle.snapshot.config_maps or bool(cycle.snapshot.of(NodePool))),
        )
        yield RootCause(text=text, advice=(advice,) if provider == _EKS_FARGATE else ())


def _fargate_advice(annotation: str, namespace: str) -> str:
    """Return what lets EKS Fargate run a pod, which an annotation may keep off it."""
    if annotation:
        selects = f"a Fargate profile selects namespace {namespace} and its labels"
        return f"remove annotation {annotation} from the pod's template, if {selects}"
    return f"create a Fargate profile that selects namespace {namespace} and the pod's labels, and recreate the pod"


def _unregistered_drivers(diagnosis: Diagnosis) -> Iterator[RootCause]:
    """Yield drivers on nodes that only the volume excludes and that are in its zone, as far as it is known, and why
    their node plugins do not run."""
    storage, cycle = diagnosis.cycle.snapshot.storage, diagnosis.cycle
    for group in diagnosis.groups:
        mismatches = [
            item
            for item in group.exemplar.findings
            if isinstance(item, f.VolumeNodeAffinityMismatch | f.ProvisioningTopologyMismatch)
        ]
        mismatch = next(iter(mismatches), None) if len(mismatches) == len(group.exemplar.findings) else None
        driver = "" if mismatch is None else _driver_of(mismatch, storage)
        if mismatch is None or not driver or cycle.nodes is None:
            continue
        unmet = [requirement for it in mismatch.terms[:1] for requirement in it.requirements if not requirement.matched]
        keys = {key for node in storage.csi_nodes.values() for key in _topology_keys(node, driver)}
        for row in group.rows[:_MOST_NODES] if len(unmet) == 1 else ():
            node, key = cycle.nodes.node(row), unmet[0].key
            zone, own = node.metadata.labels.get(ZONE), storage.csi_nodes.get(node.name)
            if key not in keys and (own is None or not key.partition("/")[0].endswith(driver)):
                continue
            is_known = own is not None and any(csi_driver.name == driver for csi_driver in own.spec.drivers)
            is_there = zone is None or zone in unmet[0].values
            if key not in node.metadata.labels and not is_known and is_there:
                text = f"{driver} is not registered on {node.name}, so that the node has no label {key}"
                yield DriverNotRegistered(text=text, driver=driver, node=node.name)
                yield from _failing_node_plugin(cycle.snapshot, driver, node.name)
                break


def _failing_node_plugin(snapshot: Snapshot, driver: str, node: str) -> Iterator[RootCause]:
    """Yield the first pod of a DaemonSet on a node that is named like the driver and does not run."""
    pods, parts = snapshot.pods, next(filter(None, map(identifying_parts, driver.split("."))), ())  # the most specific
    for row in pods.on_node(snapshot.cluster.index[node]).tolist():
        is_agent = "csi" in pods.names[row] and any(owner.kind == "DaemonSet" for owner in pods.owners[row])
        if is_agent and any(part in pods.names[row] for part in parts) and (why := container_state(pods[row])):
            yield RootCause(text=f"its node plugin {pods.key(row)} does not run: {why}")
            return


def _driver_of(mismatch: f.VolumeNodeAffinityMismatch | f.ProvisioningTopologyMismatch, storage: Storage) -> str:
    """Return the CSI driver of a volume that exists or is to be provisioned; empty if it is of another type."""
    if isinstance(mismatch, f.ProvisioningTopologyMismatch):
        return mismatch.provisioner
    volume = storage.volumes.get(mismatch.persistent_volume)
    return "" if volume is None or volume.spec.csi is None else volume.spec.csi.driver


def _topology_keys(node: CSINode, driver: str) -> Iterator[str]:
    for csi_driver in node.spec.drivers:
        yield from csi_driver.topology_keys if csi_driver.name == driver else ()


def _unpublished_capacity(cycle: Cycle, findings: Iterable[f.Finding]) -> Iterator[RootCause]:
    """Yield drivers that publish no capacity for a storage class."""
    known = sorted(cycle.snapshot.storage.capacities_of_class)
    instead = f"; it is published for class {list_names(known, 3)}" if known else ""
    for finding in findings:
        if isinstance(finding, f.InsufficientStorageCapacity) and not finding.capacity_count:
            name, driver = finding.claim.storage_class, finding.driver
            none = f"{driver} publishes no CSIStorageCapacity for class {name}, which counts as no storage"
            where = f"the parameters of class {name}, and the driver's controller"
            title = f"repair {driver}, so that it publishes capacity for class {name}: check {where}"
            yield root_cause(f"{none}{instead}", title, by_default=FixGroup.CLUSTER)


def _newer_revision(cycle: Cycle) -> Iterator[RootCause]:
    is_stored = cycle.pod.key in cycle.snapshot.pods.rows
    if is_stored and (template := newer_template(cycle.snapshot, cycle.pod)) is not None:
        yield RootCause(text=f"{template.owner} has a newer revision, and {template.why}")
    if is_stored and (name := superseding(cycle.snapshot, cycle.pod)):
        yield RootCause(text=f"Deployment {name} has a newer template: its rollout deletes this pod of an earlier one")


_SERVICE_LABELS = ("svccontroller.k3s.cattle.io/svcnamespace", "svccontroller.k3s.cattle.io/svcname")


def balanced_service(labels: Mapping[str, str], namespace: str) -> str:
    """Return the Service, `namespace/name`, of a pod of k3s' load balancer (ServiceLB), or an empty string. Early
    versions run the pod in the namespace of the Service, and name only the Service."""
    of_label, name = (labels.get(key, "") for key in _SERVICE_LABELS)
    return f"{of_label or namespace}/{name}" if name else ""


def _services(cycle: Cycle, findings: Iterable[f.Finding]) -> Iterator[RootCause]:
    """Yield the Services of which pods of k3s' load balancer use a host port for each port."""
    ports: dict[str, set[int]] = {}
    own = balanced_service(cycle.pod.metadata.labels, cycle.pod.metadata.namespace)
    for finding in findings:
        row = cycle.snapshot.pods.rows.get(finding.holder) if isinstance(finding, f.HostPortConflict) else None
        if isinstance(finding, f.HostPortConflict) and row is not None:
            its = balanced_service(cycle.snapshot.pods.labels[row], cycle.snapshot.pods.namespaces[row])
            user = f"Service {its}" if its else f"pod {finding.holder}" if own else ""
            ports.setdefault(user, set()).add(finding.port)
    for user in filter(None, ports):
        used = tuple(sorted(ports[user]))
        numbers = f"host port{'' if len(used) == 1 else 's'} {list_names(map(str, used), 4)}"
        balancer, is_pod = "k3s' load balancer (ServiceLB)", user.startswith("pod ")
        text = f"{user} uses {numbers}" if is_pod else f"{balancer} uses {numbers} for {user}"
        text += f", which {balancer} needs for Service {own}" if is_pod else ""
        named = f"port{'' if len(used) == 1 else 's'} {list_names(map(str, used), 4)}"
        has = f"change {named} of Service {own}: {user} has {'it' if len(used) == 1 else 'them'}"
        instead = f"remove {named} from {user}, or route through it instead of a host port"
        yield root_cause(text, has if own else instead)


def _namespace_selector(cycle: Cycle, finding: f.NodeAffinityMismatch) -> Iterator[SelectorOfNamespace]:
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
            commands = [shell_command(f"kubectl annotate namespace {{}} {annotation}= --overwrite", namespace)]
            if cycle.pod.metadata.controller is not None and cycle.pod.key in cycle.snapshot.pods.rows:
                commands.append(delete_pod(cycle.pod.key))
            title = f"empty annotation {annotation} of namespace {namespace}, and recreate the pod"
            advice = Advice(title=title, commands=tuple(commands), group=FixGroup.CLUSTER)
            is_enough = unmatched <= {*pairs}  # without it, the node of the finding would match
            yield SelectorOfNamespace(text=f"node selector {written} {whence}", advice=(advice,) if is_enough else ())


def _contradiction(cycle: Cycle) -> Iterator[RootCause]:
    """Yield two requirements of a label without a common value, if each required term of the nodeAffinity has some."""
    terms = terms_of(cycle.pod.spec.required_node_affinity)
    pairs: list[str] = []
    for term in terms:
        first = {key: (f"nodeSelector {key}={value}", {value}) for key, value in cycle.pod.spec.node_selector.items()}
        for it in term.match_expressions:
            text, values = f"nodeAffinity {it.key} In [{list_names(it.values, 3)}]", {*it.values}
            if it.operator == "In" and not values & first.setdefault(it.key, (text, values))[1]:
                pairs.append(f"{first[it.key][0]} and {text}")
                break
    if terms and len(pairs) == len(terms):
        yield RootCause(text=f"{pairs[0]} exclude each other: no node can match both")


def _unset_labels(cycle: Cycle, finding: f.NodeAffinityMismatch) -> Iterator[RootCause]:
    """Yield nodes that lack a label which would match, and which an agent on them sets."""
    requirements = (requirement for term in finding.terms for requirement in term.requirements)
    for key, values in ((it.key, {*it.values}) for it in requirements if it.operator in (Operator.IN, Operator.EQUALS)):
        lost = lost_labels(cycle.snapshot.cluster, key)
        if names := [name for name, label in lost.items() if label.value in values]:
            label = lost[names[0]]
            written = f"{key}={label.value}" if key in cycle.snapshot.cluster.label_keys else key
            lacks = f"{list_names(names, 2)} {'lacks' if len(names) == 1 else 'lack'} label {written}"
            by = f"{label.agent} sets {label.where}" if label.agent else "the kubelet sets when it starts"
            yield RootCause(text=f"{lacks}, which {by}")
        elif values == {"true"} and (nodes := unlabeled_hardware(cycle.snapshot.cluster, key)):
            has = f"{list_names(nodes, 2, conjunction='and')} {'has' if len(nodes) == 1 else 'have'} the hardware"
            agents = "node-feature-discovery and the vendor's operator"
            text = f"{has}, by instance type, and no node has label {key}: {agents} set it"
            title = f"install or repair {agents}, which label {list_names(nodes, 2, conjunction='and')}"
            yield root_cause(text, title, by_default=FixGroup.CLUSTER)
        elif lacks_feature_labels(cycle.snapshot.cluster, key):
            yield RootCause(text=f"node-feature-discovery sets label {key}, and no node has any of its labels")


def _not_integers(cycle: Cycle, finding: f.NodeAffinityMismatch) -> Iterator[RootCause]:
    """Yield labels that `Gt` or `Lt` compares although no node's value is an integer."""
    for requirement in (requirement for term in finding.terms for requirement in term.requirements):
        values = sorted(filter(None, cycle.snapshot.cluster.label(requirement.key).values))
        if (
            requirement.operator in (Operator.GT, Operator.LT)
            and values
            and not any(parse_int64(value) is not None for value in values)
        ):
            text = f"{requirement.operator} compares integers, and {requirement.key} is {list_names(values, 3)}"
            yield RootCause(text=f"{text}: no node can match")


def _runtime_class_selector(cycle: Cycle, finding: f.NodeAffinityMismatch) -> Iterator[RootCause]:
    """Yield the RuntimeClass that adds an unmet selector to its pods."""
    name = cycle.pod.spec.runtime_class_name or ""
    known = cycle.snapshot.runtime_classes.get(name)
    selector = known.scheduling.node_selector if known is not None and known.scheduling is not None else {}
    unmet = {item.key for term in finding.terms for item in term.requirements if not item.matched}
    for key in selector.keys() & unmet:
        yield RootCause(text=f"RuntimeClass {name} selects nodes with its runtime: {key}={selector[key]}")


def provisioning_reports(snapshot: Snapshot, pod: Pod) -> Iterator[tuple[PersistentVolumeClaim, RecordedEvent | None]]:
    """Yield the pod's claims without a volume, each with its event, unless an earlier claim of that name has it."""
    for claim in snapshot.storage.claims_of(pod):
        if not claim.spec.volume_name:
            yield claim, snapshot.failed_create("PersistentVolumeClaim", claim.metadata)


def lacks_cluster_autoscaler(snapshot: Snapshot) -> bool:
    """Return whether OpenShift's MachineAutoscalers lack the ClusterAutoscaler that makes them act."""
    kinds = {kind for kind in snapshot.source.kinds if kind.endswith(".autoscaling.openshift.io")}
    return kinds == {"MachineAutoscaler.autoscaling.openshift.io"} and AUTOSCALER_STATUS not in snapshot.config_maps


def _unserved_machine_autoscalers(cycle: Cycle) -> Iterator[RootCause]:
    if lacks_cluster_autoscaler(cycle.snapshot):
        yield RootCause(text="a MachineAutoscaler scales nothing without a ClusterAutoscaler, and the dump has none")


def autoscaler_reports(snapshot: Snapshot, pod: str) -> Iterator[str]:
    """Yield the autoscalers' events about a pod unless the snapshot has nodes and their groups, which explain more."""
    scaling, provisioning = snapshot.autoscaler_events.get(pod), snapshot.karpenter_events.get(pod)
    lacks_nodes = not snapshot.cluster.nodes
    if scaling is not None and (lacks_nodes or AUTOSCALER_STATUS not in snapshot.config_maps):
        yield f"cluster-autoscaler reports: {scaling.message}"
    if provisioning is not None and (lacks_nodes or not snapshot.of(NodePool)):
        yield f"Karpenter reports: {provisioning.message}"


def _of(diagnosis: Diagnosis, finding: f.Finding) -> Iterator[RootCause]:
    cycle = diagnosis.cycle
    match finding:
        case f.InsufficientResource():
            yield from _shortage_causes(diagnosis, finding)
            yield from _unserved_machine_autoscalers(cycle)
            yield from piled_up_jobs(cycle.snapshot, cycle.pod)
        case f.NodeAffinityMismatch():
            yield from _namespace_selector(cycle, finding)
            yield from _runtime_class_selector(cycle, finding)
            yield from _not_integers(cycle, finding)
            yield from _unset_labels(cycle, finding)
            yield from _contradiction(cycle)
        case f.TooManyPods():
            yield from _daemon_pods(diagnosis)
            yield from piled_up_jobs(cycle.snapshot, cycle.pod)
        case f.UntoleratedTaint():
            if finding.nearest_differs[:1] == ("key",):
                yield RootCause(text=f"the pod tolerates {finding.nearest_text}, a former name of taint {finding.key}")
            yield from not_passed_on(cycle.snapshot, cycle.pod, finding)
        case f.MissingNodeFeatures(missing=missing):
            yield missing_features(missing)
        case f.InsufficientDevices(shortages=shortages):
            for shortage in shortages:
                if shortage.stage in ("none", "other-class"):
                    yield from unpublished_devices(cycle.snapshot, shortage.device_class)
                yield from (incomplete_pool(cycle.snapshot, pool) for pool in shortage.updating)
                yield from taint_rules(cycle.snapshot, shortage)
                yield from unused_claims(cycle.snapshot, (holder.claim for holder in shortage.holders))
        case f.DeviceClaimOutOfReach(claim=claim):
            yield from unused_claims(cycle.snapshot, (claim,))
        case f.DeviceSelectorFailed():
            yield from failed_selector(cycle, finding)
        case f.DeviceClassNotFound(device_class=device_class):
            yield from missing_driver(cycle.snapshot, device_class)
        case f.DeviceClaimNotCreated():
            yield from device_claim_refusal(cycle.snapshot, cycle.pod, finding, cycle.release)
        case f.VolumeLimitExceeded():
            yield from _unused_attachments(diagnosis)
        case f.ElasticQuotaExceeded():
            yield from elastic_quota(cycle.snapshot, finding)
        case f.GangTooSmall() | f.PodGroupIncomplete():
            yield from members_not_created(cycle.snapshot, cycle.pod)
        case f.TopologySpreadSkew():
            yield from others_counted(cycle, finding)
        case f.TopologyLabelMissing(topology_key=key) if key != HOSTNAME:
            yield from _lost_topology_labels(diagnosis, key)
        case f.ExistingAntiAffinityConflict():
            yield from covered_namespace(cycle, finding)
        case f.PodAffinityUnsatisfied(matches_itself=False):
            yield from absent_matches(cycle, finding)
            yield from unselected_namespaces(cycle, finding)
        case f.PodAntiAffinityConflict(term=term) if misses_pod(cycle.pod, term):
            missed = f"the labelSelector of podAntiAffinity term {term + 1} ({finding.selector})"
            yield RootCause(text=f"{missed} does not match the pod itself: it avoids other pods")
        case _:
            yield from claim_causes(diagnosis, finding)


def _shortage_causes(diagnosis: Diagnosis, finding: f.InsufficientResource) -> Iterator[RootCause]:
    snapshot, pod = diagnosis.cycle.snapshot, diagnosis.cycle.pod
    if is_of_hami(snapshot, finding):
        phrase = "HAMi counts parts of a device, and no node publishes them"
        how = f"recreate the pod with schedulerName {HAMI_SCHEDULER}"
        title = f"{how}: HAMi's webhook, which sets it, was ignored or did not run"
        yield root_cause(f"{phrase}: {HAMI_SCHEDULER} has to schedule the pod", title, leaves_no_node=True)
        return
    if of_extender := [*counted_by_extender(finding)]:
        yield from of_extender
        return
    overhead = resource_amount(finding.resource, pod.spec.overhead.get(finding.resource))
    if overhead and finding.short_by <= overhead:
        [amount] = format_quantities((overhead,), Unit.of(finding.resource))
        name = pod.spec.runtime_class_name or ""
        known = snapshot.runtime_classes.get(name)
        present = {} if known is None or known.overhead is None else known.overhead.pod_fixed
        is_present = known is None or resource_amount(finding.resource, present.get(finding.resource)) == overhead
        by = f"RuntimeClass {name}" if name and is_present else "spec.overhead"
        yield RootCause(text=f"{by} adds {amount} {finding.resource} to the requests")
    names = diagnosis.cycle.all_nodes.cluster.names
    rejected = [*_rejected_nodes(diagnosis, f.InsufficientResource)]
    at = {names[row] for row in rejected}
    yield from (it for it in pending_resizes(diagnosis.cycle.snapshot, finding.resource) if it.node in at)
    yield from _unfinished_resizes(diagnosis, finding)
    yield from reserved_memory(snapshot, finding, rejected)
    yield from partitioned_resources(snapshot, pod, finding)
    yield from idle_profiles(snapshot, diagnosis.cycle.all_nodes.options, finding, rejected)
    yield from used_slices(snapshot, pod, finding, rejected)
    yield from other_vendor_causes(snapshot, finding)
    yield from unmapped_classes(diagnosis.cycle, finding)
    short = (names[row] for row in _rejected_nodes(diagnosis, f.InsufficientResource, is_only=True))
    options, hardware = diagnosis.cycle.all_nodes.options, diagnosis.hardware
    down = [*plugins_down(snapshot, options, finding.resource, hardware, short)]
    yield from (*unhealthy(snapshot, finding, is_down=bool(down)), *down)
    yield from idle_plugins(snapshot, finding, hardware)
    yield from _never_preempts(diagnosis)
    yield from _needed_victims(diagnosis)


def _never_preempts(diagnosis: Diagnosis) -> Iterator[RootCause]:
    """Yield why pods of a lower priority are not evicted, as far as the pod's PriorityClass and the profile say."""
    cycle, pod, pods = diagnosis.cycle, diagnosis.cycle.pod, diagnosis.cycle.snapshot.pods
    own_class = cycle.snapshot.priority_classes.get(pod.spec.priority_class_name)
    is_there = np.isin(pods.node, [*_rejected_nodes(diagnosis, f.InsufficientResource)])
    if own_class is not None and pod.spec.priority is not None:
        between = (pods.priorities >= pod.priority) & (pods.priorities < own_class.value)
        if np.any(is_there & between):
            text = f"the pod keeps priority {pod.priority} from its creation: PriorityClass {own_class.metadata.name}"
            yield RootCause(text=f"{text} has {own_class.value} now", advice=tuple(_recreation(pod, own_class.value)))
    why, name = "", pod.spec.priority_class_name
    if pod.spec.preemption_policy == PREEMPT_NEVER:
        why = f"{f'PriorityClass {name}' if name else 'the pod'} has preemptionPolicy Never"
    elif "DefaultPreemption" not in cycle.profile.points.get("postFilter", ("DefaultPreemption",)):
        why = f"profile {cycle.profile.scheduler_name} disables DefaultPreemption"
    if why and np.any(is_there & (pods.priorities < pod.priority)):
        yield RootCause(text=f"{why}, so that no pod of a lower priority is evicted")


def _recreation(pod: Pod, priority: int) -> Iterator[Advice]:
    """Yield the deletion of a pod that its controller creates again with another priority."""
    if (owner := pod.metadata.controller) is not None:
        title = f"delete the pod, which {owner.kind} {owner.name} creates again with priority {priority}"
        yield Advice(title=title, changes=(Target.pod(pod.key).deletion,), commands=(delete_pod(pod.key),))


def _needed_victims(diagnosis: Diagnosis) -> Iterator[RootCause]:
    """Yield the pods that preemption would evict, and that the pod's own podAffinity requires on their node."""
    cycle, terms = diagnosis.cycle, diagnosis.cycle.pod.spec.required_pod_affinity
    tried = cycle.post_filter.dry_run if cycle.post_filter is not None and terms else None
    if tried is None:
        return
    from kschedx.plugins.inter_pod_affinity.plugin import REASON_AFFINITY

    pods, selectors = cycle.snapshot.pods, [compile_selector(term.label_selector) for term in terms]
    is_lower = pods.labels.where(lambda labels: all(selector.matches(labels) for selector in selectors))
    is_lower &= pods.priorities < cycle.pod.priority
    if not any(term.namespaces or term.namespace_selector for term in terms):
        is_lower &= pods.in_namespace(cycle.pod.metadata.namespace)
    for node in _rejected_nodes(diagnosis, f.InsufficientResource):
        if REASON_AFFINITY in tried.reasons[node] and (
            needed := (is_lower & (pods.node == node)).nonzero()[0].tolist()
        ):
            named = list_names([pods.key(row) for row in needed], 2)
            where = cycle.all_nodes.cluster.names[node]
            yield RootCause(text=f"preemption cannot help on {where}: the pod's podAffinity requires {named} there")
            return


_PROVIDERS_WITH_ZONE, _PLACE_OF_ZONE = ("aws:", "gce:"), 3
"""Providers whose IDs name the zone, as `aws:///zone/instance` and `gce://project/zone/instance`, and its place."""


def provider_zone(node: Node) -> str:
    """Return the zone in the provider ID of a node; empty if it names none."""
    parts = node.spec.provider_id.split("/")
    has_zone = parts[0] in _PROVIDERS_WITH_ZONE and len(parts) > _PLACE_OF_ZONE
    return parts[_PLACE_OF_ZONE] if has_zone else ""


def _lost_topology_labels(diagnosis: Diagnosis, key: str) -> Iterator[RootCause]:
    """Yield the nodes that only lack the topology key, if other nodes have it."""
    cluster, table = diagnosis.cycle.snapshot.cluster, diagnosis.cycle.nodes
    if table is None or not any(cluster.label(key).values):
        return
    lost = [
        cluster.nodes[table.cluster_row(row)]
        for group in diagnosis.groups
        if all(isinstance(it, f.TopologyLabelMissing) and it.topology_key == key for it in group.exemplar.findings)
        for row in group.rows[:_MOST_NODES]
    ]
    if lost:
        named = list_names([node.name for node in lost], 2)
        text = f"{named} {'lacks' if len(lost) == 1 else 'lack'} label {key}, which other nodes have"
        has_zone = key in ZONE_LABELS and provider_zone(lost[0])  # another fix sets it
        title = "" if has_zone else f"label {lost[0].name} with its {key}"
        yield root_cause(text, title, group=FixGroup.CLUSTER)


def _rejected_nodes(diagnosis: Diagnosis, kind: type[f.Finding], *, is_only: bool = False) -> Iterator[ClusterRow]:
    """Yield some of the nodes that are rejected for a reason of this type, or only for such reasons."""
    nodes = diagnosis.cycle.nodes
    if nodes is None:
        return
    for group in diagnosis.groups:
        if (all if is_only else any)(isinstance(finding, kind) for finding in group.exemplar.findings):
            for row in group.rows[:_MOST_NODES]:
                yield nodes.cluster_row(row)


def _unfinished_resizes(diagnosis: Diagnosis, finding: f.InsufficientResource) -> Iterator[RootCause]:
    """Yield a pod with lower requests than its node still has allocated or in force for it, which count until then."""
    pods, resource = diagnosis.cycle.snapshot.pods, finding.resource
    is_reported = pods.statuses.where(
        lambda status: any(its.allocated_resources or its.resources for its in status.container_statuses)
    )
    for node in _rejected_nodes(diagnosis, f.InsufficientResource) if is_reported.any() else ():
        on_node = pods.on_node(node)
        for row in on_node[is_reported[on_node]].tolist():
            requested = requested_amount(pods[row].spec, resource)
            if (allocated := allocated_amount(pods[row], resource, in_force=True)) > requested:
                needs, has = format_quantities((requested, allocated), Unit.of(resource))
                name = "CPU" if resource == "cpu" else resource
                text = f"{pods.key(row)} on {pods.node_names[row]} still has {has} {name}, which counts"
                text = f"{text}: its resize to {needs} is not complete"
                on = (group.exemplar for group in diagnosis.groups if group.exemplar.name == pods.node_names[row])
                is_enough = any(finding in it.findings for it in on) and allocated - requested >= finding.short_by
                title = f"wait until the kubelet of {pods.node_names[row]} has resized {pods.key(row)}"
                yield root_cause(text, title if is_enough else "", by_default=FixGroup.CAPACITY)
                return


def pending_resizes(snapshot: Snapshot, resource: str) -> Iterator[_ResizePending]:
    pods = snapshot.pods
    pending = pods.statuses.where(lambda status: condition_of(status.conditions, RESIZE_PENDING, "True") is not None)
    if not pending.any():
        return
    for row in np.flatnonzero(pending).tolist():
        pod = pods[row]
        requested, allocated = requested_amount(pod.spec, resource), allocated_amount(pod, resource)
        condition = condition_of(pod.status.conditions, RESIZE_PENDING, "True")
        if condition is not None and requested > allocated:
            needs, has = format_quantities((requested, allocated), Unit.of(resource))
            name, node = "CPU" if resource == "cpu" else resource, pods.node_names[row]
            counts = ", which counts," if condition.reason != "Infeasible" else " in vain,"
            amounts = f"it requests {needs} {name}{counts} and has {has} allocated"
            text = f"the resize of {pod.key} on {node} is {condition.reason}: {amounts}"
            yield _ResizePending(text=text, pod=pod.key, node=node)


def allocated_amount(pod: Pod, resource: str, container: str = "", *, in_force: bool = False) -> int:
    """Return what the kubelet has allocated to a container, or to all; or what is still `in_force`, if that is more."""
    total = 0
    for status in pod.status.container_statuses:
        actual = status.resources.requests if status.resources is not None else {}
        given = (status.allocated_resources or actual, actual if in_force else {})
        amount = max(resource_amount(resource, each.get(resource)) for each in given)
        total += amount if container in ("", status.name) else 0
    return total


def _daemon_pods(diagnosis: Diagnosis) -> Iterator[RootCause]:
    """Yield nodes that are full of DaemonSets' pods."""
    snapshot, nodes = diagnosis.cycle.snapshot, diagnosis.cycle.all_nodes
    most, text = 0, ""
    for row in _rejected_nodes(diagnosis, f.TooManyPods):
        rows = snapshot.pods.on_node(row).tolist()
        daemons = sum(any(it.kind == "DaemonSet" and it.controller for it in snapshot.pods.owners[pod]) for pod in rows)
        if 2 * daemons > len(rows) and daemons > most:
            allowed = resource_amount("pods", snapshot.cluster.nodes[row].status.allocatable.get("pods"))
            on_node = f"the {count(len(rows), 'pod')} on {nodes.cluster.names[row]}"
            most, text = daemons, f"{daemons:,} of {on_node} belong to DaemonSets; the node allows {allowed:,}"
    if most:
        yield RootCause(text=text)


def _unused_attachments(diagnosis: Diagnosis) -> Iterator[RootCause]:
    """Yield a node with attached volumes that none of its pods uses."""
    for group in diagnosis.groups:
        exceeded = (finding for finding in group.exemplar.findings if isinstance(finding, f.VolumeLimitExceeded))
        for finding in exceeded:
            unused = [holder.volume for holder in finding.holders if not holder.pods]
            if unused:
                has, named = "has" if len(unused) == 1 else "have", list_names(unused, 3)
                of = f"{len(unused):,} of {count(finding.attached, 'volume')} attached to {group.exemplar.name}"
                is_enough = finding.attached - len(unused) + finding.wanted_count <= finding.limit
                is_enough &= not diagnosis.cycle.snapshot.source.may_lack("Pod")
                title = f"repair the attacher of {finding.driver}, which leaves {named} attached without a pod"
                command = "kubectl get volumeattachments"
                text = f"{of} {has} no pod there: {named}"
                yield root_cause(text, title if is_enough else "", command, by_default=FixGroup.CAPACITY)
                return
