"""Suggestions for names that do not exist. A misspelling differs from another valid name that looks similar."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from kschedx.errors import InputError
from kschedx.kube.quantity import parse_quantity
from kschedx.kube.types import PodSpec
from kschedx.patterns import lazy_pattern

LOOKED_AT = 5000  # the maximum number of known names to compare; a cluster has far fewer, but hostile input may not
_CLOSE = 0.6  # difflib's ratio below which names are not compared letter by letter
_NEAR = 8
_LONGEST = 320
"""The maximum length of a name: Kubernetes' longest, a resource with its prefix, and a few more characters."""
_SHORT = 5  # in a shorter word, a different letter is not a typo: `gpu` is not `cpu`
_LETTERS_A_SLIP = 5

_MEMBER = lazy_pattern(r"\d+|(?<![a-z])[a-z](?![a-z])")
"""What distinguishes members of a series: the number in `worker-1`, the single letter in `eu-1a`."""
_SEPARATORS = lazy_pattern(r"[-_.]")


_VARIABLE = lazy_pattern(r"\$\{\w")
_FILL_IN = "replace the variables first, for example with `envsubst`"


def variables_hint(text: str) -> str:
    """Return the hint for an invalid value that contains an unresolved variable."""
    return _FILL_IN if _VARIABLE.search(text) and _FILL_IN not in text else ""


def nearest_name(written: str, known: Iterable[str]) -> str:
    """Return the known name of which `written` is a misspelling, or an empty string if there is none or several are
    equally near."""
    if len(written) > _LONGEST:
        return ""
    names: dict[str, list[str]] = {}
    for name in list(dict.fromkeys(known))[:LOOKED_AT]:
        names.setdefault(_fold_case(name), []).append(name)
    folded = _fold_case(written)
    same_words = [name for name in names if _has_its_prefix(folded, name) or _is_reordered(folded, name)]
    near = difflib.get_close_matches(folded, names, n=_NEAR, cutoff=_CLOSE)
    slips = {
        folded_name: count
        for folded_name in dict.fromkeys((*near, *same_words))
        if (count := _slips(folded, folded_name)) is not None
    }
    fewest = [slip for slip in slips if slips[slip] == min(slips.values())]
    candidates = [name for folded_name in fewest for name in names[folded_name] if name != written]
    return candidates[0] if len(candidates) == 1 else ""


def _fold_case(name: str) -> str:
    return name.lower().replace("k8s", "kubernetes")


def _has_its_prefix(written: str, known: str) -> bool:
    """Return whether the names after the prefix are equal, and the prefix is absent or part of the known one."""
    prefix, _, name = written.rpartition("/")
    whole, slash, same = known.rpartition("/")
    return bool(slash) and _is_same_word(name, same) and whole.startswith(prefix)


def _is_same_word(text: str, other: str) -> bool:
    return _SEPARATORS.sub("", text) == _SEPARATORS.sub("", other)


def _slips(written: str, known: str) -> int | None:
    """Count omitted, doubled, exchanged, or wrong letters; None if these are different names."""
    if _has_its_prefix(written, known):
        return 0 if written == known else 1
    here, there = written.split("/"), known.split("/")
    if len(here) != len(there):
        return None
    total = 0
    for letter, other in zip(here, there, strict=True):
        slips = _slips_of_word(letter, other)
        if slips is None:
            return None
        total += slips
    return total


def _slips_of_word(written: str, known: str) -> int | None:
    if _is_same_word(written, known):
        return int(written != known)
    if _is_reordered(written, known):
        return 2
    if _MEMBER.sub("", written) == _MEMBER.sub("", known):
        return None
    if _is_abbreviated(written, known) or _is_abbreviated(known, written):
        return 2
    here, there = _SEPARATORS.split(written), _SEPARATORS.split(known)
    if len(here) != len(there):
        here, there = [written], [known]
    total = 0
    for item, other in zip(here, there, strict=True):
        slips = _distance(item, other)
        if slips > _most(max(item, other, key=len)):
            return None
        if item[:1] != other[:1] and sorted(item[:2]) != sorted(other[:2]):
            return None  # the first letter is rarely wrong
        total += slips
    return total if total <= _most(max(written, known, key=len)) else None


def _is_reordered(written: str, known: str) -> bool:
    """Return True for `nvidia-gpu` and `gpu.nvidia.com`."""
    here, there = _words(written), _words(known)
    return len(here - _TOP_LEVEL) > 1 and here - _TOP_LEVEL == there - _TOP_LEVEL


_TOP_LEVEL = frozenset({"com", "io", "org", "dev", "net"})


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall("[a-z0-9]+", name.lower()))


def nearest_product(written: str, known: Iterable[str]) -> str:
    """Return the only known product whose name contains all words of `written`: `NVIDIA A100-SXM4-40GB` for `A100`. An
    empty string if there is none or several."""
    products = [name for name in dict.fromkeys(known) if name != written and _words(written) <= _words(name)]
    return products[0] if len(products) == 1 and _words(written) else ""


