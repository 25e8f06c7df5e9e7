"""An algorithm provider: the predicates and priorities of one of the two schedulers, by name."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.legacy.era import Era
from kschedx.legacy.predicates.base import Predicate
from kschedx.legacy.priorities.base import Priority


class Provider(Era, frozen=True, kw_only=True):
    """What a Policy chooses from, and what there is without one."""

    predicates: Mapping[str, type[Predicate]]
    """What a Policy may name, to the class."""
    priorities: Mapping[str, type[Priority]]
    default_predicates: tuple[str, ...]
    default_priorities: Mapping[str, int]
    """Priority to weight."""
    mandatory_predicates: tuple[str, ...]
    """Added to every configuration."""
    service_anti_affinity: type[Priority]
    """What a Policy's argument of that name makes."""
