"""The extension points of the scheduling framework, and what plugins remember between them."""

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
    from kschedx.framework.extenders import Extenders, Preempted

# CycleState: what plugins remember between the extension points of one cycle.

T = TypeVar("T")


class StateKey(Generic[T]):
    """A plugin's own key, which carries the type of what it stores."""

    __slots__ = ("missing", "name")

    def __init__(self, name: str, missing: str = 'reading "{}" from cycleState: not found') -> None:
        """`missing` is how the plugin words that nothing is stored; `{}` stands for the name."""
        self.name = name
        self.missing = missing.format(name)


class NotPreparedError(Exception):
    """A plugin reads what its PreFilter or PreScore would have written: that did not run, or was not enabled.

    `str()` is what kube-scheduler says.
    """


class CycleState:
    """Written in PreFilter and PreScore, read afterwards. Values are never changed in place: a change writes a new
    value, so that a clone is cheap and independent."""

    __slots__ = ("_values", "skip_filter", "skip_score")

    def __init__(self) -> None:
        self._values: dict[StateKey[object], object] = {}
        self.skip_filter: frozenset[str] = frozenset()
        """Plugins whose PreFilter returned Skip."""
        self.skip_score: frozenset[str] = frozenset()
        """Plugins whose PreScore returned Skip."""

    def __getitem__(self, key: StateKey[T]) -> T:
        """What was stored. Raises `NotPreparedError` where nothing was."""
        try:
            return cast(T, self._values[cast("StateKey[object]", key)])
        except KeyError:
            raise NotPreparedError(key.missing) from None

    def __setitem__(self, key: StateKey[T], value: T) -> None:
        self._values[cast("StateKey[object]", key)] = value

    def __contains__(self, key: StateKey[T]) -> bool:
        return key in self._values

    def discard(self, key: StateKey[T]) -> None:
        self._values.pop(cast("StateKey[object]", key), None)

    def clone(self) -> CycleState:
        other = CycleState()
        other._values = dict(self._values)
        other.skip_filter, other.skip_score = self.skip_filter, self.skip_score
        return other


# The extension points of the scheduling framework, a Protocol-like base class each.
#
# Names and arguments are upstream's in snake_case (staging/src/k8s.io/kube-scheduler/framework/interface.go). The one
# change: a plugin is given *the nodes*, not *a node*, and answers for all of them at once.
#
# The order of a cycle: PreEnqueue, (QueueSort), PreFilter, Filter, PostFilter where nothing fits, PreScore, Score,
# NormalizeScore, Reserve, Permit, PreBind, Bind, PostBind. Points after the choice are dry: they say what would
# happen.


