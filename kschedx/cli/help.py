"""The layout of help: commands and options in groups, a command's own options first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from kschedx.cli.options import TITLE_OF
from kschedx.cli.output import Format, Report, write
from kschedx.cli.question import ORDER
from kschedx.errors import InputError, KschedxError, UndecidableError
from kschedx.patterns import lazy_pattern

_OWN = "Options"
_PATHS = ("FILE", "PATH", "TARGET")  # words in the metavar of arguments that may be paths


COMMANDS = {
    "Ask": ("why", "nodes", "kueue", "reason", "doctor"),
    "What if": ("simulate", "drain", "survive", "fit", "deschedule", "descheduler-policy", "scale-down"),
    "Profiles": ("diff-profiles", "profiles", "plugins"),
    "Data": ("snapshot", "merge", "instance-types", "schema"),
    "Integrate": ("mcp", "fleet", "integrations", "completion", "man"),
}
"""The commands by group, in the order of the help."""
_SHARED = ("Scheduler", "Autoscaler", "Kueue", "Connection (as for kubectl)")
"""The groups of options that `--help` leaves to `--help-all`; Kueue's are `kschedx kueue`'s own options."""
_HELP_ALL = "--help-all"
_EXAMPLES = 4  # lines of examples in a usage message


_HYPHEN, _SPACE = "\u2011", "\u00a0"  # characters at which no line breaks
_QUOTED = lazy_pattern(r"`[^`]{1,40}`")


def _unbroken(text: str) -> str:
    """Return text whose lines break neither at hyphens, as in kube-scheduler and --dry-run, nor in short commands."""
    return _QUOTED.sub(lambda command: command[0].replace(" ", _SPACE), text).replace("-", _HYPHEN)


class _Formatter(typer.Context.formatter_class):  # type: ignore[misc, valid-type] # typer exports no such class
    def write(self, string: str) -> None:
        super().write(string.replace(_HYPHEN, "-").replace(_SPACE, " "))

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, _unbroken(args), prefix)

    def write_text(self, text: str) -> None:
        super().write_text(_unbroken(text))

    def write_dl(self, rows: Iterable[tuple[str, str]], *_: int) -> None:
        super().write_dl([(term, _unbroken(text)) for term, text in rows])


class _Help:
    """A command or group of commands whose help has whole words."""

    def get_help(self, ctx: Any) -> str:
        formatter = _Formatter(width=ctx.terminal_width, max_width=ctx.max_content_width)
        self.format_help(ctx, formatter)  # type: ignore[attr-defined] # the class beside this one has it
        text: str = formatter.getvalue()
        return text.rstrip("\n")


class HelpGroup(_Help, TyperGroup):
    """The program, whose help lists its commands in groups, or a command with commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        groups = {
            title: {name: command for name in names if (command := self.get_command(ctx, name))}
            for title, names in COMMANDS.items()
        }
        if not any(groups.values()):
            super().format_commands(ctx, formatter)
        for title, commands in groups.items():
            if commands:
                width = formatter.width - 6 - max(map(len, commands))
                with formatter.section(title):
                    formatter.write_dl(
                        [(name, command.get_short_help_str(width)) for name, command in commands.items()]
                    )


def _print_error_as_checks(error: KschedxError, output: Format) -> None:
    """Print an error that ended a command as checks."""
    from kschedx.cli.checks import error_checks

    checks = tuple(error_checks(error))
    write(Report(screen=lambda *_: (), document=dict, checks=lambda: checks), output)


class HelpCommand(_Help, TyperCommand):
    """A command whose help has its options in groups."""

    def usage(self, ctx: Any) -> str:
        """Return at most ten lines for a command line without arguments: what the command does, and examples."""
        first, _, rest = (self.help or "").partition("\n\n")
        examples = rest.partition("\n\n")[0].replace("\b\n", "") if rest.startswith("\b") else ""
        shown = examples.strip().splitlines()[: _EXAMPLES + 1]
        return "\n".join([self.get_usage(ctx), "", first.strip(), *(["", *shown] if shown else [])])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and remember the order of the options, which click forgets for repeatable ones."""
        if _HELP_ALL in args:
            ctx.meta[_HELP_ALL] = True
            args = ["--help"]
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ORDER.set(tuple(parameter.name or "" for parameter in order))
        left: list[str] = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            self._refuse_empty(ctx)
        return left

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error of the input is also printed as a check if CI reads the output."""
        output = ctx.params.get("output")
        if output not in (Format.JUNIT, Format.SARIF):
            return super().invoke(ctx)
        try:
            return super().invoke(ctx)
        except (InputError, UndecidableError) as error:
            _print_error_as_checks(error, output)
            raise

    def _refuse_empty(self, ctx: Any) -> None:
        """Refuse an empty path, which would be the current folder: usually a shell variable is not set."""
        for parameter in self.get_params(ctx):
            value = ctx.params.get(parameter.name or "")
            if value != "" and not (isinstance(value, list | tuple) and "" in value):
                continue
            if parameter.name != "kubeconfig" and any(path_kind in str(parameter.metavar) for path_kind in _PATHS):
                raise typer.BadParameter("it is empty; is a shell variable not set?", ctx, parameter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments as they are typed, without braces around required ones."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments: list[tuple[str, str]] = []
        groups: dict[str, list[tuple[str, str]]] = {_OWN: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None or record[1] in ("", "[required]"):
                continue
            is_option = parameter.param_type_name == "option"
            rows = groups.setdefault(TITLE_OF.get(parameter.name or "", _OWN), []) if is_option else arguments
            rows.append(record)
        is_whole = _HELP_ALL in ctx.meta
        shared = [title for title in _SHARED if groups.get(title) and title.lower() != ctx.command.name]
        for title, rows in (("Arguments", arguments), *groups.items()):
            if rows and (is_whole or title not in shared):
                with formatter.section(title):
                    formatter.write_dl(rows)
        left_out = [title.partition(" ")[0].lower().replace("kueue", "Kueue") for title in shared]
        if left_out and not is_whole:
            formatter.write_paragraph()
            *first, last = left_out
            named = f"{', '.join(first)}{',' if len(first) > 1 else ''} and {last}" if first else last
            formatter.write_text(f"{_HELP_ALL} adds the {named} options.")
