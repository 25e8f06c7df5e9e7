"""Names for the shell: pods, workloads, nodes and namespaces of the snapshot on the command line; ids of reasons."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from kschedx.snapshot.snapshot import Snapshot

LARGEST = 100 << 20
"""Bytes of a snapshot; a larger one would keep the shell waiting for more than a second."""
_SHRUNK = 20
"""How many times smaller a compressed snapshot is."""

_NAME = re.compile(r"(?:[a-z]+/)?[A-Za-z0-9][A-Za-z0-9.-]*")
"""What can be a name or `kind/name`: anything else in a snapshot is no name, and a shell might run it."""


def _snapshot(context: typer.Context) -> Snapshot | None:
    """The snapshot that the command line names so far; nothing is completed from one that cannot be read."""
    from kschedx.errors import KschedxError
    from kschedx.loading import load

    paths = [path for path in context.params.get("snapshot") or [] if path != "-"]
    if not paths or sum(_size(Path(path)) for path in paths) > LARGEST:
        return None
    try:
        return load(paths)
    except KschedxError:
        return None


def _size(path: Path) -> int:
    """Bytes of a file, or of everything in a folder; about those that a compressed file unpacks to."""
    from kschedx.sources.compression import format_of
    from kschedx.sources.tree import is_zip

    if path.is_dir():
        files = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
        return sum(file.lstat().st_size for file in files)
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        head = file.read(8)
    return path.stat().st_size * (_SHRUNK if format_of(head) or is_zip(head) else 1)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete) and _NAME.fullmatch(name)})


def targets(context: typer.Context, incomplete: str) -> list[str]:
    """`pod/NAME` for every pod, and the workloads, of the namespace; `node/NAME`."""
    from kschedx.kube.workloads import SHORT_NAMES

    snapshot = _snapshot(context)
    if snapshot is None:
        return []
    namespace = context.params.get("namespace") or "default"
    pods = snapshot.pods
    names = [f"pod/{name}" for row, name in enumerate(pods.names) if pods.namespaces[row] == namespace]
    short: dict[str, str] = {}
    for abbreviation, kind in SHORT_NAMES.items():
        short.setdefault(kind, abbreviation)
    names += [f"{short[kind]}/{name}" for kind, space, name in snapshot.workloads if space == namespace]
    names += [f"node/{name}" for name in snapshot.cluster.names]
    return _beginning(incomplete, names)


def nodes(context: typer.Context, incomplete: str) -> list[str]:
    snapshot = _snapshot(context)
    return [] if snapshot is None else _beginning(incomplete, snapshot.cluster.names)


def namespaces(context: typer.Context, incomplete: str) -> list[str]:
    snapshot = _snapshot(context)
    if snapshot is None:
        return []
    return _beginning(incomplete, {*snapshot.namespaces, *snapshot.pods.namespaces.values})


def reasons(incomplete: str) -> list[str]:
    """Ids that `kschedx reason` knows, and the plugins."""
    from kschedx.framework.registry import IN_TREE
    from kschedx.render.words import REASON_IDS

    return _beginning(incomplete, [*REASON_IDS, *IN_TREE])


def profiles(incomplete: str) -> list[str]:
    """Names that `kschedx profiles` lists."""
    from kschedx.cli.named_profiles import names

    return _beginning(incomplete, names())


def releases(incomplete: str) -> list[str]:
    """Kubernetes releases that can be emulated."""
    from kschedx.releases import EMULATED

    return [version for version in EMULATED if version.startswith(incomplete)]


def scheduler_names(context: typer.Context, incomplete: str) -> list[str]:
    """The profiles of the configuration on the command line, by their schedulerName."""
    from kschedx.cli.named_profiles import configuration
    from kschedx.errors import KschedxError

    try:
        config = configuration(context.params.get("config") or "default")
    except KschedxError:
        return []
    profiles = None if config is None else config.get("profiles")
    named = (
        [one.get("schedulerName") for one in profiles if isinstance(one, dict)] if isinstance(profiles, list) else []
    )
    return _beginning(incomplete, [str(name or "default-scheduler") for name in named] or ["default-scheduler"])


def documents(incomplete: str) -> list[str]:
    """Kinds of documents that have a schema."""
    from kschedx.schemas import NAMES

    return [name for name in NAMES if name.lower().startswith(incomplete.lower())]


# kschedx as a plugin of kubectl's: `kubectl kschedx why ...`.
#
# kubectl runs `kubectl-kschedx` for it, and asks `kubectl_complete-kschedx` for the words that can follow; both are
# kschedx under another name (pkg/cmd/plugin/plugin_completion.go in kubectl).

PLUGIN = "kubectl-kschedx"
COMPLETER = "kubectl_complete-kschedx"

_NO_FILES = ":4"
"""ShellCompDirectiveNoFileComp of cobra's, which kubectl reads from the last line."""


def called_as(path: str) -> str:
    """The name that a path to kschedx's program was run under."""
    return PurePath(path).name.removesuffix(".exe")


def program_name(path: str) -> str:
    """What a person types, for usage lines."""
    return "kubectl kschedx" if called_as(path) == PLUGIN else "kschedx"


def candidates(app: typer.Typer, words: Sequence[str]) -> Iterator[str]:
    """Lines for kubectl: what the last of `words` can become, with a description behind a tab.

    Where there is nothing to offer, kubectl is left to complete the names of files.
    """
    from typer._completion_classes import FishComplete
    from typer.main import get_command

    *before, incomplete = words or [""]
    offered = FishComplete(get_command(app), {}, "kschedx", "").get_completions(before, incomplete)
    for item in offered:
        description = " ".join((item.help or "").split())
        yield f"{item.value}\t{description}" if description else item.value
    if offered:
        yield _NO_FILES
