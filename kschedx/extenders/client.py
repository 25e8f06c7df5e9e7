"""Requests to HTTP extenders, and recordings of their answers.

A request is a POST of JSON with limits of time and size. Failures that reach an event have the words of Go's HTTP
client: connection refused or closed, timeout, untrusted certificate. Requests use no proxy, and a password or a client
certificate goes only to the configured host. Upstream: makeTransport and send in pkg/scheduler/extender.go.
"""

from __future__ import annotations

import http.client
import os
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Self, assert_never
from urllib.parse import urljoin, urlsplit

import msgspec
import urllib3
from msgspec import NODEFAULT, Struct
from msgspec.structs import replace
from urllib3 import exceptions

from kschedx.errors import InputError, Place, UndecidableError, system_reason
from kschedx.framework.config.decoding import ExtenderTLSConfig
from kschedx.framework.extenders import Ask, ExtenderAnswer, ExtenderFailure, ExtenderRequest, Reply
from kschedx.kube.decoding import map_at
from kschedx.kube.documents import API_VERSION, Json
from kschedx.kube.escaping import MASK, Url
from kschedx.kube.field_errors import quote_go
from kschedx.kube.scalars import NANOSECONDS
from kschedx.kube.types import Node, Pod
from kschedx.snapshot.snapshot import StoredManifests
from kschedx.sources.compression import read_file
from kschedx.sources.dumps import ignore
from kschedx.sources.files import read
from kschedx.sources.lists import RAWS
from kschedx.sources.live.credentials import load_certificate

# Recorded answers of extenders, which answer the same requests again.
# A recording is an object of kind `ExtenderAnswers` in `kschedx/v1`: in its own file, or in a snapshot. A request is
# recognized by its URL, its pod, and its subject: the nodes, or the victims on each node, in any order. Passwords in
# URLs are not kept.

_KIND = "ExtenderAnswers"


