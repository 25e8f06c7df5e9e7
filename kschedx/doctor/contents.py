"""What doctor remembers of a dump: a few facts of each object, and what could not be read."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, assert_never, cast

import msgspec
from msgspec import Raw, Struct

from kschedx.doctor.findings import Difference
from kschedx.doctor.objects import (
    COUNTED_BY,
    DumpClaim,
    DumpNode,
    DumpObject,
    DumpPod,
    DumpWorkload,
    Head,
    Item,
    difference,
    remember,
)
from kschedx.errors import InputError
from kschedx.kube.kinds import KINDS, ResourceKind, kind_of
from kschedx.kube.snapshot_header import SnapshotHeader, merged
from kschedx.loading import batches, without_collection, written_errors
from kschedx.progress import Phase, say
from kschedx.snapshot.build import SnapshotBuilder
from kschedx.snapshot.events import GROUPS as EVENT_GROUPS
from kschedx.snapshot.events import KIND as EVENT
from kschedx.snapshot.snapshot import Missing, Snapshot
from kschedx.sources.batch import RAWS, Batch, Origin
from kschedx.sources.dumps import Dump, Lack, LeftOut
from kschedx.sources.files import STDIN

if TYPE_CHECKING:
    from kschedx.sources.live.client import ApiServer
    from kschedx.sources.live.cluster import Event

# What doctor remembers of a dump: a few facts of each object that scheduling reads, and how many others there are.

MOST_PROBLEMS = 20
"""That are named; the others are counted."""
_CLUSTER_IDENTITY = "Namespace kube-system"


class Copy(Struct, kw_only=True):
    """Objects that were met a second time."""

    difference: Difference
    first: DumpObject
    second: DumpObject
    """The first of them, in both places."""
    kinds: Counter[str]


def _is_meant(kind: ResourceKind, item: Item) -> bool:
    """One of the few objects of a kind that are read."""
    metadata = item.metadata
    return metadata is not None and kind.is_read(metadata.namespace or "default", metadata.name or "")


class Contents:
    """Collects batches. What cannot be read is remembered, and the rest goes on."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, DumpObject]] = {kind: {} for kind in KINDS}
        """Kind to `namespace/name` (or name) to object."""
        self.not_read: Counter[str] = Counter()
        """Kind to number of the objects that scheduling does not read."""
        self.copies: dict[tuple[str, str, Difference], Copy] = {}
        """By the two sources and the difference."""
        self.kube_systems: list[tuple[DumpObject, DumpObject]] = []
        """The namespace kube-system with two uids: it lives as long as its cluster."""
        self.secrets: Counter[str] = Counter()
        """Source to number of Secrets."""
        self.problems: list[InputError] = []
        """The first MOST_PROBLEMS."""
        self.problem_count = 0
        self.files: dict[str, None] = {}
        """Sources with at least one object, in order."""
        self.headers: list[SnapshotHeader] = []
        """What snapshots among the files say of themselves, or the one that a live cluster would make."""
        self.dumps: list[Dump] = []
        self.left_out: list[str] = []
        """Files among others that hold no Kubernetes objects."""
        self._snapshots: set[str] = set()
        """Sources that are snapshots."""
        self._builder = SnapshotBuilder(refuse=self.refuse)

    # --- collecting

    def add(self, batch: Batch) -> None:
        """Raises `InputError` for text that is not JSON."""
        items: list[Item | None]
        try:
            items = batch.decode(_ITEMS)
        except msgspec.ValidationError:
            raws = batch.decode(RAWS)
            items = [_item(raw) for raw in raws]
        origin = batch.origin
        self.files.setdefault(origin.source)
        if batch.header is not None:
            self._snapshots.add(origin.source)
            if batch.header not in self.headers:
                self.headers.append(batch.header)
                self._see_former_dumps(batch.header)
        for index, item in enumerate(items):
            if item is not None:
                self._add(item, origin, index)
        self._builder.add(batch)

    def refuse(self, error: InputError) -> None:
        """A file, or the rest of it, cannot be read."""
        if self.problems and str(self.problems[-1]) == str(error):
            return  # reported twice: where it was noticed, and where the file ends for it
        self.problem_count += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(error)

    def _see_former_dumps(self, header: SnapshotHeader) -> None:
        """A snapshot lacks what the dumps lacked that it was made from."""
        if header.formats:
            lacks = tuple(Lack(kind=kind, what=what) for kind, what in header.lacks.items() if kind in KINDS)
            self.see(Dump(format=" and ".join(header.formats), place=header.source, lacks=lacks))

    def see(self, found: Dump | LeftOut) -> None:
        """What was read is a dump of another tool, or is beside one and holds nothing."""
        if isinstance(found, LeftOut):
            self.left_out.append(found.source)
        elif found not in self.dumps:
            self.dumps.append(found)

    def forget(self, kind: str) -> None:
        """Take back every object of a kind, as before its list is read again."""
        self.objects[kind] = {}
        self._builder.forget(kind)

    def _add(self, item: Item, origin: Origin, index: int) -> None:
        name, group = item.kind or "", (item.api_version or "").rpartition("/")[0]
        kind = kind_of(name, group)
        if kind is None or (kind.only and not _is_meant(kind, item)):
            if name == "Secret" and not group:
                self.secrets[origin.source] += 1
            self.not_read[_kind_name(name, group)] += 1
            return
        found = remember(item, kind.key, origin, index)
        known = self.objects[kind.key].setdefault(found.key, found)
        if known is not found and found.name:
            self._add_copy(known, found)

    def _add_copy(self, first: DumpObject, second: DumpObject) -> None:
        differs = difference(first, second)
        if first.title == _CLUSTER_IDENTITY and differs is Difference.OBJECT:
            self.kube_systems.append((first, second))
            return
        key = (first.origin.source, second.origin.source, differs)
        copy = self.copies.get(key)
        if copy is None:
            copy = self.copies[key] = Copy(difference=differs, first=first, second=second, kinds=Counter())
        copy.kinds[first.kind] += 1

    def finish(self) -> None:
        """What needs the whole snapshot: a PriorityClass that is not there, and values that no API server stores."""
        self.objects = {kind: dict(sorted(found.items())) for kind, found in self.objects.items()}
        self.not_read = Counter(dict(sorted(self.not_read.items())))
        try:
            snapshot = Snapshot.of_contents(self._builder.finish())
        except InputError as error:
            self.refuse(error)
            return
        for written in itertools.islice(written_errors(self._builder, snapshot), MOST_PROBLEMS):
            self.refuse(written)

    # --- looking

    @property
    def pods(self) -> dict[str, DumpPod]:
        return cast("dict[str, DumpPod]", self.objects["Pod"])

    @property
    def nodes(self) -> dict[str, DumpNode]:
        return cast("dict[str, DumpNode]", self.objects["Node"])

    @property
    def claims(self) -> dict[str, DumpClaim]:
        return cast("dict[str, DumpClaim]", self.objects["PersistentVolumeClaim"])

    @property
    def workloads(self) -> Iterator[DumpWorkload]:
        """Those that make pods themselves."""
        for kind in COUNTED_BY:
            yield from cast("dict[str, DumpWorkload]", self.objects[kind]).values()

    def number(self, kind: str) -> int:
        """Objects of a kind, also of one that is not read."""
        if kind in KINDS:
            return len(self.objects[kind])
        return sum(number for name, number in self.not_read.items() if name.partition(".")[0] == kind)

    @cached_property
    def header(self) -> SnapshotHeader:
        """What is known of the cluster besides its objects. To be asked for when everything is collected."""
        return merged(self.headers)

    def missing(self, kind: str) -> Missing | None:
        """Why the API server did not give the objects of a kind, where it was asked for them."""
        cause = self.header.missing.get(kind)
        return next((one for one in Missing if one.value == cause), None)

    def is_complete(self, kind: str) -> bool:
        """Every object of the kind is there: what is not there is not in the cluster either."""
        return kind in self.header.complete and not (self.header.namespaces and KINDS[kind].is_namespaced)

    @property
    def only_namespaces(self) -> tuple[str, ...]:
        """The namespaces to which everything is limited; empty for all."""
        return self.header.namespaces if self._snapshots >= self.files.keys() else ()

    @property
    def is_of_one_moment(self) -> bool:
        """It was taken of one cluster at one time."""
        return len(self.headers) == 1 and len(self.files) <= 1

    @property
    def is_empty(self) -> bool:
        return not self.not_read and not any(self.objects.values())


