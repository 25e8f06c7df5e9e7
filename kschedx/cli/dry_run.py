"""`--dry-run=server`: the pod as the live API server would store it, and its differences from kschedx's pod."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from kschedx.apiserver.defaulting import default_pod
from kschedx.cli.connection import Connection, connect
from kschedx.errors import InputError, KschedxError, NotAdmittedError, Place
from kschedx.explain.notes import Note, note
from kschedx.kube.decoding import decode, map_at
from kschedx.kube.documents import SERVER_FIELDS, Json
from kschedx.kube.quantity import parse_quantity
from kschedx.kube.types import Pod

_AMOUNTS = ("requests", "limits", "overhead")  # the keys of resource lists in a pod's spec
_CONFLICT = 409
_NOT_ALLOWED = "cannot create resource"
"""Part of the message of a server that forbids the request; the message for a refused pod is different."""


def server_side(connection: Connection, manifest: Json, admit: Callable[[Json], Pod]) -> tuple[Json, Note]:
    """Return the server's pod, and a note about its differences from `admit`'s pod.

    Raises `InputError` with the server's message if it refuses the pod.
    """
    from kschedx.sources.live.client import RefusedError

    server, _, _ = connect(connection)
    namespace = map_at(manifest, "metadata").get("namespace")
    path = f"/api/v1/namespaces/{namespace or 'default'}/pods"
    sent = create_manifest(manifest)
    try:
        try:
            body = server.dry_run(path, msgspec.json.encode(sent))
        except RefusedError as refused:
            if refused.status != _CONFLICT:
                raise
            # a pod of this name exists, so the dry run needs another name
            body = server.dry_run(path, msgspec.json.encode(create_manifest(manifest, renamed=True)))
        stored = restore_identity(manifest, msgspec.json.decode(body, type=dict[str, object]))
        live = default_pod(decode(msgspec.json.encode(stored), Pod))
    except RefusedError as refused:
        if refused.status == 403 and _NOT_ALLOWED in refused.message:
            refused.hint = "without --dry-run=server, kschedx admits the pod itself"
            raise
        if refused.status in (403, 404):  # admission or the namespace, as without --dry-run
            raise NotAdmittedError(refused.message) from None
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError("the dry run did not return a pod", place=Place(source=server.url, object=path)) from None
    try:
        written = admit(manifest)
    except KschedxError as error:
        text = f"the API server's dry run admits the pod; kschedx could not: {error}"
        return stored, note("dry-run", text, changes=())
    changes = list(_differences("spec", _plain(written), _plain(live)))
    text = f"a different pod than kschedx: {'; '.join(changes)}" if changes else "the same pod as kschedx"
    return stored, note("dry-run", f"the API server's dry run returns {text}", changes=changes)


def create_manifest(manifest: Json, *, renamed: bool = False) -> Json:
    """Return the pod as a client may create it: without fields that only a server sets, and without owners that do not
    exist yet. With `renamed`, the server generates its name."""
    metadata = dict(map_at(manifest, "metadata"))
    for field in SERVER_FIELDS:
        metadata.pop(field, None)
    owners = metadata.pop("ownerReferences", None)
    known: list[object] = [owner for owner in owners if map_at(owner).get("uid")] if isinstance(owners, list) else []
    if known:
        metadata["ownerReferences"] = known
    if renamed:
        metadata["generateName"] = f"{metadata.pop('name', 'pod')}-"
    sent: Json = {**manifest, "metadata": metadata}
    sent.pop("status", None)
    return sent


def restore_identity(manifest: Json, stored: Json) -> Json:
    """Return the server's pod with the name and the owners of the manifest."""
    own_metadata = map_at(manifest, "metadata")
    metadata = dict(map_at(stored, "metadata"))
    for key in ("name", "ownerReferences"):
        if key in own_metadata:
            metadata[key] = own_metadata[key]
    return {**stored, "metadata": metadata}


def _plain(pod: Pod) -> object:
    """Return the pod's spec as JSON, without volumes that scheduling ignores: the server adds some for tokens."""
    spec = _with_canonical_amounts(msgspec.to_builtins(pod.spec))
    assert isinstance(spec, dict)
    volumes = spec.get("volumes")
    if isinstance(volumes, list | tuple):
        spec["volumes"] = [volume for volume in volumes if any(value for key, value in volume.items() if key != "name")]
    return spec


def _with_canonical_amounts(value: object) -> object:
    """The value with amounts in canonical form: a manifest may have 1 or 1000m, and a server prints both the same."""
    if isinstance(value, list | tuple):
        return [_with_canonical_amounts(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {name: str(parse_quantity(amount)) for name, amount in part.items()}
        if key in _AMOUNTS and isinstance(part, dict)
        else _with_canonical_amounts(part)
        for key, part in value.items()
    }


def _differences(path: str, written: object, live: object) -> Iterator[str]:
    if isinstance(written, dict) and isinstance(live, dict):
        for key in sorted({*written, *live}):
            yield from _differences(f"{path}.{key}", written.get(key), live.get(key))
    elif isinstance(written, list) and isinstance(live, list) and len(written) == len(live):
        for index, (mine, other) in enumerate(zip(written, live, strict=True)):
            yield from _differences(f"{path}[{index}]", mine, other)
    elif written != live:
        yield f"{path} is {_shown(live)}, not {_shown(written)}"


def _shown(value: object) -> str:
    return msgspec.json.encode(value).decode()
