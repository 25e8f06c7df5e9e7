"""The syntax of names, label keys, and label values, with the API server's messages.

Each function yields the errors of a value; a valid value has none. Lengths are in bytes, even where the message says
characters. Upstream: apimachinery/pkg/util/validation for DNS names, apimachinery/pkg/api/validate/content for labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from kschedx.patterns import lazy_pattern

_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_LABEL_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_LABEL_NAME})?"

# The same languages, as expressions that match in linear time.
_IS_DNS_LABEL = lazy_pattern(r"[a-z0-9](?:-*[a-z0-9]++)*+")
_IS_DNS_SUBDOMAIN = lazy_pattern(r"[a-z0-9](?:-*[a-z0-9]++)*+(?:\.[a-z0-9](?:-*[a-z0-9]++)*+)*+")
_IS_LABEL_NAME = lazy_pattern(r"[A-Za-z0-9](?:[-_.]*[A-Za-z0-9]++)*+")

_EMPTY = "must be non-empty"


def _too_long(value: str, limit: int, unit: str = "characters") -> Iterator[str]:
    if len(value.encode(errors="surrogatepass")) > limit:
        yield f"must be no more than {limit} {unit}"


def _mismatch(message: str, expression: str, *examples: str) -> str:
    quoted = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {quoted}regex used for validation is '{expression}')"


_LABEL_NAME_MISMATCH = _mismatch(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _LABEL_NAME,
    "MyName",
    "my.name",
    "123-abc",
)


def dns_label_errors(value: str) -> Iterator[str]:
    """IsDNS1123Label: namespaces, container names."""
    yield from _too_long(value, 63)
    if _IS_DNS_LABEL.fullmatch(value):
        return
    if _IS_DNS_SUBDOMAIN.fullmatch(value):
        yield "must not contain dots"
    else:
        yield _mismatch(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character",
            _DNS_LABEL,
            "my-name",
            "123-abc",
        )


def dns_subdomain_errors(value: str, unit: str = "characters") -> Iterator[str]:
    """IsDNS1123Subdomain: the names of most objects, nodes and pods among them."""
    yield from _too_long(value, 253, unit)
    if not _IS_DNS_SUBDOMAIN.fullmatch(value):
        yield _mismatch(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character",
            _DNS_SUBDOMAIN,
            "example.com",
        )


def label_key_errors(value: str) -> Iterator[str]:
    """IsLabelKey, also called a qualified name: an optional DNS subdomain and "/", then a name."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        yield f"a valid label key {_LABEL_NAME_MISMATCH} {optional}"
        return
    if slash and not prefix:
        yield f"prefix part {_EMPTY}"
    elif slash:
        yield from (f"prefix part {message}" for message in dns_subdomain_errors(prefix, "bytes"))
    if not name:
        yield f"name part {_EMPTY}"
    yield from (f"name part {message}" for message in _too_long(name, 63, "bytes"))
    if not _IS_LABEL_NAME.fullmatch(name):
        yield f"name part {_LABEL_NAME_MISMATCH}"


def label_value_errors(value: str) -> Iterator[str]:
    """IsLabelValue: empty, or at most 63 characters like those of a label's name."""
    yield from _too_long(value, 63, "bytes")
    if value and not _IS_LABEL_NAME.fullmatch(value):
        yield _mismatch(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character",
            _LABEL_VALUE,
            "MyValue",
            "my_value",
            "12345",
        )


DEFAULT_SCHEDULER = "default-scheduler"
OF_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")  # both taints and labels

# The meaning of a resource's name.

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Return whether it counts as a scalar: extended resources, hugepages, attachable volumes, and names with
    "kubernetes.io/"."""
    return (
        is_extended_resource(name)
        or is_hugepages(name)
        or "kubernetes.io/" in name
        or name.startswith("attachable-volumes-")
    )


@lru_cache(maxsize=4096)
def is_extended_resource(name: str) -> bool:
    """Return whether it is outside *kubernetes.io/, without a quota's prefix "requests.", and a qualified name."""
    if is_native_resource(name) or name.startswith("requests."):
        return False
    return next(label_key_errors(f"requests.{name}"), None) is None


def is_native_resource(name: str) -> bool:
    """Return whether it is in *kubernetes.io/ or has no prefix."""
    return "/" not in name or "kubernetes.io/" in name


