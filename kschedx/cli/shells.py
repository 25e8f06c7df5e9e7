"""`kschedx completion`: prints a script of `completions/`, by which a shell completes kschedx.

The shell runs kschedx with _KSCHEDX_COMPLETE set, and reads one candidate per line. It evaluates nothing that kschedx
prints, since names come from clusters.
"""

from __future__ import annotations

from enum import StrEnum

import typer

from kschedx.cli.options import Command, argument

COMMAND = Command(
    "Print the completion script of a shell",
    no_args_is_help=True,
    help="""Print the completion script of a shell.

\b
Examples:
  source <(kschedx completion bash)
  kschedx completion zsh > "${fpath[1]}/_kschedx"
  kschedx completion fish > ~/.config/fish/completions/kschedx.fish

Pods, workloads, nodes, and namespaces are completed from --snapshot, or from the live cluster.
""",
)


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"

    @property
    def file(self) -> str:
        """The file's name in the shell's own folders of completions."""
        return "_kschedx" if self is Shell.ZSH else f"kschedx.{self}"


def completion(shell: Shell = argument("bash|zsh|fish")) -> int:
    from kschedx.cli.files import shipped_folder

    typer.echo((shipped_folder("completions") / shell.file).read_text(encoding="utf-8"), nl=False)
    return 0
