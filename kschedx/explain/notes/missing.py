"""Kinds that were not read."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from kschedx.explain.notes.facts import NoteFacts
from kschedx.snapshot.source import Missing


class NamespacesOnly(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "other-namespaces"
    namespaces: tuple[str, ...]

    @property
    def facts(self) -> dict[str, object]:
        return {"namespaces": list(self.namespaces)}


class PodsLacking(NoteFacts, frozen=True, kw_only=True):
    """Some pods of the cluster are not in the dump."""

    id: ClassVar[str] = "dump"
    formats: tuple[str, ...]
    """`must-gather`."""
    lacking: str
    """Which ones, as the dump's reader says it; empty where there is none at all."""

    @property
    def facts(self) -> dict[str, object]:
        return {"formats": list(self.formats), "kinds": ["Pod"]}


class KindsLacking(NoteFacts, frozen=True, kw_only=True):
    """Objects that the dump's tool does not save, or not all of them."""

    id: ClassVar[str] = "dump"
    formats: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def facts(self) -> dict[str, object]:
        return {"formats": list(self.formats), "kinds": list(self.kinds)}


class KindsForbidden(NoteFacts, frozen=True, kw_only=True):
    """They may not be listed."""

    id: ClassVar[str] = "unread-kind"
    kinds: tuple[str, ...]
    depends: bool = False
    """An answer may depend on them; it is known that this one does not, otherwise."""

    @property
    def facts(self) -> dict[str, object]:
        return {"kinds": list(self.kinds), "cause": Missing.FORBIDDEN.value}


class KindsNotServed(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "unread-kind"
    kinds: tuple[str, ...]

    @property
    def facts(self) -> dict[str, object]:
        return {"kinds": list(self.kinds), "cause": Missing.ABSENT.value}


MissingNote: TypeAlias = NamespacesOnly | PodsLacking | KindsLacking | KindsForbidden | KindsNotServed
