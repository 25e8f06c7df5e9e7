"""One small cluster, in every form in which people get it from somebody else.

A form is a mapping of file names to contents, in the layouts of the tools (see the modules of kschedx.sources.dumps for
where those are written), with what else these tools put beside the manifests.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml
import zstandard

from tests.builders import node

Manifest = dict[str, Any]
Files = dict[str, bytes]

DIGEST = "quay-io-openshift-release-dev-ocp-v4-0-art-dev-sha256-" + "0f" * 32
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system", "shop")


def of(kind: str, name: str, namespace: str = "", version: str = "v1", **fields: object) -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def pod(name: str, namespace: str, node_name: str = "", **labels: str) -> Manifest:
    resources = {"requests": {"cpu": "500m"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "uid": f"uid-{namespace}-{name}"},
        "spec": {
            "initContainers": [{"name": "init", "image": "init:1"}],
            "containers": [{"name": "main", "image": "main:1", "resources": resources}],
            **({"nodeName": node_name} if node_name else {}),
        },
        "status": {"phase": "Running" if node_name else "Pending"},
    }


NODES = [cast(Manifest, node(f"node-{letter}", labels={"zone": letter})) for letter in "abc"]
PODS = [
    pod("dns-1", "kube-system", "node-a", app="dns"),
    pod("dns-2", "kube-system", "node-b", app="dns"),
    pod("web-1", "shop", "node-c", app="web"),
    pod("web-2", "shop", app="web"),
    pod("job", "default", "node-a"),
]
SERVICES = [of("Service", "web", "shop", spec={"selector": {"app": "web"}})]
CLAIMS = [of("PersistentVolumeClaim", "data", "shop", spec={"volumeName": "pv-1"})]
VOLUMES = [of("PersistentVolume", "pv-1", spec={"capacity": {"storage": "1Gi"}})]
CLASSES = [of("StorageClass", "fast", version="storage.k8s.io/v1", provisioner="x")]
PRIORITIES = [of("PriorityClass", "high", version="scheduling.k8s.io/v1", value=1000)]
SPACES = [of("Namespace", name) for name in NAMESPACES]
EVERYTHING = [*NODES, *PODS, *SERVICES, *CLAIMS, *VOLUMES, *CLASSES, *PRIORITIES, *SPACES]


def as_json(value: object, indent: int | None = 4) -> bytes:
    return json.dumps(value, indent=indent).encode() + b"\n"


def as_yaml(value: object) -> bytes:
    return b"---\n" + yaml.dump(value, Dumper=yaml.CSafeDumper).encode()


def in_namespace(objects: Sequence[Manifest], namespace: str) -> list[Manifest]:
    return [match for match in objects if match["metadata"].get("namespace") == namespace]


def typed(kind: str, items: Sequence[Manifest], version: str = "v1", *, with_kinds: bool = False) -> Manifest:
    """A list as Go writes it: its items say their kind only where a tool has seen to it."""
    bare = (
        items if with_kinds else [{k: v for k, v in item.items() if k not in ("kind", "apiVersion")} for item in items]
    )
    return {"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": "4711"}, "items": list(bare)}


# Manifests


def manifests() -> Files:
    return {
        "nodes.yaml": as_yaml(of("List", "", items=NODES)),
        "shop/pods.json": as_json(of("List", "", items=PODS)),
        "rest.yml": b"".join(as_yaml(match) for match in EVERYTHING if match["kind"] not in ("Node", "Pod")),
        "README.md": b"# not read",
        ".git/config.yaml": b"not: read",
    }


# kubectl cluster-info dump

_LISTS = {
    "events": ("EventList", "v1"),
    "replication-controllers": ("ReplicationControllerList", "v1"),
    "services": ("ServiceList", "v1"),
    "daemonsets": ("DaemonSetList", "apps/v1"),
    "deployments": ("DeploymentList", "apps/v1"),
    "replicasets": ("ReplicaSetList", "apps/v1"),
    "pods": ("PodList", "v1"),
}


def log_of(container: str, manifest: Manifest, log: bytes = b"a line\nanother") -> bytes:
    name = f"{container} of pod {manifest['metadata']['namespace']}/{manifest['metadata']['name']}".encode()
    return b"==== START logs for container %s ====\n%s==== END logs for container %s ====\n" % (name, log, name)


def cluster_info_parts(namespace: str) -> dict[str, Manifest]:
    held: dict[str, Sequence[Manifest]] = {"pods": in_namespace(PODS, namespace)}
    held["services"] = in_namespace(SERVICES, namespace)
    return {name: typed(kind, held.get(name, ()), version) for name, (kind, version) in _LISTS.items()}


def cluster_info(suffix: str = "json", namespaces: Sequence[str] = NAMESPACES) -> Files:
    """kubectl cluster-info dump --output-directory."""
    write = as_json if suffix == "json" else as_yaml
    files = {f"nodes.{suffix}": write(typed("NodeList", NODES))}
    for namespace in namespaces:
        for name, result in cluster_info_parts(namespace).items():
            files[f"{namespace}/{name}.{suffix}"] = write(result)
        for item in in_namespace(PODS, namespace):
            files[f"{namespace}/{item['metadata']['name']}/logs.txt"] = log_of("init", item) + log_of("main", item)
    return files


def cluster_info_stdout(
    suffix: str = "json",
    namespaces: Sequence[str] = NAMESPACES,
    log: Callable[[str, Manifest], bytes] = lambda container, value: b"a line\nanother",
) -> bytes:
    """kubectl cluster-info dump, into one file."""
    write = as_json if suffix == "json" else as_yaml
    parts = [write(typed("NodeList", NODES)).removeprefix(b"---\n")]
    for namespace in namespaces:
        parts += [write(cluster_info_part) for cluster_info_part in cluster_info_parts(namespace).values()]
        for item in in_namespace(PODS, namespace):
            parts += [log_of(name, item, log(name, item)) for name in ("init", "main")]
    return b"".join(parts)


# kubectl cluster-info dump until 1.10: the types in memory

_LINKS = {
    "replication-controllers": "/api/v1/namespaces/{}/replicationcontrollers",
    **{
        name: f"/apis/extensions/v1beta1/namespaces/{{}}/{name}"
        for name in ("daemonsets", "deployments", "replicasets")
    },
    **{name: f"/api/v1/namespaces/{{}}/{name}" for name in ("events", "services", "pods")},
}
_OWN_KEYS = ("labels", "selector", "requests", "limits", "capacity", "allocatable", "nodeSelector")


def _in_memory(value: object) -> object:
    """With the names of Go's fields."""
    if isinstance(value, list):
        return [_in_memory(item) for item in value]
    if not isinstance(value, dict):
        return value
    result: Manifest = {}
    for key, item in value.items():
        if key not in ("metadata", "kind", "apiVersion"):
            result[key[0].upper() + key[1:]] = item if key in _OWN_KEYS else _in_memory(item)
    return {**value.get("metadata", {}), **result, "Nothing": None}


