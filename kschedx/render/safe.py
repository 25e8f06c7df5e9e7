"""Text from a cluster, made harmless: what a terminal would obey or hide is shown instead."""

from __future__ import annotations

from kschedx.api.hidden import is_hidden


def visible(text: str) -> str:
    """The text in one line; a character that is not shown as itself is written as an escape: `\\x1b`, `\\u202e`."""
    if text.isprintable():  # which nothing that is hidden is
        return text
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    if not is_hidden(character):
        return character
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
