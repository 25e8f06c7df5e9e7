"""The tokens of an expression, after CEL.g4, the grammar that every implementation shares."""

from __future__ import annotations

import re
from typing import NamedTuple

from kschedx.cel.values import Uint


class NoExpressionError(Exception):
    """The text is no expression. What is wrong with it is said by the grammar's own parser."""


class Token(NamedTuple):
    kind: str
    """`ident`, `int`, `uint`, `double`, `string`, `bytes`, `end`, or the operator or keyword itself."""
    text: str
    position: int


_ESCAPE = r"""\\(?:[abfnrtv"'`?\\]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
_STRING = "|".join(
    (
        r'[rR]""".*?"""',
        r"[rR]'''.*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
_TOKEN = re.compile(
    rf"""(?P<blank>[\t \r\n\f]+|//[^\n]*)
    |(?P<bytes>[bB](?:{_STRING}))
    |(?P<string>{_STRING})
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<ident>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<op>==|!=|<=|>=|&&|\|\||[-<>+*/%!?:.,()\[\]{{}}])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_KEYWORDS = ("in", "true", "false", "null")


def tokens(text: str) -> list[Token]:
    """The last one is the end. Raises `NoExpressionError`."""
    found = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NoExpressionError(f"no token at {position}")
        kind, own = str(match.lastgroup), match.group()
        if kind != "blank":
            named_by_itself = kind == "op" or own in _KEYWORDS
            found.append(Token(own if named_by_itself else kind, own, position))
        position = match.end()
    found.append(Token("end", "", position))
    return found


_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_HEX_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}
_PART = re.compile(_ESCAPE + r"|[^\\]+", re.DOTALL)


def string_value(text: str) -> str:
    """What a string literal says. Raises ValueError, as Go words it, for what is no text."""
    return "".join(
        part if isinstance(part, str) else _character(part[0]) for part in _parts(text.replace("\r\n", "\n"))
    )


def bytes_value(text: str) -> bytes:
    """What a literal with `b` before it says. Raises ValueError, as Go words it."""
    told = b""
    for part in _parts(text[1:].replace("\r\n", "\n")):
        if isinstance(part, str):
            told += part.encode()
        elif part[1] in "uU":
            raise ValueError("unable to unescape string")
        else:
            told += bytes([part[0]])
    return told


def _parts(text: str) -> list[str | tuple[int, str]]:
    """Stretches of plain text, and escapes as number and letter."""
    text = text.replace("\r", "\n")
    is_raw = text[0] in "rR"
    text = text[1:] if is_raw else text
    quotes = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    text = text[quotes:-quotes]
    if is_raw:
        return [text]
    found: list[str | tuple[int, str]] = []
    for one in _PART.findall(text):
        if one[0] != "\\":
            found.append(one)
        elif one[1] in _HEX_DIGITS:
            found.append((int("0x" + one[2:], 0), one[1]))
        elif one[1].isdigit():
            found.append((int(one[1:], 8), "0"))
        else:
            found.append((_SIMPLE.get(one[1], ord(one[1])), "\\"))
    return found


def _character(code: int) -> str:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)


def int_value(text: str) -> int:
    """Raises ValueError where it is no int64."""
    digits = text.removeprefix("-")
    value = int(digits, 0) if digits.startswith("0x") else int(digits)
    value = -value if text.startswith("-") else value
    if not -(2**63) <= value < 2**63:
        raise ValueError(text)
    return value


def uint_value(text: str) -> Uint:
    """Raises ValueError where it is no uint64."""
    digits = text[:-1]
    value = int(digits, 0) if digits.startswith("0x") else int(digits)
    if value >= 2**64:
        raise ValueError(text)
    return Uint(value)
