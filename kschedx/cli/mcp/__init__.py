"""`kschedx mcp`: the commands as tools for assistants."""

from __future__ import annotations

from pathlib import Path

from kschedx.cli.connection import known_contexts
from kschedx.cli.options import Command, value, values
from kschedx.cli.output import ExitCode, needs
from kschedx.errors import InputError
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

Everything is read-only, and only about the clusters that you name here. A tool returns the screen, and on request a
document, of bounded size, and names what it left out. Needs the extra mcp.

Exit codes: 0 the client disconnected, 2 usage or input error.
""",
)


def mcp(
    snapshot: list[str] = values("PATH", "A snapshot, or a folder of them. Repeatable.", "--snapshot", "-s"),
    context: list[str] = values("NAME", "A context of the kubeconfig. Repeatable."),
    kubeconfig: str | None = value("FILE", "The kubeconfig file."),
    limit: int = value("SECONDS", "The time limit per answer.", min=1, default=120),
    port: int | None = value("PORT", "Serve HTTP on 127.0.0.1.", min=1, max=65535),
) -> int:
    for path in snapshot:
        if not Path(path).exists():
            raise InputError("no such file or folder", source=path)
    with needs("mcp"):
        from kschedx.cli.mcp.server import serve
    from kschedx.cli.mcp.server import KnownClusters

    silence()
    file = None if kubeconfig is None else str(Path(kubeconfig).resolve())
    contexts = tuple(known_contexts(context, file))
    clusters = KnownClusters(snapshots=tuple(snapshot), contexts=contexts, kubeconfig=file)
    serve(clusters, limit=limit, port=port)
    return ExitCode.SCHEDULABLE
