"""The typer application, and the handling of failed commands."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from kschedx import __version__
from kschedx.cli import COMPLETE, COMPLETER
from kschedx.cli import completion as kubectl
from kschedx.cli.help import COMMANDS, HelpCommand, HelpGroup
from kschedx.cli.options import Command
from kschedx.cli.output import ExitCode, cite, outcome, print_error
from kschedx.cli.question import asks
from kschedx.cli.streams import OutputError
from kschedx.wording import visible

NAMES = tuple(name for names in COMMANDS.values() for name in names)
_LISTS_COMMANDS = "man"


def program(names: Sequence[str] = NAMES) -> typer.Typer:
    """Return the application with these commands, whose modules are loaded."""
    app = typer.Typer(
        name="kschedx",
        cls=HelpGroup,
        help="Explain kube-scheduler: why a pod is Pending, or where it goes, and what fixes it. Never writes to a "
        "cluster."
        "\n\n\b\nExamples:\n  kschedx why pod/web-0 -n shop              # a pod of the live cluster"
        "\n  kschedx why --all-pending -s dump.tar.gz   # all pending pods of a dump",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in names:
        of_python = name.replace("-", "_")
        module = import_module(f"kschedx.cli.{'shells' if name == 'completion' else of_python}")
        command: Command = module.COMMAND
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name, short_help=command.summary)
            continue
        app.command(
            name=name,
            help=command.help,
            short_help=command.summary,
            no_args_is_help=command.no_args_is_help,
            context_settings={"allow_interspersed_args": command.allow_interspersed_args},
            cls=HelpCommand,
        )(asks(*command.options)(getattr(module, of_python)))
    return app


def _program_for(arguments: Sequence[str]) -> Callable[..., object]:
    """Return the application with the command of a command line, or with all commands: loading all of them is slow."""
    name = arguments[0] if arguments else ""
    return _command_of((name,) if name in NAMES and name != _LISTS_COMMANDS else NAMES)


@cache
def _command_of(names: tuple[str, ...]) -> Callable[..., object]:
    return typer.main.get_command(program(names))


def _version(value: bool) -> None:
    if value:
        typer.echo(f"kschedx {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the command."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of this process, and return its exit code. No traceback reaches the user."""
    try:
        with cite(sys.argv[1:] if arguments is None else arguments):
            code = outcome(partial(_run, arguments))
        sys.stdout.flush()  # write errors are noticed here, not by Python at exit
        return code
    except OutputError as error:
        return print_error(f"write: {error}", ExitCode.USAGE)


_BEFORE_COMMAND = {
    **dict.fromkeys(("--kubeconfig", "--context", "--cluster", "--user", "--as", "--as-group", "--request-timeout"), 1),
    **dict.fromkeys(("-n", "--namespace"), 1),
    "--insecure-skip-tls-verify": 0,
}
"""kubectl's options that users write before the command, and how many words follow each."""


def _command_first(arguments: Sequence[str]) -> list[str]:
    """Move kubectl's options from before the command to behind it: `--context dev why web` is the same as `why
    --context dev web`."""
    at = 0
    while at < len(arguments):
        name, equals, _ = arguments[at].partition("=")
        if name not in _BEFORE_COMMAND:
            break
        at += 1 if equals else 1 + _BEFORE_COMMAND[name]
    words = [*arguments[at : at + 1], *arguments[:at], *arguments[at + 1 :]]
    return _with_own_output(words) if words[:1] == ["fleet"] else words


def _with_own_output(words: list[str]) -> list[str]:
    """Move the -o of `kschedx fleet` to where the command reads it, even if it was typed behind the question."""
    at = next((at for at, word in enumerate(words) if word.partition("=")[0] in ("-o", "--output")), len(words))
    end = at + (1 if "=" in "".join(words[at : at + 1]) else 2)
    return [*words[:1], *words[at:end], *words[1:at], *words[end:]]


def _run(arguments: Sequence[str] | None) -> int:
    try:
        if arguments is not None:
            words = _command_first(arguments)
            code = _program_for(words)(args=words, standalone_mode=False, prog_name="kschedx", obj=run)
        else:
            code = _run_own()
        return code if isinstance(code, int) else ExitCode.SCHEDULABLE
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        return 130
    except Exception as error:
        if getattr(error, "format_message", None) is None:
            raise
        return _usage(error)


def _run_own() -> object:
    """Run the command line of this process, or return what its shell requests."""
    if kubectl.called_as(sys.argv[0]) == COMPLETER:
        for line in kubectl.candidates(program(), sys.argv[1:]):
            typer.echo(line)
        return ExitCode.SCHEDULABLE
    if COMPLETE in os.environ:
        if not _is_complete_request(os.environ):
            return ExitCode.SCHEDULABLE
        from typer._completion_classes import completion_init

        completion_init()  # typer registers the shells only together with its own options, which kschedx omits
    name, words = kubectl.program_name(sys.argv[0]), _command_first(sys.argv[1:])
    app = _command_of(NAMES) if COMPLETE in os.environ else _program_for(words)
    return app(args=words, standalone_mode=False, prog_name=name, complete_var=COMPLETE, obj=run)


