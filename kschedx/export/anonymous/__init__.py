"""A cluster with its names, labels, and images replaced, in which kube-scheduler decides the same."""

from __future__ import annotations

import ipaddress
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from string import ascii_lowercase, digits

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.export.anonymous.fields import POD, change_object
from kschedx.export.anonymous.values import (
    DNS_SUBDOMAIN,
    LABEL_VALUE,
    Names,
    Replacement,
    change_configuration,
    version,
)
from kschedx.export.anonymous.vocabulary import MESSAGE_WORDS, VOCABULARY, WORD
from kschedx.grouping import group_pairs
from kschedx.kube.documents import Json
from kschedx.kube.scalars import parse_int64
from kschedx.kube.snapshot_header import SnapshotHeader
from kschedx.kube.storage import CSI_PREFIX, csi_limit_key
from kschedx.patterns import lazy_pattern
from kschedx.progress import Phase, count_items

# Replacements in an anonymized cluster: the first pass collects the words, the second one replaces them.


class _NameCollector(Names):
    """Records what it is called with."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        """The maximum length in bytes by name; the smallest if a name occurs in several places."""
        self.values: defaultdict[str, set[str]] = defaultdict(set)  # the values of each label and taint key
        self.compared_keys: set[str] = set()
        self.ordinals: set[str] = set()
        self.kept: set[str] = set()
        self.uids: set[str] = set()
        self.ips: set[str] = set()
        self.messages: set[str] = set()
        self.text_operations: dict[str, str] = {}
        """The operation by which an object's selector depends on a text's content, by object."""
        self._owner = ""

    def name(self, text: str, limit: int = DNS_SUBDOMAIN) -> str:
        known = self.names.get(text)
        if known is None or limit < known:
            self.names[text] = limit
        return text

    def value(self, key: str, text: str) -> str:
        self.values[key].add(text)
        return text

    def note_compared(self, key: str) -> None:
        self.compared_keys.add(key)

    def ordinal(self, number: int) -> None:
        self.ordinals.add(str(number))

    def keep(self, text: str) -> None:
        self.kept.update(WORD.findall(text))

    def begin(self, owner: str) -> None:
        self._owner = owner

    def note_text_operation(self, why: str) -> None:
        self.text_operations.setdefault(self._owner, why)

    def uid(self, text: str) -> str:
        self.uids.add(text)
        return text

    def ip(self, text: str) -> str:
        self.ips.add(text)
        return text

    def message(self, text: str) -> str:
        self.messages.add(text)
        return text


# Replacements for words, which keep the order of names.

_REGIONS = (*digits, "A", "a")
"""The replacement of a word that begins with a digit or a capital letter begins with one, too."""
_LETTERS = "".join(sorted(set(ascii_lowercase) - set("cmrt")))
"""The last letters of prefixes, if one of them fits. Followed by digits, the omitted letters could read as an EC2
instance type."""
_NO_ROOM = "t"
"""The end of a prefix for words such as 100, between 10 and 1000. Distinct replacements matter more than order."""
_LAST = chr(0x10FFFF)


def tokens(words: Iterable[str], kept: Collection[str]) -> dict[str, str]:
    """Return a replacement for each word, such that all of them sort as before, also among the kept words.

    A token is a prefix that sorts it between the neighboring kept words, and a number of fixed width. So names that
    join such words with `-`, `.`, and `/` sort as before, too.
    """
    bounds = sorted({*kept, *_REGIONS})
    gaps = group_pairs((bisect_right(bounds, word), word) for word in sorted(set(words) - set(kept)))
    replaced: dict[str, str] = {}
    for gap, inside in gaps.items():
        prefix = _text_between(bounds[gap - 1] if gap else "", bounds[gap] if gap < len(bounds) else _LAST)
        width = len(str(len(inside)))
        replaced |= {word: f"{prefix}{number:0{width}}" for number, word in enumerate(inside, start=1)}
    return replaced


def _text_between(low: str, high: str) -> str:
    """Return the shortest text that sorts, with all its continuations, after `low` and before `high`."""
    prefixes = (
        low[:length] + letter for letters in (_LETTERS, digits) for length in range(len(low) + 1) for letter in letters
    )
    return next((prefix for prefix in prefixes if prefix >= low and prefix + _LAST < high), low + _NO_ROOM)


_INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_EC2 = lazy_pattern(
    r"[a-z]{1,3}-?[0-9][a-z0-9-]{0,8}\.(?:nano|micro|small|medium|large|metal|[0-9]{0,3}xlarge|metal-[0-9]{1,2}xl)"
)
"""EC2's instance types: they decide how many volumes can be attached."""