def _is_abbreviated(short: str, long: str) -> bool:
    """Return True for `hi-mem` and `highmem`, and False for `standard` and `standard-rw`."""
    word, whole = _SEPARATORS.sub("", short), _SEPARATORS.sub("", long)
    if len(word) < _SHORT or len(whole) != len(word) + 2 or word[0] != whole[0] or whole.startswith(word):
        return False
    rest = iter(whole)
    return all(letter in rest for letter in word)


def _most(word: str) -> int:
    return max(1, len(word) // _LETTERS_A_SLIP)


def _distance(text: str, other: str) -> int:
    """Return the Damerau–Levenshtein distance with adjacent transpositions."""
    mistaken = 1 if len(other) >= _SHORT else 2
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(text, start=1):
        older, before, row = before, row, [i]
        for j, its in enumerate(other, start=1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (0 if letter == its else mistaken))
            if i > 1 and j > 1 and letter == other[j - 2] and text[i - 2] == its:
                best = min(best, older[j - 2] + 1)
            row.append(best)
    return row[-1]


# Amounts with an unlikely suffix that an API server accepts: `500M` of cpu is 500 million processors, `128m` of memory
# a fraction of a byte.

_MOST_CPUS = 10_000  # more than any machine has
_LEAST_BYTES = 1_000_000  # less than any container needs


_FAR_TOO_MUCH = 10  # the multiple of the largest node's amount from which another suffix is likely
_ONE_LESS = {"Gi": "Mi", "Ti": "Gi", "G": "M", "T": "G"}


class UnlikelyQuantity(Struct, frozen=True, kw_only=True):
    container: str
    resource: str
    written: str
    is_really: int  # whole processors or bytes
    meant: str


def unlikely_quantities(spec: PodSpec) -> Iterator[UnlikelyQuantity]:
    """Yield each unlikely amount of a container; a request and an equal limit count once."""
    reported: set[tuple[str, str, str]] = set()
    for container in (*spec.init_containers, *spec.containers):
        for amounts in (container.resources.requests, container.resources.limits):
            for resource, amount in amounts.items():
                written = str(amount)
                meant = _likely_quantity(resource, written)
                if meant and (container.name, resource, written) not in reported:
                    reported.add((container.name, resource, written))
                    yield UnlikelyQuantity(
                        container=container.name,
                        resource=resource,
                        written=written,
                        is_really=parse_quantity(written).milli_value() // 1000,
                        meant=meant,
                    )


def excessive_amounts(spec: PodSpec, resource: str, largest: int) -> Iterator[UnlikelyQuantity]:
    """Yield amounts of cpu or memory far beyond all nodes, such as `512Gi` if the largest has 16Gi. `largest` is in
    milli-units of cpu and bytes."""
    reported: set[tuple[str, str]] = set()
    for container in (*spec.init_containers, *spec.containers):
        for amounts in (container.resources.requests, container.resources.limits):
            written = str(amounts.get(resource, ""))
            meant = _with_smaller_suffix(resource, written)
            if not meant or (container.name, written) in reported:
                continue
            while (less := _with_smaller_suffix(resource, meant)) and parse_quantity(
                meant
            ).milli_value() > 1000 * largest:
                meant = less
            milli = parse_quantity(written).milli_value()
            if (milli if resource == "cpu" else milli // 1000) >= _FAR_TOO_MUCH * largest > 0:
                reported.add((container.name, written))
                yield UnlikelyQuantity(
                    container=container.name, resource=resource, written=written, is_really=milli // 1000, meant=meant
                )


def _with_smaller_suffix(resource: str, written: str) -> str:
    """Return the amount with the next smaller suffix, or an empty string if the amount is plausible."""
    number = written.rstrip("GTi")
    suffix = written[len(number) :]
    is_large = number.isascii() and number.isdigit() and int(number) >= 100
    if resource == "cpu":
        return f"{number}m" if is_large and not suffix else ""
    if resource != "memory" or not (is_large or suffix.startswith("T")):
        return ""
    return f"{number}{_ONE_LESS[suffix]}" if suffix in _ONE_LESS else ""


def _likely_quantity(resource: str, written: str) -> str | None:
    """Return the amount that was probably meant, or None if the amount is plausible."""
    number = written.rstrip("kKMGTPEmi")
    suffix = written[len(number) :]
    try:
        milli = parse_quantity(written).milli_value()
    except InputError:
        return None
    if resource == "cpu" and milli > _MOST_CPUS * 1000 and suffix:
        return f"{number}m"
    is_small = resource in ("memory", "ephemeral-storage") and 0 < milli < _LEAST_BYTES * 1000
    is_meant = suffix == "m" or (not suffix and milli < 100_000 * 1000)
    return f"{number}Mi" if is_small and is_meant else None
