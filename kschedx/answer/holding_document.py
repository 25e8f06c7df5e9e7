"""The `holding` of an Explanation document: who holds the pod, or takes it in kube-scheduler's place."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from kschedx.holding import Holding

Json = dict[str, object]


def holding_document(holding: Holding) -> Json:
    """What is not there is left out; amounts are thousandths of cpu, and units of everything else."""
    made = _plain(holding)
    assert isinstance(made, dict)
    return made


def _plain(value: object) -> object:
    match value:
        case Struct():
            named = {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
            return {_camel(name): item for name, item in named.items() if item not in (None, "", [], {})}
        case tuple():
            return [_plain(item) for item in value]
        case Enum():
            return value.value
        case _:
            return value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
