"""`oc adm must-gather` and `oc adm inspect`.

Both write, below a folder for each image that gathered, a YAML file for each list or object:

    cluster-scoped-resources/GROUP/RESOURCE.yaml, or GROUP/RESOURCE/NAME.yaml; "core" is the group without a name
    namespaces/NAMESPACE/GROUP/RESOURCE.yaml, or GROUP/RESOURCE/NAME.yaml
    namespaces/NAMESPACE/NAMESPACE.yaml
    namespaces/NAMESPACE/pods/POD/POD.yaml, besides the pods in core/pods.yaml

Upstream: github.com/openshift/oc, pkg/cli/admin/inspect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from kschedx.api.kinds import KINDS
from kschedx.sources.dumps import Lack, all_but, lack
from kschedx.sources.dumps.form import Form, listed_kind, plain

_LISTS: Mapping[str, str] = {
    "core/events": "v1 EventList",
    **{f"{kind.group or 'core'}/{kind.plural}": f"{kind.api_version} {kind.name}List" for kind in KINDS.values()},
}
"""What scheduling reads: the folder that it is in, to the kind of list."""

_GATHERED_BY_NAMESPACE = {
    "Pod": "pods",
    "Service": "services",
    "ReplicationController": "replication controllers",
    "ReplicaSet": "replica sets",
    "StatefulSet": "stateful sets",
    "PersistentVolumeClaim": "claims",
    "PodDisruptionBudget": "budgets",
    "Namespace": "labels",
}
"""Kinds that are gathered with a namespace, and only with those that somebody has asked for."""
_FILE = re.compile(
    r"(?P<root>(?:.*?/)??)(?:"
    r"cluster-scoped-resources/(?P<resource>[^/]+/[^/]+?)(?:/(?P<name>[^/]+))?"
    r"|namespaces/(?P<namespace>[^/]+)/(?:"
    r"(?P<own>(?P=namespace))"
    r"|pods/(?P<pod>[^/]+)/(?P=pod)"
    r"|(?!cluster-scoped-resources/|namespaces/)(?P<namespaced_resource>[^/]+/[^/]+?)(?:/(?P<namespaced_name>[^/]+))?"
    r"))\.yaml"
)
_GATHERED = re.compile(
    r"(?P<top>(?:.*?/)??must-gather\.local\.[^/]*)(?:/.*)?|(?P<parent>(?:.*/)?)[^/]*-sha256-[0-9a-f]{64}"
)
"""The folder that the command makes, and in it a folder for each image, which is named after it."""


class _Entry(Struct, frozen=True, kw_only=True):
    """A file that holds what scheduling reads."""

    file: str
    root: str
    resource: str
    namespace: str
    """Empty for objects without one, and for a list of all namespaces."""
    name: str
    """Of the one object; empty for a list."""


def find(names: Sequence[str]) -> Iterator[Form]:
    """The dumps among the files of these names. Other repositories have a `namespaces` folder too: it does not do."""
    below: dict[str, list[_Entry]] = {}
    for entry in filter(None, map(_entry, names)):
        below.setdefault(_top(entry.root), []).append(entry)
    dumps: dict[str, list[_Entry]] = {}
    for top in sorted(below):  # a folder comes before those in it
        outer = next((above for above in _above(top) if above in dumps), None)
        if outer is not None:
            dumps[outer] += below[top]
        elif any(map(_is_telling, below[top])):
            dumps[top] = below[top]
    for top, entries in dumps.items():
        yield Form(
            format="oc adm inspect" if top.rpartition("/")[2].startswith("inspect.local") else "must-gather",
            top=top,
            files={entry.file: _LISTS[entry.resource] for entry in _once(entries)},
            lacks=tuple(_lacks(entries)),
        )


def _entry(file: str) -> _Entry | None:
    match = _FILE.fullmatch(plain(file))
    if match is None:
        return None
    namespace = match["namespace"] or ""
    if match["own"]:
        resource, namespace, name = "core/namespaces", "", match["own"]
    elif match["pod"]:
        resource, name = "core/pods", match["pod"]
    else:
        resource = match["resource"] or match["namespaced_resource"]
        name = match["name"] or match["namespaced_name"] or ""
    if resource not in _LISTS:
        return None
    return _Entry(file=file, root=match["root"].rstrip("/"), resource=resource, namespace=namespace, name=name)


def _is_telling(entry: _Entry) -> bool:
    """Nobody else has a file of this name."""
    below = entry.file.removeprefix(entry.root).lstrip("/")
    return below.startswith(("cluster-scoped-resources/", f"namespaces/{entry.namespace}/core/pods.")) or (
        entry.resource == "core/pods" and f"/pods/{entry.name}/{entry.name}." in below
    )


def _top(root: str) -> str:
    """The dump's folder: what several images gathered, or one on several nodes, is one dump."""
    match = _GATHERED.fullmatch(root)
    if match is None:
        return root
    return match["top"] or match["parent"].rstrip("/")


def _above(folder: str) -> Iterator[str]:
    """The folders that it is in, to the tree's root."""
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder


def _once(entries: Sequence[_Entry]) -> Iterator[_Entry]:
    """The entries without those whose objects are in another file too.

    A list is one moment of the API server's, so it wins over files of single objects, which were written before and
    after it; a list of all namespaces wins over that of one. Between images the first in order of names wins.
    """
    first: dict[tuple[str, str, str], _Entry] = {}
    for entry in sorted(entries, key=lambda entry: entry.file):
        first.setdefault((entry.resource, entry.namespace, entry.name), entry)
    for entry in first.values():
        everywhere, here = (entry.resource, "", ""), (entry.resource, entry.namespace, "")
        if first.get(everywhere) in (None, entry) and (not entry.name or here not in first):
            yield entry


def _lacks(entries: Sequence[_Entry]) -> Iterator[Lack]:
    everywhere = {listed_kind(_LISTS[entry.resource]) for entry in entries if not entry.namespace and not entry.name}
    some = {listed_kind(_LISTS[entry.resource]) for entry in entries}
    for kind, what in _GATHERED_BY_NAMESPACE.items():
        if kind not in everywhere:
            yield lack(kind, f"{what} of namespaces that were not gathered" if kind in some else "")
    yield from all_but(some | _GATHERED_BY_NAMESPACE.keys())
