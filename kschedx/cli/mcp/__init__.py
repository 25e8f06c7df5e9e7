"""`kschedx mcp`: the questions of the command line, for assistants."""

from __future__ import annotations

from typing import Annotated

import typer

from kschedx.cli.output import ExitCode

HELP = """Answer assistants over the Model Context Protocol: why, simulate, drain, fit and more.

Everything is read-only, and about the clusters that are named here alone. A tool's answer is the first screen as text
and the document, cut down to what can be read at once, with what was left out named. Needs the extra mcp.

\b
Examples:
  kschedx mcp -s cluster.json.gz       # a snapshot, on standard input
  kschedx mcp -s dumps/                # every file in a folder
  kschedx mcp --context prod --context staging   # two live clusters
  kschedx mcp --port 8470              # over HTTP on the loopback

Exit codes: 0 the other side went away, 2 usage or input error.
"""
SUMMARY = "Answer assistants over the Model Context Protocol."


def mcp(
    program: typer.Context,
    snapshot: Annotated[
        list[str] | None,
        typer.Option("--snapshot", "-s", metavar="PATH", help="A snapshot, or a folder of them. Repeatable."),
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option("--context", metavar="NAME", help="A context of the kubeconfig. Repeatable."),
    ] = None,
    kubeconfig: Annotated[str | None, typer.Option("--kubeconfig", metavar="FILE", help="As kubectl's.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="SECONDS", help="For one answer.")] = 120,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, metavar="PORT", help="Serve HTTP on 127.0.0.1.")
    ] = None,
) -> int:
    """The command; its help is HELP."""
    from pathlib import Path

    from kschedx.cli.output import needs
    from kschedx.cli.worker import run_of
    from kschedx.errors import InputError, Place

    for path in snapshot or ():
        if not Path(path).exists():
            raise InputError("no such file or folder", place=Place(source=path))
    with needs("mcp"):
        from kschedx.cli.mcp.server import serve
    from kschedx.cli.mcp.server import Clusters

    options = () if kubeconfig is None else (f"--kubeconfig={Path(kubeconfig).resolve()}",)
    clusters = Clusters(snapshots=tuple(snapshot or ()), contexts=tuple(context or ()), options=options)
    serve(clusters, run_of(program), limit=limit, port=port)
    return ExitCode.SCHEDULABLE
