"""Files and their results: clusters, configurations, archives, snapshots, documents; and Python objects."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import sys
import tarfile
import tempfile
import zipfile
from collections import UserDict, UserList, deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import msgspec
import yaml

import kschedx
from kschedx import explain as explain_pod
from kschedx.autoscaler.sizes import Option, prioritize
from kschedx.autoscaler.status import read_status
from kschedx.errors import InputError, KschedxError, Place
from kschedx.export.anonymous import anonymize
from kschedx.framework.config import load_profiles
from kschedx.kube.escaping import is_hidden, json_escaped, yaml_escaped
from kschedx.kube.types import ConfigMap
from kschedx.loading import load
from kschedx.releases import resolve
from kschedx.render.manifests import to_json, to_yaml
from kschedx.schedulers import scheduler_of
from kschedx.snapshot.snapshot import Snapshot
from kschedx.sources import files, yaml_blocks
from kschedx.sources.files import load_documents
from kschedx.sources.json_stream import JsonStream
from kschedx.sources.yaml import value_in
from kschedx.wording import visible
from tests.autoscaler.test_status import STRUCTURED, TEXT
from tests.command import kschedx as command
from tests.fuzz import hostile

OBJECTS = msgspec.json.Decoder(list[dict[str, Any]])
PlacedObjects = list[tuple[dict[str, Any], Place]]


def answers(data: bytes) -> None:
    """Load a cluster and explain its first pods, from the snapshot and from manifests."""
    with contextlib.suppress(KschedxError):
        snapshot = _load(data)
        for row in range(min(len(snapshot.pods), 3)):
            with contextlib.suppress(KschedxError):
                msgspec.json.encode(explain_pod(snapshot, snapshot.pods.key(row)).to_dict())
        pods = [result for result, _ in _documents(data) if result.get("kind") == "Pod"]
        for pod in pods[:3]:
            with contextlib.suppress(KschedxError):
                explain_pod(snapshot, pod)


def answer_seeds() -> Iterator[bytes]:
    yield from (hostile.as_json(hostile.cluster(Random(seed))) for seed in range(100))


def json_pieces(data: bytes) -> None:
    """JSON yields the same objects for every size of the pieces in which it is read."""
    complete = _stream_objects(data, 1 << 20)
    for size in (1, 8, 60):
        pieces = _stream_objects(data, size)
        # in a long file, unread parts of the envelope are not checked
        assert complete is None or pieces == complete, (size, pieces, complete)
    if complete is not None:
        with contextlib.suppress(ValueError):
            value = json.loads(data)
            if isinstance(value, dict) and not str(value.get("kind")).endswith("List"):
                assert _is_equal(complete, [value]), (complete, value)


def yaml_readers(data: bytes) -> None:
    """The fast reader of YAML equals the exact one, and JSON of the objects is read to the same objects."""
    with patch.object(yaml_blocks, "_PIECE", 60):
        fast = _yaml(data)
    with patch.object(yaml_blocks, "_document", lambda document, source, _: yaml_blocks._exactly(document, source)):
        exact = _yaml(data)
    # either of two errors may be reported
    assert fast == exact or (isinstance(fast, str) and isinstance(exact, str)), (fast, exact)
    if isinstance(exact, list):
        objects = [result for result, _ in exact]
        text = msgspec.json.encode(objects)
        reread = _yaml(text)
        assert not isinstance(reread, list) or [result for result, _ in reread] == objects, (reread, objects)


def texts() -> Iterator[bytes]:
    yield from (text for text in hostile.texts() if len(text) < 4000)


def configurations(data: bytes) -> None:
    """Load a KubeSchedulerConfiguration, and a Policy of older versions."""
    with contextlib.suppress(KschedxError):
        for document, _ in _documents(data):
            with contextlib.suppress(KschedxError):
                load_profiles(document, resolve("1.36"))
            for version in ("1.22", "1.13", "1.5"):
                with contextlib.suppress(KschedxError):
                    scheduler_of(document, resolve(version))


POLICY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [
        {"name": "PodFitsPorts"},
        {"name": "ZoneLabels", "argument": {"labelsPresence": {"labels": ["zone"], "presence": True}}},
        {"name": "Together", "argument": {"serviceAffinity": {"labels": ["region"]}}},
    ],
    "priorities": [
        {"name": "LeastRequestedPriority", "weight": 1},
        {"name": "Rack", "weight": 2, "argument": {"serviceAntiAffinity": {"label": "rack"}}},
        {"name": "Zone", "weight": 1, "argument": {"labelPreference": {"label": "zone", "presence": False}}},
    ],
    "extenders": [
        {"urlPrefix": "http://127.0.0.1:1/", "filterVerb": "f", "weight": 1, "managedResources": [{"name": "x/y"}]}
    ],
    "hardPodAffinitySymmetricWeight": 10,
    "alwaysCheckAllPredicates": True,
}


def configuration_seeds() -> Iterator[bytes]:
    yield json.dumps(POLICY).encode()
    yield from (path.read_bytes() for path in sorted(hostile.FIXTURES.rglob("scheduler.yaml")))
    yield from (path.read_bytes() for path in sorted((hostile.FIXTURES.parent / "profiles").glob("*.yaml")))


def config_maps(data: bytes) -> None:
    """Read cluster-autoscaler's ConfigMaps: its status, and the priorities of its priority expander."""
    text = data.decode(errors="replace")
    with contextlib.suppress(InputError):
        read_status(text)
    prioritize([Option(group="spot-a", nodes=1, pods=(0,))], ConfigMap(data={"priorities": text}))


