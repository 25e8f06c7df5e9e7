"""`kubectl cluster-info dump`: nodes, and for some namespaces events, controllers, services, pods, and logs.

With --output-directory, it writes `nodes.json`, `NAMESPACE/pods.json`, and so on, or .yaml; logs are `logs.txt`. To
standard output, it writes the same lists in sequence, and between them the logs, each enclosed by two lines:

    ==== START logs for container CONTAINER of pod NAMESPACE/POD ====
    ==== END logs for container CONTAINER of pod NAMESPACE/POD ====

Until 1.10, a last line states that the dump is complete, and the lists have internal types (`lists.versioned`).

Logs can contain anything, even these two lines. So the end of a log counts only if the text after it continues as a
dump does. If that is the case in two places, the end is ambiguous.

Upstream: staging/src/k8s.io/kubectl/pkg/cmd/clusterinfo/clusterinfo_dump.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kschedx.errors import InputError, Place
from kschedx.sources.compression import Readable, Stream
from kschedx.sources.dumps import Dump, Form, Lack, all_but, lack, plain

FORMAT = "kubectl cluster-info dump"
_FILES = ("events", "replication-controllers", "services", "daemonsets", "deployments", "replicasets", "pods")
_DUMPED = (
    "Node", "Event", "ReplicationController", "Service", "DaemonSet", "Deployment", "ReplicaSet", "Pod",
)  # fmt: skip
_ALWAYS_THERE = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
"""Namespaces that every cluster has; by default only one or two of them are dumped."""


def find_cluster_info(names: Sequence[str]) -> Iterator[Form]:
    """Yield the folders among these files that were written with --output-directory."""
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
        # names of logs are not those of manifests; files that were added to the folder are read as well
        yield Form(format=FORMAT, top=top, files=None, lacks=_lacks(everywhere=namespaces[top] >= _ALWAYS_THERE))


def _lacks(*, everywhere: bool) -> tuple[Lack, ...]:
    if everywhere:
        return all_but(_DUMPED)
    return (lack("Pod", "pods of namespaces that were not dumped (--all-namespaces dumps them)"), *all_but(_DUMPED))


# Standard output

_HEAD = re.compile(
    rb'\{\s*"selfLink":\s*"/api/v1/nodes",\s*"resourceVersion"'
    rb'|\{\s*"kind":\s*"NodeList",\s*"apiVersion":\s*"v1",\s*"metadata"'
    rb"|apiVersion: v1\r?\nitems:\r?\n- metadata:"
)
_MARK = re.compile(rb"==== (?P<what>START|END) logs for container (?P<log>\S+ of pod \S+) ====\r?\n")
_IN_A_MARK = b" logs for container "
_BEFORE_IT = (len(b"==== START"), len(b"==== END"))
_EVENTS = (b'"kind": "EventList"', b"\nkind: EventList\n", b'/events",\n')
"""The beginnings of the list of events, of which each namespace has one."""
_NEXT = re.compile(
    rb'==== START logs for container \S+ of pod |\{\s*"(?:kind": *"EventList"|selfLink": *")|---\r?\napiVersion: '
)
_ALL = re.compile(rb"Cluster info dumped to [^\r\n]*\s*\Z")
"""The last line of older versions."""
_MARGIN = 2048
"""Bytes; a mark and the beginning of what follows it are shorter."""
_BLOCK = 1 << 18
_LINE_ENDS = b"\r\n"
_NO_LINE_END = bytes(byte for byte in range(256) if byte not in _LINE_ENDS)


def is_stdout(head: bytes) -> bool:
    """Return whether the text may be a dump. An API server's list of nodes may begin in the same way."""
    return _HEAD.match(head) is not None


class WithoutLogs(Stream):
    """The command's standard output without its logs, of which only the line ends remain, so that line numbers stay
    correct.

    Reading raises InputError if the text ends within a log, or if a log contains what could be its end.
    """

    def __init__(self, file: Readable, source: str) -> None:
        self._file = file
        self._source = source
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
            if self._ended and (all_of_it := _ALL.search(self._text, max(len(self._text) - _MARGIN, 0))):
                self._text = self._text[: all_of_it.start()]
            self._ready = b"".join(self._advance())
        ready, self._ready = self._ready[:size], self._ready[size:]
        return ready

    def dump(self, place: str) -> Dump | None:
        """Return the dump after all of it was read; None if the text was something else."""
        if not self._namespaces:
            return None
        # the output does not name an empty namespace, so namespaces are counted
        return Dump(format=FORMAT, place=place, lacks=_lacks(everywhere=self._namespaces >= len(_ALWAYS_THERE)))

    def _advance(self) -> Iterator[bytes]:
        """Yield the part of the text that is decided; the rest is kept for later."""
        text, at = self._text, 0
        end = len(text) if self._ended else max(len(text) - _MARGIN, 0)
        for mark in _marks(text, end):
            log = mark["log"]
            if mark["what"] == b"END" and self._goes_on(mark.end()):
                if log in self._finished:
                    raise self._two_ends(log)
                if log == self._log:
                    yield self._piece(at, mark.end())
                    self._finished.add(log)
                    self._log, at = None, mark.end()
            elif mark["what"] == b"START" and self._log is None and self._begins_line(mark.start()):
                if log in self._finished:
                    raise self._two_ends(log)
                yield self._piece(at, mark.start())
                self._log, at = log, mark.start()
        end = max(at, end)
        yield self._piece(at, end)
        if end:
            self._at_line_start = text[end - 1 : end] == b"\n"
        self._text = text[end:]
        if self._ended and self._log is not None:
            raise self._error(f"ends within the log of {_shown(self._log)}", "the dump was cut short")

    def _begins_line(self, at: int) -> bool:
        return self._text[at - 1 : at] == b"\n" if at else self._at_line_start

    def _goes_on(self, at: int) -> bool:
        """Return whether a dump can continue, or end, at this position."""
        return _NEXT.match(self._text, at) is not None or (self._ended and at == len(self._text))

    def _two_ends(self, log: bytes) -> InputError:
        message = f"the log of {_shown(log)} ends in two places, and one of them was written by a pod"
        return self._error(message, "dump it with --output-directory")

    def _piece(self, start: int, end: int) -> bytes:
        """Return a piece of the text without the content of logs."""
        piece = self._text[start:end]
        if self._log is None:
            for events in _EVENTS:
                # one that begins in the piece may end after it
                self._namespaces += self._text.count(events, start, end + len(events) - 1)
            return piece
        return piece.translate(None, _NO_LINE_END)

    def _error(self, message: str, hint: str) -> InputError:
        return InputError(message, place=Place(source=self._source), hint=hint)


def _marks(text: bytes, end: int) -> Iterator[re.Match[bytes]]:
    """Yield the marks that begin before `end`. Most of a dump is logs, so they are found by characters that are rare in
    logs."""
    start = text.find(_IN_A_MARK)
    while start >= 0:
        for length in _BEFORE_IT:
            if length <= start < end + length and (mark := _MARK.match(text, start - length)):
                yield mark
        start = text.find(_IN_A_MARK, start + 1)


def _shown(log: bytes) -> str:
    return f"container {log.decode(errors='backslashreplace')}"
