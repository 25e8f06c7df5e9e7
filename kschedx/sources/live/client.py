"""Requests to one API server, limited in time and size, with raw bytes as their result.

They are GETs. The only exception is `ApiServer.dry_run`, for --dry-run=server, which stores nothing.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import urlencode

import msgspec
import urllib3
from urllib3 import exceptions

from kschedx.errors import InputError, Place
from kschedx.kube.escaping import Url
from kschedx.patterns import lazy_pattern
from kschedx.sources.live.credentials import Access
from kschedx.sources.live.kubeconfig import KubeconfigUser, NamedEntry

_MAX_PAGE = 64 << 20  # bytes of a response; five hundred pods have ten million
_FOREVER = 24 * 3600.0  # seconds; for a request without a timeout

_JSON = "application/json"
_READ = 1 << 20
_SHOWN = 300  # characters of a server's message
_TRIES = 10  # attempts if a server asks for a retry


class RefusedError(InputError):
    """The server responded with another status than 200."""

    status: int = 0
    retry_after: float | None = None  # seconds after which the server asks for a retry


class TooLargeError(InputError):
    """A response is larger than _MAX_PAGE."""


class _DroppedError(InputError):
    """The connection ended before the response was complete."""


class _Status(msgspec.Struct):
    """The body of an API server's error."""

    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """--as and --as-group, or the impersonation of the kubeconfig's user."""

    user: str = ""
    groups: Sequence[str] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, user: NamedEntry[KubeconfigUser]) -> Impersonation:
        entry = user.entry
        return cls(user=entry.as_user, groups=entry.as_groups, uid=entry.as_uid, extra=entry.as_user_extra)

    def add_to(self, headers: urllib3.HTTPHeaderDict) -> None:
        if not self.user:
            return
        headers.add("Impersonate-User", self.user)
        for group in self.groups:
            headers.add("Impersonate-Group", group)
        if self.uid:
            headers.add("Impersonate-Uid", self.uid)
        for key, values in self.extra.items():
            for value in values:
                headers.add(f"Impersonate-Extra-{key}", value)


