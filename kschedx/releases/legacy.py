"""The versions of the two schedulers before the framework, as their gates; everything else is in the package
`legacy`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from kschedx.errors import ConfigError, nearest
from kschedx.releases.behavior import Behaviour
from kschedx.releases.configuration import Arguments
from kschedx.releases.dates import minor
from kschedx.releases.messages import Messages
from kschedx.releases.release import Release

GATES: Mapping[str, Mapping[str, bool]] = {
    "1.13": {"PodPriority": True, "ResourceLimitsPriorityFunction": False, "TaintNodesByCondition": True},
    "1.5": {},
}
"""The gates that affect scheduling, with their defaults."""

VERSIONS = tuple(GATES)

_OLDEST_WITH_DATES = "1.26"
"""The first version with dated texts and plugin arguments. Predicates use neither."""


def resolve(version: str, feature_gates: Mapping[str, bool]) -> Release:
    """Return the release with `feature_gates` set. Raises `ConfigError` for a gate that affects nothing there."""
    known = GATES[version]
    for gate in feature_gates:
        if gate not in known:
            phrase = ", ".join(known) or "none"
            raise ConfigError(
                f"feature gate {json.dumps(gate)} has no effect in the scheduler of Kubernetes {version}",
                hint=nearest(gate, known) or f"gates that do: {phrase}",
            )
    return Release(
        version=version,
        gates={**known, **feature_gates},
        default_plugins=(),
        v1beta2_default_plugins={},
        plugin_points={},
        never_skips_filter=frozenset(),
        never_skips_score=frozenset(),
        removed_plugins=(),
        config_versions=(),
        missing_fields={},
        arguments=Arguments(minor(_OLDEST_WITH_DATES)),
        messages=Messages(minor(_OLDEST_WITH_DATES)),
        behaviour=Behaviour(minor(version)),
        has_framework=False,
    )
