"""The Explanation document as JSON and YAML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.fixes.changes import PatchError, apply_patch
from kschedx.kube.decoding import Manifest, map_at
from kschedx.kube.documents import SERVER_FIELDS, Change
from kschedx.kube.escaping import json_escaped, shell_command, shell_comment, yaml_escaped
from kschedx.kube.kubectl import FORCE
from kschedx.kube.names import generated_name
from kschedx.patterns import lazy_pattern
from kschedx.sources.yaml import resolve

if TYPE_CHECKING:
    import yaml


def to_json(value: object, *, depth: int = 0) -> str:
    """Return JSON indented by four, as kubectl prints it, for a place in a document at this depth. Characters that a
    terminal would interpret or hide are escaped."""
    text = json_escaped(msgspec.json.format(msgspec.json.encode(value), indent=4).decode())
    return text.replace("\n", "\n" + "    " * depth)


def json_parts(entries: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Yield `to_json` of a document with these keys and values, in pieces, a list item by item. A list given as an
    iterator is never in memory as a whole."""
    opened = "{"
    for key, value in entries:
        yield f"{opened}\n    {to_json(key)}: "
        yield from _json_list(value) if isinstance(value, Iterator | list | tuple) else (to_json(value, depth=1),)
        opened = ","
    yield "\n}"


def _json_list(items: Iterable[object]) -> Iterator[str]:
    opened = "["
    for item in items:
        yield f"{opened}\n        {to_json(item, depth=2)}"
        opened = ","
    yield "[]" if opened == "[" else "\n    ]"


def to_yaml(document: Mapping[str, object] | Sequence[object]) -> str:
    import yaml

    base = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    dumper: type[yaml.SafeDumper] = type("Dumper", (base,), {})
    dumper.add_representer(str, _yaml_text)
    text: str = yaml.dump(document, Dumper=dumper, sort_keys=False, default_flow_style=False, allow_unicode=False)
    return yaml_escaped(text)


def _yaml_text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    """Represent text that kubectl would read as a number or a boolean in quotes, and text that a CI system would
    interpret in double quotes, where an escape can replace its `#` or `:`."""
    style = '"' if yaml_escaped(value) != value else "'" if _is_misread(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _is_misread(text: str) -> bool:
    """Whether kubectl, but perhaps not pyyaml, reads unquoted text as something else: `y`, `1e3`, `0o17`."""
    if text[:1] not in _OF_NUMBERS:
        return len(text) == 1 and text in "yYnN"
    try:
        return resolve(text) != text
    except ValueError:
        return True


_OF_NUMBERS = frozenset("+-.0123456789")


def yaml_parts(entries: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Yield `to_yaml` of a document with these keys and values, in pieces, as `json_parts` does."""
    for key, value in entries:
        items = iter(value) if isinstance(value, Iterator | list | tuple) else iter(())
        first = next(items, None)
        if first is None:
            yield to_yaml({key: [] if isinstance(value, Iterator) else value})
            continue
        yield to_yaml({key: None}).removesuffix(" null\n") + "\n"
        for item in chain((first,), items):
            yield to_yaml([item])


# YAML with comments next to values.

_PLAIN = lazy_pattern(r"[A-Za-z/][A-Za-z0-9._/-]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def commented_yaml(document: Mapping[str, object], comments: Mapping[str, str]) -> str:
    """Return YAML with comments. `comments` are keyed by field path: `profiles[0].schedulerName`."""
    return "\n".join(_mapping(document, comments, "", 0)) + "\n"


def _mapping(value: Mapping[str, object], comments: Mapping[str, str], path: str, depth: int) -> Iterator[str]:
    for key, item in value.items():
        yield from _entry(f"{'  ' * depth}{_scalar(key)}:", item, comments, f"{path}.{key}" if path else key, depth)


def _sequence(value: list[object], comments: Mapping[str, str], path: str, depth: int) -> Iterator[str]:
    for number, item in enumerate(value):
        where = f"{path}[{number}]"
        name = item.get("name") if isinstance(item, Mapping) else None
        if name and any(comment.startswith(f"{path}[{name}]") for comment in comments):
            where = f"{path}[{name}]"  # elements of arguments are identified by their names
        if isinstance(item, Mapping) and item:
            first, *rest = _mapping(item, comments, where, depth + 1)
            yield f"{'  ' * depth}- {first.lstrip()}"
            yield from rest
        else:
            yield from _entry(f"{'  ' * depth}-", item, comments, where, depth)


def _entry(head: str, value: object, comments: Mapping[str, str], path: str, depth: int) -> Iterator[str]:
    match value:
        case Mapping() if value:
            yield head
            yield from _mapping(value, comments, path, depth + 1)
        case list() if value:
            yield head
            yield from _sequence(value, comments, path, depth)
        case _:
            comment = f"  # {comments[path]}" if path in comments else ""
            yield f"{head} {_scalar(value)}{comment}"


def _scalar(value: object) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return yaml_escaped(msgspec.json.encode(value).decode())  # JSON is YAML, but YAML has some characters only escaped


# A fix as kubectl commands or as patched manifests. kschedx itself never sends anything.

_END = "EOF"  # the delimiter of a manifest in the script

_MADE_AGAIN: Mapping[str, str] = {
    "Pod": "",
    "Job": "# the template of a Job cannot be changed: this deletes the Job with its pods and recreates it\n",
}
"""Kinds that cannot be changed in place, with a comment on the consequence that is easy to miss."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_OF_ANY_VOLUME = frozenset({
    "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
    "storageClassName", "volumeAttributesClassName", "volumeMode",
})  # fmt: skip
"""Fields of a PersistentVolume's spec other than its source."""