def _list_of_2017(link: str, items: Sequence[Manifest]) -> bytes:
    listed = {"selfLink": link, "resourceVersion": "7", "Items": [_in_memory(item) for item in items]}
    return as_json(listed)


def cluster_info_of_2017() -> Files:
    files = {"nodes.json": _list_of_2017("/api/v1/nodes", NODES)}
    for namespace in NAMESPACES:
        held = {"pods": in_namespace(PODS, namespace), "services": in_namespace(SERVICES, namespace)}
        for name in _LISTS:
            files[f"{namespace}/{name}.json"] = _list_of_2017(_LINKS[name].format(namespace), held.get(name, ()))
    return files


def cluster_info_stdout_of_2017(log: bytes = b"a line\nanother") -> bytes:
    files = cluster_info_of_2017()
    parts = [files["nodes.json"]]
    for namespace in NAMESPACES:
        parts += [files[f"{namespace}/{name}.json"] for name in _LISTS]
        parts += [log_of("main", item, log) for item in in_namespace(PODS, namespace)]
    return b"".join((*parts, b"Cluster info dumped to standard output\n"))


# the Insights Operator


def insights() -> Files:
    """An archive of it: no object says its kind, but for the budgets."""

    def bare(manifest: Manifest) -> bytes:
        return as_json(
            {key: value for key, value in manifest.items() if key not in ("kind", "apiVersion")}, indent=None
        )

    files = {
        "config/infrastructure.json": b'{"kind":"Infrastructure","apiVersion":"config.openshift.io/v1"}',
        "config/version.json": b'{"spec":{"clusterID":"1"}}',
        "insights-operator/gathers.json": b'{"status_reports":[]}',
        "events/shop.json": b'{"items":[{"namespace":"shop","reason":"BackOff"}]}',
        "config/pod/shop/logs/web-1/errors.log": b"...",
    }
    files |= {f"config/node/{item['metadata']['name']}.json": bare(item) for item in NODES}
    files |= {f"config/persistentvolumes/{item['metadata']['name']}.json": bare(item) for item in VOLUMES}
    files |= {f"config/storage/storageclasses/{item['metadata']['name']}.json": bare(item) for item in CLASSES}
    for item in PODS:
        space, name = item["metadata"]["namespace"], item["metadata"]["name"]
        files[f"config/pod/{space}/{name}.json"] = bare(item)
        files[f"conditional/namespaces/{space}/pods/{name}/{name}.json"] = bare(item)
    return files


