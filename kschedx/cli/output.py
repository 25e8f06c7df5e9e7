"""`-o`: the formats of a command's answer, and the only module that prints them."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, assert_never

import typer
from msgspec import Struct
from msgspec.structs import replace

from kschedx import __version__
from kschedx.cli.completion import words
from kschedx.cli.streams import OutputError
from kschedx.controllers.states import ExitCode as ExitCode
from kschedx.errors import (
    InputError,
    KschedxError,
    NotAdmittedError,
    SeveralConfigError,
    UndecidableError,
    system_reason,
)
from kschedx.kube.escaping import typed_command
from kschedx.progress import Phase, report_progress
from kschedx.wording import visible

if TYPE_CHECKING:
    from kschedx.inquiry.profile_difference import Shard
    from kschedx.render.checks import Check
    from kschedx.render.page.model import Page
    from kschedx.render.terminal import StyledLine
    from kschedx.results import Shown


# Packages that only some commands need: extras of the installation, with a clear error if one is missing.


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Wrap the imports of an extra's packages. Raises `InputError` that explains how to install them."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "kschedx":
            raise
        raise InputError(
            f"this needs the extra {extra} ({missing.name} is not installed)",
            hint=f"in a clone: pip install '.[{extra}]'",
        ) from None


# Errors that end a command: a line on standard error and an exit code.

_LONGEST_NAME = 200  # the longest name of a file in an error
_LONGEST_ERROR = 5_000  # characters; the middle of a longer one, which is a long value, is left out


def outcome(command: Callable[[], int]) -> int:
    """The exit code of a command, whatever error ends it. No traceback reaches the user. Raises `OutputError`."""
    try:
        return command()
    except OutputError:
        raise
    except UndecidableError as error:
        return print_error(str(error), ExitCode.UNDECIDED)
    except NotAdmittedError as error:
        return print_error(str(error), ExitCode.UNSCHEDULABLE)
    except SeveralConfigError as error:
        return max(print_error(str(config_error), ExitCode.USAGE) for config_error in error.errors)
    except InputError as error:
        from kschedx.kube.typos import variables_hint
        from kschedx.sources.line_numbers import locate

        for fault in map(locate, error.each):
            fault.hint = "; ".join(filter(None, (fault.hint, variables_hint(f"{fault.message} {fault.hint}"))))
            print_error(str(fault), ExitCode.USAGE)
        return ExitCode.USAGE
    except KschedxError as error:
        return print_error(str(error), ExitCode.USAGE)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        # an error of the system about a file is no defect
        name = str(error.filename) if error.filename else "a file"
        shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
        return print_error(f"{shown}: {system_reason(error)}", ExitCode.USAGE)
    except MemoryError:
        return print_error("not enough memory for this input", ExitCode.USAGE)
    except Exception as error:  # noqa: BLE001 - a defect: reported in one line that says how to see the traceback
        if os.environ.get("KSCHEDX_DEBUG"):
            traceback.print_exc()
        plugin = _plugin_at_fault(error)
        whose = f"of the plugin {plugin}" if plugin else "of kschedx"
        return print_error(
            f"internal error: {type(error).__name__}: {error} (a defect {whose}; KSCHEDX_DEBUG=1 shows where)",
            ExitCode.INTERNAL,
        )


def print_error(text: str, code: ExitCode) -> int:
    half = _LONGEST_ERROR // 2
    shown = text if len(text) <= _LONGEST_ERROR else f"{text[:half]} ... {text[-half:]}"
    typer.echo(f"error: {visible(shown)}", err=True)
    return code


def _plugin_at_fault(error: Exception) -> str:
    if "kschedx.framework.registry" not in sys.modules:
        return ""
    from kschedx.framework.registry import plugin_at_fault

    return plugin_at_fault(error)


_P = ParamSpec("_P")
_T = TypeVar("_T")


class Format(StrEnum):
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    PATCH = "patch"
    MARKDOWN = "markdown"
    HTML = "html"
    SVG = "svg"
    JUNIT = "junit"
    SARIF = "sarif"


class Report(Struct, frozen=True, kw_only=True):
    """The answer of a command in every format; only the requested one is computed."""

    screen: Callable[[int, bool], Sequence[StyledLine]]
    """Returns lines of at most this many columns; with True everything, for -o wide."""
    document: Callable[[], Mapping[str, object]]
    entries: Callable[[], Iterator[tuple[str, object]]] | None = None
    """Returns the document's keys and values in order, if the document may be too large for memory. A list may be an
    iterator."""
    sample: Callable[[], tuple[Mapping[str, object], int]] | None = None
    """Returns the document with some of its items, and how many it has, if the document may be too large for memory."""
    yaml: Callable[[], str] | None = None  # the YAML output, if it is not the document
    names: Callable[[], Iterable[str]] | None = None
    patch: Callable[[], str] | None = None  # returns commands that apply what was found
    page: Callable[[bool], Page] | None = None
    """Returns a page to share, as Markdown, one HTML file, or a picture; with True, it includes everything that a
    reader may open."""
    checks: Callable[[], Sequence[Check]] | None = None  # returns the checks for CI systems

    @classmethod
    def of(
        cls,
        result: Shown,
        *,
        names: Callable[[], Iterable[str]] | None = None,
        yaml: Callable[[], str] | None = None,
    ) -> Report:
        """Return the report of a result that the library has too, and shows in the same way."""
        from kschedx.render import results

        return cls(
            screen=lambda width, wide: results.lines(result, width, wide=wide),
            document=result.to_dict,
            page=lambda _: results.page(result),
            names=names,
            yaml=yaml,
        )

    def name_shard(self, shard: Shard) -> Report:
        """Return the report of a part, whose document names the part."""
        whole, entries = self.document, self.entries
        marked = replace(self, document=lambda: shard.mark(whole()))
        if entries is None:
            return marked
        return replace(marked, entries=lambda: chain(entries(), shard.mark({}).items()))


class Answer(Struct, frozen=True):
    """The result of a command; its caller prints it."""

    report: Report
    exit_code: int

    @classmethod
    def of(cls, report: Report, is_good: bool, *, is_undecided: bool = False) -> Answer:
        """Return an answer with the exit code of a question that has a good answer, a bad one, or none."""
        if is_undecided:
            return cls(report, ExitCode.UNDECIDED)
        return cls(report, ExitCode.SCHEDULABLE if is_good else ExitCode.UNSCHEDULABLE)

    @classmethod
    def of_lines(cls, lines: Callable[[int], Sequence[StyledLine]]) -> Answer:
        """Return an answer that is only a screen. `lines` returns lines of at most this many columns."""
        return cls(Report(screen=lambda width, _: lines(width), document=dict), ExitCode.SCHEDULABLE)


SHARED = (Format.HTML, Format.MARKDOWN, Format.SVG)
ALL = (Format.WIDE, Format.JSON, Format.YAML, Format.NAME, *SHARED)  # the formats of most answers


def option(*formats: Format, text: str) -> Any:
    """Return the option -o of a command whose reports have these formats, and the screen without it."""
    allowed = ", ".join(formats)
    text += "; html, markdown, and svg to share it." if set(SHARED) <= set(formats) and "svg" not in text else ""

    def parsed(typed: str) -> Format:
        if typed not in formats:
            raise typer.BadParameter(f'found "{typed}", allowed are {allowed}')
        return Format(typed)

    return typer.Option(
        None, "--output", "-o", metavar="|".join(formats), parser=parsed, autocompletion=words(*formats), help=text
    )


_KEPT: ContextVar[list[Answer] | None] = ContextVar("kept", default=None)


def answer_to(run: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> Answer | int:
    """Return the answer to a command line without printing it; the exit code if there is no answer."""
    answers: list[Answer] = []
    token = _KEPT.set(answers)
    try:
        code = run(arguments)
    finally:
        _KEPT.reset(token)
    return answers[-1] if answers else code


def show(answer: Answer | int, output: Format | None = None) -> int:
    """Print an answer in the format of -o and return its exit code. A command that prints by itself has only an exit
    code."""
    if isinstance(answer, int):
        return answer
    kept = _KEPT.get()
    if kept is not None:
        kept.append(answer)
    else:
        write(answer.report, output)
    return answer.exit_code


_DIGESTED = 2**20  # the bytes of an input that are read at once for its digest
MANY = 1_000_000  # the characters of a document that are computed before the first is printed


def _held_back(parts: Iterable[str]) -> Iterator[str]:
    """Yield the same text. If an error occurs among its first characters, nothing is printed."""
    held, size, left = list[str](), 0, iter(parts)
    while size < MANY and (part := next(left, None)) is not None:
        held.append(part)
        size += len(part)
    yield "".join(held)
    yield from left


def write(report: Report, output: Format | None) -> None:
    """Print a report in the format of -o."""
    match output:
        case None | Format.WIDE:
            from kschedx.render import terminal

            out = terminal.console()
            lines = report.screen(out.width, output is Format.WIDE)
            report_progress(Phase.WRITING)
            terminal.write(lines, out)
        case Format.YAML if report.yaml is not None:
            typer.echo(report.yaml(), nl=False)
        case Format.JSON | Format.YAML:
            from kschedx.render.manifests import json_parts, yaml_parts

            entries = report.document().items() if report.entries is None else report.entries()
            report_progress(Phase.WRITING)
            for part in _held_back(json_parts(entries) if output is Format.JSON else yaml_parts(entries)):
                typer.echo(part, nl=False)
            if output is Format.JSON:
                typer.echo()
        case Format.NAME:
            for name in _has(report.names, output)():
                typer.echo(visible(name))
        case Format.PATCH:
            typer.echo(_has(report.patch, output)(), nl=False)
        case Format.MARKDOWN | Format.HTML | Format.SVG:
            page = _has(report.page, output)(output is Format.HTML)
            report_progress(Phase.WRITING)
            typer.echo(_page(page, output), nl=False)
        case Format.JUNIT:
            from kschedx.render.checks import junit

            typer.echo(junit(_has(report.checks, output)()), nl=False)
        case Format.SARIF:
            from kschedx.render.checks import sarif

            typer.echo(sarif(_has(report.checks, output)(), __version__), nl=False)
        case _:
            assert_never(output)


def _has(form: Callable[_P, _T] | None, output: Format) -> Callable[_P, _T]:
    """Return the function of a format. Raises `InputError` if the answer to this question lacks the format."""
    if form is None:
        raise InputError(f"-o {output} is not available for this answer", hint="-o wide, json, and yaml always are")
    return form


_ASKED: ContextVar[Sequence[str]] = ContextVar("asked", default=())


@contextmanager
def cite(arguments: Sequence[str]) -> Iterator[None]:
    """Print this command line in the footer of pages within this context."""
    token = _ASKED.set(arguments)
    try:
        yield
    finally:
        _ASKED.reset(token)


_INPUTS: ContextVar[Sequence[Path]] = ContextVar("inputs", default=())


@contextmanager
def cited_inputs(names: Iterable[str]) -> Iterator[None]:
    """Print the digest of these files and folders in the footer of pages in this context; other names are ignored."""
    token = _INPUTS.set([path for path in map(Path, dict.fromkeys(names)) if _exists(path)])
    try:
        yield
    finally:
        _INPUTS.reset(token)


def _exists(path: Path) -> bool:
    try:
        return path.is_file() or path.is_dir()
    except (OSError, ValueError):  # a name that no file can have
        return False


def input_digest(inputs: Iterable[Path]) -> str:
    """Return the first digits of what `cat FILE... | sha256sum` prints; a folder stands for its files by name."""
    from hashlib import sha256  # only pages need it

    digest = sha256()
    for path in inputs:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                with file.open("rb") as content:
                    while part := content.read(_DIGESTED):
                        digest.update(part)
    return digest.hexdigest()[:16]


def command_line() -> str:
    """Return the command line in a form that a shell reads."""
    return typed_command(("kschedx", *_ASKED.get()))


def _page(page: Page, output: Format) -> str:
    from kschedx.render.page.html import html
    from kschedx.render.page.markdown import markdown
    from kschedx.render.page.svg import svg

    if _ASKED.get():
        page = replace(page, footer=(("command", visible(command_line())), *page.footer))
    if _INPUTS.get():
        page = replace(page, footer=(*page.footer, ("input sha256", input_digest(_INPUTS.get()))))
    match output:
        case Format.HTML:
            return html(page)
        case Format.SVG:
            return svg(page)
        case _:
            return markdown(page)
