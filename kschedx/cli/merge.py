"""`kschedx merge`: combines the parts of one answer."""

from __future__ import annotations

import msgspec
import typer

from kschedx.cli.options import Command, argument
from kschedx.cli.output import ExitCode
from kschedx.errors import InputError, Place

COMMAND = Command(
    "Merge the parts of one answer",
    help="""Merge the parts of one answer. The result equals the undivided answer, byte for byte.

\b
Examples:
  kschedx why --all-pending -s cluster.json --shard 1/8 -o json > part-1.json
  kschedx merge part-*.json > all.json

The parts are the JSON of `kschedx why --all-pending` or `kschedx diff-profiles --all`, each with --shard I/N.

Exit codes: 0, or 2 if a part is missing, duplicate, or of another answer.
""",
)


def merge(files: list[str] = argument("FILE...")) -> int:
    from kschedx.inquiry.profile_difference import DifferencePart, merge_parts
    from kschedx.render.manifests import to_json
    from kschedx.sources.compression import read_file
    from kschedx.sources.lists import explain_malformed
    from kschedx.sources.tree import unreadable

    parts = []
    for file in files:
        place = Place(source=file)
        try:
            text = read_file(file)
        except OSError as error:
            raise unreadable(file, error) from None
        try:
            document = msgspec.json.decode(text)
        except RecursionError:
            raise InputError("not valid JSON: it is nested too deeply", place=place) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise explain_malformed(error, text, place=place) from None
        if not isinstance(document, dict):
            raise InputError("not a document of kschedx", place=place)
        parts.append(DifferencePart(source=file, document=document))
    typer.echo(to_json(merge_parts(parts)))
    return ExitCode.SCHEDULABLE