class Handle(Protocol):
    """What plugins may ask of the framework."""

    @property
    def snapshot(self) -> Snapshot: ...

    @property
    def release(self) -> Release: ...

    @property
    def nodes(self) -> NodeTable:
        """All nodes of the cluster, as they are."""
        ...

    @property
    def nominated(self) -> Mapping[ClusterRow, tuple[int, ...]]:
        """Node to rows of the pods that are nominated for it and belong to this scheduler."""
        ...

    @property
    def extenders(self) -> Extenders | None:
        """Those of the configuration; None without any, and in what is only tried."""
        ...

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> NodeTable:
        """Put pods on their nodes and inform every PreFilter plugin, which updates `state`. Returns the changed nodes.

        Raises `NotPreparedError` where a plugin's PreFilter did not run.
        """
        ...

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> NodeTable:
        """Remove pods from their nodes and inform every PreFilter plugin, which updates `state`."""
        ...

    def room(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Room | None:
        """All that depends on the pods of a node in whether `pod` passes there, as bounds on sums; None where that has
        no such form."""
        ...

    def passes_filters(self, state: CycleState, pod: Pod, nodes: NodeTable) -> FilterOutcome:
        """All Filter plugins with the two passes for nominated pods (RunFilterPluginsWithNominatedPods)."""
        ...


class Room(Struct, frozen=True, kw_only=True):
    """A rule of Filter that only bounds sums over the pods of a node: it passes where each is at most its limit."""

    limit: IntArray
    """(node, sum)"""
    used: IntArray
    """(node, sum)"""
    sums: Callable[[NodeTable], IntArray]
    """`used` of other tables of the cluster."""
    weights: Callable[[IntArray], IntArray]
    """Rows of the PodTable to (pod, sum) what each pod adds."""


class Touch(Enum):
    """How far it reaches into what a plugin says about a pod, when another pod comes to a node or leaves it."""

    NOTHING = auto()
    """The plugin does not look at pods that run."""
    NODE = auto()
    """Filter and Score of a node read the pods on that node alone; PreFilter and PreScore read none."""
    CLUSTER = auto()
    """Anything may change."""


class Following(ABC):
    """What a plugin that every move touches says of a pod while identical pods are placed and nothing else moves.

    Arrays are (node,) over the whole cluster, and change in place.
    """

    rejected: BoolArray | None = None
    """Whether Filter rejects a node; None where it rejects none, whatever comes."""
    raw: IntArray | None = None
    """Raw scores, meaningful where the pod fits; None where the plugin does not score, whatever comes."""

    @abstractmethod
    def place(self, node: ClusterRow) -> bool:
        """One more of the pods is on a node. Whether `rejected` may have changed."""

    def fit(self, feasible: ClusterRows) -> bool:
        """The pod fits on these nodes now, ascending; called first, and where that changes. False where this plugin can
        be followed no longer."""
        return True

    def normalized(self, scores: IntArray) -> IntArray:
        """Raw scores normalized, among which are the lowest and the highest one of the feasible nodes."""
        return scores


Texts: TypeAlias = Mapping[str, tuple[str, ...]]
"""The id of what explains a status to what it can say, as format strings: `{subject}` is what a text is about."""


class Whole(Enum):
    """In place of what a plugin reads of a pod: all of it, but for name and uid."""

    WHOLE = auto()


WHOLE = Whole.WHOLE


class Plugin(ABC):
    """A scheduling plugin. `name` is upstream's; constructed once per profile with its args and the handle."""

    name: ClassVar[str]
    reasons: ClassVar[Mapping[str, Explained]] = {}
    """What `kschedx reason` says of the plugin's own findings, by their id; for plugins of other packages."""
    texts: ClassVar[Texts] = {}
    """What its statuses say."""
    reads_sums: ClassVar[bool] = False
    """Where the plugin `touches` a node, it reads of the node's pods nothing but the sums in the table of nodes."""

    def __init__(self, args: object, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def args_about(self, pod: Pod) -> object:
        """Of the plugin's arguments what decides about `pod`: where that is equal, so is all that the plugin says."""
        return self.args

    def touches(self, pod: Pod) -> Touch:
        """What a move in the cluster can change for `pod`, so that the rest need not be evaluated again.

        Less than CLUSTER also says that PreScore and Score do not depend on which nodes are feasible, and that pods
        which differ only in name and uid get equal results.
        """
        return Touch.CLUSTER

    def follow(self, state: CycleState, pod: Pod, row: int) -> Following | None:
        """How the plugin goes on while pods like this one are placed; None where it has to be asked about each.

        `state` is that of a cycle in which the pod, a row of the PodTable, fits; nothing has moved since. Called where
        the plugin `touches` the cluster.
        """
        return None

    def reads(self, pod: Pod) -> Hashable:
        """All that the plugin reads of `pod`, which has no claims and mounts no storage.

        Pods are of one class where every plugin of the profile returns an equal value for them; its results for them,
        `touches` included, are then equal, now and after any move. By default that is the whole pod but for its name.
        """
        return WHOLE

    def tells_apart(self, pod: Pod) -> Hashable:
        """What the plugin reads of `pod` that pods of a class need not have in common: what is behind its volumes.

        Pods that differ only in the names of their claims, in their own names and uids, and in the labels that number
        them are one class where every plugin of the profile returns an equal value for them; its results for them are
        then equal, now and after any move. By default such pods are distinguished by their names where the plugin reads
        other pods.
        """
        return pod.key if self.touches(pod) is Touch.CLUSTER else None


class PreEnqueuePlugin(Plugin):
    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status:
        """Whether the pod may enter the queue at all. The first status that is not Success keeps it out."""


class QueueSortPlugin(Plugin):
    is_by_priority: ClassVar[bool] = False
    """`sort_key` is (-priority, since)."""

    @abstractmethod
    def sort_key(self, pod: Pod, since: str) -> tuple[object, ...]:
        """The queue takes pods in ascending order of this key, and equal ones as they came.

        `since` sorts as the time when the pod came into the queue: a snapshot knows its creation instead.
        """


class PreFilterResult(Struct, frozen=True, kw_only=True):
    """What PreFilter returns: a status, and on success the names of the nodes that can be considered, or None for
    all."""

    status: Status = SUCCESS
    nodes: frozenset[str] | None = None


PRE_FILTER_SKIP = PreFilterResult(status=SKIP)


class PreFilterPlugin(Plugin):
    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        """Called once per cycle with all nodes of the cluster. Skip: this plugin's Filter is not called.

        UnschedulableAndUnresolvable and Error end the phase; Unschedulable lets the other plugins run and then ends it.
        """

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        """`change` has been added: write to `state` what `filter` must see. Each node sees only its own pods.

        `nodes` is the table before the change. Called only between PreFilter and Filter, on a clone of the state, and
        not at all where PreFilter returned Skip.
        """

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        """The reverse of `add_pods`; removing what was added restores the state."""


class FilterPlugin(Plugin):
    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        """A status for each row of `nodes`, which may be a part of the cluster, with pods added or removed."""

    def room(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Room | None:
        """The whole rule as bounds on sums, where it is that; it makes preemption fast, and nothing else depends on
        it."""
        return None


class PostFilterPlugin(Plugin):
    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status
    ) -> PostFilterResult:
        """Called where no node is feasible. `outcome` is Filter's on `nodes` (the nodes that PreFilter left in; all
        others are UnschedulableAndUnresolvable), or the status with which PreFilter rejected the pod on every node."""


class PostFilterResult(Struct, frozen=True, kw_only=True):
    status: Status
    candidates: tuple[Candidate, ...] = ()
    """Every node where preemption would help, in node order."""
    best: tuple[ClusterRow, ...] = ()
    """The nodes that tie for the best candidate after all of upstream's criteria."""
    nominated_node: ClusterRow | None = None
    """The node that is nominated, where that is not a matter of chance."""
    dry_run: Verdicts | None = None
    """For every node of the cluster: Success for a candidate, otherwise why evicting pods makes no room there. None
    where this was not tried."""
    candidate_limit: int | None = None
    """How many candidates kube-scheduler is content with. Where there are more, it tries the nodes from a random one on
    and stops at that number."""
    preempted: Preempted | None = None
    """What extenders made of the candidates, where some were asked."""
    released: Mapping[str, ResourceClaim | None] = {}
    """Device claims, by `namespace/name`, that are taken back so that a later try can succeed, as they are left; None
    for one that is deleted."""


class PreScorePlugin(Plugin):
    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        """Called once with the feasible nodes. Skip: this plugin does not score."""


class ScorePlugin(Plugin):
    normalizes_by_extremes: ClassVar[bool] = False
    """`normalize_score` makes each score from itself, the lowest and the highest one, and reads nothing else."""
    scores_preferences: ClassVar[bool] = False
    """It scores what pods prefer, and not what the cluster's owner does."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        """(node,) int64 raw scores of the feasible nodes."""

    def scorer(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Callable[[NodeTable], IntArray]:
        """`score` of parts of the cluster while pods come and go, but `nodes`, all of it, do not change. It makes
        replicas fast, and nothing else depends on it."""
        return partial(self.score, state, pod)

    def normalize_score(self, state: CycleState, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        """(node,) int64 scores in 0..100. Plugins without NormalizeScore return them as they are."""
        return scores


class PlacementScorePlugin(Plugin):
    """Scores sets of nodes on which a whole pod group fits."""

    @abstractmethod
    def score_placement(self, pods: Sequence[Pod], nodes: NodeTable) -> int:
        """0..100 for a placement, with the pods of the group that fit there; none of them is on its node yet."""


class BindingEffect(Struct, frozen=True, kw_only=True):
    """What changes in a cluster when a pod is bound to a node, besides the pod."""

    storage: StorageChange = StorageChange()
    devices: Mapping[str, ResourceClaim] = {}
    """`namespace/name` to the claims that are others now."""


NOTHING_BOUND = BindingEffect()


class ReservePlugin(Plugin):
    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        """Say what would be reserved on the chosen node, as findings."""

    def bound(self, state: CycleState, pod: Pod, node: ClusterRow) -> BindingEffect:
        """What this plugin binds or allocates for the pod. For a simulation, in which PreBind and the controllers that
        wait for it have happened."""
        return NOTHING_BOUND

    def unreserve(self, state: CycleState, pod: Pod, node: ClusterRow) -> None:
        """Undo `reserve`, in reverse order of the plugins, after any of them failed."""


class PermitPlugin(Plugin):
    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status: ...


class PreBindPlugin(Plugin):
    @abstractmethod
    def pre_bind(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status: ...


class BindPlugin(Plugin):
    @abstractmethod
    def bind(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        """Skip passes the pod to the next Bind plugin."""


class PostBindPlugin(Plugin):
    @abstractmethod
    def post_bind(self, state: CycleState, pod: Pod, node: ClusterRow) -> None: ...