def config_map_seeds() -> Iterator[bytes]:
    yield from (text.encode() for text in (STRUCTURED, TEXT, "10:\n  - spot-.*\n50:\n  - large$\n"))


def archives(data: bytes) -> None:
    """Read a file of any form, such as an archive, and check that no other file is read or written."""
    with _folder() as folder:
        path = folder / "dump"
        path.write_bytes(data)
        with contextlib.suppress(KschedxError):
            for batch in files.read(str(path)):
                with contextlib.suppress(msgspec.ValidationError):
                    batch.decode(OBJECTS)
        assert [item.name for item in folder.iterdir()] == ["dump"]


def archive_seeds() -> Iterator[bytes]:
    text = b'{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}'
    members = ("cluster.yaml", "a/pods.json", "../up.yaml", "/etc/x.yaml", "cluster-resources/nodes.json")
    for form in ("", "gz", "xz"):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode=f"w:{form}") as tar:  # type: ignore[call-overload] # the overloads need literal modes
            for name in members:
                info = tarfile.TarInfo(name)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text))
            link = tarfile.TarInfo("link.yaml")
            link.type, link.linkname = tarfile.SYMTYPE, "../../etc/passwd"
            tar.addfile(link)
        yield archive.getvalue()
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", method) as zipped:
            for name in members:
                zipped.writestr(name, text)
        yield archive.getvalue()
    yield gzip.compress(text)
    yield gzip.compress(gzip.compress(text))


def documents(data: bytes) -> None:
    """Names in documents, screens, and snapshots parse to themselves and contain no hidden characters."""
    text = data.decode(errors="replace")
    for printed, read in (
        (to_json({text: text}), json.loads),
        (to_yaml({text: text}), yaml.safe_load),
        (to_yaml({text: text}), value_in),
        (json_escaped(json.dumps([text], ensure_ascii=False)), json.loads),
        (yaml_escaped(json.dumps([text], ensure_ascii=False)), yaml.safe_load),
    ):
        assert not any(map(is_hidden, printed.replace("\n", ""))), printed
        assert read(printed) in ({text: text}, [text]), (printed, text)
    assert not any(map(is_hidden, visible(text))), text


