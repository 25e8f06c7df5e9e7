"""What becomes of one pod in a cluster that moves."""

from __future__ import annotations

from msgspec import Struct, field

from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.interface import (
    PostFilterResult,
)
from kschedx.snapshot.rows import ClusterRow, ClusterRows, cluster_rows


class Decision(Struct, frozen=True, kw_only=True):
    """What becomes of one pod: a Cycle without its trace."""

    outcome: Outcome
    message: str = ""
    best: ClusterRows = field(default_factory=lambda: cluster_rows([]))
    """(tie,) the nodes that share the highest total."""
    nominated: ClusterRow | None = None
    """The pod's nominated node, where it fits: kube-scheduler then looks at no other."""
    post_filter: PostFilterResult | None = None

    @classmethod
    def of(cls, cycle: Cycle) -> Decision:
        return cls(
            outcome=cycle.outcome,
            message=cycle.message,
            best=cluster_rows(cycle.best),
            nominated=cycle.nominated,
            post_filter=cycle.post_filter,
        )

    @property
    def choice(self) -> ClusterRows:
        """The nodes among which kube-scheduler picks."""
        return self.best if self.nominated is None else cluster_rows([self.nominated])
