"""Parses a FailedScheduling message: numbers of nodes, the plugin of each reason, and the finding that explains it.

Plugins declare their texts (`Plugin.texts`); `events.txt` lists those of components and of versions that are not
emulated. Unknown reasons are kept. Upstream: FitError in pkg/scheduler/framework/types.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kschedx.framework.interface import Plugin
from kschedx.framework.registry import IN_TREE, packaged_plugins, plugin_class
from kschedx.framework.schedule import NO_NODES
from kschedx.kube.types import Pod
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.events import CUT, RecordedEvent
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names


class Stage(StrEnum):
    """The part of the message with a reason."""

    FILTER = "filter"  # about `count` nodes, or from PreFilter about the whole pod
    PREEMPTION = "preemption"  # a reason of preemption, about `count` nodes or the pod


class EventPart(Struct, frozen=True, kw_only=True):
    """One reason in a message."""

    stage: Stage
    count: int | None  # nodes; None for a reason about the whole pod
    text: str
    plugin: str  # empty for an unknown reason
    reason: str  # the id for `kschedx reason`; empty if there is none
    subject: str = ""  # what the text names: a resource, a taint, or a claim

    @property
    def is_known(self) -> bool:
        return bool(self.plugin)


class _FailedExtender(Struct, frozen=True, kw_only=True):
    """An extender whose request failed, so that kube-scheduler gave up the pod's attempt."""

    url: str
    why: str  # `does not answer: connection refused`

    @property
    def advice(self) -> str:
        host = re.sub(r"^\w+://|[:/].*$", "", re.sub(r"^\w+://", "", self.url))
        name, _, rest = host.partition(".")
        namespace, _, domain = rest.partition(".")
        is_service = domain.split(".")[0] == "svc"
        where = f"Service {namespace}/{name} of the scheduler's extender" if is_service else "the scheduler's extender"
        return f"repair {where}, or set ignorable: true for it in the scheduler's configuration"


_FAILED_EXTENDER = (
    lazy_pattern(r'Post "(?P<url>[^"]+)": (?P<why>.+)', re.DOTALL),
    lazy_pattern(r"failed \S+ with extender at URL (?P<url>[^,]+), code (?P<why>\d+)"),
)
"""pkg/scheduler/extender.go, and net/http."""


def extender_failure(message: str) -> _FailedExtender | None:
    """Return the extender whose request failed according to a FailedScheduling message, or None."""
    match = next((failure for pattern in _FAILED_EXTENDER if (failure := pattern.search(message))), None)
    if match is None:
        return None
    code = match["why"].isdecimal()
    why = f"answers with HTTP status {match['why']}" if code else f"does not answer: {match['why'].rpartition(': ')[2]}"
    return _FailedExtender(url=match["url"], why=why)


class Event(Struct, frozen=True, kw_only=True):
    nodes: int | None  # the number of nodes in the cluster; None if the text lacks it
    parts: tuple[EventPart, ...]

    @property
    def is_known(self) -> bool:
        return self.nodes is not None or any(part.is_known for part in self.parts)

    @property
    def texts(self) -> tuple[tuple[int | None, str], ...]:
        return tuple((part.count, part.text) for part in self.parts)

    @property
    def gaps(self) -> int:
        """The number of unknown parts, and one more for each stage that does not count every node."""
        counts = {stage: sum(part.count or 0 for part in self.parts if part.stage is stage) for stage in Stage}
        is_short = self.nodes is not None and counts[Stage.FILTER] < self.nodes
        is_cut = self.nodes is not None and 0 < counts[Stage.PREEMPTION] < self.nodes
        return sum(not part.is_known for part in self.parts) + is_short + is_cut

    @property
    def node_count(self) -> int:
        """The sum of the filter reasons' counts."""
        return sum(part.count or 0 for part in self.parts if part.stage is Stage.FILTER)


