"""Strict decoding: a field that kube-scheduler does not know, or a value of another type, is an error with its path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import inspect

from kschedx.errors import ConfigError, join_fields, nearest
from kschedx.framework.config.refusals import Faults, nearest_or_all, refuse, shown
from kschedx.framework.duration import Duration

T = TypeVar("T")

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
}


def decode(
    value: object, kind: type[T], path: str, faults: Faults | None = None, *, may_have_others: bool = False
) -> T:
    """`value`, as parsed from YAML or JSON, as a `kind`, whose fields have defaults; `path` is its place, for errors.

    What is wrong is left out and added to `faults`; without them it is raised. With `may_have_others` only a field that
    is near to one of the kind's is taken for a misspelled one.
    """
    found = faults or Faults()
    cleaned = _clean(value, _info(kind), path, found, may_have_others)
    decoded: T | None = None
    while decoded is None:
        try:
            decoded = msgspec.convert(cleaned, kind, dec_hook=_custom)
        except msgspec.ValidationError as error:
            found.add(_refusal(str(error), cleaned, path))
            if not _leave_out(cleaned, _steps(str(error))):
                cleaned = {}  # the value is none at all
    if faults is None:
        found.settle()
    return decoded


_INFOS: dict[object, inspect.Type] = {}
"""Of the records that were decoded so far, since a record is described anew at each call."""


def _info(kind: object) -> inspect.Type:
    if kind not in _INFOS:
        _INFOS[kind] = inspect.type_info(kind)
    return _INFOS[kind]


def missing_field_errors(config: Mapping[str, object], paths: Iterable[str], hint: str) -> Iterator[ConfigError]:
    """The fields that a version of the configuration lacks; `paths` as in `Release.missing_fields`."""
    for pattern in paths:
        for path, key in _written(config, pattern.split("."), ""):
            yield refuse(path, f"unknown field {shown(key)}", hint)


def _written(value: object, steps: Sequence[str], path: str) -> Iterator[tuple[str, str]]:
    """Where the field that `steps` lead to is written, and its name."""
    if not isinstance(value, Mapping):
        return
    step, rest = steps[0], steps[1:]
    key, is_list, of_plugin = step.partition("[]")
    place = join_fields(path, key)
    if not rest:
        if value.get(key) is not None:
            yield place, key
    elif not is_list:
        yield from _written(value.get(key), rest, place)
    elif isinstance(items := value.get(key), Sequence):
        for i, item in enumerate(items):
            name = item.get("name") if isinstance(item, Mapping) else None
            if not of_plugin or of_plugin == f"{{{name}}}":
                yield from _written(item, rest, f"{place}[{i}]")


def _clean(value: object, kind: inspect.Type, path: str, faults: Faults, may_have_others: bool) -> object:
    """`value` without nulls, which Go takes for absent fields, and without unknown fields, which are faults."""
    match kind:
        case inspect.UnionType(types=types):
            some = next(t for t in types if not isinstance(t, inspect.NoneType))
            return _clean(value, some, path, faults, may_have_others)
        case inspect.StructType(fields=fields) if isinstance(value, Mapping):
            known = {f.encode_name: f.type for f in fields}
            kept: dict[object, object] = {}
            for key, item in value.items():
                if key not in known:
                    place = join_fields(path, _step(key))
                    if may_have_others and not nearest(str(key), known):
                        continue
                    faults.add(refuse(place, f"unknown field {shown(key)}", nearest_or_all(str(key), known)))
                elif item is not None:
                    kept[key] = _clean(item, known[key], join_fields(path, key), faults, may_have_others)
            return kept
        case inspect.VarTupleType(item_type=item_type) if isinstance(value, Sequence) and not isinstance(value, str):
            return [_clean(item, item_type, f"{path}[{i}]", faults, may_have_others) for i, item in enumerate(value)]
        case inspect.IntType() if isinstance(value, float) and value.is_integer():
            return int(value)  # YAML's 5.0 reaches kube-scheduler as JSON's 5
        case _:
            return value


def _custom(kind: type, value: object) -> object:
    if kind is object:
        return value
    if kind is Duration and isinstance(value, str):
        return Duration.parse(value)
    raise ValueError('expected a duration such as "10s" or "1m30s"')


def _refusal(text: str, document: object, path: str) -> ConfigError:
    """msgspec's complaint in our words."""
    reason = text.partition(" - at `$")[0]
    steps = _steps(text)
    bound = re.fullmatch(r"Expected `int` (<=|>=) (-?\d+)", reason)
    mismatch = re.match(r"Expected `(\w+)", reason)
    if bound:
        expected = f"expected a whole number {bound[1]} {bound[2]}"
    elif mismatch:
        expected = f"expected {_WORDS.get(mismatch[1], mismatch[1])}"
    else:
        expected = reason[:1].lower() + reason[1:]
    found = shown(_at(document, steps))
    return refuse(join_fields(path, steps.removeprefix(".")), f"{expected}, found {found}")


def _steps(text: str) -> str:
    """`.profiles[0].schedulerName` of msgspec's complaint."""
    return text.partition(" - at `$")[2].removesuffix("`")


def _leave_out(document: object, steps: str) -> bool:
    """Take away the field that holds what is wrong; False where it is the document itself."""
    parent, dot, last = steps.rpartition(".")
    holder = _at(document, parent)
    if not dot or not isinstance(holder, dict):
        return False
    del holder[last.partition("[")[0]]
    return True


def _at(document: object, steps: str) -> object:
    for name, index in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", steps):
        if isinstance(document, Mapping):
            document = document.get(name)
        elif isinstance(document, list):
            document = document[int(index)]
    return document


def _step(key: object) -> str:
    """A mapping's key as a step of a path; what is no plain name is shown as data."""
    return key if isinstance(key, str) and re.fullmatch(r"[\w-]+", key, re.ASCII) else f"[{shown(key)}]"
