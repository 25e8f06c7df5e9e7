"""Why a new node of a pool does not accept a pod: facts, each with Karpenter's message.

Upstream: scheduling/nodeclaim.go, scheduler.go, and operatorpkg/serrors for the parts in parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from kschedx.karpenter.devices import NoDevices
from kschedx.karpenter.instance_types import NoInstanceType, too_few_text
from kschedx.karpenter.nodes import UsedPort
from kschedx.karpenter.requirements import PODS, Amount, RequirementConflict
from kschedx.karpenter.topology import Unsatisfiable
from kschedx.kube.types import Taint
from kschedx.patterns import lazy_pattern


class NotTolerated(Struct, frozen=True, kw_only=True):
    taints: tuple[Taint, ...]

    @property
    def text(self) -> str:
        return "; ".join(f"did not tolerate taint (taint={taint})" for taint in self.taints)


class PortTaken(Struct, frozen=True, kw_only=True):
    port: UsedPort
    taken: UsedPort
    by: str  # `namespace/name` of the pod that uses it

    @property
    def text(self) -> str:
        phrase = ", ".join((*self.taken.facts("existing"), *self.port.facts("pod")))
        return f"checking host port usage, pod hostport conflicts with existing hostport configuration ({phrase})"


class Incompatible(Struct, frozen=True, kw_only=True):
    """Requirements of the pod, of its volumes' location, or of topology rules."""

    conflicts: tuple[RequirementConflict, ...]
    prefix: str = "incompatible requirements, "

    @property
    def text(self) -> str:
        return self.prefix + "; ".join(map(str, self.conflicts))

    @property
    def is_about_volumes(self) -> bool:
        return self.prefix == OF_VOLUMES


_ON_EVERY_NODE = ("cpu", "memory", PODS)  # resources that every node has

OF_VOLUMES = "incompatible volume requirements, "


class LimitReached(Struct, frozen=True, kw_only=True):
    """Every instance type that fits would exceed the pool's limits."""

    pool: str
    remaining: dict[str, Amount]
    limits: dict[str, Amount]
    of_others: str = ""  # Karpenter's message about types within the limits, none of which fits

    @property
    def is_exhausted(self) -> bool:
        """Whether even the smallest type exceeds the limits."""
        return any(
            amount.nano < 0 or (amount.nano == 0 and name in _ON_EVERY_NODE) for name, amount in self.remaining.items()
        )

    @property
    def text(self) -> str:
        return self.of_others or f"all available instance types exceed limits for nodepool (NodePool={self.pool})"


class NodeLimitReached(Struct, frozen=True, kw_only=True):
    pool: str
    limit: int

    @property
    def text(self) -> str:
        return f"node limits have been exhausted for nodepool (NodePool={self.pool})"


class CheapestAreTooFew(Struct, frozen=True, kw_only=True):
    """A node would fit, but only the cheapest types are requested from the cloud, and these do not meet `minValues`."""

    pool: str
    most: int
    too_few: Mapping[str, int]

    @property
    def text(self) -> str:
        return (
            "pod didn’t schedule because NodePool couldn’t meet minValues requirements, validating minValues, "
            f"{too_few_text(self.too_few)} (NodePool={self.pool})"
        )


Rejection = (
    NotTolerated
    | PortTaken
    | Incompatible
    | Unsatisfiable
    | NoInstanceType
    | LimitReached
    | NodeLimitReached
    | CheapestAreTooFew
    | NoDevices
)


# Comparison of Karpenter's events: parts in random order count as equal in any order.

_HOST = lazy_pattern(r"hostname-placeholder-\d+")
_TYPO = lazy_pattern(r' \(typo of "[^"]*"\?\)')
_LIST = lazy_pattern(r"\[([^][]*)\]")
_PARTS = lazy_pattern(r"; |, ")


def _taint(match: re.Match[str]) -> str:
    key, value, effect = match.groups()
    return f"did not tolerate taint (taint={key}{f'={value}' if value else ''}:{effect})"


_OLD_WORDS = (
    (lazy_pattern(r'incompatible with nodepool "[^"]*", daemonset overhead=\{[^}]*\}, '), ""),
    (
        lazy_pattern(r'all available instance types exceed limits for nodepool:? "([^"]*)"'),
        r"all available instance types exceed limits for nodepool (NodePool=\1)",
    ),
    (lazy_pattern(r"did not tolerate (?!taint \()([^\s;=:]+)=?([^\s;:]*):(\w+)"), _taint),
    (
        lazy_pattern(
            r"no instance type satisfied resources (\{[^}]*\}) and requirements (.*?) \((no instance type [^)]*)\)"
        ),
        r"\3, requirements=\2, resources=\1",
    ),
)
"""Texts of versions before 1.5 and their current form."""


def is_same_karpenter_event(theirs: str, ours: str) -> bool:
    """Ignore generated host names, suggestions for typos, order in lists, and the wording of versions before 1.5."""
    for old, new in _OLD_WORDS:
        theirs = old.sub(new, theirs)
    return _parts(theirs) == _parts(ours)


def _parts(text: str) -> list[str]:
    settled = _LIST.sub(lambda match: f"[{' '.join(sorted(match[1].split()))}]", text)
    return sorted(_PARTS.split(_TYPO.sub("", _HOST.sub("", settled))))
