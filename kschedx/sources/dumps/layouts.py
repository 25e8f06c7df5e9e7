"""The layouts of tools' folders and archives: which of their files are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct

from kschedx.errors import InputError, Place
from kschedx.kube.kinds import KINDS, key_of
from kschedx.patterns import lazy_pattern
from kschedx.sources import compression as compressed
from kschedx.sources.compression import Readable, Stream
from kschedx.sources.dumps import Dump, Lack, lack
from kschedx.sources.lists import Batch, flatten

# `kubectl cluster-info dump`: nodes, and for some namespaces events, controllers, services, pods, and logs.
# With --output-directory, it writes `nodes.json`, `NAMESPACE/pods.json`, and so on, or .yaml; logs are `logs.txt`. To
# standard output, it writes the same lists in sequence, and between them the logs, each enclosed by two lines:
# ==== START logs for container CONTAINER of pod NAMESPACE/POD ==== ==== END logs for container CONTAINER of pod
# NAMESPACE/POD ====
# Until 1.10, a last line states that the dump is complete, and the lists have internal types (`lists.as_api_list`).
# Logs can contain anything, even these two lines. So the end of a log counts only if the text after it continues as a
# dump does. If that is the case in two places, the end is ambiguous.
# Upstream: staging/src/k8s.io/kubectl/pkg/cmd/clusterinfo/clusterinfo_dump.go.

_FORMAT = "kubectl cluster-info dump"
_FILES = ("events", "replication-controllers", "services", "daemonsets", "deployments", "replicasets", "pods")
_DUMPED = (
    "Node", "Event", "ReplicationController", "Service", "DaemonSet", "Deployment", "ReplicaSet", "Pod",
)  # fmt: skip
_ALWAYS_THERE = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
"""Namespaces that every cluster has; by default only one or two of them are dumped."""


class _Form(Struct, frozen=True, kw_only=True):
    """One dump among the files of a tree."""

    format: str
    top: str  # the folder in the tree; empty for the whole tree
    files: Mapping[str, str] | None
    """The files to read, each with the kind of its list ("v1 PodList"); None for all files."""
    lacks: tuple[Lack, ...]


def _find_cluster_info(names: Sequence[str]) -> Iterator[_Form]:
    """Yield the folders among these files that were written with --output-directory."""
    present = {_plain(name) for name in names}
    namespaces: dict[str, set[str]] = {}
    for name in present:
        folder, _, last = name.rpartition("/")
        suffix = last.removeprefix("replication-controllers")
        if suffix in (".json", ".yaml") and all(f"{folder}/{file}{suffix}" in present for file in _FILES):
            top, _, namespace = folder.rpartition("/")
            if f"{top}/nodes{suffix}".lstrip("/") in present:
                namespaces.setdefault(top, set()).add(namespace)
    for top in sorted(namespaces):
        # names of logs are not those of manifests; files that were added to the folder are read as well
        yield _Form(
            format=_FORMAT, top=top, files=None, lacks=_cluster_info_lacks(everywhere=namespaces[top] >= _ALWAYS_THERE)
        )


def _plain(name: str) -> str:
    """Return a file's name without the suffixes of compression."""
    for suffix in compressed.SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _cluster_info_lacks(*, everywhere: bool) -> tuple[Lack, ...]:
    if everywhere:
        return _all_but(_DUMPED)
    return (lack("Pod", "pods of namespaces that were not dumped (--all-namespaces dumps them)"), *_all_but(_DUMPED))


def _all_but(kinds: Iterable[str]) -> tuple[Lack, ...]:
    """Return Kubernetes' kinds that answers depend on, except those that the dump holds."""
    held = frozenset(kinds)
    return tuple(lack(key) for key, kind in KINDS.items() if kind.leaves and kind.is_of_kubernetes and key not in held)


# Standard output

