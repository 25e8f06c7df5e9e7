"""What a change costs."""

from __future__ import annotations

from enum import IntEnum


class Cost(IntEnum):
    """Cheaper is told first."""

    TYPO = 0
    """The pod says almost what a node says."""
    POD = 1
    """A change of the pod that gives up nothing."""
    LESS = 2
    """The pod asks for less, or no longer requires what it prefers."""
    AROUND = 3
    """Claims, volumes and classes are made, or made anew."""
    OTHER_PODS = 4
    NODE = 5
    NEW_NODE = 6
    DATA = 7
    """What is stored is given up."""
