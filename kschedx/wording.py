"""Formats text, numbers, and names from a cluster. What a terminal would interpret or hide is shown instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial, singledispatch

from msgspec import Struct

from kschedx.kube.escaping import visible as visible
from kschedx.kube.quantity import Unit, format_quantities

DOCUMENTATION = "https://kschedx.github.io/kschedx/"
"""The address at which `docs/` is published, as in `docs/mkdocs.yml`."""

# Numbers for readers: quantities in one unit, separated thousands, singular and plural.

_MEBI, _GIBI = 2**20, 2**30
_LONGEST = 5  # the number of digits that a number may have in its exact unit; 15075324Ki is hard to read


class _Scale(Struct, frozen=True, kw_only=True):
    """The unit of one inequality. `size` is the unit, and `per_unit` steps make one unit."""

    size: int
    per_unit: int
    suffix: str

    def round_down(self, number: int) -> int:
        """Return a number in steps, rounded down."""
        return number * self.per_unit // self.size

    def round_up(self, number: int) -> int:
        return -self.round_down(-number)

    def text(self, steps: int) -> str:
        """Return a number of steps as text, with as few digits as possible."""
        whole, part = divmod(abs(steps), self.per_unit)
        digits = f"{part:0{len(str(self.per_unit)) - 1}d}".rstrip("0") if part else ""
        sign = "-" if steps < 0 else ""
        return f"{sign}{whole}{'.' if digits else ''}{digits}{self.suffix}" if steps else "0"


_MEBIS = _Scale(size=_MEBI, per_unit=1, suffix="Mi")
_TENTHS_OF_GIBIS = _Scale(size=_GIBI, per_unit=10, suffix="Gi")


class ResourceBalance(Struct, frozen=True, kw_only=True):
    """One resource on one node, with all amounts in one unit, so that a reader can check the sums."""

    requested: str
    free: str
    allocatable: str
    used: str
    short_by: str
    rounded: str
    """The unit to which amounts are rounded (`Mi`, `0.1Gi`); empty if all are exact. Requested amounts are rounded up
    and free amounts down, so that nothing seems to fit that does not."""

    numbers: tuple[int, ...]
    scale: _Scale | None = None

    def in_same_unit(self, resource: str, numbers: tuple[int, ...]) -> tuple[str, ...]:
        """Return further amounts of the resource, in the same unit if they are whole in it."""
        scale = self.scale
        if scale is not None:
            return tuple(scale.text(scale.round_up(number)) for number in numbers)
        unit = Unit.of(resource)
        return tuple(format_quantities((number, *self.numbers), unit)[0] for number in numbers)


def balance(resource: str, *, requested: int, allocatable: int, used: int) -> ResourceBalance:
    """What a pod requests of a node and what is free there, in the unit in which users would write the request."""
    free = allocatable - used
    unit = Unit.of(resource)
    numbers = (requested, free, allocatable, used, requested - free)
    texts = format_quantities(numbers, unit)
    scale = _scale(unit, numbers, texts)
    rounded = ""
    if scale is not None:
        most, left, offered = scale.round_up(requested), scale.round_down(free), scale.round_down(allocatable)
        texts = tuple(map(scale.text, (most, left, offered, offered - left, most - left)))
        rounded = {"Mi": "Mi", "Gi": "0.1Gi"}.get(scale.suffix, "")
    return ResourceBalance(
        requested=texts[0],
        free=texts[1],
        allocatable=texts[2],
        used=texts[3],
        short_by=texts[4],
        rounded=rounded,
        numbers=numbers,
        scale=scale,
    )


def _scale(unit: Unit, numbers: tuple[int, ...], texts: tuple[str, ...]) -> _Scale | None:
    """Return the scale; None if the exact texts are short enough."""
    requested, _, _, _, short_by = numbers
    if unit is not Unit.BYTE or all(text.endswith(("Gi", "Ti")) or text == "0" for text in texts):
        return None
    if requested % _GIBI == 0 and requested and short_by >= _GIBI:
        return _TENTHS_OF_GIBIS
    return _MEBIS if any(len(text.strip("-KMGTPEikm")) > _LONGEST for text in texts) else None


def amount(resource: str, number: int) -> str:
    """Return one amount of a resource. Memory is rounded to Mi if its exact text is long."""
    return amounts(resource, (number,))[0]


def amounts(resource: str, numbers: Iterable[int]) -> tuple[str, ...]:
    """Return several amounts, each in the unit that suits it."""
    return tuple(_amount(Unit.of(resource), number) for number in numbers)


def _amount(unit: Unit, number: int) -> str:
    text = format_quantities((number,), unit)[0]
    if unit is Unit.BYTE and len(text.strip("-KMGTPEikm")) > _LONGEST:
        mebibytes = round(number / _MEBI)
        return f"{mebibytes}Mi" if mebibytes else "0"
    return text


def price_text(price: float) -> str:
    """Return a price in dollars, `$3.50`; below one dollar with up to four digits after the point, `$0.107`."""
    whole, _, digits = f"{price:,.{2 if price >= 1 else 4}f}".partition(".")
    return f"${whole}.{digits[:2]}{digits[2:].rstrip('0')}"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return `1 node`, `1,640 nodes`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def list_names(names: Iterable[str], limit: int, total: int | None = None, *, conjunction: str = "") -> str:
    """Return `a, b, c and 4 more`: the first `limit` names. `total` is their number if `names` is already cut."""
    known = list(names)
    total = len(known) if total is None else total
    shown = known[:limit]
    if total > len(shown):
        return f"{', '.join(shown)} and {total - len(shown):,} more" if shown else f"{total:,} more"
    if conjunction and len(shown) > 1:
        return f"{', '.join(shown[:-1])} {conjunction} {shown[-1]}"
    return ", ".join(shown)


class Fact(Struct, frozen=True, kw_only=True):
    """A labeled line: `offers     350m = ...`."""

    label: str
    items: tuple[str, ...]  # separated by ` · `
    rest: tuple[str, ...] = ()  # `rest[n]` replaces all items after the first n if there is no room for all of them
    whole: bool = False  # whether it is never shortened, because part of an inequality has no use
    command: str = ""  # the command with which the text ends, to be copied

    @classmethod
    def of(cls, label: str, *items: str, rest: tuple[str, ...] = (), whole: bool = False, command: str = "") -> Fact:
        return cls(label=label, items=items, rest=rest, whole=whole, command=command)


def list_facts(label: str, texts: Iterable[str]) -> Iterator[Fact]:
    """Yield a fact for each text; only the first has the label."""
    for text in texts:
        yield Fact.of(label, text)
        label = ""


class Brief(Struct, frozen=True, kw_only=True):
    """A short text. Those with the same lead and tail are joined: `short by 1650m cpu, 2Gi memory`."""

    lead: str = ""
    detail: str
    tail: str = ""


class Words(Struct, frozen=True, kw_only=True):
    headline: str  # complete in a log: lower case, with the number, without advice
    shared: str = ""
    """The part of the headline that is true of all findings that are `same_as` this one; empty if that is the whole
    headline. `brief` has the rest."""
    general: str = ""
    """The headline for several pods with the same cause, which names what its context shows otherwise; empty if it is
    `headline`."""
    facts: tuple[Fact, ...] = ()
    brief: Brief | None = None  # what differs between nodes with the same headline; None if nothing does


@singledispatch
def in_words(finding: object) -> Words:
    """Return the words of a finding. Each type registers its words in the module of its family."""
    raise TypeError(f"a {type(finding).__name__} has no words")


def register_templates(templates: Mapping[type, tuple[str | tuple[str, str], ...]]) -> None:
    """Register the words of findings that need no rule: a headline, and facts with their labels, which are templates
    over the finding `f`."""
    for kind, parts in templates.items():
        in_words.register(kind, partial(_filled_in, parts))


def _filled_in(parts: tuple[str | tuple[str, str], ...], finding: object) -> Words:
    headline, *facts = (part if isinstance(part, tuple) else ("", part) for part in parts)
    shown = tuple(Fact.of(label, text.format(f=finding)) for label, text in facts)
    return Words(headline=headline[1].format(f=finding), facts=shown)


def with_article(dump: str) -> str:
    """`a must-gather`, `an oc adm inspect`."""
    return f"{'an' if dump[:1].lower() in ('a', 'e', 'i', 'o') else 'a'} {dump}"
