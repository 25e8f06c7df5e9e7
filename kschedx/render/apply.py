"""A fix to apply: commands for kubectl, or the manifests as they would be. Nothing is ever sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from shlex import quote

from kschedx.errors import InputError
from kschedx.fixes import Change
from kschedx.fixes.patching import PatchError, patched
from kschedx.render.document import to_yaml

END = "EOF"
"""Ends a manifest in the script."""

_MADE_AGAIN: Mapping[str, str] = {
    "Pod": "",
    "Job": "# the template of a Job cannot be changed: this deletes the Job with its pods, and makes it again\n",
}
"""What cannot be changed where it is, with the comment that says what somebody may not expect."""

Manifest = Mapping[str, object]
Find = Callable[[Change], Manifest | None]
"""What is known of the manifest of a change's target."""


def commands(changes: Sequence[Change]) -> str:
    """A shell script: a patch for what is there, a manifest for what comes. What nobody sends is a comment."""
    return "".join(f"{_follows(one) if one.by else _command(one)}\n" for one in changes)


def _follows(change: Change) -> str:
    target = change.target
    if target.kind != "Node":
        named = f"{target.kind} {'/'.join(filter(None, (target.namespace, target.name)))}"
        if target.kind == "PersistentVolume" and change.create is None:
            return f"# {change.by} makes {named} available by itself"
        if target.kind == "PersistentVolume":
            return f"# {change.by} has to make a volume: the events of the claim say why it has not"
        if target.kind == "PersistentVolumeClaim":
            return f"# {named} is bound to it then"
        return f"# {change.by} {'deletes' if change.delete else 'gives up'} {named} by itself"
    if any(one["path"] == "/spec/taints" for one in change.patch):
        return f"# {change.by} takes the taints off node {target.name} once it is well"
    amounts = ", ".join(f"{str(one['path']).rpartition('/')[2]} {one.get('value')}" for one in change.patch)
    return f"# {target.name} has to offer {amounts}".replace("~1", "/")


def _command(change: Change) -> str:
    target = change.target
    where = f" -n {quote(target.namespace)}" if target.namespace else ""
    name = f"{_resource(change)} {quote(target.name)}{where}"
    if change.delete:
        return f"kubectl delete {name}"
    if change.create is not None and target.kind == "Node":
        lines = to_yaml(change.create).splitlines()
        return "\n".join(
            ["# whatever makes the cluster's nodes has to make one like this:", *(f"#   {one}" for one in lines)]
        )
    if change.create is not None:
        is_open = target.kind == "PersistentVolume" and not _has_source(change.create)
        comment = "# say in its spec which storage it is (csi, local, nfs, ...), and then:\n" if is_open else ""
        return f"{comment}kubectl apply --server-side -f - <<'{END}'\n{to_yaml(change.create)}{END}"
    patch = quote(json.dumps(list(change.patch)))
    if target.kind in _MADE_AGAIN:
        local = f"kubectl patch --local -f - --type=json --patch={patch} -o json"
        return f"{_MADE_AGAIN[target.kind]}kubectl get {name} -o json | {local} | kubectl replace --force -f -"
    comment = "# for the Jobs to come: one that is there keeps its template\n" if target.kind == "CronJob" else ""
    return f"{comment}kubectl patch {name} --type=json --patch={patch}"


def _has_source(volume: Manifest) -> bool:
    spec = volume.get("spec")
    return isinstance(spec, Mapping) and "csi" in spec


def _resource(change: Change) -> str:
    """`deployment.apps`, `pod`: no other group's kind of that name."""
    group, slash, _ = change.target.api_version.rpartition("/")
    return change.target.kind.lower() + (f".{group}" if slash else "")


def manifests(changes: Sequence[Change], find: Find) -> str:
    """The objects as they would be, as YAML. Raises `InputError` for one of which the manifest is not known."""
    documents: list[str] = []
    for one in changes:
        if one.delete:
            continue
        documents.append(to_yaml(one.create if one.create is not None else _as_patched(one, find)))
    return "---\n".join(documents)


def _as_patched(change: Change, find: Find) -> Manifest:
    target = change.target
    manifest = find(change)
    if manifest is None:
        raise InputError(f"the manifest of {target.kind} {target.name} is not known", hint="-o patch prints the change")
    try:
        return patched(manifest, change.patch)
    except PatchError as error:
        raise InputError(f"the manifest of {target.kind} {target.name} does not take the patch: {error}") from None