class ApiServer:
    """One server and one identity, for use by several threads."""

    def __init__(
        self,
        access: Access,
        *,
        timeout: float,
        place: Place,
        impersonation: Impersonation | None = None,
    ) -> None:
        """`place` is where the login is configured; errors about the login name it. `timeout` is in seconds, for each
        request including its retries; 0 is none."""
        self.url = str(access.url)  # the URL as it is shown
        self.timeout = timeout or _FOREVER
        self.stopped = threading.Event()  # if set, all running requests stop
        self._access = access
        self._place = place
        self._impersonation = impersonation or Impersonation()
        urllib3.disable_warnings(exceptions.InsecureRequestWarning)

    def get(self, path: str, query: Mapping[str, str] | None = None, *, accept: str = _JSON) -> bytes:
        """Return the body of a 200. Raises `RefusedError` for other responses and `InputError` if there is none in
        time.

        If the server asks for a retry, the request is sent again after the stated time; if the connection breaks, it is
        sent once more. The timeout includes all attempts.
        """
        return self._request(path, query or {}, accept=accept)

    def dry_run(self, path: str, manifest: bytes) -> bytes:
        """Return what the server would store for a created object; it stores nothing (`dryRun=All`). Raises the errors
        of `get`."""
        return self._request(path, {"dryRun": "All"}, manifest)

    def _request(self, path: str, query: Mapping[str, str], sent: bytes | None = None, *, accept: str = _JSON) -> bytes:
        """Send a GET, or a POST if `sent` is given."""
        url = f"{self._access.url.without_credentials}{path}" + (f"?{urlencode(query)}" if query else "")
        deadline = time.monotonic() + self.timeout
        dropped = False
        for tries in range(_TRIES):
            try:
                return self._once(url, path, deadline, sent, accept)
            except RefusedError as refused:
                wait = refused.retry_after
                if wait is None or tries == _TRIES - 1:
                    raise
                if time.monotonic() + wait > deadline:
                    refused.hint = f"retry after {wait:g} s, and --request-timeout is {self.timeout:g} s"
                    raise
                if self.stopped.wait(wait):
                    raise
            except _DroppedError:
                if dropped or tries == _TRIES - 1:
                    raise
                dropped = True
        raise AssertionError("the last try returns or raises")

    def _once(self, url: str, path: str, deadline: float, sent: bytes | None, accept: str) -> bytes:
        place = Place(source=self.url, object=path)
        left = max(deadline - time.monotonic(), 0.001)
        try:
            headers = self._headers(accept)
            if sent is not None:
                headers["Content-Type"] = "application/json"
            response = self._access.pool.request(
                "GET" if sent is None else "POST",
                url,
                body=sent,
                headers=headers,
                preload_content=False,
                retries=False,
                redirect=False,
                timeout=urllib3.Timeout(connect=left, read=left),
            )
            with response:
                body = self._body(response, place, deadline)
        except (exceptions.HTTPError, OSError, ValueError) as error:
            self._explain(error, place)
        if response.status != (200 if sent is None else 201):
            raise self._response_error(response, body, place, headers.get("Authorization", "").partition(" ")[2])
        return body

    def _headers(self, accept: str) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict({"Accept": accept, "Accept-Encoding": "gzip", "User-Agent": "kschedx"})
        authorization = self._access.authorization()
        if authorization:
            headers["Authorization"] = authorization
        self._impersonation.add_to(headers)
        return headers

    def _body(self, response: urllib3.BaseHTTPResponse, place: Place, deadline: float) -> bytes:
        parts: list[bytes] = []
        size = 0
        while part := response.read1(_READ):
            parts.append(part)
            size += len(part)
            if size > _MAX_PAGE:
                response.close()
                raise TooLargeError(f"more than {_MAX_PAGE >> 20} MB in one response", place=place)
            if time.monotonic() > deadline or self.stopped.is_set():
                response.close()
                raise self.late(place)
        return b"".join(parts)

    def late(self, place: Place) -> InputError:
        """Return the error of a request that took too long."""
        return InputError(
            f"no complete answer within {self.timeout:g} s", place=place, hint="--request-timeout allows more"
        )

    def _explain(self, error: Exception, place: Place) -> NoReturn:
        match error:
            case exceptions.SSLError(args=[ssl.SSLCertVerificationError(), *_]):
                message = f"no trusted connection: {_inner(error)}"
                hint = "set certificate-authority, or skip the check with --insecure-skip-tls-verify"
                raise InputError(message, source=self.url, hint=hint) from None
            case exceptions.SSLError(args=[ssl.SSLEOFError() | ssl.SSLZeroReturnError(), *_]):
                raise _DroppedError(f"the connection broke: {_inner(error)}", place=place) from None
            case exceptions.SSLError():
                raise InputError(f"no encrypted connection: {_inner(error)}", source=self.url) from None
            case exceptions.NewConnectionError() | exceptions.NameResolutionError():
                raise InputError(f"cannot be reached: {_inner(error)}", source=self.url) from None
            case exceptions.ProxyError(original_error=cause):
                raise InputError(f"its proxy cannot be used: {_inner(cause)}", source=self.url) from None
            case exceptions.TimeoutError():
                raise self.late(place) from None
            case exceptions.DecodeError():
                raise InputError("the answer is compressed and damaged", place=place) from None
            case exceptions.ProtocolError() | OSError():
                raise _DroppedError(f"the connection broke: {_inner(error)}", place=place) from None
            case _:
                raise InputError(f"cannot be reached: {_inner(error)}", place=place) from None

    def _response_error(
        self, response: urllib3.BaseHTTPResponse, body: bytes, place: Place, secret: str
    ) -> RefusedError:
        """Return the error of a response: the meaning of its status, and the server's message, shortened and without
        the secret that it may repeat."""

        def shown(text: str) -> str:
            return " ".join((text.replace(secret, "…") if secret else text).split())

        status = response.status
        reason = shown(f"{status} {response.reason or ''}")
        try:
            said = msgspec.json.decode(body, type=_Status).message
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # a proxy responds in plain text, or in HTML, which is not shown
            said = "" if b"<" in body else body[: 4 * _SHOWN].decode(errors="replace")
        said = shown(said)
        text = f"{reason}: {said[:_SHOWN]}{'…' if len(said) > _SHOWN else ''}" if said else reason
        if status == 401:
            hint = "log in again, or name another --user"
            refused = RefusedError(f"{self.url} does not accept the credentials ({text})", place=self._place, hint=hint)
        elif 300 <= status < 400:
            target = shown(str(Url(response.headers.get("Location", "elsewhere"))))[:_SHOWN]
            refused = RefusedError(f"not an API server: it sends on to {target} ({reason})", place=place)
        else:
            refused = RefusedError(f"the server answers {text}", place=place)
        refused.status = status
        after = response.headers.get("Retry-After", "")
        if (status == 429 or status >= 500) and after.isascii() and after.isdigit() and len(after) < 10:
            refused.retry_after = float(after)
        return refused


_WRAPPING = lazy_pattern(r"^HTTPS?Connection(?:Pool)?\(.*?\): |\[Errno -?\d+\] ")


def _inner(error: Exception) -> str:
    """Return the message of the cause on one line, without urllib3's objects."""
    text = str(error.args[1] if isinstance(error, exceptions.ProtocolError) and len(error.args) > 1 else error)
    return " ".join(_WRAPPING.sub("", text).split())[:_SHOWN]
