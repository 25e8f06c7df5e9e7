"""The screens of `kschedx reason`: an id, a plugin's reasons, or an event's text taken apart."""

from __future__ import annotations

from rich.text import Text

from kschedx.errors import ConfigError, InputError, nearest
from kschedx.explain.events import Event, EventPart, Stage, parse
from kschedx.framework.registry import IN_TREE, of_packages
from kschedx.render import terminal
from kschedx.render.layout import BLANK, BOLD, DIM, line, paragraph, text
from kschedx.render.units import count
from kschedx.render.wording import Reason
from kschedx.render.words import REASON_IDS, REASONS


def print_reason(what: str) -> None:
    """`reason_lines` on standard output."""
    out = terminal.console()
    terminal.write(reason_lines(what, out.width), out)


def print_reasons() -> None:
    """Every id with the first sentence of what it means."""
    out = terminal.console()
    terminal.write(all_lines(out.width), out)


def reason_lines(what: str, width: int) -> list[Text]:
    """An id, a plugin, or any text of an event. Raises `InputError` where nothing of it is known."""
    what = what.strip()
    if what in REASONS:
        return id_lines(what, width)
    if what in IN_TREE or any(what in reason.plugins for reason in REASONS.values()):
        return _plugin_lines(what, width)
    if theirs := _their_lines(what, width):
        return theirs
    event = parse(what)
    if event.nodes is None and not any(part.is_known for part in event.parts):
        hint = nearest(what, [*REASON_IDS, *IN_TREE]) or "`kschedx reason` lists the ids"
        raise InputError(f'no reason "{what}"', hint=hint)
    return event_lines(event, width)


def all_lines(width: int) -> list[Text]:
    size = max(map(len, REASON_IDS))
    lines = []
    for name in REASON_IDS:
        lines += paragraph(REASONS[name].means.partition(". ")[0], width, first=f"{name.ljust(size)}  ")
    return lines


def _their_lines(what: str, width: int) -> list[Text]:
    """What the plugins of packages say of themselves: of one by name, or of the id of a reason."""
    lines: list[Text] = []
    for plugin, found in of_packages():
        reasons = {} if isinstance(found, ConfigError) else found.reasons
        for name, explained in reasons.items():
            if what in (plugin, name):
                reason = Reason(
                    plugins=(plugin,), means=explained.means, arises=explained.arises, fixes=explained.fixes
                )
                lines += [*([BLANK] if lines else []), *_explained(name, reason, width)]
    return lines


def id_lines(name: str, width: int) -> list[Text]:
    """What an id means, when it arises, what usually fixes it."""
    return _explained(name, REASONS[name], width)


def _explained(name: str, reason: Reason, width: int) -> list[Text]:
    by = f"   {', '.join(reason.plugins)}" if reason.plugins else ""
    lines = [line((name, BOLD), (by, DIM))]
    lines += paragraph(reason.means, width, first="  means   ")
    lines += paragraph(reason.arises, width, first="  arises  ")
    for number, fix in enumerate(reason.fixes):
        lines += paragraph(fix, width, first="  fixes   - " if number == 0 else "          - ")
    return lines


def _plugin_lines(plugin: str, width: int) -> list[Text]:
    ids = [name for name, reason in REASONS.items() if plugin in reason.plugins]
    if not ids:
        return paragraph(f"{plugin} rejects no node with a reason of its own", width)
    lines: list[Text] = []
    for name in ids:
        lines += [*([BLANK] if lines else []), *id_lines(name, width)]
    return lines


# --- events


def event_lines(event: Event, width: int) -> list[Text]:
    """Each reason with its count, plugin and id, then what the ids mean."""
    lines: list[Text] = []
    if event.nodes is not None:
        lines += [text(f"{count(event.nodes, 'node')}, none of which the pod fits on", BOLD), BLANK]
    for stage, title in ((Stage.FILTER, "why not"), (Stage.PREEMPTION, "could evicting pods help")):
        parts = [part for part in event.parts if part.stage is stage]
        if parts:
            lines += [text(title, BOLD), *(made for part in parts for made in _part_lines(part, width)), BLANK]
    lines += _sum(event, width)
    for name in dict.fromkeys(part.reason for part in event.parts if part.reason):
        lines += [*id_lines(name, width), BLANK]
    return lines[:-1] if lines and not lines[-1].plain else lines


def _part_lines(part: EventPart, width: int) -> list[Text]:
    number = "" if part.count is None else f"{part.count:,}"
    who = " · ".join(filter(None, (part.plugin, part.reason))) or "unknown: kschedx does not know this text"
    lines = paragraph(part.text, width, first=f"{number:>6}  ")
    return [*lines, *paragraph(who, width, first=" " * 8, style=DIM)]


def _sum(event: Event, width: int) -> list[Text]:
    if event.nodes is None or event.counted == event.nodes or not event.counted:
        return []
    if event.counted > event.nodes:
        told = "The counts exceed the number of nodes: a node counts for each reason of the plugin that rejects it."
    else:
        told = f"{count(event.nodes - event.counted, 'node is', 'nodes are')} not counted: older releases leave out "
        told += "the nodes that PreFilter excludes."
    return [*paragraph(told, width), BLANK]
