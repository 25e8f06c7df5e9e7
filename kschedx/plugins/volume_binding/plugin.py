"""The VolumeBinding plugin: nodes must reach bound volumes, and unbound claims must get a volume."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import ClassVar

import msgspec
import numpy as np
from msgspec.structs import replace

from kschedx.framework.args import VolumeBindingArgs
from kschedx.framework.interface import (
    NOTHING_BOUND,
    PRE_FILTER_SKIP,
    BindingEffect,
    CycleState,
    FilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    StateKey,
    Texts,
    Touch,
)
from kschedx.framework.status import SKIP, SUCCESS, Code, Status, Verdicts
from kschedx.kube.names import HOSTNAME
from kschedx.kube.storage import PersistentVolume, PersistentVolumeClaim, plugin_of
from kschedx.kube.types import Pod
from kschedx.plugins.volume_binding.binding import (
    REASON_UNBOUND_IMMEDIATE,
    Binding,
    Conflict,
    PodClaims,
    pod_claims,
    score,
    settled,
)
from kschedx.plugins.volume_facts import migrated_plugins
from kschedx.releases.release import in_every_release
from kschedx.snapshot.columns import ClusterRow, Column, IntArray, each_cluster_row
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.storage import Storage


def alike(claims: PodClaims, storage: Storage) -> Hashable:
    """Return a value that is equal for pods whose claims can be bound, or are bound, on the same nodes."""
    bound = tuple(_reach(claim, storage) for claim in claims.bound)
    names = [claim.key for claim in claims.delayed]
    delayed = tuple((names.index(claim.key), *_wanted(claim, storage)) for claim in claims.delayed)
    return bound, delayed


def _reach(claim: PersistentVolumeClaim, storage: Storage) -> Hashable:
    """Return which nodes can reach a bound claim's volume."""
    volume = storage.volumes.get(claim.spec.volume_name)
    if volume is None:
        return None
    # the CSI translation of an in-tree volume depends on more than its node affinity
    return volume.name if plugin_of(volume.spec) is not None else (volume.required_node_affinity,)


def _wanted(claim: PersistentVolumeClaim, storage: Storage) -> tuple[Hashable, ...]:
    """Return what a claim requests and which volumes it could get."""
    candidates = storage.candidates
    prebound = tuple(volume.name for volume in candidates.prebound(claim))
    spec = msgspec.json.encode(replace(claim.spec, volume_name=""))
    return spec, claim.storage_class, claim.selected_node, prebound, candidates.version(claim.storage_class)


REASON_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
REASON_NO_SPACE = "node(s) did not have enough free storage"
REASON_VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

BINDING: StateKey[Binding | None] = StateKey("VolumeBinding", "not found")
"""None for a pod without claims."""

_EVERY_CONFLICT = sum(Conflict)


