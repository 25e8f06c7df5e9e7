"""Folders and archives in the layout of a tool: which of their files are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from kschedx.api.kinds import KINDS
from kschedx.sources.dumps import Dump, cluster_info, lack, must_gather, support_bundle
from kschedx.sources.dumps.layout import Layout, listed_kind


class Plan(Struct, frozen=True, kw_only=True):
    """What to read of a folder or an archive."""

    place: str
    wanted: Mapping[str, str]
    """File to the kind of list that it is, where it does not say so itself; in order."""
    layouts: Sequence[Layout]

    def dumps(self, empty: Collection[str]) -> Iterator[Dump]:
        """What was recognized, where these of the files turned out to be empty: their tool could not fill them."""
        for layout in self.layouts:
            files: dict[str, list[str]] = {}
            for name in empty:
                if layout.files is not None and name in layout.files:
                    files.setdefault(listed_kind(layout.files[name]), []).append(name.removeprefix(f"{layout.top}/"))
            lacks = *layout.lacks, *(lack(kind, _emptiness(names)) for kind, names in files.items() if _matters(kind))
            place = f"{self.place}: {layout.top}" if layout.top else self.place
            yield Dump(format=layout.format, place=place, lacks=lacks)


def _matters(kind: str) -> bool:
    return kind in KINDS and bool(KINDS[kind].leaves)


def _emptiness(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more, which are" if len(names) > 1 else ", which is"
    return f"what belongs into {names[0]}{more} empty"


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
    return Plan(place=place, wanted=wanted, layouts=tuple(found.values()))


def _innermost(found: Mapping[str, Layout], name: str) -> Layout | None:
    """The layout of the dump that the file is in."""
    while name:
        name = name.rpartition("/")[0]
        if name in found:
            return found[name]
    return None
