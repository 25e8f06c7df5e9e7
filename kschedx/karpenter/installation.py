"""Which version of Karpenter a cluster runs, as the image of its Deployment says."""

from __future__ import annotations

import re

from kschedx.releases.dates import minor
from kschedx.releases.karpenter import MEASURED, VERSIONS
from kschedx.snapshot.snapshot import Snapshot

_IMAGE = re.compile(rb'karpenter/controller:v?(\d{1,3}\.\d{1,3})[."@-]')


def karpenter_version(snapshot: Snapshot) -> str:
    """The version of `VERSIONS` that is the cluster's or nearest to it; where none is known, the measured one."""
    for (kind, _, _), raw in snapshot.workloads.items():
        found = _IMAGE.search(raw) if kind == "Deployment" and b"karpenter/controller:" in raw else None
        if found is not None:
            told = minor(found[1].decode())
            return next((one for one in reversed(VERSIONS) if minor(one) <= told), VERSIONS[0])
    return MEASURED[-1]
