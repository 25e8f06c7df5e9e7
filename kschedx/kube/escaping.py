"""Escape text from outside: control sequences of terminals, shell syntax, hidden characters, and secrets in URLs."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from shlex import join, quote
from urllib.parse import unquote

from kschedx.kube.field_errors import quote_go
from kschedx.patterns import lazy_pattern

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that move the cursor, reorder the line, or are invisible: controls, bidi marks, zero widths."""
_BEYOND_ASCII = lazy_pattern(r"[^\x00-\x7e]")


_HASHES = r"(?<=#)#(?=\[|vso\[|teamcity\[)"
_NAMED = r"(?=set-|add-|save-|stop-|remove-|internal-|error|warning|notice|debug|group|endgroup|echo)"
_IN_A_LINE = lazy_pattern(_HASHES, re.IGNORECASE)
_IN_YAML = lazy_pattern(rf"{_HASHES}|(?<=:):{_NAMED}", re.IGNORECASE)
_WORKFLOW_COMMAND = lazy_pattern(rf"{_HASHES}|(?:^|(?<=:)):{_NAMED}", re.IGNORECASE)
"""Commands in the logs of GitHub Actions (`::add-mask::`, `##[group]`), Azure Pipelines, and TeamCity."""


def is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def json_escaped(text: str) -> str:
    """Escape hidden characters in JSON. ASCII control characters are escaped already, except the last one."""
    if "##" in text:  # a line of JSON never starts with a name
        text = _IN_A_LINE.sub(r"\\u0023", text)
    return text if text.isascii() and "\x7f" not in text else _BEYOND_ASCII.sub(_escape, text)


def json_escaped_bytes(text: bytes) -> bytes:
    """As `json_escaped`, for UTF-8."""
    is_plain = text.isascii() and b"\x7f" not in text and b"##" not in text
    return text if is_plain else json_escaped(text.decode()).encode()


