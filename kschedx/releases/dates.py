"""Facts with the releases in which they hold, written where they stand.

    class Behaviour(DatedFacts):
        image_volumes_are_scored: bool = since("1.36")

The class has the dates; `Behaviour((1, 35))` has the plain values of one release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, cast

Minor = tuple[int, ...]
"""(1, 36)."""

T = TypeVar("T")


def minor(version: str) -> Minor:
    """(1, 36) of `1.36`."""
    return tuple(int(part) for part in version.split("."))


def holds(release: Minor, *, first: str = "", last: str = "") -> bool:
    """Whether a release is neither before `first` nor after `last`; an empty one is no bound."""
    return (not first or minor(first) <= release) and (not last or release <= minor(last))


def within(release: Minor, releases: str) -> bool:
    """Whether a release is one of `1.28..`, `..1.31`, `1.26..1.28`; nothing is all of them."""
    first, _, last = releases.partition("..")
    return holds(release, first=first, last=last)


def since(first: str) -> bool:
    """A claim that holds from this release on."""
    return _dated(lambda release: holds(release, first=first))


def up_to(last: str) -> bool:
    """A claim that holds until this release, which is the last one."""
    return _dated(lambda release: holds(release, last=last))


def only_in(version: str) -> bool:
    """A claim that holds in a single release."""
    return _dated(lambda release: release == minor(version))


def between(first: str, last: str) -> bool:
    """A claim that holds in these releases and those between them."""
    return _dated(lambda release: holds(release, first=first, last=last))


def dated(history: Mapping[str, T]) -> T:
    """A value that changes: release to the value from then on, oldest first."""
    return _dated(
        lambda release: [value for first, value in history.items() if minor(first) <= release][-1], (*history.values(),)
    )


class DatedFacts:
    """An instance holds for each dated attribute of its class the value in one release, and cannot be changed."""

    def __init__(self, release: Minor) -> None:
        values = {name: fact.at(release) for name, fact in vars(type(self)).items() if isinstance(fact, _Dated)}
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is a fact of a release")

    def __iter__(self) -> Iterator[tuple[str, object]]:
        """Every fact with its value, as they stand in the class."""
        return iter(vars(self).items())


class _Dated:
    """What stands in the class; to a reader and to a type checker it is the value."""

    __slots__ = ("at", "values")

    def __init__(self, at: Callable[[Minor], object], values: tuple[object, ...] = ()) -> None:
        self.at = at
        self.values = values


def _dated(at: Callable[[Minor], T], values: tuple[object, ...] = ()) -> T:
    return cast(T, _Dated(at, values))


def values_of(facts: type[DatedFacts], name: str) -> tuple[object, ...]:
    """What a `dated` fact has been, oldest first."""
    found = vars(facts)[name]
    assert isinstance(found, _Dated), "only a dated fact has a history"
    return found.values