Find = Callable[[Change], Manifest | None]  # returns the manifest of a change's target, or None if it is not known


def node_commands(changes: Sequence[Change], commands: Iterable[str]) -> str:
    """Return the `commands` of a fix if it changes only nodes: they keep what others changed there since. Empty for
    other fixes."""
    is_of_nodes = all(change.target.kind == "Node" for change in changes)
    return "".join(f"{command}\n" for command in commands) if is_of_nodes else ""


def kubectl_commands(changes: Sequence[Change], only_written: Find | None = None) -> str:
    """Return a shell script: a patch for each existing object, and a manifest for each new one. Changes that cannot be
    sent are comments.

    `only_written` finds the manifest of a target that the cluster does not have in that form, so that kubectl has
    nothing to patch.
    """
    lines: list[str] = []
    for change in _joined_changes(changes):
        manifest = None if change.by or only_written is None else only_written(change)
        if change.by:
            follows = _follows(change)
            lines += [] if lines[-1:] == [follows] else [follows]
        elif manifest is None:
            lines.append(_command(change))
        elif change.delete and any(other.create is not None and other.target == change.target for other in changes):
            continue  # it is created in another form, and never existed
        else:
            lines.append(_change_text(change, manifest))
    return "".join(f"{line}\n" for line in lines)


def _joined_changes(changes: Sequence[Change]) -> list[Change]:
    """Return the same changes, with patches of one object joined."""
    joined: list[Change] = []
    for change in changes:
        at = next(
            (n for n, other in enumerate(joined) if other.patch and change.patch and other.target == change.target),
            None,
        )
        if at is not None and any(other.delete for other in joined[at + 1 :]):
            at = None  # an object that is deleted between two patches is deleted in the state between them
        if at is None or change.by or joined[at].by:
            joined.append(change)
        else:
            joined[at] = replace(joined[at], patch=(*joined[at].patch, *change.patch))
    return joined


