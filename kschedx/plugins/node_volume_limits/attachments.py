"""The volume limits of a node, and the volumes that its pods attach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from kschedx.findings import ClaimNotFound
from kschedx.framework.status import Code, Status, worded_error
from kschedx.kube.storage import (
    PersistentVolumeClaim,
    TranslationError,
    claim_name,
    inline_handle,
    not_found_text,
    ownership_error,
    plugin_named,
    plugin_of,
    translate,
)
from kschedx.kube.types import ObjectMeta, PodSpec, Volume
from kschedx.releases import Release
from kschedx.snapshot.columns import BoolArray, ClusterRow, ClusterRows, IntArray, Memo, cluster_rows, distinct
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.storage import Storage

# Limits in a node's allocatable, as `attachable-volumes-*`: until 1.31. Upstream: volumeLimits in
# nodevolumelimits/utils.go.


# The CSI volumes that pods attach to their nodes: the part of NodeVolumeLimits that reads claims and volumes.

_FEW_NODES = 32  # up to this number of nodes, their pods are evaluated node by node
UNBOUND = "<unbound>"  # replaces the random prefix that upstream adds to handles of volumes that do not exist yet


class Attachable(Struct, frozen=True, kw_only=True):
    """A volume that counts against its driver's limit, once per node."""

    name: str  # `driver/handle`
    driver: str
    title: str  # the name on screens: the claim as `namespace/name`, or the disk
    plugin: str = ""  # the in-tree plugin that it is migrated from; it counts on nodes that migrate this plugin


class VolumeError(Exception):
    """Why a pod's volumes cannot be counted, as upstream's message."""

    def __init__(
        self, text: str, missing_claim: str = "", volume: str = "", ephemeral: bool = False, plugin: str = ""
    ) -> None:
        super().__init__(text)
        self.plugin = plugin  # the in-tree plugin whose migration causes the error
        self.missing_claim = missing_claim  # `namespace/name` of a missing claim, else empty
        self.volume = volume
        self.ephemeral = ephemeral

    def status(self, release: Release) -> Status:
        """Return the status that rejects a pod whose own volumes cannot be counted, on every node."""
        if not self.missing_claim:
            return worded_error(str(self))
        missing = ClaimNotFound(claim=self.missing_claim, volume=self.volume, ephemeral=self.ephemeral)
        unresolvable = release.behavior.missing_claim_is_unresolvable
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else Code.ERROR
        return Status(code=code, reasons=(str(self),), findings=(missing,))


def is_counted(volume: Volume) -> bool:
    """Return whether a CSI driver may attach the volume."""
    has_claim = volume.persistent_volume_claim is not None or volume.ephemeral is not None
    return has_claim or plugin_of(volume) is not None


def where_unlimited(spec: PodSpec, nodes: NodeTable) -> BoolArray:
    """(node,) whether no limit of the node can reject the pod: it would be the first to attach a volume there, and a
    kubelet writes no limit below 1 to its CSINode (pkg/volume/csi/nodeinfomanager)."""
    if sum(map(is_counted, spec.volumes)) > 1:
        return np.zeros(len(nodes), dtype=np.bool_)
    attaches = nodes.pods.specs.where(lambda other: any(map(is_counted, other.volumes)))
    free: BoolArray = nodes.count_where(attaches) == 0
    return free


def attachable_volumes(
    pod: ObjectMeta, volumes: Sequence[Volume], storage: Storage, *, migrated: frozenset[str], is_new: bool
) -> Iterator[Attachable]:
    """Yield the volumes of a pod that count (filterAttachableVolumes in csi.go). Raises `VolumeError`.

    In-tree volumes count if their plugin is `migrated`. A missing claim of a running pod does not count.
    """
    for volume in volumes:
        name = claim_name(pod.name, volume)
        if name is None:
            attachable = _inline(volume, migrated)
        else:
            claim = claim_of(pod, volume, name, storage, is_new=is_new)
            attachable = None if claim is None else _claimed_volume(claim, storage, migrated)
        if attachable is not None:
            yield attachable