_LONGEST = 32 << 10  # the maximum characters of a message; API servers store a thousand
_LONGEST_REASON = 4 << 10  # the maximum characters of a reason: the time of some patterns is quadratic
_LONGEST_OF_COMPONENTS = 2 << 10
"""The maximum characters of a message that is not split into counted reasons; events hold a thousand."""
_LONGEST_OUTPUT = 1 << 20  # the maximum characters of a command's output
_MOST_WRAPPED = 12  # the number of lines of a wrapped message
_ROW = lazy_pattern(r"\s*(?:$|(?:\S+ +)?(?:Normal|Warning)\s)")
"""An empty line, or the next row of `kubectl get events` or `kubectl describe`."""
_FOLD = lazy_pattern(r"(?<=preemption:) ?\r?\n {1,99}(?=\d{1,9}/)|(?<=\.) ?\r?\n {1,99}(?=preemption:)")
"""A line break of YAML where both halves of a message look whole."""
_DOUBLE_QUOTED = lazy_pattern(r'"((?:[^"\\]|\\.)*)"')
_SINGLE_QUOTED = lazy_pattern(r"'((?:[^']|'')*)'")
_HEAD = lazy_pattern(r"(\d{1,9})/(\d{1,9}) nodes (?:are )?(?:un)?available:?\s*")
_NO_NUMBER, _PREEMPTION = "nodes are available:", "preemption: "
"""The parts of a message that is shortened, or whose number of nodes is made unreadable."""
_AGE = r"\**(?:(?:\d{1,9}[ydhms]){1,3}|<\w+>)\**(?: \(x\d{1,9} over (?:\d{1,9}[ydhms]){1,3}\))?"
_SOURCE = r"(?:\{[^}]*\}|[\w./-]+(?:, \S+)?)"
_COLUMNS = lazy_pattern(
    rf"(?:(?:{_AGE} ){{2}}\d{{1,9}} {_SOURCE} (?:\S+ )?|(?:{_AGE} )?)(?:Normal|Warning) (?P<reason>[A-Z]\w+) "
    rf"(?:{_AGE} {_SOURCE} |[a-z]+/\S+ )?(?=\S)"
)
"""The columns before the message of `kubectl describe` and `kubectl get events`, now and up to Kubernetes 1.13."""
_REASON = lazy_pattern(r"(?P<reason>[A-Z][A-Za-z]{2,60}): (?=\S)")
_STATUS_ROWS = (
    lazy_pattern(r"(?:\S+ )?\S+ \d+/\d+ (?P<reason>[A-Z]\S+) \d+ .*"),
    lazy_pattern(r"\S+ (?P<reason>[A-Z]\S+) \S+ \w+ v\d\S*(?: .*)?"),
    lazy_pattern(r"(?:Available|Progressing|ReplicaFailure) (?:True|False|Unknown) (?P<reason>[A-Z]\w+)"),
)
"""A row of `kubectl get pods` or `kubectl get nodes`, whose status is a reason, or a condition of a Deployment."""
_VAGUE_STATUS = lazy_pattern(
    r"\s*(?:status|reason|phase):\s+(?:Pending|Unschedulable|ContainerCreating|PodInitializing|Terminating)\b|"
    r"(?:\S+\s+){1,2}\d+/\d+\s+(?:Pending|ContainerCreating|PodInitializing)\b",
    re.IGNORECASE,
)
"""A line of `kubectl describe`, YAML, or `kubectl get pods` that says less than the events in the same text."""
_LOG_HEAD = lazy_pattern(
    r"^.*?(?:(?<![^\s:])|(?<=[AP]M))[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+:\d+\] "
    r"(?:Event\(\w+\.ObjectReference\{[^}]*\}\): type: '\w+' reason: '\w+' )?"
)
"""Before each line of a component's log, and before an event in it."""
_BY_PLUGIN = lazy_pattern(
    r"^(?:error while )?running (?:\"?\w+\"? (?:pre)?filter plugin(?: for pod \"?[^\s\"]+\"?)?|"
    r"(?:pre)?(?:filter|score) plugins?(?:: plugin)? \"\w+\"(?: failed with)?): ",
    re.IGNORECASE,
)
"""Before the error of a plugin; Kubernetes 1.18 to 1.20, before a reason about the whole pod."""
_NOT_IN_GROUP = lazy_pattern(
    r"(?P<text>Pod \S+ can'?t be scheduled on \S+), predicate checking error: "
    r"(?:.*; predicateName=\S*; reasons: (?P<reasons>.*); debugInfo=.*|(?P<reason>.*))",
    re.DOTALL,
)
"""cluster-autoscaler's log, for each node group."""
_ALL_NODES = lazy_pattern(r"(?:^|.*\s)(?:all nodes are unavailable|no nodes with enough resources were found): ")
_OF_PREDICATES = lazy_pattern(r"\bplugin \S+ predicates failed ")
"""Volcano's, before the reasons of all nodes, as KAI's, and before the one of a plugin."""
_GANG = lazy_pattern(r"\S+ tasks in gang unschedulable: .*?; Origin reason is \S+: ")
"""Volcano's, before the reasons of one task."""
_OLDEST = lazy_pattern(
    r"(?:failed to fit in any node\s+fit failure summary on nodes ?|"
    r"No nodes are available that match all of the (?:following )?predicates:?): ?(.*)",
    re.DOTALL,
)
"""Kubernetes 1.5, and 1.6 to 1.8."""
_OLDEST_COUNT = lazy_pattern(r" \((\d{1,9})\)(?:, |\.?$)")
_NO_SCALE_UP = lazy_pattern(r"(pod didn'?t trigger scale-up(?: \(it wouldn't fit if a new node is added\))?):?\s*")
_NEXT_PART = lazy_pattern(r",\s+(?:and\s+)?(?=\d{1,9} \S|Insufficient )")
_COUNTED = lazy_pattern(r"(\d{1,9}) (.+)", re.DOTALL)
_UNTRIED = lazy_pattern(r"\. (not found)\.?$")
_POST_FILTER = lazy_pattern(
    r"(?:^|\s|(?<=\.))((?:no new claims to deallocate|still not schedulable|(?:deallocation|deletion) of ResourceClaim "
    r"completed|ResourceClaim unreserved for PodGroup)(?:, preemption:|\.|$)|preemption:)"
)


