"""The layouts of tools' folders and archives: which of their files are read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from kschedx.kube.kinds import KINDS
from kschedx.sources.dumps import Dump, Form, Lack, all_but, cluster_info, lack, listed_kind, plain

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
_INSIGHTS_FILE = re.compile(
    r"(?P<top>(?:.*?/)??)(?:"
    r"(?P<whole>config/(?:node|persistentvolumes|storage/storageclasses))/[^/]+"
    r"|(?P<namespaced>config/(?:pod|pdbs))/[^/]+/[^/]+"
    r"|(?P<conditional>conditional)/namespaces/[^/]+/pods/(?P<pod>[^/]+)/(?P=pod)"
    r")\.json"
)
_OWN = ("insights-operator/gathers.json", "config/infrastructure.json", "config/version.json")
"""Files next to the nodes that only this layout has."""


def _find_insights(names: Sequence[str]) -> Iterator[Form]:
    """Yield the archives among files with these names."""
    layouts: dict[str, dict[str, str]] = {}
    for name in names:
        match = _INSIGHTS_FILE.fullmatch(plain(name))
        if match:
            folder = match["whole"] or match["namespaced"] or match["conditional"]
            layouts.setdefault(match["top"], {})[name] = _INSIGHTS_LISTS[folder]
    everything = set(map(plain, names))
    for top, files in layouts.items():
        if any(f"{top}{own}" in everything for own in _OWN):
            lacks = *(lack(kind, what) for kind, what in _LACKING.items()), *all_but(("Node", *_LACKING))
            yield Form(format="Insights archive", top=top.rstrip("/"), files=_insights_once(files), lacks=lacks)


def _insights_once(files: Mapping[str, str]) -> dict[str, str]:
    """Return the files without second copies of pods that were gathered twice."""
    first: dict[tuple[str, ...], str] = {}
    for name in sorted(files, key=lambda name: ("/conditional/" in f"/{name}", name)):
        first.setdefault((files[name], *_named(name)), name)
    return {name: files[name] for name in first.values()}


def _named(name: str) -> tuple[str, ...]:
    """Return namespace and name for a file in a namespace's folder."""
    parts = plain(name).split("/")
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
"""The folder that the command creates; in it is a folder per image, which has the image's name."""


class _Entry(Struct, frozen=True, kw_only=True):
    """A file with objects that scheduling reads."""

    file: str
    root: str
    resource: str
    namespace: str
    """Empty for cluster-scoped objects, and for a list of all namespaces."""
    name: str
    """Empty for a list."""


def _find_must_gather(names: Sequence[str]) -> Iterator[Form]:
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
    """Return whether only this layout has a file of this name."""
    below = entry.file.removeprefix(entry.root).lstrip("/")
    return below.startswith(("cluster-scoped-resources/", f"namespaces/{entry.namespace}/core/pods.")) or (
        entry.resource == "core/pods" and f"/pods/{entry.name}/{entry.name}." in below
    )


def _top(root: str) -> str:
    """Return the dump's folder. What several images gathered, or one image on several nodes, is one dump."""
    match = _GATHERED.fullmatch(root)
    if match is None:
        return root
    return match["top"] or match["parent"].rstrip("/")


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
    everywhere = {listed_kind(_LISTS[entry.resource]) for entry in entries if not entry.namespace and not entry.name}
    some = {listed_kind(_LISTS[entry.resource]) for entry in entries}
    for kind, what in _GATHERED_BY_NAMESPACE.items():
        if kind not in everywhere:
            yield lack(kind, f"{what} of namespaces that were not gathered" if kind in some else "")
    yield from all_but(some | _GATHERED_BY_NAMESPACE.keys())


# Results of Sonobuoy: `resources/cluster/core_v1_nodes.json`, `resources/ns/NAMESPACE/core_v1_pods.json`.
#
# Versions before 0.20 name the files after the kind (`Nodes.json`, `Pods.json`), and the first versions use another
# folder (`non-ns`). Their items do not state their kind. A resource without objects has no file. Other files are
# results of plugins, logs, and reports of the kubelets and the API server. Upstream:
# github.com/vmware-tanzu/sonobuoy, pkg/discovery/queries.go.

