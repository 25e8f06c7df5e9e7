"""The base of all findings."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Annotated, ClassVar

from msgspec import Meta

from kschedx.kube.documents import Document, Json, to_json

FindingDocument = Annotated[
    Json, Meta(extra_json_schema={"required": ["reason"], "properties": {"reason": {"type": "string"}}})
]
"""A reason as facts; the other keys depend on the reason."""


class Facts(Document, frozen=True, kw_only=True):
    reason: ClassVar[str]  # the name of the class in kebab case: `insufficient-resource`
    shared: ClassVar[tuple[str, ...]] = ()
    """The facts that findings of this reason must share to share a headline: by default, all of them. Facts that the
    finding's text states for each node (`Words.shared`, `Words.brief`) may differ."""
    optional: ClassVar[tuple[str, ...]] = ()
    """The keys that are left out of the document if their facts are false or empty."""
    constant_distance: ClassVar[float] = 1.0

    def __init_subclass__(cls) -> None:
        cls.reason = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    @property
    def same_as(self) -> Hashable:
        """The values of the facts that findings must share to share a headline."""
        return tuple(getattr(self, fact) for fact in self.shared) if self.shared else self

    @property
    def distance(self) -> float:
        """How far the node is from passing, to compare nodes that are rejected for the same reason."""
        return self.constant_distance

    def to_dict(self) -> dict[str, object]:
        """Return `{"reason": ..., fact: value, ...}` with camelCase keys, for JSON."""
        document = {"reason": self.reason} | to_json(self)
        return {key: value for key, value in document.items() if value or key not in self.optional}
