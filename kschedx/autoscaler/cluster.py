"""The cluster-autoscaler of a cluster, as far as its objects show it, and its decision about one pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import ClassVar, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.autoscaler.estimate import renamed
from kschedx.autoscaler.flags import Flags, deployment_flags
from kschedx.autoscaler.loop import Loop
from kschedx.autoscaler.node_groups import Membership, group_title, membership
from kschedx.autoscaler.pods import PodOutcome
from kschedx.autoscaler.sizes import NOT_READY, Resize
from kschedx.autoscaler.state import GroupChoice, LoopMemory, LoopOutcome, LoopResult, LoopState, PodResult
from kschedx.autoscaler.status import AutoscalerStatus, read_status
from kschedx.autoscaler.templates import CloudTemplate, GroupsFile, Template, cloud_templates, machine_templates
from kschedx.errors import ConfigError, InputError, Place, nearest
from kschedx.framework.config import Profile, SchedulerConfig, load_profiles
from kschedx.framework.runtime import Framework
from kschedx.framework.scheduler import Scheduler
from kschedx.framework.status import Status
from kschedx.growth import READY, NodeGrowth, with_new_nodes
from kschedx.kube.autoscalers import SCALE_DOWN, SCALE_UP, SCHEDULER_CONFIG, Written
from kschedx.kube.documents import Document, part_of
from kschedx.kube.names import added_node_name
from kschedx.kube.types import AUTOSCALER_STATUS, UNSCHEDULABLE_STATUS, Node, Pod
from kschedx.releases import Release
from kschedx.releases.autoscaler import AutoscalerBehavior, autoscaler_behavior
from kschedx.snapshot.devices import slices_on
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names


class AutoscalerOptions(Struct, frozen=True, kw_only=True):
    """The user's options about the autoscaler."""

    group_label: str = ""
    flags: Mapping[str, Sequence[str]] = {}
    file: GroupsFile = GroupsFile()
    config: Mapping[str, object] | None = None
    """The KubeSchedulerConfiguration of `--scheduler-config-file`; None for the default."""
    sizes: Mapping[str, int] = {}  # the sizes of node groups that have got nodes since the status was written


_REGISTRATION_FAILURES = ("timeout", "NodeRegistrationTimeout")
"""Codes of a backoff whose instances did not become nodes in time. Upstream: clusterstate/clusterstate.go."""


class GroupVerdict(Struct, frozen=True, kw_only=True):
    name: str
    target: int
    min_size: int
    max_size: int
    fits: bool  # whether the pod fits on the group's template
    rejections: tuple[Status, ...] = ()
    """Every plugin that rejects the pod there, with its findings; the first one counts."""
    skipped: tuple[str, ...] = ()  # why the group is skipped for every pod
    detail: str = ""  # details of a skip: sizes, or the cloud's error
    template: Template | None = None
    is_unknown: bool = False
    """Whether only the missing template keeps the pod from being evaluated: the autoscaler gets it from the cloud."""
    unregistered: int = 0  # instances that did not become nodes

    @property
    def title(self) -> str:
        return group_title(self.name)

    @property
    def fails_to_register(self) -> bool:
        return bool(self.unregistered) or self.detail.startswith(_REGISTRATION_FAILURES)