_EC2_PARTS = ("karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-size")
_EC2_PART = lazy_pattern(
    r"[a-z]{1,3}-?[0-9][a-z0-9-]{0,8}|nano|micro|small|medium|large|metal|[0-9]{0,3}xlarge|metal-[0-9]{1,2}xl"
)
"""The family or size in an instance type."""

_EC2_FACTS = "karpenter.k8s.aws/instance-"
"""The prefix of labels with facts of an instance type: amounts, and its category."""
_EC2_FACT = lazy_pattern(r"[0-9]{1,9}|a|c|d|dl|f|g|gr|h|hpc|i|im|inf|is|m|mac|p|r|t|trn|u|vt|x|z")

_CHUNK = lazy_pattern(r"""[^\s"'()\[\]{},;]+""")
_QUOTED = lazy_pattern('"[^"]*"')
_COUNT = lazy_pattern(
    r"[0-9]{1,6}(?:/[0-9]{1,6})?[.:]?|[0-9]{1,9}(?:\.[0-9]{1,3})?(?:[kMGTP]i?|Ki|m|m?s|%)[.:]?", re.ASCII
)
"""`3`, `0/6`, `500m`, `10s`: a number in a message is not a name."""

_SEPARATOR = lazy_pattern("([/=:])")
"""Between the parts of a chunk: amounts of resources, a namespace and a name, the port in a URL."""

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_ADDRESS = lazy_pattern(
    rf"(?<![0-9A-Za-z]){_OCTET}([.-])(?:{_OCTET}\1){{2}}{_OCTET}(?![0-9A-Za-z]|[.-][0-9])", re.ASCII
)
"""An IPv4 address in a name: `10.6.5.4`, or `10-6-5-4` as in many node names."""

_IPV4, _IPV6 = int(ipaddress.IPv4Address("198.18.0.0")), int(ipaddress.IPv6Address("2001:db8::"))
"""Addresses reserved for tests and documentation (RFC 2544, RFC 3849)."""


def _count_names(names: Mapping[str, int]) -> Iterator[str]:
    return count_items(names, Phase.ANONYMIZING, len(names), "names")


class _Replacer(Names):
    """Replaces what was collected. Raises KeyError for any other name."""

    def __init__(self, seen: _NameCollector) -> None:
        self._values: dict[tuple[str, str], str] = {}
        self._kept = frozenset(seen.kept)
        names = dict(seen.names)
        for key, texts in seen.values.items():
            for text in texts:
                if _stays(key, text, key in seen.compared_keys):
                    self._values[key, text] = text
                else:
                    names[text] = min(names.get(text, LABEL_VALUE), LABEL_VALUE)
        words = {word for text in _count_names(names) for word in WORD.findall(text)}
        words |= {word for text in seen.messages for chunk in _names_in(text) for word in WORD.findall(chunk)}
        kept = words & (VOCABULARY | seen.ordinals | seen.kept)
        self._tokens = tokens(words - kept, kept)
        inside = {_dot_address(match) for text in (*names, *seen.messages) for match in _ADDRESS.finditer(text)}
        self._ips = dict(_addresses(sorted(seen.ips | inside)))
        self._names = {text: self._replace_words(text) for text in _count_names(names)}
        self._long = self._shorten(names)
        self._names |= self._long
        self._names |= self._attach_limits()
        for key, texts in seen.values.items():
            self._values |= {(key, text): self._names[text] for text in texts if (key, text) not in self._values}
        self._uids = {text: f"00000000-0000-4000-8000-{n:012x}" for n, text in enumerate(sorted(seen.uids), start=1)}
        self._messages: dict[str, str] = {}

    def _replace_words(self, text: str) -> str:
        """Replace every word. An address, with dots or dashes, is replaced as a whole."""
        parts: list[str] = []
        end = 0
        for match in _ADDRESS.finditer(text):
            parts.append(WORD.sub(self._token, text[end : match.start()]))
            dotted = _dot_address(match)
            parts.append(self._ips.get(dotted, dotted).replace(".", match[1]))
            end = match.end()
        return "".join((*parts, WORD.sub(self._token, text[end:])))

    def _token(self, match: re.Match[str]) -> str:
        return self._tokens.get(match[0], match[0])

    def _shorten(self, names: dict[str, int]) -> dict[str, str]:
        """Return replacements for names that became too long: one word, after the domain if the name has one."""
        grown = [text for text, limit in names.items() if _is_long(self._names[text], limit) > _is_long(text, limit)]
        return {
            text: "/".join(filter(None, (self._names[text].rpartition("/")[0], f"long{number}x")))
            for number, text in enumerate(sorted(grown), start=1)
        }

    def _attach_limits(self) -> dict[str, str]:
        """Return replacements for the attach limits of CSI drivers, whose resource names derive from the driver's
        name."""
        limits = {text for text in self._names if text.startswith(CSI_PREFIX)}
        drivers = self._names.items() if limits else ()
        return {limit: csi_limit_key(new) for old, new in drivers if (limit := csi_limit_key(old)) in limits}

    def mapping(self) -> dict[str, str]:
        every = {**self._tokens, **self._ips, **self._long}
        return {text: every[text] for text in sorted(every) if text != every[text]}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    # --- Names

    def name(self, text: str, limit: int = DNS_SUBDOMAIN) -> str:
        return self._names[text]

    def value(self, key: str, text: str) -> str:
        return self._values[key, text]

    def is_kept(self, text: str) -> bool:
        return self._kept.issuperset(WORD.findall(text))

    def uid(self, text: str) -> str:
        return self._uids[text]

    def ip(self, text: str) -> str:
        return self._ips[text]

    def message(self, text: str) -> str:
        known_message = self._messages.get(text)
        if known_message is None:
            known_message = self._messages[text] = _CHUNK.sub(lambda chunk: self._replace_in_message(chunk[0]), text)
        return known_message

    def statement(self, text: str) -> str | None:
        chunks = _CHUNK.findall(_QUOTED.sub("", text))
        parts = (part for chunk in chunks if chunk.strip(":.") not in self._names for part in _SEPARATOR.split(chunk))
        return self.message(text) if all(map(self._is_readable, parts)) else None

    def _is_readable(self, part: str) -> bool:
        words = (word for word in WORD.findall(part) if word.isalpha())
        return part.strip(".") in self._names or MESSAGE_WORDS.issuperset(words)

    def _replace_in_message(self, chunk: str) -> str:
        known = self._long.get(chunk) or self._ips.get(chunk)
        if known or chunk.strip(":.") in self._names:
            return known or self._replace_words(chunk)
        return "".join(map(self._replace_part, _SEPARATOR.split(chunk)))

    def _replace_part(self, part: str) -> str:
        stays = _COUNT.fullmatch(part) or (part not in self._names and _is_public(part))
        return part if stays else self._replace_words(part)


