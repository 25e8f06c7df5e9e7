"""Changes that make a pod meet a Pod Security Standard and keep what its manifest sets explicitly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from kschedx.apiserver.pod_security import ALL, PREFIX, PodSecurityLevel
from kschedx.fixes.changes import Change, pointer
from kschedx.kube.decoding import list_at, map_at
from kschedx.kube.documents import Json, Target

ENFORCE = f"{PREFIX}enforce"
_OF_POD: Json = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
"""Fields that are set once, at pod level, for all containers."""
_NOT_OF_WINDOWS = ("seccompProfile",)


class Setting(Struct, frozen=True, kw_only=True):
    """A field of a security context, and the value that it is set to."""

    container: str
    """Empty for the pod."""
    field: str
    value: object


class Secured(Struct, frozen=True, kw_only=True):
    settings: tuple[Setting, ...]
    change: Change


def secured(pod: Mapping[str, object]) -> Secured | None:
    """Return the unset fields of a pod's manifest, set as `restricted` requires; None if all are set.

    Set fields stay as they are: hostNetwork, privileged, or a capability is set on purpose.
    """
    spec = map_at(pod, "spec")
    is_windows = map_at(spec, "os").get("name") == "windows"
    settings: list[Setting] = []
    patch: list[Json] = []
    own = map_at(spec, "securityContext")
    containers = [*_containers(spec, "initContainers"), *_containers(spec, "containers")]
    contexts = [map_at(item, "securityContext") for _, item in containers]
    of_pod: Json = {
        field: value
        for field, value in _OF_POD.items()
        if own.get(field) is None
        and any(context.get(field) is None for context in contexts)
        and not (is_windows and field in _NOT_OF_WINDOWS)
    }
    if of_pod:
        settings += [Setting(container="", field=field, value=value) for field, value in of_pod.items()]
        patch.append({"op": "add", "path": "/spec/securityContext", "value": _in_order({**own, **of_pod})})
    for path, container in () if is_windows else containers:
        context = map_at(container, "securityContext")
        said = _of_container(context)
        if said:
            name = str(container.get("name") or "")
            settings += [Setting(container=name, field=field, value=value) for field, value in said.items()]
            patch.append({"op": "add", "path": f"{path}/securityContext", "value": _in_order({**context, **said})})
    if not patch:
        return None
    metadata = map_at(pod, "metadata")
    target = Target(
        api_version="v1",
        kind="Pod",
        namespace=str(metadata.get("namespace") or "default"),
        name=str(metadata.get("name") or ""),
    )
    return Secured(settings=tuple(settings), change=Change(target=target, patch=tuple(patch)))


def _in_order(context: Json) -> Json:
    """Return the fields by name: their order in the file does not matter."""
    in_order: Json = msgspec.to_builtins(context, order="sorted")
    return in_order


def relabelled(namespace: str, level: PodSecurityLevel) -> Change:
    """Return the change that makes a namespace enforce another level."""
    target = Target(api_version="v1", kind="Namespace", namespace="", name=namespace)
    path = f"/metadata/labels/{pointer(ENFORCE)}"
    return Change(target=target, patch=({"op": "add", "path": path, "value": str(level)},))


def _of_container(context: Mapping[str, object]) -> Json:
    said: Json = {}
    capabilities = map_at(context, "capabilities")
    dropped, added = list_at(capabilities, "drop"), list_at(capabilities, "add")
    # the API server refuses the field for containers that are privileged or have CAP_SYS_ADMIN: they could gain no more
    if context.get("allowPrivilegeEscalation") is None and not (context.get("privileged") or "CAP_SYS_ADMIN" in added):
        said["allowPrivilegeEscalation"] = False
    if ALL not in dropped:
        said["capabilities"] = {**capabilities, "drop": [ALL]}
    return said


def _containers(spec: Mapping[str, object], kind: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    for index, item in enumerate(list_at(spec, kind)):
        yield f"/spec/{kind}/{index}", map_at(item)
