"""A catalogue of instance types on a screen."""

from __future__ import annotations

from kschedx.karpenter.amounts import amounts_of, subtracted
from kschedx.karpenter.catalogue import InstanceTypes, WrittenType
from kschedx.render import terminal
from kschedx.render.layout import text
from kschedx.render.units import count
from kschedx.render.words.karpenter import resources_text

_HEAD = ("NAME", "CAPACITY", "FOR PODS", "OFFERED IN")


def print_catalogue(catalogue: InstanceTypes) -> None:
    out = terminal.console()
    rows = [_HEAD, *map(_row, catalogue.instance_types)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD) - 1)]
    lines = [
        "   ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1])) for row in rows
    ]
    terminal.write([text(line.rstrip()) for line in lines], out)


def _row(one: WrittenType) -> tuple[str, str, str, str]:
    capacity = amounts_of(one.capacity)
    left = subtracted(capacity, amounts_of(one.overhead))
    zones = sorted({offering.zone for offering in one.offerings if offering.available})
    where = count(len(zones), "zone") if one.offerings else "wherever its pool can be"
    return one.name, resources_text(capacity), resources_text(left), where