_HEAD = lazy_pattern(
    rb'\{\s*"selfLink":\s*"/api/v1/nodes",\s*"resourceVersion"'
    rb'|\{\s*"kind":\s*"NodeList",\s*"apiVersion":\s*"v1",\s*"metadata"'
    rb"|apiVersion: v1\r?\nitems:\r?\n- metadata:"
)
_MARK = lazy_pattern(rb"==== (?P<what>START|END) logs for container (?P<log>\S+ of pod \S+) ====\r?\n")
_IN_A_MARK = b" logs for container "
_BEFORE_IT = (len(b"==== START"), len(b"==== END"))
_EVENTS = (b'"kind": "EventList"', b"\nkind: EventList\n", b'/events",\n')
"""The beginnings of the list of events, of which each namespace has one."""
_NEXT = lazy_pattern(
    rb'==== START logs for container \S+ of pod |\{\s*"(?:kind": *"EventList"|selfLink": *")|---\r?\napiVersion: '
)
_ALL = lazy_pattern(rb"Cluster info dumped to [^\r\n]*\s*\Z")  # the last line of older versions
_MARGIN = 2048  # bytes; a mark and the beginning of what follows it are shorter
_BLOCK = 1 << 18
_LINE_ENDS = b"\r\n"
_NO_LINE_END = bytes(byte for byte in range(256) if byte not in _LINE_ENDS)


def is_cluster_info(head: bytes) -> bool:
    """Return whether the text may be a dump. An API server's list of nodes may begin in the same way."""
    return _HEAD.match(head) is not None


class WithoutLogs(Stream):
    """The command's standard output without its logs, of which only the line ends remain, so that line numbers stay
    correct.

    Reading raises InputError if the text ends within a log, or if a log contains what could be its end.
    """

    def __init__(self, file: Readable, source: str) -> None:
        self._file = file
        self._source = source
        self._text = b""
        self._ready = b""
        self._ended = False
        self._log: bytes | None = None  # the container and pod whose log is being read
        self._finished: set[bytes] = set()
        self._at_line_start = True
        self._namespaces = 0

    def _next(self, size: int) -> bytes:
        while not self._ready and not self._ended:
            block = self._file.read(_BLOCK)
            self._ended = not block
            self._text += block or b""
            if self._ended and (all_of_it := _ALL.search(self._text, max(len(self._text) - _MARGIN, 0))):
                self._text = self._text[: all_of_it.start()]
            self._ready = b"".join(self._advance())
        ready, self._ready = self._ready[:size], self._ready[size:]
        return ready

    def dump(self, place: str) -> Dump | None:
        """Return the dump after all of it was read; None if the text was something else."""
        if not self._namespaces:
            return None
        # the output does not name an empty namespace, so namespaces are counted
        return Dump(
            format=_FORMAT, place=place, lacks=_cluster_info_lacks(everywhere=self._namespaces >= len(_ALWAYS_THERE))
        )

    def _advance(self) -> Iterator[bytes]:
        """Yield the part of the text that is decided; the rest is kept for later."""
        text, at = self._text, 0
        end = len(text) if self._ended else max(len(text) - _MARGIN, 0)
        for mark in _marks(text, end):
            log = mark["log"]
            if mark["what"] == b"END" and self._goes_on(mark.end()):
                if log in self._finished:
                    raise self._two_ends(log)
                if log == self._log:
                    yield self._piece(at, mark.end())
                    self._finished.add(log)
                    self._log, at = None, mark.end()
            elif mark["what"] == b"START" and self._log is None and self._begins_line(mark.start()):
                if log in self._finished:
                    raise self._two_ends(log)
                yield self._piece(at, mark.start())
                self._log, at = log, mark.start()
        end = max(at, end)
        yield self._piece(at, end)
        if end:
            self._at_line_start = text[end - 1 : end] == b"\n"
        self._text = text[end:]
        if self._ended and self._log is not None:
            raise InputError(
                f"ends within the log of {_shown(self._log)}", source=self._source, hint="the dump was cut short"
            )

    def _begins_line(self, at: int) -> bool:
        return self._text[at - 1 : at] == b"\n" if at else self._at_line_start

    def _goes_on(self, at: int) -> bool:
        """Return whether a dump can continue, or end, at this position."""
        return _NEXT.match(self._text, at) is not None or (self._ended and at == len(self._text))

    def _two_ends(self, log: bytes) -> InputError:
        message = f"the log of {_shown(log)} ends in two places, and one of them was written by a pod"
        return InputError(message, source=self._source, hint="dump it with --output-directory")

    def _piece(self, start: int, end: int) -> bytes:
        """Return a piece of the text without the content of logs."""
        piece = self._text[start:end]
        if self._log is None:
            for events in _EVENTS:
                # one that begins in the piece may end after it
                self._namespaces += self._text.count(events, start, end + len(events) - 1)
            return piece
        return piece.translate(None, _NO_LINE_END)


