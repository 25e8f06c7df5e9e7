"""Support bundles of troubleshoot.sh: `cluster-resources/RESOURCE.json`, or `RESOURCE/NAMESPACE.json`.

Beside them are `*-errors.json`, logs, what other collectors found, and the analysis. Older releases wrote some lists as
arrays whose items do not say their kind. Upstream: github.com/replicatedhq/troubleshoot,
pkg/collect/cluster_resources.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from kschedx.sources.dumps import Lack, all_but, lack
from kschedx.sources.dumps.form import Form, listed_kind, plain

_LISTS: Mapping[str, str] = {
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
_FILE = re.compile(r"(?P<top>(?:.*?/)??)cluster-resources/(?P<resource>[^/]+?)(?:/(?P<namespace>[^/]+))?\.json")


def find(names: Sequence[str]) -> Iterator[Form]:
    """The bundles among the files of these names."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        match = _FILE.fullmatch(plain(name))
        kind = match and (_LISTS_BY_NAMESPACE if match["namespace"] else _LISTS).get(match["resource"])
        if match and kind:
            found.setdefault(match["top"].rstrip("/"), {})[name] = kind
    for top, files in found.items():
        if _is_telling(files):
            yield Form(format="troubleshoot support bundle", top=top, files=files, lacks=tuple(_lacks(files)))


def _is_telling(files: Mapping[str, str]) -> bool:
    return bool({"v1 NodeList", "v1 PodList"} & set(files.values()))


def _lacks(files: Mapping[str, str]) -> Iterator[Lack]:
    held = {listed_kind(kind) for kind in files.values()}
    if "Pod" in held and not any(plain(name).endswith("/pods/kube-system.json") for name in files):
        yield lack("Pod", "pods of namespaces that were not collected")
    yield from all_but(held)
