"""Hostile manifests: random ones from the types that kschedx reads, and damaged fixtures."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import yaml
from msgspec import inspect

from kschedx.kube.kinds import KINDS

Json = Any

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"

LEAVES: tuple[Json, ...] = (
    None, True, False, 0, 1, -1, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, 0.5, -0.0, 1e22,
    1e308, "", " ", "a", "x" * 300, "é", "\x1b[31m", "a\0b", "\u202e", "[bold]x[/]", "a\nb", "\ud800", "a/b/c", "-",
    ".", "0", "-1", "1.5", "100m", "9" * 40, "1e1000", "1e-1000", "1Ei", "9999999Ei", "0.00000000001n", "1e2147483647",
    "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00.123456789+23:59",
    [], {}, [[]], [None], [{}], {"": ""}, {"a": None}, {"a": {"a": {"a": []}}},
)  # fmt: skip
"""Values that are invalid in every field, or at the limit of a type."""

WORDS = (
    "default", "x", "n1", "web", "zone", "a", "b", "cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi",
    "example.com/gpu", "kubernetes.io/hostname", "topology.kubernetes.io/zone", "metadata.name", "In", "NotIn",
    "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "NoSchedule", "NoExecute", "PreferNoSchedule", "DoNotSchedule",
    "ScheduleAnyway", "Honor", "Ignore", "Never", "PreemptLowerPriority", "Pending", "Running", "Succeeded", "Always",
    "TCP", "UDP", "0.0.0.0", "Guaranteed", "WaitForFirstConsumer", "Immediate", "ReadWriteOnce", "ReadWriteOncePod",
    "Bound", "1", "2", "5", "50%", "100m", "1Gi", "4Gi", "2026-01-01T00:00:00Z", "v1", "apps/v1", "ReplicaSet", "Node",
    "ebs.csi.aws.com", "kubernetes.io/no-provisioner", "standard", "Container", "Pod", "system-cluster-critical",
)  # fmt: skip

RECORDS = {key: kind.record for key, kind in KINDS.items() if kind.record is not None}


AMOUNTS: tuple[Json, ...] = ("0", "1", "2", "500m", "1Gi", "4Gi", "110", 3, 1.5)


def cluster(random: Random) -> list[Json]:
    """Return objects of many kinds, most of them valid."""
    objects = [object_of("Node", f"n{number}", random) for number in range(random.randint(1, 3))]
    objects += [object_of("Pod", f"p{number}", random) for number in range(random.randint(1, 3))]
    objects += [
        object_of(kind, random.choice("ab"), random) for kind in random.sample(sorted(set(RECORDS) - {"Node"}), 4)
    ]
    return objects


def object_of(kind: str, name: str, random: Random) -> Json:
    version, record_type = KINDS[kind].api_version, RECORDS[kind]
    value = _value(_info(record_type), random, depth=0, name="")
    metadata = value.get("metadata")
    value["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "name": name}
    return {"apiVersion": version, "kind": kind, **value}


@cache
def _info(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _value(info: inspect.Type, random: Random, *, depth: int, name: str) -> Json:
    """Return a value for a field of this name, rarely of another type."""
    if depth and random.random() < 0.002:
        return copy.deepcopy(random.choice(LEAVES))
    match info:
        case inspect.UnionType():
            kinds = {type(item) for item in info.types}
            if {inspect.StrType, inspect.FloatType} <= kinds:
                return random.choice(AMOUNTS) if random.random() < 0.99 else random.choice(LEAVES)
            return _value(random.choice(info.types), random, depth=depth, name=name)
        case inspect.StructType():
            probability = 0.9 if depth < 2 else 0.5 if depth < 5 else 0.25
            return {
                field.encode_name: _value(field.type, random, depth=depth + 1, name=field.encode_name)
                for field in info.fields
                if field.required or random.random() < probability
            }
        case inspect.DictType():
            key = _vocabulary().get(f"{name}#", WORDS)
            return {
                str(random.choice(key)): _value(info.value_type, random, depth=depth + 1, name=name) for _ in range(2)
            }
        case inspect.VarTupleType() | inspect.ListType():
            size = random.choice((0, 1, 1, 2))
            return [_value(info.item_type, random, depth=depth + 1, name=name) for _ in range(size)]
        case inspect.BoolType():
            return random.random() < 0.5
        case inspect.IntType():
            return (
                _known(name, int, random) if random.random() < 0.95 else random.choice((0, info.ge or -1, info.le or 9))
            )
        case inspect.NoneType():
            return None
        case inspect.RawType() | inspect.AnyType():
            return {}
        case _:
            return _known(name, str, random)


def _known(name: str, kind: type, random: Random) -> Json:
    """Return a value of the fixtures for a field of this name, a common word, or a hostile value."""
    known_values = [value for value in _vocabulary().get(name, ()) if type(value) is kind]
    if known_values and random.random() < 0.9:
        return random.choice(known_values)
    candidates = (*WORDS, 1, 5) if random.random() < 0.97 else LEAVES
    return random.choice([value for value in candidates if type(value) is kind])


@cache
def _vocabulary() -> dict[str, tuple[Json, ...]]:
    """Return the scalars of the fixtures by field name, and the keys of maps by the name with a #."""
    result: dict[str, set[Json]] = {}
    for story in stories():
        for holder, key in places(story):
            value = holder[key]
            if isinstance(key, str) and isinstance(value, str | int):
                result.setdefault(key, set()).add(value)
            elif isinstance(key, str) and isinstance(value, dict):
                result.setdefault(f"{key}#", set()).update(value)
    return {name: tuple(sorted(values, key=repr)) for name, values in result.items()}


