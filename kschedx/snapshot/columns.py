"""Interned columns: `codes[row]` into `values`, so that a rule runs once per distinct value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, NewType, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

T = TypeVar("T")

FEW = 4
"""Up to so many rows, to look for the values that occur costs more than to evaluate them all."""


def distinct(values: IntArray) -> IntArray:
    """The different values, sorted. `numpy.unique` would load numpy.ma for it, which takes 5 ms."""
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def all_false(count: int) -> BoolArray:
    """(count,) False, not to be written to; it takes no memory, however many rows there are."""
    return np.broadcast_to(np.False_, count)


def paired(first: IntArray, second: IntArray) -> IntArray:
    """Codes that are equal where both arrays are."""
    joined = first * (int(second.max(initial=0)) + 1) + second
    codes: IntArray = np.searchsorted(distinct(joined), joined)
    return codes


Derived: TypeAlias = dict[object, object]
"""What was worked out from something that stays as it is, by the `Memo` that it belongs to."""


class Memo(Generic[T]):
    """What is worked out once, and kept by what it is worked out from."""

    __slots__ = ()

    def of(self, derived: Derived, make: Callable[[], T], *apart: Hashable) -> T:
        """What was made before, or is made now; there is one for each of what sets them `apart`."""
        key: object = (self, apart) if apart else self
        if key not in derived:
            derived[key] = make()
        return cast(T, derived[key])


class Column(Generic[T]):
    """A sequence of values in which equal ones are stored once.

    `codes` is (row,) int64, an index into `values` (value,).
    """

    __slots__ = ("codes", "values")

    def __init__(self, codes: IntArray, values: Sequence[T]) -> None:
        self.codes = codes
        self.values = values

    @classmethod
    def of(cls, rows: Iterable[T], key: Callable[[T], Hashable] | None = None) -> Column[T]:
        """Intern `rows`, which are equal where `key` (by default the row itself) is."""
        codes: list[int] = []
        values: list[T] = []
        seen: dict[Hashable, int] = {}
        for row in rows:
            identity: Hashable = key(row) if key else row
            code = seen.setdefault(identity, len(values))
            if code == len(values):
                values.append(row)
            codes.append(code)
        return cls(np.array(codes, dtype=np.int64), values)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> T:
        return self.values[int(self.codes[row])]

    def take(self, rows: IntArray) -> Column[T]:
        """The column of some rows; values are shared."""
        return Column(self.codes[rows], self.values)

    def with_rows(self, rows: Iterable[T], key: Callable[[T], Hashable] | None = None) -> Column[T]:
        """The column with more rows, interned among themselves as `of` does."""
        more = Column.of(rows, key)
        codes = np.concatenate([self.codes, more.codes + len(self.values)])
        return Column(codes, [*self.values, *more.values])

    def copy(self) -> Column[T]:
        """The same rows, for `put`."""
        return Column(self.codes.copy(), list(self.values))

    def put(self, row: int, value: T) -> None:
        """Another value in a row of a `copy`."""
        assert isinstance(self.values, list), "only a copy is written to"
        if self[row] == value:
            return
        code = self._code_of(value)
        if code == len(self.values):
            self.values.append(value)
        self.codes[row] = code

    def _code_of(self, value: T) -> int:
        """The number of the next value where there is no equal one."""
        return self.values.index(value) if value in self.values else len(self.values)

    def with_row(self, value: T) -> Column[T]:
        """The column with one more row."""
        return self.with_copies(value, 1)

    def with_copies(self, value: T, count: int) -> Column[T]:
        """The column with more rows, which all have this value."""
        code = self._code_of(value)
        values = self.values if code < len(self.values) else [*self.values, value]
        return Column(np.concatenate([self.codes, np.full(count, code, dtype=np.int64)]), values)

    def where(self, rule: Callable[[T], bool]) -> BoolArray:
        """(row,) whether `rule` holds, evaluated once for each value that occurs."""
        if len(self.codes) <= FEW:
            return np.array([rule(self.values[code]) for code in self.codes], dtype=np.bool_)
        truth = np.zeros(len(self.values), dtype=np.bool_)
        for code in self._occurring():
            truth[code] = rule(self.values[code])
        return truth[self.codes]

    def map(self, rule: Callable[[T], int]) -> IntArray:
        """(row,) int64 `rule(value)`, evaluated once for each value that occurs."""
        if len(self.codes) <= FEW:
            return np.array([rule(self.values[code]) for code in self.codes], dtype=np.int64)
        numbers = np.zeros(len(self.values), dtype=np.int64)
        for code in self._occurring():
            numbers[code] = rule(self.values[code])
        return numbers[self.codes]

    def _occurring(self) -> Iterable[int]:
        # below a few values the search costs more than the rule
        if len(self.values) <= 1:
            return range(len(self.values) if len(self.codes) else 0)
        return (int(code) for code in np.flatnonzero(np.bincount(self.codes, minlength=len(self.values))))


def rows_by_group(groups: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Sort rows by group. Returns `(order, start)`: the rows of group g are `order[start[g]:start[g + 1]]`, in
    ascending order; rows whose group is negative belong to none. `start` is (count + 1,)."""
    order = np.argsort(groups, kind="stable")
    start = np.searchsorted(groups[order], np.arange(count + 1))
    return order.astype(np.int64), start.astype(np.int64)


# Which node a number means.
#
# A node has a row in the whole cluster, and another in each `NodeTable` that holds it, which may be a part of the
# cluster. Both are numbers, and one in place of the other is an answer about the wrong node: so they are different
# types, made where rows come from. `NodeTable.cluster_row` and `NodeTable.row_of` lead from one to the other.

ClusterRow = NewType("ClusterRow", int)
"""A node's row among all nodes of the cluster."""

ClusterRows = NewType("ClusterRows", IntArray)
"""(n,) rows among all nodes of the cluster."""

TableRow = NewType("TableRow", int)
"""A node's row in a `NodeTable` and in what was worked out from it: verdicts, scores, masks."""

TableRows = NewType("TableRows", IntArray)
"""(n,) rows of a `NodeTable`."""


def of_whole(row: TableRow) -> ClusterRow:
    """The node in a row of a table of the whole cluster."""
    return ClusterRow(row)


def cluster_rows(rows: Sequence[ClusterRow]) -> ClusterRows:
    return ClusterRows(np.array(rows, dtype=np.int64))


def rows_where(mask: BoolArray) -> TableRows:
    """The rows of a table at which `mask` (node,) holds, ascending."""
    return TableRows(np.flatnonzero(mask))


def each_cluster_row(rows: ClusterRows) -> Iterator[ClusterRow]:
    return map(ClusterRow, rows.tolist())


def each_row(rows: TableRows) -> Iterator[TableRow]:
    return map(TableRow, rows.tolist())