class VolumeBinding(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """A node must reach the volumes of bound claims and provide one for each claim with WaitForFirstConsumer."""

    name = "VolumeBinding"
    texts: ClassVar[Texts] = {
        "volume-node-affinity-mismatch": in_every_release("volume_node_affinity_conflict"),
        "no-matching-volume": (REASON_NO_VOLUME,),
        "insufficient-storage-capacity": (REASON_NO_SPACE,),
        "volume-not-found": (REASON_VOLUME_MISSING,),
        "claim-unbound": (REASON_UNBOUND_IMMEDIATE,),
        "claim-not-found": (
            'persistentvolumeclaim "{subject}" not found',
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "{subject}"',
        ),
        "claim-being-deleted": ('persistentvolumeclaim "{subject}" is being deleted',),
        "claim-lost": ('persistentvolumeclaim "{subject}" bound to non-existent persistentvolume "{volume}"',),
        "claim-not-owned": ("PVC {subject} was not created for pod {pod} (pod is not owner)",),
    }

    def reads(self, pod: Pod) -> Hashable:
        return None

    def touches(self, pod: Pod) -> Touch:
        return Touch.NOTHING

    def tells_apart(self, pod: Pod) -> Hashable:
        claims = pod_claims(pod, self.handle.snapshot.storage)
        return pod.key if isinstance(claims, Status) else claims and alike(claims, self.handle.snapshot.storage)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        storage = self.handle.snapshot.storage
        claims = pod_claims(pod, storage)
        if isinstance(claims, Status):
            return PreFilterResult(status=claims)
        if claims is None:
            state[BINDING] = None
            return PRE_FILTER_SKIP
        release = self.handle.release
        state[BINDING] = Binding(
            claims,
            storage,
            self.handle.nodes,
            attributes_classes=release.enabled("VolumeAttributesClass"),
            migrated=migrated_plugins(release),
        )
        named = release.behaviour.local_volumes_name_their_nodes
        return PreFilterResult(nodes=_local_nodes(claims.bound, storage) if named else None)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        binding = state[BINDING]
        if binding is None:
            return Verdicts.success(len(nodes))
        conflicts, errors = binding.conflicts[nodes.rows], binding.error[nodes.rows]
        codes = np.where(conflicts > 0, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.SUCCESS)
        reasons = [self._reasons(Conflict(sum_)) for sum_ in range(_EVERY_CONFLICT + 1)]
        reasons += [(text,) for text in binding.errors]
        return Verdicts(
            codes=np.where(errors > 0, Code.ERROR, codes).astype(np.int64),
            reasons=Column(np.where(errors > 0, _EVERY_CONFLICT + 1 + errors, conflicts), reasons),
            explain=lambda row: binding.explain(nodes.cluster_row(row)),
        )

    def _reasons(self, conflict: Conflict) -> tuple[str, ...]:
        texts = {
            Conflict.NODE_AFFINITY: self.handle.release.messages.volume_node_affinity_conflict,
            Conflict.NO_VOLUME: REASON_NO_VOLUME,
            Conflict.NO_SPACE: REASON_NO_SPACE,
            Conflict.VOLUME_MISSING: REASON_VOLUME_MISSING,
        }
        return tuple(text for named_conflict, text in texts.items() if named_conflict in conflict)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        if not self._scores:
            return SKIP
        binding = state[BINDING]
        provisions_count = self.handle.release.behaviour.provisioned_volumes_are_scored
        has_bindings = binding is not None and any(binding.bindings(row) for row in each_cluster_row(nodes.home_rows))
        return SUCCESS if provisions_count or has_bindings else SKIP

    @property
    def _scores(self) -> bool:
        return self.handle.release.enabled(self.handle.release.arguments.storage_scoring_gate)

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        if not self._scores:
            return np.zeros(len(nodes), dtype=np.int64)
        binding = state[BINDING]
        shape = self.args.shape if isinstance(self.args, VolumeBindingArgs) else None
        if binding is None or not shape:
            return np.zeros(len(nodes), dtype=np.int64)
        with_provisions = self.handle.release.behaviour.provisioned_volumes_are_scored
        rows = each_cluster_row(nodes.home_rows)
        scores = (score(binding, row, shape, with_provisions=with_provisions) for row in rows)
        return np.fromiter(scores, dtype=np.int64, count=len(nodes))

    def reserve(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        """Bind the claims to volumes in memory, or plan their provisioning."""
        binding = state[BINDING]
        return SUCCESS if binding is None or binding.is_settled else Status(findings=binding.plan(node))

    def bound(self, state: CycleState, pod: Pod, node: ClusterRow) -> BindingEffect:
        if BINDING not in state or (binding := state[BINDING]) is None or binding.is_settled:
            return NOTHING_BOUND
        return BindingEffect(storage=settled(binding, node, self.handle.nodes, self.handle.snapshot.storage))

    def pre_bind(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        """Write the bindings to the cluster. kube-scheduler then waits for the volume controller."""
        binding = state[BINDING]
        return SKIP if binding is None or binding.is_settled else Status(findings=binding.plan(node))


def _local_nodes(bound: Iterable[PersistentVolumeClaim], storage: Storage) -> frozenset[str] | None:
    """Return the node names that all local volumes with node names agree on; None if none has any, or if a volume is
    missing. From 1.27 to 1.31, PreFilter keeps only these nodes (GetEligibleNodes in volumebinding/binder.go,
    GetLocalPersistentVolumeNodeNames in pkg/volume/util/util.go)."""
    volumes = [storage.volumes.get(claim.spec.volume_name) for claim in bound]
    named = [names for volume in volumes if volume is not None and (names := _named(volume))]
    if not named or None in volumes:
        return None
    return frozenset.intersection(*named)


def _named(volume: PersistentVolume) -> frozenset[str]:
    """Return the hostnames of all terms; those within one term must agree. They are treated as node names."""
    affinity = volume.required_node_affinity
    terms = affinity.node_selector_terms if affinity is not None else ()
    named: frozenset[str] = frozenset()
    for term in terms:
        hosts = [frozenset(e.values) for e in term.match_expressions if e.key == HOSTNAME and e.operator == "In"]
        if hosts:
            named |= frozenset.intersection(*hosts)
    return named
