"""What the name of a resource says of it."""

from __future__ import annotations

from functools import lru_cache

from kschedx.api import names

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Counted in the map of scalars: extended, hugepages, attachable volumes, and names with "kubernetes.io/"."""
    return (
        is_extended_resource(name)
        or is_hugepages(name)
        or "kubernetes.io/" in name
        or name.startswith("attachable-volumes-")
    )


@lru_cache(maxsize=4096)
def is_extended_resource(name: str) -> bool:
    """Outside *kubernetes.io/, not a quota's "requests.", and still a qualified name with that prefix."""
    if is_native_resource(name) or name.startswith("requests."):
        return False
    return next(names.label_key_errors(f"requests.{name}"), None) is None


def is_native_resource(name: str) -> bool:
    """In *kubernetes.io/, as names without a prefix are."""
    return "/" not in name or "kubernetes.io/" in name


def is_hugepages(name: str) -> bool:
    return name.startswith("hugepages-")


def is_overcommit_allowed(name: str) -> bool:
    """Whether a limit may be above the request."""
    return is_native_resource(name) and not is_hugepages(name)


def is_pod_level_resource(name: str) -> bool:
    """Whether spec.resources may name it (IsSupportedPodLevelResource)."""
    return name in (CPU, MEMORY) or is_hugepages(name)


@lru_cache(maxsize=4096)
def is_counted(name: str) -> bool:
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)
