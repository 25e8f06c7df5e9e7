"""Which CSI volumes pods attach to their nodes: the part of NodeVolumeLimits that reads claims and volumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from kschedx.api.csi_translation import (
    TranslationError,
    inline_handle,
    plugin_named,
    plugin_of_inline,
    plugin_of_volume,
    translated,
)
from kschedx.api.storage import PersistentVolumeClaim, claim_name, not_found, not_owned_by
from kschedx.api.types import ObjectMeta, Volume
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.storage import Storage

_UNBOUND = "<unbound>"
"""Stands for the random prefix that upstream gives to the handles of volumes that do not exist yet."""


class Attachable(Struct, frozen=True, kw_only=True):
    """A volume that counts against its driver's limit, once per node."""

    name: str
    """`driver/handle`, which tells volumes apart."""
    driver: str
    title: str
    """What a person would call it: the claim `namespace/name`, or the disk."""


class VolumeError(Exception):
    """Why a pod's volumes cannot be counted, in upstream's words."""

    def __init__(self, text: str, missing_claim: str = "", volume: str = "", ephemeral: bool = False) -> None:
        super().__init__(text)
        self.missing_claim = missing_claim
        """`namespace/name`; empty for every other reason."""
        self.volume = volume
        self.ephemeral = ephemeral


def is_counted(volume: Volume) -> bool:
    """Whether a pod's volume can be one that a driver attaches."""
    has_claim = volume.persistent_volume_claim is not None or volume.ephemeral is not None
    return has_claim or plugin_of_inline(volume) is not None


def attachable_volumes(
    pod: ObjectMeta, volumes: Sequence[Volume], storage: Storage, *, on_csi_node: bool, is_new: bool
) -> Iterator[Attachable]:
    """A pod's volumes that count (filterAttachableVolumes in csi.go). Raises `VolumeError`.

    In-tree volumes count only on nodes with a CSINode; a running pod's claim that is gone does not count.
    """
    for volume in volumes:
        name = claim_name(pod.name, volume)
        if name is None:
            found = _inline(volume, on_csi_node)
        elif not name:
            raise VolumeError("PersistentVolumeClaim had no name")
        else:
            claim = storage.claim(pod.namespace, name)
            if claim is None:
                if is_new:
                    key = f"{pod.namespace}/{name}"
                    text = f"looking up PVC {key}: {not_found('persistentvolumeclaim', name)}"
                    raise VolumeError(text, key, volume.name, volume.ephemeral is not None)
                continue
            wrong = not_owned_by(claim, pod) if volume.persistent_volume_claim is None else None
            if wrong:
                raise VolumeError(wrong)
            found = _claimed(claim, storage, on_csi_node)
        if found is not None:
            yield found


def _inline(volume: Volume, on_csi_node: bool) -> Attachable | None:
    plugin = plugin_of_inline(volume)
    if plugin is None or not (plugin.is_migrated and on_csi_node):
        return None
    try:
        handle = inline_handle(volume)
    except TranslationError as error:
        raise VolumeError(f"converting volume({volume.name}) from inline to csi: {error}") from None
    return Attachable(name=f"{plugin.driver}/{handle}", driver=plugin.driver, title=handle)


def _claimed(claim: PersistentVolumeClaim, storage: Storage, on_csi_node: bool) -> Attachable | None:
    """The claim's volume; for one that does not exist (yet) the volume that its class would make."""
    volume = storage.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        return _of_class(claim, storage, on_csi_node)
    source = volume.spec.csi
    if source is None:
        plugin = plugin_of_volume(volume)
        if plugin is None or not (plugin.is_migrated and on_csi_node):
            return None
        try:
            source = translated(volume).spec.csi
        except TranslationError:
            return None
    return _named(source.driver, source.volume_handle, claim) if source else None


def _of_class(claim: PersistentVolumeClaim, storage: Storage, on_csi_node: bool) -> Attachable | None:
    storage_class = storage.classes.get(claim.storage_class) if claim.storage_class else None
    if storage_class is None:
        return None
    handle = f"{_UNBOUND}-{claim.key}"
    plugin = plugin_named(storage_class.provisioner)
    if plugin is None:
        return _named(storage_class.provisioner, handle, claim)
    return _named(plugin.driver, handle, claim) if plugin.is_migrated and on_csi_node else None


def _named(driver: str, handle: str, claim: PersistentVolumeClaim) -> Attachable | None:
    """Nothing is counted without a driver and a handle."""
    return Attachable(name=f"{driver}/{handle}", driver=driver, title=claim.key) if driver and handle else None


class Attached(Struct, frozen=True, kw_only=True):
    """Volumes on nodes: `volumes[i]` is on the node of the cluster's row `nodes[i]`. Pairs can repeat."""

    nodes: IntArray
    volumes: IntArray

    def nodes_with(self, volume: int) -> IntArray:
        """Rows of the cluster's nodes that have a volume."""
        rows: IntArray = self.nodes[self.volumes == volume]
        return rows

    def volumes_on(self, node: int) -> IntArray:
        """The volumes of a row of the cluster's nodes."""
        volumes: IntArray = self.volumes[self.nodes == node]
        return volumes


