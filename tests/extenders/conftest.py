"""An extender on the loopback interface."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Json = dict[str, Any]


@dataclass
class GpuShare:
    """Rejects the nodes in `rejections` with their reasons, and scores the nodes in `scores`."""

    url: str = ""
    rejections: dict[str, str] = field(default_factory=dict)
    scores: dict[str, int] = field(default_factory=dict)
    requests: list[tuple[str, Json]] = field(default_factory=list)

    def answer(self, path: str, body: Json) -> object:
        self.requests.append((path, body))
        if path.endswith("/filter"):
            names = body["NodeNames"]
            failed = {name: self.rejections[name] for name in names if name in self.rejections}
            return {"NodeNames": [name for name in names if name not in failed], "FailedNodes": failed}
        return [{"Host": name, "Score": score} for name, score in self.scores.items()]


@pytest.fixture
def gpu_share() -> Iterator[GpuShare]:
    extender = GpuShare()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(extender.answer(self.path, document)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    extender.url = f"http://127.0.0.1:{server.server_port}/gpu"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield extender
    server.shutdown()
    server.server_close()
