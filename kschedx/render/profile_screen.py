"""The screens of `kschedx profiles`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.text import Text

from kschedx.framework.config import Profile, SchedulerConfig
from kschedx.framework.config.advice import Advice
from kschedx.framework.config.origins import Expanded
from kschedx.framework.config.written import flat
from kschedx.releases import POINTS
from kschedx.render import terminal
from kschedx.render.layout import BLANK, BOLD, DIM, columns, ended, paragraph, text
from kschedx.render.units import count, listed

LONGEST_VALUE = 40


def print_profiles(profiles: Iterable[tuple[str, str]]) -> None:
    """Names with what each is for."""
    out = terminal.console()
    rows = list(profiles)
    size = max((len(name) for name, _ in rows), default=0) + 2
    for name, purpose in rows:
        terminal.write(paragraph(purpose, out.width, first=name.ljust(size)), out)


def print_profile(name: str, version: str, scheduler: SchedulerConfig, expanded: Expanded) -> None:
    out = terminal.console()
    terminal.write(profile_lines(name, version, scheduler, expanded, out.width), out)


def print_policy(name: str, version: str, profile: Profile) -> None:
    """Predicates and priorities in order, with weights: what a Policy comes to."""
    out = terminal.console()
    rows = [("point", "name", "weight")]
    for point, plugins in profile.points.items():
        for number, plugin in enumerate(plugins):
            rows.append((point if number == 0 else "", plugin, str(profile.weights.get(plugin, ""))))
    lines = paragraph(f"{name} · Kubernetes {version}", out.width, style=BOLD)
    terminal.write([*lines, BLANK, *columns(rows, right=frozenset({2}), indent=2, header=True)], out)


def profile_lines(name: str, version: str, scheduler: SchedulerConfig, expanded: Expanded, width: int) -> list[Text]:
    """Point by point, with weights, arguments and where each setting came from."""
    lines = paragraph(f"{name} · Kubernetes {version}", width, style=BOLD)
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
        lines += [BLANK, *columns(rows, right=frozenset({2}), indent=2, header=True)]
        unknown = [f"{name} ({', '.join(where)})" for name, where in profile.unknown.items()]
        if unknown:
            told = (
                f"kschedx does not have {'it' if len(unknown) == 1 else 'them'}, and leaves out: {', '.join(unknown)}"
            )
            lines += [BLANK, *paragraph(told, width, first="  ", indent=2)]
        arguments = [["arguments", "", "", "from"]]
        for number, (plugin, plain) in enumerate(expanded.arguments[index].items()):
            for position, (field, value) in enumerate(flat(plain)):
                source = expanded.origins[f"{path}.pluginConfig[{number}].args.{field}"]
                told = ended(_value(value), LONGEST_VALUE)
                arguments.append([plugin if position == 0 else "", field, told, _short(source, path)])
        lines += [BLANK, *columns(arguments, indent=2, header=True)]
    return lines


def _short(source: str, profile: str) -> str:
    """Without what every line has in common: `multiPoint.enabled[0]`, `pluginConfig[0]`."""
    return source.replace(f"{profile}.", "").replace("plugins.", "").partition(".args.")[0]


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sources(origins: Mapping[str, str], where: str) -> str:
    """Where the plugin comes from, and its weight if that is elsewhere."""
    plugin, weight = origins[f"{where}.name"], origins.get(f"{where}.weight")
    if weight is None or weight in (plugin, f"{plugin}.weight"):
        return plugin
    return weight if weight.startswith(plugin) else f"{plugin}, weight: {weight}"


def print_advice(name: str, version: str, found: Sequence[Advice]) -> None:
    """What a check found; the configuration itself is valid."""
    out = terminal.console()
    told = count(len(found), "thing") + " to look at" if found else "nothing to remark"
    needed = dict.fromkeys(advice.needs for advice in found if advice.needs)
    built = f" if it is built with {listed(needed, len(needed), conjunction='and')}" if needed else ""
    lines = paragraph(f"{name}: kube-scheduler {version} accepts it{built}, {told}", out.width)
    for advice in found:
        lines += paragraph(f"{advice.path}: {advice.text}", out.width, first="  ", indent=4)
    if found:
        lines.append(text("  kube-scheduler says nothing about these", DIM))
    terminal.write(lines, out)