def _is_public(text: str) -> bool:
    """Return whether a part of a message is no name, since all its words are public."""
    return MESSAGE_WORDS.issuperset(WORD.findall(text))


def _dot_address(address: re.Match[str]) -> str:
    return address[0].replace("-", ".")


def _names_in(message: str) -> Iterable[str]:
    """Return the parts of a message that may be names."""
    return (chunk for chunk in _CHUNK.findall(message) if not _COUNT.fullmatch(chunk) and not _is_public(chunk))


def _stays(key: str, value: str, compared: bool) -> bool:
    """Return whether the value stays because a rule parses it."""
    if key in _EC2_PARTS:
        return _EC2_PART.fullmatch(value) is not None
    if key.startswith(_EC2_FACTS) and _EC2_FACT.fullmatch(value):
        return True
    if key in _INSTANCE_TYPES:
        return _EC2.fullmatch(value) is not None
    return compared and parse_int64(value) is not None


def _is_long(text: str, limit: int) -> bool:
    """Return whether a name is too long. For a key, only the part after the domain counts."""
    return len(text.rpartition("/")[2].encode(errors="surrogatepass")) > limit


def _addresses(texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield each address with its replacement. Special addresses stay, and a text that is no address gets a number."""
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


# Objects as lines of JSON. A hundred thousand of them may be pods, which share most of their parts.

_Parts = dict[str, Raw]


class _Pod(Struct, tag_field="kind", tag="Pod", rename="camel"):
    api_version: str = ""
    metadata: _Parts | UnsetType = UNSET
    spec: _Parts | UnsetType = UNSET
    status: _Parts | UnsetType = UNSET


class _Lines:
    """Anonymizes lines, and caches the results for lists and maps."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[tuple[Replacement, bytes], Raw] = {}

    def anonymize(self, line: bytes) -> bytes | None:
        """Return an object with its names replaced; None for one that scheduling does not read."""
        try:
            pod = _PODS.decode(line)
        except msgspec.ValidationError:
            pod = None
        if pod is None or pod.api_version != "v1":
            manifest = change_object(msgspec.json.decode(line), self._names)
            return None if manifest is None else _ENCODER.encode(manifest)
        parts = {"metadata": pod.metadata, "spec": pod.spec, "status": pod.status}
        changed = {name: self._parts(POD[name].fields, part) for name, part in parts.items() if part is not UNSET}
        return _ENCODER.encode({"apiVersion": "v1", "kind": "Pod", **changed})

    def _parts(self, changes: Mapping[str, Replacement], parts: _Parts) -> Json:
        document: Json = {}
        for name, raw in parts.items():
            change = changes.get(name)
            if change is None:
                continue
            key = change, bytes(raw)
            value: object = self._known.get(key)
            if value is None:
                value = change(msgspec.json.decode(key[1]), self._names)
                if isinstance(value, dict | list):
                    value = self._known[key] = Raw(_ENCODER.encode(value))
            if value is not None:
                document[name] = value
        return document


_ENCODER = msgspec.json.Encoder()
_PODS = msgspec.json.Decoder(_Pod)


# A name is replaced word by word, and everywhere in the same way. So the claim `web-0-data` still belongs to the pod
# `web-0` and its volume `data`, the image `team/app` is still on the same nodes, and two zones of a region still share
# a prefix. Words of Kubernetes' own vocabulary stay (`vocabulary`), and names keep their order (`tokens`). Values that
# are not names are kept, checked, or omitted (`fields`). The result is deterministic.

_SHOWN = 3
_SOURCE = "an anonymized cluster"


class Anonymous:
    """Replacements for the names in some objects."""

    def __init__(self, collected: _NameCollector) -> None:
        self._replacer = _Replacer(collected)
        self._lines = _Lines(self._replacer)

    @classmethod
    def of(
        cls,
        objects: Iterable[Mapping[str, object]],
        *,
        config: Mapping[str, object] | None = None,
        keep_selectors: bool = False,
    ) -> Anonymous:
        """Collect the names in `objects`, which are manifests, and in `config`, the scheduler's configuration.

        Raises `InputError` for a device selector that depends on a text's content. With `keep_selectors`,
        such selectors are kept, and every word in them stays everywhere.
        """
        collected = _NameCollector()
        for item in objects:
            change_object(item, collected)
        return cls._of(collected, config, keep_selectors=keep_selectors)

    @classmethod
    def of_lines(
        cls, lines: Iterable[bytes], *, config: Mapping[str, object] | None = None, keep_selectors: bool = False
    ) -> Anonymous:
        """Collect the names in `lines`, one JSON object each, as `slim.Slim` writes them. This is faster, since a pod
        template is read once."""
        collected = _NameCollector()
        reading = _Lines(collected)
        for line in lines:
            reading.anonymize(line)
        return cls._of(collected, config, keep_selectors=keep_selectors)

    @classmethod
    def _of(cls, collected: _NameCollector, config: Mapping[str, object] | None, *, keep_selectors: bool) -> Anonymous:
        if config is not None:
            change_configuration(config, collected)
        if collected.text_operations and not keep_selectors:
            text = "; ".join(f"{owner}: {why}" for owner, why in sorted(collected.text_operations.items())[:_SHOWN])
            others = len(collected.text_operations) - _SHOWN
            more = f"; and {others} more" if others > 0 else ""
            raise InputError(
                f"device selectors that cannot be anonymized: {text}{more}",
                hint="with --keep-selectors they are kept as they are, and every word in them stays readable",
            )
        return cls(collected)

    def configuration(self, config: Mapping[str, object]) -> Json:
        """Return the scheduler's configuration for the anonymized cluster."""
        return change_configuration(config, self._replacer)

    def anonymize(self, item: Mapping[str, object]) -> Json | None:
        """Return one of the objects, anonymized; None for a kind that scheduling does not read, which is omitted."""
        return change_object(item, self._replacer)

    def line(self, line: bytes) -> bytes | None:
        """Return one of the objects in JSON, anonymized as by `anonymize`, also as JSON."""
        return self._lines.anonymize(line)

    def name(self, text: str) -> str:
        """Return the replacement of a name, or of `namespace/name`. Raises KeyError for a name that is in none of the
        objects."""
        return (
            self._replacer.name(text) if text in self._replacer else "/".join(map(self._replacer.name, text.split("/")))
        )

    def text(self, text: str) -> str:
        """Return a message about the cluster, such as an event's, with the names of the objects replaced."""
        return self._replacer.message(text)

    def header(self, header: SnapshotHeader) -> SnapshotHeader:
        """Return the header of the anonymized file: without the source of the objects."""
        return replace(
            header,
            source=_SOURCE,
            server_version=version(header.server_version, self._replacer) or "",
            namespaces=tuple(map(self.name, header.namespaces)),
            scheduler_config="a file" if header.scheduler_config else "",
            anonymized=True,
        )

    def mapping(self) -> dict[str, str]:
        """Return words, addresses, and long names with their replacements, sorted. Uids are omitted, since they reveal
        nothing."""
        return self._replacer.mapping()


def anonymize(objects: Sequence[Mapping[str, object]], *, keep_selectors: bool = False) -> list[Json]:
    """Return the objects, in their order, with everything replaced that could identify their owner."""
    anonymous = Anonymous.of(objects, keep_selectors=keep_selectors)
    return [replaced for item in objects if (replaced := anonymous.anonymize(item)) is not None]