def document_seeds() -> Iterator[bytes]:
    yield from (
        text.encode()
        for text in ("a\u202eb\u200bc", "\U000e0001", "y", "1e3", "\x7f\x1b[31m", "é\u2028\u2029\ufeff", "- a: |\n")
    )
    yield from (str(leaf).encode(errors="replace") for leaf in hostile.LEAVES)


def anonymizing(data: bytes) -> None:
    """An anonymized cluster can be read, and its pods have the same outcomes."""
    with contextlib.suppress(KschedxError):
        objects = [result for result, _ in _documents(data)]
        before = Snapshot.from_objects(objects)
        after = Snapshot.from_objects(anonymize(objects, keep_selectors=True))
        assert (len(before.pods), len(before.cluster.nodes)) == (len(after.pods), len(after.cluster.nodes))
        for row in range(min(len(before.pods), 3)):
            result, after_outcome = (_outcome(item, row) for item in (before, after))
            has_invalid_time = result == InputError.__name__  # an invalid time is left out
            assert has_invalid_time or _has_odd_deletion(objects) or result == after_outcome, (result, after_outcome)


def _has_odd_deletion(objects: list[Any]) -> bool:
    """Tell whether a deletion time is invalid: the copy lacks it, so its pod is not terminating."""
    times = [
        item.get("metadata", {}).get("deletionTimestamp") for item in objects if isinstance(item.get("metadata"), dict)
    ]
    return any(time is not None and not re.match(r"\d{4}-\d\d-\d\dT", str(time)) for time in times)


def _outcome(snapshot: Snapshot, row: int) -> object:
    try:
        explanation = explain_pod(snapshot, snapshot.pods.key(row))
    except KschedxError as error:
        return type(error).__name__
    return explanation.outcome, len(explanation.best_nodes)


QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("why", "--all-pending", "-s", "FILE"),
    ("why", "--all-pending", "-s", "FILE", "-o", "json"),
    ("why", "pod/web", "-s", "FILE", "-o", "wide"),
    ("why", "pod/web", "-s", "FILE", "-o", "html"),
    ("why", "pod/web", "-s", "FILE", "-o", "markdown"),
    ("why", "pod/web", "-s", "FILE", "-o", "svg"),
    ("why", "FILE", "-s", "CLUSTER"),
    ("why", "FILE", "-s", "CLUSTER", "-o", "json"),
    ("why", "FILE", "-s", "CLUSTER", "-o", "sarif"),
    ("why", "pod/web", "-s", "CLUSTER", "--config", "FILE"),
    ("profiles", "check", "FILE"),
    ("profiles", "show", "FILE"),
    ("doctor", "-s", "FILE"),
    ("snapshot", "-s", "FILE", "-o", "-"),
    ("snapshot", "-s", "FILE", "-o", "-", "--anonymize"),
    ("snapshot", "-s", "FILE", "-o", "out.yaml", "--anonymize", "--config", "FILE", "--anonymize-map", "map.json"),
    ("simulate", "-s", "FILE"),
    ("simulate", "-s", "FILE", "-o", "json"),
    ("fit", "pod/web", "-s", "FILE"),
    ("fit", "FILE", "-s", "CLUSTER"),
    ("drain", "n1", "-s", "FILE"),
    ("diff-profiles", "default", "FILE", "-s", "CLUSTER"),
    ("fleet", "-s", "FILE"),
    ("merge", "FILE", "FILE"),
    ("why", "node/n1", "-s", "FILE"),
)
"""Command lines: FILE has any bytes, and CLUSTER is valid."""
CLUSTER = hostile.as_json(
    [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1"},
            "status": {"allocatable": {"cpu": "4", "pods": "9"}},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "c"}]}},
    ]
)
_FORM = {"json": json.loads, "sarif": json.loads}


