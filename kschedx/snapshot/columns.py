"""Interned columns: `codes[row]` is an index into `values`, so that a rule runs once per distinct value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, NewType, TypeAlias, TypeVar, cast

import numpy as np

from kschedx.kube.scalars import MAX_INT64, MIN_INT64

if TYPE_CHECKING:
    from numpy.typing import NDArray

IntArray: TypeAlias = "NDArray[np.int64]"
BoolArray: TypeAlias = "NDArray[np.bool_]"
FloatArray: TypeAlias = "NDArray[np.float64]"

T = TypeVar("T")

_FEW = 4  # up to this number of rows, evaluating all rows is cheaper than finding the distinct values


def distinct(values: IntArray) -> IntArray:
    """Return the distinct values, sorted. `numpy.unique` would load numpy.ma, which takes 5 ms."""
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


@lru_cache(maxsize=64)
def all_false(count: int) -> BoolArray:
    """(count,) False, read-only; it takes no memory for any number of rows."""
    return np.broadcast_to(np.False_, count)


def pair_codes(first: IntArray, second: IntArray) -> IntArray:
    """Return codes that are equal where both arrays are equal."""
    return _places(first * (int(second.max(initial=0)) + 1) + second)[1]


def first_rows(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Return (value,) the first row of each distinct code, in the order of the codes, and (row,) the place of each
    row's code in that order."""
    present, places = _places(codes)
    first = np.empty(present, dtype=np.int64)
    first[places[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the last one written stays
    return first, places


def _places(codes: IntArray) -> tuple[int, IntArray]:
    """Return the number of distinct codes, and (row,) the place of each row's code among them, in their order."""
    highest = int(codes.max(initial=0))
    if highest <= 8 * len(codes) and codes.min(initial=0) >= 0:  # a fraction of the time of sorting
        is_present = np.zeros(highest + 1, dtype=np.bool_)
        is_present[codes] = True
        places = is_present.cumsum() - 1
        return int(places[-1]) + 1, places[codes]
    values = distinct(codes)
    return len(values), np.searchsorted(values, codes)


Derived: TypeAlias = dict[object, object]  # values computed from an immutable object, by their `Memo`


class Memo(Generic[T]):
    """A value that is computed once from an immutable object and kept with it."""

    __slots__ = ()

    def of(self, derived: Derived, make: Callable[[], T], *apart: Hashable) -> T:
        """Return the kept value, or compute it. There is one value for each `apart`."""
        key: object = (self, apart) if apart else self
        if key not in derived:
            derived[key] = make()
        return cast(T, derived[key])


def clamp_int64(numbers: Iterable[int]) -> IntArray:
    """(number,) as int64; a number beyond its range becomes the nearest bound."""
    return np.array([max(MIN_INT64, min(number, MAX_INT64)) for number in numbers], dtype=np.int64)


class Column(Generic[T]):
    """A sequence that stores equal values once. `codes` is (row,) int64, an index into `values` (value,)."""

    __slots__ = ("codes", "values")

    def __init__(self, codes: IntArray, values: Sequence[T]) -> None:
        self.codes = codes
        self.values = values

    @classmethod
    def of(cls, rows: Iterable[T], key: Callable[[T], Hashable] | None = None) -> Column[T]:
        """Intern `rows`. Rows are equal if their `key` (by default the row itself) is equal."""
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
        """Return the column of some rows; values are shared."""
        return Column(self.codes[rows], self.values)

    def with_rows(self, rows: Iterable[T], key: Callable[[T], Hashable] | None = None) -> Column[T]:
        """Append rows, interned among themselves as in `of`."""
        more = Column.of(rows, key)
        codes = np.concatenate([self.codes, more.codes + len(self.values)])
        return Column(codes, [*self.values, *more.values])

    def copy(self) -> Column[T]:
        """Copy the column, for `put`."""
        return Column(self.codes.copy(), list(self.values))

    def put(self, row: int, value: T) -> None:
        """Set a row of a `copy`."""
        assert isinstance(self.values, list), "only a copy is written to"
        if self[row] == value:
            return
        code = self._code_of(value)
        if code == len(self.values):
            self.values.append(value)
        self.codes[row] = code

    def put_new(self, rows: IntArray, value: T) -> None:
        """Set rows of a `copy` to a value, without a search for an equal one."""
        assert isinstance(self.values, list), "only a copy is written to"
        self.codes[rows] = len(self.values)
        self.values.append(value)

    def _code_of(self, value: T) -> int:
        """Return the code of a value, or the next code for a new value."""
        return self.values.index(value) if value in self.values else len(self.values)

    def with_row(self, value: T) -> Column[T]:
        return self.with_copies(value, 1)

    def with_copies(self, value: T, count: int) -> Column[T]:
        """Append `count` rows with this value."""
        code = self._code_of(value)
        values = self.values if code < len(self.values) else [*self.values, value]
        return Column(np.concatenate([self.codes, np.full(count, code, dtype=np.int64)]), values)

    def where(self, rule: Callable[[T], bool]) -> BoolArray:
        """(row,) whether `rule` holds, evaluated once per distinct value."""
        if len(self.codes) <= _FEW:
            return np.array([rule(self.values[code]) for code in self.codes], dtype=np.bool_)
        truth = np.zeros(len(self.values), dtype=np.bool_)
        for code in self._used_codes():
            truth[code] = rule(self.values[code])
        return truth[self.codes]

    @property
    def present(self) -> BoolArray:
        """(row,) whether there is a value. Like `where`, but fast for a label that differs on every node."""
        absent = self.values.index(None) if None in self.values else -1
        present: BoolArray = self.codes != absent
        return present

    def map(self, rule: Callable[[T], int]) -> IntArray:
        """(row,) int64 `rule(value)`, evaluated once per distinct value."""
        if len(self.codes) <= _FEW:
            return np.array([rule(self.values[code]) for code in self.codes], dtype=np.int64)
        numbers = np.zeros(len(self.values), dtype=np.int64)
        for code in self._used_codes():
            numbers[code] = rule(self.values[code])
        return numbers[self.codes]

    def _used_codes(self) -> Iterable[int]:
        # for few rows, finding the distinct values costs more than the rule
        if len(self.values) <= 1:
            return range(len(self.values) if len(self.codes) else 0)
        return (int(code) for code in np.flatnonzero(np.bincount(self.codes, minlength=len(self.values))))


def rows_by_group(groups: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Sort rows by group. Returns `(order, start)`: the rows of group g are `order[start[g]:start[g + 1]]`, ascending.
    Rows with a negative group are left out. `start` is (count + 1,)."""
    order = np.argsort(groups, kind="stable")
    start = np.searchsorted(groups[order], np.arange(count + 1))
    return order.astype(np.int64), start.astype(np.int64)


# The numbers of nodes. A node has a row in the whole cluster, and a row in each `NodeTable` that contains it, which may
# be a part of the cluster. Confusing them gives an answer about the wrong node, so they are different types, created
# where rows come from. `NodeTable.cluster_row` and `NodeTable.row_of` convert between them.

ClusterRow = NewType("ClusterRow", int)  # a node's row among all nodes of the cluster

ClusterRows = NewType("ClusterRows", IntArray)  # (n,) rows among all nodes of the cluster

TableRow = NewType("TableRow", int)
"""A node's row in a `NodeTable` and in arrays computed from it: verdicts, scores, masks."""

TableRows = NewType("TableRows", IntArray)  # (n,) rows of a `NodeTable`


def as_cluster_row(row: TableRow) -> ClusterRow:
    """Convert a row of a table with the whole cluster."""
    return ClusterRow(row)


def cluster_rows(rows: Sequence[ClusterRow]) -> ClusterRows:
    return ClusterRows(np.array(rows, dtype=np.int64))


def rows_where(mask: BoolArray) -> TableRows:
    """Return the rows of a table where `mask` (node,) holds, ascending."""
    return TableRows(np.flatnonzero(mask))


def each_cluster_row(rows: ClusterRows) -> Iterator[ClusterRow]:
    return map(ClusterRow, rows.tolist())


def each_row(rows: TableRows) -> Iterator[TableRow]:
    return map(TableRow, rows.tolist())
