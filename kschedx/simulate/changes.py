"""Changes to try, in their written form: a verb and its object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.placement_validation import EFFECTS
from kschedx.apiserver.validation import validate_written_node
from kschedx.errors import InputError, Place, nearest
from kschedx.findings.constraints import CORDON_TAINT
from kschedx.kube.decoding import Manifest
from kschedx.kube.documents import with_spec
from kschedx.kube.selectors import required_node_affinity
from kschedx.kube.types import LOST_TAINTS, NEW, Node, Pod, Taint
from kschedx.snapshot.snapshot import Snapshot

Read = Callable[[str], list[tuple[dict[str, object], Place]]]
"""Returns the objects of a file or folder with their places."""


_SET_FORM = "KIND/NAME:PATH=VALUE"
MOST_COUNT = 1_000_000


class ChangeVerb(StrEnum):
    """The verb of a change; also the name of the option, and the key in a file of changes."""

    APPLY = "apply"
    SCALE = "scale"
    RESTART = "restart"
    DRAIN = "drain"
    CORDON = "cordon"
    UNCORDON = "uncordon"
    DELETE = "delete"
    ADD_NODES = "add-nodes"
    REMOVE_NODE = "remove-node"
    TAINT = "taint"
    LABEL = "label"
    SET = "set"


class SimulatedChange(Struct, frozen=True, kw_only=True):
    verb: ChangeVerb
    text: str  # the written text: `deploy/web=10`, `node-1`, a file's name
    objects: tuple[tuple[Manifest, Place], ...] = ()
    """The manifests of APPLY, and the node of ADD_NODES if it comes from a file."""

    def __str__(self) -> str:
        return f"{self.verb} {self.text}".rstrip()

    @property
    def target_and_path(self) -> tuple[str, str]:
        """The object and the field of SET. Raises `InputError`."""
        with Place(object=str(self)):
            target, rest = split_at_sign(self.text, ":", _SET_FORM)
            return target, split_at_sign(rest, "=", _SET_FORM)[0]


def split_at_sign(text: str, sign: str, allowed: str) -> tuple[str, str]:
    """Return the parts before and after the first `sign`. Raises `InputError` with what is allowed."""
    before, separator, after = text.partition(sign)
    if not separator or not before or not after:
        raise InputError(f'found "{text}", allowed is {allowed}')
    return before, after


def parse_change(verb: str, value: object, read: Read) -> SimulatedChange:
    """Return the change with a verb and its written value. Raises `InputError`."""
    if verb not in list(ChangeVerb):
        raise InputError(
            f'"{verb}" is not a change', hint=nearest(verb, list(ChangeVerb)) or f"allowed: {', '.join(ChangeVerb)}"
        )
    known = ChangeVerb(verb)
    if known is ChangeVerb.APPLY and not isinstance(value, str):
        objects = value if isinstance(value, Sequence) else [value]
        manifests = [item for item in objects if isinstance(item, Mapping)]
        if len(manifests) != len(objects):
            raise InputError(f"{verb}: expected manifests or the name of a file")
        return SimulatedChange(verb=known, text="", objects=tuple((manifest, Place()) for manifest in manifests))
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise InputError(f"{verb}: expected a text, found {type(value).__name__}")
    text = str(value)
    if known is ChangeVerb.APPLY:
        return SimulatedChange(verb=known, text=text, objects=tuple(read(text)))
    if known is ChangeVerb.ADD_NODES:
        model = text.partition("=")[2]
        from_file = model.endswith((".yaml", ".yml", ".json"))
        return SimulatedChange(verb=known, text=text, objects=tuple(read(model)) if from_file else ())
    return SimulatedChange(verb=known, text=text)


def parse_changes(written: Iterable[object], read: Read) -> tuple[SimulatedChange, ...]:
    """Return the changes in a list of maps with one key each: `- scale: deploy/web=10`. Raises `InputError`."""
    changes: list[SimulatedChange] = []
    for number, entry in enumerate(written):
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise InputError("expected a map with one key, such as `scale: deploy/web=10`", place=_entry(number))
        ((verb, value),) = entry.items()
        try:
            values = value if isinstance(value, list) and verb != ChangeVerb.APPLY else [value]
            changes += [parse_change(str(verb), item, read) for item in values]
        except InputError as error:
            raise error.at(_entry(number)) from None
    return tuple(changes)


def _entry(number: int) -> Place:
    return Place(object=f"change {number + 1}")


# Changes as a user writes them: options of a command line, and files with a list of them.

_FROM_FILE = "changes"


def typed_changes(typed: Iterable[tuple[str, str]], read: Read) -> tuple[SimulatedChange, ...]:
    """Return the changes of command-line options, in their order; each pair is an option's name and value. `read` reads
    manifests. Raises `InputError`."""
    return tuple(change for name, value in typed for change in _parse_typed(name.replace("_", "-"), value, read))


def _parse_typed(verb: str, value: str, read: Read) -> Iterator[SimulatedChange]:
    if verb != _FROM_FILE:
        yield parse_change(verb, value, read)
        return
    for entries in _lists(value):
        with Place(source=value):
            yield from parse_changes(entries, read)


def _lists(path: str) -> Iterator[list[object]]:
    """Yield the lists in a YAML or JSON file; JSON text is valid YAML."""
    from kschedx.sources import yaml as yaml_text
    from kschedx.sources.compression import read_content
    from kschedx.sources.files import STDIN, standard_input

    content = standard_input().read() if path == STDIN else read_content(path)
    for document in yaml_text.load_all(content, source=path):
        if not isinstance(document.value, list):
            place = Place(source=path, line=document.line)
            raise InputError("expected a list of changes, such as `- scale: deploy/web=10`", place=place)
        yield list(document.value)


# Nodes after a change: cordoned, unreachable, tainted, labeled, and added nodes.


def set_cordon(node: Node, *, unschedulable: bool) -> Node:
    """Return the node with spec.unschedulable, and the taint that the node controller sets with it."""
    taints = tuple(taint for taint in node.spec.taints if taint.key != CORDON_TAINT)
    if unschedulable:
        taints += (Taint(key=CORDON_TAINT, effect="NoSchedule"),)
    return replace(node, spec=replace(node.spec, unschedulable=unschedulable, taints=taints))


def another_like(template: Node, name: str) -> Node:
    """Return a new node with the shape of the template: with another name and hostname, and without the state of a
    running node."""
    labels = {key: name if value == template.name else value for key, value in template.metadata.labels.items()}
    taints = tuple(taint for taint in template.spec.taints if not taint.key.startswith("node.kubernetes.io/"))
    return replace(
        template,
        metadata=replace(template.metadata, name=name, labels=labels, uid=f"{NEW}{name}"),
        spec=replace(template.spec, taints=taints, unschedulable=False),
    )


# Changes of nodes in their written form: taints, labels, and more nodes like an existing one.


def node_of_file(objects: Sequence[tuple[Mapping[str, object], Place]], path: str) -> Node:
    """Return the only node in a file. Raises `InputError`."""
    nodes = [(manifest, place) for manifest, place in objects if manifest.get("kind") == "Node"]
    if len(nodes) != 1:
        raise InputError(f"{path} holds {len(nodes)} nodes, one is needed")
    [(manifest, place)] = nodes
    node = Snapshot.from_objects([manifest]).cluster.nodes[0]
    with place, Place(object=f"Node {node.name}"):
        for error in validate_written_node(node):
            raise error
        if not node.status.allocatable:
            raise InputError("status.allocatable: Required value", hint="cpu, memory, and pods of the new node")
    return node


def nodes_like(snapshot: Snapshot, template: Node, number: int) -> Iterator[Node]:
    """Yield so many new nodes like the template, under unused names of the same domain."""
    host, dot, domain = template.name.partition(".")
    every = (f"{host}-new{number}{dot}{domain}" for number in count(1))
    names = (name for name in every if name not in snapshot.cluster.index)
    for _ in range(number):
        yield another_like(template, next(names))


def with_label(node: Node, text: str) -> Node:
    """Return the node with the label `KEY=VALUE`, or without the label of `KEY-`. Raises `InputError`."""
    labels = dict(node.metadata.labels)
    if text.endswith("-"):
        if labels.pop(text[:-1], None) is None:
            raise InputError(f'"{text[:-1]}" is not a label of {node.name}', hint=nearest(text[:-1], labels))
    else:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise InputError(f'found "{text}", allowed is KEY=VALUE')
        labels[key] = value
    return replace(node, metadata=replace(node.metadata, labels=labels))


def with_taint(node: Node, text: str) -> Node:
    """Return the node with the taint `KEY=VALUE:EFFECT`, or without the taints of `KEY-`. Raises `InputError`."""
    taints = node.spec.taints
    if text.endswith("-"):
        key, _, effect = text[:-1].partition(":")
        left = tuple(taint for taint in taints if taint.key != key or (effect and taint.effect != effect))
        if left == taints:
            raise InputError(f'"{key}" is not a taint of {node.name}', hint=nearest(key, (it.key for it in taints)))
    else:
        rest, colon, effect = text.rpartition(":")
        if not colon or effect not in EFFECTS:
            hint = nearest(effect, EFFECTS) or f"one of {', '.join(EFFECTS)}"
            raise InputError(f'"{effect}" is not a taint effect', hint=hint)
        key, _, value = rest.partition("=")
        effects = (effect, "NoSchedule") if key in LOST_TAINTS and effect == "NoExecute" else (effect,)
        others = tuple(taint for taint in taints if taint.key != key or taint.effect not in effects)
        left = (*others, *(Taint(key=key, value=value, effect=effect) for effect in effects))
    return with_spec(node, taints=left)


SHAPES = 8  # node shapes that are tried if nodes are missing


def shapes(nodes: Sequence[Node], pod: Pod) -> list[Node]:
    """Return a node of each shape: same size, same taints, and selected by the pod or not. Selected nodes come first,
    then the most common shape."""
    selected = required_node_affinity(pod.spec.node_selector, pod.spec.required_node_affinity)
    nodes_by_shape: dict[tuple[bool, object], list[Node]] = {}
    for node in nodes:
        size = tuple(sorted(node.status.allocatable.items()))
        taints = tuple(taint for taint in node.spec.taints if not taint.key.startswith("node.kubernetes.io/"))
        is_selected = selected.matches(node.metadata.labels, node.name)
        nodes_by_shape.setdefault((is_selected, (size, taints)), []).append(node)
    ordered = sorted(nodes_by_shape.items(), key=lambda item: (not item[0][0], -len(item[1])))
    return [identical[0] for _, identical in ordered]
