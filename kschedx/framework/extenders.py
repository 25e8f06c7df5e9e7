"""What the framework knows of HTTP extenders: who is asked, what each call said, and who answers for all of them.

Nodes and pods are named as the requests name them. `extender` is the index in the configuration. The calls
are made by a satellite, `kschedx.extenders`. Upstream: IsInterested and hasManagedResources in
pkg/scheduler/extender.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, assert_never

from msgspec import Struct, field

from kschedx.framework.status import Candidate, Status
from kschedx.kube.escaping import Url
from kschedx.kube.types import Pod
from kschedx.snapshot.nodes import NodeTable

if TYPE_CHECKING:
    from kschedx.framework.config.document import Extender


class ExtenderVerb(StrEnum):
    """What an extender is asked for; the path of its URL is configured."""

    FILTER = "filter"
    PRIORITIZE = "prioritize"
    PREEMPT = "preempt"


def path_of(extender: Extender, verb: ExtenderVerb) -> str:
    """The verb as it is configured; empty where the extender does not serve it."""
    match verb:
        case ExtenderVerb.FILTER:
            return extender.filter_verb
        case ExtenderVerb.PRIORITIZE:
            return extender.prioritize_verb
        case ExtenderVerb.PREEMPT:
            return extender.preempt_verb
        case _:
            assert_never(verb)


class ExtenderRequest(Struct, frozen=True, kw_only=True):
    """One request."""

    extender: Extender
    index: int
    """Of the extender in the configuration."""
    verb: ExtenderVerb
    url: Url
    pod: str
    """`namespace/name`."""
    about: tuple[str, ...]
    """What makes it another question than others about this pod: the nodes, and in preemption the victims."""
    body: Callable[[], bytes]
    """The request as it is sent, built when it is sent."""


class ExtenderAnswer(Struct, frozen=True, kw_only=True):
    """An HTTP answer."""

    status: int
    body: bytes = b""
    ended: str = "EOF"
    """The error with which the body ended, in Go's words; anything else than EOF cut it off."""


class ExtenderFailure(Struct, frozen=True, kw_only=True):
    """There was none."""

    text: str
    """In the words of Go's HTTP client."""


Reply = ExtenderAnswer | ExtenderFailure


class Ask(Protocol):
    def __call__(self, questions: tuple[ExtenderRequest, ...], /) -> tuple[Reply, ...]:
        """A reply to each question, all asked at the same time. Raises `UndecidableError` where there is none."""
        ...


class FilterCall(Struct, frozen=True, kw_only=True):
    extender: int
    asked: tuple[str, ...]
    left: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    """Node to message, as answered."""
    failed_and_unresolvable: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False
    """The nodes came back whole: from then on they have no pods and no images."""
    error: str = ""
    ignored: bool = False
    """The extender may fail: `left` is what it was asked about."""


class ScoreCall(Struct, frozen=True, kw_only=True):
    extender: int
    weight: int
    raw: tuple[tuple[str, int], ...] = ()
    """Host and score in the order of the answer."""
    added: Mapping[str, int] = field(default_factory=dict)
    """What each node that is left gets: score x weight x 10."""
    error: str = ""


class Victims(Struct, frozen=True, kw_only=True):
    """The pods that would have to go from one node."""

    pods: tuple[str, ...]
    """`namespace/name`, the most important first."""
    pdb_violations: int


class PreemptCall(Struct, frozen=True, kw_only=True):
    extender: int
    asked: Mapping[str, Victims]
    left: Mapping[str, Victims] | None = None
    """None where it failed."""
    error: str = ""
    ignored: bool = False


class Trace(Struct, frozen=True, kw_only=True):
    """Everything that extenders had to do with one cycle."""

    order: tuple[int, ...] = ()
    """Those that are called, in the order of the calls: the ones that may fail come last."""
    urls: tuple[str, ...] = ()
    """By index, as they may be shown."""
    interested: tuple[bool, ...] = ()
    """By index: whether the pod is sent to it at all."""
    called: bool = False
    """They were asked, or their recorded answers read."""
    passed_plugins: tuple[str, ...] = ()
    """The nodes that the plugins left."""
    filter: tuple[FilterCall, ...] = ()
    left: tuple[str, ...] | None = None
    """The nodes that the extenders left too; None where they ended the cycle, or none was called."""
    statuses: Mapping[str, Status] = field(default_factory=dict)
    """What the nodes that were refused have as status in the end."""
    silent: tuple[str, ...] = ()
    """Nodes that passed the plugins, are not left, and have no status."""
    scores: tuple[ScoreCall, ...] = ()
    preempt: tuple[PreemptCall, ...] = ()
    candidates: Mapping[str, Victims] = field(default_factory=dict)
    """The candidates for preemption after all of them."""
    candidates_error: str = ""


class Preempted(Struct, frozen=True, kw_only=True):
    """What extenders made of the candidates for preemption."""

    calls: tuple[PreemptCall, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    error: str = ""


class Extenders(Protocol):
    """The extenders of one configuration (`satellites.EXTENDERS`)."""

    @property
    def are_asked(self) -> bool: ...

    def have_a_say_in_preemption(self, pod: Pod) -> bool: ...

    def preempt(self, pod: Pod, candidates: tuple[Candidate, ...], nodes: NodeTable) -> Preempted: ...


def is_interested(extender: Extender, pod: Pod) -> bool:
    """It manages everything, or a resource that a container names; how much of it does not matter."""
    managed = {resource.name for resource in extender.managed_resources}
    return not managed or any(
        not managed.isdisjoint(amounts)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for amounts in (container.resources.requests, container.resources.limits)
    )


def call_order(extenders: tuple[Extender, ...]) -> tuple[int, ...]:
    """Indexes in the configuration: those that may fail (`ignorable`) come last."""
    return tuple(sorted(range(len(extenders)), key=lambda index: extenders[index].ignorable))