# oc adm must-gather, oc adm inspect


def inspected(namespaces: Sequence[str] = NAMESPACES) -> Files:
    files = {
        "event-filter.html": b"<html>",
        "timestamp": b"2026-11-21",
        "version": b"4.20",
        "aggregated-discovery-api.yaml": b"kind: APIGroupDiscoveryList\nno: {{ manifest",
        "cluster-scoped-resources/core/persistentvolumes.yaml": as_yaml(typed("PersistentVolumeList", VOLUMES)),
        "cluster-scoped-resources/storage.k8s.io/storageclasses.yaml": as_yaml(
            typed("StorageClassList", CLASSES, "storage.k8s.io/v1", with_kinds=True)
        ),
        "cluster-scoped-resources/config.openshift.io/proxies.yaml": b"httpProxy: [hidden",
        "cluster-scoped-resources/metal3.io/nodes/x.yaml": as_yaml(of("Node", "node-a", version="metal3.io/v1")),
        "static-pods/kube-apiserver.json": b"no json",
    }
    for item in NODES:
        files[f"cluster-scoped-resources/core/nodes/{item['metadata']['name']}.yaml"] = as_yaml(item)
    for item in SPACES:
        name = item["metadata"]["name"]
        files[f"cluster-scoped-resources/core/namespaces/{name}.yaml"] = as_yaml(item)
    for namespace in namespaces:
        base = f"namespaces/{namespace}"
        pods = in_namespace(PODS, namespace)
        files[f"{base}/{namespace}.yaml"] = as_yaml(of("Namespace", namespace))
        files[f"{base}/core/pods.yaml"] = as_yaml(typed("PodList", pods, with_kinds=True))
        files[f"{base}/core/services.yaml"] = as_yaml(typed("ServiceList", in_namespace(SERVICES, namespace)))
        files[f"{base}/core/persistentvolumeclaims.yaml"] = as_yaml(
            typed("PersistentVolumeClaimList", in_namespace(CLAIMS, namespace), with_kinds=True)
        )
        files[f"{base}/core/secrets.yaml"] = b"redacted: {{"
        for item in pods:
            name = item["metadata"]["name"]
            files[f"{base}/pods/{name}/{name}.yaml"] = as_yaml(item)
            files[f"{base}/pods/{name}/main/main/logs/current.log"] = b"kind: Pod\n"
            files[f"{base}/pods/{name}/main/main/healthz"] = b"ok"
    return files


def must_gather(*images: Files) -> Files:
    files = {"must-gather.logs": b"[must-gather] OUT", "timestamp": b"2026", "event-filter.html": b"<html>"}
    for number, image in enumerate(images or (inspected(),)):
        below = f"{DIGEST[:-1]}{number}"
        files |= {f"{below}/{name}": content for name, content in image.items()}
    return {f"must-gather.local.123/{name}": content for name, content in files.items()}


# troubleshoot.sh