class AttachedVolumes:
    """The volumes of every pod of the cluster, and those that VolumeAttachments name; each is known by its number."""

    def __init__(self, storage: Storage, pods: PodTable) -> None:
        self._storage = storage
        self.pods = pods
        self.volumes: list[Attachable] = []
        self.errors: dict[int, str] = {}
        """Pod row to the reason why the pod's volumes cannot be counted."""
        self._numbers: dict[str, int] = {}
        self._drivers: dict[str, int] = {}
        self._driver: list[int] = []
        self._pod, self._volume = self._of_pods()

    @classmethod
    def of(cls, storage: Storage, pods: PodTable) -> AttachedVolumes:
        """Worked out once for all what-ifs in which pods only move, start or end."""
        key = (cls, id(pods.specs))
        known = storage.derived.get(key)
        if not isinstance(known, cls) or known.pods.specs is not pods.specs:
            known = storage.derived[key] = cls(storage, pods)
        return known

    def number(self, volume: Attachable) -> int:
        """The volume's number; a volume that nobody has yet gets a new one."""
        number = self._numbers.setdefault(volume.name, len(self.volumes))
        if number == len(self.volumes):
            self.volumes.append(volume)
            self._driver.append(self._drivers.setdefault(volume.driver, len(self._drivers)))
        return number

    def _of_pods(self) -> tuple[IntArray, IntArray]:
        """(pair,) pod rows in ascending order, and the numbers of the volumes that they hold."""
        holders: list[int] = []
        numbers: list[int] = []
        pods = self.pods
        concerned = pods.specs.where(lambda spec: any(map(is_counted, spec.volumes)))
        for row in map(int, np.flatnonzero(concerned)):
            pod = ObjectMeta(name=pods.names[row], namespace=pods.namespaces[row], uid=pods.uids[row])
            found = attachable_volumes(
                # limits hold on nodes with a CSINode alone, so the pod is looked at as if on one
                pod,
                pods.specs[row].volumes,
                self._storage,
                on_csi_node=True,
                is_new=False,
            )
            try:
                for volume in found:
                    holders.append(row)
                    numbers.append(self.number(volume))
            except VolumeError as error:
                self.errors[row] = str(error)
        return np.array(holders, dtype=np.int64), np.array(numbers, dtype=np.int64)

    def by_attachment(self, node_index: Mapping[str, int]) -> Attached:
        """What VolumeAttachments say is on a node, under the driver that attaches it."""
        nodes: list[int] = []
        numbers: list[int] = []
        for attachment in self._storage.attachments:
            spec = attachment.spec
            volume = self._storage.volumes.get(spec.source.persistent_volume_name or "")
            node = node_index.get(spec.node_name)
            if node is None or not spec.attacher or volume is None or volume.spec.csi is None:
                continue
            name = f"{spec.attacher}/{volume.spec.csi.volume_handle}"
            nodes.append(node)
            numbers.append(self.number(Attachable(name=name, driver=spec.attacher, title=volume.name)))
        return Attached(nodes=np.array(nodes, dtype=np.int64), volumes=np.array(numbers, dtype=np.int64))

    def by_pods(self, nodes: NodeTable) -> Attached:
        """What the pods of a table hold, its own additions and removals included."""
        place = nodes.pods.node[self._pod]
        here = place >= 0
        if nodes.removed is not None:
            gone = nodes.removed.pods << 32 | nodes.removed.nodes
            here &= ~np.isin(self._pod << 32 | place, gone)
        places, volumes = [place[here]], [self._volume[here]]
        if nodes.added is not None:
            start = np.searchsorted(self._pod, nodes.added.pods, side="left")
            count = np.searchsorted(self._pod, nodes.added.pods, side="right") - start
            places.append(np.repeat(nodes.added.nodes, count))
            volumes += [self._volume[first : first + many] for first, many in zip(start, count, strict=True)]
        return Attached(nodes=np.concatenate(places), volumes=np.concatenate(volumes))

    def count(self, driver: str, sources: Sequence[Attached], node_count: int) -> IntArray:
        """(node of the cluster,) how many different volumes of a driver are on each node."""
        nodes = np.concatenate([source.nodes for source in sources])
        volumes = np.concatenate([source.volumes for source in sources])
        mine = np.array(self._driver, dtype=np.int64)[volumes] == self._drivers.get(driver, -1)
        width = max(len(self.volumes), 1)
        pairs = np.unique(nodes[mine] * width + volumes[mine])
        return np.bincount(pairs // width, minlength=node_count).astype(np.int64)

    def on_node(self, driver: str, pods: IntArray, attached: IntArray) -> Iterator[tuple[Attachable, tuple[str, ...]]]:
        """A driver's volumes on a node, by name, each with the pods that hold it, `namespace/name`. The node has `pods`
        (rows), and `attached` are the numbers of the volumes that VolumeAttachments name."""
        code = self._drivers.get(driver, -1)
        held: dict[int, list[str]] = {int(volume): [] for volume in attached}
        for row in pods:
            first, last = np.searchsorted(self._pod, [row, row + 1])
            for volume in self._volume[first:last]:
                held.setdefault(int(volume), []).append(self.pods.key(int(row)))
        mine = (number for number in held if self._driver[number] == code)
        for number in sorted(mine, key=lambda number: self.volumes[number].name):
            yield self.volumes[number], tuple(held[number])