def events_in(text: str) -> list[Event]:
    """Return the distinct events in a text of several lines, such as the output of `kubectl describe pod`; any other
    text is one event. Lines may be wrapped, and messages quoted as in JSON, YAML, and logs. Empty if nothing is
    known."""
    text = _FOLD.sub(" ", text[:_LONGEST_OUTPUT])
    lines = text.splitlines() if _OLDEST.search(text) is None else []
    events = [line for line in lines if not _VAGUE_STATUS.match(line)]
    known = [*_events_in_lines(events)] or [*_events_in_lines(lines)] if len(lines) > 1 else []
    if not known and (event := _read(text)).is_known:
        known = [event]
    return list({event.texts: event for event in known}.values())


def _events_in_lines(lines: Sequence[str]) -> Iterator[Event]:
    """Yield the known events of a text; of a wrapped one, those lines are read together that leave the least open."""
    at = 0
    while at < len(lines):
        event, end = _read(lines[at]), at + 1
        if event.is_known and event.gaps:
            most = next((number for number in range(end, len(lines)) if _ROW.match(lines[number])), len(lines))
            for last in range(end + 1, min(most, at + _MOST_WRAPPED) + 1):
                # a terminal breaks words, kubectl and chats do not
                for joined in (" ".join(map(str.strip, lines[at:last])), "".join(lines[at:last])):
                    if (whole := _read(joined)).gaps < event.gaps:
                        event, end = whole, last
        if event.is_known:
            yield event
        at = end


def _read(text: str) -> Event:
    """Return the event of a text, or of a quoted string in it if that leaves fewer parts unknown."""
    event = parse(text)
    if not event.gaps or len(text) > _LONGEST:
        return event
    known = (inner for inner in map(_read, _strings(text)) if inner.is_known)
    return min((event, *known), key=lambda item: (not item.is_known, item.gaps))


def _strings(text: str) -> Iterator[str]:
    """Yield contents of strings in double quotes, of those in an escaped document, and of YAML's in single quotes."""
    for shown in (text, text.replace('\\"', '"')):
        yield from (re.sub(r"\\(.)", r"\1", match[1]) for match in _DOUBLE_QUOTED.finditer(shown))
    yield from (match[1].replace("''", "'") for match in _SINGLE_QUOTED.finditer(text))


