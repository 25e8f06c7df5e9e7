"""Kubernetes' versions as kubelets and API servers write them."""

from __future__ import annotations

import re

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?", re.ASCII)


def minor_of(version: str) -> tuple[int, int]:
    """(1, 36) of `v1.36.2-gke.7`; (0, 0) for what is no version."""
    return key_of(version)[:2]


def key_of(version: str) -> tuple[int, int, int]:
    """What versions are ordered by; (0, 0, 0) for what is none."""
    match = _VERSION.match(version)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 0, 0)