def _marks(text: bytes, end: int) -> Iterator[re.Match[bytes]]:
    """Yield the marks that begin before `end`. Most of a dump is logs, so they are found by characters that are rare in
    logs."""
    start = text.find(_IN_A_MARK)
    while start >= 0:
        for length in _BEFORE_IT:
            if length <= start < end + length and (mark := _MARK.match(text, start - length)):
                yield mark
        start = text.find(_IN_A_MARK, start + 1)


def _shown(log: bytes) -> str:
    return f"container {log.decode(errors='backslashreplace')}"


# Archives of the OpenShift Insights Operator: one object per file, most of which do not state their kind.
#
#     config/node/NODE.json, config/persistentvolumes/VOLUME.json, config/storage/storageclasses/CLASS.json
#     config/pod/NAMESPACE/POD.json, config/pdbs/NAMESPACE/BUDGET.json
#     conditional/namespaces/NAMESPACE/pods/POD/POD.json, gathered if an alert fires
#
# It gathers failing pods of OpenShift's own namespaces, and few other pods. Upstream:
# github.com/openshift/insights-operator, docs/gathered-data.md.

_INSIGHTS_LISTS: Mapping[str, str] = {
    "config/node": "v1 NodeList",
    "config/persistentvolumes": "v1 PersistentVolumeList",
    "config/storage/storageclasses": "storage.k8s.io/v1 StorageClassList",
    "config/pod": "v1 PodList",
    "config/pdbs": "policy/v1 PodDisruptionBudgetList",
    "conditional": "v1 PodList",
}
_LACKING = {
    "Pod": "most pods",
    "PersistentVolume": "most volumes",
    "StorageClass": "most classes",
    "PodDisruptionBudget": "budgets of namespaces that are not OpenShift's own",
}
_INSIGHTS_FILE = lazy_pattern(
    r"(?P<top>(?:.*?/)??)(?:"
    r"(?P<whole>config/(?:node|persistentvolumes|storage/storageclasses))/[^/]+"
    r"|(?P<namespaced>config/(?:pod|pdbs))/[^/]+/[^/]+"
    r"|(?P<conditional>conditional)/namespaces/[^/]+/pods/(?P<pod>[^/]+)/(?P=pod)"
    r")\.json"
)
_OWN = ("insights-operator/gathers.json", "config/infrastructure.json", "config/version.json")
"""Files next to the nodes that only this layout has."""


def _find_insights(names: Sequence[str]) -> Iterator[_Form]:
    """Yield the archives among files with these names."""
    layouts: dict[str, dict[str, str]] = {}
    for name in names:
        match = _INSIGHTS_FILE.fullmatch(_plain(name))
        if match:
            folder = match["whole"] or match["namespaced"] or match["conditional"]
            layouts.setdefault(match["top"], {})[name] = _INSIGHTS_LISTS[folder]
    everything = set(map(_plain, names))
    for top, files in layouts.items():
        if any(f"{top}{own}" in everything for own in _OWN):
            lacks = *(lack(kind, what) for kind, what in _LACKING.items()), *_all_but(("Node", *_LACKING))
            yield _Form(format="Insights archive", top=top.rstrip("/"), files=_insights_once(files), lacks=lacks)


def _insights_once(files: Mapping[str, str]) -> dict[str, str]:
    """Return the files without second copies of pods that were gathered twice."""
    first: dict[tuple[str, ...], str] = {}
    for name in sorted(files, key=lambda name: ("/conditional/" in f"/{name}", name)):
        first.setdefault((files[name], *_name_from_path(name)), name)
    return {name: files[name] for name in first.values()}


