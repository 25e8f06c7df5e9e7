"""The screens of `kschedx profiles`, `plugins`, and `reason`, and other lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.cells import cell_len

from kschedx.errors import ConfigError, InputError, nearest
from kschedx.explain.events import Event, EventPart, Stage, events_in
from kschedx.framework.config import Profile, SchedulerConfig
from kschedx.framework.config.advice import Advice
from kschedx.framework.config.origins import ExpandedConfig, flat
from kschedx.framework.registry import IN_TREE, KnownPlugin, packaged_plugins
from kschedx.releases import POINTS
from kschedx.render.terminal import BLANK, BOLD, DIM, StyledLine, columns, cut_end, paragraph, text, title_lines
from kschedx.render.view import Tone
from kschedx.wording import count, list_names
from kschedx.words.reasons import KUBERNETES_DOCS, Reason, reason_page, reasons

_LONGEST_VALUE = 40
_GOOD = frozenset({"scale-up", "claim-waits-for-pod"})  # reasons that are not errors


def list_lines(title: str, rows: Sequence[tuple[str, str]], width: int) -> list[StyledLine]:
    """Return a list of names, each with its description."""
    size = max((len(name) for name, _ in rows), default=0) + 2
    lines = [*title_lines(title, Tone.GOOD, width), BLANK]
    return [*lines, *(line for name, phrase in rows for line in paragraph(phrase, width, first=name.ljust(size)))]


def policy_lines(name: str, version: str, profile: Profile, width: int) -> list[StyledLine]:
    """Return the predicates and priorities of a Policy in order, with weights."""
    rows = [("point", "name", "weight")]
    for point, plugins in profile.points.items():
        for number, plugin in enumerate(plugins):
            rows.append((point if number == 0 else "", plugin, str(profile.weights.get(plugin, ""))))
    lines = title_lines(f"{name} · Kubernetes {version}", Tone.GOOD, width)
    return [*lines, BLANK, *columns(rows, right=frozenset({2}), indent=2, header=True)]


def profile_lines(
    name: str, version: str, scheduler: SchedulerConfig, expanded: ExpandedConfig, width: int
) -> list[StyledLine]:
    """Return the plugins by extension point, with weights, arguments, and the source of each setting."""
    skipped = {name for profile in scheduler.profiles for name in profile.unknown}
    title = f"{name} · Kubernetes {version}" + (f" · {count(len(skipped), 'plugin')} not available" if skipped else "")
    lines = title_lines(title, Tone.OPEN if skipped else Tone.GOOD, width)
    for index, profile in enumerate(scheduler.profiles):
        path = f"profiles[{index}]"
        share = profile.percentage_of_nodes_to_score
        lines += [BLANK, text(f"profile {profile.scheduler_name}", BOLD)]
        lines.append(text(f"  percentageOfNodesToScore  {f'{share}%' if share else 'by cluster size'}"))
        rows = [["point", "plugin", "weight", "from"]]
        for point in POINTS:
            for number, plugin in enumerate(profile.enabled[point]):
                where = f"{path}.plugins.{point}.enabled[{number}]"
                weight = str(profile.weights[plugin]) if point == "score" else ""
                source = _short(_sources(expanded.origins, where), path)
                rows.append([point if number == 0 else "", plugin, weight, source])
        lines += [BLANK, *_wrap_columns(rows, width, 2)]
        unknown = [f"{name} ({', '.join(where)})" for name, where in profile.unknown.items()]
        if unknown:
            phrase = f"not available to kschedx, skipped: {', '.join(unknown)}"
            lines += [BLANK, *paragraph(phrase, width, first="  ", indent=2)]
        arguments = [["arguments", "", "from"]]
        for number, (plugin, plain) in enumerate(expanded.arguments[index].items()):
            arguments += [[plugin, "", ""]]
            for field, value in flat(plain):
                source = expanded.origins[f"{path}.pluginConfig[{number}].args.{field}"]
                arguments.append([f"  {field}", cut_end(_value(value), _LONGEST_VALUE), _short(source, path)])
        lines += [BLANK, *_wrap_columns(arguments, width)]
    return lines


def _wrap_columns(rows: Sequence[Sequence[str]], width: int, right: int | None = None) -> list[StyledLine]:
    """Return columns below their header. The last one wraps; column number `right` is right-aligned."""
    sizes = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines: list[StyledLine] = []
    for number, (*cells, last) in enumerate(rows):
        pads = [" " * (size - cell_len(cell)) for size, cell in zip(sizes, cells, strict=False)]
        row = "".join(
            f"  {pad + cell if at == right else cell + pad}"
            for at, (cell, pad) in enumerate(zip(cells, pads, strict=True))
        )
        style = "" if number else DIM
        lines += paragraph(last, width, first=f"{row}  ", style=style) if last else [text(row.rstrip(), style)]
    return lines


def _short(source: str, profile: str) -> str:
    """Return a path without the prefix that all lines share: `multiPoint.enabled[0]`, `pluginConfig[0]`."""
    return source.replace(f"{profile}.", "").replace("plugins.", "").partition(".args.")[0]


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sources(origins: Mapping[str, str], where: str) -> str:
    """Return the origin of the plugin, and that of its weight if it differs."""
    plugin, weight = origins[f"{where}.name"], origins.get(f"{where}.weight")
    if weight is None or weight in (plugin, f"{plugin}.weight"):
        return plugin
    return weight if weight.startswith(plugin) else f"{plugin}, weight: {weight}"


def advice_lines(name: str, version: str, warnings: Sequence[Advice], width: int) -> list[StyledLine]:
    """Return the warnings about a valid configuration."""
    phrase = count(len(warnings), "warning") if warnings else "no warnings"
    needed = dict.fromkeys(advice.needs for advice in warnings if advice.needs)
    if needed:
        lacks = list_names(needed, len(needed), conjunction="and")
        verdict = f"the released kube-scheduler {version} does not start with it, because it lacks {lacks}"
    else:
        verdict = f"kube-scheduler {version} accepts it"
    lines = title_lines(f"{name}: {verdict}, {phrase}", Tone.BAD if needed else Tone.GOOD, width)
    for advice in warnings:
        lines += paragraph(f"{advice.path}: {advice.text}", width, first="  ", indent=4)
    if any(not advice.needs for advice in warnings):
        lines.append(text("  kube-scheduler does not report these", DIM))
    return lines


def plugins_lines(plugins: Sequence[KnownPlugin], width: int) -> list[StyledLine]:
    """Return a block for each origin; plugins outside the default profile are marked."""
    size = max(len(plugin.name) for plugin in plugins) + 4
    broken = sum(bool(plugin.defect) for plugin in plugins)
    title = count(len(plugins), "plugin") + (f", {broken:,} cannot be loaded" if broken else "")
    lines = title_lines(title, Tone.BAD if broken else Tone.GOOD, width)
    for origin, group in groupby(plugins, key=lambda plugin: plugin.origin):
        lines += [BLANK, *paragraph(origin, width, style=BOLD)]
        for plugin in group:
            name = f"{'  ' if plugin.by_default else '- '}{plugin.name}".ljust(size)
            lines += paragraph(plugin.defect or ", ".join(plugin.points), width, first=name, indent=size)
    phrase = "- is not in the default profile; a configuration can enable it"
    return [*lines, BLANK, *paragraph(phrase, width)]


# The screens of `kschedx reason`: an id, a plugin's reasons, or the parts of an event's text.


def reason_lines(what: str, width: int) -> list[StyledLine]:
    """Return the screen for an id, a plugin, or any text of an event; all ids for an empty one. Raises `InputError` if
    none of it is known."""
    if not what:
        known = [(name, reason.means.partition(". ")[0].rstrip(".")) for name, reason in reasons().items()]
        return list_lines(count(len(known), "reason"), known, width)
    what = what.strip()
    if what in reasons():
        return _id_lines(what, width, everything=True)
    if what in IN_TREE or any(what in reason.plugins for reason in reasons().values()):
        return _plugin_lines(what, width)
    if theirs := _their_lines(what, width):
        return theirs
    events = events_in(what) or events_in(f"node(s) {what}")  # readers leave out with the count what it counts
    if not events and len(what.splitlines()) > 1:
        raise InputError("no line of the text is an event that kschedx knows")
    if not events:
        hint = nearest(what, [*reasons(), *IN_TREE]) or "`kschedx reason` lists the IDs"
        raise InputError(f'no reason "{what}"', hint=hint)
    explained: set[str] = set()
    return [line for event in events for line in (BLANK, *_event_lines(event, width, explained))][1:]


def _their_lines(what: str, width: int) -> list[StyledLine]:
    """Return the reasons of plugins of other packages, by the plugin's name or the reason's id."""
    lines: list[StyledLine] = []
    for plugin, plugin_class in packaged_plugins():
        reasons = {} if isinstance(plugin_class, ConfigError) else plugin_class.reasons
        for name, explained in reasons.items():
            if what in (plugin, name):
                reason = Reason(
                    plugins=(plugin,), means=explained.means, causes=(explained.arises,), fixes=explained.fixes
                )
                lines += [*([BLANK] if lines else []), *_reason_lines(name, reason, width)]
    return lines


def _id_lines(name: str, width: int, *, everything: bool = False) -> list[StyledLine]:
    """Return what an id means, its usual causes, its fixes, and its page. With `everything`, also how to confirm it,
    what does not help, and where Kubernetes documents it."""
    reason, page = reasons()[name], reason_page(name)
    lines = _reason_lines(name, reason, width, reason.confirm if everything else ())
    if not everything:
        return [*lines, *_link_lines((page,), width)]
    links = (page, *(f"{KUBERNETES_DOCS}{link}" for link in reason.links))
    return [*lines, *_list_lines("no help", reason.useless, width), *_link_lines(links, width)]


def _reason_lines(name: str, reason: Reason, width: int, confirm: Sequence[str] = ()) -> list[StyledLine]:
    by = f"   {', '.join(reason.plugins)}" if reason.plugins else ""
    lines = title_lines(f"{name}{by}", Tone.GOOD if name in _GOOD else Tone.BAD, width)
    lines += paragraph(reason.means, width, first="  means   ")
    for title, entries in (("causes", reason.causes), ("confirm", confirm), ("fixes", reason.fixes)):
        lines += _list_lines(title, entries, width)
    return lines


def _list_lines(title: str, entries: Sequence[str], width: int) -> list[StyledLine]:
    lines: list[StyledLine] = []
    for number, entry in enumerate(entries):
        lines += paragraph(entry, width, first=f"  {title if number == 0 else '':<8}- ")
    return lines


def _link_lines(links: Sequence[str], width: int) -> list[StyledLine]:
    """Return links, which are never broken: all begin at the margin if one does not fit behind the label."""
    label = "  docs    "
    if all(cell_len(label + link) <= width for link in links):
        return [text(f"{label if number == 0 else '':<10}{link}") for number, link in enumerate(links)]
    return [text(label.rstrip()), *map(text, links)]


def _plugin_lines(plugin: str, width: int) -> list[StyledLine]:
    ids = [name for name, reason in reasons().items() if plugin in reason.plugins]
    if not ids:
        return paragraph(f"{plugin} has no rejection reasons", width)
    lines: list[StyledLine] = []
    for name in ids:
        lines += [*([BLANK] if lines else []), *_id_lines(name, width)]
    return lines


# --- events


def _event_lines(event: Event, width: int, explained: set[str]) -> list[StyledLine]:
    """Return each reason with its count, plugin, and id, then what the ids mean that no earlier event explained, those
    of most nodes first."""
    lines: list[StyledLine] = []
    if event.nodes is not None:
        lines += [*title_lines(f"the pod fits none of {count(event.nodes, 'node')}", Tone.BAD, width), BLANK]
    else:
        known = [part.reason for part in event.parts if part.reason]
        tone = Tone.BAD if not {*known} <= _GOOD else Tone.GOOD if known else Tone.OPEN
        lines += [
            *title_lines(list_names([*dict.fromkeys(known)], 3) if known else "an unknown event", tone, width),
            BLANK,
        ]
    for stage, title in ((Stage.FILTER, "reasons"), (Stage.PREEMPTION, "preemption")):
        parts = [part for part in event.parts if part.stage is stage]
        if parts:
            lines += [text(title, BOLD), *(line for part in parts for line in _part_lines(part, width)), BLANK]
    lines += _sum(event, width)
    most = sorted(event.parts, key=lambda part: (part.stage is not Stage.FILTER, -(part.count or 0)))
    for name in dict.fromkeys(part.reason for part in most if part.reason):
        if name not in explained:
            explained.add(name)
            lines += [*_id_lines(name, width), BLANK]
    return lines[:-1] if lines and not lines[-1].plain else lines


def _part_lines(part: EventPart, width: int) -> list[StyledLine]:
    number = "" if part.count is None else f"{part.count:,}"
    who = " · ".join(filter(None, (part.plugin, part.reason))) or "unknown text"
    lines = paragraph(part.text, width, first=f"{number:>6}  ")
    return [*lines, *paragraph(who, width, first=" " * 8, style=DIM)]


def _sum(event: Event, width: int) -> list[StyledLine]:
    if event.nodes is None or event.node_count == event.nodes or not event.node_count:
        return []
    if event.node_count > event.nodes:
        phrase = "The counts exceed the number of nodes: a node counts for each reason of the plugin that rejects it."
    else:
        phrase = f"{count(event.nodes - event.node_count, 'node is', 'nodes are')} not counted: older versions omit "
        phrase += "the nodes that PreFilter excludes."
    return [*paragraph(phrase, width), BLANK]
