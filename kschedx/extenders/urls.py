"""URLs as Go reads and writes them, and where a redirect leads.

Upstream: net/url. Text that is no UTF-8 is kept as surrogates, a character for each byte.
"""

from __future__ import annotations

import ipaddress
import re
import string
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from kschedx.kube.field_errors import quoted

LENIENT = "surrogateescape"
_UNESCAPED_PATH = "$&+,/:;=@-_.~!'()*[]%"
"""What stays in a path that is valid as it is written."""
_ESCAPED_PATH = "$&+,/:;=@-_.~"
_HOST_AS_IT_IS = "!$&'()*+,;=:[]<>\"%-_.~"
_HOST = frozenset(string.ascii_letters + string.digits + _HOST_AS_IT_IS)
_USER = frozenset(string.ascii_letters + string.digits + "-._~!$&'()*+,;=%:@")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})(.{0,2})", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class URLError(Exception):
    """`str()` is the text of Go's error."""


class URL(Struct, frozen=True, kw_only=True):
    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    """As it is written, with its password."""
    host: str = ""
    """With its port."""
    has_host: bool = False
    """There is a place for one, though it may be empty."""
    path: str = ""
    """As it is sent."""
    query: str | None = None
    fragment: str = ""

    @property
    def hostname(self) -> str:
        """Without the brackets of an IPv6 address."""
        return re.sub(r":\d*$", "", self.host).removeprefix("[").removesuffix("]")

    @property
    def port(self) -> str:
        """Empty for the scheme's own."""
        found = re.search(r":(\d*)$", self.host)
        return found[1] if found else ""

    @property
    def username(self) -> str:
        return unquote((self.user or "").partition(":")[0])

    @property
    def password(self) -> str | None:
        _, colon, password = (self.user or "").partition(":")
        return unquote(password) if colon else None

    @property
    def target(self) -> str:
        """The first line of a request asks for it."""
        return (self.path or "/") + self._query

    @property
    def without_empty_port(self) -> URL:
        return replace(self, host=self.host.removesuffix(":"))

    @property
    def without_user(self) -> str:
        return str(replace(self, user=None))

    @property
    def _query(self) -> str:
        return "" if self.query is None else f"?{self.query}"

    def __str__(self) -> str:
        """As Go's client shows it: in place of a password stands `***`."""
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            text += self.opaque
        else:
            if self.host or (self.has_host and self.path) or self.user is not None:
                user = self.user if self.password is None else f"{self.username}:***"
                text += f"//{'' if user is None else f'{user}@'}{quote(self.host, safe=_HOST_AS_IT_IS)}"
            text += self.path if self.path.startswith("/") or not (self.path and self.host) else f"/{self.path}"
        return text + self._query + (f"#{self.fragment}" if self.fragment else "")


def parsed(text: str) -> URL:
    """Raises `URLError`."""
    before, _, fragment = text.partition("#")
    try:
        url = _parsed(before)
    except URLError as error:
        raise URLError(f"parse {quoted(before)}: {error}") from None
    try:
        _check_escapes(fragment)
    except URLError as error:
        raise URLError(f"parse {quoted(text)}: {error}") from None
    return replace(url, fragment=fragment)


def _parsed(text: str) -> URL:
    if _CONTROL.search(text):
        raise URLError("net/url: invalid control character in URL")
    if text.startswith(":"):
        raise URLError("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme = found[0][:-1].lower() if found else ""
    rest, mark, query = text[found.end() if found else 0 :].partition("?")
    url = URL(scheme=scheme, query=query if mark else None)
    if not rest.startswith("/"):
        if scheme:
            return replace(url, opaque=rest)
        if ":" in rest.partition("/")[0]:
            raise URLError("first path segment in URL cannot contain colon")
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        user, at, host = authority.rpartition("@")
        url = replace(url, user=user if at else None, host=_host(scheme, host), has_host=True)
        if at and not _USER.issuperset(user):
            raise URLError("net/url: invalid userinfo")
        _check_escapes(user)
        rest = slash + path
    _check_escapes(rest)
    return replace(url, path=_escaped(rest))


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise URLError("invalid IP-literal")
    if bracket == 0:
        name, closed, port = host.rpartition("]")
        if not closed:
            raise URLError("missing ']' in host")
        _check_port(port)
        address = name[1:].partition("%25")[0]
        try:
            if ipaddress.ip_address(address).version == 4:
                raise URLError("invalid IP-literal")
        except ValueError:
            raise URLError(f"invalid host: ParseAddr({quoted(address)}): unable to parse IP") from None
        return host
    is_strict = scheme in ("http", "https")
    name, colon, port = host.partition(":") if is_strict else host.rpartition(":")
    _check_port(colon + port if colon else "")
    _check_escapes(host)
    strange = next((char for char in host if char.isascii() and char not in _HOST), None)
    if strange is not None:
        raise URLError(f"invalid character {quoted(strange)} in host name")
    for escape in re.findall(r"%[0-7][0-9A-Fa-f]", host):
        if escape != "%25":
            raise URLError(f"invalid URL escape {quoted(escape)}")
    return host


def _check_port(port: str) -> None:
    if port and not re.fullmatch(r":[0-9]*", port):
        raise URLError(f"invalid port {quoted(port)} after host")


def _check_escapes(text: str) -> None:
    wrong = _ESCAPE.search(text)
    if wrong is not None:
        raise URLError(f"invalid URL escape {quoted(wrong[0])}")


def _escaped(path: str) -> str:
    """A path that is valid stays as it is; in any other everything is escaped anew."""
    if quote(path, safe=_UNESCAPED_PATH, errors=LENIENT) == path:
        return path
    return quote(unquote(path, errors=LENIENT), safe=_ESCAPED_PATH, errors=LENIENT)


def joined(base: URL, location: str) -> URL:
    """Where a Location leads from `base`. Raises `URLError`."""
    to = parsed(location)
    if to.scheme or to.host or to.user is not None:
        return replace(to, scheme=to.scheme or base.scheme, path=_without_dots(to.path))
    if not to.path and to.query is None:
        to = replace(to, query=base.query, fragment=to.fragment or base.fragment)
    path = base.path if not to.path else to.path
    if to.path and not to.path.startswith("/"):
        path = base.path[: base.path.rfind("/") + 1] + to.path
    return replace(
        to, scheme=base.scheme, host=base.host, has_host=base.has_host, user=base.user, path=_without_dots(path)
    )


def _without_dots(path: str) -> str:
    if not path:
        return ""
    kept: list[str] = []
    segments = path.removeprefix("/").split("/")
    for segment in segments:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    ends = "/" if segments[-1] in (".", "..") and kept else ""
    return "/" + "/".join(kept) + ends
