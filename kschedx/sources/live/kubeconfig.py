"""Which cluster kubectl would talk to, and as whom (k8s.io/client-go/tools/clientcmd).

`load` merges the files that count; `Kubeconfig.choose` picks a context of theirs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from kschedx.errors import InputError, Place, nearest

Entry: TypeAlias = Mapping[str, object]

LARGEST = 10 << 20
"""Bytes of a kubeconfig; what is larger is none."""

_SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}
"""A list of a kubeconfig, and what the elements call their entry, which is also what an error calls it."""

_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields with a file's path, which is beside the kubeconfig unless it is absolute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One entry, and the file that set it."""

    name: str
    fields: Entry
    source: str

    def place(self, what: str) -> Place:
        return Place(source=self.source, object=f"{what} {self.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A cluster and a user. Without a user nobody is logged in."""

    context: str
    """Empty where --cluster and --user do without one."""
    namespace: str
    cluster: Named
    user: Named | None

    @property
    def server(self) -> str:
        return str(self.cluster.fields.get("server") or "").rstrip("/")

    @property
    def place(self) -> Place:
        """Of the user, or of the cluster where nobody logs in."""
        return self.cluster.place("cluster") if self.user is None else self.user.place("user")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfig:
    """The files, merged."""

    sources: tuple[str, ...]
    current_context: str
    clusters: Mapping[str, Named]
    users: Mapping[str, Named]
    contexts: Mapping[str, Named]

    @property
    def is_empty(self) -> bool:
        """Nothing is configured, so a pod's own service account may count."""
        return not (self.clusters or self.users or self.contexts or self.current_context)

    @property
    def place(self) -> Place:
        return Place(source=os.pathsep.join(self.sources))

    def choose(self, *, context: str = "", cluster: str = "", user: str = "") -> Choice:
        """What --context, --cluster and --user name, or the current context. Raises `InputError`."""
        name = context or self.current_context
        fields: Entry = {}
        place = self.place
        if name:
            chosen = self._find(self.contexts, "context", name, self.place)
            fields, place = chosen.fields, Place(source=chosen.source, object=f"context {name}")
        elif not cluster:
            known = ", ".join(sorted(self.contexts)) or "none"
            raise InputError("no current-context is set", place=place, hint=f"--context takes one of: {known}")
        cluster_name = cluster or _text(fields, "cluster", place)
        if not cluster_name:
            raise InputError("names no cluster", place=place)
        found = self._find(self.clusters, "cluster", cluster_name, self.place if cluster else place)
        if not _text(found.fields, "server", found.place("cluster")):
            raise InputError("no server", place=found.place("cluster"))
        user_name = user or _text(fields, "user", place)
        return Choice(
            context=name,
            namespace=_text(fields, "namespace", place) or "default",
            cluster=found,
            user=self._find(self.users, "user", user_name, self.place if user else place) if user_name else None,
        )

    @staticmethod
    def _find(entries: Mapping[str, Named], what: str, name: str, place: Place) -> Named:
        if name not in entries:
            known = f"known: {', '.join(sorted(entries))}" if entries else f"there is no {what} at all"
            raise InputError(f'{what} "{name}" does not exist', place=place, hint=nearest(name, entries) or known)
        return entries[name]


def load(explicit: str | None, environment: Mapping[str, str]) -> Kubeconfig:
    """`explicit` alone, else the files of KUBECONFIG, else the one in the home folder; missing files are skipped.

    The first file to set an entry, or the current context, wins. Raises `InputError` for an `explicit` file that is
    missing and for files that cannot be read.
    """
    if explicit:
        files = [Path(explicit)]
        if not files[0].exists():
            beside = [path.name for path in files[0].parent.iterdir()] if files[0].parent.is_dir() else []
            raise InputError("no such file", place=Place(source=explicit), hint=nearest(files[0].name, beside))
    else:
        files = [path for path in _files(environment) if path.exists()]
    sections: dict[str, dict[str, Named]] = {section: {} for section in _SECTIONS}
    current = ""
    for path in files:
        document = _read(path)
        place = Place(source=str(path))
        current = current or _text(document, "current-context", place)
        for section, own in sections.items():
            for named in _entries(document, section, path):
                own.setdefault(named.name, named)
    return Kubeconfig(
        sources=tuple(map(str, files)),
        current_context=current,
        clusters=sections["clusters"],
        users=sections["users"],
        contexts=sections["contexts"],
    )


def _files(environment: Mapping[str, str]) -> Sequence[Path]:
    """An empty KUBECONFIG is as good as none."""
    listed = environment.get("KUBECONFIG", "")
    if listed:
        return [Path(name) for name in dict.fromkeys(listed.split(os.pathsep)) if name]
    home = environment.get("HOME", "")
    return [Path(home, ".kube", "config")] if home else []


def _read(path: Path) -> Entry:
    from kschedx.sources import yaml_text

    source = str(path)
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        message = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise InputError(message, place=Place(source=source)) from None
    if len(text) > LARGEST:
        raise InputError("too large for a kubeconfig", place=Place(source=source))
    documents = [yaml_text.load(document, source=source) for document in yaml_text.split(text, source=source)]
    values = [document.value for document in documents if document is not None]
    if not values:
        return {}
    if len(values) > 1 or not isinstance(values[0], dict):
        raise InputError("not a kubeconfig: expected one mapping", place=Place(source=source))
    kind = values[0].get("kind") or "Config"
    if kind != "Config":
        raise InputError(f"not a kubeconfig: its kind is {kind}, expected Config", place=Place(source=source))
    return values[0]


def _entries(document: Entry, section: str, path: Path) -> Iterator[Named]:
    """Those of one list, their paths made absolute."""
    what = _SECTIONS[section]
    place = Place(source=str(path))
    listed = document.get(section)
    if listed is None:
        return
    if not isinstance(listed, list):
        raise InputError("not a list", place=Place(source=str(path), field=section))
    seen: set[str] = set()
    for index, element in enumerate(listed):
        where = Place(source=str(path), field=f"{section}[{index}]")
        if not isinstance(element, dict):
            raise InputError("not a mapping", place=where)
        name = _text(element, "name", where)
        fields = element.get(what)
        if fields is not None and not isinstance(fields, dict):
            raise InputError("not a mapping", place=Place(source=str(path), field=f"{section}[{index}].{what}"))
        if name in seen:
            raise InputError(f'{what} "{name}" is there twice', place=place)
        seen.add(name)
        yield Named(name=name, fields=_resolved(fields or {}, path.parent), source=str(path))


def _resolved(fields: Entry, folder: Path) -> Entry:
    """Relative paths are beside the file. A plugin's command is a path only where it has a slash."""
    beside = Path(os.path.abspath(folder))  # noqa: PTH100 - links in the path stay, as kubectl keeps them
    found = dict(fields)
    for field in _PATHS:
        value = found.get(field)
        if isinstance(value, str) and value:
            found[field] = str(beside / value)
    plugin = found.get("exec")
    if isinstance(plugin, dict):
        command = plugin.get("command")
        if isinstance(command, str) and os.sep in command:
            found["exec"] = {**plugin, "command": str(beside / command)}
    return found


def _text(fields: Entry, field: str, place: Place) -> str:
    value = fields.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError("not a string", place=Place(field=field)).at(place)
    return value
