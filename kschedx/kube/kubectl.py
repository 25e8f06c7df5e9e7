"""Commands of kubectl that change or show objects, to paste into a shell."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kschedx.kube.escaping import shell_command
from kschedx.kube.kinds import KINDS

ADDED = "missing.yaml"
"""The file for objects that a dump lacks."""


def dump_objects(kinds: Collection[str], file: str = ADDED) -> str:
    """Return the command that writes all objects of these kinds to a file. It uses plain names, which are shorter; with
    a group if older servers have another kind with that name."""
    listed = ",".join(KINDS[kind].resource if KINDS[kind].is_optional else KINDS[kind].plural for kind in kinds)
    everywhere = " -A" if any(KINDS[kind].is_namespaced for kind in kinds) else ""
    return f"kubectl get {listed}{everywhere} -o yaml > {file}"


def add_to_dump(*kinds: str) -> str:
    """Return how to add all objects of these kinds to a dump, as a phrase."""
    return f"{dump_objects(kinds)}, and add -s {ADDED}"


FORCE = " --force --grace-period=0"


def delete_pod(key: str, *, force: bool = False) -> str:
    """Return the command that deletes a pod, `namespace/name`. With `force`, it waits for no kubelet."""
    namespace, _, name = key.partition("/")
    return shell_command(f"kubectl delete pod {{}} -n {{}}{FORCE if force else ''}", name, namespace)


def pod_logs(key: str, container: str = "", *, previous: bool = False) -> str:
    """Return the command that shows the logs of a pod, `namespace/name`, or of its previous containers."""
    namespace, _, name = key.partition("/")
    template = f"kubectl logs {{}} -n {{}}{' -c {}' if container else ''}{' --previous' if previous else ''}"
    return shell_command(template, name, namespace, *filter(None, (container,)))


def scale_workload(kind: str, namespace: str, name: str, replicas: int) -> str:
    """Return the command that sets the replicas of a workload."""
    return shell_command(f"kubectl scale {{}}/{{}} -n {{}} --replicas={replicas}", kind.lower(), name, namespace)


def merge_patch(resource: str, namespace: str, name: str, fields: Mapping[str, object]) -> str:
    """Return the command that changes these fields of an object; `namespace` is empty for one of the cluster."""
    where = " -n {}" if namespace else ""
    template = f"kubectl patch {{}} {{}}{where} --type merge -p {{}}"
    return shell_command(template, resource, name, *filter(None, (namespace,)), fields)


def remove_finalizers(resource: str, namespace: str, name: str) -> str:
    """Return the command that removes all finalizers of an object."""
    return merge_patch(resource, namespace, name, {"metadata": {"finalizers": None}})
