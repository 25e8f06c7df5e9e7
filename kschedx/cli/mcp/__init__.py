"""`kschedx mcp`: the commands as tools for assistants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kschedx.cli.options import Command
from kschedx.cli.output import ExitCode, needs
from kschedx.errors import InputError, Place
from kschedx.progress import silence

COMMAND = Command(
    "Serve assistants (Model Context Protocol)",
    help="""Serve assistants over the Model Context Protocol.

\b
Examples:
  kschedx mcp -s cluster.json.gz       # a snapshot, over stdin and stdout
  kschedx mcp -s dumps/                # every file in a folder
  kschedx mcp --context prod --context staging   # two live clusters
  kschedx mcp --port 8470              # over HTTP on 127.0.0.1

Everything is read-only, and only about the clusters that you name here. A tool returns the screen and a document of
bounded size, and names what it left out. Needs the extra mcp.

Exit codes: 0 the client disconnected, 2 usage or input error.
""",
)


def mcp(
    snapshot: Annotated[
        list[str] | None,
        typer.Option("--snapshot", "-s", metavar="PATH", help="A snapshot, or a folder of them. Repeatable."),
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A context of the kubeconfig. Repeatable."),
    ] = None,
    kubeconfig: Annotated[str | None, typer.Option(metavar="FILE", help="The kubeconfig file.")] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="SECONDS", help="The time limit per answer.")] = 120,
    port: Annotated[int | None, typer.Option(min=1, max=65535, metavar="PORT", help="Serve HTTP on 127.0.0.1.")] = None,
) -> int:
    for path in snapshot or ():
        if not Path(path).exists():
            raise InputError("no such file or folder", place=Place(source=path))
    with needs("mcp"):
        from kschedx.cli.mcp.server import serve
    from kschedx.cli.mcp.server import KnownClusters

    silence()
    file = None if kubeconfig is None else str(Path(kubeconfig).resolve())
    clusters = KnownClusters(snapshots=tuple(snapshot or ()), contexts=tuple(context or ()), kubeconfig=file)
    serve(clusters, limit=limit, port=port)
    return ExitCode.SCHEDULABLE
