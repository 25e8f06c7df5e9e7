"""A change of a pod's manifest from the command line: `spec.nodeSelector.disk=ssd`, or a patch."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from kschedx.apiserver.unknown_fields import unknown_fields
from kschedx.errors import InputError, Place
from kschedx.fixes.changes import PatchError, apply_patch
from kschedx.kube.decoding import new_manifest, value_at
from kschedx.kube.documents import Json
from kschedx.patterns import lazy_pattern
from kschedx.simulate.object_changes import REMOVED, field_parts, scalar, with_value

_ASSIGNMENT = lazy_pattern(r"(?P<path>[^=\s]+?)(?:(?P<gone>-)|=(?P<value>.*))", re.DOTALL)
_TEMPLATE = ("spec", "template")
_BY_NAME = ("containers", "initContainers", "volumes", "ephemeralContainers")
"""Lists whose elements a merge patch identifies by name, as in kubectl."""


class Edit(Struct, frozen=True):
    text: str  # `spec.nodeSelector.disk=ssd`, or the name of a file
    patch: object = None  # the file's content

    def apply(self, pod: Json, source: str) -> Json:
        """Return the changed manifest. Raises `InputError` for a field that no API server would accept, also in a
        stored pod, since the change is written by hand; `source` names it."""
        with Place(object=source):
            changed = with_change(pod, self.text) if self.patch is None else _with_patch(pod, self.patch)
            for fault in unknown_fields(new_manifest(changed)):
                raise fault
        return changed


def with_change(pod: Json, change: str) -> Json:
    """Return the manifest with `PATH=VALUE`, or without `PATH-`. Raises `InputError`."""
    match = _ASSIGNMENT.fullmatch(change)
    if match is None:
        raise InputError(f'found "{change}"', hint="PATH=VALUE, PATH- to remove, or a file with a patch")
    path = match["path"]
    if field_parts(path)[:2] == ["spec", "template"]:
        path = path.removeprefix("spec.template.")
    if not path.startswith(("metadata.", "spec.")):
        raise InputError(f'"{path}" starts with neither spec nor metadata')
    return with_value(pod, path, REMOVED if match["gone"] else scalar(match["value"]))


def _with_patch(pod: Json, patch: object) -> Json:
    """Return the manifest with a JSON patch (a list) or a merge patch (a map) applied. Raises `InputError`."""
    if isinstance(patch, Mapping):
        return _merge(pod, value_at(patch, *_TEMPLATE) or patch)
    if not isinstance(patch, list) or not all(isinstance(item, Mapping) for item in patch):
        raise InputError("a patch is a list of operations (RFC 6902) or a map (RFC 7386)")
    lead = "/" + "/".join(_TEMPLATE)
    operations = [{**item, "path": str(item.get("path", "")).removeprefix(lead)} for item in patch]
    try:
        return apply_patch(pod, operations)
    except PatchError as error:
        raise InputError(str(error)) from None


def _merge(target: object, patch: object) -> Json:
    merged: Json = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items() if isinstance(patch, Mapping) else ():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            merged[name] = _merge(merged.get(name), value)
        elif isinstance(value, list) and name in _BY_NAME:
            merged[name] = _merged_by_name(merged.get(name), value)
        else:
            merged[name] = value
    return merged


def _merged_by_name(target: object, patch: list[object]) -> list[object]:
    merged = list(target) if isinstance(target, list) else []
    for item in patch:
        name = item.get("name") if isinstance(item, Mapping) else None
        index = next(
            (at for at, old in enumerate(merged) if isinstance(old, Mapping) and old.get("name") == name), None
        )
        if index is None:
            merged.append(item)
        else:
            merged[index] = _merge(merged[index], item)
    return merged
