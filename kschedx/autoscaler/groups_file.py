"""What somebody writes down about groups: their nodes, templates, and the tags of their ASGs.

    groups:
      gpu-b:
        nodes: [ip-10-0-3-7.ec2.internal]
        template: {Node: {...}, Pods: [...]}          # as /snapshotz has it
      spot-a:
        capacity: {cpu: "8", memory: 32Gi, pods: "58"}
        tags:
          k8s.io/cluster-autoscaler/node-template/label/disk: nvme
          k8s.io/cluster-autoscaler/node-template/taint/dedicated: gpu:NoSchedule
          k8s.io/cluster-autoscaler/node-template/resources/ephemeral-storage: 100G

The output of the autoscaler's /snapshotz is taken as it is.
Upstream of the tags: cloudprovider/aws (buildNodeFromTemplate), of the annotations: cloudprovider/clusterapi.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kschedx.errors import InputError, Place, nearest

_PREFIX = "k8s.io/cluster-autoscaler/node-template/"
_KEYS = ("nodes", "template", "capacity", "labels", "taints", "tags")


class GroupsFile(Struct, frozen=True, kw_only=True):
    """What the file says."""

    nodes: Mapping[str, str] = {}
    """Node to group."""
    templates: Mapping[str, object] = {}
    """Group to `{"Node": manifest, "Pods": [manifest]}`."""

    def with_other(self, other: GroupsFile) -> GroupsFile:
        """Both; of a group or node that both name, the other's."""
        return GroupsFile(nodes={**self.nodes, **other.nodes}, templates={**self.templates, **other.templates})


def read_groups(document: object, source: str) -> GroupsFile:
    """Raises `InputError`."""
    place = Place(source=source)
    if isinstance(document, dict) and isinstance(document.get("TemplateNodes"), dict):
        return GroupsFile(templates=document["TemplateNodes"])
    groups = document.get("groups") if isinstance(document, dict) else None
    if not isinstance(groups, dict):
        raise InputError("this is neither a map with `groups` nor the output of /snapshotz", place=place)
    nodes: dict[str, str] = {}
    templates: dict[str, object] = {}
    for name, entry in groups.items():
        where = Place(source=source, field=f"groups.{name}")
        if not isinstance(entry, dict):
            raise InputError("a group is a map", place=where)
        for key in entry:
            if key not in _KEYS:
                raise InputError(f'"{key}" is not a key of a group', place=where, hint=nearest(str(key), _KEYS))
        for node in entry.get("nodes") or ():
            nodes[str(node)] = str(name)
        if "template" in entry:
            templates[str(name)] = entry["template"]
        elif any(key in entry for key in ("capacity", "labels", "taints", "tags")):
            templates[str(name)] = {"Node": _node(str(name), entry, where), "Pods": []}
    return GroupsFile(nodes=nodes, templates=templates)


def _node(name: str, entry: Mapping[str, object], place: Place) -> dict[str, object]:
    """A node manifest of what is written down."""
    labels = _texts(entry.get("labels"), "labels", place)
    capacity: dict[str, str] = _texts(entry.get("capacity"), "capacity", place)
    taints = [_taint(text, place) for text in _list(entry.get("taints"))]
    for tag, value in _texts(entry.get("tags"), "tags", place).items():
        if not tag.startswith(_PREFIX):
            continue
        what, _, key = tag.removeprefix(_PREFIX).partition("/")
        if what == "label":
            labels[key] = value
        elif what == "taint":
            text, _, effect = value.rpartition(":")
            taints.append({"key": key, "value": text, "effect": effect})
        elif what == "resources":
            capacity[key] = value
    if not {"cpu", "memory"} <= capacity.keys():
        raise InputError("a template needs capacity with cpu and memory", place=place)
    capacity.setdefault("pods", "110")
    return {
        "metadata": {"name": f"template-{name}", "labels": {"kubernetes.io/os": "linux", **labels}},
        "spec": {"taints": taints},
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _texts(value: object, key: str, place: Place) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{key} is a map", place=place)
    return {str(name): str(text) for name, text in value.items()}


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _taint(value: object, place: Place) -> dict[str, object]:
    """`key=value:effect`, or a map."""
    if isinstance(value, dict):
        return value
    key_value, colon, effect = str(value).rpartition(":")
    if not colon:
        raise InputError(f'"{value}" is no taint: KEY=VALUE:EFFECT', place=place)
    key, _, text = key_value.partition("=")
    return {"key": key, "value": text, "effect": effect}
