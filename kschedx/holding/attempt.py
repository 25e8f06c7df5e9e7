"""How a pod is tried as somebody who holds it would let it go."""

from __future__ import annotations

from collections.abc import Callable

from kschedx.api.types import Pod

Try = Callable[[Pod, frozenset[str] | None], tuple[tuple[str, ...], tuple[str, ...]]]
"""A pod, and the nodes to look at (None for all), to those on which it would pass every filter and, where there is
none, the reasons with their counts."""
