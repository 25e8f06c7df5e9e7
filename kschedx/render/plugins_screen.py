"""The screen of `kschedx plugins`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

from kschedx.framework.registry import Known
from kschedx.render import terminal
from kschedx.render.layout import BLANK, BOLD, paragraph


def print_plugins(plugins: Sequence[Known]) -> None:
    """A block for each origin; who is not in the default profile is marked."""
    out = terminal.console()
    size = max(len(plugin.name) for plugin in plugins) + 4
    lines: list[Text] = []
    for origin, group in groupby(plugins, key=lambda plugin: plugin.origin):
        lines += [*([BLANK] if lines else []), *paragraph(origin, out.width, style=BOLD)]
        for plugin in group:
            name = f"{'  ' if plugin.by_default else '- '}{plugin.name}".ljust(size)
            lines += paragraph(plugin.defect or ", ".join(plugin.points), out.width, first=name, indent=size)
    told = "- is not in the default profile: it takes part where a configuration names it"
    terminal.write([*lines, BLANK, *paragraph(told, out.width)], out)
