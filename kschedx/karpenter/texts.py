"""Karpenter's events held against each other: what it says in an order of chance counts in any."""

from __future__ import annotations

import re

_HOST = re.compile(r"hostname-placeholder-\d+")
_TYPO = re.compile(r' \(typo of "[^"]*"\?\)')
_LIST = re.compile(r"\[([^][]*)\]")
_PARTS = re.compile(r"; |, ")


def is_same_event(theirs: str, ours: str) -> bool:
    """Numbers of hosts that do not exist, guesses at typing errors and the order in lists do not count."""
    return _parts(theirs) == _parts(ours)


def _parts(text: str) -> list[str]:
    settled = _LIST.sub(lambda found: f"[{' '.join(sorted(found[1].split()))}]", text)
    return sorted(_PARTS.split(_TYPO.sub("", _HOST.sub("", settled))))
