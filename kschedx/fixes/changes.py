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

    def to_dict(self) -> Json:
        target: Json = {"apiVersion": self.target.api_version, "kind": self.target.kind, "name": self.target.name}
        if self.target.namespace:
            target["namespace"] = self.target.namespace
        if self.delete:
            return {"target": target, "delete": True}
        if self.create is not None:
            return {"target": target, "create": self.create}
        return {"target": target, "patch": list(self.patch)}