def _is_complete_request(environment: Mapping[str, str]) -> bool:
    """Return whether the shell's words are set too, which completion needs; one leftover variable has no effect."""
    shell = environment[COMPLETE].rpartition("_")[2]
    if environment[COMPLETE].startswith("source_"):
        return True
    needed = ("COMP_WORDS", "COMP_CWORD") if shell == "bash" else ("_TYPER_COMPLETE_ARGS",)
    return all(name in environment for name in needed) and environment.get("COMP_CWORD", "0").isdecimal()


def _usage(error: Exception) -> int:
    """Print a usage error of click's in kubectl's form."""
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", " ".join(["kschedx", *(word for word in sys.argv[1:2] if word in NAMES)]))
    text: str = error.format_message()  # type: ignore[attr-defined] # what it is known by: typer exports no class
    if type(error).__name__ == "NoArgsIsHelpError":
        command = getattr(context, "command", None)
        shown = f"{command.usage(context)}\nSee '{path} --help' for more." if isinstance(command, HelpCommand) else text
        typer.echo(shown, err=True)
        return ExitCode.USAGE
    hint = _missing_option_hint(text, getattr(context, "command", None))
    text = _unknown_command(text) or _in_plain_words(text) + hint
    typer.echo(f"error: {visible(text.replace('Value error, ', ''))}\nSee '{path} --help' for usage.", err=True)
    return ExitCode.USAGE


_MEANT = {
    "capacity": ("fit", "nodes"), "describe": ("why",), "diff": ("diff-profiles",), "events": ("reason",),
    "explain": ("why", "reason"), "get": ("why", "nodes"), "pods": ("why --all-pending",), "queues": ("kueue",),
    "rollout": ("why", "simulate --restart"), "top": ("nodes",), "what-if": ("simulate",),
    **{verb: (f"simulate --{verb}",) for verb in ("apply", "cordon", "delete", "label", "scale", "taint", "uncordon")},
}  # fmt: skip
"""What users of kubectl and other tools type, to the commands of kschedx that answer it."""


def _unknown_command(text: str) -> str:
    """Return the error about a command that does not exist, with those that are meant; empty for another error."""
    said = re.match(r"No such command '(.*)'\.(?: Did you mean '(.*)'\?)?", text)
    if said is None:
        return ""
    names = _MEANT.get(said[1]) or (said[2],)
    meant = " or ".join(f'"{name}"' for name in names if name)
    return f'no command "{said[1]}"' + (f" (did you mean {meant}?)" if meant else "")


_PLAIN = (
    (r"No such option: (\S+?)(?: \(Possible options: .*\))?", 'no option "{0}"'),
    (r"Option '(.*)' requires an argument\.", "{0}: its value is missing"),
    (r"Missing (?:argument|option) '(.*?)(?:\.\.\.)?'\.", "{0} is missing"),
    (r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", "unexpected argument: {0}"),
    (r"'(.*)' is not a valid (?:int|integer)(?: range)?\.", 'found "{0}", expected a whole number'),
    (r"'(.*)' is not a valid float(?: range)?\.", 'found "{0}", expected a number'),
    (r"(\S+) is not in the range x>=(\S+)\.", "found {0}, allowed are numbers from {1}"),
    (r"(\S+) is not in the range (\S+?)<=?x<=?(\S+)\.", "found {0}, allowed are numbers from {1} to {2}"),
    (r"'(.*)' is not one of (.*)\.", 'found "{0}", allowed are {1}'),
)
"""What click says about a command line, and the same in the form of other errors."""


def _in_plain_words(text: str) -> str:
    """Return click's text as another error: `--replicas: found 0, allowed are numbers from 1 to 1000000`."""
    said = re.fullmatch(r"Invalid value(?: for '(.*?)'(?: / '.*?')?)?: (.*)", text, re.DOTALL)
    place, text = (f"{said[1]}: " if said[1] and "|" not in said[1] else "", said[2]) if said else ("", text)
    for pattern, plain in _PLAIN:
        if match := re.fullmatch(pattern, text):
            meant = " or ".join(re.findall(r"(?<=[ ,(])--?[\w-]+", text.partition("Possible options:")[2]))
            hint = f" (did you mean {meant}?)" if meant else ""
            return place + plain.format(*(part.replace("'", "") for part in match.groups() if part)) + hint
    return place + text


def _missing_option_hint(text: str, command: object) -> str:
    """Return the option that is missing before a file, if the command takes no such argument; else an empty string."""
    file = next((argument for argument in sys.argv[1:] if argument in text and Path(argument).exists()), "")
    if not text.startswith("Got unexpected extra argument") or not file:
        return ""
    known = {flag for parameter in getattr(command, "params", ()) for flag in parameter.opts}
    options = {"-f": "use -f for manifests", "-s": "use -s for a dump"}
    said = ", ".join(hint for flag, hint in options.items() if flag in known)
    return f" ({said})" if said else ""