def parse(text: str) -> Event:
    """Parse a message, a line of `kubectl describe` with a message, or a single reason."""
    text = " ".join(text[:_LONGEST].replace("’", "'").split()).strip("│| ").removesuffix("; waiting")
    text = text.removeprefix("Cannot schedule pods: ")  # of GKE's console
    rows = (row for pattern in _STATUS_ROWS if (row := pattern.fullmatch(text)) is not None)
    if (row := next(rows, None)) is not None and (status := _part(Stage.FILTER, None, row["reason"])).is_known:
        return Event(nodes=None, parts=(status,))
    before = _COLUMNS.match(text)
    message = text if before is None else text[before.end() :]
    event = _parse_message(message)
    if not event.is_known and before is None and (before := _REASON.match(text)) is not None:
        message = text[before.end() :]
        event = _parse_message(message)
    if event.is_known or before is None:
        return event
    named = _part(Stage.FILTER, None, before["reason"])
    return Event(nodes=None, parts=(replace(named, text=message),)) if named.is_known else event


def _parse_message(text: str) -> Event:
    """Parse a message without the columns before it."""
    text = _BY_PLUGIN.sub("", _LOG_HEAD.sub("", text))
    in_group = _NOT_IN_GROUP.fullmatch(text)
    if in_group:
        reasons = _parts(Stage.FILTER, in_group["reasons"] or in_group["reason"])
        return Event(nodes=None, parts=(_part(Stage.FILTER, None, in_group["text"]), *reasons))
    everywhere = _ALL_NODES.match(text)
    if everywhere:
        body = _OF_PREDICATES.sub("", text[everywhere.end() :])
        return Event(nodes=None, parts=tuple(_parts(Stage.FILTER, body)))
    oldest = _OLDEST.search(text)
    if oldest:
        # reason, count, reason, count, and the rest
        pieces = _OLDEST_COUNT.split(oldest[1])
        counted = zip(pieces[0::2], pieces[1::2], strict=False)
        return Event(nodes=None, parts=tuple(_part(Stage.FILTER, int(count), reason) for reason, count in counted))
    no_scale_up = _NO_SCALE_UP.search(text)
    if no_scale_up:
        groups = _parts(Stage.FILTER, text[no_scale_up.end() :])
        return Event(nodes=None, parts=(_part(Stage.FILTER, None, no_scale_up[1]), *groups))
    head = _HEAD.search(text)
    if head is None:
        if len(text) <= _LONGEST_OF_COMPONENTS and _COUNTED.fullmatch(text) is None:
            whole = _part(Stage.FILTER, None, text)
            if whole.is_known:
                return Event(nodes=None, parts=(whole,))
        return Event(nodes=None, parts=tuple(_parts(Stage.FILTER, text)))
    if (gang := _GANG.match(text)) is not None and text[gang.end() :]:
        inner = parse(text[gang.end() :])
        return Event(nodes=inner.nodes, parts=(_part(Stage.FILTER, None, gang[0]), *inner.parts))
    if text[: head.start()].endswith(_PREEMPTION):
        stem = text[: head.start()].removesuffix(_PREEMPTION).rpartition(_NO_NUMBER)[2]
        if filtered := tuple(_parts(Stage.FILTER, stem)):
            return Event(nodes=int(head[2]), parts=(*filtered, *_parts(Stage.PREEMPTION, text[head.end() :])))
    body = text[head.end() :]
    untried = _UNTRIED.search(body)
    if untried:
        before = _parts(Stage.FILTER, body[: untried.start()])
        return Event(nodes=int(head[2]), parts=(*before, _part(Stage.PREEMPTION, None, untried[1])))
    after = _POST_FILTER.search(body)
    if after is None:
        return Event(nodes=int(head[2]), parts=tuple(_parts(Stage.FILTER, body)))
    before = _parts(Stage.FILTER, body[: after.start()])
    return Event(nodes=int(head[2]), parts=(*before, *_post_filter(body[after.start() :].strip())))


def _post_filter(text: str) -> Iterator[EventPart]:
    claims, intro, preemption = text.partition("preemption:")
    yield from _parts(Stage.PREEMPTION, claims.strip().rstrip(","))
    if intro:
        head = _HEAD.search(preemption)
        yield from _parts(Stage.PREEMPTION, preemption[head.end() :] if head else preemption)


