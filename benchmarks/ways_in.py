"""The same cluster by every way in: a dump, the files of `kschedx snapshot`, and a server that streams the same bytes.

    python benchmarks/ways_in.py FILE [--pod team-3/pending] [--folder /tmp] [--live]

FILE is a dump as big_cluster.py writes it. All is measured in one run, so that the ratios hold on any machine. The
server is a process of its own that has every page ready; its objects are those of the dump without white space, and
"compact" is a file of the same bytes. Prints a Markdown table.

`--live` measures the server alone: as fast as it can, compressed as API servers do it, and at `RATES`. Beside each
stands a download of the same pages that nothing reads.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec

from kschedx.kube.kinds import EVENTS, KINDS, ResourceKind
from kschedx.sources.live.cluster import PATH
from kschedx.sources.live.lists import path_of

ROOT = Path(__file__).resolve().parent.parent
KSCHEDX = Path(sys.executable).parent / "kschedx"
SNAPSHOTS = ("json", "json.gz", "json.zst", "yaml")
PAGE = 500
PIECE = 1 << 17
RATES = (200, 100, 50, 20)
"""MB/s of a line, that of a gigabit is 125."""

READ = """
import sys, time
from kschedx.cli.connection import Connection, read_cluster
from kschedx.sources.live.client import ApiServer
from kschedx.loading import load_live
kind, where = sys.argv[1:]
get, received = ApiServer.get, [time.process_time()]
def timed(*words, **options):
    body = get(*words, **options)
    received[0] = time.process_time()
    return body
