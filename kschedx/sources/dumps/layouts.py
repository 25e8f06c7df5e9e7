"""Folders and archives in the layout of a tool: which of their files are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kschedx.sources.dumps import Dump, cluster_info, must_gather, support_bundle
from kschedx.sources.dumps.layout import Layout


class Plan(Struct, frozen=True, kw_only=True):
    """What to read of a folder or an archive."""

    wanted: Mapping[str, str]
    """File to the kind of list that it is, where it does not say so itself; in order."""
    dumps: tuple[Dump, ...]


def plan(names: Sequence[str], place: str) -> Plan:
    """Everything that is outside of a recognized dump, and of a dump the files that hold what scheduling reads."""
    found = {
        layout.top: layout
        for find in (cluster_info.find, support_bundle.find, must_gather.find)
        for layout in find(names)
    }
    wanted: dict[str, str] = {}
    for name in names:
        layout = _innermost(found, name)
        if layout is None or layout.files is None:
            wanted[name] = ""
        elif name in layout.files:
            wanted[name] = layout.files[name]
    dumps = tuple(
        Dump(format=layout.format, place=f"{place}: {layout.top}" if layout.top else place, lacks=layout.lacks)
        for layout in found.values()
    )
    return Plan(wanted=wanted, dumps=dumps)


def _innermost(found: Mapping[str, Layout], name: str) -> Layout | None:
    """The layout of the dump that the file is in."""
    while name:
        name = name.rpartition("/")[0]
        if name in found:
            return found[name]
    return None
