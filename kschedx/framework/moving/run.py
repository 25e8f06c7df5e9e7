"""A scheduler on a moving cluster.

`run.cluster` adds and removes pods (`place`, `remove`) and nodes (`add_node`, `remove_node`). Its `revert` returns to a
`mark`, nodes included. `run.decide` returns a whole decision about a pending pod, at the cost of what has moved since a
pod of its class was evaluated. After a node is added or removed, everything is evaluated again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.framework.config import Profile
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.interface import WHOLE, PermitPlugin, Plugin, PreEnqueuePlugin, Touch
from kschedx.framework.replicas import NotFollowedError, Pick, ReplicaSeries, SharedResults
from kschedx.framework.runtime import Framework
from kschedx.framework.schedule import READING_POINTS, Decision, EquivalenceClass, binding_effects
from kschedx.framework.scheduler import Scheduler
from kschedx.kube.devices import ResourceClaim
from kschedx.kube.types import Pod, PodSpec
from kschedx.snapshot.columns import ClusterRow, ClusterRows, Column, IntArray, cluster_rows
from kschedx.snapshot.moving_cluster import MovingCluster
from kschedx.snapshot.snapshot import Snapshot

# Equivalence classes of pods: pods that are equal in all that plugins read of them, so that they share columns.
# Every plugin returns what it reads (`Plugin.reads`, and `Plugin.distinguishes_by` for pods with claims). If it is the
# whole pod, some parts are left out: names and uids, the names of claims, and the labels that number the pods of a
# workload, unless a selector names these.

_NUMBERING = (
    "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name", "batch.kubernetes.io/job-completion-index"
)  # fmt: skip
"""Labels that distinguish the pods of one workload."""

_T = TypeVar("_T")

_ENCODER = msgspec.json.Encoder(order="sorted")


class EquivalenceKey(NamedTuple):
    """A key that is equal for the pods of a class."""

    common: tuple[int, ...]
    """What pods have in common, apart from the objects behind their claims and from the other pods that affect them."""
    distinct: tuple[Hashable, ...]  # the values by which each of `EquivalenceClasses.plugins` distinguishes such pods
    fit: int | None = None
    """A number that is equal for pods that fit the same nodes with the same scores, apart from `distinct`: their
    priorities may differ. None for pods with claims."""


def shares_columns(spec: PodSpec) -> bool:
    """Return whether pods of this spec can share columns: nothing about them depends on their name."""
    return not (spec.mounts_storage or spec.resource_claims or spec.scheduling_group)


class _Readers(Struct):
    """The plugins of a profile that read pods and nodes, and their keys of pods without claims."""

    framework: Framework
    entering: tuple[PreEnqueuePlugin, ...]
    plugins: list[Plugin]
    fits: list[bool]  # whether each of `plugins` reads pods for more than PostFilter
    keys: dict[tuple[int, ...], EquivalenceKey]  # by everything that is equal except names
    of_rows: dict[int, EquivalenceKey]  # by row of the pod


class _Numbers(Generic[_T]):
    """Numbers of the values of a column, which are equal for values that are read alike."""

    def __init__(self, column: Column[_T], read: Callable[[_T], object]) -> None:
        self._column, self._read = column, read
        self._of_codes: dict[int, int] = {}
        self._of_read: dict[bytes, int] = {}

    def of(self, row: int) -> int:
        code = int(self._column.codes[row])
        if code not in self._of_codes:
            read = _ENCODER.encode(self._read(self._column.values[code]))
            self._of_codes[code] = self._of_read.setdefault(read, len(self._of_read))
        return self._of_codes[code]


class _EquivalenceClasses:
    """The equivalence classes of the pods of a moving cluster."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._pods = pods = snapshot.pods
        self._rest = (pods.namespaces, pods.owners, pods.annotations)
        left_out = frozenset(_NUMBERING) - frozenset(_selected_numbering_labels(snapshot))
        self._numbers = (
            _Numbers(pods.specs, _without_names),
            _Numbers(pods.labels, lambda labels: {key: labels[key] for key in labels if key not in left_out}),
            _Numbers(pods.statuses, lambda status: replace(status, resource_claim_statuses=())),
        )
        self._readers: dict[str, _Readers] = {}
        self._read_codes: dict[Hashable, int] = {}

    def key(self, row: int, framework: Framework) -> EquivalenceKey:
        """Return a key that is equal for the pods of a class in the current cluster."""
        pods, readers = self._pods, self._readers_of(framework)
        known = readers.of_rows.get(row)
        if known is not None:
            return known
        rest = (int(column.codes[row]) for column in self._rest)
        common = (*(numbers.of(row) for numbers in self._numbers), *rest)
        class_key = readers.keys.get(common)
        if class_key is None:
            pod = pods[row]
            if pod.spec.mounts_storage or pod.spec.resource_claims:
                return EquivalenceKey(common, tuple(plugin.distinguishes_by(pod) for plugin in readers.plugins))
            class_key = readers.keys[common] = self._read(framework, pod, common)
        readers.of_rows[row] = class_key
        return class_key

    def _read(self, framework: Framework, pod: Pod, common: tuple[int, ...]) -> EquivalenceKey:
        """Return the key of a pod without claims; `distinct` has what the plugins that every move affects read."""

        def read(plugin: Plugin) -> Hashable:
            value = plugin.reads(pod)
            return common if value is WHOLE else value

        readers, name = self._readers_of(framework), framework.profile.scheduler_name
        values = {plugin: read(plugin) for plugin in (*readers.plugins, *readers.entering)}
        touches = {plugin: plugin.touches(pod) for plugin in values}
        distinct = [values[plugin] if touches[plugin] is Touch.CLUSTER else None for plugin in readers.plugins]
        shared = [
            values[plugin] if other is None else None for plugin, other in zip(readers.plugins, distinct, strict=True)
        ]
        enters = (
            plugin.pre_enqueue(pod).is_success if touches[plugin] is Touch.NOTHING else values[plugin]
            for plugin in readers.entering
        )
        number, fit = (
            self._read_codes.setdefault((name, *read_values), len(self._read_codes))
            for read_values in (
                (*(values[plugin] for plugin in readers.entering), *shared),
                (*enters, *(value for value, fits in zip(shared, readers.fits, strict=True) if fits)),
            )
        )
        return EquivalenceKey((number,), tuple(distinct), fit)

    def plugins(self, framework: Framework) -> list[Plugin]:
        """Return the plugins that read pods and nodes."""
        return self._readers_of(framework).plugins

    def _readers_of(self, framework: Framework) -> _Readers:
        name = framework.profile.scheduler_name
        known = self._readers.get(name)
        if known is None or known.framework is not framework:
            by_point = {point: framework.plugins(point, Plugin) for point in READING_POINTS}
            every = list(dict.fromkeys(plugin for plugins in by_point.values() for plugin in plugins))
            fitting = {plugin for point, plugins in by_point.items() if point != "postFilter" for plugin in plugins}
            entering = framework.plugins("preEnqueue", PreEnqueuePlugin)
            fits = [plugin in fitting for plugin in every]
            known = self._readers[name] = _Readers(framework, entering, every, fits, {}, {})
        return known


