"""The extension points of the scheduling framework, and the state that plugins keep between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeAlias, TypeVar, cast

from msgspec import Struct

from kschedx.findings import Explained
from kschedx.framework.status import SKIP, SUCCESS, Candidate, FilterOutcome, Status, Verdicts
from kschedx.kube.devices import ResourceClaim
from kschedx.kube.types import Pod
from kschedx.releases import Release
from kschedx.snapshot.columns import BoolArray, ClusterRow, ClusterRows, IntArray
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.storage import StorageChange

if TYPE_CHECKING:
    from kschedx.framework.extenders import Extenders, PreemptResult

_T = TypeVar("_T")


class StateKey(Generic[_T]):
    """A plugin's own key, with the type of the value that it stores."""

    __slots__ = ("missing", "name")

    def __init__(self, name: str, missing: str = 'reading "{}" from cycleState: not found') -> None:
        """`missing` is the plugin's error if nothing is stored; `{}` stands for the name."""
        self.name = name
        self.missing = missing.format(name)


class NotPreparedError(Exception):
    """A plugin reads what its PreFilter or PreScore would have written, but that did not run or is not enabled.

    `str()` is kube-scheduler's message.
    """


class CycleState:
    """The state of one cycle, which PreFilter and PreScore write and later extension points read. Values never change
    in place: a change writes a new value, so that a clone is cheap and independent."""

    __slots__ = ("_values", "skip_filter", "skip_score")

    def __init__(self) -> None:
        self._values: dict[StateKey[object], object] = {}
        self.skip_filter: frozenset[str] = frozenset()  # plugins whose PreFilter returned Skip
        self.skip_score: frozenset[str] = frozenset()  # plugins whose PreScore returned Skip

    def __getitem__(self, key: StateKey[_T]) -> _T:
        """Return the stored value. Raises `NotPreparedError` if there is none."""
        try:
            return cast(_T, self._values[cast("StateKey[object]", key)])
        except KeyError:
            raise NotPreparedError(key.missing) from None

    def __setitem__(self, key: StateKey[_T], value: _T) -> None:
        self._values[cast("StateKey[object]", key)] = value

    def __contains__(self, key: StateKey[_T]) -> bool:
        return key in self._values

    def discard(self, key: StateKey[_T]) -> None:
        self._values.pop(cast("StateKey[object]", key), None)

    def clone(self) -> CycleState:
        other = CycleState()
        other._values = dict(self._values)
        other.skip_filter, other.skip_score = self.skip_filter, self.skip_score
        return other


# The extension points of the scheduling framework, each a Protocol-like base class.
#
# Names and arguments are upstream's in snake_case (staging/src/k8s.io/kube-scheduler/framework/interface.go). The only
# difference: a plugin gets *the nodes*, not *a node*, and returns the results for all of them at once.
#
# The order of a cycle: PreEnqueue, (QueueSort), PreFilter, Filter, PostFilter if no node is feasible, PreScore, Score,
# NormalizeScore, Reserve, Permit, PreBind, Bind, PostBind. The points after the choice of a node are dry: they return
# what would happen.


class Handle(Protocol):
    """The framework's interface for plugins."""

    @property
    def snapshot(self) -> Snapshot: ...

    @property
    def release(self) -> Release: ...

    @property
    def nodes(self) -> NodeTable:
        """All nodes of the cluster, in their current state."""
        ...

    @property
    def nominated(self) -> Mapping[ClusterRow, tuple[int, ...]]:
        """Node to rows of the pods that are nominated for it and belong to this scheduler."""
        ...

    @property
    def extenders(self) -> Extenders | None:
        """The configured extenders; None if there are none, and in trials."""
        ...

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> NodeTable:
        """Add pods to their nodes and call every PreFilter plugin, which updates `state`. Return the changed nodes.

        Raises `NotPreparedError` if a plugin's PreFilter did not run.
        """
        ...

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> NodeTable:
        """Remove pods from nodes and call every PreFilter plugin, which updates `state`. Return the changed nodes."""
        ...

    def far_filters(self, state: CycleState, pod: Pod) -> Sequence[FilterPlugin]:
        """Return the Filter plugins that run and whose verdict on a node may depend on the pods of other nodes."""
        ...

    def room(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows | None = None) -> Room | None:
        """Return, as bounds on sums, how the pods of a node determine whether `pod` passes there; None if it cannot be
        expressed so. With `change`, only these pods are removed and added; nodes that other plugins reject do not
        count."""
        ...

    def passes_filters(self, state: CycleState, pod: Pod, nodes: NodeTable) -> FilterOutcome:
        """Run all Filter plugins with the two passes for nominated pods (RunFilterPluginsWithNominatedPods)."""
        ...