def _parts(stage: Stage, text: str) -> Iterator[EventPart]:
    """Yield the reasons of one part; PreFilter's sentence before the counted ones is a separate part."""
    text = text.strip().strip(".").strip()
    if not text:
        return
    for sentence in re.split(r"(?<=\S)\. (?=\d{1,9} )", text):
        for piece in _NEXT_PART.split(sentence):
            counted = _COUNTED.fullmatch(piece)
            if counted:
                yield _part(stage, int(counted[1]), counted[2])
            else:
                yield _part(stage, None, piece)


def _part(stage: Stage, count: int | None, text: str) -> EventPart:
    text = text.strip().removesuffix(".'").rstrip(".")  # of a quoted message
    for pattern, plugin, reason in _patterns() if len(text) <= _LONGEST_REASON else ():
        match = pattern.fullmatch(text)
        if match:
            groups = match.groupdict()
            subject = groups.get("subject") or ""
            named = groups.get("plugins")
            return EventPart(
                stage=stage,
                count=count,
                text=text,
                plugin=", ".join(named.split()) if named else plugin,
                reason=reason,
                subject=subject,
            )
    return EventPart(stage=stage, count=count, text=text, plugin="", reason="")


_Texts = list[tuple[re.Pattern[str], str, str]]
"""Patterns with their plugin or component, and the id of a finding or reason."""


_LISTED = Path(__file__).with_name("events.txt")


def _listed_texts() -> Mapping[str, _Texts]:
    """Return the texts of `events.txt` by section: those of components about the whole pod or its claim, or of
    cluster-autoscaler about its node groups; those of versions that are not emulated, and the names of predicates; and
    the common part of errors that wrap others."""
    sections: dict[str, _Texts] = {}
    section, author, reason = "", "", ""
    for line in _LISTED.read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            section = line[3:]
        elif line.startswith("["):
            author, _, reason = line[1:-1].partition(": ")
        elif line and not line.startswith("#"):
            text = f"(?:.* )?{line[2:]}" if line.startswith("* ") else line
            sections.setdefault(section, []).append((_compiled(text), author, reason))
    return sections


@cache
def explained_reasons() -> frozenset[str]:
    """Return the ids of the findings that explain known texts."""
    return frozenset(reason for _, _, reason in _patterns() if reason)


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str, str], ...]:
    """The first match counts: texts without placeholders come before those with some."""
    texts = [(text, it.name, reason) for it in _plugins() for reason, those in it.texts.items() for text in those]
    listed = _listed_texts()
    return (
        *((_pattern(text), plugin, reason) for text, plugin, reason in texts if "{" not in text),
        (_pattern(NO_NODES), "kube-scheduler", "no-nodes"),
        *listed["components"],
        *listed["earlier versions"],
        *((_pattern(text), plugin, reason) for text, plugin, reason in texts if "{" in text),
        *listed["errors that wrap others"],
    )


def _plugins() -> Iterator[type[Plugin]]:
    yield from (plugin_class(name) for name in IN_TREE)
    yield from (plugin for _, plugin in packaged_plugins() if isinstance(plugin, type))


def _pattern(text: str) -> re.Pattern[str]:
    """Convert a plugin's declared text; the full stop at its end is optional, because events omit it."""
    from string import Formatter

    parts = []
    for literal, name, _, _ in Formatter().parse(text.rstrip(".")):
        parts.append(re.escape(literal))
        if name is not None:
            parts.append(r"(?P<subject>.+?)" if name == "subject" else r".*?")
    return _compiled("".join(parts))


_QUOTE = lazy_pattern(r"""\\[^'"]|\[(?:\\.|[^\]\\])+\]|(\\?['"])(?![?*+{])""")
"""A quotation mark of a pattern in the group; nothing there for one in a set of characters."""


def _compiled(text: str) -> re.Pattern[str]:
    """Compile a pattern that also matches the text without its quotation marks, which a shell removes."""
    return re.compile(_QUOTE.sub(lambda match: match[0] + "?" * bool(match[1]), text), re.IGNORECASE)


