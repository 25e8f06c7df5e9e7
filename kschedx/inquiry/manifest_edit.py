"""A change of a pod's manifest from the command line: `spec.nodeSelector.disk=ssd`, or a patch."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from itertools import pairwise

from msgspec import Struct

from kschedx.apiserver.unknown_fields import unknown_fields
from kschedx.errors import InputError, Place
from kschedx.fixes.changes import PatchError, apply_patch
from kschedx.kube.decoding import new_manifest, value_at
from kschedx.kube.documents import Json
from kschedx.patterns import lazy_pattern
from kschedx.simulate.object_changes import scalar

_PART = lazy_pattern(r"""\.?([A-Za-z0-9_-]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")
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
        changed = with_change(pod, self.text) if self.patch is None else _with_patch(pod, self.patch)
        for fault in unknown_fields(new_manifest(changed)):
            raise fault.at(Place(object=source))
        return changed


def with_change(pod: Json, change: str) -> Json:
    """Return the manifest with `PATH=VALUE`, or without `PATH-`. Raises `InputError`."""
    match = _ASSIGNMENT.fullmatch(change)
    if match is None:
        raise InputError(f'--try: found "{change}"', hint="PATH=VALUE, PATH- to remove, or a file with a patch")
    parts = _parts(match["path"], change)
    changed = copy.deepcopy(pod)
    at: object = changed
    for part, following in pairwise(parts):
        at = _below(at, part, following, change)
    _set(at, parts[-1], match["value"], change)
    return changed


def _with_patch(pod: Json, patch: object) -> Json:
    """Return the manifest with a JSON patch (a list) or a merge patch (a map) applied. Raises `InputError`."""
    if isinstance(patch, Mapping):
        return _merge(pod, value_at(patch, *_TEMPLATE) or patch)
    if not isinstance(patch, list) or not all(isinstance(item, Mapping) for item in patch):
        raise InputError("--try: a patch is a list of operations (RFC 6902) or a map (RFC 7386)")
    lead = "/" + "/".join(_TEMPLATE)
    operations = [{**item, "path": str(item.get("path", "")).removeprefix(lead)} for item in patch]
    try:
        return apply_patch(pod, operations)
    except PatchError as error:
        raise InputError(f"--try: {error}") from None


def _parts(path: str, change: str) -> list[str | int]:
    parts: list[str | int] = []
    position = 0
    while position < len(path):
        match = _PART.match(path, position)
        if match is None:
            raise InputError(f'--try: "{change}" is not a path at "{path[position:]}"')
        name, index, *quoted = match.groups()
        parts.append(int(index) if index is not None else name or next(text for text in quoted if text is not None))
        position = match.end()
    if tuple(parts[:2]) == _TEMPLATE:
        parts = parts[2:]
    if not parts or parts[0] not in ("metadata", "spec"):
        raise InputError(f'--try: "{change}" starts with neither spec nor metadata')
    return parts


def _below(at: object, part: str | int, following: str | int, change: str) -> object:
    if isinstance(at, dict) and isinstance(part, str):
        if at.get(part) is None:  # null stands for an absent value
            at[part] = [] if isinstance(following, int) else {}
        return at[part]
    if isinstance(at, list) and isinstance(part, int) and part <= len(at):
        if part == len(at):
            at.append([] if isinstance(following, int) else {})
        return at[part]
    raise InputError(f'--try: "{change}": there is no "{part}"')


def _set(at: object, part: str | int, value: str | None, change: str) -> None:
    if isinstance(at, dict) and isinstance(part, str):
        if value is not None:
            at[part] = scalar(value)
        elif at.pop(part, None) is None:
            raise InputError(f'--try: "{change}": there is no "{part}"')
        return
    if isinstance(at, list) and isinstance(part, int) and part < len(at) + (value is not None):
        at[part : part + 1] = [] if value is None else [scalar(value)]
        return
    raise InputError(f'--try: "{change}": there is no "{part}"')


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
