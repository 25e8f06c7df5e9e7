"""What is done to the objects of a cluster."""

from __future__ import annotations

from msgspec import Struct

Json = dict[str, object]


class Target(Struct, frozen=True, kw_only=True):
    """The object that a change is made to."""

    api_version: str
    kind: str
    namespace: str
    name: str


class Change(Struct, frozen=True, kw_only=True):
    """A JSON patch (RFC 6902) of an object, its deletion, or a new object."""

    target: Target
    patch: tuple[Json, ...] = ()
    delete: bool = False
    create: Json | None = None
    by: str = ""
    """Who makes it by itself once the others are made; empty where somebody has to."""

    def to_dict(self) -> Json:
        target: Json = {"apiVersion": self.target.api_version, "kind": self.target.kind, "name": self.target.name}
        if self.target.namespace:
            target["namespace"] = self.target.namespace
        told: Json = {"target": target}
        if self.delete:
            told["delete"] = True
        elif self.create is not None:
            told["create"] = self.create
        else:
            told["patch"] = list(self.patch)
        return told | ({"by": self.by} if self.by else {})
