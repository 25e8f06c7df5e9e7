"""Loads snapshots from files or a live cluster: the only module that uses both `sources` and `snapshot`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kschedx.apiserver.validation import validate_written_node, validate_written_pod_spec
from kschedx.errors import InputError, Place, nearest
from kschedx.framework.schedule import NO_NODES
from kschedx.kube.controllers import stored_metadata
from kschedx.kube.kinds import KINDS, READ_LIVE, metadata_of
from kschedx.kube.kubectl import listed_kinds
from kschedx.kube.resources import RequestOptions
from kschedx.kube.snapshot_header import merge_headers
from kschedx.progress import Phase, report_progress
from kschedx.snapshot.build import SnapshotBuilder
from kschedx.snapshot.snapshot import MissingCause, Snapshot, Source
from kschedx.sources.compression import SizeBudget
from kschedx.sources.dumps import Dump, LeftOut, See, ignore
from kschedx.sources.files import read
from kschedx.sources.lists import Batch
from kschedx.sources.manifests import HEAD, Refuse

if TYPE_CHECKING:
    from kschedx.export.slim import Slim
    from kschedx.sources.live.client import ApiServer
    from kschedx.sources.live.cluster import Event

_AS_TODAY = RequestOptions(use_status_resources=True, pod_level_resources=True, pod_level_in_place=True)
"""How the newest version counts requests; `framework.runtime.request_options` returns it for any version and gates."""


def load(
    paths: Sequence[str],
    *,
    check: bool = False,
    ignore_orphans: bool | None = None,
    keep: Slim | None = None,
    see: See = ignore,
    whole: bool = False,
) -> Snapshot:
    """Return a snapshot of everything in files, folders, and archives; `-` is standard input.

    `whole` keeps the manifests of pods and nodes. `keep` collects the objects of the snapshot, and `see` is called with
    every recognized dump of another tool.

    The source of a `kschedx snapshot` file is the name in the file, so that answers do not depend on the file's name.

    `check` refuses what the library accepts in objects that no API server has stored yet (without a creation
    timestamp). These are invalid amounts, selectors, and operators, and unfinished pods on nodes that do not exist,
    unless a snapshot states that it holds all nodes, or none. `ignore_orphans` accepts such pods; if it is False, those
    of a cluster are refused too. Raises `InputError` with the place.
    """
    builder, names = SnapshotBuilder(whole=whole), []
    dumps: list[Dump] = []
    left_out: list[str] = []

    def seen(part: Dump | LeftOut) -> None:
        if isinstance(part, Dump):
            dumps.append(part)
        elif not part.is_twin:
            left_out.append(part.source)
        see(part)

    with without_collection():
        for path in paths:
            known = len(builder.headers)
            for batch in batches(path, seen):
                builder.add(batch)
                if keep is not None:
                    keep.add(batch)
            names.append(merge_headers(builder.headers[known:]).source or path)
        report_progress(Phase.DECIDING)
        snapshot = Snapshot.of_contents(builder.finish(", ".join(names)))
        snapshot.nodes(_AS_TODAY)  # every question about the cluster needs them
    source = replace(_with_dumps(snapshot.source, dumps), is_dump=_is_stored(snapshot), left_out=tuple(left_out))
    none = {"Node"} if _reports_no_nodes(snapshot) else set[str]()
    source = replace(source, complete=source.complete.union(none, *map(listed_kinds, _files(paths))))
    snapshot = replace(snapshot, source=source)
    if check:
        orphans = _refused_rows(snapshot, ignore_orphans)
        if orphans and "Node" not in source.missing and "Node" not in source.complete:
            _refuse_orphan(builder, snapshot, orphans)
        for error in written_errors(builder, snapshot):
            raise error
    return snapshot


def _files(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield from (path, *map(str, Path(path).glob("missing-*") if Path(path).is_dir() else ()))


def _reports_no_nodes(snapshot: Snapshot) -> bool:
    """Return whether kube-scheduler reports that the cluster has no nodes. The files hold none, and no pod on one."""
    if snapshot.cluster.nodes or snapshot.orphans:
        return False
    conditions = (condition for status in snapshot.pods.statuses.values for condition in status.conditions)
    events = snapshot.failed_scheduling.values()
    return NO_NODES in {*(condition.message for condition in conditions), *(event.message for event in events)}


def batches(path: str, see: See, refuse: Refuse | None = None) -> Iterator[Batch]:
    """Yield the batches of `sources.files.read`, and report the progress of reading."""
    report_progress(Phase.READING, of=path)
    size, done, budget = _size(path), 0, SizeBudget(path)
    for batch in read(path, see, refuse, budget):
        done += len(batch.items)
        # a plain file is counted only up to its head; the total of a compressed file is estimated
        whole = size if budget.packed <= HEAD else done * size // budget.packed
        report_progress(Phase.READING, done // 10**6, max(done, whole) // 10**6 if size else None, "MB", of=path)
        yield batch


def _size(path: str) -> int:
    """Return the size in bytes; 0 if the path is no file."""
    try:
        return Path(path).stat().st_size if Path(path).is_file() else 0
    except OSError:
        return 0


def _is_stored(snapshot: Snapshot) -> bool:
    """Return whether an API server has stored the nodes; without nodes, any other object. Nodes alone with what their
    kubelets report are no whole cluster either."""
    if nodes := snapshot.cluster.nodes:
        are_alone = snapshot.source.kinds.keys() == {"Node"}
        is_reported = are_alone and any(node.status.node_info.kubelet_version for node in nodes)
        return is_reported or any(node.metadata.is_stored for node in nodes) or any(snapshot.pods.uids)
    manifests = map(stored_metadata, chain(snapshot.workloads.values(), snapshot.custom_resources.values()))
    records = (kind.record for kind in KINDS.values() if kind.record is not None)
    others = (metadata_of(each) for record in records for each in snapshot.of(record))
    pods = snapshot.pods
    return any((*pods.creation_timestamps, *pods.uids, *(each.is_stored for each in chain(manifests, others))))


def _with_dumps(source: Source, dumps: Sequence[Dump]) -> Source:
    """Return the source with the kinds that the dumps of other tools lack, unless another file has them."""
    lacks = {
        lack.kind: lack.what
        for dump in dumps
        for lack in dump.lacks
        if not (lack.is_whole and lack.kind in source.kinds)
    }
    formats = tuple(dict.fromkeys((*source.formats, *(dump.format for dump in dumps))))
    return replace(source, formats=formats, lacks={**source.lacks, **lacks})


def load_live(
    server: ApiServer,
    source: str,
    watch: Callable[[Event], None] = lambda _: None,
    *,
    namespace: str = "",
    keep: Slim | None = None,
    whole: bool = False,
    on_demand: bool = False,
) -> Snapshot:
    """Return a snapshot of a live cluster. `source` is its name in messages, and `watch` is called with every step of
    reading.

    `namespace` is the only one whose objects are listed; empty for all. `keep` collects the objects of the snapshot,
    `whole` keeps the manifests of pods and nodes, and `on_demand` also reads kinds that scheduling does not need.
    `Snapshot.source.missing` names kinds that are forbidden or that the server does not serve. Raises `InputError` if
    the server cannot be read.
    """
    from kschedx.sources.live.cluster import AT_ALL_TIMES, Unread, read, server_version
    from kschedx.sources.live.lists import ListPage, ListRestarted

    builder = SnapshotBuilder(whole=whole)
    missing: dict[str, MissingCause] = {}
    kinds = tuple(READ_LIVE.values()) if on_demand else AT_ALL_TIMES
    with without_collection():
        version = server_version(server)
        for event in read(server, kinds, namespace=namespace):
            watch(event)
            match event:
                case ListPage():
                    for piece in event.pieces():
                        builder.add_page(piece)
                        if keep is not None:
                            keep.add_page(piece)
                case ListRestarted(kind=kind):
                    _forget(kind, builder, keep)
                case Unread(kind=kind, forbidden=forbidden):
                    _forget(kind, builder, keep)
                    if forbidden or kind in KINDS:
                        missing[kind] = MissingCause.FORBIDDEN if forbidden else MissingCause.ABSENT
        snapshot = Snapshot.of_contents(builder.finish(source))
        snapshot.nodes(_AS_TODAY)
    origin = replace(
        snapshot.source,
        missing=dict(sorted(missing.items())),
        complete=frozenset(kind.key for kind in kinds if kind.key in KINDS) - missing.keys(),
        server_version=version,
        namespaces=(namespace,) if namespace else (),
    )
    return replace(snapshot, source=origin)


def _forget(kind: str, builder: SnapshotBuilder, keep: Slim | None) -> None:
    builder.forget(kind)
    if keep is not None:
        keep.forget(kind)


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable garbage collection: loading creates hundreds of thousands of small objects, none of them garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _refused_rows(snapshot: Snapshot, ignore_orphans: bool | None) -> tuple[int, ...]:
    """The rows of the pods whose missing node is an error: in a cluster, a node can be deleted before its pods."""
    if ignore_orphans is None:
        pods = snapshot.pods
        signs = pods.creation_timestamps, pods.uids, pods.deletion_timestamps
        return tuple(row for row in snapshot.orphans if not any(sign[row] for sign in signs))
    return () if ignore_orphans else snapshot.orphans


def refuse_without_nodes(snapshot: Snapshot) -> None:
    """Raise `InputError` for a cluster without nodes, unless it is known to have none: it is hardly complete."""
    if not snapshot.cluster.nodes and not snapshot.source.is_complete("Node"):
        raise _without_nodes(snapshot)


def _without_nodes(snapshot: Snapshot) -> InputError:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(snapshot.source.kinds.items())) or "nothing"
    hint = f"it holds {kinds}; the output of `kubectl get nodes -o json` is missing"
    return InputError("a cluster without nodes", source=snapshot.source.text, hint=hint)


def _refuse_orphan(builder: SnapshotBuilder, snapshot: Snapshot, orphans: Sequence[int]) -> None:
    if not snapshot.cluster.nodes:
        raise _without_nodes(snapshot)
    pods = snapshot.pods
    row = orphans[0]
    name = pods.node_names[row]
    others = len(orphans) - 1
    more = f" (and {others} more pod{'s' if others > 1 else ''} on missing nodes)" if others else ""
    place = builder.place_of_pod(pods.namespaces[row], pods.names[row])
    raise InputError(f'spec.nodeName: there is no node "{name}"{more}', hint=nearest(name, snapshot.cluster.index)).at(
        place
    )


def written_errors(builder: SnapshotBuilder, snapshot: Snapshot) -> Iterator[InputError]:
    """Yield what an API server would refuse in objects that none has stored yet (without a creation timestamp)."""
    for node in snapshot.cluster.nodes:
        if not node.metadata.creation_timestamp:
            for error in validate_written_node(node):
                yield error.at(Place(object=f"Node {node.name}")).at(builder.place_of_node(node.name))
    pods = snapshot.pods
    first_row: dict[int, int] = {}
    for row, (code, stamp) in enumerate(zip(pods.specs.codes.tolist(), pods.creation_timestamps, strict=True)):
        if not stamp:
            first_row.setdefault(code, row)
    for code, row in first_row.items():
        for error in validate_written_pod_spec(pods.specs.values[code]):
            place = builder.place_of_pod(pods.namespaces[row], pods.names[row])
            yield error.at(Place(object=f"Pod {pods.key(row)}")).at(place)
