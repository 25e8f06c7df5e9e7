"""What the API server refuses in a pod's containers and their ports; as `validation` for the rest of a pod."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kschedx.api.claim_validation import validate_used_claims
from kschedx.api.field_errors import as_json, duplicate, invalid, not_supported, quoted, required
from kschedx.api.kubelet_fields import KubeletContainer, KubeletSpec, VolumeSource
from kschedx.api.kubelet_validation import validate_container_fields
from kschedx.api.names import dns_label_errors
from kschedx.api.resource_validation import (
    validate_requirements,
)
from kschedx.api.security_validation import validate_container_context
from kschedx.api.types import (
    Container,
    ContainerPort,
    PodSpec,
)
from kschedx.api.validation_parts import Errors, one_of, syntax
from kschedx.errors import InputError, Place

PROTOCOLS = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_MOST_RESTART_RULES = 20


def validate_containers(spec: PodSpec, kubelet: KubeletSpec, volumes: Mapping[str, VolumeSource], field: str) -> Errors:
    """`volumes` are those that can be mounted."""
    if not spec.containers:
        yield required(field, "")
        return
    seen: set[str] = set()
    for index, container in enumerate(spec.containers):
        where = f"{field}[{index}]"
        yield from _container(container, _beside(kubelet.containers, index), spec, volumes, where)
        if container.name in seen:
            yield duplicate(f"{where}.name", quoted(container.name))
        seen.add(container.name)
        yield from _restart_policy(container, where)
    yield from _host_ports(spec.containers, field)


def validate_init_containers(
    spec: PodSpec, kubelet: KubeletSpec, volumes: Mapping[str, VolumeSource], field: str
) -> Errors:
    seen = {container.name for container in spec.containers}
    for index, container in enumerate(spec.init_containers):
        where = f"{field}[{index}]"
        yield from _container(container, _beside(kubelet.init_containers, index), spec, volumes, where)
        yield from _restart_policy(container, where)
        if container.name in seen:
            yield duplicate(f"{where}.name", quoted(container.name))
        elif container.name:
            seen.add(container.name)
        # They run one after the other, so each may use the same ports.
        yield from _host_ports((container,), field)


def _beside(containers: Sequence[KubeletContainer], index: int) -> KubeletContainer:
    return containers[index] if index < len(containers) else KubeletContainer()


def _container(
    container: Container,
    kubelet: KubeletContainer,
    spec: PodSpec,
    volumes: Mapping[str, VolumeSource],
    field: str,
) -> Errors:
    if container.name:
        yield from syntax(dns_label_errors, container.name, f"{field}.name")
    else:
        yield required(f"{field}.name", "")
    if not container.image:
        yield required(f"{field}.image", "")
    elif container.image != container.image.strip():
        yield invalid(f"{field}.image", quoted(container.image), "must not have leading or trailing whitespace")
    yield from _ports(container.ports, f"{field}.ports")
    yield from validate_container_fields(kubelet, volumes, field)
    yield from validate_used_claims(container.resources.claims, spec.resource_claims, f"{field}.resources.claims")
    yield from validate_requirements(container.resources, f"{field}.resources")
    own_users = spec.host_users is False
    yield from validate_container_context(kubelet.security_context, f"{field}.securityContext", own_users=own_users)


def _restart_policy(container: Container, field: str) -> Errors:
    policy, rules = container.restart_policy, container.restart_policy_rules
    if policy is None:
        if rules:
            yield required(f"{field}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy not in _RESTART_POLICIES:
        yield not_supported(f"{field}.restartPolicy", as_json(policy), _RESTART_POLICIES)
    if len(rules) > _MOST_RESTART_RULES:
        detail = f"Too many: {len(rules)}: must have at most {_MOST_RESTART_RULES} items"
        yield InputError(detail, place=Place(field=f"{field}.restartPolicyRules"))
    for index, rule in enumerate(rules):
        if rule.action not in RESTART_ACTIONS:
            yield not_supported(f"{field}.restartPolicyRules[{index}].action", as_json(rule.action), RESTART_ACTIONS)


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
        yield from one_of(port.protocol, PROTOCOLS, f"{where}.protocol")


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


def validate_host_network_ports(containers: tuple[Container, ...], field: str) -> Errors:
    for index, container in enumerate(containers):
        for port_index, port in enumerate(container.ports):
            if port.host_port != port.container_port:
                where = f"{field}[{index}].ports[{port_index}].hostPort"
                yield invalid(where, str(port.host_port), "must match `containerPort` when `hostNetwork` is true")