# The message of the cluster's own kube-scheduler, compared with kschedx's.


_REFUSALS = ("Unschedulable", "SchedulerError", "NotReadyForScheduling")
"""Reasons of the condition PodScheduled. The last is documented but was not observed: a PreEnqueue plugin holds the
pod back (KEP-5501)."""


def recorded_event(snapshot: Snapshot, pod: Pod) -> RecordedEvent | None:
    """Return the last refusal: the pod's PodScheduled condition, else its newest event. The condition is as old as the
    pod object, is never truncated, and exists in dumps without events. The event has a time and a count."""
    event = snapshot.failed_scheduling.get(pod.key)
    if event is not None and event.uid and pod.metadata.uid and event.uid != pod.metadata.uid:
        event = None
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason in _REFUSALS:
            if event is not None and _is_same(event, condition.message):
                return RecordedEvent(message=condition.message, count=event.count, last_seen=event.last_seen)
            return RecordedEvent(message=condition.message) if condition.message else event
    return event


_ABSENT = lazy_pattern(r"not found|does not exist|unbound|not created|non-existent|being deleted")
"""Words of reasons about an object that does not exist; older versions count nodes for them too."""


def rejects_nodes(message: str) -> bool:
    """Return whether every reason is about nodes: then PreFilter found all objects that the pod names."""
    parts = [part for part in parse(message).parts if part.stage is Stage.FILTER]
    return bool(parts) and all(part.count and not _ABSENT.search(part.text) for part in parts)


_STATES = {
    "PersistentVolumeClaim": lazy_pattern(
        r'unbound immediate|persistentvolumeclaim "\S+" (?:is being deleted|bound to)|binding volumes'
    ),
    "ResourceClaim": lazy_pattern(r"resourceclaim \S+ is being deleted"),
}


def shows_state(message: str, kind: str) -> bool:
    """Return whether a reason tells the state of an object of the kind, which exists then."""
    return kind in _STATES and bool(_STATES[kind].search(message))


def _is_same(recorded: RecordedEvent, message: str) -> bool:
    """Return whether the texts are equal as far as the event has it."""
    if recorded.is_cut:
        return message.startswith(recorded.message.removesuffix(CUT))
    return recorded.message == message


_ELSEWHERE = "recorded at another time"
"""The usual reason for a difference: the pod stays pending while the cluster changes."""
_NO_CLAIMS = "no new claims to deallocate"
_MOST_TEXTS = 3
_MOST_LETTERS = 100  # the maximum number of characters of one text: other schedulers and extenders write arbitrary ones
AFTER_THE_CHOICE = lazy_pattern(r'^(running ("\S+" )?(reserve|permit|prebind|bind) plugin|binding )', re.IGNORECASE)
"""The start of an event that does not reject nodes, because a node was chosen (pkg/scheduler/schedule_one.go)."""


def contrasts(recorded: RecordedEvent, ours: str, *, nominated: bool = False) -> tuple[str, ...]:
    """Return the differences between the two messages and their likely causes; none if they are equal. The last message
    about a `nominated` pod may lack the part about preemption, which is then not compared."""
    if _NO_CLAIMS not in recorded.message:  # without DynamicResources
        ours = ours.replace(f"{_NO_CLAIMS}, ", "").replace(f" {_NO_CLAIMS}.", "")
    if _is_same(recorded, ours):
        return ()
    if not ours:
        return ("kschedx finds a node: recorded at another time, or with another configuration",)
    if AFTER_THE_CHOICE.match(recorded.message):
        return (f"kube-scheduler had selected a node and failed there: {recorded.message}",)
    event, own = parse(recorded.message.removesuffix(CUT)), parse(ours)
    parts = event.parts[:-1] if recorded.is_cut else event.parts  # the last one may be truncated
    says_nothing = nominated and not any(part.stage is Stage.PREEMPTION for part in event.parts)
    own_parts = [part for part in own.parts if not (says_nothing and part.stage is Stage.PREEMPTION)]
    different = [
        *_count_differences(event, own),
        *_unmatched_reasons(parts, own_parts, is_cut=recorded.is_cut, has_preemption=not says_nothing),
    ]
    return tuple(different) or (() if says_nothing else ("its text is that of another Kubernetes version",))


