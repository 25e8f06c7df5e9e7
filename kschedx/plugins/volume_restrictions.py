"""VolumeRestrictions (pkg/scheduler/framework/plugins/volumerestrictions)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.findings import ClaimInUse, ClaimNotFound, DiskConflict, Finding
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    StateKey,
    Texts,
    Touch,
)
from kschedx.framework.status import Code, Status, Verdicts, unresolvable
from kschedx.kube.storage import READ_WRITE_ONCE_POD, not_found_text
from kschedx.kube.types import Pod, PodSpec, Volume
from kschedx.releases.release import texts_of_all_releases
from kschedx.snapshot.columns import BoolArray, IntArray, TableRow, all_false
from kschedx.snapshot.nodes import NodeTable, PodRows

_REASON_DISK = "node(s) had no available disk"


class _State(Struct, frozen=True, kw_only=True):
    claims: frozenset[str]  # names of the pod's claims with ReadWriteOncePod
    references: Mapping[int, int]
    """Rows of pods to the number of their volumes that use one of these claims. As upstream, any namespace counts."""
    in_use: int  # the number of these claims that a running pod uses
    change: IntArray  # (node of the cluster,) references added with pods on the node, minus those removed
    same_disk: BoolArray  # (pod,) whether a pod uses a disk that the incoming pod cannot share


_STATE: StateKey[_State] = StateKey("PreFilterVolumeRestrictions", 'cannot read "{}" from cycleState')


class VolumeRestrictions(PreFilterPlugin, FilterPlugin):
    """Rejects nodes with a disk that two pods cannot share, and pods whose ReadWriteOncePod claim is in use."""

    name = "VolumeRestrictions"
    texts: ClassVar[Texts] = {
        "disk-conflict": (_REASON_DISK,),
        "claim-in-use": texts_of_all_releases("read_write_once_pod_in_use"),
    }

    def reads(self, pod: Pod) -> Hashable:
        return None

    def touches(self, pod: Pod) -> Touch:
        if self.distinguishes_by(pod) != frozenset():
            return Touch.CLUSTER
        return Touch.NODE if any(_disk(volume) is not None for volume in pod.spec.volumes) else Touch.NOTHING

    def distinguishes_by(self, pod: Pod) -> Hashable:
        """All ReadWriteOncePod claims that no other pod uses are equivalent."""
        single = self._single(pod)
        if isinstance(single, Status):
            return pod.key
        pods = self.handle.snapshot.pods
        shared = any(pods.key(row) != pod.key for name in single for row in pods.rows_by_claim_name.get(name, ()))
        return single if shared else frozenset()

    def _single(self, pod: Pod) -> frozenset[str] | Status:
        """Names of the pod's claims with ReadWriteOncePod, or the status of a claim that does not exist."""
        is_known = self.handle.release.enabled("ReadWriteOncePod")
        return _read_write_once_pod(self, pod) if is_known else frozenset()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        single = self._single(pod)
        if isinstance(single, Status):
            return PreFilterResult(status=single)
        disks = [volume for volume in pod.spec.volumes if _disk(volume) is not None]
        holders = _holders(pod, nodes, single)
        specs = nodes.pods.specs
        state[_STATE] = _State(
            claims=single,
            references=_all_references(nodes, single),
            in_use=len(holders),
            change=np.zeros(len(nodes.cluster.nodes), dtype=np.int64),
            same_disk=specs.where(lambda spec: any(_conflict(disk, spec) for disk in disks))
            if disks
            else all_false(len(nodes.pods)),
        )
        return PreFilterResult() if disks or holders else PRE_FILTER_SKIP

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        _count(state, change, +1)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        _count(state, change, -1)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        facts = state[_STATE]
        conflict = nodes.count_where(facts.same_disk) > 0
        in_use = facts.in_use + facts.change[nodes.rows] > 0

        def explain(row: TableRow) -> tuple[Finding, ...]:
            if conflict[row]:
                return _disk_conflicts(pod, nodes, row, facts.same_disk)
            return tuple(
                ClaimInUse(
                    claim=f"{pod.metadata.namespace}/{claim}",
                    holder=nodes.pods.key(holder),
                    holder_node=nodes.pods.node_names[holder],
                )
                for claim, holder in _holders(pod, nodes, facts.claims).items()
            )

        return Verdicts.first_of(
            (conflict, Code.UNSCHEDULABLE, _REASON_DISK),
            (in_use, Code.UNSCHEDULABLE, self.handle.release.messages.read_write_once_pod_in_use),
            explain=explain,
        )


# --- ReadWriteOncePod claims


