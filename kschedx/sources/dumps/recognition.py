"""Folders and archives in the form of a tool: which of their files are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from kschedx.api.kinds import KINDS
from kschedx.sources.dumps import Dump, cluster_info, insights, lack, must_gather, sonobuoy, support_bundle
from kschedx.sources.dumps.form import Form, listed_kind


class Plan(Struct, frozen=True, kw_only=True):
    """What to read of a folder or an archive."""

    place: str
    wanted: Mapping[str, str]
    """File to the kind of list that it is, where it does not say so itself; in order."""
    forms: Sequence[Form]

    def is_beside(self, name: str) -> bool:
        """The file is outside of the dumps that were recognized."""
        return bool(self.forms) and _innermost({form.top: form for form in self.forms}, name) is None

    def dumps(self, empty: Collection[str]) -> Iterator[Dump]:
        """What was recognized, where these of the files turned out to be empty: their tool could not fill them."""
        for form in self.forms:
            files: dict[str, list[str]] = {}
            for name in empty:
                if form.files is not None and name in form.files:
                    files.setdefault(listed_kind(form.files[name]), []).append(name.removeprefix(f"{form.top}/"))
            lacks = *form.lacks, *(lack(kind, _emptiness(names)) for kind, names in files.items() if _matters(kind))
            place = f"{self.place}: {form.top}" if form.top else self.place
            yield Dump(format=form.format, place=place, lacks=lacks)


def _matters(kind: str) -> bool:
    return kind in KINDS and bool(KINDS[kind].leaves)


def _emptiness(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more, which are" if len(names) > 1 else ", which is"
    return f"what belongs into {names[0]}{more} empty"


def plan(names: Sequence[str], place: str) -> Plan:
    """Everything that is outside of a recognized dump, and of a dump the files that hold what scheduling reads."""
    found = {
        form.top: form
        for find in (cluster_info.find, support_bundle.find, insights.find, must_gather.find, sonobuoy.find)
        for form in find(names)
    }
    wanted: dict[str, str] = {}
    for name in names:
        form = _innermost(found, name)
        if form is None or form.files is None:
            wanted[name] = ""
        elif name in form.files:
            wanted[name] = form.files[name]
    return Plan(place=place, wanted=wanted, forms=tuple(found.values()))


def _innermost(found: Mapping[str, Form], name: str) -> Form | None:
    """The form of the dump that the file is in."""
    while name:
        name = name.rpartition("/")[0]
        if name in found:
            return found[name]
    return None