def _name_from_path(name: str) -> tuple[str, ...]:
    """Return namespace and name for a file in a namespace's folder."""
    parts = _plain(name).split("/")
    return (parts[-4], parts[-1]) if "conditional" in parts[:-4] else (parts[-2], parts[-1])


# `oc adm must-gather` and `oc adm inspect`.
#
# Both write one folder per gathering image, and in it one YAML file per list or object:
#
#     cluster-scoped-resources/GROUP/RESOURCE.yaml, or GROUP/RESOURCE/NAME.yaml; the group without a name is "core"
#     namespaces/NAMESPACE/GROUP/RESOURCE.yaml, or GROUP/RESOURCE/NAME.yaml
#     namespaces/NAMESPACE/NAMESPACE.yaml
#     namespaces/NAMESPACE/pods/POD/POD.yaml, besides the pods in core/pods.yaml
#
# Upstream: github.com/openshift/oc, pkg/cli/admin/inspect.

_LISTS: Mapping[str, str] = {
    "core/events": "v1 EventList",
    **{f"{kind.group or 'core'}/{kind.plural}": f"{kind.api_version} {kind.name}List" for kind in KINDS.values()},
}
"""What scheduling reads: the kind of list, by group and resource in the file's path."""

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
"""Kinds that are gathered per namespace, and only for the requested namespaces."""
_FILE = lazy_pattern(
    r"(?P<root>(?:.*?/)??)(?:"
    r"cluster-scoped-resources/(?P<resource>[^/]+/[^/]+?)(?:/(?P<name>[^/]+))?"
    r"|namespaces/(?P<namespace>[^/]+)/(?:"
    r"(?P<own>(?P=namespace))"
    r"|pods/(?P<pod>[^/]+)/(?P=pod)"
    r"|(?!cluster-scoped-resources/|namespaces/)(?P<namespaced_resource>[^/]+/[^/]+?)(?:/(?P<namespaced_name>[^/]+))?"
    r"))\.yaml"
)
_GATHERED = lazy_pattern(
    r"(?P<top>(?:.*?/)??must-gather\.local\.[^/]*)(?:/.*)?|(?P<parent>(?:.*/)?)[^/]*-sha256-[0-9a-f]{64}"
)
"""The folder that the command creates; in it is a folder per image, which has the image's name."""


class _Entry(Struct, frozen=True, kw_only=True):
    """A file with objects that scheduling reads."""

    file: str
    root: str
    resource: str
    namespace: str  # empty for cluster-scoped objects, and for a list of all namespaces
    name: str  # empty for a list


def _find_must_gather(names: Sequence[str]) -> Iterator[_Form]:
    """Yield the dumps among files with these names. A `namespaces` folder alone is not enough, since other repositories
    have one too."""
    below: dict[str, list[_Entry]] = {}
    for entry in filter(None, map(_entry, names)):
        below.setdefault(_top(entry.root), []).append(entry)
    dumps: dict[str, list[_Entry]] = {}
    for top in sorted(below):  # a folder comes before its subfolders
        outer = next((above for above in _above(top) if above in dumps), None)
        if outer is not None:
            dumps[outer] += below[top]
        elif any(map(_is_telling, below[top])):
            dumps[top] = below[top]
    for top, entries in dumps.items():
        yield _Form(
            format="oc adm inspect" if top.rpartition("/")[2].startswith("inspect.local") else "must-gather",
            top=top,
            files={entry.file: _LISTS[entry.resource] for entry in _once(entries)},
            lacks=tuple(_lacks(entries)),
        )


def _entry(file: str) -> _Entry | None:
    match = _FILE.fullmatch(_plain(file))
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
    """Return whether only this layout has a file of this name."""
    below = entry.file.removeprefix(entry.root).lstrip("/")
    return below.startswith(("cluster-scoped-resources/", f"namespaces/{entry.namespace}/core/pods.")) or (
        entry.resource == "core/pods" and f"/pods/{entry.name}/{entry.name}." in below
    )


def _top(root: str) -> str:
    """Return the dump's folder. What several images gathered, or one image on several nodes, is one dump."""
    match = _GATHERED.fullmatch(root)
    return root if match is None else match["top"] or match["parent"].rstrip("/")


