"""What a reader has to know to trust an answer, as facts: a struct for each note."""

from __future__ import annotations

from enum import Enum, auto
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from kschedx.apiserver.admission import AdmissionChange
from kschedx.findings import Finding
from kschedx.framework.cycle import Outcome, Unevaluated
from kschedx.kube.documents import camel, plain
from kschedx.snapshot.snapshot import Missing

# What all notes share.


class NoteFacts(Struct, frozen=True, kw_only=True):
    id: ClassVar[str]
    """Stable; two notes about the same matter share it."""

    told: ClassVar[tuple[str, ...]] = ()
    """Fields that the document carries beside the id and the text."""

    @property
    def facts(self) -> dict[str, object]:
        """In JSON's types, keys in camelCase."""
        return {camel(name): plain(getattr(self, name)) for name in self.told}


# What the API server changes on a manifest before kube-scheduler sees the pod, and what of that is not known.

ROUTINE = "admission-routine"
"""The id of notes about what happens to every pod, or what the manifest itself asks for."""


class RuntimeClassUnknown(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "missing-kind"
    runtime_class: str


class AdmissionPluginOff(NoteFacts, frozen=True, kw_only=True):
    """An annotation of the namespace that counts only for an API server that runs an optional plugin."""

    id: ClassVar[str] = "admission-plugin-off"
    told: ClassVar[tuple[str, ...]] = ("plugin", "annotation")
    namespace: str
    annotation: str
    plugin: str


class PodSecurityUnread(NoteFacts, frozen=True, kw_only=True):
    """A namespace that enforces a Pod Security Standard, where it cannot be known if a pod keeps to it."""

    id: ClassVar[str] = "pod-security"
    told: ClassVar[tuple[str, ...]] = ("namespace", "level")
    namespace: str
    level: str
    """`baseline` or `restricted`, as its label says."""
    is_cut: bool
    """The pod's template is of a snapshot that holds what scheduling reads; otherwise SecurityContextConstraints fill
    in what the pod does not say."""


class PodSecurityRefusesMore(NoteFacts, frozen=True, kw_only=True):
    """A workload that has pods, and would get no other."""

    id: ClassVar[str] = "pod-security-refuses-more"
    told: ClassVar[tuple[str, ...]] = ("namespace", "refusal")
    namespace: str
    refusal: str
    """In the API server's words."""


class PodSecurityWarning(NoteFacts, frozen=True, kw_only=True):
    """What the API server warns of and lets in."""

    id: ClassVar[str] = "pod-security-warning"
    told: ClassVar[tuple[str, ...]] = ("namespace", "warning")
    namespace: str
    warning: str
    """As kubectl prints it."""
    workload: str = ""
    """Its kind, where it is let in and its pods are not; empty for what is let in."""


class Admitted(NoteFacts, frozen=True, kw_only=True):
    """What one plugin changed because of one object."""

    id: ClassVar[str] = "admission"
    plugin: str
    source: str
    """`LimitRange shop/defaults`; empty where the plugin needs none."""
    changes: tuple[AdmissionChange, ...]

    @property
    def facts(self) -> dict[str, object]:
        return {
            "plugin": self.plugin,
            "source": self.source,
            "changes": [
                {"container": one.container, "item": one.item, "before": one.before, "after": one.after}
                for one in self.changes
            ],
        }


class AdmittedAsEveryPod(Admitted, frozen=True, kw_only=True):
    id: ClassVar[str] = ROUTINE


class DefaultPriority(Admitted, frozen=True, kw_only=True):
    """The cluster's default PriorityClass, which the manifest does not name."""

    priority: int | None


class NamedPriority(Admitted, frozen=True, kw_only=True):
    """The PriorityClass that the manifest names."""

    id: ClassVar[str] = ROUTINE
    priority: int | None


AdmissionNote: TypeAlias = (
    RuntimeClassUnknown
    | AdmissionPluginOff
    | PodSecurityUnread
    | PodSecurityRefusesMore
    | PodSecurityWarning
    | Admitted
    | AdmittedAsEveryPod
    | DefaultPriority
    | NamedPriority
)


# Claims that controllers make for a new pod.


class _ClaimsMade(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "claims-from-templates"
    claims: tuple[str, ...]
    """`namespace/name`."""
    first_attempt: str | None = None
    """What kube-scheduler says where it sees the pod before the claims; None where that was not asked."""

    @property
    def facts(self) -> dict[str, object]:
        return {"claims": list(self.claims)} | self._before

    @property
    def _before(self) -> dict[str, object]:
        return {} if self.first_attempt is None else {"firstAttempt": self.first_attempt}


class ClaimsOfController(_ClaimsMade, frozen=True, kw_only=True):
    """From the volumeClaimTemplates of the pod's StatefulSet."""


class ClaimsOfVolumes(_ClaimsMade, frozen=True, kw_only=True):
    """For generic ephemeral volumes."""


class ClaimsOfTemplates(_ClaimsMade, frozen=True, kw_only=True):
    """Of devices."""

    templates: tuple[str, ...]

    @property
    def facts(self) -> dict[str, object]:
        return {"claims": list(self.claims), "templates": list(self.templates)} | self._before


class ClaimNotMade(NoteFacts, frozen=True, kw_only=True):
    """Of a generic ephemeral volume: the pod is there, and waits for it."""

    id: ClassVar[str] = "claim-not-made"
    told: ClassVar[tuple[str, ...]] = ("claim", "refusal")
    claim: str
    """`namespace/name`."""
    refusal: str
    """The API server's words."""


class DeviceClaimNotMade(ClaimNotMade, frozen=True, kw_only=True):
    """Of devices: so it is with those of a template."""


ClaimsMade: TypeAlias = ClaimsOfController | ClaimsOfVolumes | ClaimsOfTemplates
ClaimNote: TypeAlias = ClaimsMade | ClaimNotMade | DeviceClaimNotMade


# Objects of the cluster that count differently than expected, or do not count.


class OrphanedPods(NoteFacts, frozen=True, kw_only=True):
    """They are on nodes that are not there."""

    id: ClassVar[str] = "orphans"
    told: ClassVar[tuple[str, ...]] = ("pods", "nodes")
    pods: tuple[str, ...]
    nodes: tuple[str, ...]


class FilesLeftOut(NoteFacts, frozen=True, kw_only=True):
    """No Kubernetes objects are in them."""

    id: ClassVar[str] = "left-out"
    told: ClassVar[tuple[str, ...]] = ("files",)
    files: tuple[str, ...]


class FinishedPods(NoteFacts, frozen=True, kw_only=True):
    """They count on their nodes, since the input holds what no API server would."""

    id: ClassVar[str] = "finished-pods"
    told: ClassVar[tuple[str, ...]] = ("pods",)
    pods: int


class Teller(Enum):
    """The source of the cluster's version."""

    SERVER = auto()
    KUBELETS = auto()
    MOST_KUBELETS = auto()


class ReleaseEmulated(NoteFacts, frozen=True, kw_only=True):
    """A version that only the cluster named."""

    id: ClassVar[str] = "release"
    teller: Teller
    version: str
    """`v1.33.4-gke.100`."""
    is_known: bool
    """Otherwise the nearest is emulated."""
    emulated: str
    """As the release calls itself."""
    is_measured: bool

    @property
    def facts(self) -> dict[str, object]:
        return {"serverVersion" if self.teller is Teller.SERVER else "kubeletVersion": self.version}


ClusterNote: TypeAlias = OrphanedPods | FilesLeftOut | FinishedPods | ReleaseEmulated


# How the cycle went: what was left out, what chance decides, what was not evaluated.


class UnknownPlugins(NoteFacts, frozen=True, kw_only=True):
    """The plugins that kschedx does not have."""

    id: ClassVar[str] = "unknown-plugin"
    left_out: tuple[Unevaluated, ...]
    stands: bool
    """The answer is the same whatever they would say."""

    @property
    def facts(self) -> dict[str, object]:
        return {"plugins": [one.name for one in self.left_out]}


class NotMeasured(NoteFacts, frozen=True, kw_only=True):
    """The release was never held against the real kube-scheduler."""

    id: ClassVar[str] = "not-measured"
    version: str


class Gated(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "gated"
    gates: tuple[str, ...]
    """Without gates of its own, the plugin that holds the pod."""


class BoundByHand(NoteFacts, frozen=True, kw_only=True):
    """spec.nodeName names the node."""

    id: ClassVar[str] = "bound-by-hand"
    node: str
    exists: bool
    refusals: tuple[str, ...] = ()
    """Reasons for which the node's kubelet would refuse the pod."""

    @property
    def is_taken(self) -> bool:
        """Nothing that is sure keeps the pod from the node."""
        return self.exists and not self.refusals


class NominatedNodeFirst(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "nominated-node-first"
    node: str


class Sampling(NoteFacts, frozen=True, kw_only=True):
    """kube-scheduler looks at a part of the cluster."""

    id: ClassVar[str] = "sampling"
    told: ClassVar[tuple[str, ...]] = ("nodes_to_find", "feasible")
    nodes_to_find: int
    feasible: int


class SingleFeasibleNode(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "single-feasible-node"


class Tie(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "tie"
    told: ClassVar[tuple[str, ...]] = ("nodes",)
    nodes: tuple[str, ...]
    takes_turns: bool
    """As releases before the framework do it; later ones draw lots."""


class NotReadyNodes(NoteFacts, frozen=True, kw_only=True):
    """Nodes that are chosen although they are not ready: kube-scheduler looks at taints, and they have none of that."""

    id: ClassVar[str] = "not-ready-node"
    told: ClassVar[tuple[str, ...]] = ("nodes",)
    nodes: tuple[str, ...]


class OtherOperatingSystem(NoteFacts, frozen=True, kw_only=True):
    """A node that is chosen runs another operating system than spec.os names: its kubelet rejects the pod."""

    id: ClassVar[str] = "other-operating-system"
    told: ClassVar[tuple[str, ...]] = ("node", "wanted", "actual")
    node: str
    wanted: str
    actual: str


class MixedArchitectures(NoteFacts, frozen=True, kw_only=True):
    """The nodes that fit differ in architecture, and an image may be built for one of them alone."""

    id: ClassVar[str] = "mixed-architectures"
    told: ClassVar[tuple[str, ...]] = ("architectures",)
    architectures: tuple[str, ...]


class AutoscalerUnreadable(NoteFacts, frozen=True, kw_only=True):
    """What cluster-autoscaler says of itself is not understood."""

    id: ClassVar[str] = "autoscaler-unreadable"
    error: str


class KarpenterUnreadable(NoteFacts, frozen=True, kw_only=True):
    """A NodePool is not understood."""

    id: ClassVar[str] = "karpenter-unreadable"
    error: str


class KeepsAccount(NoteFacts, frozen=True, kw_only=True):
    """A plugin is set up to remember what it gave away, which no snapshot has."""

    id: ClassVar[str] = "plugin-keeps-account"
    told: ClassVar[tuple[str, ...]] = ("plugin", "setting")
    plugin: str
    setting: str


CycleNote: TypeAlias = (
    UnknownPlugins
    | KeepsAccount
    | NotMeasured
    | Gated
    | BoundByHand
    | NominatedNodeFirst
    | Sampling
    | SingleFeasibleNode
    | Tie
    | NotReadyNodes
    | OtherOperatingSystem
    | MixedArchitectures
    | AutoscalerUnreadable
    | KarpenterUnreadable
)


# What became of the calls to HTTP extenders.


class ExtendersNotAsked(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "extender-not-asked"
    told: ClassVar[tuple[str, ...]] = ("extenders",)
    extenders: tuple[str, ...]
    """By their URLs."""
    stands: bool
    """The answer is the same whatever they would say."""
    choosing_victims: tuple[str, ...] = ()
    """Those that could change whom preemption evicts."""


class Consequence(Enum):
    """What an extender's failure leads to."""

    AS_IF_ABSENT = auto()
    """It may fail (ignorable)."""
    ENDS_FILTER = auto()
    NO_SCORES = auto()
    CANDIDATES_STAY = auto()
    """It may fail (ignorable)."""
    NO_EVICTION = auto()


class ExtenderFailed(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "extender-failed"
    told: ClassVar[tuple[str, ...]] = ("extender", "error")
    url: str
    extender: int
    """Its place in the configuration."""
    error: str
    consequence: Consequence


class NodesDroppedSilently(NoteFacts, frozen=True, kw_only=True):
    """Nodes that extenders leave out without a reason."""

    id: ClassVar[str] = "extender-silent"
    told: ClassVar[tuple[str, ...]] = ("nodes",)
    nodes: tuple[str, ...]


class WholeNodesAnswered(NoteFacts, frozen=True, kw_only=True):
    """An extender sends back nodes and not their names."""

    id: ClassVar[str] = "extender-whole-nodes"
    told: ClassVar[tuple[str, ...]] = ("extender",)
    extender: str


ExtenderNote: TypeAlias = ExtendersNotAsked | ExtenderFailed | NodesDroppedSilently | WholeNodesAnswered


# Kinds that were not read.


class NamespacesOnly(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "other-namespaces"
    told: ClassVar[tuple[str, ...]] = ("namespaces",)
    namespaces: tuple[str, ...]


class PodsLacking(NoteFacts, frozen=True, kw_only=True):
    """Some pods of the cluster are not in the dump."""

    id: ClassVar[str] = "dump"
    formats: tuple[str, ...]
    """`must-gather`."""
    lacking: str
    """Which ones, as the dump's reader reports it; empty where there is none."""

    @property
    def facts(self) -> dict[str, object]:
        return {"formats": list(self.formats), "kinds": ["Pod"]}


class KindsLacking(NoteFacts, frozen=True, kw_only=True):
    """Objects that the dump's tool does not save, or not all of them."""

    id: ClassVar[str] = "dump"
    told: ClassVar[tuple[str, ...]] = ("formats", "kinds")
    formats: tuple[str, ...]
    kinds: tuple[str, ...]


class KindsForbidden(NoteFacts, frozen=True, kw_only=True):
    """They may not be listed."""

    id: ClassVar[str] = "unread-kind"
    kinds: tuple[str, ...]
    depends: bool = False
    """An answer may depend on them; it is known that this one does not, otherwise."""

    @property
    def facts(self) -> dict[str, object]:
        return {"kinds": list(self.kinds), "cause": Missing.FORBIDDEN.value}


class KindsNotServed(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "unread-kind"
    kinds: tuple[str, ...]

    @property
    def facts(self) -> dict[str, object]:
        return {"kinds": list(self.kinds), "cause": Missing.ABSENT.value}


MissingNote: TypeAlias = NamespacesOnly | PodsLacking | KindsLacking | KindsForbidden | KindsNotServed


# How the question was understood: which manifest stands for a pod, what was done to it, what is hardly meant.


class ForeignWorkload(NoteFacts, frozen=True, kw_only=True):
    """A pod template in an object that is no kind of Kubernetes' own."""

    id: ClassVar[str] = "foreign-workload"
    kind: str
    group: str
    api_version: object
    """As the manifest has it."""
    path: str
    """Where the template is."""
    count: int | None = None
    """How many pods of it there are at a time; None where that is not known."""
    is_exact: bool = False
    """The pods need what the manifest says, and there are no more than these."""

    @property
    def facts(self) -> dict[str, object]:
        count = {} if self.count is None else {"pods": self.count}
        return {"apiVersion": self.api_version, "path": self.path, **count}


class ManifestLeftOut(NoteFacts, frozen=True, kw_only=True):
    """A file of a folder that holds no Kubernetes objects."""

    id: ClassVar[str] = "left-out"
    told: ClassVar[tuple[str, ...]] = ("source",)
    source: str
    why: str
    """As its reader says it."""


class OldVersion(NoteFacts, frozen=True, kw_only=True):
    """A workload in a version that no API server serves any more."""

    id: ClassVar[str] = "old-api-version"
    told: ClassVar[tuple[str, ...]] = ("api_version", "since")
    kind: str
    api_version: str
    since: str


class AppliedTogether(NoteFacts, frozen=True, kw_only=True):
    """Other objects of the files."""

    id: ClassVar[str] = "applied-together"
    told: ClassVar[tuple[str, ...]] = ("objects",)
    objects: tuple[str, ...]
    """`Service web`."""


class DeadlineExceeded(NoteFacts, frozen=True, kw_only=True):
    """The rollout of the Deployment that is asked about makes no progress."""

    id: ClassVar[str] = "progress-deadline-exceeded"
    workload: str
    """`Deployment web`."""
    message: str
    """Of its condition Progressing."""

    @property
    def facts(self) -> dict[str, object]:
        return {"workload": self.workload, "message": self.message}


class NotApplied(NoteFacts, frozen=True, kw_only=True):
    """An object of the files that the API server refuses."""

    id: ClassVar[str] = "not-applied"
    what: str
    """`PersistentVolumeClaim data`."""
    refusal: str
    """The API server's words."""

    @property
    def facts(self) -> dict[str, object]:
        return {"object": self.what, "refusal": self.refusal}


class UnlikelyAmount(NoteFacts, frozen=True, kw_only=True):
    """An amount with a suffix that is hardly meant."""

    id: ClassVar[str] = "unlikely-amount"
    told: ClassVar[tuple[str, ...]] = ("container", "resource", "amount", "meant")
    container: str
    resource: str
    amount: str
    is_really: int
    """Processors or bytes; 0 for less than one."""
    meant: str


class FieldDifference(Struct, frozen=True, kw_only=True):
    path: str
    """`spec.containers[0].image`."""
    theirs: str
    """JSON."""
    ours: str


class DryRun(NoteFacts, frozen=True, kw_only=True):
    """What the API server's dry run made of the manifest."""

    id: ClassVar[str] = "dry-run"
    differences: tuple[FieldDifference, ...]
    """From the pod that kschedx makes."""
    error: str = ""
    """Why kschedx could not admit it by itself."""


class Tried(NoteFacts, frozen=True, kw_only=True):
    """The pod with the changes to try."""

    id: ClassVar[str] = "tried"
    told: ClassVar[tuple[str, ...]] = ("changes", "before")
    changes: tuple[str, ...]
    """As they were typed."""
    before: Outcome
    """Without them."""


class AfterChanges(NoteFacts, frozen=True, kw_only=True):
    """The cluster after the changes to try."""

    id: ClassVar[str] = "after-changes"
    changes: tuple[str, ...]
    """As they were typed: `scale deploy/web=10`."""
    moved: tuple[str, ...] = ()
    """Pods, `namespace/name`, that lost their nodes to them and found others."""
    waiting: tuple[str, ...] = ()
    """Those that found none."""
    gone: tuple[str, ...] = ()
    """Those that no controller recreates."""
    undone: tuple[str, ...] = ()
    """What autoscalers do about the changes."""

    @property
    def facts(self) -> dict[str, object]:
        lost = {"moved": self.moved, "waiting": self.waiting, "gone": self.gone, "undone": self.undone}
        return {"changes": list(self.changes), **{name: list(pods) for name, pods in lost.items() if pods}}


class RunsAlready(NoteFacts, frozen=True, kw_only=True):
    """The pod has a node, and was evaluated as if it had none; or all `replicas` have nodes, and one more was."""

    id: ClassVar[str] = "runs-already"
    told: ClassVar[tuple[str, ...]] = ("node", "not_ready", "behind", "joined_later", "ready_later")
    node: str = ""
    not_ready: str = ""
    """Why it is not, by its kubelet."""
    replicas: int = 0
    unready: int = 0
    rejected_by: tuple[Finding, ...] = ()
    """What its node would reject it for now."""
    behind: int | None = None
    """Points that its node is behind the best one; None where it is the best, or rejects the pod."""
    joined_later: tuple[str, ...] = ()
    """The best nodes that joined the cluster after the pod was assigned."""
    ready_later: tuple[str, ...] = ()
    """Those that became ready after that."""
    recreated_by: str = ""
    """`ReplicaSet web-1`, where deleting the pod moves it to the best node."""


QuestionNote: TypeAlias = (
    ForeignWorkload
    | RunsAlready
    | ManifestLeftOut
    | OldVersion
    | AppliedTogether
    | DeadlineExceeded
    | NotApplied
    | UnlikelyAmount
    | DryRun
    | Tried
    | AfterChanges
)


# What the cluster's own kube-scheduler said of the pod, and how it differs.


class FailedAfterwards(Struct, frozen=True, kw_only=True):
    """A node was found there, and what had to be done on it failed."""

    message: str


class FitsHere(Struct, frozen=True, kw_only=True):
    """kschedx finds a node for the pod."""


class OtherNodeCount(Struct, frozen=True, kw_only=True):
    there: int
    here: int


class Moved(Struct, frozen=True, kw_only=True):
    """A reason of both that rejects another number of nodes."""

    text: str
    there: int
    here: int


class OtherCounts(Struct, frozen=True, kw_only=True):
    moved: tuple[Moved, ...]


class OtherWords(Struct, frozen=True, kw_only=True):
    """Texts of theirs for a reason of both."""

    texts: tuple[str, ...]


class OfUnknownPlugin(Struct, frozen=True, kw_only=True):
    """Texts of theirs that no plugin has that kschedx knows."""

    texts: tuple[str, ...]


class NotFoundHere(Struct, frozen=True, kw_only=True):
    texts: tuple[str, ...]


class FoundHereOnly(Struct, frozen=True, kw_only=True):
    texts: tuple[str, ...]


class NoPreemptionThere(Struct, frozen=True, kw_only=True):
    """The event says nothing of preemption."""


class OtherPreemption(Struct, frozen=True, kw_only=True):
    """Preemption ended otherwise there."""


class OtherRelease(Struct, frozen=True, kw_only=True):
    """The same reasons with the same numbers, and other words."""


Contrast: TypeAlias = (
    FitsHere
    | FailedAfterwards
    | OtherNodeCount
    | OtherCounts
    | OtherWords
    | OfUnknownPlugin
    | NotFoundHere
    | FoundHereOnly
    | NoPreemptionThere
    | OtherPreemption
    | OtherRelease
)


class RecordedEvent(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "recorded-event"
    message: str
    count: int
    last_seen: str
    """RFC 3339; empty where it is not known, and then neither is `count`."""
    contrasts: tuple[Contrast, ...]
    """None where kschedx says the same."""


# What does not fit together about the storage and the devices that a pod uses.

StorageKind: TypeAlias = Literal["PersistentVolumeClaim", "CSINode"]


class EmptyKind(NoteFacts, frozen=True, kw_only=True):
    """The cluster has no object of it."""

    id: ClassVar[str] = "empty-kind"
    kind: StorageKind


class MissingKind(NoteFacts, frozen=True, kw_only=True):
    """The snapshot holds no object of it, and does not say that it is complete."""

    id: ClassVar[str] = "missing-kind"
    kind: StorageKind


class ClaimVolumeMissing(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "claim-volume-missing"
    claim: str
    volume: str


class VolumeBoundElsewhere(NoteFacts, frozen=True, kw_only=True):
    """A claim names a volume that names another claim."""

    id: ClassVar[str] = "volume-bound-elsewhere"
    claim: str
    volume: str
    other: str
    """The same name for an earlier claim, which had another uid."""


class ClaimClassMissing(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "claim-class-missing"
    claim: str
    storage_class: str
    known: tuple[str, ...]
    """The classes that there are."""


class ClaimResizing(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "claim-resizing"
    told: ClassVar[tuple[str, ...]] = ("claim", "size", "condition")
    claim: str
    size: str
    """That the claim requests."""
    condition: str
    message: str


class SelectedNodeMissing(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "selected-node-missing"
    claim: str
    node: str


class EqualVolumes(NoteFacts, frozen=True, kw_only=True):
    """kube-scheduler takes any of them."""

    id: ClassVar[str] = "equal-volumes"
    claim: str
    volumes: tuple[str, ...]


class CSINodesWithoutNode(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "csi-node-without-node"
    csi_nodes: tuple[str, ...]


class NodesWithoutCSINode(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "node-without-csi-node"
    nodes: tuple[str, ...]


class CapacitySelectorInvalid(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "capacity-selector-invalid"
    capacity: str
    error: str


class SelectorRefusal(Struct, frozen=True, kw_only=True):
    object: str
    """`DeviceClass gpu`."""
    field: str
    error: str
    """As the API server words it."""


class SelectorsRefused(NoteFacts, frozen=True, kw_only=True):
    """Device selectors that the API server would not store, in objects that it has not stored yet."""

    id: ClassVar[str] = "selector-refused"
    refusals: tuple[SelectorRefusal, ...]


StorageNote: TypeAlias = (
    EmptyKind
    | MissingKind
    | ClaimVolumeMissing
    | VolumeBoundElsewhere
    | ClaimClassMissing
    | ClaimResizing
    | SelectedNodeMissing
    | EqualVolumes
    | CSINodesWithoutNode
    | NodesWithoutCSINode
    | CapacitySelectorInvalid
    | SelectorsRefused
)


# What a reader has to know to trust an answer, as facts; a module per subject.
#
# A note holds names and numbers, no sentence: `render/words/notes` forks over the union and ends in `assert_never`, so
# a note without words does not pass the type checker. Who finds them is beside this package (`explain/cycle_notes.py`,
# `explain/storage_notes.py`, ...), or asks the question (`cli`).

Note: TypeAlias = (
    CycleNote
    | RecordedEvent
    | ExtenderNote
    | MissingNote
    | ClusterNote
    | StorageNote
    | AdmissionNote
    | ClaimNote
    | QuestionNote
)
