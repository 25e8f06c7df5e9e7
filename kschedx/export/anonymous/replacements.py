"""What replaces what in an anonymized cluster: one pass finds the words, another makes their replacements."""

from __future__ import annotations

import ipaddress
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable
from string import ascii_lowercase, digits

from kschedx.export.anonymous.values import DNS_SUBDOMAIN, LABEL_VALUE
from kschedx.export.anonymous.vocabulary import VOCABULARY, WORD
from kschedx.kube.scalars import parse_int64
from kschedx.kube.storage import CSI_PREFIX, csi_limit_key

# The first pass over a cluster: everything that has to be replaced.


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


# Replacements for words, so that names keep their order.

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


# The second pass over a cluster: what replaces what.

INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_EC2 = re.compile(
    r"[a-z]{1,3}-?[0-9][a-z0-9-]{0,8}\.(?:nano|micro|small|medium|large|metal|[0-9]{0,3}xlarge|metal-[0-9]{1,2}xl)"
)
"""What EC2 calls its machines: how many volumes one can attach depends on it."""

_EC2_PARTS = ("karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-size")
_EC2_PART = re.compile(
    r"[a-z]{1,3}-?[0-9][a-z0-9-]{0,8}|nano|micro|small|medium|large|metal|[0-9]{0,3}xlarge|metal-[0-9]{1,2}xl"
)
"""What those names are made of."""

_EC2_FACTS = "karpenter.k8s.aws/instance-"
"""Labels that say what such a machine has: amounts, and which category."""
_EC2_FACT = re.compile(r"[0-9]{1,9}|a|c|d|dl|f|g|gr|h|hpc|i|im|inf|is|m|mac|p|r|t|trn|u|vt|x|z")

_CHUNK = re.compile(r"""[^\s"'()\[\]{},;]+""")
_COUNT = re.compile(r"[0-9]{1,6}(?:/[0-9]{1,6})?[.:]?", re.ASCII)
"""`3`, `0/6`: in a message, a number is no name."""

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_ADDRESS = re.compile(rf"(?<![0-9A-Za-z]){_OCTET}([.-])(?:{_OCTET}\1){{2}}{_OCTET}(?![0-9A-Za-z]|[.-][0-9])", re.ASCII)
"""Of IPv4, in a name: `10.6.5.4`, or `10-6-5-4` as in many a node's."""

_IPV4, _IPV6 = int(ipaddress.IPv4Address("198.18.0.0")), int(ipaddress.IPv6Address("2001:db8::"))
"""Addresses reserved for tests and documentation (RFC 2544, RFC 3849)."""


