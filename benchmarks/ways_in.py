"""The same cluster by every way in: a dump, the files of `kschedx snapshot`, and a server that streams the same bytes.

    python benchmarks/ways_in.py FILE [--pod team-3/pending] [--folder /tmp]

FILE is a dump as big_cluster.py writes it. All is measured in one run, so that the ratios hold on any machine. The
server is a process of its own that has every page ready; its objects are those of the dump without white space, and
"compact" is a file of the same bytes. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
from kschedx.sources.live.resources import RESOURCES

ROOT = Path(__file__).resolve().parent.parent
KSCHEDX = Path(sys.executable).parent / "kschedx"
SNAPSHOTS = ("json", "json.gz", "json.zst", "yaml")
PAGE = 500

READ = """
import sys, time
from kschedx.cli.connection import Connection, read_cluster
start = time.perf_counter()
kind, where = sys.argv[1:]
read_cluster([where] if kind == "file" else None, Connection(kubeconfig=where if kind == "live" else None))
took = time.perf_counter() - start
(peak,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(took, int(peak) * 1024)
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


def serve(lines: Path) -> None:
    """Every page ready, on a port that is printed."""
    items = msgspec.json.decode(msgspec.json.decode(lines.read_bytes(), type=_List).items, type=list[msgspec.Raw])
    kinds: dict[str, list[bytes]] = {}
    for item in items:
        head = msgspec.json.decode(item, type=_Head)
        named = f'{{"apiVersion":"{head.api_version}","kind":"{head.kind}",'.encode()
        kinds.setdefault(head.kind, []).append(b"{" + bytes(item).removeprefix(named))
    pages: dict[str, list[bytes]] = {}
    for resource in RESOURCES:
        found = kinds.get(resource.kind, [])
        for start in range(0, max(len(found), 1), PAGE):
            rest = len(found) - start - PAGE
            more = {"continue": str(start + PAGE), "remainingItemCount": rest} if rest > 0 else {}
            metadata = {"resourceVersion": "7", **more}
            version = f"{resource.group}/{resource.versions[0]}".removeprefix("/")
            envelope = {"kind": f"{resource.kind}List", "apiVersion": version, "metadata": metadata}
            body = msgspec.json.encode(envelope)[:-1] + b',"items":[' + b",".join(found[start : start + PAGE]) + b"]}\n"
            pages.setdefault(resource.path(resource.versions[0]), []).append(body)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            number = int(parse_qs(parts.query).get("continue", ["0"])[0]) // PAGE
            version = json.dumps({"gitVersion": "v1.36.2"}).encode()
            body = version if parts.path == "/version" else pages[parts.path][number]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] # clients leave when they have what they need
    print(server.server_address[1], flush=True)
    server.serve_forever()


def measured(kind: str, where: Path, repeat: int) -> tuple[float, int]:
    """Median seconds and highest peak of reading in a process of its own; the first reading does not count."""
    runs = [_run(sys.executable, "-c", READ, kind, str(where)).split() for _ in range(repeat + 1)][1:]
    return statistics.median(float(took) for took, _ in runs), max(int(peak) for _, peak in runs)


def rows(dump: Path, pod: str, folder: Path, repeat: int) -> Iterator[str]:
    lines = folder / f"{dump.stem}.compact.json"
    compact(dump, lines)
    whole, _ = measured("file", lines, repeat)
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
                took, peak = measured(kind, where, repeat)
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
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.file)
        return
    print(
        "| way in | reading | to compact | size | peak memory | `kschedx why` |\n| --- | --- | --- | --- | --- | --- |"
    )
    for row in rows(asked.file.resolve(), asked.pod, asked.folder, asked.repeat):
        print(row, flush=True)


if __name__ == "__main__":
    main()
