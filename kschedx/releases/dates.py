"""Facts with the versions in which they are true, written as class attributes.

class Behavior(DatedFacts): image_volumes_are_scored: bool = since("1.36")

The class has the versions; `Behavior((1, 35))` has the plain values of one version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TypeVar, cast

Minor = tuple[int, ...]

_T = TypeVar("_T")


@cache
def minor(version: str) -> Minor:
    """Return (1, 36) for `1.36`, and (1, 34, 2) for a patch version."""
    return tuple(int(part) for part in version.split("."))


def holds(release: Minor, *, first: str = "", last: str = "") -> bool:
    """Return whether a version is neither before `first` nor after `last`, with its patch versions; an empty string is
    no bound."""
    return (not first or minor(first) <= release) and (not last or release[: len(minor(last))] <= minor(last))


def is_in_range(release: Minor, releases: str) -> bool:
    """Whether a version is in the range: `1.28..`, `..1.31`, or `1.26..1.28`. An empty string is every version."""
    first, _, last = releases.partition("..")
    return holds(release, first=first, last=last)


def since(first: str) -> bool:
    """Declare a fact that is true from this version on."""
    return _declare(lambda release: holds(release, first=first))


def up_to(last: str) -> bool:
    """Declare a fact that is true up to this version, including it."""
    return _declare(lambda release: holds(release, last=last))


def only_in(version: str) -> bool:
    """Declare a fact that is true in a single version."""
    return _declare(lambda release: holds(release, first=version, last=version))


def between(first: str, last: str) -> bool:
    """Declare a fact that is true from the first to the last of these versions."""
    return _declare(lambda release: holds(release, first=first, last=last))


def dated(history: Mapping[str, _T]) -> _T:
    """Declare a value that changes: each version with the value from then on, oldest first."""
    return _declare(
        lambda release: [value for first, value in history.items() if minor(first) <= release][-1], (*history.values(),)
    )


class DatedFacts:
    """The base of classes with dated facts. An instance has the value of each fact in one version and is immutable."""

    def __init__(self, release: Minor) -> None:
        values = {name: fact.at(release) for name, fact in vars(type(self)).items() if isinstance(fact, _Dated)}
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is a fact of a release")

    def __iter__(self) -> Iterator[tuple[str, object]]:
        """Yield every fact with its value, in the order of the class."""
        return iter(vars(self).items())


class _Dated:
    """A fact's values in the class. Readers and type checkers see the plain value."""

    __slots__ = ("at", "values")

    def __init__(self, at: Callable[[Minor], object], values: tuple[object, ...] = ()) -> None:
        self.at = at
        self.values = values


def _declare(at: Callable[[Minor], _T], values: tuple[object, ...] = ()) -> _T:
    return cast(_T, _Dated(at, values))


def values_of(facts: type[DatedFacts], name: str) -> tuple[object, ...]:
    """Return all values of a `dated` fact, oldest first."""
    value = vars(facts)[name]
    assert isinstance(value, _Dated), "only a dated fact has a history"
    return value.values
