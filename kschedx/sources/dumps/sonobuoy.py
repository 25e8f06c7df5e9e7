"""Results of Sonobuoy: `resources/cluster/core_v1_nodes.json`, `resources/ns/NAMESPACE/core_v1_pods.json`.

Releases before 0.20 call the files after the kind (`Nodes.json`, `Pods.json`), the first ones also the folder
(`non-ns`); their items do not say their kind. A resource that has no objects has no file. Beside them are results of
plugins, logs, and what the kubelets and the API server say of themselves. Upstream: github.com/vmware-tanzu/sonobuoy,
pkg/discovery/queries.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kschedx.api.kinds import KINDS
from kschedx.sources.dumps.form import Form, plain

_CORE = "core"
_FILE = re.compile(
    r"(?P<top>(?:.*?/)??)resources/(?:cluster|non-ns|ns/[^/]+)/(?:(?P<group>[^/_]+)_(?P<version>[^/_]+)_)?(?P<plural>[^/_.]+)\.json"
)


def find(names: Sequence[str]) -> Iterator[Form]:
    """The results among the files of these names."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        match = _FILE.fullmatch(plain(name))
        kind = match and _list_kind(match["group"] or "", match["version"] or "", match["plural"].lower())
        if match and kind:
            found.setdefault(match["top"].rstrip("/"), {})[name] = kind
    for top, files in found.items():
        if {"v1 NodeList", "v1 PodList"} & set(files.values()):
            yield Form(format="Sonobuoy archive", top=top, files=files, lacks=())


def _list_kind(group: str, version: str, plural: str) -> str:
    """`v1 PodList`; empty for what scheduling does not read."""
    named = [kind for kind in KINDS.values() if kind.plural == plural]
    if group:
        own = "" if group == _CORE else group
        named = [kind for kind in named if own in (kind.group, *kind.former_groups)]
    kind = next(iter(named), None)
    if kind is None:
        return ""
    stated = group and (version if group == _CORE else f"{group}/{version}")
    return f"{stated or kind.api_version} {kind.name}List"
