"""HTTP extenders as the framework sees them: the order of the calls, what each call returned, and their interface.

Nodes and pods are named as in the requests. `extender` is the index in the configuration. A satellite,
`kschedx.extenders`, makes the calls. Upstream: IsInterested and hasManagedResources in pkg/scheduler/extender.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from kschedx.framework.status import Candidate, Status
from kschedx.kube.documents import Document
from kschedx.kube.escaping import Url
from kschedx.kube.types import Pod
from kschedx.snapshot.nodes import NodeTable

if TYPE_CHECKING:
    from kschedx.framework.config.decoding import Extender


class ExtenderVerb(StrEnum):
    """The verbs of an extender; the path of each URL is configured."""

    FILTER = "filter"
    PRIORITIZE = "prioritize"
    PREEMPT = "preempt"


def path_of(extender: Extender, verb: ExtenderVerb) -> str:
    """Return the verb as it is configured; empty if the extender does not support it."""
    verbs = {
        ExtenderVerb.FILTER: extender.filter_verb,
        ExtenderVerb.PRIORITIZE: extender.prioritize_verb,
        ExtenderVerb.PREEMPT: extender.preempt_verb,
    }
    return verbs[verb]


class ExtenderRequest(Struct, frozen=True, kw_only=True):
    extender: Extender
    index: int  # in the configuration
    verb: ExtenderVerb
    url: Url
    pod: str  # `namespace/name`
    about: tuple[str, ...]
    """What distinguishes it from other requests about this pod: the nodes, and for preemption the victims."""
    body: Callable[[], bytes]  # built when the request is sent


class ExtenderAnswer(Struct, frozen=True, kw_only=True):
    """An HTTP response."""

    status: int
    body: bytes = b""
    ended: str = "EOF"  # the error with which the body ended, in Go's words; anything other than EOF cut it off


class ExtenderFailure(Struct, frozen=True, kw_only=True):
    """A request without a response."""

    text: str  # in the words of Go's HTTP client


Reply = ExtenderAnswer | ExtenderFailure


class Ask(Protocol):
    def __call__(self, questions: tuple[ExtenderRequest, ...], /) -> tuple[Reply, ...]:
        """Send all requests at the same time and return a reply to each. Raises `UndecidableError` if there is none."""
        ...


class FilterCall(Document, frozen=True, kw_only=True, omit_defaults=True):
    extender: int
    asked: tuple[str, ...] = field(name="in")
    left: tuple[str, ...] = field(name="out")
    failed: Mapping[str, str]  # node to message, as in the response
    failed_and_unresolvable: Mapping[str, str]
    error: str = ""
    ignored: bool = False
    """Whether an error was ignored because the extender is `ignorable`; then `left` is the same as `asked`."""


class HostScore(Document, frozen=True):
    host: str
    score: int


class ScoreCall(Document, frozen=True, kw_only=True, omit_defaults=True):
    extender: int
    raw: tuple[HostScore, ...]  # in the order of the response
    weight: int
    added: Mapping[str, int]  # node to the score that it adds: score x weight x 10
    error: str = ""


class Victims(Document, frozen=True, kw_only=True):
    """The pods that would be evicted from one node."""

    pods: tuple[str, ...]  # `namespace/name`, the most important first
    pdb_violations: int = field(name="numPDBViolations")


class PreemptCall(Document, frozen=True, kw_only=True, omit_defaults=True):
    extender: int
    asked: Mapping[str, Victims] = field(name="in")
    left: Mapping[str, Victims] | None = field(name="out")  # None if the call failed
    error: str = ""
    ignored: bool = False


class Trace(Struct, frozen=True, kw_only=True):
    """All that extenders contributed to one cycle."""

    order: tuple[int, ...] = ()  # the configured extenders in the order of the calls: the `ignorable` ones come last
    urls: tuple[str, ...] = ()  # by index, as they may be printed
    interested: tuple[bool, ...] = ()  # by index: whether the pod is sent to the extender at all
    called: bool = False  # whether they were called, or their recorded answers were read
    passed_plugins: tuple[str, ...] = ()
    filter: tuple[FilterCall, ...] = ()
    whole: int | None = None  # the last extender whose response has whole nodes: these have no pods and no images
    left: tuple[str, ...] | None = None
    """The nodes that also passed the extenders; None if an extender ended the cycle, or none was called."""
    statuses: Mapping[str, Status] = field(default_factory=dict)  # the final status of each refused node
    silent: tuple[str, ...] = ()  # nodes that passed the plugins, did not pass the extenders, and have no status
    scores: tuple[ScoreCall, ...] = ()
    preempt: tuple[PreemptCall, ...] = ()
    candidates: Mapping[str, Victims] = field(default_factory=dict)
    """The candidates for preemption that remain after all extenders."""
    candidates_error: str = ""


class PreemptResult(Struct, frozen=True, kw_only=True):
    """The extenders' result for the candidates for preemption."""

    calls: tuple[PreemptCall, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    error: str = ""


class Extenders(Protocol):
    """The extenders of one configuration (`satellites.EXTENDERS`)."""

    @property
    def are_asked(self) -> bool: ...

    def take_part_in_preemption(self, pod: Pod) -> bool: ...

    def preempt(self, pod: Pod, candidates: tuple[Candidate, ...], nodes: NodeTable) -> PreemptResult: ...


def call_order(extenders: tuple[Extender, ...]) -> tuple[int, ...]:
    """Return indexes in the configuration: extenders that may fail (`ignorable`) come last."""
    return tuple(sorted(range(len(extenders)), key=lambda index: extenders[index].ignorable))
