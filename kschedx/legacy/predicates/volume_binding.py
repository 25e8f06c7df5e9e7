"""CheckVolumeBinding (predicates.go, and FindPodVolumes in scheduler_binder.go of pkg/controller/volume)."""

from __future__ import annotations

import numpy as np

from kschedx.api.storage import PersistentVolumeClaim
from kschedx.api.types import Pod
from kschedx.findings import PluginMessage
from kschedx.framework.state import CycleState, StateKey
from kschedx.framework.status import Code, Verdicts
from kschedx.legacy.predicates.base import Context, Predicate, joined
from kschedx.plugins.volume_binding.binding import Binding, Conflict
from kschedx.plugins.volume_binding.claims import REASON_UNBOUND_IMMEDIATE, PodClaims
from kschedx.snapshot.nodes import NodeTable


class CheckVolumeBinding(Predicate):
    """A node must reach the volumes of bound claims, and get one for each claim that waits for its first consumer.

    A claim that is missing, lost its volume or should be bound already is an error on every node.
    """

    def __init__(self, context: Context, argument: object = None) -> None:
        super().__init__(context, argument)
        self._binding: StateKey[Binding | str | None] = StateKey(type(self).__name__)
        """The claims on all nodes, the error on all of them, or None for a pod without claims."""

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        claims = self._claims(pod)
        if isinstance(claims, PodClaims):
            storage = self.context.snapshot.storage
            state[self._binding] = Binding(
                claims, storage, self.context.nodes, attributes_classes=False, migrated=frozenset()
            )
        else:
            state[self._binding] = claims

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        binding = state[self._binding]
        if binding is None:
            return Verdicts.success(len(nodes))
        everywhere = np.ones(len(nodes), dtype=np.bool_)
        if isinstance(binding, str):
            failed = PluginMessage(text=binding)
            return Verdicts.first_of((everywhere, Code.ERROR, binding), explain=lambda row: (failed,))
        conflicts, code = binding.conflicts[nodes.rows], self.context.era.unresolvable
        texts = self.context.era.texts

        def where(conflict: Conflict, reason: str) -> Verdicts:
            # all conflicts of a node are told with the first one
            before = conflicts & (conflict - 1) > 0
            return Verdicts.first_of(
                ((conflicts & conflict) > 0, Code.ERROR if conflict is Conflict.VOLUME_MISSING else code, reason),
                explain=lambda row: () if before[row] else binding.explain(nodes.cluster_row(row)),
            )

        return joined(
            [
                where(Conflict.NODE_AFFINITY, texts.volume_node_affinity),
                where(Conflict.NO_VOLUME, texts.volume_binding),
                where(Conflict.VOLUME_MISSING, self._missing(binding)),
            ]
        )

    def _claims(self, pod: Pod) -> PodClaims | str | None:
        storage = self.context.snapshot.storage
        claims: list[PersistentVolumeClaim] = []
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = storage.claim(pod.metadata.namespace, name)
            if claim is None:
                key = f"{pod.metadata.namespace}/{name}"
                return f'error getting PVC "{key}": could not find v1.PersistentVolumeClaim "{key}"'
            claims.append(claim)
        unbound = [claim for claim in claims if not claim.is_fully_bound]
        if not all(map(self._waits, unbound)):
            return REASON_UNBOUND_IMMEDIATE
        bound = tuple(claim for claim in claims if claim.is_fully_bound)
        return PodClaims(bound=bound, delayed=tuple(unbound)) if claims else None

    def _waits(self, claim: PersistentVolumeClaim) -> bool:
        """It is bound when a node has been chosen. One that names its volume, or was promised to a node, is not."""
        if claim.spec.volume_name or claim.selected_node is not None:
            return False
        storage_class = self.context.snapshot.storage.classes.get(claim.storage_class)
        return storage_class is not None and storage_class.waits_for_first_consumer

    def _missing(self, binding: Binding) -> str:
        volumes = self.context.snapshot.storage.volumes
        names = [claim.spec.volume_name for claim in binding.claims.bound if claim.spec.volume_name not in volumes]
        return f'could not find v1.PersistentVolume "{names[0]}"' if names else ""