def _without_names(spec: PodSpec) -> PodSpec:
    volumes = tuple(
        volume
        if volume.persistent_volume_claim is None
        else replace(volume, persistent_volume_claim=replace(volume.persistent_volume_claim, claim_name=""))
        for volume in spec.volumes
    )
    claims = tuple(
        claim if claim.resource_claim_name is None else replace(claim, resource_claim_name="")
        for claim in spec.resource_claims
    )
    return replace(spec, volumes=volumes, resource_claims=claims)


def _selected_numbering_labels(snapshot: Snapshot) -> Iterator[str]:
    """Yield the labels that number pods and that a selector for pods names."""
    pods = snapshot.pods
    concerned = [spec for spec in pods.specs.values if spec.affinity is not None or spec.topology_spread_constraints]
    written = [_ENCODER.encode((spec.affinity, spec.topology_spread_constraints)) for spec in concerned]
    controllers = (snapshot.services, snapshot.replication_controllers, snapshot.replica_sets, snapshot.stateful_sets)
    written += [_ENCODER.encode([item.spec.selector for item in some]) for some in controllers]
    yield from (key for key in _NUMBERING if any(key.encode() in text for text in written))


_MOST_ROWS = 600_000
"""The maximum number of rows of all equivalence classes together, with a row for each node. The least recently used
class is dropped first."""
_MOST_STANDING_ROWS = 1_000_000  # the same for the results that classes share


