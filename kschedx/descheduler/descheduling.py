"""`kschedx.deschedule`: a policy and a snapshot to what the descheduler does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct

from kschedx.descheduler.cluster import Cluster, Metrics, pods_of
from kschedx.descheduler.document import round_of, to_builtins
from kschedx.descheduler.policy import Policy, PolicyError, read_policy
from kschedx.descheduler.run import Loop, run_loop
from kschedx.errors import InputError
from kschedx.kube.scalars import nanoseconds
from kschedx.snapshot.snapshot import Snapshot

API, DRY_RUN = "api", "dry-run"


class Descheduling(Struct, frozen=True, kw_only=True):
    policy: Policy | None = None
    loop: Loop = Loop()
    error: str = ""

    def to_dict(self) -> dict[str, object]:
        if self.policy is None:
            return {"error": self.error}
        return to_builtins(round_of(self.loop, self.policy.grace_period_seconds))


def deschedule(
    snapshot: Snapshot, policy: Mapping[str, object], *, evictions: str = API, now: str | None = None, source: str = ""
) -> Descheduling:
    if evictions not in (API, DRY_RUN):
        raise InputError(f'evictions: expected "{API}" or "{DRY_RUN}", found "{evictions}"')
    try:
        read = read_policy(policy, snapshot.priority_classes, source=source)
    except PolicyError as error:
        return Descheduling(error=error.message)
    cluster = Cluster(snapshot, pods_of(snapshot), counts_budgets=evictions == API)
    moment = nanoseconds(now or snapshot.source.taken or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    loop = run_loop(cluster, read, Metrics.of(snapshot), moment)
    return Descheduling(policy=read, loop=loop)