class Book:
    """`changes.Names` that replaces what was collected. Raises KeyError for a name that was not."""

    def __init__(self, seen: Collected) -> None:
        self._values: dict[tuple[str, str], str] = {}
        self._kept = frozenset(seen.kept)
        names = dict(seen.names)
        for key, texts in seen.values.items():
            for text in texts:
                if _stays(key, text, key in seen.compared_keys):
                    self._values[key, text] = text
                else:
                    names[text] = min(names.get(text, LABEL_VALUE), LABEL_VALUE)
        words = {word for text in names for word in WORD.findall(text)}
        words |= {word for text in seen.messages for chunk in _names_in(text) for word in WORD.findall(chunk)}
        kept = words & (VOCABULARY | seen.ordinals | seen.kept)
        self._tokens = tokens(words - kept, kept)
        inside = {_dotted(found) for text in (*names, *seen.messages) for found in _ADDRESS.finditer(text)}
        self._ips = dict(_addresses(sorted(seen.ips | inside)))
        self._names = {text: self._by_words(text) for text in names}
        self._long = self._shortened(names)
        self._names |= self._long
        self._names |= self._attach_limits()
        for key, texts in seen.values.items():
            self._values |= {(key, text): self._names[text] for text in texts if (key, text) not in self._values}
        self._uids = {text: f"00000000-0000-4000-8000-{n:012x}" for n, text in enumerate(sorted(seen.uids), start=1)}
        self._messages: dict[str, str] = {}

    def _by_words(self, text: str) -> str:
        """Word by word; an address, with dots or dashes, as a whole."""
        parts: list[str] = []
        end = 0
        for found in _ADDRESS.finditer(text):
            parts.append(WORD.sub(self._token, text[end : found.start()]))
            dotted = _dotted(found)
            parts.append(self._ips.get(dotted, dotted).replace(".", found[1]))
            end = found.end()
        return "".join((*parts, WORD.sub(self._token, text[end:])))

    def _token(self, found: re.Match[str]) -> str:
        return self._tokens.get(found[0], found[0])

    def _shortened(self, names: dict[str, int]) -> dict[str, str]:
        """Names that grew beyond what is allowed, as one word, behind the domain of a key."""
        grown = [text for text, limit in names.items() if _is_long(self._names[text], limit) > _is_long(text, limit)]
        return {
            text: "/".join(filter(None, (self._names[text].rpartition("/")[0], f"long{number}x")))
            for number, text in enumerate(sorted(grown), start=1)
        }

    def _attach_limits(self) -> dict[str, str]:
        """Resources that are named after a driver in a way of their own."""
        limits = {text for text in self._names if text.startswith(CSI_PREFIX)}
        drivers = self._names.items() if limits else ()
        return {limit: csi_limit_key(new) for old, new in drivers if (limit := csi_limit_key(old)) in limits}

    def mapping(self) -> dict[str, str]:
        every = {**self._tokens, **self._ips, **self._long}
        return {text: every[text] for text in sorted(every) if text != every[text]}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    # --- changes.Names

    def name(self, text: str, limit: int = DNS_SUBDOMAIN) -> str:
        return self._names[text]

    def value(self, key: str, text: str) -> str:
        return self._values[key, text]

    def compared(self, key: str) -> None:
        pass

    def ordinal(self, number: int) -> None:
        pass

    def keep(self, text: str) -> None:
        pass

    def begin(self, owner: str) -> None:
        pass

    def look_into(self, why: str) -> None:
        pass

    def is_kept(self, text: str) -> bool:
        return self._kept.issuperset(WORD.findall(text))

    def uid(self, text: str) -> str:
        return self._uids[text]

    def ip(self, text: str) -> str:
        return self._ips[text]

    def message(self, text: str) -> str:
        found = self._messages.get(text)
        if found is None:
            found = self._messages[text] = _CHUNK.sub(lambda chunk: self._in_message(chunk[0]), text)
        return found

    def _in_message(self, chunk: str) -> str:
        if _COUNT.fullmatch(chunk):
            return chunk
        return self._long.get(chunk) or self._ips.get(chunk) or self._by_words(chunk)


def _dotted(address: re.Match[str]) -> str:
    return address[0].replace("-", ".")


def _names_in(message: str) -> Iterable[str]:
    """The parts of a message that may be names."""
    return (chunk for chunk in _CHUNK.findall(message) if not _COUNT.fullmatch(chunk))


def _stays(key: str, value: str, compared: bool) -> bool:
    """Whether a rule looks into the value."""
    if key in _EC2_PARTS:
        return _EC2_PART.fullmatch(value) is not None
    if key.startswith(_EC2_FACTS) and _EC2_FACT.fullmatch(value):
        return True
    if key in INSTANCE_TYPES:
        return _EC2.fullmatch(value) is not None
    return compared and parse_int64(value) is not None


def _is_long(text: str, limit: int) -> bool:
    """Of a key, what follows the domain counts."""
    return len(text.rpartition("/")[2].encode(errors="surrogatepass")) > limit


def _addresses(texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Every address as another one; special addresses stay, and what is no address gets a number."""
    for number, text in enumerate(texts, start=1):
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            yield text, f"no-address-{number}"
            continue
        if address.is_unspecified or address.is_loopback:
            yield text, text
        elif isinstance(address, ipaddress.IPv4Address):
            yield text, str(ipaddress.IPv4Address(_IPV4 + number % 2**17))
        else:
            yield text, str(ipaddress.IPv6Address(_IPV6 + number))
