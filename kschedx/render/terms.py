"""Node selector terms against a node, expression by expression."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.findings import RequirementMatch, TermMatch
from kschedx.render.units import listed
from kschedx.render.wording import Brief, Fact

NODE_NAME_FIELD = "metadata.name"
SHOWN_TERMS = 3
SHOWN_VALUES = 4


def facts(terms: tuple[TermMatch, ...], label: str = "term") -> tuple[Fact, ...]:
    """A line for each term, those that come nearest first; `selector` stands without a number."""
    return tuple(_facts(terms, label))


def _facts(terms: tuple[TermMatch, ...], label: str) -> Iterator[Fact]:
    for term in sorted(terms, key=lambda term: term.missing)[:SHOWN_TERMS]:
        items = [expression(one) for one in term.requirements] or ["empty, which matches no node"]
        if term.missing == 1 and len(term.requirements) > 1:
            items.append("one expression away")
        number = "" if label == "selector" or len(terms) == 1 else f" {term.index + 1}"
        yield Fact(label=label + number, items=tuple(items))
    if len(terms) > SHOWN_TERMS:
        yield Fact(label="", items=(f"{len(terms) - SHOWN_TERMS} more terms",))


def brief(terms: tuple[TermMatch, ...]) -> Brief | None:
    """What the node has where the nearest term fails first."""
    nearest = min(terms, key=lambda term: term.missing, default=None)
    failed = next((one for one in nearest.requirements if not one.matched), None) if nearest else None
    if failed is None or failed.key == NODE_NAME_FIELD:
        return None
    return Brief(detail=f'"{failed.actual}"' if failed.actual is not None else "without the label")


def expression(one: RequirementMatch) -> str:
    """`disk In [nvme] ✗ the node has "ssd"`."""
    return f"{requirement_text(one)} {_verdict(one)}"


def requirement_text(one: RequirementMatch) -> str:
    """`zone In [eu-1a, eu-1b]`, `gpu Exists`, `zone=eu-1a` as a nodeSelector writes it."""
    match one.operator:
        case "Exists" | "exists":
            return f"{one.key} Exists"
        case "DoesNotExist" | "!":
            return f"{one.key} DoesNotExist"
        case "=" | "==":
            return f"{one.key}={', '.join(one.values)}"
        case _:
            return f"{one.key} {one.operator} [{listed(one.values, SHOWN_VALUES)}]"


def _verdict(one: RequirementMatch) -> str:
    if one.matched:
        return f"✓ {one.actual}" if one.actual else "✓"
    if one.key == NODE_NAME_FIELD:
        return f"✗ the node is {one.actual}"
    return "✗ the node has no such label" if one.actual is None else f'✗ the node has "{one.actual}"'
