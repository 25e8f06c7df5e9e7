"""Commands of kubectl that change or show objects, to paste into a shell."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import PurePath

from kschedx.kube.escaping import shell_command
from kschedx.kube.kinds import KINDS

_MISSING = "missing-"
_LONGEST_NAME = 200


def dump_objects(kinds: Collection[str], file: str = "") -> str:
    """Return the command that writes all objects of these kinds to a file."""
    everywhere = " -A" if any(KINDS[kind].is_namespaced for kind in kinds) else ""
    return f"kubectl get {','.join(map(_resource, kinds))}{everywhere} -o yaml > {file or added_file(kinds)}"


def add_to_dump(*kinds: str) -> str:
    """Return how to add all objects of these kinds to a dump, as a phrase."""
    return f"{dump_objects(kinds)}, and add -s {added_file(kinds)}"


def added_file(kinds: Collection[str]) -> str:
    """Return the file for the kinds that a dump lacks: `missing-sc+pv.yaml`. Only its name shows them if the cluster
    has none, because kubectl then writes a list without a kind."""
    name = f"{_MISSING}{'+'.join(map(_short_name, kinds))}.yaml"
    return name if len(name) <= _LONGEST_NAME else "missing.yaml"


def listed_kinds(path: str) -> frozenset[str]:
    """Return the kinds of which a file has every object, according to a name that `added_file` returns."""
    file = PurePath(path)
    names = file.stem.removeprefix(_MISSING).split("+") if file.name.startswith(_MISSING) else []
    return frozenset(_kinds_by_name()[name] for name in names) if _kinds_by_name().keys() >= {*names} else frozenset()


def _resource(kind: str) -> str:
    """Return the plain name, which is shorter; with a group if older servers have another kind with that name."""
    return KINDS[kind].resource if KINDS[kind].is_optional else KINDS[kind].plural


def _short_name(kind: str) -> str:
    plural = KINDS[kind].plural
    is_plain = [other.plural for other in KINDS.values()].count(plural) == 1
    return KINDS[kind].short_names[0] if KINDS[kind].short_names else plural if is_plain else KINDS[kind].resource


@cache
def _kinds_by_name() -> Mapping[str, str]:
    return {_short_name(kind): kind for kind in KINDS}


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
