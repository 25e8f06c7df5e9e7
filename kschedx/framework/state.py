"""CycleState: what plugins remember between the extension points of one cycle."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

T = TypeVar("T")


class StateKey(Generic[T]):
    """A plugin's own key, which carries the type of what it stores."""

    __slots__ = ("missing", "name")

    def __init__(self, name: str, missing: str = 'reading "{}" from cycleState: not found') -> None:
        """`missing` is how the plugin words that nothing is stored; `{}` stands for the name."""
        self.name = name
        self.missing = missing.format(name)


class NotPreparedError(Exception):
    """A plugin reads what its PreFilter or PreScore would have written: that did not run, or was not enabled.

    `str()` is what kube-scheduler says.
    """


class CycleState:
    """Written in PreFilter and PreScore, read afterwards. Values are never changed in place: what must differ is
    written anew, so that a clone is cheap and independent."""

    __slots__ = ("_values", "skip_filter", "skip_score")

    def __init__(self) -> None:
        self._values: dict[StateKey[object], object] = {}
        self.skip_filter: frozenset[str] = frozenset()
        """Plugins whose PreFilter returned Skip."""
        self.skip_score: frozenset[str] = frozenset()
        """Plugins whose PreScore returned Skip."""

    def __getitem__(self, key: StateKey[T]) -> T:
        """What was stored. Raises `NotPreparedError` where nothing was."""
        try:
            return cast(T, self._values[cast("StateKey[object]", key)])
        except KeyError:
            raise NotPreparedError(key.missing) from None

    def __setitem__(self, key: StateKey[T], value: T) -> None:
        self._values[cast("StateKey[object]", key)] = value

    def __contains__(self, key: StateKey[T]) -> bool:
        return key in self._values

    def discard(self, key: StateKey[T]) -> None:
        self._values.pop(cast("StateKey[object]", key), None)

    def clone(self) -> CycleState:
        other = CycleState()
        other._values = dict(self._values)
        other.skip_filter, other.skip_score = self.skip_filter, self.skip_score
        return other
