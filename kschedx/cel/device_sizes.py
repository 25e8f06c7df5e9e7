"""How large the parts of a device are at most.

Upstream: dynamic-resource-allocation/cel/compile.go (sizeEstimator).
"""

from __future__ import annotations

from kschedx.cel.ranges import Range

Path = tuple[str, ...]
"""Steps from a variable into it; `@keys`, `@values`, `@items` and `@indices` are all that a list or a map holds."""

_MOST_ATTRIBUTES = 32
_LONGEST_VALUE = 64
_LONGEST_DRIVER = _LONGEST_DOMAIN = 63
_LONGEST_ID = 32

_DEVICE_SIZES: dict[Path, int] = {
    (): 0,
    ("driver",): _LONGEST_DRIVER,
    ("allowMultipleAllocations",): 1,
    ("attributes",): _MOST_ATTRIBUTES,
    ("attributes", "@keys"): _LONGEST_DOMAIN,
    ("attributes", "@values"): _MOST_ATTRIBUTES,
    ("attributes", "@values", "@keys"): _LONGEST_ID,
    ("attributes", "@values", "@values"): _LONGEST_VALUE,
    ("capacity",): _MOST_ATTRIBUTES,
    ("capacity", "@keys"): _LONGEST_DOMAIN,
    ("capacity", "@values"): _MOST_ATTRIBUTES,
    ("capacity", "@values", "@keys"): _LONGEST_ID,
    ("capacity", "@values", "@values"): 0,
}


def device_size(path: Path) -> Range | None:
    """None of what is no part of a device."""
    if path[:1] != ("device",):
        return None
    own = tuple("@values" if part == "@items" else part for part in path[1:])
    if len(own) == 3 and own[:2] == ("attributes", "@values") and not own[2].startswith("@"):
        own = ("attributes", "@values", "@values")
    most = _DEVICE_SIZES.get(own)
    return None if most is None else Range(0, most)
