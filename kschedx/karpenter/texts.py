"""Karpenter's events held against each other: what it says in an order of chance counts in any."""

from __future__ import annotations

import re

_HOST = re.compile(r"hostname-placeholder-\d+")
_TYPO = re.compile(r' \(typo of "[^"]*"\?\)')
_PARTS = re.compile(r"; |, ")


def is_same_event(theirs: str, ours: str) -> bool:
    """Numbers of hosts that do not exist and guesses at typing errors do not count."""
    return _parts(theirs) == _parts(ours)


def _parts(text: str) -> list[str]:
    return sorted(_PARTS.split(_TYPO.sub("", _HOST.sub("", text))))