def damage(value: Json, random: Random) -> Json:
    """Return a copy with one changed place."""
    value = copy.deepcopy(value)
    all_places = list(places(value))
    if not all_places:
        return value
    holder, key = random.choice(all_places)
    old_value = holder[key]
    match random.randrange(8):
        case 0:
            del holder[key]
        case 1:
            holder[key] = (
                [old_value, copy.deepcopy(old_value)] if not isinstance(old_value, list) else [*old_value, *old_value]
            )
        case 2:
            other, name = random.choice(all_places)
            holder[key] = copy.deepcopy(other[name])
        case 3:
            holder[key] = copy.deepcopy(random.choice(LEAVES))
        case _:
            same_type = [leave for leave in (*LEAVES, *WORDS) if type(leave) is type(old_value)]
            holder[key] = copy.deepcopy(random.choice(same_type or LEAVES))
    return value


def places(value: Json) -> Iterator[tuple[Json, Any]]:
    for key, inner in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
        yield value, key
        if isinstance(inner, dict | list):
            yield from places(inner)


def as_json(objects: list[Json]) -> bytes:
    # half of a surrogate pair is no UTF-8, so it is written as a JSON escape
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode()


@cache
def texts() -> tuple[bytes, ...]:
    """Return the files of the fixtures."""
    return tuple(path.read_bytes() for path in sorted(FIXTURES.rglob("*")) if path.suffix in (".json", ".yaml"))


@cache
def stories() -> tuple[list[Json], ...]:
    """Return the objects of each fixture."""
    result: dict[Path, list[Json]] = {}
    for path in sorted(FIXTURES.rglob("*")):
        if path.suffix in (".json", ".yaml") and path.stem != "scheduler":
            story = FIXTURES / path.relative_to(FIXTURES).parts[0]
            text = path.read_bytes()
            if path.suffix == ".json":
                documents: list[Json] = [msgspec.json.decode(text)]
            else:
                documents = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
            for document in documents:
                if document is not None:
                    result.setdefault(story, []).extend(document.get("items", [document]))
    # through JSON, because YAML dates are no strings
    return tuple(json.loads(json.dumps(objects, default=str)) for objects in result.values())
