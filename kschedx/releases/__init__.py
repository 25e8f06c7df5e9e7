"""Kubernetes releases as data: `resolve()` gives the frozen value that everything else reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from kschedx.errors import ConfigError, nearest
from kschedx.releases import v1_36
from kschedx.releases.gates import resolve_gates
from kschedx.releases.release import PLACEMENT_POINTS, POINTS, DefaultPlugin, Messages, Release

__all__ = [
    "PLACEMENT_POINTS",
    "POINTS",
    "VERSIONS",
    "DefaultPlugin",
    "Messages",
    "Release",
    "resolve",
]

VERSIONS = (v1_36.VERSION,)
"""The minor releases that kschedx emulates, newest first."""


def resolve(version: str | None = None, feature_gates: Mapping[str, bool] | None = None) -> Release:
    """The release `version` (`1.36`, `v1.36.2`; default: the newest) with `feature_gates` set.

    ConfigError for a release that kschedx does not know, and for gates that kube-scheduler would refuse.
    """
    minor = _minor(version) if version is not None else VERSIONS[0]
    gates = resolve_gates(minor, feature_gates or {})
    return Release(
        version=minor,
        gates=gates,
        default_plugins=tuple(p for p in v1_36.DEFAULT_PLUGINS if p.gate is None or gates[p.gate]),
        plugin_points=v1_36.PLUGIN_POINTS,
        removed_plugins=v1_36.REMOVED_PLUGINS,
        config_versions=v1_36.CONFIG_VERSIONS,
        messages=v1_36.MESSAGES,
    )


def _minor(version: str) -> str:
    """`1.36` of `v1.36.2-gke.100`."""
    match = re.match(r"v?(\d+\.\d+)(?:[.+-]|$)", version, re.ASCII)
    if match and match[1] in VERSIONS:
        return match[1]
    hint = nearest(version, VERSIONS)
    known = f"known releases: {', '.join(VERSIONS)}"
    raise ConfigError(f"unknown Kubernetes release {json.dumps(version)}", hint=f"{hint} {known}" if hint else known)