def _change_text(change: Change, manifest: Manifest) -> str:
    target = change.target
    named = f"{target.kind} {target.name}"
    if change.delete:
        return shell_comment(f"leave {named} out of the manifests")
    changed = _patched_manifest(change, lambda _: manifest) if change.create is None else change.create
    metadata = map_at(changed, "metadata")
    generated = generated_name(metadata)
    is_generated = bool(generated) and str(metadata.get("name") or generated).startswith(generated)
    if is_generated:
        changed = {**changed, "metadata": {key: value for key, value in metadata.items() if key != "name"}}
    verb = "create" if is_generated else "apply --server-side"
    why = shell_comment(f"{named} is not in the cluster in this form: this is the whole manifest")
    return f"{why}\nkubectl {verb} {_here(_sendable_manifest(changed))}"


def _here(manifest: Manifest) -> str:
    """Return the manifest as a here-document for a command."""
    return f"-f - <<'{_END}'\n{to_yaml(manifest)}{_END}"


def _follows(change: Change) -> str:
    target = change.target
    if target.kind != "Node":
        named = f"{target.kind} {'/'.join(filter(None, (target.namespace, target.name)))}"
        if target.kind == "PersistentVolume" and change.create is None:
            return shell_comment(f"{change.by} makes {named} available by itself")
        if target.kind == "PersistentVolume":
            return shell_comment(f"{change.by} creates the volume; if it does not, the events of the claim show why")
        if any(item["path"] == "/spec/storageClassName" for item in change.patch):
            return shell_comment(f"{change.by} gives {named} the class by itself")
        if target.kind == "PersistentVolumeClaim" and change.create is None:
            return shell_comment(f"{change.by} binds {named} to its volume by itself")
        return shell_comment(f"{change.by} {_does(change)} {named} by itself")
    if change.create is not None:
        return shell_comment(f"{change.by} adds the node by itself")
    if any(item["path"] == "/spec/taints" for item in change.patch):
        return shell_comment(f"{change.by} removes the taints of node {target.name} once it is healthy")
    amounts = ", ".join(f"{str(item['path']).rpartition('/')[2]} {item.get('value')}" for item in change.patch)
    return shell_comment(f"{target.name} needs {amounts}".replace("~1", "/"))


def _does(change: Change) -> str:
    if change.delete:
        return "deletes"
    if change.create is not None:
        return "creates"
    if change.target.kind == "Pod":
        is_status = all(str(item["path"]).startswith("/status") for item in change.patch)
        return "updates the status of" if is_status else "updates"
    return "updates" if change.target.kind == "ResourceSlice" else "gives up"


def _command(change: Change) -> str:
    target = change.target
    group, slash, _ = target.api_version.rpartition("/")
    name = f"{{}}{'.{}' if slash else ''} {{}}{' -n {}' if target.namespace else ''}"
    data = (target.kind.lower(), *((group,) if slash else ()), target.name, *filter(None, (target.namespace,)))
    if change.delete:
        flags = f"{' --cascade=orphan' if change.orphan else ''}{FORCE if change.force else ''}"
        return shell_command(f"kubectl delete {name}{flags}", *data)
    if change.create is not None and (maker := _creation_hint(change.create)):
        lines = to_yaml(_created_manifest(change.create)).splitlines()
        return "\n".join([f"# {maker}", *(f"#   {line}" for line in lines)])
    if change.create is not None:
        return f"kubectl apply --server-side {_here(_sendable_manifest(change.create))}"
    patch = list(change.patch)
    if target.kind == "Node" and [item["path"] for item in patch] == ["/spec/unschedulable"]:
        return shell_command(f"kubectl {'cordon' if patch[0].get('value') else 'uncordon'} {{}}", target.name)
    if target.kind in _MADE_AGAIN and not change.subresource:
        local = "kubectl patch --local -f - --type=json --patch={} -o json"
        template = f"kubectl get {name} -o json | {local} | kubectl replace --force -f -"
        return f"{_MADE_AGAIN[target.kind]}{shell_command(template, *data, patch)}"
    if target.kind == "NodePool" and (merged := _merge_patch(patch)) is not None:
        return shell_command(f"kubectl patch {name} --type=merge --patch={{}}", *data, merged)
    comment = "# for future Jobs: an existing Job keeps its template\n" if target.kind == "CronJob" else ""
    part = f" --subresource {change.subresource}" if change.subresource else ""
    return f"{comment}{shell_command(f'kubectl patch {name}{part} --type=json --patch={{}}', *data, patch)}"


