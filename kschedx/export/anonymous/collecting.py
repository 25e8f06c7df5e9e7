"""The first pass over a cluster: everything that has to be replaced."""

from __future__ import annotations

from collections import defaultdict

from kschedx.export.anonymous.changes import DNS_SUBDOMAIN
from kschedx.export.anonymous.vocabulary import WORD


class Collected:
    """`changes.Names` that keeps what it sees."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        """Name to the bytes that it may have at most, wherever it was seen."""
        self.values: defaultdict[str, set[str]] = defaultdict(set)
        """Label or taint to its values."""
        self.compared_keys: set[str] = set()
        self.ordinals: set[str] = set()
        self.kept: set[str] = set()
        """Words that stay."""
        self.uids: set[str] = set()
        self.ips: set[str] = set()
        self.messages: set[str] = set()
        self.looking: dict[str, str] = {}
        """Object to how it looks into texts."""
        self._owner = ""

    def name(self, text: str, limit: int = DNS_SUBDOMAIN) -> str:
        known = self.names.get(text)
        if known is None or limit < known:
            self.names[text] = limit
        return text

    def value(self, key: str, text: str) -> str:
        self.values[key].add(text)
        return text

    def compared(self, key: str) -> None:
        self.compared_keys.add(key)

    def ordinal(self, number: int) -> None:
        self.ordinals.add(str(number))

    def keep(self, text: str) -> None:
        self.kept.update(WORD.findall(text))

    def is_kept(self, text: str) -> bool:
        return False

    def begin(self, owner: str) -> None:
        self._owner = owner

    def look_into(self, why: str) -> None:
        self.looking.setdefault(self._owner, why)

    def uid(self, text: str) -> str:
        self.uids.add(text)
        return text

    def ip(self, text: str) -> str:
        self.ips.add(text)
        return text

    def message(self, text: str) -> str:
        self.messages.add(text)
        return text
