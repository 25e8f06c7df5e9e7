"""The differences between two configurations."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import UndecidableError
from kschedx.explain.difference import Difference, Rejection, Story, compare
from kschedx.explain.missing_kinds import require_for_decision
from kschedx.explain.setup import Setup, unassign
from kschedx.framework.args import PluginArgs
from kschedx.framework.config import Profile
from kschedx.framework.config.origins import flat, format_args
from kschedx.framework.cycle import Outcome
from kschedx.framework.moving import Run, shares_columns
from kschedx.framework.moving.leave_one_out import LeaveOneOut, Profiles
from kschedx.framework.scheduler import Scheduler
from kschedx.kube.selectors import Selector
from kschedx.kube.types import Pod
from kschedx.releases import POINTS, Release
from kschedx.snapshot.columns import BoolArray, ClusterRow, IntArray, rows_by_group
from kschedx.snapshot.snapshot import MissingCause, Snapshot

WEIGHED = frozenset({"score", "priorities"})  # the extension points with weights; a Policy has priorities


class ProfileChange(Struct, frozen=True, kw_only=True):
    """One changed setting; a side without it is empty."""

    profile: str  # the schedulerName; empty for settings of all profiles
    place: str  # an extension point, `args`, `release`, `gate`, `message`, `behavior`, or `scheduler`
    subject: str  # the plugin, the gate, or the setting
    setting: str = ""
    """`weight`, `position`, or the path of an argument; empty if the subject itself is added or removed."""
    before: str = ""
    after: str = ""


def changes(before: Setup, after: Setup) -> tuple[ProfileChange, ...]:
    """Return the changes: the version first, then common settings, then each profile in the order of the framework."""
    return (
        *_release(before.release, after.release),
        *_shared_changes(before, after),
        *(change for name in _names(before, after) for change in _profile(name, before, after)),
    )


def _release(before: Release, after: Release) -> Iterator[ProfileChange]:
    if before.version != after.version:
        yield ProfileChange(
            profile="", place="release", subject="Kubernetes", before=before.version, after=after.version
        )
    if not before.shares_facts_with(after):
        return
    for gate in sorted({*before.gates, *after.gates}):
        first, second = before.gates.get(gate), after.gates.get(gate)
        # a gate that only one version knows is not there yet, or can no longer be set
        if first is not second and None not in (first, second):
            yield ProfileChange(profile="", place="gate", subject=gate, before=_text(first), after=_text(second))
    yield from _facts("message", before.messages, after.messages)
    yield from _facts("behavior", before.behavior, after.behavior)


def _facts(
    place: str, before: Iterable[tuple[str, object]], after: Iterable[tuple[str, object]]
) -> Iterator[ProfileChange]:
    """Yield differences between versions, by the name of the fact."""
    others = dict(after)
    for name, fact in before:
        if fact != others[name]:
            subject = name.replace("_", " ")
            yield ProfileChange(profile="", place=place, subject=subject, before=_text(fact), after=_text(others[name]))


def _shared_changes(before: Setup, after: Setup) -> Iterator[ProfileChange]:
    first = [str(extender.url) for extender in before.scheduler.config.extenders]
    second = [str(extender.url) for extender in after.scheduler.config.extenders]
    if before.scheduler.config.extenders != after.scheduler.config.extenders:
        yield ProfileChange(
            profile="", place="scheduler", subject="extenders", before=", ".join(first), after=", ".join(second)
        )


def _names(before: Setup, after: Setup) -> list[str]:
    """Return the schedulerNames to compare; a single profile on either side is compared with each of the other."""
    first, second = ([profile.scheduler_name for profile in setup.profiles] for setup in (before, after))
    if len(first) == 1:
        return second
    return first if len(second) == 1 else list(dict.fromkeys((*first, *second)))


def _profile(name: str, before: Setup, after: Setup) -> Iterator[ProfileChange]:
    first, second = before.profile_compared(name), after.profile_compared(name)
    if first is None or second is None:
        yield ProfileChange(
            profile=name,
            place="scheduler",
            subject="profile",
            before="a profile" if first else "",
            after="a profile" if second else "",
        )
        return
    if first.percentage_of_nodes_to_score != second.percentage_of_nodes_to_score:
        yield ProfileChange(
            profile=name,
            place="scheduler",
            subject="percentageOfNodesToScore",
            before=_percentage(first),
            after=_percentage(second),
        )
    for point in dict.fromkeys((*POINTS, *first.enabled, *second.enabled)):
        yield from _point(name, point, first, second)
    for plugin in sorted({*first.args, *second.args}):
        yield from _args(name, plugin, first.args.get(plugin), second.args.get(plugin))


def _percentage(profile: Profile) -> str:
    share = profile.percentage_of_nodes_to_score
    return f"{share}%" if share else "by cluster size"


def _point(name: str, point: str, before: Profile, after: Profile) -> Iterator[ProfileChange]:
    first, second = before.enabled.get(point, ()), after.enabled.get(point, ())
    for plugin in dict.fromkeys((*first, *second)):
        sides = [_entry(point, plugin, profile) for profile in (before, after)]
        if "" in sides:
            yield ProfileChange(profile=name, place=point, subject=plugin, before=sides[0], after=sides[1])
        elif sides[0] != sides[1]:
            yield ProfileChange(
                profile=name,
                place=point,
                subject=plugin,
                setting="weight",
                before=str(before.weights[plugin]),
                after=str(after.weights[plugin]),
            )
    if point not in WEIGHED:  # the order does not affect a sum
        yield from _order(name, point, first, second)


def _entry(point: str, plugin: str, profile: Profile) -> str:
    if plugin not in profile.enabled.get(point, ()):
        return ""
    return f"weight {profile.weights[plugin]}" if point in WEIGHED else "enabled"


def _order(name: str, point: str, first: Sequence[str], second: Sequence[str]) -> Iterator[ProfileChange]:
    """Yield the plugins that moved relative to the others that both sides have."""
    old, new = [name for name in first if name in second], [name for name in second if name in first]
    kept = {
        old[start + offset]
        for start, _, size in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_matching_blocks()
        for offset in range(size)
    }
    for plugin in old:
        if plugin not in kept:
            yield ProfileChange(
                profile=name,
                place=point,
                subject=plugin,
                setting="position",
                before=_position(first, plugin),
                after=_position(second, plugin),
            )


def _position(plugins: Sequence[str], plugin: str) -> str:
    return f"{plugins.index(plugin) + 1} of {len(plugins)}"


def _args(name: str, plugin: str, before: PluginArgs | None, after: PluginArgs | None) -> Iterator[ProfileChange]:
    if before is None or after is None:
        return  # a plugin that only one side has is reported at its extension points
    first, second = (dict(flat(format_args(args))) for args in (before, after))
    for path in dict.fromkeys((*first, *second)):
        if first.get(path) != second.get(path):
            yield ProfileChange(
                profile=name,
                place="args",
                subject=plugin,
                setting=path,
                before=_text(first.get(path)),
                after=_text(second.get(path)),
            )


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case list() | tuple():
            return ", ".join(map(_text, value))
        case _:
            return str(value)


# Two scheduler setups, tried on the same pods of the same snapshot.

_FEW = 16  # the number of pods in a part that have nothing in common
MANY = 256  # the maximum number of identical pods in a part


class EvaluatedRows(Struct, frozen=True, kw_only=True):
    """Rows of pods that are evaluated together."""

    rows: tuple[int, ...]
    are_alike: bool


class Pair:
    """A snapshot and two setups."""

    def __init__(self, snapshot: Snapshot, before: Setup, after: Setup) -> None:
        self.snapshot = snapshot
        self.before = before
        self.after = after
        self._profiles: dict[str, Profiles] = {}

    def prepare(self) -> None:
        """Compute what all pods share, before processes are forked."""
        for scheduler in self._schedulers:
            pods = scheduler.snapshot.pods
            if len(scheduler.nodes):
                pods.on_node(ClusterRow(0))
            _ = pods.rows, pods.nominated, pods.priorities

    def knows(self, scheduler_name: str) -> bool:
        """Return whether either side schedules the pods of this scheduler."""
        names = self.before.scheduler_names | self.after.scheduler_names
        sides = (self.before.profile_compared(scheduler_name), self.after.profile_compared(scheduler_name))
        return scheduler_name in names and None not in sides

    def stories(self, pod: Pod, later: Pod | None = None) -> tuple[Story, Story]:
        """Schedule the pod now, on both sides. Raises `UndecidableError`. `later` is the pod for the second side, if it
        differs."""
        before, after = self._schedulers
        alone = unassign(before.snapshot, pod)
        is_same = later is None and after.snapshot is before.snapshot
        later_alone = alone if is_same else unassign(after.snapshot, later or pod)
        return _story(self.before, before, alone), _story(self.after, after, later_alone)

    def difference(self, pod: Pod) -> Difference | None:
        """Return the difference of the pod's two stories. Raises `UndecidableError`, also if an extender or a plugin
        that was not run could reject it."""
        stories = self._stories_in_run(pod) or self.stories(pod)
        for setup, story in zip((self.before, self.after), stories, strict=True):
            if story.outcome is Outcome.UNDECIDED:
                raise UndecidableError(f"pod {pod.key} is undecided under {setup.name}: not every extender was called")
        return compare(*stories)

    # --- many pods

    def parts(self, rows: Sequence[int]) -> list[EvaluatedRows]:
        """Group pods of the snapshot so that computing their differences costs least."""
        wanted = np.array(rows, dtype=np.int64)
        alike = self._can_share(wanted)
        together, alone = wanted[alike], wanted[~alike].tolist()
        kinds = self.snapshot.pods.class_numbers(together)
        order, start = rows_by_group(kinds, int(kinds.max(initial=-1)) + 1)
        parts = [EvaluatedRows(rows=tuple(alone[at : at + _FEW]), are_alike=False) for at in range(0, len(alone), _FEW)]
        for begin, end in pairwise(start.tolist()):
            kind = together[order[begin:end]].tolist()
            parts += [
                EvaluatedRows(rows=tuple(kind[at : at + MANY]), are_alike=True) for at in range(0, len(kind), MANY)
            ]
        return parts

    def _can_share(self, rows: IntArray) -> BoolArray:
        """(row,) whether the result depends only on the pod's equivalence class and its node."""
        pods = self.snapshot.pods
        runs = self._runs
        setups = (self.before, self.after)
        somebody_else = any(setup.scheduler.config.extenders for setup in setups) or any(
            profile.unknown for setup in setups for profile in setup.profiles
        )
        if runs is None or runs[0].cluster.snapshot.devices.claims or somebody_else:
            return np.zeros(len(rows), dtype=np.bool_)
        is_new = np.array([not pods.nominated_node_names[row] for row in rows], dtype=np.bool_)
        runs_on = (pods.node[rows] >= 0) & ~pods.terminating[rows]
        shared: BoolArray = is_new & runs_on & pods.specs.where(shares_columns)[rows]
        return shared

    def differences(self, part: EvaluatedRows) -> Iterator[tuple[int, Difference | UndecidableError | None]]:
        """Yield every pod of a part with its `difference`, or why that is unknown."""
        if not part.are_alike:
            yield from ((row, self._difference_or_why_not(row)) for row in part.rows)
            return
        pods = self.snapshot.pods
        profiles = self._profiles_for(pods.specs[part.rows[0]].scheduler_name)
        rejections: tuple[Rejection, ...] = ()
        for rows, outlooks in LeaveOneOut(profiles, part.rows):
            if outlooks is None:
                yield from ((row, self._difference_or_why_not(row)) for row in rows)
                continue
            first_rejections = outlooks[0].rejections
            if len(rejections) < len(first_rejections):
                rejections = tuple(Rejection.of(rejected) for rejected in first_rejections)
            before, after = (
                Story.of_outlook(pods.key(rows[0]), outlook, framework, rejections)
                for outlook, framework in zip(outlooks, profiles.frameworks, strict=True)
            )
            difference = compare(before, after)
            for row in rows:
                yield row, None if difference is None else replace(difference, pod=pods.key(row))

    def _profiles_for(self, scheduler_name: str) -> Profiles:
        """Return the profiles of both sides for a `spec.schedulerName`, on one cluster."""
        profiles = self._profiles.get(scheduler_name)
        if profiles is None:
            assert self._runs is not None, "only runs of pods are combined"
            frameworks = [
                framework
                for setup, run in zip((self.before, self.after), self._runs, strict=True)
                if (profile := setup.profile_compared(scheduler_name))
                and (framework := run.scheduler.framework(profile))
            ]
            profiles = self._profiles[scheduler_name] = Profiles(self._runs[0].cluster, frameworks)
        return profiles

    def _difference_or_why_not(self, row: int) -> Difference | UndecidableError | None:
        try:
            return self.difference(self.snapshot.pods[row])
        except UndecidableError as error:
            return error

    def _stories_in_run(self, pod: Pod) -> tuple[Story, Story] | None:
        """Return the stories of a pod in the cluster, at the cost of removing it and placing it again."""
        if self._runs is None:
            return None
        first, second = self._runs
        cluster = first.cluster
        row = cluster.pods.rows.get(pod.key)
        waits = row is not None and not cluster.pods.node_names[row]
        if row is None or not (waits or cluster.pods.node[row] >= 0) or cluster.snapshot.devices.claims:
            return None
        mark = cluster.mark()
        if not waits:
            cluster.remove(row, waits=True)
        try:
            stories = []
            for setup, run in ((self.before, first), (self.after, second)):
                profile = setup.profile_compared(pod.spec.scheduler_name)
                assert profile is not None, "a pod of another scheduler"
                stories.append(Story.of(run.scored_cycle(row, profile)))
        finally:
            cluster.revert(mark)
        return stories[0], stories[1]

    @cached_property
    def _runs(self) -> tuple[Run, Run] | None:
        """Both sides on one moving cluster; None if they do not see the same cluster, or not all of it."""
        before, after = self._schedulers
        frameworks = all(scheduler.framework(scheduler.config.profiles[0]) is not None for scheduler in (before, after))
        forbidden = any(cause is MissingCause.FORBIDDEN for cause in self.snapshot.source.missing.values())
        if not frameworks or before.snapshot is not after.snapshot or forbidden:
            return None
        first = Run(before)
        return first, Run(after, cluster=first.cluster)

    @cached_property
    def _schedulers(self) -> tuple[Scheduler, Scheduler]:
        return self.before.scheduler.on_cluster(self.snapshot), self.after.scheduler.on_cluster(self.snapshot)

    # --- the pods to compare

    def choose(
        self, *, namespace: str | None = None, labels: Selector | None = None, pending: bool, running: bool
    ) -> tuple[list[int], dict[str, int]]:
        """Return rows of the selected pods, and why others cannot be compared, with their number. Neither `pending` nor
        `running` means both."""
        pods = self.snapshot.pods
        waits = np.zeros(len(pods), dtype=np.bool_)
        waits[list(pods.pending)] = True
        either = pending or running
        wanted = (waits & (pending or not either)) | ((pods.node >= 0) & (running or not either))
        if namespace is not None:
            wanted &= pods.in_namespace(namespace)
        if labels is not None:
            wanted &= pods.labels.where(labels.matches)
        of_kubelet = pods.owners.where(lambda owners: any(owner.kind == "Node" for owner in owners))
        of_others = ~pods.specs.where(lambda spec: self.knows(spec.scheduler_name)) & ~of_kubelet
        left_out = {
            why: count
            for why, mask in (("static pods", of_kubelet), ("pods of other schedulers", of_others))
            if (count := int(np.count_nonzero(wanted & mask)))
        }
        return np.flatnonzero(wanted & ~of_kubelet & ~of_others).tolist(), left_out


def _story(setup: Setup, scheduler: Scheduler, alone: tuple[Snapshot, Pod]) -> Story:
    """Return the story of a pod without a node, in its cluster without it. Raises `UndecidableError` if a kind that may
    not be listed could change the result."""
    snapshot, pod = alone
    profile = setup.profile_compared(pod.spec.scheduler_name)
    assert profile is not None, "a pod of another scheduler"
    cycle = scheduler.on(snapshot).schedule(pod, profile)
    require_for_decision(cycle)
    return Story.of(cycle)