def _above(folder: str) -> Iterator[str]:
    """Yield the parent folders, up to the tree's root."""
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder


def _once(entries: Sequence[_Entry]) -> Iterator[_Entry]:
    """Yield the entries, except those whose objects are in another file too.

    A list shows the API server at one moment, so it is preferred to files of single objects, which were written before
    and after it. A list of all namespaces is preferred to one of a single namespace. Of several images, the first by
    name is preferred.
    """
    first: dict[tuple[str, str, str], _Entry] = {}
    for entry in sorted(entries, key=lambda entry: entry.file):
        first.setdefault((entry.resource, entry.namespace, entry.name), entry)
    for entry in first.values():
        everywhere, here = (entry.resource, "", ""), (entry.resource, entry.namespace, "")
        if first.get(everywhere) in (None, entry) and (not entry.name or here not in first):
            yield entry


def _lacks(entries: Sequence[_Entry]) -> Iterator[Lack]:
    everywhere = {_listed_kind(_LISTS[entry.resource]) for entry in entries if not entry.namespace and not entry.name}
    some = {_listed_kind(_LISTS[entry.resource]) for entry in entries}
    for kind, what in _GATHERED_BY_NAMESPACE.items():
        if kind not in everywhere:
            yield lack(kind, f"{what} of namespaces that were not gathered" if kind in some else "")
    yield from _all_but(some | _GATHERED_BY_NAMESPACE.keys())


def _listed_kind(list_kind: str) -> str:
    """Return `Pod` for `v1 PodList`: the key in the table of kinds."""
    version, _, name = list_kind.partition(" ")
    return key_of(name.removesuffix("List"), version.rpartition("/")[0])


# Results of Sonobuoy: `resources/cluster/core_v1_nodes.json`, `resources/ns/NAMESPACE/core_v1_pods.json`.
#
# Versions before 0.20 name the files after the kind (`Nodes.json`, `Pods.json`), and the first versions use another
# folder (`non-ns`). Their items do not state their kind. A resource without objects has no file. Other files are
# results of plugins, logs, and reports of the kubelets and the API server. Upstream:
# github.com/vmware-tanzu/sonobuoy, pkg/discovery/queries.go.

_CORE = "core"
_SONOBUOY_FILE = lazy_pattern(
    r"(?P<top>(?:.*?/)??)resources/(?:cluster|non-ns|ns/[^/]+)/(?:(?P<group>[^/_]+)_(?P<version>[^/_]+)_)?(?P<plural>[^/_.]+)\.json"
)


def _find_sonobuoy(names: Sequence[str]) -> Iterator[_Form]:
    """Yield the results among files with these names."""
    for top, files in _lists_by_top(names, _SONOBUOY_FILE.fullmatch, _sonobuoy_kind):
        yield _Form(format="Sonobuoy archive", top=top, files=files, lacks=())


