"""Karpenter's events held against each other: what it says in an order of chance counts in any."""

from __future__ import annotations

import re

_HOST = re.compile(r"hostname-placeholder-\d+")
_TYPO = re.compile(r' \(typo of "[^"]*"\?\)')
_LIST = re.compile(r"\[([^][]*)\]")
_PARTS = re.compile(r"; |, ")


def _taint(found: re.Match[str]) -> str:
    key, value, effect = found.groups()
    return f"did not tolerate taint (taint={key}{f'={value}' if value else ''}:{effect})"


_OLD_WORDS = (
    (re.compile(r'incompatible with nodepool "[^"]*", daemonset overhead=\{[^}]*\}, '), ""),
    (
        re.compile(r'all available instance types exceed limits for nodepool:? "([^"]*)"'),
        r"all available instance types exceed limits for nodepool (NodePool=\1)",
    ),
    (re.compile(r"did not tolerate (?!taint \()([^\s;=:]+)=?([^\s;:]*):(\w+)"), _taint),
    (
        re.compile(
            r"no instance type satisfied resources (\{[^}]*\}) and requirements (.*?) \((no instance type [^)]*)\)"
        ),
        r"\3, requirements=\2, resources=\1",
    ),
)
"""What releases before 1.5 say, and what the same is called since."""


def is_same_event(theirs: str, ours: str) -> bool:
    """Numbers of hosts that do not exist, guesses at typing errors and the order in lists do not count, and neither
    do the words of releases before 1.5."""
    for old, new in _OLD_WORDS:
        theirs = old.sub(new, theirs)
    return _parts(theirs) == _parts(ours)


def _parts(text: str) -> list[str]:
    settled = _LIST.sub(lambda found: f"[{' '.join(sorted(found[1].split()))}]", text)
    return sorted(_PARTS.split(_TYPO.sub("", _HOST.sub("", settled))))