def support_bundle(*, arrays: bool = False) -> Files:
    def written(kind: str, items: Sequence[Manifest], version: str = "v1") -> bytes:
        result = typed(kind, items, version, with_kinds=not arrays)
        result["items"] = result["items"] or None  # a nil slice of Go's
        return as_json(result["items"] if arrays else result, 2)

    resources = {
        "nodes.json": written("NodeList", NODES),
        "namespaces.json": written("NamespaceList", SPACES),
        "pvs.json": written("PersistentVolumeList", VOLUMES),
        "storage-classes.json": written("StorageClassList", CLASSES, "storage.k8s.io/v1"),
        "priorityclasses.json": written("PriorityClassList", PRIORITIES, "scheduling.k8s.io/v1"),
        "pods-errors.json": b"null",
        "nodes-errors.json": b'["forbidden"]',
        "groups.json": b'[{"name": "apps"}]',
        "custom-resources/nodes.json": as_json([of("Pod", "not-this-one", "shop")]),
        "auth-cani-list/shop.json": b'{"resourceRules": []}',
    }
    for namespace in NAMESPACES:
        resources[f"pods/{namespace}.json"] = written("PodList", in_namespace(PODS, namespace))
        resources[f"services/{namespace}.json"] = written("ServiceList", in_namespace(SERVICES, namespace))
        resources[f"pvcs/{namespace}.json"] = written("PersistentVolumeClaimList", in_namespace(CLAIMS, namespace))
        resources[f"secrets/{namespace}.json"] = b"[]"
    resources["pods/logs/shop/web-1/main.log"] = b"{"
    files = {f"cluster-resources/{name}": content for name, content in resources.items()}
    files["version.yaml"] = b"apiVersion: troubleshoot.sh/v1beta2\nkind: SupportBundle\nspec: {versionNumber: 1}\n"
    files["analysis.json"] = b'[{"name": "x"}]'
    files["cluster-info/cluster_version.json"] = b'{"info": {}}'
    files["host-collectors/system/cpu.json"] = b"{"
    return {f"support-bundle-2026-11-21T20_00_00/{name}": content for name, content in files.items()}


# Sonobuoy


def sonobuoy(*, is_old: bool = False) -> Files:
    lists = [
        ("core_v1_nodes", "Nodes", NODES),
        ("core_v1_persistentvolumes", "PersistentVolumes", VOLUMES),
        ("storage.k8s.io_v1_storageclasses", "StorageClasses", CLASSES),
        ("scheduling.k8s.io_v1_priorityclasses", "PriorityClasses", PRIORITIES),
        ("core_v1_namespaces", "Namespaces", SPACES),
        ("core_v1_pods", "Pods", PODS),
        ("core_v1_services", "Services", SERVICES),
        ("core_v1_persistentvolumeclaims", "PersistentVolumeClaims", CLAIMS),
    ]
    cluster = "non-ns" if is_old else "cluster"
    files: Files = {
        "resources/" + cluster + "/apiextensions.k8s.io_v1_customresourcedefinitions.json": b'[{"kind": "x"}]',
        "resources/ns/shop/core_v1_configmaps.json": b"[{}]",
        "hosts/node-a/configz.json": b'{"kubeletconfig": {"kind": "KubeletConfiguration"}}',
        "servergroups.json": b'{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}',
        "serverversion.json": b'{"major": "1", "minor": "36"}',
        "meta/config.json": b'{"Description": "x"}',
        "plugins/e2e/sonobuoy_results.yaml": b"name: e2e\nstatus: passed\n",
        "podlogs/shop/web-1/logs/main.txt": b"{",
    }
    for name, former_name, objects in lists:
        for namespace in ("", *NAMESPACES):
            items = [item for item in objects if item["metadata"].get("namespace", "") == namespace]
            if items:
                folder = f"ns/{namespace}" if namespace else cluster
                bare = typed("", items, with_kinds=not is_old)["items"]
                files[f"resources/{folder}/{former_name if is_old else name}.json"] = as_json(bare, None)
    return files


# kube-scheduler-simulator


def simulator_export() -> Manifest:
    def bare(items: Sequence[Manifest]) -> object:
        return typed("", items)["items"]

    return {
        "pods": bare(PODS),
        "nodes": bare(NODES),
        "pvs": bare(VOLUMES),
        "pvcs": bare(CLAIMS),
        "storageClasses": bare(CLASSES),
        "priorityClasses": bare(PRIORITIES),
        "schedulerConfig": {"profiles": [{"schedulerName": "default-scheduler"}]},
        "namespaces": None,
    }


# Packing


def folder(path: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def tar(files: Mapping[str, bytes], dialect: int = tarfile.PAX_FORMAT, prefix: str = "./") -> bytes:
    """In the order of the mapping's reverse, since a folder on disk has no order either."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=dialect) as archive:
        for name, content in reversed(list(files.items())):
            member = tarfile.TarInfo(prefix + name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def zipped(files: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return out.getvalue()


COMPRESSIONS: Mapping[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
