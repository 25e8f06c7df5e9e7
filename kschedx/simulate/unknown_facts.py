"""Decisions in a queue that depend on facts which a dump lacks: a whole cycle for each such pod."""

from __future__ import annotations

from kschedx.controllers.workloads import has_ephemeral_claims
from kschedx.errors import UndecidableError
from kschedx.explain.missing_kinds import cycle_of, may_be_open
from kschedx.framework.cycle import Outcome
from kschedx.framework.moving import Decision, Run
from kschedx.snapshot.snapshot import MissingCause, Snapshot
from kschedx.words.pod import could_reject


class UnknownFacts:
    """What is known about pods whose decision depends on unknown facts."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._concerns_all = any(cause is MissingCause.FORBIDDEN for cause in snapshot.source.missing.values())
        self._known_in, self._may_matter = snapshot, dict[tuple[int, ...], bool]()
        """The results of `may_matter` in a cluster, by specs, labels, and namespaces."""
        self._latest: tuple[int, int, Decision, str] | None = None
        """The last decided pod, the version of the cluster, the decision, and what leaves it open."""

    def may_matter(self, run: Run, row: int) -> bool:
        """Return whether unknown facts could reject the pod. It is computed once for pods that differ in their names
        and have no claims."""
        if self._concerns_all:
            return True
        pods = run.cluster.pods
        if self._known_in is not run.snapshot:
            self._known_in, self._may_matter = run.snapshot, {}
        key = tuple(int(column.codes[row]) for column in (pods.specs, pods.labels, pods.namespaces))
        is_open = self._may_matter.get(key)
        if is_open is None:
            pod = pods[row]
            is_open = may_be_open(run.snapshot, pod)
            if not (pod.spec.mounts_storage or pod.spec.resource_claims):
                self._may_matter[key] = is_open
        return is_open

    def decide(self, run: Run, row: int) -> Decision:
        """The decision of a whole cycle. Identical pods share it until something moves. Raises `UndecidableError`."""
        pods, spec, latest = run.cluster.pods, run.cluster.pods.specs[row], self._latest
        own = spec.scheduling_group or spec.resource_claims or has_ephemeral_claims(spec)
        alone = own or pods.nominations or run.scheduler.config.extenders
        if latest is None or alone or latest[1] != run.cluster.version or not pods.is_like(latest[0], row):
            cycle = cycle_of(run.scheduler, pods[row], run.profile_of(row))
            self._latest = latest = row, run.cluster.version, Decision.of(cycle), could_reject(cycle.unevaluated)
        *_, decision, open_reason = latest
        if decision.outcome is Outcome.UNDECIDED:
            raise UndecidableError(open_reason)
        return decision