class PodScaling(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    pod: PodResult
    result: LoopOutcome
    error: str
    judge_groups: Callable[[], tuple[GroupVerdict, ...]]
    """Filters the pod on each group's template: most answers need only the choice."""
    choice: GroupChoice | None  # the first remaining choice, if it includes the pod
    alternatives: tuple[str, ...]  # the groups among which the autoscaler chooses at random, if there are several
    is_waiting: bool  # whether it fits a group, but the group of another pod is chosen first

    @cached_property
    def groups(self) -> tuple[GroupVerdict, ...]:
        """The node groups in the cloud's order."""
        return self.judge_groups()

    @property
    def unknown_groups(self) -> tuple[str, ...]:
        """The groups whose templates only the autoscaler knows."""
        return tuple(group.name for group in self.groups if group.is_unknown and group.skipped == (NOT_READY,))

    def node_of(self, group: str) -> Node | None:
        """Return the template of a group's new nodes; None if it is not known."""
        templates = (verdict.template for verdict in self.groups if verdict.name == group)
        return next((template.node for template in templates if template is not None), None)


_MEASURED = ("1.36", "1.33")


class Autoscaler(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """cluster-autoscaler on a snapshot with its status ConfigMap."""

    name: ClassVar[Literal["cluster-autoscaler"]] = "cluster-autoscaler"

    snapshot: Snapshot
    status: AutoscalerStatus
    options: AutoscalerOptions
    release: Release
    membership: Membership
    changed_flags: Flags | None = None  # other flags than those of the options and the Deployment
    templates: Mapping[str, CloudTemplate] = {}  # the cloud's templates of groups that do not exist yet
    memory: LoopMemory = field(default_factory=LoopMemory)  # shared by all changed copies of this autoscaler

    @classmethod
    def of(cls, snapshot: Snapshot, options: AutoscalerOptions, scheduler: Scheduler) -> Autoscaler | None:
        """Return None for a cluster without the ConfigMap, or with a scheduler without plugins. Raises `InputError` for
        a ConfigMap that is invalid or has no groups yet."""
        is_of_framework = scheduler.framework(scheduler.config.profiles[0]) is not None
        autoscaler = cls.of_status(snapshot, options, scheduler.release) if is_of_framework else None
        if autoscaler is not None and autoscaler.status.is_initializing:
            raise InputError(
                "the autoscaler had just started and had not read its node groups yet",
                place=Place(object=f"ConfigMap {AUTOSCALER_STATUS}"),
            )
        return autoscaler

    @classmethod
    def of_status(cls, snapshot: Snapshot, options: AutoscalerOptions, release: Release) -> Autoscaler | None:
        """Return None without the ConfigMap. Raises `InputError` if it is invalid."""
        written = snapshot.config_maps.get(AUTOSCALER_STATUS)
        if written is None:
            return None
        status = read_status(written.data.get("status", "")).with_errors(snapshot.node_group_errors)
        status = status.with_sizes(options.sizes)
        groups = membership(
            snapshot.cluster.nodes,
            [group.name for group in status.groups],
            label=options.group_label,
            group_by_node=options.file.nodes,
        )
        added: Counter[str] = Counter()  # nodes of a simulation, which the status does not count
        counted: Counter[str] = Counter()
        for node in snapshot.cluster.nodes:
            if node.name in groups.groups:
                (added if node.metadata.is_new else counted)[groups.groups[node.name]] += 1
        sizes = {it.name: min(it.target, counted[it.name]) + added[it.name] for it in status.groups}
        status = status.with_sizes({it.name: sizes[it.name] for it in status.groups if sizes[it.name] > it.target})
        return cls(snapshot=snapshot, status=status, options=options, release=release, membership=groups)

    @property
    def unknown_groups_text(self) -> str:
        """Which groups the user names and the status lacks, with the nearest name; empty if it has all of them."""
        known = [group.name for group in self.status.groups]
        unknown = [name for name in dict.fromkeys(self.options.file.names) if name not in known]
        if not unknown:
            return ""
        near = nearest(unknown[0], known) if len(unknown) == 1 else ""
        are = "node group" if len(unknown) == 1 else "node groups"
        text = f"--node-groups: the autoscaler's status has no {are} {list_names(unknown, 3)}"
        return text + (f" ({near})" if near else "")

    def open_groups(self, scaling: PodScaling) -> tuple[str, ...]:
        """Return the groups whose templates only the autoscaler knows, so that they may help, unless an event of the
        autoscaler says that no group does."""
        pods, row = self.snapshot.pods, scaling.pod.row
        said = self.snapshot.autoscaler_events.get(pods.key(row)) if row < len(pods) else None
        is_ruled_out = said is not None and not said.message.startswith("pod triggered")
        return () if is_ruled_out else scaling.unknown_groups

    @cached_property
    def behavior(self) -> AutoscalerBehavior:
        return autoscaler_behavior(self.release.version)

    @property
    def is_measured(self) -> bool:
        """Whether loops of this version were recorded."""
        return self.release.version in _MEASURED

    @cached_property
    def flags_are_known(self) -> bool:
        """Whether the user or the Deployment gives the flags."""
        return bool(self.options.flags) or self._deployment_flags is not None

    @cached_property
    def _deployment_flags(self) -> Written | None:
        return deployment_flags(self.snapshot.workloads)

    @cached_property
    def written_flags(self) -> dict[str, list[str]]:
        """The Deployment's flags, overridden by the user's."""
        given = {
            name: values for name, values in (self._deployment_flags or {}).items() if self._is_readable(name, values)
        }
        return self._override(given, SCALE_UP)

    @cached_property
    def scale_down_flags(self) -> dict[str, list[str]]:
        """The flags about scale-down; the user's override the Deployment's."""
        return self._override(self._deployment_flags or {}, SCALE_DOWN)

    def _override(self, given: Mapping[str, list[str]], names: Collection[str]) -> dict[str, list[str]]:
        user = {name: list(values) for name, values in self.options.flags.items()}
        return {name: values for name, values in {**given, **user}.items() if name in names}

    @property
    def config_not_here(self) -> str:
        """The path of the scheduler configuration that the autoscaler uses, if the content is not given."""
        if self.options.config is not None or not self.behavior.takes_scheduler_config:
            return ""
        return (self.written_flags.get(SCHEDULER_CONFIG) or [""])[-1]

    @property
    def profile(self) -> Profile:
        """The profile that decides about pods. Raises `ConfigError`."""
        return self._scheduler_config.profiles[0]

    @cached_property
    def _scheduler_config(self) -> SchedulerConfig:
        """The configuration, whose only profile is used for every pod, whatever its schedulerName. Upstream:
        utils/scheduler/scheduler.go, simulator/framework/handle.go."""
        config = load_profiles(self.options.config, self.release)
        if (count := len(config.profiles)) != 1:
            raise ConfigError(f"cluster-autoscaler supports one profile, and the configuration has {count}")
        return config

    def _is_readable(self, name: str, values: list[str]) -> bool:
        """Return whether a Deployment's flag is valid; invalid ones are ignored."""
        try:
            Flags.read({name: values}, self.behavior)
        except ConfigError:
            return False
        return True

    @cached_property
    def flags(self) -> Flags:
        """Raises `ConfigError`. A managed autoscaler, whose flags are not in the cluster, has the API of
        ProvisioningRequests if a pod uses it."""
        known = {} if self.flags_are_known else {"enable-provisioning-requests": ["true"]}
        return self.changed_flags or Flags.read({**known, **self.written_flags}, self.behavior)

    def loop(self, snapshot: Snapshot | None = None, now: str | None = None) -> Loop:
        """Return a loop over the cluster, or over one with other pods. The default time is that of the snapshot."""
        snapshot, groups, scheduler = snapshot or self.snapshot, self.membership.groups, self._scheduler_config
        written = {**machine_templates(snapshot), **self.options.file.templates}
        return Loop(
            LoopState(
                framework=Framework(scheduler.profiles[0], scheduler, snapshot, self.release),
                group_of=lambda node: groups.get(node.name),
                status=self.status,
                cloud={**cloud_templates(written), **self.templates},
                flags=self.flags,
                behavior=self.behavior,
                now=snapshot.moment(now),
                memory=self.memory,
            )
        )

    @cached_property
    def _own(self) -> Loop:
        """The loop over the current cluster."""
        return self.loop()

    def explain(self, pod: Pod) -> PodScaling | None:
        """Return the result for a pending pod among all pending ones; None for other pods. A pod that is not in the
        snapshot counts as rejected by kube-scheduler long enough ago; one that is there gets the given spec and
        nominated node."""
        changed = self.snapshot
        row, nominated = changed.pods.rows.get(pod.key), pod.status.nominated_node_name
        if row is None:
            row = len(changed.pods)
            metadata = replace(pod.metadata, creation_timestamp=None)
            status = replace(UNSCHEDULABLE_STATUS, nominated_node_name=nominated)
            unschedulable = replace(pod, metadata=metadata, status=status)
            changed = replace(changed, pods=changed.pods.with_pods([unschedulable]), _tables={})
        elif changed.pods.node_names[row]:
            return None
        elif changed.pods.specs[row] != replace(pod.spec, node_name=""):
            changed = replace(changed, pods=changed.pods.with_spec(row, pod.spec), _tables={})
        if changed.pods.nominated_node_names[row] != nominated:
            changed = replace(changed, pods=changed.pods.with_nominations({row: nominated}), _tables={})
        loop = self._own if changed is self.snapshot else self.loop(changed)
        answer = loop.result
        mine = next((pod for pod in answer.pods if pod.row == row), None)
        return None if mine is None else _pod_scaling(loop, answer, mine)

    def grow(self) -> AutoscalerGrowth:
        """Run loops until none adds a node; new nodes are ready at the next loop. Of equally good options, the first is
        chosen."""
        last, now = self._own.result, self
        loops = helped = 0
        by_chance = False
        while loops < _MOST_LOOPS and last.choices and last.choices[0].resizes:
            choice = last.choices[0]
            loops += 1
            helped += len(choice.triggered)
            by_chance = by_chance or len(last.choices) > 1
            now = now._with_choice(choice, last)
            last = now.loop().result
        first = {group.name: group.target for group in self.status.groups}
        grown = (
            Resize(group=group.name, before=first[group.name], after=group.target, maximum=group.max_size)
            for group in now.status.groups
            if group.target != first[group.name]
        )
        outcomes = Counter(pod.outcome for pod in last.pods)
        del outcomes[PodOutcome.CONSIDERED], outcomes[PodOutcome.SCHEDULABLE]
        return AutoscalerGrowth(
            snapshot=now.snapshot,
            groups=tuple(grown),
            loops=loops,
            helped=helped,
            left=sum(pod.remains for pod in last.pods),
            passed_over=outcomes,
            last=last,
            by_chance=by_chance,
        )

    def _with_choice(self, choice: GroupChoice, loop: LoopResult) -> Autoscaler:
        """Return the autoscaler after the new nodes of a choice are ready."""
        templates = {group.group.name: group.template for group in loop.groups if group.template is not None}
        groups: dict[str, str] = {}
        nodes: list[tuple[Node, Sequence[Pod]]] = []
        devices = self.snapshot.devices
        for resize in choice.resizes:
            template = templates[resize.group]
            for number in range(resize.before + 1, resize.after + 1):
                name = added_node_name(resize.group, number)
                status = replace(template.node.status, conditions=READY)
                nodes.append((replace(renamed(template.node, name), status=status), template.pods))
                devices = devices.with_slices(slices_on(name, template.slices))
                groups[name] = resize.group
        sizes = {resize.group: resize.after for resize in choice.resizes}
        return replace(
            self,
            snapshot=with_new_nodes(self.snapshot, nodes).with_devices(devices),
            status=self.status.with_sizes(sizes),
            membership=replace(self.membership, groups={**self.membership.groups, **groups}),
            changed_flags=self.flags,
        )


_MOST_LOOPS = 50


class AutoscalerGrowth(NodeGrowth, frozen=True, kw_only=True):
    autoscaler: ClassVar[Literal["cluster-autoscaler"]] = "cluster-autoscaler"

    passed_over: Mapping[PodOutcome, int]  # the outcomes of pods that are not considered, with their numbers
    groups: tuple[Resize, ...]
    loops: int  # the number of loops that added nodes
    last: LoopResult  # the loop that added no node

    @property
    def document(self) -> AutoscalerGrowthDocument:
        groups = {step.group: step for step in self.groups}
        return part_of(AutoscalerGrowthDocument, self, groups=groups, result=self.last.result)


class SizeDocument(Document, frozen=True):
    before: int = field(name="from")
    after: int = field(name="to")
    maximum: int = field(name="max")


class AutoscalerGrowthDocument(Document, frozen=True, tag_field="kind", tag="cluster-autoscaler"):
    """What the autoscaler adds in the end, as the value of the key `autoscaler` of a Simulation document."""

    loops: int
    groups: Mapping[str, SizeDocument]
    helped: int
    result: LoopOutcome
    by_chance: bool


def _group_verdicts(loop: Loop, answer: LoopResult, pod: PodResult) -> tuple[GroupVerdict, ...]:
    rejections = loop.rejections(pod.row) if pod.outcome is PodOutcome.CONSIDERED else {}
    verdicts = []
    for result in answer.groups:
        status = result.group.status
        backoff = (status.backoff_code, status.backoff_message) if result.group.is_backed_off else ()
        verdicts.append(
            GroupVerdict(
                name=result.group.name,
                target=status.target,
                min_size=status.min_size,
                max_size=status.max_size,
                fits=result.group.name in rejections and not rejections[result.group.name],
                rejections=rejections.get(result.group.name, ()),
                skipped=result.skipped,
                detail=": ".join(filter(None, backoff)),
                template=result.template,
                is_unknown=result.is_unknown,
                unregistered=status.long_unregistered,
            )
        )
    return tuple(verdicts)


def _pod_scaling(loop: Loop, answer: LoopResult, pod: PodResult) -> PodScaling:
    choices = [choice for choice in answer.choices if pod.row in choice.triggered]
    return PodScaling(
        pod=pod,
        result=answer.result,
        error=answer.error,
        judge_groups=partial(_group_verdicts, loop, answer, pod),
        choice=choices[0] if choices else None,
        alternatives=tuple(choice.option.group for choice in answer.choices) if len(answer.choices) > 1 else (),
        is_waiting=any(pod.row in choice.awaiting for choice in answer.choices),
    )
