"""What an API server would not have let pass in Karpenter's objects, and a file may still hold."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kschedx.api.integers import parse_int64
from kschedx.api.karpenter import NodeOverlay, NodePool, NodeSelectorRequirementWithMinValues
from kschedx.api.quantity import ResourceList
from kschedx.errors import InputError, Place, nearest
from kschedx.karpenter.amounts import amounts_of

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
_PRICE = re.compile(r"[0-9]+(\.[0-9]+)?")
_ADJUSTMENT = re.compile(r"[+-][0-9]*\.?[0-9]+%?")


def check_pool(pool: NodePool) -> None:
    """Raises `InputError` with the place of what is wrong."""
    about = Place(object=f"NodePool {pool.name}")
    _check_amounts(pool.spec.limits, "spec.limits", about)
    _check_requirements(pool.spec.template.spec.requirements, "spec.template.spec.requirements", about)


def check_overlay(overlay: NodeOverlay) -> None:
    """Raises `InputError` with the place of what is wrong."""
    about, spec = Place(object=f"NodeOverlay {overlay.name}"), overlay.spec
    _check_amounts(spec.capacity, "spec.capacity", about)
    _check_requirements(spec.requirements, "spec.requirements", about)
    for field, written, form, example in (
        ("price", spec.price, _PRICE, "0.12"),
        ("priceAdjustment", spec.price_adjustment, _ADJUSTMENT, "+10% or -0.5"),
    ):
        if written is not None and form.fullmatch(written) is None:
            place = Place(field=f"spec.{field}")
            raise InputError(f'"{written}" is no price', place=place, hint=f"such as {example}").at(about)


def _check_amounts(resources: ResourceList, field: str, about: Place) -> None:
    try:
        amounts_of(resources)
    except InputError as error:
        place = Place(field=f"{field}{error.place.field}")
        raise InputError(error.message, place=place, hint=error.hint).at(about) from None


def _check_requirements(requirements: Iterable[NodeSelectorRequirementWithMinValues], field: str, about: Place) -> None:
    for index, one in enumerate(requirements):
        fault = _fault(one)
        if fault is not None:
            raise InputError(fault[0], place=Place(field=f"{field}[{index}]"), hint=fault[1]).at(about)


def _fault(one: NodeSelectorRequirementWithMinValues) -> tuple[str, str] | None:
    """What is wrong with a requirement, and what would be right."""
    if not one.key:
        return "a requirement has a key", ""
    if one.operator not in OPERATORS:
        allowed = nearest(one.operator, OPERATORS) or f"one of {', '.join(OPERATORS)}"
        return f'"{one.operator}" is not an operator', allowed
    if one.operator == "In" and not one.values:
        return f"{one.key} In needs a value", ""
    is_bound = one.operator in ("Gt", "Lt", "Gte", "Lte")
    if is_bound and (len(one.values) != 1 or ((parse_int64(one.values[0]) or -1) < 0 and one.values[0] != "0")):
        return f"{one.key} {one.operator} needs one whole number, found [{', '.join(one.values)}]", ""
    return None
