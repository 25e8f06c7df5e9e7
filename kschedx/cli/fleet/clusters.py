"""Which clusters a fleet has: contexts of a kubeconfig, and snapshots."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from kschedx.errors import InputError, Place, nearest

LIST = ".list"
"""A file with a snapshot's path, or `context:NAME`, on each line."""
CONTEXT = "context:"


class Member(Struct, frozen=True, kw_only=True):
    """One cluster, and the options by which a command reads it."""

    name: str
    options: tuple[str, ...]


def members(
    *,
    snapshots: Sequence[str],
    folders: Sequence[str],
    contexts: Sequence[str],
    all_contexts: bool,
    kubeconfig: str | None,
) -> tuple[Member, ...]:
    """Every cluster once, in the order in which they are named. Raises `InputError`."""
    found = {one.name: one for path in snapshots for one in _of_path(path, kubeconfig)}
    found |= {one.name: one for folder in folders for one in _in_folder(folder)}
    named = _every_context(kubeconfig) if all_contexts else _known(contexts, kubeconfig)
    found |= {one.name: one for one in (_of_context(name, kubeconfig) for name in named)}
    if not found and all_contexts:
        raise InputError("--all-contexts: the kubeconfig has no context")
    if not found:
        raise InputError("name the clusters: --snapshot, --snapshots, --context or --all-contexts")
    return tuple(found.values())


def _of_path(path: str, kubeconfig: str | None) -> Iterator[Member]:
    place = Path(path)
    if not place.exists():
        raise InputError("no such file or folder", place=Place(source=path))
    if place.suffix == LIST:
        try:
            text = place.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise InputError("not valid UTF-8", place=Place(source=path)) from None
        for line in text.splitlines():
            name = line.strip()
            if name.startswith(CONTEXT):
                yield _of_context(name.removeprefix(CONTEXT), kubeconfig)
            elif name and not name.startswith("#"):
                yield _of_snapshot(name)
    else:
        yield _of_snapshot(path)


def _in_folder(folder: str) -> Iterator[Member]:
    if not Path(folder).is_dir():
        raise InputError("no such folder", place=Place(source=folder))
    inside = sorted(one for one in Path(folder).iterdir() if not one.name.startswith("."))
    if not inside:
        raise InputError("an empty folder", place=Place(source=folder))
    yield from (_of_snapshot(str(one)) for one in inside)


def _of_snapshot(path: str) -> Member:
    return Member(name=path, options=(f"--snapshot={path}",))


def _of_context(name: str, kubeconfig: str | None) -> Member:
    more = () if kubeconfig is None else (f"--kubeconfig={kubeconfig}",)
    return Member(name=name, options=(*more, f"--context={name}"))


def _known(contexts: Sequence[str], kubeconfig: str | None) -> Sequence[str]:
    known = _every_context(kubeconfig) if contexts else ()
    for name in contexts:
        if name not in known:
            raise InputError(f'no context "{name}" in the kubeconfig', hint=nearest(name, known))
    return contexts


def _every_context(kubeconfig: str | None) -> Sequence[str]:
    from kschedx.sources.live.kubeconfig import load

    return sorted(load(kubeconfig, os.environ).contexts)
