"""Characters that a terminal or an editor obeys or hides, where text from a cluster should be seen as it is."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import urlsplit

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that move the cursor, reorder the line or take no room: controls, bidi marks, zero widths."""
_BEYOND_ASCII = re.compile(r"[^\x00-\x7e]")


def is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def json_escaped(text: str) -> str:
    """JSON in which such characters are escapes; those of ASCII already are, but for the last one."""
    return text if text.isascii() and "\x7f" not in text else _BEYOND_ASCII.sub(_escape, text)


def json_escaped_bytes(text: bytes) -> bytes:
    """The same of UTF-8."""
    return text if text.isascii() and b"\x7f" not in text else json_escaped(text.decode()).encode()


def yaml_escaped(text: str) -> str:
    """The same of JSON that is to be read as YAML, which has no surrogates."""
    return text if text.isascii() and "\x7f" not in text else _BEYOND_ASCII.sub(_yaml_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code <= 0xFFFF or not is_hidden(found[0]):
        return _yaml_escape(found)
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _yaml_escape(found: re.Match[str]) -> str:
    if not is_hidden(found[0]):
        return found[0]
    code = ord(found[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


# URLs as they may be shown.


def without_password(url: str) -> str:
    """As Go shows a URL: in place of the password stands `xxxxx`."""
    try:
        at = urlsplit(url)
    except ValueError:
        return url
    if at.password is None:
        return url
    user, _, host = at.netloc.rpartition("@")
    return at._replace(netloc=f"{user.partition(':')[0]}:xxxxx@{host}").geturl()