class Room(Struct, frozen=True, kw_only=True):
    """A Filter rule that only bounds sums over the pods of a node: it passes if each sum is at most its limit."""

    limit: IntArray  # (node, sum)
    used: IntArray  # (node, sum)
    sums: Callable[[NodeTable], IntArray]  # return `used` of other tables of the cluster
    weights: Callable[[IntArray], IntArray]  # return (pod, sum) what each pod adds, for rows of the PodTable


class Touch(Enum):
    """Which results of a plugin for a pod may change if another pod is added to a node or removed from it."""

    NOTHING = auto()  # None: the plugin does not read existing pods
    NODE = auto()
    """Those of that node: Filter and Score of a node read only the pods on it; PreFilter and PreScore read none."""
    CLUSTER = auto()  # any


class Following(ABC):
    """The results of a plugin that every move affects, while identical pods are assigned and nothing else changes.

    Arrays are (node,) over the whole cluster, and change in place.
    """

    rejected: BoolArray | None = None  # whether Filter rejects a node; None if it never rejects any
    raw: IntArray | None = None  # raw scores, valid for nodes that the pod fits; None if the plugin never scores

    @abstractmethod
    def place(self, node: ClusterRow) -> bool:
        """Count one more of the pods on a node, and return whether `rejected` may have changed."""

    def fit(self, feasible: ClusterRows) -> bool:
        """Set the nodes that the pod fits now, ascending. Called first, and whenever these nodes change. Return False
        if the plugin cannot be followed any longer."""
        return True

    def normalized(self, scores: IntArray) -> IntArray:
        """Normalize raw scores that include the lowest and the highest one of the feasible nodes."""
        return scores


Texts: TypeAlias = Mapping[str, tuple[str, ...]]
"""The id of a status' explanation to its possible texts, as format strings; `{subject}` is what a text is about."""


class _Whole(Enum):
    """Stands for the whole pod except name and uid, in place of what a plugin reads of it."""

    WHOLE = auto()


WHOLE = _Whole.WHOLE