_CORE = "core"
_SONOBUOY_FILE = re.compile(
    r"(?P<top>(?:.*?/)??)resources/(?:cluster|non-ns|ns/[^/]+)/(?:(?P<group>[^/_]+)_(?P<version>[^/_]+)_)?(?P<plural>[^/_.]+)\.json"
)


def _find_sonobuoy(names: Sequence[str]) -> Iterator[Form]:
    """Yield the results among files with these names."""
    layouts: dict[str, dict[str, str]] = {}
    for name in names:
        match = _SONOBUOY_FILE.fullmatch(plain(name))
        kind = match and _list_kind(match["group"] or "", match["version"] or "", match["plural"].lower())
        if match and kind:
            layouts.setdefault(match["top"].rstrip("/"), {})[name] = kind
    for top, files in layouts.items():
        if {"v1 NodeList", "v1 PodList"} & set(files.values()):
            yield Form(format="Sonobuoy archive", top=top, files=files, lacks=())


def _list_kind(group: str, version: str, plural: str) -> str:
    """Return `v1 PodList` and the like; empty for a kind that scheduling does not read."""
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
_SUPPORT_BUNDLE_FILE = re.compile(
    r"(?P<top>(?:.*?/)??)cluster-resources/(?P<resource>[^/]+?)(?:/(?P<namespace>[^/]+))?\.json"
)


def _find_support_bundle(names: Sequence[str]) -> Iterator[Form]:
    """Yield the bundles among files with these names."""
    layouts: dict[str, dict[str, str]] = {}
    for name in names:
        match = _SUPPORT_BUNDLE_FILE.fullmatch(plain(name))
        kind = match and (_LISTS_BY_NAMESPACE if match["namespace"] else _SUPPORT_BUNDLE_LISTS).get(match["resource"])
        if match and kind:
            layouts.setdefault(match["top"].rstrip("/"), {})[name] = kind
    for top, files in layouts.items():
        if _support_bundle_is_telling(files):
            yield Form(
                format="troubleshoot support bundle", top=top, files=files, lacks=tuple(_support_bundle_lacks(files))
            )


def _support_bundle_is_telling(files: Mapping[str, str]) -> bool:
    return bool({"v1 NodeList", "v1 PodList"} & set(files.values()))


def _support_bundle_lacks(files: Mapping[str, str]) -> Iterator[Lack]:
    held = {listed_kind(kind) for kind in files.values()}
    if "Pod" in held and not any(plain(name).endswith("/pods/kube-system.json") for name in files):
        yield lack("Pod", "pods of namespaces that were not collected")
    yield from all_but(held)


class Plan(Struct, frozen=True, kw_only=True):
    """The files of a folder or an archive that are read."""

    place: str
    wanted: Mapping[str, str]
    """The files in order, each with the kind of its list, or an empty string if the file states its kind."""
    forms: Sequence[Form]

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
                    files.setdefault(listed_kind(form.files[name]), []).append(name.removeprefix(f"{form.top}/"))
            lacks = *form.lacks, *(lack(kind, _emptiness(names)) for kind, names in files.items() if _matters(kind))
            place = f"{self.place}: {form.top}" if form.top else self.place
            yield Dump(format=form.format, place=place, lacks=lacks)


def _matters(kind: str) -> bool:
    return kind in KINDS and bool(KINDS[kind].leaves)


def _emptiness(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more, which are" if len(names) > 1 else ", which is"
    return f"the content of {names[0]}{more} empty"


def plan(names: Sequence[str], place: str) -> Plan:
    """Return the plan: all files outside of recognized dumps, and the files in these that hold what scheduling
    reads."""
    forms = {
        form.top: form
        for find in (
            cluster_info.find_cluster_info,
            _find_support_bundle,
            _find_insights,
            _find_must_gather,
            _find_sonobuoy,
        )
        for form in find(names)
    }
    wanted: dict[str, str] = {}
    for name in names:
        form = _innermost(forms, name)
        if form is None or form.files is None:
            wanted[name] = ""
        elif name in form.files:
            wanted[name] = form.files[name]
    return Plan(place=place, wanted=wanted, forms=tuple(forms.values()))


def _innermost(forms: Mapping[str, Form], name: str) -> Form | None:
    """Return the form of the dump that contains the file."""
    while name:
        name = name.rpartition("/")[0]
        if name in forms:
            return forms[name]
    return None