_SCHEDULED = Outcome.SCHEDULED


class _Series(Struct):
    """Identical pods that are assigned one after the other."""

    class_key: EquivalenceKey
    replicas: ReplicaSeries
    moves: int


class Run:
    """A run of a scheduler while pods are added and removed. Every change goes through `cluster`."""

    def __init__(
        self,
        scheduler: Scheduler,
        profile: Profile | None = None,
        *,
        cluster: MovingCluster | None = None,
        preempts: bool = True,
    ) -> None:
        """The run starts with the scheduler's cluster, which does not change. Alternatively, it shares `cluster` with
        other runs that started with the same one. `profile` is for every pod; by default, it is the one that the pod
        names. Without `preempts`, no PostFilter plugin runs for a pod that fits no node."""
        self._base = scheduler
        self._preempts = preempts
        self._profile = profile
        self.cluster = MovingCluster(scheduler.snapshot) if cluster is None else cluster
        self._follows = scheduler.framework(scheduler.config.profiles[0]) is not None
        self._moving = scheduler.on(self.cluster.snapshot) if self._follows else scheduler
        self._keys = _EquivalenceClasses(self.cluster.snapshot)
        self._classes: dict[EquivalenceKey, EquivalenceClass] = {}
        self._placements: dict[bytes, int] = {}  # the rows of a placement, as bytes, to a number
        self._latest: dict[tuple[int, ...], EquivalenceKey] = {}
        """The last used of the classes that differ only in the objects behind their claims."""
        self._standings: dict[int, SharedResults] = {}  # by `EquivalenceKey.fit`, the least recently used first
        self._recurring: set[int] = set()  # `EquivalenceKey.fit` of pods that were decided by themselves
        self._stood_in = self.cluster.snapshot  # the snapshot to which the standings belong
        self._series: _Series | None = None
        self._unknown = -1, -1  # the last pod without a known decision, and the version of the cluster
        self._latest_shared: tuple[EquivalenceKey, int, Decision] | None = None
        """The class of the last decided pod if it is unschedulable, the version of the cluster, and the decision."""
        self._decided: tuple[int, EquivalenceClass] | None = None  # the last decided pod, with its class
        self._preemptor: tuple[int, int, Decision] | None = None
        """The last pod that preempted others, the version of the cluster since then, and the decision that follows."""

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler on the current cluster."""
        if not self._follows:
            return self._base.on(self.cluster.frozen())
        if self._moving.snapshot is not self.cluster.snapshot:
            before = self._moving
            self._moving = self._base.on(self.cluster.snapshot)
            same_devices = self.snapshot.devices is before.snapshot.devices
            if self._moving.nodes is not before.nodes or not same_devices:
                self._latest.clear()
                self._classes.clear()
                self._standings.clear()
                self._keys = _EquivalenceClasses(self.cluster.snapshot)  # there may be more pods
        return self._moving

    @property
    def snapshot(self) -> Snapshot:
        """The current cluster; it changes with every move."""
        return self.cluster.snapshot

    def cycle(self, row: int) -> Cycle:
        """Return the whole cycle of a pending pod, as `schedule` returns it for the current cluster. Raises
        `ConfigError` if no profile has its schedulerName."""
        pod, scheduler = self.cluster.pods[row], self.scheduler
        framework = None if self._preempts else scheduler.framework(self.profile_of(row))
        if framework is None:
            return scheduler.schedule(pod, self._profile)
        return EquivalenceClass(framework, pod, preempts=False).cycle(pod)

    def decide(self, row: int, placement: ClusterRows | None = None) -> Decision:
        """Return the decision about a pending pod, at the cost of what has moved since a pod of the class was
        evaluated. `placement` are the only nodes to evaluate, ascending. Raises `ConfigError`."""
        if placement is None and (known := self.known_decision(row)) is not None:
            return known
        self._series = self._latest_shared = None
        own = self._class(row, placement=placement)
        if own is None:
            return Decision.of(self.cycle(row))
        decision = own.decide(self.cluster.pods[row])
        self._decided = row, own
        may_share = placement is None and own.is_shared and not self.cluster.pods.nominations
        class_key = self.equivalence_key(row) if may_share else None
        if class_key is not None and decision.outcome is Outcome.UNSCHEDULABLE:
            self._latest_shared = class_key, self.cluster.version, decision
        return decision

    def known_decision(self, row: int) -> Decision | None:
        """Return the result of `decide` if it is known from earlier pods that plugins do not distinguish; None if the
        pod must be evaluated."""
        if (repeated := self._repeated_decision(row)) is not None:
            return repeated
        series = self._series_with(row)
        best = None if series is None else series.replicas.best()
        if best is None:
            self._unknown = row, self.cluster.version
            return None
        return Decision(outcome=_SCHEDULED, best=best)

    def _repeated_decision(self, row: int) -> Decision | None:
        """Return the decision about the last pod if it is this pod's as well and nothing has moved since."""
        latest, version, preemptor = self._latest_shared, self.cluster.version, self._preemptor
        if preemptor is not None and preemptor[:2] == (row, version):
            return preemptor[2]
        if latest is not None and latest[1] == version and self._is_of(latest[0], row):
            return latest[2]
        return None

    def _series_with(self, row: int) -> _Series | None:
        """Return the series that a pod continues, or starts; None if nothing is known about it."""
        cluster = self.cluster
        if self._stood_in is not cluster.snapshot:
            self._stood_in, self._series = cluster.snapshot, None
            self._standings.clear()
        is_unknown = not self._standings or (row, cluster.version) == self._unknown
        if is_unknown or cluster.pods.nominations or cluster.pods.listed is not None:
            return None
        series = self._series
        if series is None or series.moves != len(cluster.pods.steps) or not self._is_of(series.class_key, row):
            self._series = series = self._next_series(row)
        return series

    def _next_series(self, row: int) -> _Series | None:
        """Return a series that starts with this pod, from the results for identical pods; None if there are none."""
        class_key = None if self.cluster.pods.deletion_timestamps[row] else self.equivalence_key(row)
        if class_key is None or class_key.fit is None or (standing := self._standings.pop(class_key.fit, None)) is None:
            return None
        framework, steps = standing.framework, self.cluster.pods.steps
        plugins = self._keys.plugins(framework)
        concerned = [
            plugin for plugin, distinct in zip(plugins, class_key.distinct, strict=True) if distinct is not None
        ]
        try:
            standing.catch_up(steps)
            if standing.is_without_room:
                return None  # it is read anew once a pod fits
            self._standings[class_key.fit] = standing
            replicas = ReplicaSeries(standing, self.cluster.pods[row], row, concerned)
        except NotFollowedError:
            return None
        return _Series(class_key, replicas, len(steps))

    def group_cycle(self) -> AbstractContextManager[None]:
        """Return the context in which members of a pod group are decided. In versions without group cycles, each member
        is decided by itself."""
        has_cycles = not self._base.release.behavior.gangs_are_of_workloads
        return self.cluster.group_cycle() if has_cycles else nullcontext()

    def _is_of(self, class_key: EquivalenceKey, row: int) -> bool:
        """Return whether a pending pod belongs to a class, and counts like the others after it is assigned."""
        return not self.cluster.pods.deletion_timestamps[row] and self.equivalence_key(row) == class_key

    def scored_cycle(self, row: int, profile: Profile) -> Cycle:
        """Return the result of `cycle` under a profile, without findings (why a node is rejected) and steps after the
        choice.

        It costs as little as `decide`.
        """
        own = self._class(row, profile)
        pod = self.cluster.pods[row]
        return self.scheduler.schedule(pod, profile) if own is None else own.cycle(pod)

    def nominate(self, row: int, node: ClusterRow) -> None:
        """Nominate the last decided pod for the node from which its victims, and nothing else, were removed since."""
        self.cluster.nominate(row, node)
        own = None if self._decided is None or self._decided[0] != row else self._decided[1]
        if own is not None and own.keeps_dry_runs and shares_columns(self.cluster.pods.specs[row]):
            # the dry run ended with the pod on the node
            decision = Decision(outcome=_SCHEDULED, best=cluster_rows([node]), nominated=node)
            self._preemptor = row, self.cluster.version, decision

    def bind(self, row: int, node: ClusterRow, then: int | None = None) -> None:
        """Assign the last decided pod, which fits, to the node, with its claims bound and allocated. `then` is the pod
        that is decided next; if it is identical, its decision costs little."""
        pods = self.cluster.pods
        claims = self._has_claims(pods.specs[row])
        if self._series is not None and not self._is_of(self._series.class_key, row):
            self._series = None
        if self._series is None and not claims:
            self._begin_series(row, then)
        if claims:
            self._bind_claims(pods[row], node)
        self.cluster.place(row, node)
        if self._series is not None:
            self._series.moves += 1
            if not self._series.replicas.place(node):
                self._series = None

    def bind_identical(
        self,
        rows: IntArray,
        pick: Pick,
        ties: list[ClusterRows] | None = None,
        seen: Callable[[int], None] = lambda _: None,
        *,
        ends: bool = False,
    ) -> ClusterRows:
        """Decide about identical pending pods, and assign them, one after the other. Return (pod,) the nodes of the
        first of them; if these are fewer, `decide` continues. `ties` gets the nodes that share the highest total, of
        which `pick` picks one; `seen` gets the number of pods so far. `ends`: no more of these pods follow."""
        series, question = None, (int(rows[0]) if len(rows) else -1, self.cluster.version)
        if len(rows) and not self._has_claims(self.cluster.pods.specs[question[0]]):
            series = self._series_with(question[0]) if self._repeated_decision(question[0]) is None else None
        if series is None:
            self._unknown = question
            return cluster_rows([])
        nodes, goes_on = series.replicas.place_many(len(rows), pick, ties, seen, ends=ends)
        if len(nodes):
            self.cluster.place_many(rows[: len(nodes)], nodes)
            series.moves += len(nodes)
        else:
            self._unknown = question
        if not goes_on:
            self._series = None
        return nodes

    def _has_claims(self, spec: PodSpec) -> bool:
        return bool(spec.mounts_storage or spec.resource_claims or self.snapshot.devices.provides_request(spec))

    def _begin_series(self, row: int, then: int | None) -> None:
        """Keep the results for the last decided pod if the next pod is identical, or such a pod was decided before."""
        class_key = self.equivalence_key(row)
        if class_key is None or class_key.fit is None:
            return
        goes_on = then is not None and self._is_of(class_key, then)
        if not (goes_on or class_key.fit in self._recurring):
            self._recurring.add(class_key.fit)
            return
        own = self._classes.get(class_key)
        standing = None if own is None or self.cluster.pods.nominations else own.shared_results(row)
        if standing is not None:
            if len(self._standings) >= max(_MOST_STANDING_ROWS // len(self.cluster.node_names), 1):
                del self._standings[next(iter(self._standings))]
            self._standings[class_key.fit] = standing
            self._series = self._next_series(row) if goes_on else None

    def _bind_claims(self, pod: Pod, node: ClusterRow) -> None:
        framework = self.scheduler.framework(self._profile_named(pod.spec.scheduler_name))
        if framework is not None:
            for bound in list(binding_effects(framework, pod, node)):
                self.cluster.set_storage(bound.storage)
                self.cluster.set_device_claims(bound.devices, node)

    def evict(self, row: int, *, waits: bool) -> None:
        """Evict a pod, and release the devices that only it uses. If `waits`, its controller recreates it, pending."""
        if (devices := self.snapshot.devices).claims:
            self.cluster.set_device_claims(devices.released_by({self.cluster.pods.key(row)}))
        self.cluster.remove(row, waits=waits)

    def delete(self, row: int) -> None:
        """Delete a running or pending pod for good, with the claims generated for it, and release the devices that
        only it uses."""
        if (devices := self.snapshot.devices).claims:
            self.cluster.set_device_claims(devices.changed_by_deletion({self.cluster.pods.key(row)}))
        self.cluster.delete(row)

    def release(self, claims: Mapping[str, ResourceClaim | None]) -> bool:
        """Change device claims that are deallocated from an unschedulable pod (`PostFilterResult.released`). Return
        False if nothing changes."""
        devices = self.snapshot.devices
        changed = {key: claim for key, claim in claims.items() if claim != devices.claims.get(key)}
        if changed:
            self.cluster.set_device_claims(changed)
        return bool(changed)

    def runs_permit(self, row: int, plugin: str) -> bool:
        """Return whether a Permit plugin of this name runs for the pod. Raises `ConfigError`."""
        framework = self.scheduler.framework(self.profile_of(row))
        return framework is not None and any(it.name == plugin for it in framework.plugins("permit", PermitPlugin))

    def profile_of(self, row: int) -> Profile:
        """Return the profile that schedules a pod. Raises `ConfigError`."""
        return self._profile_named(self.cluster.pods.specs[row].scheduler_name)

    def _profile_named(self, scheduler_name: str) -> Profile:
        return self._profile or self.scheduler.config.profile_for(scheduler_name)

    def has_profile(self, row: int) -> bool:
        """Return whether this scheduler schedules a pod, rather than one with another name."""
        name = self.cluster.pods.specs[row].scheduler_name
        return self._profile is not None or any(name == each.scheduler_name for each in self.scheduler.config.profiles)

    def _class(
        self, row: int, profile: Profile | None = None, placement: ClusterRows | None = None
    ) -> EquivalenceClass | None:
        """Return the class of a pod, or one of its own; None for a scheduler from before the framework."""
        scheduler, pods = self.scheduler, self.cluster.pods
        profile = profile or self.profile_of(row)
        framework = scheduler.framework(profile)
        if framework is None:
            return None
        key = self._key(row, profile, framework)
        if key is None:
            return EquivalenceClass(framework, pods[row], placement=placement, preempts=self._preempts)
        if placement is not None:
            number = self._placements.setdefault(placement.tobytes(), len(self._placements))
            key = EquivalenceKey((*key.common, number), key.distinct)
        own = self._classes.pop(key, None)
        if own is None:
            own = self._beginning_with_another(key, pods[row], framework)
            own = own or EquivalenceClass(framework, pods[row], pods.steps, placement, preempts=self._preempts)
            if len(self._classes) >= max(_MOST_ROWS // max(len(self.cluster.node_names), 1), 1):
                del self._classes[next(iter(self._classes))]
        self._classes[key] = own
        self._latest[key.common] = key
        return own

    def _key(self, row: int, profile: Profile, framework: Framework) -> EquivalenceKey | None:
        pods, made_for = self.cluster.pods, self.snapshot.devices.extended_resource_claims
        tried_before = bool(made_for) and (pods.names[row], pods.uids[row]) in made_for
        # extenders are called, or missing, for each pod, and unknown plugins may distinguish any pods
        is_own = bool(self.scheduler.config.extenders) or bool(profile.unknown) or tried_before
        return None if is_own else self._keys.key(row, framework)

    def equivalence_key(self, row: int) -> EquivalenceKey | None:
        """Return a key that is equal for pods with the same decision as long as nothing moves; None if the pod is
        decided by itself."""
        profile = self.profile_of(row)
        framework = self.scheduler.framework(profile)
        return None if framework is None else self._key(row, profile, framework)

    def _beginning_with_another(self, key: EquivalenceKey, pod: Pod, framework: Framework) -> EquivalenceClass | None:
        """The class, copied from one that differs only in the objects behind its claims; None if there is none."""
        latest = self._latest.get(key.common)
        known = None if latest is None else self._classes.get(latest)
        if latest is None or known is None:
            return None
        plugins = self._keys.plugins(framework)
        pairs = zip(plugins, latest.distinct, key.distinct, strict=True)
        return known.copy_without(pod, [plugin.name for plugin, its, own in pairs if its != own])
