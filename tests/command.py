"""The `kschedx` command in this process: its output, and its exit code."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

from jsonschema import Draft202012Validator

from kschedx.cli.app import run
from kschedx.schemas import schema

ROOT = Path(__file__).resolve().parent.parent


def check_document(document: Mapping[str, object]) -> None:
    """Raise `jsonschema.ValidationError` if the document violates the schema of its kind."""
    _validator(str(document.get("kind"))).validate(document)


@cache
def _validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(schema(kind))


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A finished command."""

    code: int
    out: str
    err: str


def kschedx(
    *arguments: str | Path, columns: int = 100, stdin: str = "", env: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> CommandResult:
    """Run `kschedx ARGUMENTS` as a script does, without color, in a window of `columns`; never raises."""
    streams = [io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8") for text in (stdin, "", "")]
    argv = ["kschedx", *map(str, arguments)]
    clean = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    clean["SSL_CERT_FILE"] = os.devnull  # no test trusts the system's authorities, which take 40 ms to load
    with (
        contextlib.chdir(cwd),
        patch.object(sys, "argv", argv),
        patch.object(sys, "stdin", streams[0]),
        patch.object(sys, "stdout", streams[1]),
        patch.object(sys, "stderr", streams[2]),
        patch.dict(os.environ, clean | {"COLUMNS": str(columns)} | dict(env or {}), clear=True),
    ):
        code = run()
        out, err = (_text(stream) for stream in streams[1:])
    return CommandResult(code=int(code), out=out, err=err)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
