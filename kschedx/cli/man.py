"""`kschedx man`: the manual page, from the same texts as --help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from kschedx import __version__
from kschedx.cli.options import Command
from kschedx.cli.output import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMAND = Command(
    "Print the manual page",
    help="""Print the manual page.

\b
Examples:
  kschedx man | man -l -
  kschedx man > ~/.local/share/man/man1/kschedx.1
""",
)


def man(context: typer.Context) -> int:
    typer.echo("\n".join(_page(context.find_root().command)))
    return ExitCode.SCHEDULABLE


def _page(program: Any) -> Iterator[str]:
    """Yield the lines of a page in man(7)'s macros, for a click command with its commands."""
    yield f'.TH KSCHEDX 1 "" "kschedx {__version__}" "User Commands"'
    yield ".SH NAME"
    yield "kschedx \\- explains kube-scheduler"
    yield ".SH SYNOPSIS"
    yield ".B kschedx\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]"
    yield ".SH DESCRIPTION"
    yield from _text(program.help)
    yield ".SH COMMANDS"
    for path, command in _commands(program, "kschedx"):
        yield f'.SS "{path}"'
        yield from _text(command.help)
        for option in command.params:
            names = ", ".join(_escape(name) for name in (*option.opts, *option.secondary_opts))
            value = "" if getattr(option, "is_flag", False) else f" \\fI{_escape(option.metavar or 'VALUE')}\\fR"
            if option.param_type_name == "option":
                yield f".TP\n\\fB{names}\\fR{value}"
                yield _escape(getattr(option, "help", "") or "")


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    children: Mapping[str, Any] = getattr(command, "commands", {})
    for name, child in children.items():
        if not child.hidden:
            yield f"{path} {name}", child
            yield from _commands(child, f"{path} {name}")


def _text(text: str) -> Iterator[str]:
    """Yield paragraphs; one after a backspace character keeps its line breaks."""
    for paragraph in re.split(r"\n\s*\n", (text or "").strip()):
        first, _, rest = paragraph.partition("\n")
        if first.strip() == "\b":
            yield f".PP\n.nf\n{_escape(rest)}\n.fi"
        else:
            yield f".PP\n{_escape(paragraph)}"


def _escape(text: str) -> str:
    """Escape a line that begins with a dot or a quote, which would be a macro."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)