def commands(data: bytes) -> None:
    """A command about any file prints an answer or one line, no control characters, and has a known exit code."""
    question, content = QUESTIONS[data[0] % len(QUESTIONS)] if data else QUESTIONS[0], data[1:]
    with _folder() as folder:
        paths = {"FILE": folder / "file.yaml", "CLUSTER": folder / "cluster.json"}
        paths["FILE"].write_bytes(content)
        paths["CLUSTER"].write_bytes(CLUSTER)
        answer = command(*(str(paths.get(word, word)) for word in question), cwd=folder)
    text = (question, answer.code, answer.err)
    assert answer.code in (0, 1, 2, 3), text
    assert "Traceback" not in answer.err, text
    assert not any(map(is_hidden, (answer.out + answer.err).replace("\n", ""))), text
    if question[-1] in _FORM and answer.out:
        _FORM[question[-1]](answer.out)


def command_seeds() -> Iterator[bytes]:
    random = Random(1)
    stories = [text for text in hostile.texts() if len(text) < 3000]
    for number, question in enumerate(QUESTIONS):
        yield bytes([number]) + CLUSTER
        if "--config" not in question:
            yield bytes([number]) + random.choice(stories)
        else:
            yield from (bytes([number]) + text for text in configuration_seeds() if len(text) < 1500)


def library(data: bytes) -> None:
    """The library raises only its own exceptions, whatever Python objects it gets."""
    values = _values(data)
    calls: tuple[Callable[[Any], object], ...] = (
        Snapshot.from_objects,
        lambda argument: Snapshot.from_objects([argument]),
        lambda argument: kschedx.explain(CLUSTER_SNAPSHOT, argument),
        lambda argument: kschedx.explain(CLUSTER_SNAPSHOT, "default/web", config=argument),
        lambda argument: kschedx.explain(CLUSTER_SNAPSHOT, "default/web", kube_version=argument),
        lambda argument: kschedx.explain(CLUSTER_SNAPSHOT, "default/web", feature_gates=argument),
        lambda argument: kschedx.explain(CLUSTER_SNAPSHOT, "default/web", admission_plugins=argument),
        lambda argument: kschedx.explain(argument, "default/web"),
        lambda argument: kschedx.simulate(CLUSTER_SNAPSHOT, changes=argument),
        lambda argument: kschedx.simulate(CLUSTER_SNAPSHOT, namespace=argument),
        lambda argument: kschedx.fit(CLUSTER_SNAPSHOT, argument),
        lambda argument: kschedx.fit(CLUSTER_SNAPSHOT, "default/web", config=argument),
        lambda argument: kschedx.fit(CLUSTER_SNAPSHOT, "default/web", kube_version=argument),
        lambda argument: kschedx.fit(CLUSTER_SNAPSHOT, "default/web", feature_gates=argument),
        lambda argument: kschedx.fit(argument, "default/web"),
        lambda argument: kschedx.fit(CLUSTER_SNAPSHOT, "default/web", replicas=argument),
        lambda argument: kschedx.autoscale(AUTOSCALED, group_label=argument),
        lambda argument: kschedx.autoscale(AUTOSCALED, group_label="a", templates=argument),
        lambda argument: kschedx.autoscale(AUTOSCALED, group_label="a", flags=argument),
        lambda argument: kschedx.autoscale(AUTOSCALED, group_label="a", now=argument),
    )
    for argument in values[-2:]:
        if not isinstance(argument, str | Path):
            with contextlib.suppress(KschedxError):
                kschedx.load(argument)
        for call in calls:
            try:
                call(argument)
            except KschedxError as error:
                assert len(str(error).splitlines()) <= 1, error  # noqa: PT017 - about the text of the exception
                str(error).encode()


