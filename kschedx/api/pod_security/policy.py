"""What a namespace's labels say to Pod Security admission. Upstream: api/helpers.go and api/constants.go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

from msgspec import Struct

PREFIX = "pod-security.kubernetes.io/"
LATEST = "latest"
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")


class Level(IntEnum):
    """In order of strictness."""

    PRIVILEGED = 0
    BASELINE = 1
    RESTRICTED = 2

    def __str__(self) -> str:
        return self.name.lower()


_LEVELS: Mapping[str, Level] = {str(level): level for level in Level}


class LevelVersion(Struct, frozen=True):
    level: Level = Level.PRIVILEGED
    minor: int | None = None
    """Of Kubernetes 1; None is the newest that the API server knows."""

    def __str__(self) -> str:
        return f"{self.level}:{LATEST if self.minor is None else f'v1.{self.minor}'}"


class Policy(Struct, frozen=True, kw_only=True):
    enforce: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()


def policy_of(labels: Mapping[str, str]) -> Policy:
    """The policy of a namespace, where the API server's own configuration has no other defaults than its built-in ones.

    What cannot be read counts as restricted, and the newest version; for warnings as privileged.
    """
    enforce, is_level = _read(labels, "enforce", Level.RESTRICTED)
    warn, _ = _read(labels, "warn", Level.PRIVILEGED)
    if f"{PREFIX}warn" not in labels and is_level and enforce.level > warn.level:
        has_version = f"{PREFIX}warn-version" in labels
        warn = LevelVersion(enforce.level, warn.minor if has_version else enforce.minor)
    return Policy(enforce=enforce, warn=warn)


def _read(labels: Mapping[str, str], mode: str, unreadable: Level) -> tuple[LevelVersion, bool]:
    """What is said for a mode, and whether it names a level."""
    written = labels.get(f"{PREFIX}{mode}")
    level = Level.PRIVILEGED if written is None else _LEVELS.get(written, unreadable)
    version = _VERSION.fullmatch(labels.get(f"{PREFIX}{mode}-version", LATEST))
    return LevelVersion(level, int(version[1]) if version else None), written in _LEVELS
