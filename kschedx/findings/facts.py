"""What all findings share."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class Facts(Struct, frozen=True, kw_only=True):
    reason: ClassVar[str]

    def to_dict(self) -> dict[str, object]:
        """`{"reason": ..., fact: value, ...}` with camelCase keys, for JSON."""
        return {"reason": self.reason} | _named(self)


def _named(facts: Struct) -> dict[str, object]:
    return {_camel(name): _plain(getattr(facts, name)) for name in facts.__struct_fields__}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return _named(value) if isinstance(value, Struct) else value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
