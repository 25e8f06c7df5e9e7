"""The screen of `kschedx doctor`: what is there, what is amiss, and how to complete it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import assert_never

from msgspec import Struct
from rich.text import Text

from kschedx.doctor.diagnosis import Completion, Diagnosis, Inventory, Way
from kschedx.doctor.findings import Certainty, Finding, MissingKind, Reaction
from kschedx.render import terminal
from kschedx.render.doctor_words import missing_effect, missing_kind, reaction, sureness, words
from kschedx.render.layout import BAD, BLANK, BOLD, DIM, GOOD, ended, fact_lines, line, paragraph
from kschedx.render.units import count
from kschedx.render.wording import Fact

MOST_LINES = 40
FACT_LINES = 3
"""Of one fact, where not everything is asked for."""
CLOSED_LINES = 2
"""Of a headline alone."""
KINDS = 4
SNAPSHOT = "cluster.json"


def print_diagnosis(diagnosis: Diagnosis, *, wide: bool = False) -> None:
    out = terminal.console()
    terminal.write(diagnosis_lines(diagnosis, width=out.width, wide=wide), out)


class _Block(Struct, frozen=True, kw_only=True):
    """A finding's headline, and what is below it where there is room."""

    head: list[Text]
    detail: list[Text]
    width: int

    def lines(self, *, opened: bool) -> list[Text]:
        if opened:
            return [BLANK, *self.head, *self.detail]
        *kept, last = self.head[:CLOSED_LINES]
        if len(self.head) > CLOSED_LINES:
            last = line((ended(f"{last.plain} …", self.width), BOLD))
        return [*kept, last]


def diagnosis_lines(diagnosis: Diagnosis, *, width: int, wide: bool = False) -> list[Text]:
    """At most 40 lines, unless `wide`: the first findings in full, of the others the headlines."""
    top = [*_title(diagnosis, width), *_inventory(diagnosis.inventory, width, wide=wide)]
    end = _completion(diagnosis.completion) if diagnosis.completion else []
    blocks = list(_blocks(diagnosis.findings, width, wide=wide))
    room = MOST_LINES - len(top) - _height(end, width)
    opened = (
        len(blocks)
        if wide
        else max((number for number in range(len(blocks) + 1) if len(_stacked(blocks, number)) <= room), default=0)
    )
    shown = _stacked(blocks, opened)
    if not wide and len(shown) > room:
        shown = [*shown[: room - 1], line((f"{len(shown) - room + 1:,} more lines: -o wide", DIM))]
    return [*top, *shown, *end]


def _stacked(blocks: Sequence[_Block], opened: int) -> list[Text]:
    """The blocks one below the other, the first ones opened."""
    lines = [row for block in blocks[:opened] for row in block.lines(opened=True)]
    closed = [row for block in blocks[opened:] for row in block.lines(opened=False)]
    note = [line(("  -o wide shows these in full", DIM))]
    return [*lines, BLANK, *closed, *note] if closed else lines


def _title(diagnosis: Diagnosis, width: int) -> list[Text]:
    number, source = len(diagnosis.weakening), diagnosis.inventory.source
    source = "standard input" if source == "-" else source
    if not number:
        return paragraph(f"{source}: nothing found that weakens an answer", width, first="✓ ", style=GOOD)
    told = count(number, "thing weakens", "things weaken")
    return paragraph(f"{source}: {told} what kschedx says of it", width, first="✗ ", style=BAD)


def _inventory(found: Inventory, width: int, *, wide: bool) -> list[Text]:
    pods = [
        f"{number:,} {what}"
        for what, number in (("running", found.running), ("pending", found.pending), ("finished", found.finished))
        if number
    ]
    told = f"{count(found.kinds.get('Pod', 0), 'pod')}" + (f" ({', '.join(pods)})" if pods else "")
    spaces = f" in {count(found.namespaces, 'namespace')}" if found.namespaces else ""
    others = tuple(f"{number:,} {kind}" for kind, number in found.kinds.items() if kind not in ("Node", "Pod"))
    facts = [Fact(label="holds", items=(count(found.kinds.get("Node", 0), "node"), told + spaces, *others))]
    kubelets = dict.fromkeys((found.oldest_kubelet, found.newest_kubelet))
    versions = [f"API server {found.server_version}"] if found.server_version else []
    versions += [f"kubelets {' to '.join(kubelets)}"] if found.oldest_kubelet else []
    if versions:
        facts.append(Fact(label="release", items=tuple(versions)))
    if found.taken or found.newest:
        facts.append(Fact(label="taken", items=(found.taken or f"{found.newest} or later",)))
    origin = (found.origin,) if found.origin and found.origin != found.source else ()
    files = (count(found.files, "file"),) if found.files > 1 else ()
    names = ("names are replaced",) if found.is_anonymized else ()
    known = (*found.formats, *origin, *files, *names)
    if known:
        facts.append(Fact(label="from", items=known))
    not_read = (*found.not_applied, *(f"{number:,} {kind}" for kind, number in found.not_read.items()))
    if not_read:
        facts.append(Fact(label="not read", items=not_read))
    return [row for fact in facts for row in fact_lines(fact, width, None if wide else FACT_LINES)]


