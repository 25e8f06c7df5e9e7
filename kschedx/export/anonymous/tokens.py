"""Replacements for words, so that names keep their order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable
from string import ascii_lowercase, digits

_REGIONS = (*digits, "A", "a")
"""A word that begins with a digit, or with a capital letter, is replaced by one that does."""
_LETTERS = "".join(sorted(set(ascii_lowercase) - set("cmrt")))
"""How a prefix ends, if it can. With digits behind them, the letters left out might read as an EC2 instance type."""
_NO_ROOM = "t"
"""Ends the prefix of words such as 100 between 10 and 1000: being distinct matters more than their order."""
_LAST = chr(0x10FFFF)


def tokens(words: Iterable[str], kept: Collection[str]) -> dict[str, str]:
    """Each word to another one, such that all of them, with the kept ones in between, sort as before.

    A token is a letter or two that put it between its kept neighbours, and a number of fixed width. Names made of such
    words with `-`, `.` and `/` in between then sort as before, too.
    """
    bounds = sorted({*kept, *_REGIONS})
    gaps: dict[int, list[str]] = {}
    for word in sorted(set(words) - set(kept)):
        gaps.setdefault(bisect_right(bounds, word), []).append(word)
    found: dict[str, str] = {}
    for gap, inside in gaps.items():
        prefix = _between(bounds[gap - 1] if gap else "", bounds[gap] if gap < len(bounds) else _LAST)
        width = len(str(len(inside)))
        found |= {word: f"{prefix}{number:0{width}}" for number, word in enumerate(inside, start=1)}
    return found


def _between(low: str, high: str) -> str:
    """The shortest text that sorts with all its continuations after `low` and before `high`."""
    prefixes = (
        low[:length] + letter for letters in (_LETTERS, digits) for length in range(len(low) + 1) for letter in letters
    )
    return next((prefix for prefix in prefixes if prefix >= low and prefix + _LAST < high), low + _NO_ROOM)