class _Pair(Struct, frozen=True, kw_only=True):
    """A reason that both messages have, possibly with different texts."""

    recorded: EventPart
    ours: EventPart


def _count_differences(event: Event, own: Event) -> Iterator[str]:
    if event.nodes is not None and own.nodes is not None and event.nodes != own.nodes:
        counts = f"it counts {event.nodes:,} nodes, the snapshot has {own.nodes:,}"
        yield f"{counts}: {_ELSEWHERE}, or an incomplete snapshot"


def _unmatched_reasons(
    recorded: Sequence[EventPart], ours: Sequence[EventPart], *, is_cut: bool, has_preemption: bool
) -> Iterator[str]:
    """Yield unmatched reasons that reject nodes, then those of preemption if the event has any."""
    pairs = [
        _Pair(recorded=part, ours=other)
        for part in recorded
        if (other := next((our for our in ours if _is_same_reason(part, our)), None)) is not None
    ]
    paired = [pair.recorded for pair in pairs]
    gone = [part for part in recorded if part not in paired]
    new = [part for part in ours if all(part != pair.ours for pair in pairs)] if not is_cut else []
    filters = list(_changes(Stage.FILTER, pairs, gone, new))
    yield from filters
    if not filters and has_preemption:
        yield from _preemption(recorded, pairs, gone, new, is_cut=is_cut)


def _changes(
    stage: Stage, pairs: Sequence[_Pair], gone: Sequence[EventPart], new: Sequence[EventPart]
) -> Iterator[str]:
    moved: list[str] = []
    for ours in dict.fromkeys(pair.ours for pair in pairs if pair.ours.stage is stage):
        same = [pair.recorded for pair in pairs if pair.ours == ours]
        # one of our texts may match several of theirs: older versions name each taint
        if all(part.count is not None for part in same) and ours.count is not None:
            count = sum(part.count or 0 for part in same)
            if count != ours.count:
                moved.append(f"{count:,} × {_quote(ours.text)} there, {ours.count:,} here")
    if moved:
        yield f"{list_names(moved, _MOST_TEXTS)}: {_ELSEWHERE}"
    other = [pair.recorded for pair in pairs if pair.recorded.stage is stage and pair.recorded.text != pair.ours.text]
    if other:
        yield f"{_texts(other)} is the text of another Kubernetes version"
    strange = [part for part in gone if part.stage is stage and not part.is_known]
    if strange:
        yield f"{_texts(strange)} is not of a known plugin: it comes from an extender or another scheduler"
    held = [part for part in gone if part.stage is stage and part.is_known]
    if held:
        yield f"{_texts(held)} does not apply now: {_ELSEWHERE}, or with another configuration"
    event_parts = [part for part in new if part.stage is stage]
    if event_parts:
        yield f"{_texts(event_parts)} is new"


def _texts(parts: Sequence[EventPart]) -> str:
    return list_names(dict.fromkeys(_quote(part.text) for part in parts), _MOST_TEXTS)


def _quote(text: str) -> str:
    return f'"{text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"}"'


def _preemption(
    recorded: Sequence[EventPart],
    pairs: Sequence[_Pair],
    gone: Sequence[EventPart],
    new: Sequence[EventPart],
    *,
    is_cut: bool,
) -> Iterator[str]:
    if not any(part.stage is Stage.PREEMPTION for part in recorded):
        if not is_cut:
            yield "it has no preemption part: another Kubernetes version, or preemption is off"
        return
    if next(_changes(Stage.PREEMPTION, pairs, gone, new), None) is not None:
        yield f"its preemption result differs: {_ELSEWHERE}, or by another Kubernetes version"


def _is_same_reason(recorded: EventPart, ours: EventPart) -> bool:
    """Whether both have the same text, or the same reason in another version's words, with or without its subject."""
    if recorded.stage is not ours.stage:
        return False
    if recorded.text == ours.text:
        return True
    is_one = bool(recorded.reason) and (recorded.plugin, recorded.reason) == (ours.plugin, ours.reason)
    return is_one and (not recorded.subject or not ours.subject or recorded.subject == ours.subject)