def claim_of(
    pod: ObjectMeta, volume: Volume, name: str, storage: Storage, *, is_new: bool
) -> PersistentVolumeClaim | None:
    """Return the claim of a pod's volume; None for a missing claim of a running pod. Raises `VolumeError`."""
    if not name:
        raise VolumeError("PersistentVolumeClaim had no name")
    key, ephemeral = f"{pod.namespace}/{name}", volume.persistent_volume_claim is None
    claim = storage.claim(pod.namespace, name)
    if claim is None and is_new:
        text = f"looking up PVC {key}: {not_found_text('persistentvolumeclaim', name)}"
        raise VolumeError(text, key, volume.name, ephemeral)
    wrong = ownership_error(claim, pod) if claim is not None and ephemeral else None
    if wrong:
        raise VolumeError(wrong)
    return claim


def _inline(volume: Volume, migrated: frozenset[str]) -> Attachable | None:
    plugin = plugin_of(volume)
    if plugin is None or plugin.name not in migrated:
        return None
    try:
        handle = inline_handle(volume)
    except TranslationError as error:
        text = f"converting volume({volume.name}) from inline to csi: {error}"
        raise VolumeError(text, plugin=plugin.name) from None
    return Attachable(name=f"{plugin.driver}/{handle}", driver=plugin.driver, title=handle, plugin=plugin.name)


def _claimed_volume(claim: PersistentVolumeClaim, storage: Storage, migrated: frozenset[str]) -> Attachable | None:
    """Return the claim's volume, or the volume that its class would provision."""
    volume = storage.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        return _class_volume(claim, storage, migrated)
    source, plugin_name = volume.spec.csi, ""
    if source is None:
        plugin = plugin_of(volume.spec)
        if plugin is None or plugin.name not in migrated:
            return None
        try:
            source, plugin_name = translate(volume).spec.csi, plugin.name
        except TranslationError:
            return None
    return _attachable(source.driver, source.volume_handle, claim, plugin_name) if source else None


def _class_volume(claim: PersistentVolumeClaim, storage: Storage, migrated: frozenset[str]) -> Attachable | None:
    storage_class = storage.classes.get(claim.storage_class) if claim.storage_class else None
    if storage_class is None:
        return None
    handle = f"{UNBOUND}-{claim.key}"
    plugin = plugin_named(storage_class.provisioner)
    if plugin is None:
        return _attachable(storage_class.provisioner, handle, claim)
    return _attachable(plugin.driver, handle, claim, plugin.name) if plugin.name in migrated else None


def _attachable(driver: str, handle: str, claim: PersistentVolumeClaim, plugin: str = "") -> Attachable | None:
    """Return None without a driver or a handle."""
    if not driver or not handle:
        return None
    return Attachable(name=f"{driver}/{handle}", driver=driver, title=claim.key, plugin=plugin)


class VolumesOnNodes(Struct, frozen=True, kw_only=True):
    """Volumes on nodes: `volumes[i]` is on row `nodes[i]` of the cluster. Pairs may repeat."""

    nodes: ClusterRows
    volumes: IntArray

    def nodes_with(self, volume: int) -> IntArray:
        """Rows of the cluster's nodes with this volume."""
        rows: IntArray = self.nodes[self.volumes == volume]
        return rows

    def volumes_on(self, node: ClusterRow) -> IntArray:
        volumes: IntArray = self.volumes[self.nodes == node]
        return volumes


