"""How help is laid out: an option under the title of its group, a command's own options first."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from kschedx.cli.question import ORDER, TITLE_OF

OWN = "Options"


class Command(TyperCommand):
    """A command whose help has its options in groups."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remembers the order of the options, which click forgets for those that can be repeated."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ORDER.set(tuple(parameter.name or "" for parameter in order))
        left: list[str] = super().parse_args(ctx, args)
        return left

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments: list[tuple[str, str]] = []
        groups: dict[str, list[tuple[str, str]]] = {OWN: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            is_option = parameter.param_type_name == "option"
            rows = groups.setdefault(TITLE_OF.get(parameter.name or "", OWN), []) if is_option else arguments
            rows.append(record)
        for title, rows in (("Arguments", arguments), *groups.items()):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