ApiServer.get = timed
start, begun = time.perf_counter(), time.process_time()
read_cluster([where] if kind == "file" else None, Connection(kubeconfig=where if kind == "live" else None))
took, end = time.perf_counter() - start, time.process_time()
(peak,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(took, end - begun, int(peak) * 1024, end - received[0])
"""


def compact(dump: Path, to: Path) -> None:
    """The same objects without white space, a line each."""
    items = msgspec.json.decode(msgspec.json.decode(dump.read_bytes(), type=_List).items, type=list[msgspec.Raw])
    lines = b",\n".join(msgspec.json.format(bytes(item), indent=-1) for item in items)
    to.write_bytes(b'{"apiVersion":"v1","kind":"List","items":[\n' + lines + b"\n]}\n")


class _List(msgspec.Struct):
    items: msgspec.Raw


class _Head(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str


def paths_of(kind: ResourceKind) -> set[str]:
    """Where its list is asked for; some are read in a few namespaces alone."""
    return {path_of(kind, kind.versions[0], only=only) for only in kind.only or ("",)}


def serve(lines: Path, rate: float, *, packs: bool) -> None:
    """Every page ready, on a port that is printed; at most `rate` MB/s, 0 for as fast as it can."""
    items = msgspec.json.decode(msgspec.json.decode(lines.read_bytes(), type=_List).items, type=list[msgspec.Raw])
    kinds: dict[str, list[bytes]] = {}
    for item in items:
        head = msgspec.json.decode(item, type=_Head)
        named = f'{{"apiVersion":"{head.api_version}","kind":"{head.kind}",'.encode()
        kinds.setdefault(head.kind, []).append(b"{" + bytes(item).removeprefix(named))
    pages: dict[str, list[bytes]] = {}
    groups: dict[str, list[str]] = {}
    for kind in (*KINDS.values(), EVENTS):
        result = kinds.get(kind.name, [])
        groups.setdefault(kind.group, []).append(kind.plural)
        for start in range(0, max(len(result), 1), PAGE):
            rest = len(result) - start - PAGE
            more = {"continue": str(start + PAGE), "remainingItemCount": rest} if rest > 0 else {}
            metadata = {"resourceVersion": "7", **more}
            envelope = {"kind": f"{kind.name}List", "apiVersion": kind.api_version, "metadata": metadata}
            body = (
                msgspec.json.encode(envelope)[:-1] + b',"items":[' + b",".join(result[start : start + PAGE]) + b"]}\n"
            )
            body = zlib.compress(body, 1, wbits=31) if packs else body
            for path in paths_of(kind):
                pages.setdefault(path, []).append(body)
    groups.pop("")
    versions = {kind.group: kind.versions[0] for kind in KINDS.values()}
    items_of = [
        {
            "metadata": {"name": group},
            "versions": [{"version": versions[group], "resources": [{"resource": plural} for plural in plurals]}],
        }
        for group, plurals in groups.items()
    ]
    plain = {
        "/version": json.dumps({"gitVersion": "v1.36.2"}).encode(),
        PATH: json.dumps({"kind": "APIGroupDiscoveryList", "items": items_of}).encode(),
    }
    free = [time.monotonic()]
    line = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # as Go sends

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            number = int(parse_qs(parts.query).get("continue", ["0"])[0]) // PAGE
            body = plain.get(parts.path) or pages.get(parts.path, [b""])[number]
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Pages", str(len(pages.get(parts.path, ()))))
            if packs and parts.path not in plain:
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            for start in range(0, len(body), PIECE):
                piece = memoryview(body)[start : start + PIECE]
                if rate:
                    with line:
                        free[0] = until = max(free[0], time.monotonic()) + len(piece) / rate / 1e6
                    time.sleep(max(until - time.monotonic(), 0))
                self.wfile.write(piece)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] # clients leave when they have what they need
    print(server.server_address[1], flush=True)
    server.serve_forever()


def download(port: int) -> tuple[float, float]:
    """Seconds in which all pages of all lists come, the numerous ones one after the other, and of the processor;
    nothing reads them."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    buffer = bytearray(1 << 20)
    start, begun = time.perf_counter(), time.process_time()
    for path in (path for kind in KINDS.values() for path in paths_of(kind)):
        number, count = 0, 1
        while number < count:
            connection.request("GET", f"{path}?limit={PAGE}&continue={number * PAGE}")
            response = connection.getresponse()
            while response.readinto(buffer):
                pass
            number, count = number + 1, int(response.headers["X-Pages"])
    return time.perf_counter() - start, time.process_time() - begun


def live_rows(dump: Path, folder: Path, repeat: int) -> Iterator[str]:
    """A download and a reading of the same pages, on lines of several speeds."""
    lines = folder / f"{dump.stem}.compact.json"
    compact(dump, lines)
    took, processor, peak, _ = measured("file", lines, repeat)
    yield f"| a file of the same bytes | | {took:.1f} s | | | {processor:.2f} s | | {peak / 1e6:,.0f} MB |"
    config = folder / "kubeconfig"
    for rate, packs in ((0, False), (0, True), *((rate, False) for rate in RATES)):
        with subprocess.Popen(
            [sys.executable, __file__, "--serve", str(lines), "--rate", str(rate), *(["--pack"] if packs else [])],
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            try:
                assert server.stdout is not None
                port = int(server.stdout.readline())
                config.write_text(_kubeconfig(port), encoding="utf-8")
                received, least = map(min, zip(*(download(port) for _ in range(repeat)), strict=True))
                took, processor, peak, rest = measured("live", config, repeat)
            finally:
                server.terminate()
        name = f"{rate} MB/s" if rate else f"no limit{', gzip' if packs else ''}"
        times = f"{received:.1f} s | {took:.1f} s | {took / received:.2f}"
        yield f"| {name} | {times} | {least:.2f} s | {processor:.2f} s | {rest:.2f} s | {peak / 1e6:,.0f} MB |"


def measured(kind: str, where: Path, repeat: int) -> tuple[float, float, int, float]:
    """The least seconds of reading in a process of its own, those of the processor, the highest peak, and the seconds
    of the processor after the last byte was received; the first reading does not count."""
    runs = [_run(sys.executable, "-c", READ, kind, str(where)).split() for _ in range(repeat + 1)][1:]
    took, processor, rest = (min(float(run[at]) for run in runs) for at in (0, 1, 3))
    return took, processor, max(int(run[2]) for run in runs), rest


def rows(dump: Path, pod: str, folder: Path, repeat: int) -> Iterator[str]:
    lines = folder / f"{dump.stem}.compact.json"
    compact(dump, lines)
    whole, *_ = measured("file", lines, repeat)
    ways = [("dump", "file", dump), ("compact", "file", lines)]
    for suffix in SNAPSHOTS:
        made = folder / f"{dump.stem}.snapshot.{suffix}"
        start = time.perf_counter()
        _run(KSCHEDX, "snapshot", "-s", str(dump), "-o", str(made))
        yield f"| kschedx snapshot -o x.{suffix} | {time.perf_counter() - start:.2f} s | | {_size(made)} | | |"
        ways.append((f"snapshot .{suffix}", "file", made))
    command = [sys.executable, __file__, "--serve", str(lines)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            config = folder / "kubeconfig"
            config.write_text(_kubeconfig(int(server.stdout.readline())), encoding="utf-8")
            for name, kind, where in [*ways, ("live", "live", config)]:
                took, _, peak, _ = measured(kind, where, repeat)
                option = "--kubeconfig" if kind == "live" else "--snapshot"
                wall = statistics.median(_timed(KSCHEDX, "why", pod, option, where) for _ in range(repeat))
                size = _size(lines if kind == "live" else where)
                yield f"| {name} | {took:.2f} s | {took / whole:.2f} | {size} | {peak / 1e6:,.0f} MB | {wall:.2f} s |"
        finally:
            server.terminate()


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:,.1f} MB"


def _timed(*command: str | Path) -> float:
    start = time.perf_counter()
    _run(*command)
    return time.perf_counter() - start


def _run(*command: str | Path) -> str:
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=ROOT)
    if ran.returncode not in (0, 1) or (ran.returncode and not ran.stdout):
        sys.exit(f"{' '.join(map(str, command))} failed: {ran.stderr}")
    return ran.stdout


def _kubeconfig(port: int) -> str:
    return json.dumps(
        {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "me", "user": {}}],
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--pod", default="team-3/pending", help="namespace/name of the pod to explain")
    parser.add_argument("--folder", type=Path, default=Path("/tmp"), help="where the other forms are written")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--live", action="store_true", help="only a server, on lines of several speeds")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rate", type=float, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--pack", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.file, asked.rate, packs=asked.pack)
        return
    if asked.live:
        columns = (
            "line",
            "download alone",
            "reading",
            "ratio",
            "processor: download",
            "reading",
            "after the last byte",
        )
        print(f"| {' | '.join(columns)} | peak memory |\n|{8 * ' --- |'}")
        for row in live_rows(asked.file.resolve(), asked.folder, asked.repeat):
            print(row, flush=True)
        return
    print(
        "| way in | reading | to compact | size | peak memory | `kschedx why` |\n| --- | --- | --- | --- | --- | --- |"
    )
    for row in rows(asked.file.resolve(), asked.pod, asked.folder, asked.repeat):
        print(row, flush=True)


if __name__ == "__main__":
    main()
