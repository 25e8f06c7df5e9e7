"""The pods as columns, with their requests as rows of a matrix."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from itertools import accumulate, chain
from typing import Protocol, Self, TypeVar, overload

import msgspec
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.errors import Place
from kschedx.kube.resources import PodRequest, RequestOptions, pod_request
from kschedx.kube.scalars import LATEST, MAX_INT64, nanoseconds
from kschedx.kube.storage import claim_name
from kschedx.kube.types import (
    FINISHED,
    OWN_FINALIZERS,
    ContainerPort,
    Node,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodGroup,
    PodSpec,
    PodStatus,
    PriorityClass,
    Volume,
)
from kschedx.snapshot.columns import (
    BoolArray,
    ClusterRow,
    ClusterRows,
    Column,
    Derived,
    IntArray,
    Memo,
    each_cluster_row,
    pair_codes,
    rows_by_group,
)

NATIVE = ("cpu", "memory", "ephemeral-storage")
"""The first columns of every resource matrix. cpu is in milli-units, everything else in units."""


class ResourceNames:
    """The resources of a cluster in a fixed order: `cpu`, `memory`, `ephemeral-storage`, then scalars by name."""

    __slots__ = ("index", "names")

    def __init__(self, scalars: Iterable[str] = ()) -> None:
        self.names: tuple[str, ...] = NATIVE + tuple(sorted(set(scalars) - set(NATIVE)))
        self.index: Mapping[str, int] = {name: i for i, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def row(self, amounts: Mapping[str, int]) -> IntArray:
        """(resource,) int64; unknown resources are left out."""
        row = np.zeros(len(self.names), dtype=np.int64)
        for name, amount in amounts.items():
            column = self.index.get(name)
            if column is not None:
                row[column] = amount
        return row


_ENCODER = msgspec.json.Encoder()

_T = TypeVar("_T")


class _node_independent(Memo[_T]):  # noqa: N801 - used like cached_property
    """A property of pods that does not depend on their nodes: computed once for all tables with the same pods."""

    def __init__(self, compute: Callable[[PodTable], _T]) -> None:
        self._compute = compute

    @overload
    def __get__(self, table: None, owner: type) -> Self: ...
    @overload
    def __get__(self, table: PodTable, owner: type) -> _T: ...
    def __get__(self, table: PodTable | None, owner: type) -> Self | _T:
        return self if table is None else self.of(table.derived, lambda: self._compute(table))


class Tally(Protocol):
    """A number for each pod, to be summed by node. It is a key, so equal tallies give equal numbers. It may read the
    immutable part of a pod and whether it is terminating, but not its node."""

    def __hash__(self) -> int: ...

    def candidates(self, pods: PodTable) -> IntArray:
        """Return rows that include all pods with a weight."""
        ...

    def weights(self, pods: PodTable, rows: IntArray) -> IntArray:
        """(row,) int64 the weights of these rows."""
        ...


class NodeRule(Protocol):
    """A number for a node from its pods, in ascending order of rows. It may read the immutable part of a pod."""

    def __hash__(self) -> int: ...

    def __call__(self, node: Node, pods: PodTable, rows: IntArray) -> int: ...


class PodCopies(Sequence[Pod]):
    """Pending pods that differ only in a number at the end of their names. A pod object is created on access."""

    def __init__(self, model: Pod, prefix: str, numbers: IntArray) -> None:
        """`model` has no node; `numbers` are ascending."""
        self.model, self.prefix, self.numbers = model, prefix, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> Pod: ...
    @overload
    def __getitem__(self, at: slice) -> PodCopies: ...
    def __getitem__(self, at: int | slice) -> Pod | PodCopies:
        if isinstance(at, slice):
            return PodCopies(self.model, self.prefix, self.numbers[at])
        name, metadata = f"{self.prefix}{self.numbers[at]}", self.model.metadata
        return replace(self.model, metadata=replace(metadata, name=name, uid=f"{self.uid_prefix}{self.numbers[at]}"))

    @property
    def key_prefix(self) -> str:
        return f"{self.model.metadata.namespace}/{self.prefix}"

    @property
    def uid_prefix(self) -> str:
        return f"new/{self.key_prefix}"


class _NumberedTexts(Sequence[str]):
    """Texts that differ in a number at their ends."""

    def __init__(self, prefix: str, numbers: IntArray) -> None:
        self._prefix, self._numbers = prefix, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> _NumberedTexts: ...
    def __getitem__(self, at: int | slice) -> str | _NumberedTexts:
        if isinstance(at, slice):
            return _NumberedTexts(self._prefix, self._numbers[at])
        return f"{self._prefix}{self._numbers[at]}"

    def __iter__(self) -> Iterator[str]:
        return (f"{self._prefix}{number}" for number in self._numbers.tolist())


class _JoinedTexts(Sequence[str]):
    """Texts of several sequences, none of which is copied."""

    def __init__(self, *parts: Sequence[str]) -> None:
        self.parts = parts
        self._ends = tuple(accumulate(map(len, parts)))

    def __len__(self) -> int:
        return self._ends[-1]

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[row] for row in range(*at.indices(len(self)))]
        row = at if at >= 0 else at + len(self)
        if not 0 <= row < len(self):
            raise IndexError(at)
        part = bisect_right(self._ends, row)
        return self.parts[part][row - (self._ends[part - 1] if part else 0)]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.parts)


def _join_texts(texts: Sequence[str], more: Sequence[str]) -> _JoinedTexts:
    return _JoinedTexts(*(texts.parts if isinstance(texts, _JoinedTexts) else (texts,)), more)


def longer(texts: Sequence[str], more: Sequence[str]) -> Sequence[str]:
    """Texts with more behind them; those that are not in a list are not copied."""
    if not isinstance(texts, _JoinedTexts):
        return [*texts, *more]
    *before, last = texts.parts
    return _JoinedTexts(*before, [*last, *more]) if isinstance(last, list) else _JoinedTexts(*texts.parts, [*more])


class _RowsOfCopies(Mapping[str, int]):
    """Rows by pod key, with the copies in the rows after the others."""

    def __init__(self, rows: Mapping[str, int], copies: PodCopies, first: int) -> None:
        self._rows, self._prefix, self._numbers, self._first = rows, copies.key_prefix, copies.numbers, first

    def __len__(self) -> int:
        return len(self._rows) + len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        yield from self._rows
        yield from (f"{self._prefix}{number}" for number in self._numbers.tolist())

    def __getitem__(self, key: str) -> int:
        digits = key.removeprefix(self._prefix)
        if len(digits) < len(key) and len(digits) < 19 and digits.isascii() and digits.isdigit():
            at = int(np.searchsorted(self._numbers, int(digits)))
            if at < len(self._numbers) and str(self._numbers[at]) == digits:
                return self._first + at
        return self._rows[key]


class PodTable(Struct, frozen=True, kw_only=True, dict=True):
    """Pods as columns of equal length, in list order. A pod affects the scheduling of others if `node` is not negative:
    its node exists, and it has not finished."""

    rows: Mapping[str, int]  # `namespace/name` to row
    names: Sequence[str]
    namespaces: Column[str]
    uids: Sequence[str]
    labels: Column[dict[str, str]]
    annotations: Column[dict[str, str]]  # only annotations that kschedx reads
    owners: Column[tuple[OwnerReference, ...]]
    specs: Column[PodSpec]
    without_priority: frozenset[int]
    """Codes of `specs` without a priority or class, which no API server has stored, if there is no default class. They
    have a priority here."""
    statuses: Column[PodStatus]
    """Conditions and in-place resize state; phase, start time, and nomination have their own columns."""
    phases: Column[str]
    start_times: Sequence[str | None]
    creation_timestamps: Sequence[str | None]
    deletion_timestamps: Sequence[str | None]
    finalizers: Mapping[str, tuple[str, ...]] = {}  # finalizers of terminating pods, by `namespace/name`
    grace_periods: Mapping[str, int] = {}
    """Seconds that terminating pods have until their deletion timestamp, by `namespace/name`."""
    nominated_node_names: Sequence[str]
    node_names: Column[str]
    node: IntArray  # (pod,) row of the pod's node; -1 for pods without a node, with an unknown one, or finished
    node_count: int
    grouped: tuple[IntArray, IntArray] | None = None
    """`rows_by_group` of a table in which these and possibly more pods run, or None."""
    counts_finished: bool = False  # whether finished pods that no API server has stored count on their nodes
    derived: Derived = field(default_factory=dict)
    """Values computed from the pods alone, whatever their nodes; shared by tables that differ only in the nodes."""
    _requests: dict[RequestOptions, Column[PodRequest]] = field(default_factory=dict)
    _known: dict[RequestOptions, dict[tuple[int, int], tuple[PodSpec, PodStatus, PodRequest]]] = field(
        default_factory=dict
    )
    """Requests by the identities of a spec and a status, which the values keep alive; shared by all tables that derive
    from one."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def listed(self) -> IntArray | None:
        """(pod,) `node` at the start of the current pod group's cycle, or None."""
        return None

    def __getitem__(self, row: int) -> Pod:
        """Return the pod as a typed object."""
        return Pod(
            metadata=ObjectMeta(
                name=self.names[row],
                namespace=self.namespaces[row],
                uid=self.uids[row],
                labels=self.labels[row],
                annotations=self.annotations[row],
                owner_references=self.owners[row],
                creation_timestamp=self.creation_timestamps[row],
                deletion_timestamp=self.deletion_timestamps[row],
            ),
            spec=msgspec.structs.replace(self.specs[row], node_name=self.node_names[row]),
            status=msgspec.structs.replace(
                self.statuses[row],
                phase=self.phases[row],
                start_time=self.start_times[row],
                nominated_node_name=self.nominated_node_names[row],
            ),
        )

    def key(self, row: int) -> str:
        """`namespace/name`."""
        return f"{self.namespaces[row]}/{self.names[row]}"

    def keys(self, rows: Sequence[int]) -> list[str]:
        spaces, names, codes = self.namespaces.values, self.names, self.namespaces.codes[[*rows]].tolist()
        return [f"{spaces[code]}/{names[row]}" for code, row in zip(codes, rows, strict=True)]

    def in_namespace(self, namespace: str) -> BoolArray:
        """(pod,) whether the pod is in the namespace."""
        return self.namespaces.where(lambda own: own == namespace)

    def is_like(self, first: int, other: int) -> bool:
        """Return whether two pods are identical except for their names, and neither is terminating."""
        is_same = all(int(codes[first]) == int(codes[other]) for codes in self._compared_codes)
        return is_same and not (self.deletion_timestamps[first] or self.deletion_timestamps[other])

    def class_numbers(self, rows: IntArray) -> IntArray:
        """Return (row,) equal numbers for pods that are identical except for their names."""
        return reduce(pair_codes, (codes[rows] for codes in self._compared_codes))

    @property
    def _compared_codes(self) -> tuple[IntArray, ...]:
        own = self.specs.codes, self.labels.codes, self.namespaces.codes
        return *own, self.owners.codes, self.statuses.codes, self.annotations.codes

    @_node_independent
    def priorities(self) -> IntArray:
        """(pod,) int64; 0 by default, and if it is not known."""
        return self.specs.map(lambda spec: spec.priority or 0)

    @_node_independent
    def has_unknown_priority(self) -> BoolArray:
        """(pod,) whether its priority is that of a PriorityClass which the snapshot lacks."""
        return self.specs.where(lambda spec: spec.has_unknown_priority)

    @_node_independent
    def terminating(self) -> BoolArray:
        """(pod,) whether the pod has a deletion timestamp."""
        return np.array([bool(stamp) for stamp in self.deletion_timestamps], dtype=np.bool_)

    @_node_independent
    def started(self) -> IntArray:
        """(pod,) int64 nanoseconds since 1970 of the start, `timestamps.LATEST` for pods that have not started. Raises
        `InputError` with the pod and the field for an invalid time."""
        times: dict[str | None, int] = {None: LATEST, "": LATEST}
        for row, text in enumerate(self.start_times):
            if text and text not in times:
                with Place(object=f"Pod {self.key(row)}", field="status.startTime"):
                    times[text] = nanoseconds(text)
        return np.array([times[text] for text in self.start_times], dtype=np.int64)

    def creation_time(self, row: int) -> int | None:
        """Return the nanoseconds since 1970 of the creation; None if it is unknown. Raises `InputError` with the pod
        and the field for an invalid time."""
        return self._time(row, self.creation_timestamps[row], "metadata.creationTimestamp")

    def deletion_time(self, row: int) -> int | None:
        """Return the nanoseconds since 1970 of the deletion timestamp, as `creation_time` does."""
        return self._time(row, self.deletion_timestamps[row], "metadata.deletionTimestamp")

    def _time(self, row: int, text: str | None, field: str) -> int | None:
        if not text:
            return None
        with Place(object=f"Pod {self.key(row)}", field=field):
            return nanoseconds(text)

    @property
    def nominated(self) -> tuple[int, ...]:
        """Rows of pods with a nominated node and without a node."""
        return self._nominated

    @_node_independent
    def _nominated(self) -> tuple[int, ...]:
        return tuple(row for row, name in enumerate(self.nominated_node_names) if name and not self.node_names[row])

    @property
    def finished(self) -> BoolArray:
        """(pod,) whether it has finished."""
        return self.phases.where(lambda phase: phase in FINISHED)

    @property
    def pending(self) -> tuple[int, ...]:
        return self._pending

    @_node_independent
    def _pending(self) -> tuple[int, ...]:
        unfinished = ~self.finished
        return tuple(int(row) for row in np.flatnonzero(~self.node_names.where(bool) & unfinished))

    @cached_property
    def _rows_by_node(self) -> tuple[IntArray, IntArray]:
        return self.grouped or rows_by_group(self.node, self.node_count)

    def finalizers_of_others(self, row: int) -> tuple[str, ...]:
        """Return the finalizers of a terminating pod that no component of Kubernetes removes once the pod has ended."""
        return tuple(name for name in self.finalizers.get(self.key(row), ()) if name not in OWN_FINALIZERS)

    def on_node(self, node: ClusterRow) -> IntArray:
        """Return rows of the pods on a node, in load order."""
        order, start = self._rows_by_node
        rows = order[start[node] : start[node + 1]]
        return rows if self.grouped is None else rows[self.node[rows] == node]

    @_node_independent
    def _rows_with_host_ports(self) -> IntArray:
        return np.flatnonzero(self.specs.where(lambda spec: bool(host_ports(spec))))

    @_node_independent
    def of_control_plane(self) -> Sequence[int]:
        """Rows of the pods in the namespaces of the control plane's components, OpenShift's included."""
        names = ("kube-system", *(f"openshift-kube-{item}" for item in ("scheduler", "controller-manager")))
        return np.flatnonzero(self.namespaces.where(names.__contains__)).tolist()

    @property
    def with_host_ports(self) -> IntArray:
        """Rows of running pods that use host ports."""
        rows = self._rows_with_host_ports
        return rows[self.node[rows] >= 0]

    @_node_independent
    def rows_by_claim_name(self) -> Mapping[str, Sequence[int]]:
        """Return the pods by the name of a PersistentVolumeClaim that they use, in any namespace."""
        rows: dict[str, list[int]] = {}
        concerned = self.specs.where(lambda spec: any(map(_has_claim, spec.volumes)))
        for row in np.flatnonzero(concerned).tolist():
            for name in {claim_name(self.names[row], volume) for volume in self.specs[row].volumes}:
                if name is not None:
                    rows.setdefault(name, []).append(row)
        return rows

    def rows_with_claim(self, key: str) -> list[int]:
        """Return rows of the pods that use a PersistentVolumeClaim, given as `namespace/name`."""
        namespace, _, name = key.partition("/")
        return [row for row in self.rows_by_claim_name.get(name, ()) if self.namespaces[row] == namespace]

    def rows_of_controllers(self, kind: str, names: Iterable[str], prefix: str = "") -> IntArray:
        """Return rows, ascending, of the pods whose controller is of this kind and has one of these names, or a name
        that starts with the prefix. The namespace may be any."""
        ranges = [(name, f"{name}\0") for name in names] + [(prefix, f"{prefix}\U0010ffff")] * bool(prefix)
        known, (order, start) = self._controllers, self._rows_by_owners
        codes = {
            code
            for first, end in ranges
            for _, _, code in known[bisect_left(known, (kind, first)) : bisect_left(known, (kind, end))]
        }
        return np.sort(np.concatenate([order[:0], *(order[start[code] : start[code + 1]] for code in codes)]))

    @_node_independent
    def _controllers(self) -> list[tuple[str, str, int]]:
        """Kind, name, and the code in `owners` of each controller, sorted."""
        pairs = ((owner, code) for code, owners in enumerate(self.owners.values) for owner in owners)
        return sorted((owner.kind, owner.name, code) for owner, code in pairs if owner.controller)

    @_node_independent
    def _rows_by_owners(self) -> tuple[IntArray, IntArray]:
        return rows_by_group(self.owners.codes, len(self.owners.values))

    @_node_independent
    def finished_unstored(self) -> BoolArray:
        """(pod,) whether it has finished and has no creation timestamp, so that no API server has stored it."""
        finished = self.finished
        return finished & np.array([not stamp for stamp in self.creation_timestamps], dtype=np.bool_)

    def with_finished(self, nodes: Mapping[str, ClusterRow]) -> PodTable:
        """Count `finished_unstored` pods on their nodes; `nodes` is name to row."""
        node = np.where(self.finished_unstored, self.node_names.map(lambda name: nodes.get(name, -1)), self.node)
        return replace(self, node=node, grouped=None, counts_finished=True)

    def placed(self, rows: IntArray, nodes: IntArray | int) -> PodTable:
        """Assign these pods to these nodes; -1 means no node."""
        node = self.node.copy()
        node[rows] = nodes
        return replace(self, node=node, grouped=None)

    def moved(self, node: IntArray, node_count: int) -> PodTable:
        """Assign every pod as `node` (pod,) says, among other nodes."""
        return replace(self, node=node, node_count=node_count, grouped=None, counts_finished=True)

    def with_pods(self, pods: Sequence[Pod]) -> PodTable:
        """Append pods without a node."""
        count = len(pods)

        def grown(column: Column[_T], values: Sequence[_T]) -> Column[_T]:
            first = len(column.values)
            codes = np.arange(first, first + count, dtype=np.int64)
            return Column(np.concatenate([column.codes, codes]), [*column.values, *values])

        return replace(
            self,
            rows={**self.rows, **{pod.key: len(self) + i for i, pod in enumerate(pods)}},
            names=[*self.names, *(pod.metadata.name for pod in pods)],
            namespaces=grown(self.namespaces, [pod.metadata.namespace for pod in pods]),
            uids=[*self.uids, *(pod.metadata.uid for pod in pods)],
            labels=grown(self.labels, [pod.metadata.labels for pod in pods]),
            annotations=grown(self.annotations, [pod.metadata.annotations for pod in pods]),
            owners=grown(self.owners, [pod.metadata.owner_references for pod in pods]),
            specs=grown(self.specs, [replace(pod.spec, node_name="") for pod in pods]),
            statuses=grown(self.statuses, [_kept(pod.status) for pod in pods]),
            phases=grown(self.phases, ["" for _ in pods]),
            start_times=[*self.start_times, *(None for _ in pods)],
            creation_timestamps=[*self.creation_timestamps, *(pod.metadata.creation_timestamp for pod in pods)],
            deletion_timestamps=[*self.deletion_timestamps, *(None for _ in pods)],
            nominated_node_names=[*self.nominated_node_names, *(pod.status.nominated_node_name for pod in pods)],
            node_names=grown(self.node_names, [pod.spec.node_name for pod in pods]),
            node=np.concatenate([self.node, np.full(count, -1, dtype=np.int64)]),
            grouped=None,
            derived={},
            _requests={},
        )

    def with_pod_copies(self, copies: PodCopies) -> Self:
        """Append copies of a pod; their names must be new."""
        count, pod, numbers = len(copies), copies.model, copies.numbers
        metadata, nothing = pod.metadata, [None] * count
        return replace(
            self,
            rows=_RowsOfCopies(self.rows, copies, len(self)),
            names=_join_texts(self.names, _NumberedTexts(copies.prefix, numbers)),
            namespaces=self.namespaces.with_copies(metadata.namespace, count),
            uids=_join_texts(self.uids, _NumberedTexts(copies.uid_prefix, numbers)),
            labels=self.labels.with_copies(dict(metadata.labels), count),
            annotations=self.annotations.with_copies(dict(metadata.annotations), count),
            owners=self.owners.with_copies(metadata.owner_references, count),
            specs=self.specs.with_copies(pod.spec, count),
            statuses=self.statuses.with_copies(_kept(pod.status), count),
            phases=self.phases.with_copies(pod.status.phase, count),
            start_times=[*self.start_times, *nothing],
            creation_timestamps=[*self.creation_timestamps, *nothing],
            deletion_timestamps=[*self.deletion_timestamps, *nothing],
            nominated_node_names=[*self.nominated_node_names, *[""] * count],
            node_names=self.node_names.with_copies("", count),
            node=np.concatenate([self.node, np.full(count, -1, dtype=np.int64)]),
            grouped=None,
            derived={},
            _requests={},
        )

    def with_spec(self, row: int, spec: PodSpec) -> PodTable:
        """Replace the spec of one pod, with the priority in it."""
        codes = self.specs.codes.copy()
        codes[row] = len(self.specs.values)
        specs = Column(codes, [*self.specs.values, replace(spec, node_name="")])
        return replace(self, specs=specs, derived={}, _requests={})

    def with_nominations(self, nodes: Mapping[int, str]) -> PodTable:
        """Replace the nominated nodes of some rows."""
        names = [nodes.get(row, name) for row, name in enumerate(self.nominated_node_names)]
        return replace(self, nominated_node_names=names, derived={})

    def with_deletions(self, rows: Collection[int], time: str | None) -> PodTable:
        """Make some rows terminating since `time`; with None, no longer."""
        stamps = [time if row in rows else stamp for row, stamp in enumerate(self.deletion_timestamps)]
        return replace(self, deletion_timestamps=stamps, derived={})

    def with_copies(self, rows: IntArray, nodes: ClusterRows, node_count: int) -> PodTable:
        """Append copies of some pods, which run on `nodes`."""
        if not len(rows):  # columns of many pods are shared, not copied
            return replace(self, node_count=node_count, grouped=None, derived={})

        def grown(column: Column[_T]) -> Column[_T]:
            return Column(np.concatenate([column.codes, column.codes[rows]]), column.values)

        columns = {
            name: grown(column) if isinstance(column, Column) else [*column, *(column[row] for row in rows)]
            for name, column in self._columns()
        }
        return replace(
            self,
            **columns,
            node=np.concatenate([self.node, nodes]),
            node_count=node_count,
            grouped=None,
            derived={},
            _requests={options: grown(column) for options, column in self._requests.items()},
        )

    def only(self, rows: IntArray) -> PodTable:
        """Keep only these pods, in this order."""
        columns = {
            name: column.take(rows) if isinstance(column, Column) else [column[row] for row in rows]
            for name, column in self._columns()
        }
        keys = {self.key(row): number for number, row in enumerate(rows.tolist())}
        return replace(self, **columns, rows=keys, node=self.node[rows], grouped=None, derived={}, _requests={})

    def _columns(self) -> Iterator[tuple[str, Column[object] | Sequence[object]]]:
        """Yield the columns but for `node`, with their names."""
        return ((name, getattr(self, name)) for name in _COLUMNS)

    def without(self, gone: IntArray) -> PodTable:
        """Delete pods: their rows stay, without a node and not pending."""
        node = self.node.copy()
        node[gone] = -1
        names = self.nominated_node_names
        ended = set(gone.tolist())
        if not ended.isdisjoint(self.nominated):
            names = ["" if row in ended else name for row, name in enumerate(names)]
        derived = self.derived if names is self.nominated_node_names else {}
        if not ended.isdisjoint(pending := self.pending):
            derived = {**derived, PodTable._pending: tuple(row for row in pending if row not in ended)}
        return replace(self, node=node, nominated_node_names=names, grouped=self._rows_by_node, derived=derived)

    def tally(self, tally: Tally) -> IntArray:
        """(node,) int64 the sum of the weights of each node's pods; read-only."""
        rows = tally.candidates(self)
        rows = rows[self.node[rows] >= 0]
        weights = tally.weights(self, rows)
        return np.bincount(self.node[rows], weights=weights, minlength=self.node_count).astype(np.int64)

    def rows_in_namespaces(self, rule: Callable[[str], bool]) -> IntArray:
        """Return rows of the pods in the namespaces for which `rule` holds."""
        order, start = self._rows_by_namespace
        codes = [code for code, name in enumerate(self.namespaces.values) if rule(name)]
        parts = [order[start[code] : start[code + 1]] for code in codes]
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    @_node_independent
    def _rows_by_namespace(self) -> tuple[IntArray, IntArray]:
        return rows_by_group(self.namespaces.codes, len(self.namespaces.values))

    def numbers(self, rule: NodeRule, number: Callable[[ClusterRow], int], rows: ClusterRows) -> IntArray:
        """(row,) int64 the result of a rule for these nodes, each by `number`."""
        return np.fromiter(map(number, each_cluster_row(rows)), dtype=np.int64, count=len(rows))

    def requests(self, options: RequestOptions) -> Column[PodRequest]:
        """(pod,) effective requests, computed once per distinct template and resize state."""
        if options not in self._requests:
            self._requests[options] = self._count_requests(options)
        return self._requests[options]

    def _count_requests(self, options: RequestOptions) -> Column[PodRequest]:
        pairs = self.specs.codes * max(len(self.statuses.values), 1) + self.statuses.codes
        distinct, codes = np.unique(pairs, return_inverse=True)
        width = max(len(self.statuses.values), 1)
        # pods of a StatefulSet differ in their claims, and so in their specs, but not in their requests
        counted: dict[tuple[bytes, int], PodRequest] = {}
        known = self._known.setdefault(options, {})
        values: list[PodRequest] = []
        for pair in distinct.tolist():
            spec, status = self.specs.values[pair // width], self.statuses.values[pair % width]
            if (same := known.get((id(spec), id(status)))) is not None:
                values.append(same[2])
                continue
            key = _ENCODER.encode((spec.containers, spec.init_containers, spec.overhead, spec.resources)), pair % width
            if key not in counted:
                counted[key] = pod_request(spec, status, options)
            known[id(spec), id(status)] = spec, status, counted[key]
            values.append(counted[key])
        return Column(codes.astype(np.int64), values)


def _has_claim(volume: Volume) -> bool:
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None


def _kept(status: PodStatus) -> PodStatus:
    """Return the status without phase, times, and nomination, which have their own columns."""
    return PodStatus(conditions=status.conditions)


_COLUMNS = (
    "names", "namespaces", "uids", "labels", "annotations", "owners", "specs", "statuses", "phases", "start_times",
    "creation_timestamps", "deletion_timestamps", "nominated_node_names", "node_names",
)  # fmt: skip


class Amounts:
    """(pod, resource) int64 amounts. Pods of equal ones share a row, which is looked up when it is read."""

    __slots__ = ("_codes", "_values")

    def __init__(self, codes: IntArray, values: IntArray) -> None:
        self._codes, self._values = codes, values

    def __getitem__(self, key: int | IntArray | tuple[int | IntArray, int | IntArray | list[int]]) -> IntArray:
        """Of pods, or of pods and resources, as of an array."""
        if isinstance(key, tuple):
            values: IntArray = self._values[self._codes[key[0]], key[1]]
        else:
            values = self._values[self._codes[key]]
        return values

    @property
    def may_overflow(self) -> bool:
        """Return whether a sum of these amounts may exceed int64. A negative one already has."""
        most = MAX_INT64 // max(len(self._codes), 1)
        return bool(self._values.min(initial=0) < 0 or self._values.max(initial=0) > most)

    def joined(self, codes: IntArray, values: IntArray) -> Amounts:
        """With more pods behind them."""
        return Amounts(np.concatenate([self._codes, codes + len(self._values)]), np.concatenate([self._values, values]))


class RequestTable(Struct, frozen=True, kw_only=True):
    count: int
    matrix: Amounts  # (pod, resource): milli-units of cpu, units of everything else
    nonzero: Amounts  # (pod, 2): cpu and memory with the scheduler's defaults for containers that ask for none

    @classmethod
    def of(cls, requests: Column[PodRequest], names: ResourceNames) -> RequestTable:
        count, (matrix, nonzero) = len(requests), _amounts(requests.values, names)
        return cls(count=count, matrix=Amounts(requests.codes, matrix), nonzero=Amounts(requests.codes, nonzero))

    def with_more(self, requests: Column[PodRequest], names: ResourceNames) -> RequestTable:
        """The table of more pods, whose requests stand behind those that it has."""
        values, codes = np.unique(requests.codes[self.count :], return_inverse=True)
        matrix, nonzero = _amounts([requests.values[int(code)] for code in values], names)
        return RequestTable(
            count=len(requests), matrix=self.matrix.joined(codes, matrix), nonzero=self.nonzero.joined(codes, nonzero)
        )


def _amounts(requests: Sequence[PodRequest], names: ResourceNames) -> tuple[IntArray, IntArray]:
    """(request, resource) as `RequestTable.matrix`, and (request, 2) as its `nonzero`."""
    matrix = np.array([names.row(request.amounts) for request in requests], dtype=np.int64)
    nonzero = np.array([(request.nonzero_cpu, request.nonzero_memory) for request in requests], dtype=np.int64)
    return matrix.reshape(-1, len(names)), nonzero.reshape(-1, 2)


def host_ports(spec: PodSpec, *, sidecars: bool = True) -> tuple[ContainerPort, ...]:
    """Return a pod's host ports: those of sidecars, if they count, then those of its containers."""
    restartable = [container for container in spec.init_containers if sidecars and container.is_restartable_init]
    running = (*restartable, *spec.containers)
    return tuple([port for container in running for port in container.ports if port.host_port > 0])


# The pod groups of scheduling.k8s.io, behind the gate GenericWorkload, and their pods.
# From 1.36 on, a group is a PodGroup. In 1.35 it is an entry of a Workload; here it is a PodGroup named
# `train/workers`, or `train/workers/0` for pods with a replica key.

_PodGroups = Mapping[str, PodGroup]  # `namespace/name` to pod group


def group_name(spec: PodSpec, *, of_workloads: bool) -> str | None:
    """Return the group that a pod names, in a PodGroup or Workload, or None."""
    if not of_workloads:
        return spec.scheduling_group.pod_group_name if spec.scheduling_group is not None else None
    named = spec.workload_ref
    if named is None:
        return None
    replica = f"/{named.pod_group_replica_key}" if named.pod_group_replica_key else ""
    return f"{named.name}/{named.pod_group}{replica}"


def find_group(groups: _PodGroups, namespace: str, name: str) -> PodGroup | None:
    """Find the group with this name; all replicas of a Workload's group share it."""
    return groups.get(f"{namespace}/{'/'.join(name.split('/')[:2])}")


def members_of(pods: PodTable, namespace: str, name: str) -> BoolArray:
    """(row,) whether the pod names the group."""
    of_workloads = "/" in name
    mask = pods.specs.where(lambda spec: group_name(spec, of_workloads=of_workloads) == name)
    return mask & pods.in_namespace(namespace)


def group_of_pod(groups: _PodGroups, pod: Pod) -> PodGroup | None:
    """Return the PodGroup that a pod names, if it exists."""
    name = group_name(pod.spec, of_workloads=False)
    return None if name is None else find_group(groups, pod.metadata.namespace, name)


def whole_group_of(groups: _PodGroups, pods: PodTable, row: int) -> PodGroup | None:
    """Return the PodGroup of a pod if preempting the pod means preempting the whole group."""
    named = pods.specs[row].scheduling_group
    if named is None or named.pod_group_name is None:
        return None
    group = find_group(groups, pods.namespaces[row], named.pod_group_name)
    return group if group is not None and group.is_preempted_whole else None


def group_priority(group: PodGroup, classes: Mapping[str, PriorityClass]) -> int:
    """Return the group's priority: that of its class, or the cluster's default. Upstream: PodGroupPriority in
    pkg/scheduler/util/utils.go."""
    if group.spec.priority is not None:
        return group.spec.priority
    name = group.spec.priority_class_name
    of_class = classes.get(name) if name else next((it for it in classes.values() if it.global_default), None)
    return 0 if of_class is None else of_class.value
