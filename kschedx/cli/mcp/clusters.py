"""The clusters that a server was started with, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from kschedx.errors import InputError, nearest


class Clusters(Struct, frozen=True, kw_only=True):
    """What may be asked about. The first snapshot, else the first context, is meant where a question names none."""

    snapshots: tuple[str, ...] = ()
    """Files and folders, or folders whose files may be named."""
    contexts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Of every live cluster: --kubeconfig and the like."""

    def properties(self) -> dict[str, dict[str, object]]:
        """JSON Schema of the arguments that choose one of them."""
        found: dict[str, dict[str, object]] = {}
        if self.snapshots:
            told = f"the cluster: one of {', '.join(self.snapshots)}, or a file in one of them"
            found["snapshot"] = {"type": "string", "description": told}
        if self.contexts:
            found["context"] = {"type": "string", "enum": list(self.contexts), "description": "a live cluster"}
        return found

    def chosen(self, arguments: Mapping[str, object]) -> list[str]:
        """The options that name the cluster of a question. Raises `InputError` for one that is not among these."""
        snapshot, context = arguments.get("snapshot"), arguments.get("context")
        if snapshot is not None and context is not None:
            raise InputError("give a snapshot or a context, not both")
        if context is not None:
            return self._context(str(context))
        if snapshot is not None:
            return [f"--snapshot={self._snapshot(str(snapshot))}"]
        if self.snapshots:
            return [f"--snapshot={self.snapshots[0]}"]
        if self.contexts:
            return self._context(self.contexts[0])
        return list(self.options)

    def _context(self, context: str) -> list[str]:
        if context not in self.contexts:
            raise InputError(
                f'this server was not started with context "{context}"', hint=nearest(context, self.contexts)
            )
        return [*self.options, f"--context={context}"]

    def _snapshot(self, snapshot: str) -> str:
        """A path that is one of those allowed, or lies in one, links followed."""
        for allowed in self.snapshots:
            root = Path(allowed).resolve()
            for path in (Path(snapshot), root / snapshot):
                found = path.resolve()
                if found == root or (root.is_dir() and root in found.parents and found.exists()):
                    return str(found)
        raise InputError(
            f'this server was not started with snapshot "{snapshot}"', hint=nearest(snapshot, self.snapshots)
        )
