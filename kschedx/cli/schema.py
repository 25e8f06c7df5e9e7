"""`kschedx schema`: what a reader of a document can rely on."""

from __future__ import annotations

from functools import partial

import typer

from kschedx.cli import completion
from kschedx.cli.options import Command, argument
from kschedx.cli.output import Answer, ExitCode

COMMAND = Command(
    "Print the JSON Schema of a document",
    help="""Print the JSON Schema of a document of -o json, or of a scheduler configuration.

\b
Examples:
  kschedx schema Explanation > explanation.schema.json
  kschedx why pod/web-0 -o json |
    check-jsonschema --schemafile explanation.schema.json -
  kschedx schema KubeSchedulerConfiguration > scheduler.schema.json

Without NAME, list them.
""",
)


def schema(name: str | None = argument("[NAME]", complete=completion.documents)) -> Answer | int:
    from kschedx import schemas
    from kschedx.render.manifests import to_json

    if name is not None:
        typer.echo(to_json(schemas.schema(name)))
        return ExitCode.SCHEDULABLE
    from kschedx.render.catalogue import list_lines

    return Answer.of_lines(partial(list_lines, f"{len(schemas.NAMES)} documents", [*schemas.NAMES.items()]))
