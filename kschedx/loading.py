"""Files, or a live cluster, to a snapshot: the only place that knows both `sources` and `snapshot`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kschedx.api.resources import RequestOptions
from kschedx.api.validation import validate_written_node, validate_written_pod_spec
from kschedx.errors import InputError, Place, nearest
from kschedx.snapshot.build import SnapshotBuilder
from kschedx.snapshot.snapshot import Missing, Snapshot
from kschedx.sources.files import read

if TYPE_CHECKING:
    from kschedx.sources.live.client import ApiServer
    from kschedx.sources.live.reading import Event

AS_TODAY = RequestOptions(use_status_resources=True, pod_level_resources=True, pod_level_in_place=True)
"""How the newest release counts requests; `framework.runtime.request_options` says it for any release and gates."""


def load(paths: Sequence[str], *, check: bool = False) -> Snapshot:
    """A snapshot of everything in files and folders; `-` is standard input.

    `check` refuses what the library puts up with: unfinished pods on nodes that are not there and, in objects that no
    API server has stored yet (without a creation timestamp), amounts, selectors and operators that none would take.
    Raises `InputError` with the place.
    """
    builder = SnapshotBuilder()
    with _no_collection():
        for path in paths:
            for batch in read(path):
                builder.add(batch)
        snapshot = builder.finish(", ".join(paths))
        snapshot.nodes(AS_TODAY)  # what every question about the cluster begins with
    if check:
        if snapshot.orphans:
            _refuse_orphan(builder, snapshot)
        _refuse_written_nodes(builder, snapshot)
        _refuse_written_pods(builder, snapshot)
    return snapshot


def load_live(server: ApiServer, source: str, watch: Callable[[Event], None] = lambda _: None) -> Snapshot:
    """A snapshot of a live cluster; `source` is what a person calls it, and `watch` sees every step of the reading.

    Kinds that may not be read, or that the server does not know, are named in `Snapshot.source.missing`. Raises
    `InputError` where the server cannot be read.
    """
    from kschedx.sources.live.lists import ListPage, Restarted
    from kschedx.sources.live.reading import Unread, read, server_version

    builder = SnapshotBuilder()
    missing: dict[str, Missing] = {}
    with _no_collection():
        version = server_version(server)
        for event in read(server):
            watch(event)
            match event:
                case ListPage():
                    builder.add_page(event)
                case Restarted(kind=kind):
                    builder.forget(kind)
                case Unread(kind=kind, forbidden=forbidden):
                    builder.forget(kind)
                    missing[kind] = Missing.FORBIDDEN if forbidden else Missing.ABSENT
        snapshot = builder.finish(source)
        snapshot.nodes(AS_TODAY)
    named = replace(snapshot.source, missing=dict(sorted(missing.items())), server_version=version)
    return replace(snapshot, source=named)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without garbage collection: hundreds of thousands of small objects, none of them garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _refuse_orphan(builder: SnapshotBuilder, snapshot: Snapshot) -> None:
    pods = snapshot.pods
    row = snapshot.orphans[0]
    name = pods.node_names[row]
    more = (
        f" (and {len(snapshot.orphans) - 1} more pods on nodes that are not there)" if len(snapshot.orphans) > 1 else ""
    )
    place = builder.place_of_pod(pods.namespaces[row], pods.names[row])
    raise InputError(f'spec.nodeName: there is no node "{name}"{more}', hint=nearest(name, snapshot.cluster.index)).at(
        place
    )


def _refuse_written_nodes(builder: SnapshotBuilder, snapshot: Snapshot) -> None:
    for node in snapshot.cluster.nodes:
        if not node.metadata.creation_timestamp:
            for error in validate_written_node(node):
                raise error.at(Place(object=f"Node {node.name}")).at(builder.place_of_node(node.name))


def _refuse_written_pods(builder: SnapshotBuilder, snapshot: Snapshot) -> None:
    pods = snapshot.pods
    first_row: dict[int, int] = {}
    for row, (code, stamp) in enumerate(zip(pods.specs.codes.tolist(), pods.creation_timestamps, strict=True)):
        if not stamp:
            first_row.setdefault(code, row)
    for code, row in first_row.items():
        for error in validate_written_pod_spec(pods.specs.values[code]):
            place = builder.place_of_pod(pods.namespaces[row], pods.names[row])
            raise error.at(Place(object=f"Pod {pods.key(row)}")).at(place)
