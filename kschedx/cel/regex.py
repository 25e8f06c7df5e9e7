"""Regular expressions as in Go: RE2, whose time is linear in the text for any pattern."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from kschedx.cel.values import Fault
from kschedx.patterns import lazy_pattern

_MEMORY = 8 << 20  # bytes for one pattern's automaton; RE2 works with less

_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "invalid character class range": "invalid character class range",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid escape sequence": "invalid escape sequence",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid character class": "invalid character class",
    "invalid UTF-8": "invalid UTF-8",
}
"""RE2's errors, and Go's."""
_MESSAGE = lazy_pattern(r"(.*?)(?:: (.*))?", re.DOTALL)


class Pattern:
    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern

    def matches(self, text: str) -> bool:
        return self._pattern.search(text) is not None

    def find(self, text: str) -> str:
        """Return the leftmost match, or an empty string."""
        match = self._pattern.search(text)
        return "" if match is None else str(match.group())

    def find_all(self, text: str, limit: int) -> list[str]:
        """Return non-overlapping matches, at most `limit`; all if it is negative."""
        matches: list[str] = []
        last_end = -1
        for match in self._pattern.finditer(text) if limit else ():
            # Go skips an empty match directly after another match
            if match.start() == match.end() == last_end:
                continue
            last_end = match.end()
            matches.append(match.group())
            if len(matches) == limit:
                break
        return matches


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Pattern | Fault:
    """A fault has Go's message."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return Pattern(re2.compile(pattern, options=options))
    except re2.error as error:
        message = error.args[0] if error.args else ""
        message = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
        match = _MESSAGE.fullmatch(message)
        assert match is not None
        words = _WORDS.get(match[1], match[1])
        return Fault(f"error parsing regexp: {words}" + ("" if match[2] is None else f": `{match[2]}`"))
    except UnicodeEncodeError:
        return Fault("error parsing regexp: invalid UTF-8")
