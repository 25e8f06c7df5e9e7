"""What does not fit together about a pod's storage and devices, and what kube-scheduler makes of it, in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.errors import nearest
from kschedx.explain.notes.storage import (
    CapacitySelectorInvalid,
    ClaimClassMissing,
    ClaimVolumeMissing,
    CSINodesWithoutNode,
    EmptyKind,
    EqualVolumes,
    MissingKind,
    NodesWithoutCSINode,
    SelectedNodeMissing,
    SelectorRefusal,
    SelectorsRefused,
    StorageKind,
    StorageNote,
    VolumeBoundElsewhere,
)
from kschedx.render.units import count, listed

_SHOWN = 3


def text(note: StorageNote) -> str:
    match note:
        case EmptyKind(kind=kind):
            return _empty(kind)
        case MissingKind(kind=kind):
            return _missing(kind)
        case ClaimVolumeMissing(claim=claim, volume=volume):
            return (
                f'claim {claim} names volume "{volume}", which does not exist: kube-scheduler schedules no pod that '
                "uses it"
            )
        case VolumeBoundElsewhere(claim=claim, other=other):
            whose = f"claim {other}" if other != claim else "an earlier claim of that name (with another uid)"
            return (
                f"claim {claim} names volume {note.volume}, but the volume names {whose}: kube-scheduler takes the "
                "claim's word; the volume controller will call the claim lost"
            )
        case ClaimClassMissing(claim=claim, storage_class=storage_class):
            hint = nearest(storage_class, note.known)
            return (
                f'claim {claim} names storage class "{storage_class}", which does not exist'
                f"{f' ({hint})' if hint else ''}: kube-scheduler waits until the claim is bound"
            )
        case SelectedNodeMissing(claim=claim, node=node):
            return (
                f'the volume of claim {claim} is to be made for node "{node}", which does not exist: kube-scheduler '
                "takes no other node until the provisioner gives up"
            )
        case EqualVolumes(claim=claim, volumes=volumes):
            return (
                f"{len(volumes):,} volumes of equal size fit claim {claim} ({listed(volumes, _SHOWN)}): "
                "kube-scheduler takes any of them"
            )
        case CSINodesWithoutNode(csi_nodes=gone):
            those = "it" if len(gone) == 1 else "them"
            named = f"{count(len(gone), 'CSINode')} without a node ({listed(gone, _SHOWN)})"
            return f"{named}: kube-scheduler does not look at {those}"
        case NodesWithoutCSINode(nodes=bare):
            named = f"{count(len(bare), 'node')} without a CSINode ({listed(bare, _SHOWN)})"
            return f"{named}: kube-scheduler applies no limit on attached volumes there"
        case CapacitySelectorInvalid(capacity=capacity, error=error):
            return (
                f"CSIStorageCapacity {capacity} has a nodeTopology that cannot be read ({error}): kube-scheduler takes "
                "it to be out of every node's reach"
            )
        case SelectorsRefused(refusals=refusals):
            told = "; ".join(map(_refusal, refusals[:_SHOWN]))
            others = f"; and {len(refusals) - _SHOWN} more" if len(refusals) > _SHOWN else ""
            return f"the API server refuses {told}{others}"
        case _:
            assert_never(note)


def _empty(kind: StorageKind) -> str:
    match kind:
        case "PersistentVolumeClaim":
            return "the cluster has no PersistentVolumeClaim: those of the pod do not exist"
        case "CSINode":
            return "the cluster has no CSINode: kube-scheduler applies no limit on attached volumes"
        case _:
            assert_never(kind)


def _missing(kind: StorageKind) -> str:
    match kind:
        case "PersistentVolumeClaim":
            return "the snapshot holds no PersistentVolumeClaim at all: was the kind left out of the dump?"
        case "CSINode":
            return "the snapshot holds no CSINode: no limit on attached volumes is known, so none was applied"
        case _:
            assert_never(kind)


def _refusal(one: SelectorRefusal) -> str:
    return f"{one.object}: {one.field}: {one.error.splitlines()[0]}"