class _RecordedCall(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    url: str
    verb: str
    pod: str
    about: tuple[str, ...] = ()
    status: int = 0
    body: str = ""  # a byte that is not UTF-8 is read as U+FFFD anyway
    ended: str = "EOF"
    error: str = ""  # if there is no answer

    @classmethod
    def of(cls, question: ExtenderRequest, reply: Reply) -> Self:
        request = cls(
            url=str(question.url),
            verb=question.verb.value,
            pod=question.pod,
            about=tuple(sorted(question.about)),
        )
        match reply:
            case ExtenderFailure(text=text):
                return replace(request, error=text)
            case ExtenderAnswer(status=status, body=body, ended=ended):
                return replace(request, status=status, body=body.decode("utf-8", "replace"), ended=ended)
            case _:
                assert_never(reply)

    @property
    def key(self) -> tuple[object, ...]:
        return self.url, self.verb, self.pod, self.about

    @property
    def reply(self) -> Reply:
        if self.error:
            return ExtenderFailure(text=self.error)
        return ExtenderAnswer(status=self.status, body=self.body.encode(), ended=self.ended)


class _Recording(Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = API_VERSION
    kind: str = _KIND
    answers: tuple[_RecordedCall, ...] = ()


class Recorder:
    """A wrapper that records the answers of another source."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._kept: dict[tuple[object, ...], _RecordedCall] = {}

    def __call__(self, questions: tuple[ExtenderRequest, ...], /) -> tuple[Reply, ...]:
        replies = self._ask(questions)
        for question, reply in zip(questions, replies, strict=True):
            recorded = _RecordedCall.of(question, reply)
            self._kept[recorded.key] = recorded
        return replies

    @property
    def recording(self) -> _Recording:
        return _Recording(answers=tuple(self._kept.values()))


class _Replay:
    """Answers from recordings. Raises `UndecidableError` for a request that they lack."""

    def __init__(self, recordings: Iterable[_Recording], name: str = "the recording") -> None:
        """`name` is the name of the recordings in errors."""
        self._replies = {answer.key: answer.reply for recording in recordings for answer in recording.answers}
        self._name = name

    def __call__(self, questions: tuple[ExtenderRequest, ...], /) -> tuple[Reply, ...]:
        return tuple(map(self._reply, questions))

    def _reply(self, question: ExtenderRequest) -> Reply:
        url = str(question.url)
        reply = self._replies.get((url, question.verb.value, question.pod, tuple(sorted(question.about))))
        if reply is None:
            what = "candidates" if question.verb == "preempt" else "nodes"
            raise UndecidableError(
                f"{self._name} has no answer of {url} about {question.pod} on these {len(question.about):,} {what} "
                "(--extenders call calls it, --extenders record=FILE keeps its answer)"
            )
        return reply


def _recording_of(manifest: object) -> _Recording:
    """Return a recording as parsed from YAML or JSON. Raises `InputError`."""
    try:
        recording = msgspec.convert(manifest, _Recording)
    except msgspec.ValidationError as error:
        raise InputError(f"no recording of extenders: {str(error).replace('`', '')}") from None
    if (recording.api_version, recording.kind) != (API_VERSION, _KIND):
        raise InputError(f"expected kind {_KIND} in {API_VERSION}, found {recording.kind} in {recording.api_version}")
    return recording


CALL = "call"
_DEFAULT_TIMEOUT = 5.0  # seconds, for an extender without an httpTimeout
MAX_ANSWER = 64 << 20  # bytes; kube-scheduler has no limit
_MAX_REDIRECTS = 10
_OK = 200
_GRACE = 0.5  # seconds that a request may need to notice its timeout
_FOLLOWED = (301, 302, 303, 307, 308)
_WITH_BODY = (307, 308)
_READ = 1 << 20
_HEADERS_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_BODY_LATE = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"


def answer_source(extenders: str | Mapping[str, object]) -> Ask:
    """Return the source of answers: the extenders themselves for "call", or a recording. Raises `InputError`."""
    if isinstance(extenders, Mapping):
        return _Replay([_recording_of(extenders)])
    if extenders == CALL:
        return call
    raise InputError(f'extenders: found {extenders!r}, allowed are "call" and a recording')


def load_replay(path: str) -> _Replay:
    """Return the recordings in a file of any form that a snapshot can have. Raises `InputError` if there are none."""
    manifests = (msgspec.json.decode(raw) for batch in read(path, ignore) for raw in batch.decode(RAWS))
    recordings = [manifest for manifest in manifests if isinstance(manifest, Mapping) and manifest.get("kind") == _KIND]
    if not recordings:
        hint = "kschedx why --extenders record=FILE writes one"
        raise InputError(f"holds no {_KIND}", source=path, hint=hint)
    return _Replay(map(_recording_of, recordings), path)


def call(requests: tuple[ExtenderRequest, ...]) -> tuple[Reply, ...]:
    """Send all requests at the same time. Raises `UndecidableError` for an answer larger than MAX_ANSWER, and
    `InputError` for unreadable certificates."""
    urllib3.disable_warnings(exceptions.InsecureRequestWarning)
    exchanges = [_Exchange(request) for request in requests]
    for exchange in exchanges:
        exchange.start()
    return tuple(exchange.reply() for exchange in exchanges)


class _Exchange(threading.Thread):
    """One request with its redirects; after a timeout, its thread is abandoned."""

    def __init__(self, request: ExtenderRequest) -> None:
        super().__init__(daemon=True)
        self._request = request
        self._deadline = time.monotonic() + (request.extender.http_timeout / NANOSECONDS["s"] or _DEFAULT_TIMEOUT)
        self._url = request.url
        self._body: list[bytes] | None = None  # the part that was read; None before the headers arrive
        self._login = ""  # what was sent as `Authorization`, which a server may repeat
        self._outcome: Reply | BaseException | None = None

    def run(self) -> None:
        try:
            self._outcome = self._exchange()
        except (exceptions.HTTPError, http.client.HTTPException, OSError, ValueError) as error:
            self._outcome = self._failure(self._words(error))
        except BaseException as error:  # noqa: BLE001 - raised again by `reply`
            self._outcome = error

    def reply(self) -> Reply:
        self.join(max(self._deadline - time.monotonic(), 0) + _GRACE)
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome or self._failure("")

    def _exchange(self) -> Reply:
        method, sent, own, location = "POST", self._request.body(), _origin(self._url), ""
        for _ in range(_MAX_REDIRECTS):
            with self._send(method, sent, is_own=_origin(self._url) == own) as response:
                location = response.headers.get("Location", "") if response.status in _FOLLOWED else ""
                if not location:
                    return self._read(response)
                if response.status not in _WITH_BODY:
                    method, sent = "GET", b""
            self._url = Url(urljoin(self._url.without_credentials, location))
        self._url = Url(location)  # Go prints it as the answer has it
        return self._failure(f"stopped after {_MAX_REDIRECTS} redirects")

    def _send(self, method: str, sent: bytes, *, is_own: bool) -> urllib3.BaseHTTPResponse:
        left = max(self._deadline - time.monotonic(), 0.001)
        tls = self._request.extender.tls_config or ExtenderTLSConfig()
        headers = {"Accept-Encoding": "gzip", "Connection": "close", "User-Agent": "kschedx"}
        if sent:
            headers["Content-Type"] = "application/json"
        credentials = self._url.credentials or (self._request.url.credentials if is_own else "")
        if credentials:
            headers |= urllib3.make_headers(basic_auth=credentials)
            self._login = headers["authorization"].removeprefix("Basic ")
        url = self._url.without_credentials
        context = self._context(tls, is_own=is_own) if url.startswith("https:") else None
        pool = urllib3.PoolManager(ssl_context=context, server_hostname=tls.server_name or None)
        return pool.request(
            method,
            url,
            body=sent or None,
            headers=headers,
            timeout=urllib3.Timeout(connect=left, read=left),
            preload_content=False,
            retries=False,
            redirect=False,
        )

    def _context(self, tls: ExtenderTLSConfig, *, is_own: bool) -> ssl.SSLContext:
        """Return the TLS context; `enableHTTPS` without a CA trusts any server."""
        authority = self._pem(tls.ca_data, tls.ca_file, "caFile")
        try:
            context = ssl.create_default_context(cadata=authority.decode("ascii", "replace") or None)
        except (ssl.SSLError, ValueError):
            raise InputError("holds no certificate in PEM", place=self._place("caFile")) from None
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Go has no such rules
        if tls.insecure or (self._request.extender.enable_https and not authority):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate = self._pem(tls.cert_data, tls.cert_file, "certFile")
        key = self._pem(tls.key_data, tls.key_file, "keyFile")
        if certificate and key and is_own:
            load_certificate(context, certificate, key, self._place("certFile"))
        return context

    def _pem(self, data: bytes, file: str, field: str) -> bytes:
        try:
            return data or (read_file(file) if file else b"")
        except OSError as error:
            reason = system_reason(error)
            text = f"{file}: {reason} (it is a file of kube-scheduler's machine; copy it here)"
            raise InputError(text, place=self._place(field)) from None

    def _place(self, field: str) -> Place:
        return Place(field=f"extenders[{self._request.index}].tlsConfig.{field}")

    def _read(self, response: urllib3.BaseHTTPResponse) -> Reply:
        if response.status != _OK:
            return ExtenderAnswer(status=response.status)
        self._body = []
        size = 0
        while part := response.read1(_READ):
            self._body.append(part)
            size += len(part)
            if size > MAX_ANSWER:
                raise UndecidableError(
                    f"the extender at {self._url} answers with more than {MAX_ANSWER >> 20} MB: "
                    "kschedx reads no further, and kube-scheduler has no limit"
                )
            if time.monotonic() > self._deadline:
                return self._failure("")
        return ExtenderAnswer(status=_OK, body=self._shown_body())

    def _shown_body(self) -> bytes:
        """Return what was read of the body, without the login."""
        body = b"".join(self._body or ())
        return body.replace(self._login.encode(), MASK.encode()) if self._login else body

    # --- failures

    def _failure(self, words: str) -> Reply:
        """Return the reply for a failure; empty `words` mean a timeout. A failure within the body ends the body there;
        before the body, there is no answer."""
        if self._body is not None:
            return ExtenderAnswer(status=_OK, body=self._shown_body(), ended=words or _BODY_LATE)
        return ExtenderFailure(text=f"Post {quote_go(str(self._url))}: {words or _HEADERS_LATE}")

    def _words(self, error: Exception) -> str:
        """Return Go's message for an error; empty for a timeout."""
        parts = urlsplit(self._url.without_credentials)
        is_wrapped = isinstance(error, exceptions.ProtocolError | exceptions.SSLError)
        cause = error.args[-1] if is_wrapped else error.__cause__
        match error, cause:
            case exceptions.NameResolutionError(), _:
                return f"dial tcp: lookup {parts.hostname}: no such host"
            case exceptions.NewConnectionError(), OSError():
                port = parts.port or (443 if parts.scheme == "https" else 80)
                return f"dial tcp {parts.hostname}:{port}: connect: {_errno(cause)}"
            case ((exceptions.TimeoutError() | TimeoutError()), _):
                return ""
            case _ if time.monotonic() >= self._deadline:
                return ""
            case _, ssl.SSLCertVerificationError():
                because = _UNTRUSTED.get(cause.verify_code, cause.verify_message)
                return f"tls: failed to verify certificate: x509: {because}"
            case _, ssl.SSLError(reason=str() as reason):
                return f"tls: {reason.lower().replace('_', ' ')}"
            case _, exceptions.IncompleteRead() | http.client.IncompleteRead():
                return "unexpected EOF"
            case _, http.client.RemoteDisconnected():
                return "EOF"
            case _, OSError():
                return f"read: {_errno(cause)}"
        return str(error)


_UNTRUSTED = {
    **dict.fromkeys((9, 10), "certificate has expired or is not yet valid"),
    **dict.fromkeys((18, 19, 20, 21), "certificate signed by unknown authority"),
}
"""OpenSSL's codes to Go's messages."""


def _errno(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)


def _origin(url: Url) -> tuple[str, str]:
    parts = urlsplit(url.without_credentials)
    return parts.scheme, parts.netloc


# Requests to an extender, with whole pods and nodes as kube-scheduler stores them.
# Objects are the manifests as read, with the API server's defaults, and without the fields that kube-scheduler's cache
# drops.


_AS_ADMITTED = frozenset({"tolerations", "nodeSelector"})
"""Fields of a pod that scheduling reads as a whole: admission can change any part of them."""


class Objects:
    """A cluster's pods and nodes as JSON for requests."""

    def __init__(self, manifests: StoredManifests | None) -> None:
        self._manifests = manifests

    def incoming_pod(self, pod: Pod) -> Json:
        manifest = self.pod(pod)
        spec, status = dict(map_at(manifest, "spec")), dict(map_at(manifest, "status"))
        if not pod.spec.node_name:
            spec.pop("nodeName", None)
        status.setdefault("phase", "Pending")
        return manifest | {"spec": spec, "status": status}

    def pod(self, pod: Pod) -> Json:
        return _merge(_kept(self._known("Pod", pod.key)), _plain(pod))

    def node(self, node: Node) -> Json:
        known = self._known("Node", node.name)
        manifest = _kept(known) if known else _merge({}, _plain(node))
        status = dict(map_at(manifest, "status"))
        if not status.get("allocatable") and node.status.allocatable:
            status["allocatable"] = dict(node.status.allocatable)
        return manifest | {"status": status}

    def _known(self, kind: str, name: str) -> Mapping[str, object]:
        if self._manifests is None:
            raise UndecidableError(
                f"{kind} {name}: the extenders of the configuration get whole objects, and this snapshot keeps only "
                "what scheduling reads (load it with whole=True)"
            )
        return self._manifests.get(kind, name) or {}  # a simulated object has only its typed record


def _kept(manifest: Mapping[str, object]) -> Json:
    """The manifest without its kind, which a typed client omits, and without managedFields, which its cache drops."""
    kept = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    metadata = kept.get("metadata")
    if isinstance(metadata, Mapping):
        kept["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
    return kept


def _plain(value: object) -> object:
    """Convert a typed record to JSON, without fields that have their defaults."""
    match value:
        case Struct():
            document: Json = {}
            for info in msgspec.structs.fields(value):
                held = getattr(value, info.name)
                if held != (info.default if info.default_factory is NODEFAULT else info.default_factory()):
                    document[info.encode_name] = _plain(held)
            return document
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case tuple() | list():
            return [_plain(item) for item in value]
        case _:
            return value


def _merge(written: Mapping[str, object], typed: object) -> Json:
    """Return the written fields, and those that only the typed record has."""
    merged = dict(written)
    for key, value in typed.items() if isinstance(typed, Mapping) else ():
        before = merged.get(key)
        if before is None or key in _AS_ADMITTED:
            merged[key] = value
        elif isinstance(before, Mapping):
            merged[key] = _merge(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            merged[key] = _side_by_side(before, value)
    return merged


def _side_by_side(written: list[object], typed: list[object]) -> list[object]:
    """Merge two lists of the same items in the same order; the typed one may have more at its end."""
    pairs = zip(written, typed, strict=False)
    both = [_merge(item, other) if isinstance(item, Mapping) else item for item, other in pairs]
    return [*both, *written[len(both) :], *typed[len(both) :]]
