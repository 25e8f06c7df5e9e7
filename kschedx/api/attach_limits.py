"""The allocatable resources by which nodes limit attached volumes, until Kubernetes 1.31.

Upstream: pkg/volume/util/attach_limit.go.
"""

from __future__ import annotations

PREFIX = "attachable-volumes-"
CSI_PREFIX = f"{PREFIX}csi-"
_LONGEST = 63
"""The length that a resource's name must stay below."""


def csi_limit_key(driver: str) -> str:
    """The resource that limits a CSI driver's volumes; a long name is cut and made distinct by its hash."""
    key = f"{CSI_PREFIX}{driver}"
    if len(key.encode()) < _LONGEST:
        return key
    import hashlib  # few names are so long

    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return f"{CSI_PREFIX}{driver[:23]}{digest[:16]}"
