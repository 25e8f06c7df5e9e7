"""What a node scores: more where claims get what they would rather have (computeScore)."""

from __future__ import annotations

from collections.abc import Sequence

from kschedx.api.devices import MAX_ALTERNATIVES, ResourceClaim
from kschedx.framework.state import NotPreparedError
from kschedx.plugins.dynamic_resources.picks import Result


def score_of(claims: Sequence[ResourceClaim], result: Result) -> int:
    """More for alternatives that stand further in front."""
    new = iter(result)
    score = 0
    for claim in claims:
        if claim.status.allocation is not None:
            names = {one.request for one in claim.status.allocation.devices.results}
        else:
            picks = next(new, None)
            if picks is None:
                had = f"number of allocations {len(result)} is smaller than number of claims needing allocation"
                raise NotPreparedError(had)
            names = {pick.request for pick in picks}
        for request in claim.spec.devices.requests:
            for position, one in enumerate(request.first_available):
                if request.exactly is None and f"{request.name}/{one.name}" in names:
                    score += MAX_ALTERNATIVES - position
    return score