def _lists_by_top(
    names: Sequence[str],
    match_name: Callable[[str], re.Match[str] | None],
    kind_of: Callable[[re.Match[str]], str | None],
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the top folders with lists of nodes or pods, each with its files and the kinds of their lists."""
    layouts: dict[str, dict[str, str]] = {}
    for name in names:
        match = match_name(_plain(name))
        if match and (kind := kind_of(match)):
            layouts.setdefault(match["top"].rstrip("/"), {})[name] = kind
    return ((top, files) for top, files in layouts.items() if {"v1 NodeList", "v1 PodList"} & set(files.values()))


def _sonobuoy_kind(match: re.Match[str]) -> str:
    """Return `v1 PodList` and the like; empty for a kind that scheduling does not read."""
    group, version, plural = match["group"], match["version"], match["plural"].lower()
    named = [kind for kind in KINDS.values() if kind.plural == plural]
    if group:
        own = "" if group == _CORE else group
        named = [kind for kind in named if own in (kind.group, *kind.former_groups)]
    kind = next(iter(named), None)
    if kind is None:
        return ""
    stated = group and (version if group == _CORE else f"{group}/{version}")
    return f"{stated or kind.api_version} {kind.name}List"


# Support bundles of troubleshoot.sh: `cluster-resources/RESOURCE.json`, or `RESOURCE/NAMESPACE.json`.
#
# Other files are `*-errors.json`, logs, results of other collectors, and the analysis. Older versions wrote some lists
# as arrays whose items do not state their kind. Upstream: github.com/replicatedhq/troubleshoot,
# pkg/collect/cluster_resources.go.

_SUPPORT_BUNDLE_LISTS: Mapping[str, str] = {
    "nodes": "v1 NodeList",
    "namespaces": "v1 NamespaceList",
    "priorityclasses": "scheduling.k8s.io/v1 PriorityClassList",
    "pvs": "v1 PersistentVolumeList",
    "storage-classes": "storage.k8s.io/v1 StorageClassList",
    "volumeattachments": "storage.k8s.io/v1 VolumeAttachmentList",
}
_LISTS_BY_NAMESPACE: Mapping[str, str] = {
    "cronjobs": "batch/v1 CronJobList",
    "daemonsets": "apps/v1 DaemonSetList",
    "deployments": "apps/v1 DeploymentList",
    "events": "v1 EventList",
    "jobs": "batch/v1 JobList",
    "limitranges": "v1 LimitRangeList",
    "pod-disruption-budgets": "policy/v1 PodDisruptionBudgetList",
    "pods": "v1 PodList",
    "pvcs": "v1 PersistentVolumeClaimList",
    "replicasets": "apps/v1 ReplicaSetList",
    "services": "v1 ServiceList",
    "statefulsets": "apps/v1 StatefulSetList",
}
_SUPPORT_BUNDLE_FILE = lazy_pattern(
    r"(?P<top>(?:.*?/)??)cluster-resources/(?P<resource>[^/]+?)(?:/(?P<namespace>[^/]+))?\.json"
)


def _find_support_bundle(names: Sequence[str]) -> Iterator[_Form]:
    """Yield the bundles among files with these names."""

    def kind_of(match: re.Match[str]) -> str | None:
        return (_LISTS_BY_NAMESPACE if match["namespace"] else _SUPPORT_BUNDLE_LISTS).get(match["resource"])

    for top, files in _lists_by_top(names, _SUPPORT_BUNDLE_FILE.fullmatch, kind_of):
        lacks = tuple(_support_bundle_lacks(files))
        yield _Form(format="troubleshoot support bundle", top=top, files=files, lacks=lacks)


def _support_bundle_lacks(files: Mapping[str, str]) -> Iterator[Lack]:
    held = {_listed_kind(kind) for kind in files.values()}
    if "Pod" in held and not any(_plain(name).endswith("/pods/kube-system.json") for name in files):
        yield lack("Pod", "pods of namespaces that were not collected")
    yield from _all_but(held)


class _Plan(Struct, frozen=True, kw_only=True):
    """The files of a folder or an archive that are read."""

    place: str
    wanted: Mapping[str, str]
    """The files in order, each with the kind of its list, or an empty string if the file states its kind."""
    forms: Sequence[_Form]

    def is_beside(self, name: str) -> bool:
        """Return whether the file is outside the recognized dumps."""
        return bool(self.forms) and _innermost({form.top: form for form in self.forms}, name) is None

    def dumps(self, empty: Collection[str]) -> Iterator[Dump]:
        """Yield the recognized dumps. `empty` are files without content, which the tool could not fill; their kinds
        count as missing."""
        for form in self.forms:
            files: dict[str, list[str]] = {}
            for name in empty:
                if form.files is not None and name in form.files:
                    files.setdefault(_listed_kind(form.files[name]), []).append(name.removeprefix(f"{form.top}/"))
            lacks = *form.lacks, *(lack(kind, _emptiness(names)) for kind, names in files.items() if _matters(kind))
            place = f"{self.place}: {form.top}" if form.top else self.place
            yield Dump(format=form.format, place=place, lacks=lacks)


def _matters(kind: str) -> bool:
    return kind in KINDS and bool(KINDS[kind].leaves)


def _emptiness(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more, which are" if len(names) > 1 else ", which is"
    return f"the content of {names[0]}{more} empty"


def plan(names: Sequence[str], place: str) -> _Plan:
    """The plan: all files outside of recognized dumps, and the files in these that hold what scheduling reads."""
    forms = {
        form.top: form
        for find in (
            _find_cluster_info,
            _find_support_bundle,
            _find_insights,
            _find_must_gather,
            _find_sonobuoy,
        )
        if any("/" in name for name in names)  # every layout has folders
        for form in find(names)
    }
    wanted: dict[str, str] = {}
    for name in names:
        form = _innermost(forms, name)
        if form is None or form.files is None:
            wanted[name] = ""
        elif name in form.files:
            wanted[name] = form.files[name]
    return _Plan(place=place, wanted=wanted, forms=tuple(forms.values()))


def _innermost(forms: Mapping[str, _Form], name: str) -> _Form | None:
    """Return the form of the dump that contains the file."""
    while name:
        name = name.rpartition("/")[0]
        if name in forms:
            return forms[name]
    return None


# Exports of kube-scheduler-simulator: one document with an array per kind, whose items do not state their kind.
# Its API writes JSON, its web page YAML. Upstream: sigs.k8s.io/kube-scheduler-simulator,
# simulator/snapshot/snapshot.go.

_EXPORT_LISTS: Mapping[str, str] = {
    "pods": "v1 PodList",
    "nodes": "v1 NodeList",
    "pvs": "v1 PersistentVolumeList",
    "pvcs": "v1 PersistentVolumeClaimList",
    "storageClasses": "storage.k8s.io/v1 StorageClassList",
    "priorityClasses": "scheduling.k8s.io/v1 PriorityClassList",
    "namespaces": "v1 NamespaceList",
}
_CONFIG = "schedulerConfig"
_DOCUMENT = msgspec.json.Decoder(dict[str, Raw])


class _Origin(Struct, frozen=True, kw_only=True):
    """The places of the items of one array."""

    source: str
    key: str

    def place(self, index: int) -> Place:
        return Place(source=f"{self.source}: {self.key}[{index}]")


class _Export(Struct, frozen=True, kw_only=True):
    """An export, with each of its arrays in JSON."""

    source: str
    arrays: Mapping[str, Raw]

    def batches(self) -> Iterator[Batch]:
        """Yield the objects of each array. Raises InputError for a value that is no array of objects."""
        for key, kind in _EXPORT_LISTS.items():
            listed = bytes(self.arrays.get(key, b"null"))
            if listed != b"null":
                try:
                    items = flatten(as_list(kind, listed)).items
                except InputError as error:
                    raise InputError(error.message, source=f"{self.source}: {key}") from None
                yield Batch(items=items, origin=_Origin(source=self.source, key=key))

    def dump(self) -> Dump:
        """Return the description of the export."""
        # the simulator omits system namespaces and classes
        lacks = (
            lack("Namespace", "the namespaces default and kube-*"),
            *_all_but(map(_listed_kind, _EXPORT_LISTS.values())),
        )
        has_config = bytes(self.arrays.get(_CONFIG, b"null")) != b"null"
        holds = ("a KubeSchedulerConfiguration",) if has_config else ()
        return Dump(format="kube-scheduler-simulator export", place=self.source, lacks=lacks, holds=holds)


def export(text: bytes, source: str) -> _Export | None:
    """Return the export in a text; None if it is something else."""
    try:
        document = _DOCUMENT.decode(text if text.lstrip()[:1] == b"{" else _from_yaml(text, source))
    except (InputError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # reported by the reader of the actual format
    is_one = {"pods", "nodes"} <= set(document) <= {*_EXPORT_LISTS, _CONFIG}
    return _Export(source=source, arrays=document) if is_one else None


def as_list(kind: str, items: bytes) -> bytes:
    """Return a JSON array as a list object; `kind` is "apiVersion kind"."""
    version, _, name = kind.partition(" ")
    return b'{"apiVersion": "%s", "kind": "%s", "items": %s}' % (version.encode(), name.encode(), items)


def _from_yaml(text: bytes, source: str) -> bytes:
    from kschedx.sources.yaml import load_all

    documents = [*load_all(text, source=source)]
    return msgspec.json.encode(documents[0].value if len(documents) == 1 else None)