class Plugin(ABC):
    """A scheduling plugin. `name` is upstream's. Each profile constructs it once, with its arguments and the handle."""

    name: ClassVar[str]
    reasons: ClassVar[Mapping[str, Explained]] = {}
    """What `kschedx reason` prints about the plugin's own findings, by their id; for plugins of other packages."""
    texts: ClassVar[Texts] = {}
    reads_sums: ClassVar[bool] = False
    """Whether a plugin that `touches` a node reads only the sums in the table of nodes, and nothing else of the
    pods."""
    touch: ClassVar[Touch] = Touch.CLUSTER  # what `touches` returns for every pod

    def __init__(self, args: object, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def args_about(self, pod: Pod) -> object:
        """Return the plugin's arguments that matter for `pod`: if these are equal, so are all of its results."""
        return self.args

    def touches(self, pod: Pod) -> Touch:
        """Return which results for `pod` a move in the cluster can change; the others need not be evaluated again.

        Anything less than CLUSTER also states that PreScore and Score do not depend on which nodes are feasible, and
        that pods which differ only in name and uid get equal results.
        """
        return self.touch

    def follow(self, state: CycleState, pod: Pod, row: int) -> Following | None:
        """Return how the results change while identical pods are assigned; None if each pod must be evaluated.

        `state` belongs to a cycle in which the pod, a row of the PodTable, fits; nothing has moved since. Called only
        if the plugin `touches` the cluster.
        """
        return None

    def reads(self, pod: Pod) -> Hashable:
        """Return everything that the plugin reads of `pod`, which has no claims and mounts no storage.

        Pods are of one equivalence class if every plugin of the profile returns an equal value for them. The plugin's
        results for them, `touches` included, are then equal, now and after any move. The default is the whole pod
        except its name and uid.
        """
        return WHOLE

    def distinguishes_by(self, pod: Pod) -> Hashable:
        """Return what the plugin reads of `pod` that pods of a class need not have in common: the objects behind its
        volumes.

        Pods may differ only in their names and uids, the names of their claims, and the labels that number them. Such
        pods are one class if every plugin of the profile returns an equal value for them. The plugin's results for them
        are then equal, now and after any move. By default, such pods are distinguished by name if the plugin reads
        other pods.
        """
        return pod.key if self.touches(pod) is Touch.CLUSTER else None


class PreEnqueuePlugin(Plugin):
    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status:
        """Return whether the pod may enter the queue. The first status that is not Success keeps it out."""


class QueueSortPlugin(Plugin):
    is_by_priority: ClassVar[bool] = False  # whether `sort_key` is (-priority, since)

    @abstractmethod
    def sort_key(self, pod: Pod, since: str) -> tuple[object, ...]:
        """Return the key by which the queue orders pods, ascending; pods with equal keys stay in order of arrival.

        `since` sorts like the time at which the pod entered the queue. A snapshot only has its creation time.
        """


class PreFilterResult(Struct, frozen=True, kw_only=True):
    """The result of PreFilter: a status, and on success the names of the nodes to consider, or None for all."""

    status: Status = SUCCESS
    nodes: frozenset[str] | None = None


PRE_FILTER_SKIP = PreFilterResult(status=SKIP)


class PreFilterPlugin(Plugin):
    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        """Check the pod once per cycle, with all nodes of the cluster. Skip: this plugin's Filter is not called.

        UnschedulableAndUnresolvable and Error end the phase. Unschedulable ends it after the other plugins have run.
        """

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        """Write to `state` what `filter` must see after `change` has been added. Each node sees only its own pods.

        `nodes` is the table before the change. Called only between PreFilter and Filter, on a clone of the state, and
        not if PreFilter returned Skip.
        """

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        """Reverse `add_pods`; removing what was added restores the state."""


class FilterPlugin(Plugin):
    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        """Return a status for each row of `nodes`, which may be a part of the cluster, with pods added or removed."""

    def room(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Room | None:
        """Return the whole rule as bounds on sums, if it has that form. It only makes preemption faster."""
        return None

    def reads_any(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> bool:
        """Return whether `filter` can change on a node if some of these pods are removed from it or added to it. It
        only makes preemption faster."""
        return True


class PostFilterPlugin(Plugin):
    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status
    ) -> PostFilterResult:
        """Handle a pod that has no feasible node. `outcome` is Filter's on `nodes` (those that PreFilter returned; all
        others are UnschedulableAndUnresolvable), or the status with which PreFilter rejected the pod on every node."""


class PostFilterResult(Struct, frozen=True, kw_only=True):
    status: Status
    candidates: tuple[Candidate, ...] = ()  # all nodes where preemption would help, in node order
    best: tuple[ClusterRow, ...] = ()  # the nodes that tie for the best candidate after all of upstream's criteria
    nominated_node: ClusterRow | None = None  # the node that is nominated, if that is not random
    dry_run: Verdicts | None = None
    """For every node of the cluster: Success for a candidate, otherwise why evicting pods does not help there. None if
    there was no dry run."""
    candidate_limit: int | None = None
    """The number of candidates after which kube-scheduler stops. If there are more, it tries the nodes from a random
    one on until it has found so many."""
    preempted: PreemptResult | None = None  # the extenders' result for the candidates, if any extender was called
    released: Mapping[str, ResourceClaim | None] = {}
    """Device claims, by `namespace/name`, that are deallocated so that a later try can succeed, in their new state;
    None for a deleted claim."""


class PreScorePlugin(Plugin):
    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        """Prepare scoring, once per cycle, with the feasible nodes. Skip: this plugin does not score."""


class ScorePlugin(Plugin):
    normalizes_by_extremes: ClassVar[bool] = False
    """Whether `normalize_score` computes each score only from itself, the lowest one, and the highest one."""
    scores_preferences: ClassVar[bool] = False
    """Whether it scores the preferences of pods, and not those of the cluster's administrator."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        """Return (node,) int64 raw scores of the feasible nodes."""

    def scorer(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Callable[[NodeTable], IntArray]:
        """Return a function that scores parts of the cluster while pods are added and removed, but `nodes`, all nodes
        of the cluster, do not change. It only makes placing replicas faster."""
        return partial(self.score, state, pod)

    def normalize_score(self, state: CycleState, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        """Return (node,) int64 scores in 0..100. Plugins without NormalizeScore return them unchanged."""
        return scores


class PlacementScorePlugin(Plugin):
    """Scores sets of nodes that a whole pod group fits."""

    @abstractmethod
    def score_placement(self, pods: Sequence[Pod], nodes: NodeTable) -> int:
        """Return 0..100 for a placement, with the pods of the group that fit there; none of them is on its node yet."""


class BindingEffect(Struct, frozen=True, kw_only=True):
    """The changes in a cluster, besides the pod itself, when a pod is bound to a node."""

    storage: StorageChange = StorageChange()
    devices: Mapping[str, ResourceClaim] = {}  # `namespace/name` to the changed claims


NOTHING_BOUND = BindingEffect()


class ReservePlugin(Plugin):
    def reserve(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        """Return what would be reserved on the chosen node, as findings."""
        return SUCCESS

    def bound(self, state: CycleState, pod: Pod, node: ClusterRow) -> BindingEffect:
        """Return what this plugin binds or allocates for the pod, for a simulation in which PreBind and the controllers
        that wait for it are done."""
        return NOTHING_BOUND

    def unreserve(self, state: CycleState, pod: Pod, node: ClusterRow) -> None:
        """Undo `reserve` after a plugin's Reserve or a later step failed; called in reverse order of the plugins."""


class PermitPlugin(Plugin):
    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status: ...


class PreBindPlugin(Plugin):
    @abstractmethod
    def pre_bind(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status: ...


class BindPlugin(Plugin):
    @abstractmethod
    def bind(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        """Bind the pod. Skip passes it to the next Bind plugin."""


class PostBindPlugin(Plugin):
    @abstractmethod
    def post_bind(self, state: CycleState, pod: Pod, node: ClusterRow) -> None: ...
