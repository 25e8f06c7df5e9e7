"""What `kschedx why` is asked for, beside the cluster and its scheduler."""

from __future__ import annotations

import sys

from msgspec import Struct

from kschedx.cli.output import Format
from kschedx.cli.question import Question


class Wanted(Struct, frozen=True, kw_only=True):
    """What the command line asks for, beside the cluster and its scheduler."""

    names: list[str] = []
    """Of what the cluster has, or will have with `files` applied."""
    files: list[str] = []
    """Manifests. Without `names` everything in them is asked about."""
    all_pending: bool = False
    selector: str | None = None
    all_namespaces: bool = False
    alone: bool = False
    node: list[str] = []
    nodes: str | None = None
    output: Format | None = None
    dry_run: str | None = None
    watch: bool = False
    interactive: bool = False
    fix: int | None = None
    """Which one to apply, from 1."""
    tries: list[str] = []
    """Changes of the pod."""
    shard: str | None = None

    @classmethod
    def targets(cls, arguments: list[str], files: list[str]) -> tuple[list[str], list[str]]:
        """Names and files; `pod web-0` in two words is `pod/web-0`."""
        from kschedx.api.workloads import SHORT_NAMES
        from kschedx.cli.target import NODE_NAMES, is_file

        match arguments:
            case [kind, name] if (kind.lower() in SHORT_NAMES or kind.lower() in NODE_NAMES) and "/" not in name:
                if not is_file(kind) and not is_file(name):
                    return [f"{kind}/{name}"], files
        return [one for one in arguments if not is_file(one)], [
            *files,
            *(one for one in arguments if is_file(one)),
        ]

    @property
    def is_plain(self) -> bool:
        """Nothing is asked for that is about one pod's own story."""
        formats = (None, Format.WIDE, Format.JSON, Format.YAML, Format.NAME)
        alone = self.node or self.nodes or self.interactive or self.fix or self.tries
        return self.output in formats and not alone

    @property
    def is_many(self) -> bool:
        return self.all_pending or self.selector is not None

    def check(self, question: Question) -> None:
        """Raises `InputError` for what does not go together."""
        from kschedx.errors import InputError

        if self.watch and (self.is_many or self.output or "-" in question.snapshot):
            other = "many pods" if self.is_many else f"-o {self.output}" if self.output else "--snapshot -"
            raise InputError(f"--watch is about one pod, as text, and does not go with {other}")
        if self.watch and question.what_if:
            raise InputError("--watch is about the cluster as it is, and does not go with changes")
        if self.interactive and (self.is_many or self.output or self.watch or not sys.stdout.isatty()):
            others = {"many pods": self.is_many, f"-o {self.output}": self.output, "--watch": self.watch}
            other = next((name for name, given in others.items() if given), "a standard output that is no terminal")
            raise InputError(f"--interactive is about one pod, in a terminal, and does not go with {other}")
        if self.shard is not None and not self.is_many:
            raise InputError("--shard is about many pods: --all-pending or -l")
        if self.is_many == bool(self.names or self.files):
            raise InputError("name a TARGET or a file with -f, or ask for many with --all-pending or -l")
        if "-" in question.snapshot and "-" in self.files:
            raise InputError("standard input cannot be both the target and the snapshot")
        if self.nodes not in (None, "all"):
            raise InputError(f'--nodes: found "{self.nodes}", allowed is "all"', hint="--node NAME shows one")
        if self.dry_run not in (None, "server"):
            raise InputError(f'--dry-run: found "{self.dry_run}", allowed is "server"')
        if (self.output is Format.PATCH) > (self.fix is not None):
            raise InputError("-o patch prints a fix", hint="which one says --fix N")
        if self.fix is not None and self.output not in (Format.PATCH, Format.YAML):
            raise InputError("--fix prints a fix to apply", hint="-o patch or -o yaml")
        if (self.fix is not None or self.tries) and (self.is_many or self.watch):
            raise InputError(f"--{'try' if self.tries else 'fix'} is about one pod")
        if self.dry_run and (question.snapshot or self.is_many):
            raise InputError("--dry-run=server is about one manifest and a live cluster")