CLUSTER_SNAPSHOT = Snapshot.from_objects(json.loads(CLUSTER)["items"])
AUTOSCALED = load([str(hostile.FIXTURES / "autoscaler-grows" / "cluster.yaml")])
_KEYS = (
    "metadata",
    "name",
    "namespace",
    "spec",
    "kind",
    "apiVersion",
    "labels",
    "containers",
    "status",
    "web",
    "A",
    "max-nodes-total",
    "force-ds",
    "cores-total",
    "expander",
    "pool-1",
    "Node",
    "Pods",
)
_LEAVES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: True,
    lambda: 10**5000,
    lambda: -(2**63),
    lambda: 1.36,
    lambda: float("nan"),
    lambda: "Pod",
    lambda: "v1",
    lambda: "Node",
    lambda: "\ud800",
    lambda: "\0",
    lambda: b"bytes",
    object,
    lambda: datetime.now(UTC),
    set,
    deque,
    lambda: memoryview(b"x"),
    lambda: Path("x"),
    lambda: 3 + 4j,
    lambda: range(3),
    lambda: Ellipsis,
    lambda: type,
    lambda: (item for item in (1, 2)),
    lambda: "1.36",
    lambda: "DRAAdminAccess",
    list,
    dict,
    UserDict,
    UserList,
    lambda: -1,
    lambda: "default/web",
    lambda: 0,
    lambda: msgspec.Raw(b"{"),
    lambda: msgspec.UNSET,
    lambda: iter([1]),
)


def _values(data: bytes) -> list[Any]:
    """Run the bytes as a program of a stack: push leaves, and build lists and maps."""
    stack: list[Any] = [json.loads(CLUSTER)["items"][1]]
    for byte in data[:60]:
        value = stack[-1]
        match byte % 8:
            case 0 | 1:
                stack.append(_LEAVES[byte // 8 % len(_LEAVES)]())
            case 2:
                stack.append([value])
            case 3:
                stack.append({_KEYS[byte // 8 % len(_KEYS)]: value})
            case 4 if len(stack) > 1 and isinstance(stack[-2], dict):
                stack.pop()
                stack[-1][_KEYS[byte // 8 % len(_KEYS)]] = value
            case 5 if isinstance(value, dict):
                with contextlib.suppress(TypeError):
                    value[stack[-2] if len(stack) > 1 else 5] = value if byte & 64 else None
            case 6:
                stack.append(UserDict(value) if isinstance(value, dict) else UserList([value]))
            case _:
                stack.append((value, byte))
    return stack


def library_seeds() -> Iterator[bytes]:
    for leaf in range(len(_LEAVES)):
        yield bytes([leaf * 8 % 256])
        for key in range(len(_KEYS)):
            yield bytes([leaf * 8 % 256, key * 8 + 4, 2])


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:  # noqa: PTH112 - only a check
        yield Path(name)


@contextlib.contextmanager
def _stdin(data: bytes) -> Any:
    with patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(data))):
        yield


def _load(data: bytes) -> Snapshot:
    with _stdin(data):
        return load(["-"])


def _documents(data: bytes) -> PlacedObjects:
    with _stdin(data):
        return load_documents("-")


def _stream_objects(data: bytes, size: int) -> list[dict[str, Any]] | None:
    """Return the objects, or None if they are no JSON objects."""
    try:
        stream = JsonStream(io.BytesIO(data), source="-", chunk=size, small=size)
        return [match for batch in stream.batches() for match in batch.decode(OBJECTS)]
    except (InputError, msgspec.ValidationError):
        return None


def _is_equal(item: object, other: object) -> bool:
    # compare texts, because NaN does not equal itself
    return json.dumps(item, sort_keys=True) == json.dumps(other, sort_keys=True)


def _yaml(data: bytes) -> PlacedObjects | str:
    try:
        batches = [(batch.origin, batch.decode(OBJECTS)) for batch in yaml_blocks.read(data, source="-")]
    except InputError as error:
        return str(error)
    except msgspec.ValidationError:
        return "no objects"
    return [(result, origin.place(index)) for origin, objects in batches for index, result in enumerate(objects)]
