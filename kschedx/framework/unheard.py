"""Who takes part in a decision and was not asked, and what the answer is worth without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum, StrEnum

from msgspec import Struct

from kschedx.api.types import Pod
from kschedx.api.urls import without_password
from kschedx.framework.config import Profile, SchedulerConfig
from kschedx.framework.extended_by import call_order, is_interested

MAY_REJECT = frozenset({"multiPoint", "preEnqueue", "preFilter", "filter", "reserve", "permit"})
"""Where a plugin can keep a pod from a node that all others let it have."""

MAY_PREFER = frozenset({"preScore", "score"})
"""Where it can make another of these nodes the best one."""


class Stake(IntEnum):
    """What the word of somebody decides, the weightiest last."""

    NOTHING = 0
    """Of what kschedx answers."""
    NODE = 1
    """Which of the nodes that fit it is."""
    FIT = 2
    """Whether the pod fits at all, where everybody else lets it through."""


class Kind(StrEnum):
    PLUGIN = "plugin"
    EXTENDER = "extender"
    OBJECTS = "kind"
    """Of a kind that a dump lacks."""
    SCHEDULER = "scheduler"
    """The pod is another scheduler's."""


class Unheard(Struct, frozen=True, kw_only=True):
    """Somebody who was not asked."""

    kind: Kind
    name: str
    """The plugin's name, the extender's URL, the kind's key, the pod's schedulerName."""
    where: tuple[str, ...]
    """The extension points or verbs at which it has a say, as the configuration spells them; the plugins that read
    a kind."""
    stake: Stake
    is_waived: bool = False
    """Whoever asks answers for it: the decision stands without its word."""
    objects: tuple[str, ...] = ()
    """The objects of a kind that the pod points to."""
    lacking: str = ""
    """What a dump lacks of the kind; empty where it holds none."""
    completed_by: str = ""
    """A command for a file with what a dump lacks."""

    def to_dict(self) -> dict[str, object]:
        more = {"waived": self.is_waived, "objects": list(self.objects), "completedBy": self.completed_by}
        known = {key: value for key, value in more.items() if value}
        return {self.kind.value: self.name, "where": list(self.where), "leavesOpen": LEAVES_OPEN[self.stake], **known}


LEAVES_OPEN = {Stake.NOTHING: None, Stake.NODE: "node", Stake.FIT: "fit"}
"""As the document words it."""


def unknown_plugins(profile: Profile, config: SchedulerConfig) -> Iterator[Unheard]:
    """The plugins that a profile enables and kschedx does not have."""
    for name, where in profile.unknown.items():
        stake = Stake.FIT if MAY_REJECT & set(where) else Stake.NODE if MAY_PREFER & set(where) else Stake.NOTHING
        yield Unheard(kind=Kind.PLUGIN, name=name, where=where, stake=stake, is_waived=config.without_unknown_plugins)


def unasked_extenders(config: SchedulerConfig, pod: Pod) -> Iterator[Unheard]:
    """The extenders of a configuration that would be sent a pod; one that only binds decides nothing."""
    for index in call_order(config.extenders):
        extender = config.extenders[index]
        verbs = {
            "filterVerb": extender.filter_verb,
            "prioritizeVerb": extender.prioritize_verb,
            "preemptVerb": extender.preempt_verb,
        }
        where = tuple(field for field, verb in verbs.items() if verb)
        if where and is_interested(extender, pod):
            stake = Stake.FIT if extender.filter_verb else Stake.NODE if extender.prioritize_verb else Stake.NOTHING
            yield Unheard(kind=Kind.EXTENDER, name=without_password(extender.url_prefix), where=where, stake=stake)


def open_stake(unheard: Iterable[Unheard]) -> Stake:
    """What is left open by all of them together."""
    return max((one.stake for one in unheard if not one.is_waived), default=Stake.NOTHING)
