"""`kschedx integrations`: files with which other programs use kschedx."""

from __future__ import annotations

from functools import partial
from importlib.resources import files

import typer

from kschedx.cli.options import Command, argument
from kschedx.cli.output import Answer, ExitCode
from kschedx.errors import InputError, nearest

INTEGRATIONS = {
    "argo-workflow": "an Argo Workflow that splits one question about many pods",
    "github-action": "a GitHub action that checks the manifests of a pull request",
    "holmesgpt": "a toolset of HolmesGPT",
    "indexed-job": "an Indexed Job that splits one question about many pods",
    "k9s-drain": "a plugin of k9s: can this node be drained",
    "k9s-namespace": "a plugin of k9s: why pods of this namespace are pending",
    "k9s-node": "a plugin of k9s: why pending pods do not fit on this node",
    "k9s-pod": "a plugin of k9s: why this pod is scheduled there, or nowhere",
    "k9s-workload": "a plugin of k9s: would its next pod be scheduled",
    "kubectl-ai": "tools of kubectl-ai",
    "ray": "a Python script for Ray that splits one question about many pods",
    "skill": "a skill file for assistants that run commands",
}
"""Name to description; each is a file of the package."""

_FILES = {"ray": "ray.txt", "skill": "skill.md"}
"""The names of files that are not YAML. A script for a package that kschedx does not need is no module of kschedx."""


def _names(incomplete: str) -> list[str]:
    return [name for name in INTEGRATIONS if name.startswith(incomplete)]


COMMAND = Command(
    "Print files for k9s, CI, and other programs",
    help="""Print a file that connects another program to kschedx. Without NAME, list them.

\b
Examples:
  kschedx integrations                                     # the list
  kschedx integrations k9s-pod > ~/.local/share/k9s/plugins/kschedx-pod.yaml
  mkdir -p .github/actions/kschedx
  kschedx integrations github-action > .github/actions/kschedx/action.yml

Assistants that speak the Model Context Protocol need none: kschedx mcp.

Exit codes: 0, or 2 for an unknown name.
""",
)


def integrations(name: str | None = argument("[NAME]", complete=_names)) -> Answer | int:
    if name is None:
        from kschedx.render.catalogue import list_lines

        return Answer.of_lines(partial(list_lines, f"{len(INTEGRATIONS)} integrations", [*INTEGRATIONS.items()]))
    if name not in INTEGRATIONS:
        hint = nearest(name, INTEGRATIONS) or f"known: {', '.join(INTEGRATIONS)}"
        raise InputError(f'no integration "{name}"', hint=hint)
    typer.echo(
        files("kschedx.integrations").joinpath(_FILES.get(name, f"{name}.yaml")).read_text(encoding="utf-8"), nl=False
    )
    return ExitCode.SCHEDULABLE
