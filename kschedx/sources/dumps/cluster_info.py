"""`kubectl cluster-info dump`: nodes, and for some namespaces events, controllers, services, pods and logs.

With --output-directory it writes `nodes.json` and `NAMESPACE/pods.json` and so on, or .yaml; logs are `logs.txt`. To
standard output it writes the same lists one after the other, and the logs between them, each in two lines of its own:

    ==== START logs for container CONTAINER of pod NAMESPACE/POD ====
    ==== END logs for container CONTAINER of pod NAMESPACE/POD ====

Logs hold anything, those two lines included. So the end of a log is believed only where the dump goes on after it as a
dump does; where that is so in two places, nobody can say which is the right one.

Upstream: staging/src/k8s.io/kubectl/pkg/cmd/clusterinfo/clusterinfo_dump.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kschedx.errors import InputError, Place
from kschedx.sources.dumps import Dump, Lack
from kschedx.sources.dumps.lacks import all_but, lack
from kschedx.sources.dumps.layout import Layout, plain
from kschedx.sources.streams import Readable, Stream

FORMAT = "kubectl cluster-info dump"
_FILES = ("events", "replication-controllers", "services", "daemonsets", "deployments", "replicasets", "pods")
_DUMPED = (
    "Node", "Event", "ReplicationController", "Service", "DaemonSet", "Deployment", "ReplicaSet", "Pod",
)  # fmt: skip
_ALWAYS_THERE = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
"""Namespaces that every cluster has; by default only one or two of them are dumped."""


def find(names: Sequence[str]) -> Iterator[Layout]:
    """The folders among those of these files that --output-directory has written."""
    present = {plain(name) for name in names}
    namespaces: dict[str, set[str]] = {}
    for name in present:
        folder, _, last = name.rpartition("/")
        suffix = last.removeprefix("replication-controllers")
        if suffix in (".json", ".yaml") and all(f"{folder}/{file}{suffix}" in present for file in _FILES):
            top, _, namespace = folder.rpartition("/")
            if f"{top}/nodes{suffix}".lstrip("/") in present:
                namespaces.setdefault(top, set()).add(namespace)
    for top in sorted(namespaces):
        # logs are no manifests by their name; what somebody has added to the folder is read as well
        yield Layout(format=FORMAT, top=top, files=None, lacks=_lacks(everywhere=namespaces[top] >= _ALWAYS_THERE))


def _lacks(*, everywhere: bool) -> tuple[Lack, ...]:
    if everywhere:
        return all_but(_DUMPED)
    return (lack("Pod", "pods of namespaces that were not dumped (--all-namespaces dumps them)"), *all_but(_DUMPED))


# Standard output

_HEAD = re.compile(
    rb'\{\s*"kind":\s*"NodeList",\s*"apiVersion":\s*"v1",\s*"metadata"'
    rb"|apiVersion: v1\r?\nitems:\r?\n- metadata:"
)
_MARK = re.compile(
    rb"==== (?P<what>START|END) logs for container (?P<log>\S+ of pod \S+) ====\r?\n"
    rb'|^(?:    "kind": "EventList"|kind: EventList\b)',
    re.MULTILINE,
)
_NEXT = re.compile(rb'==== START logs for container \S+ of pod |\{\s*"kind": *"EventList"|---\r?\napiVersion: ')
_MARGIN = 2048
"""Bytes; a mark and what tells that the dump goes on are shorter."""
_BLOCK = 1 << 18
_LINE_ENDS = b"\r\n"
_BLANK = bytes(byte if byte in _LINE_ENDS else 0x20 for byte in range(256))
_NO_LINE_END = bytes(byte for byte in range(256) if byte not in _LINE_ENDS)


def is_stdout(head: bytes) -> bool:
    """A dump may begin so, and so may an API server's list of nodes."""
    return _HEAD.match(head) is not None


class WithoutLogs(Stream):
    """What the command has written to standard output, with only the line ends left of logs.

    `same_offsets` keeps the length too. Reading raises InputError where the logs end in the middle, and where a log
    holds what may as well be its end.
    """

    def __init__(self, file: Readable, source: str, *, same_offsets: bool) -> None:
        self._file = file
        self._source = source
        self._same_offsets = same_offsets
        self._text = b""
        self._ready = b""
        self._ended = False
        self._log: bytes | None = None
        """The container and pod whose log is being read."""
        self._finished: set[bytes] = set()
        self._at_line_start = True
        self._namespaces = 0

    def _next(self, size: int) -> bytes:
        while not self._ready and not self._ended:
            block = self._file.read(_BLOCK)
            self._ended = not block
            self._text += block or b""
            self._ready = b"".join(self._advance())
        ready, self._ready = self._ready[:size], self._ready[size:]
        return ready

    def dump(self, place: str) -> Dump | None:
        """What was read, once all of it was; None if it was something else."""
        if not self._namespaces:
            return None
        # an empty namespace leaves no name, so they are counted
        return Dump(format=FORMAT, place=place, lacks=_lacks(everywhere=self._namespaces >= len(_ALWAYS_THERE)))

    def _advance(self) -> Iterator[bytes]:
        """What can be said of the text at hand; the rest stays there."""
        text, at = self._text, 0
        end = len(text) if self._ended else max(len(text) - _MARGIN, 0)
        for mark in _MARK.finditer(text):
            if mark.start() >= end:
                break
            log, what = mark["log"], mark["what"]
            if what == b"END" and self._goes_on(mark.end()):
                if log == self._log:
                    yield self._piece(text[at : mark.end()])
                    self._finished.add(log)
                    self._log, at = None, mark.end()
                elif log in self._finished:
                    raise self._two_ends(log)
            elif self._log is None and self._begins_line(mark.start()):
                if what == b"START":
                    if log in self._finished:
                        raise self._two_ends(log)
                    yield self._piece(text[at : mark.start()])
                    self._log, at = log, mark.start()
                elif what is None:
                    self._namespaces += 1
        end = max(at, end)
        yield self._piece(text[at:end])
        if end:
            self._at_line_start = text[end - 1 : end] == b"\n"
        self._text = text[end:]
        if self._ended and self._log is not None:
            raise self._error(f"ends within the log of {_shown(self._log)}", "the dump was cut short")

    def _begins_line(self, at: int) -> bool:
        return self._text[at - 1 : at] == b"\n" if at else self._at_line_start

    def _goes_on(self, at: int) -> bool:
        """After this a dump may go on, or end."""
        return _NEXT.match(self._text, at) is not None or (self._ended and at == len(self._text))

    def _two_ends(self, log: bytes) -> InputError:
        message = f"the log of {_shown(log)} ends in two places, and one of them was written by a pod"
        return self._error(message, "dump it with --output-directory")

    def _piece(self, piece: bytes) -> bytes:
        if self._log is None:
            return piece
        return piece.translate(_BLANK) if self._same_offsets else piece.translate(None, _NO_LINE_END)

    def _error(self, message: str, hint: str) -> InputError:
        return InputError(message, place=Place(source=self._source), hint=hint)


def _shown(log: bytes) -> str:
    return f"container {log.decode(errors='backslashreplace')}"
