"""A Kubernetes API server in a thread: lists of given objects in pages, and its failures."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from kschedx.kube.custom_resources import KINDS as CUSTOM
from kschedx.kube.kinds import KINDS, READ_LIVE, ResourceKind
from kschedx.sources.live.lists import path_of

Manifest = Mapping[str, object]

CERTIFICATE = Path(__file__).parent / "certificates" / "server.pem"
"""A self-signed certificate for 127.0.0.1, with its key."""


@dataclass(frozen=True, slots=True)
class Request:
    """A received request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, list[str]]
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response instead of a list."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    """The value of Content-Length, if it is not the length of the body."""
    write: Callable[[Handler], None] | None = None
    """Writes the body, until the client closes the connection."""


def failure(status: int, message: str = "", **headers: str) -> Reply:
    """Return an error Status as an API server writes it."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, body=json.dumps(body).encode(), headers=named)


Fault = Callable[[Request], Reply | None]


class FakeApiServer:
    """`faults` are called first, in order; the first response counts."""

    def __init__(self, objects: Iterable[Manifest] = (), *, version: str = "v1.36.2") -> None:
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.page_size = 500
        self.version = version
        self.discovery: Manifest = discovery_of(KINDS.values())
        """The response to /apis."""
        self._lists: dict[str, list[Manifest]] = {}
        self.replace(objects)

    def replace(self, objects: Iterable[Manifest]) -> None:
        """Replace all objects of the cluster."""
        self._lists = {}
        for item in objects:
            self._lists.setdefault(str(item["kind"]), []).append(item)

    def fail(self, path: str, *replies: Reply, forever: bool = False) -> None:
        """Answer the first requests for a path with this end by these replies, or all of them by the last one."""
        left = list(replies)

        def fault(request: Request) -> Reply | None:
            if not left or not request.path.endswith(path):
                return None
            return left[0] if forever and len(left) == 1 else left.pop(0)

        self.faults.append(fault)

    def reply(self, request: Request) -> Reply:
        for fault in self.faults:
            if (result := fault(request)) is not None:
                return result
        if request.path == "/version":
            return Reply(body=json.dumps({"major": "1", "minor": "36", "gitVersion": self.version}).encode())
        if request.path == "/apis":
            return Reply(body=json.dumps(self.discovery).encode())
        namespace = request.path.partition("/namespaces/")[2].partition("/")[0]
        for kind in READ_LIVE.values():
            version = (kind.versions or ("v1",))[0]
            if request.path in (path_of(kind, version, question) for question in ("", namespace)):
                return self._page(kind, request, namespace)
        return failure(404, "the server could not find the requested resource")

    def _page(self, kind: ResourceKind, request: Request, namespace: str) -> Reply:
        named_so = self._lists.get(kind.name, [])
        theirs = [item for item in named_so if (_group(item), kind.name) in CUSTOM]
        if kind.versions:
            objects = [item for item in named_so if item not in theirs]
        else:
            objects = [item for item in theirs if _group(item) == kind.group]
        objects = [item for item in objects if not namespace or _namespace(item) == namespace]
        named = request.query.get("fieldSelector", "").partition("metadata.name=")[2]
        objects = [item for item in objects if not named or _name(item) == named]
        start = int(request.query.get("continue", "0"))
        end = start + min(self.page_size, int(request.query.get("limit", "100000")))
        metadata: dict[str, object] = {"resourceVersion": "7"}
        if end < len(objects):
            metadata |= {"continue": str(end), "remainingItemCount": len(objects) - end}
        version = str(objects[0]["apiVersion"]) if objects else "v1"
        items = [{k: v for k, v in item.items() if k not in ("kind", "apiVersion")} for item in objects[start:end]]
        body = {"kind": f"{kind.name}List", "apiVersion": version, "metadata": metadata, "items": items}
        return Reply(body=json.dumps(body, separators=(",", ":")).encode())


def discovery_of(kinds: Iterable[ResourceKind]) -> Manifest:
    """Return an APIGroupDiscoveryList with these kinds, each in its preferred version."""
    served: dict[str, dict[str, list[str]]] = {}
    for kind in kinds:
        if kind.group:
            served.setdefault(kind.group, {}).setdefault((kind.versions or ("v1",))[0], []).append(kind.plural)
    items = [
        {
            "metadata": {"name": group},
            "versions": [
                {"version": version, "resources": [{"resource": plural} for plural in plurals], "freshness": "Current"}
                for version, plurals in versions.items()
            ],
        }
        for group, versions in served.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _group(manifest: Manifest) -> str:
    return str(manifest.get("apiVersion")).rpartition("/")[0]


def _name(manifest: Manifest) -> object:
    metadata = manifest.get("metadata")
    return metadata.get("name") if isinstance(metadata, Mapping) else None


def _namespace(manifest: Manifest) -> object:
    metadata = manifest.get("metadata")
    return metadata.get("namespace") if isinstance(metadata, Mapping) else None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two packets, and the second would wait 40 ms
    api: FakeApiServer

    def answer(self) -> None:
        parts = urlsplit(self.path)
        headers = {name.lower(): self.headers.get_all(name, []) for name in self.headers}
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        request = Request(self.command, parts.path, dict(parse_qsl(parts.query)), headers, body)
        self.api.requests.append(request)
        reply = self.api.reply(request)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.write is None:
            self.send_header("Content-Length", str(len(reply.body) if reply.length is None else reply.length))
        self.end_headers()
        if reply.write is not None:
            with contextlib.suppress(OSError):
                reply.write(self)
            self.close_connection = True
            return
        self.wfile.write(reply.body)
        if reply.length is not None:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = answer  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Log nothing."""


@contextlib.contextmanager
def served(api: FakeApiServer, *, tls: bool = False, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Yield the URL of the server; encrypted with `tls`, or with `context`."""
    handler = type("BoundHandler", (Handler,), {"api": api})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign] # clients leave when they have what they need
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http{'' if context is None else 's'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def kubeconfig(folder: Path, url: str, *, user: Mapping[str, object] | None = None, **cluster: object) -> Path:
    """Write a kubeconfig with one context, `test`, in namespace `shop`."""
    path = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "here", "user": "me", "namespace": "shop"}}],
        "clusters": [{"name": "here", "cluster": {"server": url} | cluster}],
        "users": [{"name": "me", "user": dict(user or {})}],
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
