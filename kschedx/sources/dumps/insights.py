"""Archives of the OpenShift Insights Operator: an object in each file, most of which do not say their kind.

    config/node/NODE.json, config/persistentvolumes/VOLUME.json, config/storage/storageclasses/CLASS.json
    config/pod/NAMESPACE/POD.json, config/pdbs/NAMESPACE/BUDGET.json
    conditional/namespaces/NAMESPACE/pods/POD/POD.json, gathered where an alert fires

Of pods it gathers those of OpenShift's own namespaces that fail, and few others. Upstream:
github.com/openshift/insights-operator, docs/gathered-data.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from kschedx.sources.dumps import all_but, lack
from kschedx.sources.dumps.form import Form, plain

_LISTS: Mapping[str, str] = {
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
_FILE = re.compile(
    r"(?P<top>(?:.*?/)??)(?:"
    r"(?P<whole>config/(?:node|persistentvolumes|storage/storageclasses))/[^/]+"
    r"|(?P<namespaced>config/(?:pod|pdbs))/[^/]+/[^/]+"
    r"|(?P<conditional>conditional)/namespaces/[^/]+/pods/(?P<pod>[^/]+)/(?P=pod)"
    r")\.json"
)
_OWN = ("insights-operator/gathers.json", "config/infrastructure.json", "config/version.json")
"""Nobody else has one of these beside the nodes."""


def find(names: Sequence[str]) -> Iterator[Form]:
    """The archives among the files of these names."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        match = _FILE.fullmatch(plain(name))
        if match:
            folder = match["whole"] or match["namespaced"] or match["conditional"]
            found.setdefault(match["top"], {})[name] = _LISTS[folder]
    everything = set(map(plain, names))
    for top, files in found.items():
        if any(f"{top}{own}" in everything for own in _OWN):
            lacks = *(lack(kind, what) for kind, what in _LACKING.items()), *all_but(("Node", *_LACKING))
            yield Form(format="Insights archive", top=top.rstrip("/"), files=_once(files), lacks=lacks)


def _once(files: Mapping[str, str]) -> dict[str, str]:
    """A pod that was gathered twice is read once."""
    first: dict[tuple[str, ...], str] = {}
    for name in sorted(files, key=lambda name: ("/conditional/" in f"/{name}", name)):
        first.setdefault((files[name], *_named(name)), name)
    return {name: files[name] for name in first.values()}


def _named(name: str) -> tuple[str, ...]:
    """Namespace and name, where the file is in a namespace."""
    parts = plain(name).split("/")
    return (parts[-4], parts[-1]) if "conditional" in parts[:-4] else (parts[-2], parts[-1])
