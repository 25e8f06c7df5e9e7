"""The answer of `kschedx simulate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kschedx.inquiry.autoscalers import autoscaler_document
from kschedx.inquiry.pending_pods import SharedFixes
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.stalled_drain import DrainRemedies
from kschedx.inquiry.what_if import OtherOutcomes
from kschedx.kube.documents import Json
from kschedx.results import Shown

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import Growth

_MOST_FIXED = 8  # how many workloads have a fix in the document: those with the most pending pods


class SimulationAnswer(Shown, Struct, frozen=True, kw_only=True):
    """A simulation, and what the user asks about it besides."""

    simulation: Simulation
    growths: Sequence[Growth] = ()  # what the autoscalers added first
    other_outcomes: OtherOutcomes | None = None
    has_steps: bool = False  # whether the screen lists every decision
    remedies: DrainRemedies = DrainRemedies()

    @property
    def ties(self) -> str | None:
        """Whether random choices change the result, and which of them controllers make besides the scheduler; None if
        that was not tried."""
        if self.other_outcomes is None:
            return None
        choices = self.simulation.choices
        if choices:
            return f"{self.other_outcomes.text}; controllers choose {', '.join(choices)}"
        return self.other_outcomes.text

    def to_dict(self) -> Json:
        fixes = {"fixes": SharedFixes(self.simulation).to_list(_MOST_FIXED)}
        ties = {} if self.other_outcomes is None else {"ties": self.ties}
        grown = autoscaler_document(growth.document for growth in self.growths)
        return (
            self.simulation.to_dict() | fixes | self.remedies.document | ties | ({"autoscaler": grown} if grown else {})
        )
