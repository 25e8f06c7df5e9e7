"""What a loop of the cluster-autoscaler comes to."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from kschedx.autoscaler.expanders import Option
from kschedx.autoscaler.groups import Group
from kschedx.autoscaler.pods import Outcome
from kschedx.autoscaler.sizes import Resize
from kschedx.autoscaler.templates import Template
from kschedx.autoscaler.world import Verdict


class Result(StrEnum):
    """How the loop ends."""

    SUCCESSFUL = "ScaleUpSuccessful"
    NO_OPTIONS = "ScaleUpNoOptionsAvailable"
    NOT_NEEDED = "ScaleUpNotNeeded"
    AT_MAX_NODES_TOTAL = "ScaleUpLimitedByMaxNodesTotal"
    IN_COOLDOWN = "ScaleUpInCooldown"
    ERROR = "ScaleUpError"
    NOT_TRIED = "ScaleUpNotTried"


class GroupAnswer(Struct, frozen=True, kw_only=True):
    """A group, the template of its nodes, and why it is left out, if it is."""

    group: Group
    template: Template | None
    skipped: tuple[str, ...] = ()


class PodAnswer(Struct, frozen=True, kw_only=True):
    """What the loop makes of a pending pod."""

    row: int
    outcome: Outcome
    node: str = ""
    """Where a schedulable pod fits."""
    is_on_upcoming: bool = False
    verdicts: Mapping[str, Verdict] = {}
    """Of a considered pod, each group with a template to the check of the pod on it."""
    remains: bool = False
    """The autoscaler counts it among those that it cannot help."""
    parts: tuple[str, ...] = ()
    """What follows `pod didn't trigger scale-up: `."""
    is_told: bool = False
    """The event NotTriggerScaleUp is really sent."""


class Choice(Struct, frozen=True, kw_only=True):
    """What follows when an option is taken."""

    option: Option
    result: Result
    resizes: tuple[Resize, ...] = ()
    triggered: tuple[int, ...] = ()
    """Rows of the pods of the option, which get the event TriggeredScaleUp."""
    awaiting: tuple[int, ...] = ()
    """Pods that fit other groups only: the next loop is theirs."""
    event: str = ""
    error: str = ""


class Answer(Struct, frozen=True, kw_only=True):
    """The whole loop."""

    result: Result
    groups: tuple[GroupAnswer, ...]
    pods: tuple[PodAnswer, ...]
    """Every pending pod in list order."""
    error: str = ""
    options: tuple[Option, ...] = ()
    choices: tuple[Choice, ...] = ()
    """One for each option that is left after the expanders; of several one is taken at random."""
    events: tuple[str, ...] = ()
    """About the autoscaler itself."""
    unknown_expanders: tuple[str, ...] = ()