class AttachedVolumes:
    """The volumes of all pods and VolumeAttachments of the cluster, each with a number."""

    def __init__(self, storage: Storage, pods: PodTable, migrated: frozenset[str]) -> None:
        self._storage = storage
        self.pods = pods
        self.volumes: list[Attachable] = []
        self.errors: dict[int, VolumeError] = {}  # by pod row
        self.plugins: list[str] = [""]  # the in-tree plugins that volumes are migrated from; the first entry means none
        self._migrated = migrated
        self._seen = len(storage.changed)
        self._numbers: dict[str, int] = {}
        self._drivers: dict[str, int] = {}
        self._driver: list[int] = []
        self._driver_column: IntArray = np.zeros(0, dtype=np.int64)
        self._codes = {"": 0}
        self._holders: dict[int, list[int]] = {}
        concerned = pods.specs.where(lambda spec: any(map(is_counted, spec.volumes)))
        self._pod, self._volume, self._plugin = self._pairs(np.flatnonzero(concerned).tolist())
        self.plugins = list(self._codes)

    @classmethod
    def of(cls, storage: Storage, pods: PodTable, migrated: frozenset[str]) -> AttachedVolumes:
        """Compute once for all what-ifs that only assign, start, or end pods. `migrated` on any node."""
        # the cache holds the specs, so that their ids are not reused
        known = _ATTACHED.of(storage.derived, lambda: cls(storage, pods, migrated), id(pods.specs), migrated)
        known._catch_up()
        return known

    def _catch_up(self) -> None:
        """Apply the claims that have changed in a moving cluster."""
        changed = self._storage.changed
        if self._seen == len(changed):
            return
        rows = {row for key in set(changed[self._seen :]) for row in self.pods.rows_with_claim(key)}
        self._seen = len(changed)
        for row in rows:
            first, last = np.searchsorted(self._pod, [row, row + 1])
            for volume in self._volume[first:last].tolist():
                self._holders[volume].remove(row)
            self.errors.pop(row, None)
            pod, volumes, plugins = self._pairs([row])
            self._pod = np.concatenate([self._pod[:first], pod, self._pod[last:]])
            self._volume = np.concatenate([self._volume[:first], volumes, self._volume[last:]])
            self._plugin = np.concatenate([self._plugin[:first], plugins, self._plugin[last:]])
        self.plugins = list(self._codes)

    def is_held(self, volume: Attachable, pods: PodTable) -> bool:
        number = self._numbers.get(volume.name)
        return number is not None and any(pods.node[row] >= 0 for row in self._holders.get(number, ()))

    def number(self, volume: Attachable) -> int:
        """Return the volume's number, or assign the next one."""
        number = self._numbers.setdefault(volume.name, len(self.volumes))
        if number == len(self.volumes):
            self.volumes.append(volume)
            self._driver.append(self._drivers.setdefault(volume.driver, len(self._drivers)))
        return number

    def _pairs(self, rows: Iterable[int]) -> tuple[IntArray, IntArray, IntArray]:
        """(pair,) rows of the pods in their order, the numbers of their volumes, and the volumes' plugins."""
        holders: list[int] = []
        numbers: list[int] = []
        plugins: list[int] = []
        pods = self.pods
        for row in rows:
            pod = ObjectMeta(name=pods.names[row], namespace=pods.namespaces[row], uid=pods.uids[row])
            volumes = pods.specs[row].volumes
            mounted = attachable_volumes(pod, volumes, self._storage, migrated=self._migrated, is_new=False)
            try:
                for volume in mounted:
                    holders.append(row)
                    numbers.append(self.number(volume))
                    plugins.append(self._codes.setdefault(volume.plugin, len(self._codes)))
                    self._holders.setdefault(numbers[-1], []).append(row)
            except VolumeError as error:
                self.errors[row] = error
        pairs = (np.array(column, dtype=np.int64) for column in (holders, numbers, plugins))
        return next(pairs), next(pairs), next(pairs)

    def attached_volumes(self, node_index: Mapping[str, ClusterRow]) -> VolumesOnNodes:
        """Return the volumes that VolumeAttachments attach, under their drivers."""
        nodes: list[ClusterRow] = []
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
        return VolumesOnNodes(nodes=cluster_rows(nodes), volumes=np.array(numbers, dtype=np.int64))

    def volumes_of_pods(self, nodes: NodeTable, where_migrated: Callable[[str], BoolArray]) -> VolumesOnNodes:
        """Return the volumes of the table's pods, with its own additions and removals. `where_migrated` returns for an
        in-tree plugin the nodes of the cluster where its volumes count."""
        if len(nodes) <= _FEW_NODES:
            return self._volumes_of_few(nodes, where_migrated)
        place = nodes.pods.node[self._pod]
        here = place >= 0
        if nodes.removed is not None:
            gone = nodes.removed.pods << 32 | nodes.removed.nodes
            here &= ~np.isin(self._pod << 32 | place, gone)
        places, volumes, plugins = [place[here]], [self._volume[here]], [self._plugin[here]]
        if nodes.added is not None:
            start = np.searchsorted(self._pod, nodes.added.pods, side="left")
            count = np.searchsorted(self._pod, nodes.added.pods, side="right") - start
            places.append(np.repeat(nodes.added.nodes, count))
            spans = [slice(first, first + many) for first, many in zip(start, count, strict=True)]
            volumes += [self._volume[span] for span in spans]
            plugins += [self._plugin[span] for span in spans]
        attached = np.concatenate(places), np.concatenate(volumes), np.concatenate(plugins)
        return self._drop_unmigrated(*attached, where_migrated)

    def _volumes_of_few(self, nodes: NodeTable, where_migrated: Callable[[str], BoolArray]) -> VolumesOnNodes:
        """As `volumes_of_pods`, at a cost that depends only on the table."""
        pods = [nodes.pods_on(row) for row in nodes.each()]
        rows, on = np.concatenate(pods), np.repeat(nodes.rows, [len(some) for some in pods])
        start = np.searchsorted(self._pod, rows, side="left")
        count = np.searchsorted(self._pod, rows, side="right") - start
        first = np.repeat(start - np.cumsum(count) + count, count)
        pairs = first + np.arange(len(first))
        return self._drop_unmigrated(np.repeat(on, count), self._volume[pairs], self._plugin[pairs], where_migrated)

    def _drop_unmigrated(
        self, on: IntArray, held: IntArray, of_plugin: IntArray, where_migrated: Callable[[str], BoolArray]
    ) -> VolumesOnNodes:
        """Keep the volumes of a plugin only on nodes that migrate it."""
        counts = np.ones(len(on), dtype=np.bool_)
        for code, plugin in enumerate(self.plugins[1:], start=1):
            counts &= (of_plugin != code) | where_migrated(plugin)[on]
        return VolumesOnNodes(nodes=ClusterRows(on[counts]), volumes=held[counts])

    def count(self, driver: str, sources: Sequence[VolumesOnNodes], node_count: int) -> IntArray:
        """(node of the cluster,) the number of distinct volumes of a driver."""
        nodes = np.concatenate([source.nodes for source in sources])
        volumes = np.concatenate([source.volumes for source in sources])
        mine = self._driver_of(volumes) == self._drivers.get(driver, -1)
        width = max(len(self.volumes), 1)
        pairs = distinct(nodes[mine] * width + volumes[mine])
        return np.bincount(pairs // width, minlength=node_count).astype(np.int64)

    def _driver_of(self, volumes: IntArray) -> IntArray:
        """(volume,) the numbers of the volumes' drivers."""
        if len(self._driver_column) != len(self._driver):
            new = np.array(self._driver[len(self._driver_column) :], dtype=np.int64)
            self._driver_column = np.concatenate([self._driver_column, new])
        return self._driver_column[volumes]

    def on_node(self, driver: str, pods: IntArray, attached: IntArray) -> Iterator[tuple[Attachable, tuple[str, ...]]]:
        """Yield a driver's volumes on a node by name, each with the pods that use it as `namespace/name`. `pods` are
        rows of the node's pods, `attached` the numbers of volumes in VolumeAttachments."""
        code = self._drivers.get(driver, -1)
        held: dict[int, list[str]] = {int(volume): [] for volume in attached}
        for row in pods:
            first, last = np.searchsorted(self._pod, [row, row + 1])
            for volume in self._volume[first:last]:
                held.setdefault(int(volume), []).append(self.pods.key(int(row)))
        mine = (number for number in held if self._driver[number] == code)
        for number in sorted(mine, key=lambda number: self.volumes[number].name):
            yield self.volumes[number], tuple(held[number])


_ATTACHED = Memo[AttachedVolumes]()