def _merge_patch(patch: Iterable[Mapping[str, object]]) -> Manifest | None:
    """Return the merge patch (RFC 7386) of operations that add to maps; None if one adds to a list."""
    merged: dict[str, object] = {}
    for item in patch:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in str(item["path"]).split("/")[1:]]
        if last == "-":
            return None
        at = merged
        for part in parents:
            below = at[part] = {**map_at(at, part)}
            at = below
        at[last] = item["value"]
    return merged


def _creation_hint(manifest: Manifest) -> str:
    """Return how to create an object that its manifest alone does not create; empty for all others."""
    spec = manifest.get("spec")
    if manifest.get("kind") == "Node":
        return "create a node like this with the tool that creates the cluster's nodes:"
    if manifest.get("kind") in ("ResourceSlice", "CSINode"):
        return "the drivers of the node then publish an object like this:"
    if manifest.get("kind") == "Pod":
        return "a pod like this, with all that its siblings have:"
    sources = [spec[key] for key in {*spec} - _OF_ANY_VOLUME] if isinstance(spec, Mapping) else []
    if manifest.get("kind") == "PersistentVolume" and not any(sources):
        return "a volume like this, with its source (csi, nfs, local, ...):"
    if manifest.get("kind") == "StorageClass":
        is_unknown = str(manifest.get("provisioner")).startswith("<")
        return f"a class like this, with the {'name' if is_unknown else 'parameters'} of its provisioner:"
    return ""


def _created_manifest(manifest: Manifest) -> Manifest:
    """Return the manifest of a new object; the resources of a node are in its status."""
    return manifest if manifest.get("kind") == "Node" else _sendable_manifest(manifest)


def _sendable_manifest(manifest: Manifest) -> Manifest:
    """Return the manifest without fields that an API server sets itself, and refuses or drops if a client sets them,
    and without what `kubectl apply` last sent."""
    own = map_at(manifest, "metadata")
    annotations = {key: value for key, value in map_at(own, "annotations").items() if key != _LAST_APPLIED}
    given = {*SERVER_FIELDS} if annotations else {*SERVER_FIELDS, "annotations"}
    kept = {key: annotations if key == "annotations" else value for key, value in own.items() if key not in given}
    return {key: value for key, value in {**manifest, "metadata": kept}.items() if key != "status"}


def patched_manifests(changes: Sequence[Change], find: Find) -> str:
    """Return the patched objects as YAML. Raises `InputError` for an object whose manifest is not known, and if there
    are none."""
    documents: list[str] = []
    for change in _joined_changes(changes):
        if change.delete:
            continue
        if change.create is None:
            documents.append(to_yaml(_patched_manifest(change, find)))
        else:
            comment = f"# {maker}\n" if (maker := _creation_hint(change.create)) else ""
            documents.append(comment + to_yaml(_created_manifest(change.create)))
    if not documents:
        raise InputError("the fix changes no manifest", hint="-o patch prints it")
    return "---\n".join(documents)


def _patched_manifest(change: Change, find: Find) -> Manifest:
    target = change.target
    manifest = find(change)
    if manifest is None:
        raise InputError(f"the manifest of {target.kind} {target.name} is not known", hint="-o patch prints the change")
    try:
        return apply_patch(manifest, change.patch)
    except PatchError as error:
        raise InputError(f"the manifest of {target.kind} {target.name} does not accept the patch: {error}") from None
