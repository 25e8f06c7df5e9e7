"""What the API server refuses in the fields that scheduling reads, with its field paths and words.

For manifests that have been through `api/defaulting.py`. Objects from a cluster were accepted by another release at
another time, perhaps under other rules, and are not checked. Each function yields errors in upstream's order, none if
all is well; paths are upstream's also where they are odd.
Upstream: pkg/apis/core/validation/validation.go, apimachinery/pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

import re

from kschedx.api.claim_validation import validate_resource_claims
from kschedx.api.container_validation import (
    validate_containers,
    validate_host_network_ports,
    validate_init_containers,
)
from kschedx.api.field_errors import as_json, forbidden, invalid, not_supported, quoted, required
from kschedx.api.integers import MAX_INT32
from kschedx.api.kubelet_fields import KubeletSpec
from kschedx.api.kubelet_validation import DNS_POLICIES, OPERATING_SYSTEMS, check_volumes
from kschedx.api.names import dns_label_errors, dns_subdomain_errors, label_key_errors
from kschedx.api.placement_validation import (
    EFFECTS,
    OPERATORS,
    validate_affinity,
    validate_affinity_selectors,
    validate_scheduling_gates,
    validate_spread_constraints,
    validate_tolerations,
)
from kschedx.api.resource_validation import (
    validate_amounts,
    validate_pod_level,
    validate_requested,
    validate_requirements,
)
from kschedx.api.security_validation import (
    validate_annotated_profiles,
    validate_host_processes,
    validate_own_users,
    validate_pod_context,
    validate_security_annotations,
    validate_system,
)
from kschedx.api.selector_validation import (
    validate_labels,
)
from kschedx.api.types import (
    Node,
    ObjectMeta,
    Pod,
    PodSpec,
    ResourceRequirements,
)
from kschedx.api.validation_parts import DEFAULT_OPTIONS, Errors, ValidationOptions, one_of, syntax
from kschedx.errors import InputError, Place

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_LARGEST_ANNOTATIONS = 256 * 1024


def validate_pod(pod: Pod, options: ValidationOptions = DEFAULT_OPTIONS, kubelet: KubeletSpec | None = None) -> Errors:
    """A new pod, defaulted; `kubelet`, where it is known, is what else its spec says."""
    kubelet = kubelet or KubeletSpec()
    yield from _metadata(pod.metadata)
    yield from validate_security_annotations(pod.metadata.annotations, kubelet, "metadata.annotations")
    yield from _spec(pod.spec, kubelet, pod.metadata.name, "spec", options)
    if kubelet.ephemeral_containers:
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if pod.spec.node_name and pod.spec.scheduling_gates:
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    yield from validate_annotated_profiles(pod.metadata.annotations, kubelet, "spec")


def _spec(spec: PodSpec, kubelet: KubeletSpec, pod_name: str, field: str, options: ValidationOptions) -> Errors:
    faults, volumes = check_volumes(kubelet.volumes, pod_name, f"{field}.volumes")
    yield from faults
    yield from validate_resource_claims(spec.resource_claims, f"{field}.resourceClaims")
    yield from validate_containers(spec, kubelet, volumes, f"{field}.containers")
    yield from validate_init_containers(spec, kubelet, volumes, f"{field}.initContainers")
    if options.pod_level_resources:
        yield from validate_pod_level(spec, f"{field}.resources")
    if spec.host_network:
        yield from validate_host_network_ports(spec.containers, f"{field}.containers")
    yield from one_of(spec.restart_policy, RESTART_POLICIES, f"{field}.restartPolicy")
    if kubelet.dns_policy:
        yield from one_of(kubelet.dns_policy, DNS_POLICIES, f"{field}.dnsPolicy")
    yield from validate_labels(spec.node_selector, f"{field}.nodeSelector")
    yield from validate_pod_context(spec, kubelet, f"{field}.securityContext")
    if spec.affinity is not None:
        yield from validate_affinity(spec.affinity, f"{field}.affinity")
    yield from validate_scheduling_gates(spec.scheduling_gates, f"{field}.schedulingGates")
    yield from validate_spread_constraints(spec.topology_spread_constraints, f"{field}.topologySpreadConstraints")
    yield from validate_host_processes(spec, kubelet, field)
    if spec.host_users is False and spec.host_network:
        yield forbidden(f"{field}.hostNetwork", "when `hostUsers` is false")
    yield from validate_own_users(spec, kubelet, field)
    if spec.node_name:
        yield from syntax(dns_subdomain_errors, spec.node_name, f"{field}.nodeName")
    deadline = spec.active_deadline_seconds
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        detail = f"must be between 1 and {MAX_INT32}, inclusive"
        yield invalid(f"{field}.activeDeadlineSeconds", str(deadline), detail)
    for name, value in (("hostname", kubelet.hostname), ("subdomain", kubelet.subdomain)):
        if value:
            yield from syntax(dns_label_errors, value, f"{field}.{name}")
    yield from validate_tolerations(spec.tolerations, f"{field}.tolerations", options)
    if spec.priority_class_name:
        yield from syntax(dns_subdomain_errors, spec.priority_class_name, f"{field}.priorityClassName")
    if spec.runtime_class_name is not None:
        yield from syntax(dns_subdomain_errors, spec.runtime_class_name, f"{field}.runtimeClassName")
    if spec.preemption_policy is not None:
        yield from one_of(spec.preemption_policy, PREEMPTION_POLICIES, f"{field}.preemptionPolicy")
    yield from validate_requirements(ResourceRequirements(limits=spec.overhead), f"{field}.overhead")
    if kubelet.os is not None and not kubelet.os.name:
        yield required(f"{field}.os.name", "")
    elif kubelet.os is not None and kubelet.os.name not in OPERATING_SYSTEMS:
        yield not_supported(f"{field}.os", as_json(kubelet.os.name), OPERATING_SYSTEMS)
    yield from validate_system(spec, kubelet, field)


# --- a cluster as people write it: terse, but not wrong


def validate_written_pod_spec(spec: PodSpec) -> Errors:
    """A pod of a hand-written cluster: amounts, selectors and operators must be right, since decisions rest on them.

    What only a kubelet needs may be missing, and names are free: a sketch of a cluster is none the worse for it.
    """
    for name, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            where = f"spec.{name}[{index}].resources"
            yield from validate_requested(container.resources.limits, f"{where}.limits")
            yield from validate_requested(container.resources.requests, f"{where}.requests")
    yield from validate_requested(spec.overhead, "spec.overhead")
    yield from validate_labels(spec.node_selector, "spec.nodeSelector")
    if spec.affinity is not None:
        yield from validate_affinity_selectors(spec.affinity, "spec.affinity")
    yield from validate_spread_constraints(spec.topology_spread_constraints, "spec.topologySpreadConstraints")
    for index, toleration in enumerate(spec.tolerations):
        where = f"spec.tolerations[{index}]"
        if toleration.operator not in ("", *OPERATORS):
            yield not_supported(f"{where}.operator", as_json(toleration.operator), OPERATORS)
        if toleration.effect:
            yield from one_of(toleration.effect, EFFECTS, f"{where}.effect")


def validate_written_node(node: Node) -> Errors:
    """A node of a hand-written cluster, in the same way."""
    for index, taint in enumerate(node.spec.taints):
        yield from one_of(taint.effect, EFFECTS, f"spec.taints[{index}].effect")
    yield from validate_amounts(node.status.capacity, "status.capacity")
    yield from validate_amounts(node.status.allocatable, "status.allocatable")


# --- metadata


def _metadata(metadata: ObjectMeta) -> Errors:
    if metadata.generate_name:
        # A dash before the generated end is fine.
        start = re.sub(r"(?<=.).-$", "a", metadata.generate_name)
        for message in dns_subdomain_errors(start):
            yield invalid("metadata.generateName", quoted(metadata.generate_name), message)
    if metadata.name:
        yield from syntax(dns_subdomain_errors, metadata.name, "metadata.name")
    elif not metadata.generate_name:
        yield required("metadata.name", "name or generateName is required")
    if metadata.namespace:
        yield from syntax(dns_label_errors, metadata.namespace, "metadata.namespace")
    else:
        yield required("metadata.namespace", "")
    yield from validate_labels(metadata.labels, "metadata.labels")
    for key in sorted(metadata.annotations):
        for message in label_key_errors(key.lower()):
            yield invalid("metadata.annotations", quoted(key), message)
    size = sum(len(text.encode(errors="surrogatepass")) for pair in metadata.annotations.items() for text in pair)
    if size > _LARGEST_ANNOTATIONS:
        detail = f"Too long: may not be more than {_LARGEST_ANNOTATIONS} bytes"
        yield InputError(detail, place=Place(field="metadata.annotations"))
