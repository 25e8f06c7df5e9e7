"""Kubernetes versions as data: `resolve()` returns the frozen value that everything else reads.

Each fact is written once, with its dates: gates in `gates`, plugins in `plugins`, texts in `messages`, and the fields
of a configuration in `configuration`. Everything else that changed is a named fact in `behavior`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache

from kschedx.errors import ConfigError, closest, nearest
from kschedx.releases import plugins
from kschedx.releases.behavior import Behavior as Behavior
from kschedx.releases.dates import is_in_range, minor
from kschedx.releases.gates import resolve_gates
from kschedx.releases.plugins import DefaultPlugin as DefaultPlugin
from kschedx.releases.release import PLACEMENT_POINTS as PLACEMENT_POINTS
from kschedx.releases.release import POINTS as POINTS
from kschedx.releases.release import V1 as V1
from kschedx.releases.release import V1BETA2 as V1BETA2
from kschedx.releases.release import Arguments, missing_fields, versions_in
from kschedx.releases.release import Messages as Messages
from kschedx.releases.release import Release as Release

VERSIONS = ("1.36", "1.35", "1.34", "1.33", "1.32", "1.31", "1.30", "1.29", "1.28", "1.27", "1.26")
"""The minor versions that kschedx emulates and was tested against, newest first."""

_PUBLISHED = ("1.38", "1.37")
"""Versions that were not tested: kschedx knows their published gates and release notes. For a future version, it knows
the gates that enhancement documents plan to be stable. Everything else is taken to be as in the version before."""

EMULATED = (*_PUBLISHED, *VERSIONS)  # all versions with the scheduling framework, newest first

_EARLY_GATES: Mapping[str, Mapping[str, bool]] = {
    "1.13": {"PodPriority": True, "ResourceLimitsPriorityFunction": False, "TaintNodesByCondition": True},
    "1.5": {},
}
"""The versions before the framework with the gates that affect scheduling; everything else is in `legacy`."""
_OLDEST_WITH_DATES = "1.26"  # the first version with dated texts and plugin arguments. Predicates use neither


def resolve(version: str | None = None, feature_gates: Mapping[str, bool] | None = None) -> Release:
    """Return the release `version` (`1.36`, `v1.36.2`; by default the newest tested one) with `feature_gates` set.
    Without its patch version, it is the first release of the minor version.

    Raises `ConfigError` for an unknown version, and for gates that kube-scheduler would refuse.
    """
    name, patch = (VERSIONS[0], 0) if version is None else _known(version)
    return _resolve(name, patch, tuple((feature_gates or {}).items()))


@cache
def _resolve(name: str, patch: int, feature_gates: tuple[tuple[str, bool], ...]) -> Release:
    if name in _EARLY_GATES:
        return _early(name, dict(feature_gates))
    release = (*minor(name), patch)
    gates = resolve_gates(name, dict(feature_gates))
    versions = versions_in(release)

    rows = plugins.PLUGINS

    def present(entries: tuple[DefaultPlugin, ...]) -> tuple[DefaultPlugin, ...]:
        return tuple(p for p in entries if p.is_in(release) and (p.gate is None or gates.get(p.gate, False)))

    return Release(
        version=name,
        gates=gates,
        default_plugins=present(plugins.default_plugins(release)),
        v1beta2_default_plugins={
            point: present(entries) for point, entries in plugins.V1BETA2_DEFAULT_PLUGINS.items() if V1BETA2 in versions
        },
        plugin_points=plugins.points_of(release),
        never_skips_filter=frozenset(row.name for row in rows if not is_in_range(release, row.filter_can_skip)),
        never_skips_score=frozenset(row.name for row in rows if not is_in_range(release, row.score_can_skip)),
        removed_plugins=tuple(
            sorted(
                row.name for row in rows if row.refused_in_v1 is not None and is_in_range(release, row.refused_in_v1)
            )
        ),
        config_versions=versions,
        missing_fields={version: tuple(missing_fields(version, release)) for version in versions},
        arguments=Arguments(release),
        messages=Messages(release),
        behavior=Behavior(release),
        is_measured=name in VERSIONS,
    )


def _known(version: str) -> tuple[str, int]:
    """Return `1.36` and the patch version 2 for `v1.36.2-gke.100`."""
    match = re.match(r"v?(\d+\.\d+)(?:\.(\d{1,4}))?(?:[.+-]|$)", version, re.ASCII)
    every = (*EMULATED, *_EARLY_GATES)
    if match and match[1] in every:
        return match[1], int(match[2] or 0)
    near = closest(version, every)
    if match and match[1].startswith("1.") and len(match[1]) < 9:
        near = min(every, key=lambda known: abs(int(known[2:]) - int(match[1][2:])))
    known = f"known versions: {', '.join((*VERSIONS, *_EARLY_GATES))}, and as published {', '.join(_PUBLISHED)}"
    hint = f'did you mean "{near}"? {known}' if near else known
    raise ConfigError(f"unknown Kubernetes version {json.dumps(version)}", hint=hint)


def _early(version: str, feature_gates: Mapping[str, bool]) -> Release:
    """Return the release with `feature_gates` set. Raises `ConfigError` for a gate that affects nothing there."""
    known = _EARLY_GATES[version]
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
        behavior=Behavior(minor(version)),
        has_framework=False,
    )
