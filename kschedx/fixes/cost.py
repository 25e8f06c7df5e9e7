"""What a change costs."""

from __future__ import annotations

from enum import IntEnum


class Cost(IntEnum):
    """Cheaper is told first: what somebody who knows the cluster would do first."""

    WAITING = 0
    """It comes by itself."""
    TYPO = 1
    """The pod says almost what a node says."""
    REPAIR = 2
    """What is broken is mended, and nobody gives up anything."""
    POD = 3
    """A change of the pod that gives up nothing."""
    LABEL = 4
    """A label that the pod asks for and that nobody has put on any node."""
    LESS = 5
    """The pod asks for less, or no longer requires what it prefers."""
    AROUND = 6
    """Claims, volumes and classes are made, or made anew."""
    NODE = 7
    NEW_NODE = 8
    STOPGAP = 9
    """Where no node can come: far less than the pod asks for, by hand what a driver should make."""
    OTHER_PODS = 10
    """Pods that run go."""
    DATA = 11
    """What is stored is given up."""