_ITEMS = msgspec.json.Decoder(list[Item | None])
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_ITEM = msgspec.json.Decoder(Item)
_HEAD = msgspec.json.Decoder(Head)


def _item(raw: Raw) -> Item | None:
    """As much as has the expected shape; None for what has no head of an object."""
    try:
        return _ITEM.decode(raw)
    except _BROKEN:
        pass
    try:
        head = _HEAD.decode(raw)
    except _BROKEN:
        return None
    return Item(kind=head.kind, api_version=head.api_version, metadata=head.metadata)


def _kind_name(kind: str, group: str) -> str:
    """`ConfigMap`, `Certificate.cert-manager.io`."""
    if kind == EVENT and group in EVENT_GROUPS:
        return kind
    return f"{kind}.{group}" if group else kind


# Files, folders and live clusters to `Contents`: what cannot be read is remembered, and the rest goes on.


def contents_of(paths: Sequence[str]) -> Contents:
    """What is in files and folders; `-` is standard input.

    Raises `InputError` for a path that is not there, and where nothing at all can be read.
    """
    contents = Contents()
    with without_collection():
        for path in paths:
            try:
                for batch in batches(path, contents.see, contents.refuse):
                    try:
                        contents.add(batch)
                    except InputError as error:
                        contents.refuse(error)
            except InputError as error:
                if path != STDIN and not os.path.lexists(path):
                    raise
                contents.refuse(error)
        say(Phase.CHECKING)
        contents.finish()
    if contents.is_empty and contents.problems:
        raise contents.problems[0]
    return contents


def contents_of_cluster(server: ApiServer, source: str, watch: Callable[[Event], None] = lambda _: None) -> Contents:
    """What a live cluster gives; `source` is what a person calls it, and `watch` sees every step.

    Raises `InputError` where it cannot be read.
    """
    from kschedx.sources.live.cluster import Tick, Unread, server_version
    from kschedx.sources.live.cluster import read as read_live
    from kschedx.sources.live.lists import ListPage, Restarted

    contents = Contents()
    missing: dict[str, str] = {}
    with without_collection():
        version = server_version(server)
        for event in read_live(server):
            watch(event)
            match event:
                case ListPage():
                    contents.add(event.with_kinds())
                case Restarted(kind=kind):
                    contents.forget(kind)
                case Unread(kind=kind, forbidden=forbidden):
                    contents.forget(kind)
                    missing[kind] = (Missing.FORBIDDEN if forbidden else Missing.ABSENT).value
                case Tick():
                    pass
                case _:
                    assert_never(event)
        say(Phase.CHECKING)
        contents.finish()
    complete = {
        kind: len(contents.objects[kind]) for kind, row in KINDS.items() if kind not in missing and not row.is_on_demand
    }
    contents.files = {source: None}
    contents.headers = [SnapshotHeader(source=source, server_version=version, complete=complete, missing=missing)]
    return contents
