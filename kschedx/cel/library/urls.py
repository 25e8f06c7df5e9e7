"""URLs as Go's net/url reads them."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, unquote_plus

from kschedx.cel.values import UndecidedError, Url

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL | re.ASCII)
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_PORT = re.compile(r"(?::[0-9]*)?", re.ASCII)
_HOST_REFUSED = re.compile(r"[ \"<>\\^`{|}\x00-\x1f\x7f]")


def request_uri_error(text: str) -> str | None:
    """What url.ParseRequestURI says of it; None where it is right."""
    told = _error(text)
    return None if told is None else f'parse "{text}": {told}'


def _error(text: str) -> str | None:
    if any(ord(one) < 0x20 or ord(one) == 0x7F for one in text):
        return "net/url: invalid control character in URL"
    if not text:
        return "empty url"
    if text == "*":
        return None
    if text.startswith(":"):
        return "missing protocol scheme"
    found = _SCHEME.fullmatch(text)
    if found is None and re.match(r"[^A-Za-z/?#][^/?#]*:", text):
        return "first path segment in URL cannot contain colon"
    rest = found[2] if found else text
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        return None if found else "invalid URI for request"
    authority, path = _authority(rest) if found else ("", rest)
    bad = _ESCAPE.search(path) or _ESCAPE.search(authority)
    if bad:
        return f'invalid URL escape "{bad[0]}"'
    host = authority.rpartition("@")[2]
    if _HOST_REFUSED.search(host):
        return f'invalid character "{_HOST_REFUSED.findall(host)[0]}" in host name'
    if host.startswith("["):
        if "]" not in host:
            return "missing ']' in host"
        port = host.rpartition("]")[2]
    else:
        port = host[host.rfind(":") :] if ":" in host else ""
    return None if _PORT.fullmatch(port) else f'invalid port "{port}" after host'


def _authority(rest: str) -> tuple[str, str]:
    """What stands behind two slashes, and the path."""
    if not rest.startswith("//"):
        return "", rest
    authority, slash, path = rest[2:].partition("/")
    return authority, slash + path


def parsed_url(text: str) -> Url:
    """Of what `request_uri_error` finds right."""
    whole = text.partition("#")[0]
    found = _SCHEME.fullmatch(whole)
    scheme, rest = (found[1].lower(), found[2]) if found else ("", whole)
    rest, _, query = rest.partition("?")
    is_opaque = bool(found) and not rest.startswith("/")
    authority, path = _authority(rest) if rest.startswith("//") else ("", rest)
    host = unquote(authority.rpartition("@")[2])
    port = ""
    hostname = host
    if host.startswith("["):
        hostname, _, tail = host[1:].partition("]")
        port = tail[1:]
    elif ":" in host:
        hostname, _, port = host.rpartition(":")
    return Url(
        text=text,
        scheme=scheme,
        host=host,
        hostname=hostname,
        port=port,
        escaped_path="" if is_opaque else _escaped(path),
        query=query,
    )


_PLAIN = "$&+,/:;=@!'()*[]-_.~"


def _escaped(path: str) -> str:
    """The path as it is written, where Go finds that writing valid; else written anew."""
    if re.fullmatch(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@/\[\]]|%[0-9A-Fa-f]{2})*", path):
        return path
    return quote(unquote(path), safe=_PLAIN.replace("[]", ""))


def query_of(query: str) -> dict[str, list[str]]:
    """Pairs with a semicolon or a wrong escape are left out."""
    found: dict[str, list[str]] = {}
    for pair in query.split("&"):
        if not pair or ";" in pair or _ESCAPE.search(pair):
            continue
        key, _, value = pair.partition("=")
        if "\ufffd" in unquote_plus(pair) and "%" in pair:
            raise UndecidedError("the query has bytes that are no text")
        found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return found
