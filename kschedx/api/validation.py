"""What the API server refuses in the fields that scheduling reads, with its field paths and words.

For manifests that have been through `api/defaulting.py`. Objects from a cluster were accepted by another release at
another time, perhaps under other rules, and are not checked. Each function yields errors in upstream's order, none if
all is well; paths are upstream's also where they are odd.
Upstream: pkg/apis/core/validation/validation.go, apimachinery/pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from kschedx.api.field_errors import as_json, duplicate, forbidden, invalid, not_supported, quoted, required
from kschedx.api.integers import parse_int64
from kschedx.api.names import dns_label_errors, dns_subdomain_errors, label_key_errors, label_value_errors
from kschedx.api.resource_validation import (
    validate_amounts,
    validate_pod_level,
    validate_requested,
    validate_requirements,
)
from kschedx.api.selector_validation import (
    validate_label_selector,
    validate_labels,
    validate_node_selector,
    validate_preferred_terms,
)
from kschedx.api.selectors import LabelSelector
from kschedx.api.types import (
    Affinity,
    Container,
    ContainerPort,
    Node,
    NodeAffinity,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGate,
    PodSpec,
    ResourceRequirements,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from kschedx.errors import InputError, Place

Errors = Iterator[InputError]

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS = ("Equal", "Exists", "Lt", "Gt")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_CONTAINER_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_SPREAD_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_NODE_POLICIES = ("Honor", "Ignore")
_LARGEST_ANNOTATIONS = 256 * 1024
_MOST_RESTART_RULES = 20


class ValidationOptions(Struct, frozen=True, kw_only=True):
    """Rules that depend on a feature gate of the API server; the defaults are those of 1.36."""

    pod_level_resources: bool = True
    """PodLevelResources."""
    toleration_comparison_operators: bool = False
    """TaintTolerationComparisonOperators: Lt and Gt."""


DEFAULT_OPTIONS = ValidationOptions()


def validate_pod(pod: Pod, options: ValidationOptions = DEFAULT_OPTIONS) -> Errors:
    """A new pod, defaulted."""
    yield from _metadata(pod.metadata, is_namespaced=True)
    yield from validate_pod_spec(pod.spec, "spec", options)
    if pod.spec.node_name and pod.spec.scheduling_gates:
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def validate_pod_spec(spec: PodSpec, field: str, options: ValidationOptions = DEFAULT_OPTIONS) -> Errors:
    """The spec of a pod, defaulted."""
    yield from _containers(spec.containers, f"{field}.containers")
    yield from _init_containers(spec, f"{field}.initContainers")
    if options.pod_level_resources:
        yield from validate_pod_level(spec, f"{field}.resources")
    if spec.host_network:
        yield from _host_network_ports(spec.containers, f"{field}.containers")
    yield from _one_of(spec.restart_policy, _RESTART_POLICIES, f"{field}.restartPolicy")
    yield from validate_labels(spec.node_selector, f"{field}.nodeSelector")
    if spec.affinity is not None:
        yield from _affinity(spec.affinity, f"{field}.affinity")
    yield from _scheduling_gates(spec.scheduling_gates, f"{field}.schedulingGates")
    yield from _spread_constraints(spec.topology_spread_constraints, f"{field}.topologySpreadConstraints")
    if spec.host_users is False and spec.host_network:
        yield forbidden(f"{field}.hostNetwork", "when `hostUsers` is false")
    if spec.node_name:
        yield from _syntax(dns_subdomain_errors, spec.node_name, f"{field}.nodeName")
    yield from validate_tolerations(spec.tolerations, f"{field}.tolerations", options)
    if spec.priority_class_name:
        yield from _syntax(dns_subdomain_errors, spec.priority_class_name, f"{field}.priorityClassName")
    if spec.runtime_class_name is not None:
        yield from _syntax(dns_subdomain_errors, spec.runtime_class_name, f"{field}.runtimeClassName")
    if spec.preemption_policy is not None:
        yield from _one_of(spec.preemption_policy, _PREEMPTION_POLICIES, f"{field}.preemptionPolicy")
    yield from validate_requirements(ResourceRequirements(limits=spec.overhead), f"{field}.overhead")


def validate_node(node: Node) -> Errors:
    """A node."""
    yield from _metadata(node.metadata, is_namespaced=False)
    yield from _taints(node.spec.taints, "metadata.taints")
    yield from validate_amounts(node.status.capacity, "status.capacity")
    yield from validate_amounts(node.status.allocatable, "status.allocatable")


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
        yield from _affinity_selectors(spec.affinity, "spec.affinity")
    yield from _spread_constraints(spec.topology_spread_constraints, "spec.topologySpreadConstraints")
    for index, toleration in enumerate(spec.tolerations):
        where = f"spec.tolerations[{index}]"
        if toleration.operator not in ("", *_OPERATORS):
            yield not_supported(f"{where}.operator", as_json(toleration.operator), _OPERATORS)
        if toleration.effect:
            yield from _one_of(toleration.effect, _EFFECTS, f"{where}.effect")


def validate_written_node(node: Node) -> Errors:
    """A node of a hand-written cluster, in the same way."""
    for index, taint in enumerate(node.spec.taints):
        yield from _one_of(taint.effect, _EFFECTS, f"spec.taints[{index}].effect")
    yield from validate_amounts(node.status.capacity, "status.capacity")
    yield from validate_amounts(node.status.allocatable, "status.allocatable")


def _affinity_selectors(affinity: Affinity, field: str) -> Errors:
    yield from _node_affinity(affinity.node_affinity, f"{field}.nodeAffinity")
    for name, side in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if side is None:
            continue
        for index, term in enumerate(side.required_during_scheduling_ignored_during_execution):
            yield from _term_selectors(term, f"{field}.{name}.requiredDuringSchedulingIgnoredDuringExecution[{index}]")
        for index, weighted in enumerate(side.preferred_during_scheduling_ignored_during_execution):
            where = f"{field}.{name}.preferredDuringSchedulingIgnoredDuringExecution[{index}].podAffinityTerm"
            yield from _term_selectors(weighted.pod_affinity_term, where)


# --- metadata


def _metadata(metadata: ObjectMeta, *, is_namespaced: bool) -> Errors:
    if metadata.generate_name:
        # A dash before the generated end is fine.
        start = re.sub(r"(?<=.).-$", "a", metadata.generate_name)
        for message in dns_subdomain_errors(start):
            yield invalid("metadata.generateName", quoted(metadata.generate_name), message)
    if metadata.name:
        yield from _syntax(dns_subdomain_errors, metadata.name, "metadata.name")
    elif not metadata.generate_name:
        yield required("metadata.name", "name or generateName is required")
    if not is_namespaced:
        if metadata.namespace:
            yield forbidden("metadata.namespace", "not allowed on this type")
    elif metadata.namespace:
        yield from _syntax(dns_label_errors, metadata.namespace, "metadata.namespace")
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


# --- containers


def _containers(containers: tuple[Container, ...], field: str) -> Errors:
    if not containers:
        yield required(field, "")
        return
    seen: set[str] = set()
    for index, container in enumerate(containers):
        where = f"{field}[{index}]"
        yield from _container(container, where)
        if container.name in seen:
            yield duplicate(f"{where}.name", quoted(container.name))
        seen.add(container.name)
        yield from _restart_policy(container, where)
    yield from _host_ports(containers, field)


def _init_containers(spec: PodSpec, field: str) -> Errors:
    seen = {container.name for container in spec.containers}
    for index, container in enumerate(spec.init_containers):
        where = f"{field}[{index}]"
        yield from _container(container, where)
        yield from _restart_policy(container, where)
        if container.name in seen:
            yield duplicate(f"{where}.name", quoted(container.name))
        elif container.name:
            seen.add(container.name)
        # They run one after the other, so each may use the same ports.
        yield from _host_ports((container,), field)


def _container(container: Container, field: str) -> Errors:
    if container.name:
        yield from _syntax(dns_label_errors, container.name, f"{field}.name")
    else:
        yield required(f"{field}.name", "")
    if not container.image:
        yield required(f"{field}.image", "")
    elif container.image != container.image.strip():
        yield invalid(f"{field}.image", quoted(container.image), "must not have leading or trailing whitespace")
    yield from _ports(container.ports, f"{field}.ports")
    yield from validate_requirements(container.resources, f"{field}.resources")


def _restart_policy(container: Container, field: str) -> Errors:
    policy, rules = container.restart_policy, container.restart_policy_rules
    if policy is None:
        if rules:
            yield required(f"{field}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy not in _CONTAINER_RESTART_POLICIES:
        yield not_supported(f"{field}.restartPolicy", as_json(policy), _CONTAINER_RESTART_POLICIES)
    if len(rules) > _MOST_RESTART_RULES:
        detail = f"Too many: {len(rules)}: must have at most {_MOST_RESTART_RULES} items"
        yield InputError(detail, place=Place(field=f"{field}.restartPolicyRules"))
    for index, rule in enumerate(rules):
        if rule.action not in _RESTART_ACTIONS:
            yield not_supported(f"{field}.restartPolicyRules[{index}].action", as_json(rule.action), _RESTART_ACTIONS)


def _ports(ports: tuple[ContainerPort, ...], field: str) -> Errors:
    names: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{field}[{index}]"
        if port.name:
            messages = list(_port_name_errors(port.name))
            yield from (invalid(f"{where}.name", quoted(port.name), message) for message in messages)
            if port.name in names:
                yield duplicate(f"{where}.name", quoted(port.name))
            elif not messages:
                names.add(port.name)
        if port.container_port == 0:
            yield required(f"{where}.containerPort", "")
        else:
            yield from _port_number(port.container_port, f"{where}.containerPort")
        if port.host_port != 0:
            yield from _port_number(port.host_port, f"{where}.hostPort")
        yield from _one_of(port.protocol, _PROTOCOLS, f"{where}.protocol")


def _port_number(number: int, field: str) -> Errors:
    if not 1 <= number <= 65535:
        yield invalid(field, str(number), "must be between 1 and 65535, inclusive")


def _port_name_errors(name: str) -> Iterator[str]:
    if len(name.encode(errors="surrogatepass")) > 15:
        yield "must be no more than 15 characters"
    if not re.fullmatch("[-a-z0-9]+", name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name.startswith("-") or name.endswith("-"):
        yield "must not begin or end with a hyphen"


def _host_ports(containers: Iterable[Container], field: str) -> Errors:
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for port_index, port in enumerate(container.ports):
            if port.host_port == 0:
                continue
            key = f"{port.protocol}/{port.host_ip}/{port.host_port}"
            if key in taken:
                yield duplicate(f"{field}[{index}].ports[{port_index}].hostPort", quoted(key))
            taken.add(key)


def _host_network_ports(containers: tuple[Container, ...], field: str) -> Errors:
    for index, container in enumerate(containers):
        for port_index, port in enumerate(container.ports):
            if port.host_port != port.container_port:
                where = f"{field}[{index}].ports[{port_index}].hostPort"
                yield invalid(where, str(port.host_port), "must match `containerPort` when `hostNetwork` is true")


# --- affinity


def _affinity(affinity: Affinity, field: str) -> Errors:
    yield from _node_affinity(affinity.node_affinity, f"{field}.nodeAffinity")
    yield from _pod_affinity(affinity.pod_affinity, f"{field}.podAffinity")
    yield from _pod_affinity(affinity.pod_anti_affinity, f"{field}.podAntiAffinity")


def _node_affinity(affinity: NodeAffinity | None, field: str) -> Errors:
    if affinity is None:
        return
    terms = affinity.required_during_scheduling_ignored_during_execution
    if terms is not None:
        yield from validate_node_selector(terms, f"{field}.requiredDuringSchedulingIgnoredDuringExecution")
    yield from validate_preferred_terms(
        affinity.preferred_during_scheduling_ignored_during_execution,
        f"{field}.preferredDuringSchedulingIgnoredDuringExecution",
    )


def _pod_affinity(affinity: PodAffinity | None, field: str) -> Errors:
    if affinity is None:
        return
    for index, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        yield from _pod_affinity_term(term, f"{field}.requiredDuringSchedulingIgnoredDuringExecution[{index}]")
    for index, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        where = f"{field}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        if not 0 < weighted.weight <= 100:
            yield invalid(f"{where}.weight", str(weighted.weight), "must be in the range 1-100")
        yield from _pod_affinity_term(weighted.pod_affinity_term, f"{where}.podAffinityTerm")


def _term_selectors(term: PodAffinityTerm, field: str) -> Errors:
    yield from validate_label_selector(term.label_selector, f"{field}.labelSelector")
    yield from validate_label_selector(term.namespace_selector, f"{field}.namespaceSelector")


def _pod_affinity_term(term: PodAffinityTerm, field: str) -> Errors:
    yield from _term_selectors(term, field)
    for namespace in term.namespaces:
        yield from _syntax(dns_label_errors, namespace, f"{field}.namespace")
    yield from _label_keys(field, term.match_label_keys, term.mismatch_label_keys, term.label_selector)
    if not term.topology_key:
        yield required(f"{field}.topologyKey", "can not be empty")
    yield from _syntax(label_key_errors, term.topology_key, f"{field}.topologyKey")


def _label_keys(
    field: str, match: tuple[str, ...], mismatch: tuple[str, ...], selector: LabelSelector | None
) -> Errors:
    """matchLabelKeys and mismatchLabelKeys of a term whose selector they are merged into already."""
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            yield forbidden(f"{field}.{name}", "must not be specified when labelSelector is not set")
        elif keys:
            for index, key in enumerate(keys):
                yield from _syntax(label_key_errors, key, f"{field}.{name}[{index}]")
    if selector is not None:
        places = {key: index for index, key in enumerate(match)}
        seen = set(selector.match_labels)
        for requirement in selector.match_expressions:
            key = requirement.key
            if key in places and key in seen:
                # Once is the merged key itself; twice is the user's own too.
                yield invalid(f"{field}[{places[key]}]", quoted(key), "exists in both matchLabelKeys and labelSelector")
            seen.add(key)
    for index, key in enumerate(match):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(f"{field}.matchLabelKeys[{index}]", quoted(key), detail)


# --- spread constraints, gates, tolerations, taints


def _spread_constraints(constraints: tuple[TopologySpreadConstraint, ...], field: str) -> Errors:
    last = {(one.topology_key, one.when_unsatisfiable): index for index, one in enumerate(constraints)}
    for index, constraint in enumerate(constraints):
        where = f"{field}[{index}]"
        action = constraint.when_unsatisfiable
        if constraint.max_skew <= 0:
            yield invalid(f"{where}.maxSkew", str(constraint.max_skew), "must be greater than zero")
        if not constraint.topology_key:
            yield required(f"{where}.topologyKey", "can not be empty")
        if action not in _SPREAD_ACTIONS:
            yield not_supported(f"{where}.whenUnsatisfiable", as_json(action), _SPREAD_ACTIONS)
        if last[constraint.topology_key, action] > index:
            pair = f"{{{constraint.topology_key}, {action}}}"
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", quoted(pair))
        if constraint.min_domains is not None:
            shown = str(constraint.min_domains)
            if constraint.min_domains <= 0:
                yield invalid(f"{where}.minDomains", shown, "must be greater than zero")
            if action != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                yield invalid(f"{where}.minDomains", shown, detail)
        for name, policy in (
            ("nodeAffinityPolicy", constraint.node_affinity_policy),
            ("nodeTaintsPolicy", constraint.node_taints_policy),
        ):
            if policy is not None and policy not in _NODE_POLICIES:
                yield not_supported(f"{where}.{name}", as_json(policy), _NODE_POLICIES)
        yield from _label_keys(where, constraint.match_label_keys, (), constraint.label_selector)
        yield from validate_label_selector(constraint.label_selector, f"{where}.labelSelector")


def _scheduling_gates(gates: tuple[PodSchedulingGate, ...], field: str) -> Errors:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        yield from _syntax(label_key_errors, gate.name, f"{field}[{index}]")
        if gate.name in seen:
            yield duplicate(f"{field}[{index}]", quoted(gate.name))
        seen.add(gate.name)


def validate_tolerations(
    tolerations: tuple[Toleration, ...], field: str, options: ValidationOptions = DEFAULT_OPTIONS
) -> Errors:
    """Tolerations of a pod or of a RuntimeClass."""
    for index, toleration in enumerate(tolerations):
        where = f"{field}[{index}]"
        if toleration.key:
            yield from _syntax(label_key_errors, toleration.key, f"{where}.key")
        elif toleration.operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{where}.operator", as_json(toleration.operator), detail)
        if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{where}.effect", as_json(toleration.effect), detail)
        yield from _toleration_value(toleration, where, options)
        if toleration.effect:
            yield from _one_of(toleration.effect, _EFFECTS, f"{where}.effect")


def _toleration_value(toleration: Toleration, field: str, options: ValidationOptions) -> Errors:
    value = toleration.value
    match toleration.operator:
        case "Equal" | "":
            if messages := list(label_value_errors(value)):
                yield invalid(f"{field}.operator", quoted(value), ";".join(messages))
        case "Exists":
            if value:
                yield invalid(f"{field}.operator", quoted(value), "value must be empty when `operator` is 'Exists'")
        case ("Lt" | "Gt") as operator:
            if not options.toleration_comparison_operators:
                yield not_supported(f"{field}.operator", as_json(operator), _OPERATORS)
                return
            if not value:
                yield invalid(f"{field}.value", quoted(value), "must be non-empty")
            elif not re.fullmatch("0|-?[1-9][0-9]*", value):
                yield invalid(f"{field}.value", quoted(value), "must be a valid decimal integer in canonical form")
            if parse_int64(value) is None:
                reason = "value out of range" if re.fullmatch("[+-]?[0-9]+", value) else "invalid syntax"
                yield invalid(f"{field}.value", quoted(value), f"strconv.ParseInt: parsing {quoted(value)}: {reason}")
        case unknown:
            yield not_supported(f"{field}.operator", as_json(unknown), ("Equal", "Exists"))


def _taints(taints: tuple[Taint, ...], field: str) -> Errors:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        where = f"{field}[{index}]"
        yield from _syntax(label_key_errors, taint.key, f"{where}.key")
        if messages := list(label_value_errors(taint.value)):
            yield invalid(f"{where}.value", quoted(taint.value), ";".join(messages))
        yield from _one_of(taint.effect, _EFFECTS, f"{where}.effect")
        if (taint.key, taint.effect) in seen:
            yield duplicate(where, quoted(str(taint)), "taints must be unique by key and effect pair")
        seen.add((taint.key, taint.effect))


# --- parts


def _syntax(errors: Callable[[str], Iterator[str]], value: str, field: str) -> Errors:
    return (invalid(field, quoted(value), message) for message in errors(value))


def _one_of(value: str, allowed: tuple[str, ...], field: str) -> Errors:
    """A value that must be there and be one of those allowed."""
    if not value:
        yield required(field, "")
    elif value not in allowed:
        yield not_supported(field, as_json(value), allowed)
