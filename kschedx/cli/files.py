"""Files with other content than objects, and the profiles that come with kschedx."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kschedx.cli.streams import print_note_if_file
from kschedx.errors import ConfigError, InputError, nearest
from kschedx.sources import yaml as yaml_text
from kschedx.sources.compression import STDOUT, compression_of, read_content, write
from kschedx.sources.configurations import find_configuration, placed_error, read_configuration, zero_weights

if TYPE_CHECKING:
    from kschedx.kube.snapshot_header import SnapshotHeader
    from kschedx.snapshot.snapshot import Snapshot


def single_document(path: str) -> object:
    """Return the content of a YAML or JSON file. Raises `InputError`."""
    documents = [document.value for document in yaml_text.load_all(read_content(path), source=path)]
    if len(documents) != 1:
        raise InputError(f"one document is expected, not {len(documents)}", source=path)
    return documents[0]


# Files to which snapshots are written.

_FORMATS = (".json", ".yaml", ".yml")


def check_name(option: str, path: str) -> None:
    """Raise `InputError` for a name without the suffix of a known format."""
    if path != STDOUT and not path.removesuffix(compression_of(path)).endswith(_FORMATS):
        allowed = "allowed are names in .json or .yaml, with .gz or .zst after it, and -"
        raise InputError(f'{option}: found "{path}", {allowed}')


def write_snapshot(path: str, snapshot: Snapshot) -> None:
    """Write the current state of a cluster, to be loaded again. Raises `InputError`."""
    from msgspec.structs import replace

    from kschedx.export.slim import object_lines

    objects = list(object_lines(snapshot))
    counts = Counter(kind for kind, _ in objects)
    header = snapshot.source.header
    header = replace(header, complete={kind: counts[kind] for kind in header.complete})
    is_json = path == STDOUT or path.removesuffix(compression_of(path)).endswith(".json")
    lines = (line for _, line in objects)
    write(path, json_parts(header, lines) if is_json else yaml_parts(header, lines))


def json_parts(header: SnapshotHeader, objects: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a List with a line for each object, so that it can be read in parts, and compared line by line."""
    from kschedx.kube.escaping import json_escaped_bytes

    yield json_escaped_bytes(msgspec.json.encode(_head(header))[:-1]) + b',"items":[\n'
    for number, item in enumerate(objects):
        yield b",\n" + json_escaped_bytes(item) if number else json_escaped_bytes(item)
    yield b"\n]}\n"


def yaml_parts(header: SnapshotHeader, objects: Iterable[bytes]) -> Iterator[bytes]:
    from kschedx.render.manifests import commented_yaml

    yield commented_yaml(_head(header), {}).encode()
    yield b"items:\n"
    for item in objects:
        yield commented_yaml({"items": [msgspec.json.decode(item)]}, {}).encode().removeprefix(b"items:\n")


def _head(header: SnapshotHeader) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "List", "metadata": {"annotations": header.annotations()}}


_PACKAGE = Path(__file__).resolve().parent.parent


def shipped_folder(name: str) -> Path:
    """Return a folder that comes with kschedx: `profiles/` in a checkout, `kschedx/_profiles` when installed."""
    installed = _PACKAGE / f"_{name}"
    return installed if installed.is_dir() else _PACKAGE.parent / name


# The profiles that come with kschedx, by name.

DEFAULT = "default"  # the default profile of the emulated version

_POLICIES = {"policy-1.13": "1.13", "policy-1.0": "1.5"}
"""Policy files to their versions; 1.5 evaluates them as 1.0 did."""


def names() -> list[str]:
    """Return every name that `_find` accepts."""
    return [DEFAULT, *sorted(path.stem for path in shipped_folder("profiles").glob("*.yaml"))]


def purposes() -> dict[str, str]:
    """Return the first sentence of the comment at the start of each profile; the defaults of versions are last, the
    newest first."""
    return {
        path.stem: _purpose(path)
        for path in sorted(shipped_folder("profiles").glob("*.yaml"), key=lambda path: _order(path.stem))
    }


def _find(name: str) -> Path | None:
    """Return the file of a profile by its name, or the given file; None for the version's default. A file with the name
    of a profile gets a note.

    Raises `InputError` with the nearest name.
    """
    if name in names():
        print_note_if_file(name)
        return None if name == DEFAULT else shipped_folder("profiles") / f"{name}.yaml"
    if name == "-" or Path(name).exists() or name.endswith((".yaml", ".yml", ".json")):
        return Path(name)
    known = names()
    raise InputError(
        f'no profile "{name}", and no file of that name', hint=nearest(name, known) or f"known: {', '.join(known)}"
    )


def is_profile(name: str) -> bool:
    """Return whether this is the name of a profile, or a file with a configuration."""
    try:
        path = _find(name)
        return path is None or bool(find_configuration(str(path)).document)
    except InputError:
        return False


def configuration(name: str) -> Mapping[str, object] | None:
    """Return the KubeSchedulerConfiguration of a name or file; None for the version's default."""
    path = _find(name)
    return None if path is None else read_configuration(str(path))


def with_zero_weights(name: str) -> tuple[Mapping[str, object] | None, list[str]]:
    """Return the configuration, and the field paths of weights that are 0, which `configuration` refuses."""
    path = _find(name)
    if path is None:
        return None, []
    document = find_configuration(str(path)).document
    return document, list(zero_weights(document))


def version_of(name: str) -> str | None:
    """Return the version of a profile: `default-1.30` is the default of 1.30, and old versions read a Policy."""
    if name in _POLICIES:
        return _POLICIES[name]
    version = name.removeprefix(f"{DEFAULT}-")
    return version if version != name and name in names() else None


@contextmanager
def error_places(name: str) -> Iterator[None]:
    """Add the file and the line to errors about a field of the configuration."""
    try:
        yield
    except ConfigError as error:
        path = _find(name)
        raise (placed_error(error, str(path)) if path is not None and error.place.field else error) from None


def _purpose(path: Path) -> str:
    words: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        words.append(line.removeprefix("#").strip())
    return " ".join(words).partition(". ")[0].rstrip(".")


def _order(name: str) -> tuple[bool, list[int], str]:
    version = name.removeprefix("default-")
    is_default = version != name
    return is_default, [-int(part) for part in version.split(".")] if is_default else [], name