def is_hugepages(name: str) -> bool:
    return name.startswith("hugepages-")


def is_overcommit_allowed(name: str) -> bool:
    """Return whether a limit may exceed the request."""
    return is_native_resource(name) and not is_hugepages(name)


def is_pod_level_resource(name: str) -> bool:
    """Return whether spec.resources may name it (IsSupportedPodLevelResource)."""
    return name in (CPU, MEMORY) or is_hugepages(name)


# The labels with the location of a node: the first one that it has counts.

SYSTEM_NAMESPACES = ("kube-", "openshift-")  # prefixes of the names of system namespaces
OF_OPENSHIFT = "node.openshift.io/os_id"  # a label of every node of OpenShift
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
NVIDIA_GPU = "nvidia.com/gpu"
ZONE_LABELS = (ZONE, "failure-domain.beta.kubernetes.io/zone")
REGION_LABELS = (REGION, "failure-domain.beta.kubernetes.io/region")
POOL_LABELS = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "doks.digitalocean.com/node-pool",
    "ibm-cloud.kubernetes.io/worker-pool-name",
)
INSTANCE_TYPE_LABELS = (INSTANCE_TYPE, "beta.kubernetes.io/instance-type")
ARCH_LABELS = ("kubernetes.io/arch", "beta.kubernetes.io/arch")


def first_label(labels: Mapping[str, str], keys: Iterable[str]) -> str:
    """Return the value of the first of these labels that is set, or an empty string."""
    return next((labels[key] for key in keys if labels.get(key)), "")


# Names of nodes as screens show them.

_WORD = lazy_pattern(r"[a-z]{3}")
_SHORTEST_PREFIX = 8
"""The minimum length of an omitted prefix. Shorter ones cost little, and may show the purpose of a node: `gpu-`."""


def short_names(names: Sequence[str]) -> Mapping[str, str]:
    """Return names without the common prefix and domain of their family; empty if they have none.

    Each short name begins with a word and differs from all others: `gke-prod-euw4-general-a679-w7pq` becomes
    `general-a679-w7pq`, while `node-1` and the address `10.0.0.1` stay as they are.
    """
    short: dict[str, str] = {}
    for family in families(names):
        prefix, domain = common_affixes(family)
        if prefix or domain:
            short |= {name: name.removesuffix(domain).removeprefix(prefix) for name in family}
    return short if len(set(short.values())) == len(short) else {}


_ADDED = lazy_pattern("-new-[0-9]+$")


def generated_name(metadata: Mapping[str, object], number: int = 0) -> str:
    """Return a name for an object that only has generateName, as the API server would give it one; empty if it has none
    either."""
    base = str(metadata.get("generateName") or "").rstrip("-.")
    return f"{base}-new{number or ''}" if base else ""


def added_node_name(group: str, number: int) -> str:
    return f"{group}-new-{number}"


def families(names: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of the cluster's nodes, and of those that an autoscaler adds."""
    added = [name for name in names if _ADDED.search(name)]
    return ([name for name in names if not _ADDED.search(name)], added) if added else (names, ())


def common_affixes(names: Sequence[str]) -> tuple[str, str]:
    """Return the prefix and the domain that short names omit; each may be empty."""
    if len(names) < 2:
        return "", ""
    domains = {name.partition(".")[2] for name in names}
    domain = f".{domains.pop()}" if len(domains) == 1 else ""
    if domain == "." or domain.rpartition(".")[2].isdigit():
        domain = ""
    bare = [name.removesuffix(domain) for name in names]
    if len(set(bare)) < len(names):
        return "", ""
    return _common_prefix(bare), domain


def _common_prefix(names: Sequence[str]) -> str:
    """Return the prefix up to the last dash after which every name continues with a word."""
    first, last = min(names), max(names)
    common = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    ends = [match.end() for match in re.finditer("-", first[:common])]
    ends = [end for end in ends if end >= _SHORTEST_PREFIX]
    return next((first[:end] for end in reversed(ends) if all(_WORD.match(name, end) for name in names)), "")


PRESENT_TOPOLOGY = {old: new for new, old in (ZONE_LABELS, REGION_LABELS)}
NEW_NAMES = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    **PRESENT_TOPOLOGY,
    "node-role.kubernetes.io/master": "node-role.kubernetes.io/control-plane",
}
"""Deprecated names of labels and taints that manifests still use, to their present names."""
