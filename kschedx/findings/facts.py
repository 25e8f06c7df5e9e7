"""What all findings share."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from kschedx.kube.documents import Json, as_document

FindingDocument = Annotated[
    Json, Meta(extra_json_schema={"required": ["reason"], "properties": {"reason": {"type": "string"}}})
]
"""A reason as facts; which others it has depends on the reason."""


class Facts(Struct, frozen=True, kw_only=True):
    reason: ClassVar[str]

    @property
    def same_as(self) -> Hashable:
        """What findings of this reason must have in common so that one headline may stand for all of them, except for
        what its words state for each node (`Words.shared`, `Words.brief`). All facts, unless a finding says less."""
        return self

    @property
    def distance(self) -> float:
        """How far the node is from passing: for comparisons between nodes that are rejected alike."""
        return 1.0

    def to_dict(self) -> dict[str, object]:
        """`{"reason": ..., fact: value, ...}` with camelCase keys, for JSON."""
        return {"reason": self.reason} | as_document(self)