def _blocks(findings: Sequence[Finding], width: int, *, wide: bool) -> Iterable[_Block]:
    """A block for each finding; the kinds that are missing are told together."""
    missing = [found for found in findings if isinstance(found, MissingKind)]
    for found in findings:
        if not isinstance(found, MissingKind):
            yield _block(found, width, wide=wide)
        elif found is missing[0]:
            yield _missing(missing, width, wide=wide)


def _block(found: Finding, width: int, *, wide: bool) -> _Block:
    told = words(found, whole=wide)
    facts = told.facts if wide else _shortened(told.facts)
    detail = [row for fact in facts for row in fact_lines(fact, width, None if wide else FACT_LINES)]
    return _Block(head=_headline(told.headline, found, width), detail=detail, width=width)


def _shortened(facts: Sequence[Fact]) -> Iterable[Fact]:
    """Of a list below one label the first lines, and the number of the others."""
    run: list[Fact] = []
    for fact in (*facts, None):
        if fact is not None and not fact.label:
            run.append(fact)
            continue
        yield from run[: FACT_LINES - 1]
        if len(run) >= FACT_LINES:
            yield Fact(label="", items=(f"{len(run) - FACT_LINES + 1:,} more",))
        run = []
        if fact is not None:
            yield fact


def _headline(headline: str, found: Finding, width: int) -> list[Text]:
    if not found.counts:
        return paragraph(headline, width, first="· ", style=DIM)
    sure = found.certainty is not Certainty.POSSIBLE
    return paragraph(headline, width, first="✗ " if sure else "? ", style=BOLD)


def _missing(kinds: Sequence[MissingKind], width: int, *, wide: bool) -> _Block:
    told = count(len(kinds), "kind is", "kinds are")
    names = ", ".join(found.kind for found in kinds)
    head = paragraph(f"{told} missing, in whole or in part: {names}", width, first="✗ ", style=BOLD)
    lines: list[Text] = []
    shown = kinds if wide or len(kinds) <= KINDS + 1 else kinds[:KINDS]
    label = max(len(found.kind) for found in shown)
    for found in shown:
        text = f"{missing_kind(found)}{sureness(found.certainty)} · {missing_effect(found)}"
        if found.reaction is not Reaction.SILENT:
            text += f"; noticed {' '.join(reaction(found.reaction).items)}"
        lines += paragraph(text, width, first=f"  {found.kind:<{label}}  ")
    if len(shown) < len(kinds):
        lines.append(line((f"  {len(kinds) - len(shown):,} more: -o wide", DIM)))
    silent = [found for found in kinds if found.reaction is Reaction.SILENT]
    return _Block(
        head=head, detail=lines + (fact_lines(reaction(Reaction.SILENT), width) if silent else []), width=width
    )


def _completion(found: Completion) -> list[Text]:
    """Commands are never broken: they are there to be copied."""
    match found.way:
        case Way.ADD:
            lead = "complete it with"
            paths = " ".join(f"--snapshot {shlex.quote(path)}" for path in found.snapshots)
            commands = [found.command, f"kschedx why ... {paths}"]
        case Way.ANEW:
            lead = "take it anew, all at one time, with one of"
            commands = [f"kschedx snapshot -o {SNAPSHOT}", found.command]
        case Way.ALLOW:
            lead = "allow it with this role, bound to you"
            commands = [found.command]
        case _:
            assert_never(found.way)
    return [BLANK, line((lead, DIM)), *(line(f"  {command}") for command in commands)]


def _height(lines: Iterable[Text], width: int) -> int:
    """Rows of a terminal."""
    return sum(max(-(-one.cell_len // width), 1) for one in lines)