def yaml_escaped(text: str) -> str:
    """As `json_escaped`, for JSON that is read as YAML, which has no surrogates, and where a line may start with a
    name."""
    if "##" in text or "::" in text:
        text = _IN_YAML.sub(_yaml_escape_always, text)
    return text if text.isascii() and "\x7f" not in text else _BEYOND_ASCII.sub(_yaml_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFFFF or not is_hidden(match[0]):
        return _yaml_escape(match)
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _yaml_escape(match: re.Match[str]) -> str:
    return _yaml_escape_always(match) if is_hidden(match[0]) else match[0]


def _yaml_escape_always(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def visible(text: str) -> str:
    """Return the text as one line without effect on a terminal or the log of a CI system, and without secrets in URLs.
    Hidden characters are written as escapes: `\x1b`, `\u202e`, `:\x3aerror`."""
    if not text.isprintable():  # ASCII text has no hidden characters
        text = "".join(map(_visible, text))
    if "://" in text:
        text = _SECRET_URL.sub(lambda match: str(Url(match[0])), text)
    if ":" in text or "##" in text:
        return _WORKFLOW_COMMAND.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
    return text


def _visible(character: str) -> str:
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    if not is_hidden(character):
        return character
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


# --- commands

_PART = "[A-Za-z0-9](?:[-A-Za-z0-9_.:]*[A-Za-z0-9])?"
_WORD = lazy_pattern(f"(?:{_PART}(?:[/=]{_PART})*)?")
"""Names, kinds, `KIND/NAME`, label keys and values, and taints: each part begins and ends with a letter or digit."""


def shell_command(template: str, *data: str | Path | Mapping[str, object] | Sequence[object]) -> str:
    """Return a command to paste into a shell: each `{}` of the template stands for one of `data`, quoted. A text is a
    name from the cluster; a mapping or sequence is written as JSON. If Kubernetes would refuse a name, or a path cannot
    be shown, the result is a comment instead of a command."""
    for item in data:
        if isinstance(item, str) and not _WORD.fullmatch(item):
            return shell_comment(f'no command: "{item}" is not a name that Kubernetes accepts')
        if isinstance(item, Path) and visible(str(item)) != str(item):
            return shell_comment(f'no command: file "{item}" has characters that cannot be shown')
    return template.format(*(quote(_shell_datum(item)) for item in data))


_CLUSTER: ContextVar[tuple[str, ...]] = ContextVar("cluster", default=())


@contextmanager
def repeat_options(options: Iterable[str]) -> Iterator[None]:
    """Repeat these options in every command of kschedx within this context: they name the cluster and the setup."""
    token = _CLUSTER.set(tuple(options))
    try:
        yield
    finally:
        _CLUSTER.reset(token)


def why_command(pod: str) -> str:
    """Return the command that explains a pod (`namespace/name`) of the cluster in question."""
    namespace, _, name = pod.partition("/")
    return add_cluster_options(shell_command("kschedx why pod/{} -n {}", name, namespace))


def add_cluster_options(command: str) -> str:
    """Add the options that name the cluster in question, its scheduler, and the changes to a command of kschedx."""
    options = _CLUSTER.get()
    if any(visible(option) != option for option in options):
        return shell_comment("no command: an option has characters that cannot be shown")
    return f"{command} {join(options)}" if options and not command.startswith("#") else command


def typed_command(words: Iterable[str]) -> str:
    """Return a command that the user typed, as a shell reads it."""
    return join(words)


def shell_comment(text: str) -> str:
    """Return a line that a shell ignores, whatever the text contains."""
    return f"# {visible(text)}"


def _shell_datum(datum: str | Path | Mapping[str, object] | Sequence[object]) -> str:
    match datum:
        case Path():
            path = str(datum)
            return f"./{path}" if path.startswith("-") and path != "-" else path  # "-" is standard input
        case str():
            return datum
        case Mapping():
            return json_escaped(json.dumps(datum, separators=(",", ":")))
        case _:
            return json_escaped(json.dumps(datum))


# --- URLs

MASK = "***"
_SECRET_URL = lazy_pattern(r"""[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]*[@?][^\s"'<>]*""")
"""A URL that may have a user part or a query, as messages quote it."""
_HOST = lazy_pattern(r"(?:\[[^]\s]*\]|[^:\s@]*)(?::\d*)?")


def _mask_value(key: str, equals: str, value: str) -> str:
    """Return a pair of a query, without its value unless that is a setting of the API."""
    is_setting = key in _SETTINGS and re.fullmatch(r"[0-9]{1,9}(ms|s|m|h)?|true|false", value)
    return f"{key}={value if is_setting else MASK}" if equals else MASK


_SETTINGS = frozenset({"timeout", "timeoutSeconds", "limit", "watch", "resourceVersion", "allowWatchBookmarks"})


class Url:
    """A URL whose text hides possible secrets: user info, and the values of its query and fragment."""

    __slots__ = ("_written", "credentials", "without_credentials")

    def __init__(self, written: str) -> None:
        self._written = written
        scheme, separator, rest = written.partition("://") if "://" in written else ("", "", written)
        authority = re.split("[/?#]", rest, maxsplit=1)[0]
        user, at, host = authority.rpartition("@")
        if not separator or not _HOST.fullmatch(host):  # not a URL: the part before the last @ may be a secret
            user, at, rest = rest.rpartition("@")
        else:
            rest = rest.removeprefix(f"{user}{at}")
        self.credentials = unquote(user)  # `user:password`, or empty
        self.without_credentials = f"{scheme}{separator}{rest}"  # the URL to request

    def __str__(self) -> str:
        shown, fragment, _ = self.without_credentials.partition("#")
        shown, query, values = shown.partition("?")
        if self.credentials:
            shown = shown.replace("://", f"://{MASK}@", 1) if "://" in shown else f"{MASK}@{shown}"
        pairs = (pair.partition("=") for pair in values.split("&")) if values else ()
        masked = "&".join(_mask_value(*pair) for pair in pairs)
        return f"{shown}{query}{masked}{fragment}{MASK if fragment else ''}"

    def __repr__(self) -> str:
        return f"Url({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and self._written == other._written

    def __hash__(self) -> int:
        return hash(self._written)

    def __truediv__(self, path: str) -> Url:
        return Url(f"{self._written.rstrip('/')}/{path}")


_SCHEME = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HOST_CHARACTER = lazy_pattern(r"[A-Za-z0-9_.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff-]")
_USER = lazy_pattern(r"[A-Za-z0-9_.:~!$&'()*+,;=%@-]*")
_INVALID_ESCAPE = lazy_pattern(r"%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)
_INVALID_HOST_ESCAPE = lazy_pattern(r"%(?![89a-fA-F][0-9a-fA-F]|25).{0,2}", re.DOTALL)
"""A host escapes only bytes that are not ASCII, and the percent sign before an IPv6 zone."""


def url_error(url: str, *, in_request: bool = False) -> str:
    """Return the error of Go's url.Parse for a URL without a fragment, or of url.ParseRequestURI with `in_request`;
    empty if there is none. Upstream: net/url/url.go."""
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in url):
        return "net/url: invalid control character in URL"
    if in_request and url in ("", "*"):
        return "" if url else "empty url"
    if url.startswith(":"):
        return "missing protocol scheme"
    scheme = _SCHEME.match(url)
    rest = (url[scheme.end() :] if scheme else url).partition("?")[0]
    if not rest.startswith("/"):
        if scheme:
            return ""
        if in_request:
            return "invalid URI for request"
        if ":" in rest.partition("/")[0]:
            return "first path segment in URL cannot contain colon"
    has_authority = rest.startswith("//") and (scheme or not in_request)
    authority, slash, path = rest[2:].partition("/") if has_authority else ("", "", rest)
    if error := _authority_error(authority):
        return error
    escape = _INVALID_ESCAPE.search(slash + path)
    return f"invalid URL escape {quote_go(escape[0])}" if escape else ""


def _authority_error(authority: str) -> str:
    user, _, host = authority.rpartition("@")
    if "[" in host:
        if "]" not in host:
            return "missing ']' in host"
        port = host.rpartition("]")[2]
    else:
        port = host[host.index(":") :] if ":" in host else ""
    if port and not (port.startswith(":") and (port == ":" or (port[1:].isdecimal() and port.isascii()))):
        return f"invalid port {quote_go(port)} after host"
    if escape := _INVALID_HOST_ESCAPE.search(host):
        return f"invalid URL escape {quote_go(escape[0])}"
    wrong = next((char for char in host if not _HOST_CHARACTER.match(char)), "")
    if wrong:
        return f"invalid character {quote_go(wrong)} in host name"
    if not _USER.fullmatch(user):
        return "net/url: invalid userinfo"
    escape = _INVALID_ESCAPE.search(user)
    return f"invalid URL escape {quote_go(escape[0])}" if escape else ""
