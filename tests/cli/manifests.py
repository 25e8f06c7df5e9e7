"""Manifest files, as a user would have them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.builders import Manifest, node, pod

NODE = node("node-01", allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"})


def small_pod(
    name: str, cpu: str = "1", *, namespace: str = "default", labels: Mapping[str, str] | None = None
) -> Manifest:
    """A pod that the API server admits."""
    container = {"name": "main", "image": "registry.example/app:v1", "resources": {"requests": {"cpu": cpu}}}
    return pod(name, namespace=namespace, labels=labels, containers=[container])


POD = small_pod("web-0", namespace="shop")
BIG_POD = small_pod("big-0", "9", namespace="shop")


def changed(manifest: Manifest, path: str, value: object) -> Manifest:
    """The manifest with the value at a path of keys and indexes: `spec.containers.0.image`."""
    result = copy.deepcopy(manifest)
    at: Any = result
    *parents, last = path.split(".")
    for key in parents:
        at = at[int(key)] if isinstance(at, list) else at.setdefault(key, {})
    at[int(last) if isinstance(at, list) else last] = value
    return result


def write(folder: Path, *manifests: Manifest, name: str = "cluster.yaml") -> Path:
    """Write a YAML file with a document for each manifest; JSON is YAML."""
    path = folder / name
    path.write_text("\n---\n".join(json.dumps(manifest, indent=1) for manifest in manifests), encoding="utf-8")
    return path


def configuration(*profiles: Manifest) -> Manifest:
    version = "kubescheduler.config.k8s.io/v1"
    return {"apiVersion": version, "kind": "KubeSchedulerConfiguration", "profiles": list(profiles)}
