"""What is fuzzed, as functions of bytes: whatever these are, they give an answer or an error on purpose."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

import msgspec

from kschedx.answer.run import explain_pod
from kschedx.api import label_query, quantity, timestamps, types
from kschedx.api.decode import decode
from kschedx.api.devices import Device
from kschedx.cel import CompileError, EvaluationError, Features, refusal
from kschedx.errors import InputError, KschedxError, Place, UndecidableError
from kschedx.explain import events
from kschedx.framework.config import load_profiles
from kschedx.framework.duration import Duration
from kschedx.loading import load
from kschedx.plugins.dynamic_resources.selectors import Selector
from kschedx.releases import resolve
from kschedx.snapshot.snapshot import Snapshot
from kschedx.sources import yaml_bulk, yaml_scalars
from kschedx.sources.json_stream import JsonStream
from kschedx.sources.live import kubeconfig
from kschedx.sources.text import load_documents

OBJECTS = msgspec.json.Decoder(list[dict[str, Any]])
Found = list[tuple[dict[str, Any], Place]]
FEATURES = [Features(consumable_capacity=new, list_attributes=new) for new in (False, True)]
DEVICE = decode(
    b"""{"name": "d", "attributes": {"a": {"string": "x"}, "b": {"int": 4}, "v": {"version": "1.2.3"}},
    "capacity": {"m": {"value": "40Gi"}}}""",
    Device,
)


def answers(data: bytes) -> None:
    """A cluster: it is read, and its first pods are explained, in the snapshot and as new ones."""
    with contextlib.suppress(KschedxError):
        snapshot = _load(data)
        for row in range(min(len(snapshot.pods), 3)):
            with contextlib.suppress(KschedxError):
                msgspec.json.encode(explain_pod(snapshot, snapshot.pods.key(row)).to_dict())
        pods = [found for found, _ in _documents(data) if found.get("kind") == "Pod"]
        for pod in pods[:3]:
            with contextlib.suppress(KschedxError):
                explain_pod(snapshot, pod)


def json_pieces(data: bytes) -> None:
    """JSON gives the same objects whatever the size of the pieces in which it is read."""
    whole = _streamed(data, 1 << 20)
    for size in (1, 8, 60):
        pieces = _streamed(data, size)
        # in a long file, what nobody reads of the envelope is not checked
        assert whole is None or pieces == whole, (size, pieces, whole)
    if whole is not None:
        with contextlib.suppress(ValueError):
            value = json.loads(data)
            if isinstance(value, dict) and not str(value.get("kind")).endswith("List"):
                assert _same(whole, [value]), (whole, value)


def yaml_readers(data: bytes) -> None:
    """The fast reader of YAML gives what the exact one gives; and so does JSON of what was read."""
    with patch.object(yaml_bulk, "SMALL", 0), patch.object(yaml_bulk, "PIECE", 60):
        fast = _yaml(data)
    exact = _yaml(data)
    # of two things that are wrong, any may be told
    assert fast == exact or (isinstance(fast, str) and isinstance(exact, str)), (fast, exact)
    if isinstance(exact, list):
        objects = [found for found, _ in exact]
        text = msgspec.json.encode(objects)
        again = _yaml(text)
        assert not isinstance(again, list) or [found for found, _ in again] == objects, (again, objects)


def scalars(data: bytes) -> None:
    """The little languages in strings."""
    text = data.decode(errors="surrogateescape")
    for read in (quantity.parse_quantity, timestamps.nanoseconds, label_query.parse_label_query):
        with contextlib.suppress(InputError):
            read(text)
    with contextlib.suppress(InputError):
        amount = quantity.parse_quantity(text)
        again = quantity.parse_quantity(str(amount))
        assert again == amount or abs(amount.exponent) > 100, (amount, again)
    for parse in (Duration.parse, yaml_scalars.resolve):
        with contextlib.suppress(ValueError):
            parse(text)
    events.parse(text)
    for kind in (types.PodSpec, types.Node):
        with contextlib.suppress(InputError):
            decode(data, kind)


def configurations(data: bytes) -> None:
    """A KubeSchedulerConfiguration."""
    with contextlib.suppress(KschedxError):
        for document, _ in _documents(data):
            with contextlib.suppress(KschedxError):
                load_profiles(document, resolve("1.36"))


def selectors(data: bytes) -> None:
    """A device's CEL expression, as the API server and as kube-scheduler take it."""
    text = data.decode(errors="replace")
    for features in FEATURES:
        with contextlib.suppress(CompileError, EvaluationError, UndecidableError):
            refusal(text, features)
            Selector(text, features).matches(DEVICE, "gpu.example.com")


def kubeconfigs(data: bytes) -> None:
    """A kubeconfig file."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with contextlib.suppress(InputError):
            kubeconfig.load(file.name, {}).choose()


def readers(data: bytes) -> None:
    """All that reads text."""
    for target in (json_pieces, yaml_readers, scalars, configurations):
        target(data)


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        answers,
        readers,
        json_pieces,
        yaml_readers,
        scalars,
        configurations,
        selectors,
        kubeconfigs,
    )
}


@contextlib.contextmanager
def _stdin(data: bytes) -> Any:
    with patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(data))):
        yield


def _load(data: bytes) -> Snapshot:
    with _stdin(data):
        return load(["-"])


def _documents(data: bytes) -> Found:
    with _stdin(data):
        return load_documents("-")


def _streamed(data: bytes, size: int) -> list[dict[str, Any]] | None:
    """The objects, None where they are not JSON objects."""
    try:
        stream = JsonStream(io.BytesIO(data), source="-", chunk=size, small=size)
        return [found for batch in stream.batches() for found in batch.decode(OBJECTS)]
    except (InputError, msgspec.ValidationError):
        return None


def _same(one: object, other: object) -> bool:
    # the text, as no number that is not a number is equal to itself
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _yaml(data: bytes) -> Found | str:
    try:
        batches = [(batch.origin, batch.decode(OBJECTS)) for batch in yaml_bulk.read(data, source="-")]
    except InputError as error:
        return str(error)
    except msgspec.ValidationError:
        return "no objects"
    return [(found, origin.place(index)) for origin, objects in batches for index, found in enumerate(objects)]
