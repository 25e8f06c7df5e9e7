"""Files, folders and live clusters to `Contents`: what cannot be read is remembered, and the rest goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kschedx.api.kinds import KINDS
from kschedx.api.snapshot_header import SnapshotHeader
from kschedx.doctor.contents import Contents
from kschedx.errors import InputError
from kschedx.loading import without_collection
from kschedx.snapshot.source import Missing
from kschedx.sources.files import STDIN, read

if TYPE_CHECKING:
    from kschedx.sources.live.client import ApiServer
    from kschedx.sources.live.reading import Event


def contents_of(paths: Sequence[str]) -> Contents:
    """What is in files and folders; `-` is standard input.

    Raises `InputError` for a path that is not there, and where nothing at all can be read.
    """
    contents = Contents()
    with without_collection():
        for path in paths:
            try:
                for batch in read(path, contents.see, contents.refuse):
                    try:
                        contents.add(batch)
                    except InputError as error:
                        contents.refuse(error)
            except InputError as error:
                if path != STDIN and not os.path.lexists(path):
                    raise
                contents.refuse(error)
        contents.finish()
    if contents.is_empty and contents.problems:
        raise contents.problems[0]
    return contents


def contents_of_cluster(server: ApiServer, source: str, watch: Callable[[Event], None] = lambda _: None) -> Contents:
    """What a live cluster gives; `source` is what a person calls it, and `watch` sees every step.

    Raises `InputError` where it cannot be read.
    """
    from kschedx.sources.live.lists import ListPage, Restarted
    from kschedx.sources.live.reading import Unread, server_version
    from kschedx.sources.live.reading import read as read_live

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
        contents.finish()
    complete = {kind: len(contents.objects[kind]) for kind in KINDS if kind not in missing}
    contents.files = {source: None}
    contents.headers = [SnapshotHeader(source=source, server_version=version, complete=complete, missing=missing)]
    return contents
