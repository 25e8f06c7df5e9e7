"""Whether an object is one that an API server has, as what it gives to each says."""

from __future__ import annotations

from collections.abc import Mapping

_GIVEN = ("uid", "creationTimestamp")


def is_stored(manifest: Mapping[str, object]) -> bool:
    metadata = manifest.get("metadata")
    return isinstance(metadata, dict) and any(metadata.get(key) for key in _GIVEN)


def as_new(manifest: Mapping[str, object]) -> dict[str, object]:
    """As somebody would send it, so that all of it is looked at."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return dict(manifest)
    return {**manifest, "metadata": {key: value for key, value in metadata.items() if key not in _GIVEN}}
