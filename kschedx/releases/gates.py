"""Feature gates of a release, with what the user set (component-base/featuregate/feature_gate.go)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from kschedx.errors import ConfigError, nearest
from kschedx.releases.dates import minor
from kschedx.releases.feature_gates import DEPENDENCIES, DEPENDENCIES_SINCE, HISTORY, MERGED

GROUPS = {"AllAlpha": "alpha", "AllBeta": "beta"}
"""Gates that stand for every gate of a stage that is not set by name."""

REMOVED = "removed"


class GateSpec(Struct, frozen=True, kw_only=True):
    """A gate's stage in one release."""

    stage: str
    default: bool
    locked: bool


def specs(version: str) -> dict[str, GateSpec]:
    """The gates that exist in a minor release."""
    return {gate: spec for gate, spec in _ever(version).items() if spec.stage != REMOVED}


@cache
def _ever(version: str) -> dict[str, GateSpec]:
    """The gates of a minor release and of those before it; a removed one keeps the default that it had last."""
    at = minor(version)
    known: dict[str, GateSpec] = {}
    for gate, history in HISTORY.items():
        for entry in history.split(", "):
            since, stage, *words = entry.split()
            if minor(since) > at:
                break
            default = known[gate].default if stage == REMOVED else words[0] == "on"
            known[gate] = GateSpec(stage=stage, default=default, locked="locked" in words)
    return known


def resolve_gates(version: str, wanted: Mapping[str, bool]) -> dict[str, bool]:
    """Every gate of the release with its value, and the removed ones with what they became.

    A gate by name counts before AllAlpha and AllBeta. ConfigError for a gate that is unknown or locked to the other
    value, and for one that is on while a gate that it depends on is off.
    """
    known = specs(version)
    for gate, value in wanted.items():
        if gate in GROUPS:
            continue
        spec = known.get(gate)
        if spec is None:
            hint = nearest(gate, [*known, *GROUPS]) or f"{len(known)} gates exist in Kubernetes {version}"
            raise ConfigError(f"unrecognized feature gate: {json.dumps(gate)}", hint=hint)
        if spec.locked and spec.default != value:
            fixed = _word(spec.default)
            raise ConfigError(f"cannot set feature gate {gate} to {_word(value)}, feature is locked to {fixed}")
    values = {gate: spec.default for gate, spec in _ever(version).items()}
    for group, stage in GROUPS.items():
        if group in wanted:
            values |= {gate: wanted[group] for gate, spec in known.items() if spec.stage == stage}
    values |= {gate: value for gate, value in wanted.items() if gate not in GROUPS}
    values |= {gate: values[whole] for gate, (whole, since) in MERGED.items() if minor(since) <= minor(version)}
    if minor(version) >= minor(DEPENDENCIES_SINCE):
        _check_dependencies(values)
    return values


def _check_dependencies(values: Mapping[str, bool]) -> None:
    for gate, needs in DEPENDENCIES.items():
        if not values.get(gate, False):
            continue
        off = [need for need in needs if not values.get(need, False)]
        if off:
            raise ConfigError(
                f"{gate} is enabled, but depends on features that are disabled: [{' '.join(off)}]",
                hint=f"turn {gate} off as well, or {' and '.join(off)} on",
            )


def _word(value: bool) -> str:
    return "true" if value else "false"