def _read_write_once_pod(plugin: VolumeRestrictions, pod: Pod) -> frozenset[str] | Status:
    """Names of the pod's claims with ReadWriteOncePod, or the status of a claim that does not exist."""
    names: set[str] = set()
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        claim = plugin.handle.snapshot.storage.claim(pod.metadata.namespace, name)
        if claim is None:
            missing = ClaimNotFound(claim=f"{pod.metadata.namespace}/{name}", volume=volume.name, ephemeral=False)
            return unresolvable(not_found_text("persistentvolumeclaim", name), missing)
        if READ_WRITE_ONCE_POD in claim.spec.access_modes:
            names.add(name)
    return frozenset(names)


def _references(spec: PodSpec, claims: frozenset[str]) -> int:
    return sum(
        volume.persistent_volume_claim is not None and volume.persistent_volume_claim.claim_name in claims
        for volume in spec.volumes
    )


def _holders(pod: Pod, nodes: NodeTable, claims: frozenset[str]) -> dict[str, int]:
    """Claim to the row of the first running pod of the namespace that uses it; claims not in use are absent. In the
    cycle of a pod group, the pods that ran at its start count (`usedPVCSet` in
    pkg/scheduler/backend/cache/snapshot.go)."""
    if not claims:
        return {}
    pods = nodes.pods
    places = pods.node if pods.listed is None else pods.listed
    holders: dict[str, int] = {}
    for row in sorted({row for name in claims for row in pods.rows_with_claim(f"{pod.metadata.namespace}/{name}")}):
        if places[row] < 0:
            continue
        for volume in pods.specs[row].volumes:
            if volume.persistent_volume_claim and volume.persistent_volume_claim.claim_name in claims:
                holders.setdefault(volume.persistent_volume_claim.claim_name, row)
    return holders


def _all_references(nodes: NodeTable, claims: frozenset[str]) -> dict[int, int]:
    pods = nodes.pods
    rows = {row for name in claims for row in pods.rows_by_claim_name.get(name, ())}
    return {row: _references(pods.specs[row], claims) for row in rows}


def _count(state: CycleState, moved: PodRows, sign: int) -> None:
    facts = state[_STATE]
    if not facts.references:
        return
    references = np.array([facts.references.get(row, 0) for row in moved.pods.tolist()], dtype=np.int64)
    change = facts.change.copy()
    np.add.at(change, moved.nodes, sign * references)
    state[_STATE] = replace(facts, change=change)


# --- disks


def _disk(volume: Volume) -> tuple[str, str, bool] | None:
    """Return type, name, and whether it is read-only, for disk types that can conflict."""
    if volume.gce_persistent_disk is not None:
        return "gcePersistentDisk", volume.gce_persistent_disk.pd_name, volume.gce_persistent_disk.read_only
    if volume.aws_elastic_block_store is not None:
        ebs = volume.aws_elastic_block_store
        return "awsElasticBlockStore", ebs.volume_id, ebs.read_only
    if volume.iscsi is not None:
        return "iscsi", volume.iscsi.iqn, volume.iscsi.read_only
    if volume.rbd is not None:
        return "rbd", f"{volume.rbd.pool or _DEFAULT_POOL}/{volume.rbd.image}", volume.rbd.read_only
    return None


_DEFAULT_POOL = "rbd"  # the API server's default


def _conflict(volume: Volume, spec: PodSpec) -> Volume | None:
    """Find the pod's volume on the same disk, unless both are read-only. An EBS volume is never shared."""
    mine = _disk(volume)
    for other in spec.volumes:
        theirs = _disk(other)
        if mine is None or theirs is None or mine[:2] != theirs[:2]:
            continue
        if volume.rbd is not None and other.rbd is not None and not {*volume.rbd.monitors} & {*other.rbd.monitors}:
            continue
        if not (mine[2] and theirs[2]) or volume.aws_elastic_block_store is not None:
            return other
    return None


def _disk_conflicts(pod: Pod, nodes: NodeTable, row: TableRow, same_disk: BoolArray) -> tuple[Finding, ...]:
    findings: list[Finding] = []
    pods = nodes.pods_on(row)
    for volume in pod.spec.volumes:
        mine = _disk(volume)
        if mine is None:
            continue
        for holder in pods[same_disk[pods]]:
            other = _conflict(volume, nodes.pods.specs[int(holder)])
            theirs = _disk(other) if other is not None else None
            if theirs is not None:
                findings.append(
                    DiskConflict(
                        volume=volume.name,
                        kind=mine[0],
                        disk=mine[1],
                        read_only=mine[2],
                        holder=nodes.pods.key(int(holder)),
                        holder_read_only=theirs[2],
                    )
                )
                break
    return tuple(findings)
