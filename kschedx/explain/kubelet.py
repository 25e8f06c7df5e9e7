"""Pods that a kubelet rejects: those whose manifest names their node, and those that cannot start on a chosen node."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kschedx.apiserver.pod_classes import SYSTEM_CRITICAL
from kschedx.explain.node_groups import account
from kschedx.findings import HostPortConflict, InsufficientResource, NodeAffinityMismatch, TooManyPods
from kschedx.framework.cycle import Cycle
from kschedx.kube.conditions import condition_of
from kschedx.kube.storage import PersistentVolumeClaim, is_csi_name, own_claims
from kschedx.kube.tolerations import NO_EXECUTE, find_untolerated
from kschedx.kube.types import Node, Pod, PodSpec
from kschedx.patterns import lazy_pattern
from kschedx.plugins.node_volume_limits.attachments import VolumeError, attachable_volumes, is_counted
from kschedx.snapshot.columns import TableRow
from kschedx.snapshot.snapshot import Snapshot

OS_LABEL, ARCH_LABEL = "kubernetes.io/os", "kubernetes.io/arch"


# A pod with spec.nodeName in its manifest: kube-scheduler ignores it, and the node's kubelet decides. Upstream:
# AdmissionCheck in pkg/scheduler/eventhandlers.go, which pkg/kubelet/lifecycle/predicate.go calls; a refused pod has
# its reasons in the status.


def bound_text(node: str) -> str:
    return f"spec.nodeName binds it to {node}, without kube-scheduler"


class BoundByHand(Struct, frozen=True, kw_only=True):
    node: str
    exists: bool
    refusals: tuple[str, ...] = ()  # reasons for which the node's kubelet would refuse the pod
    claim: str = ""  # a claim such as `shop/data` without a selected node, which therefore gets no volume

    @property
    def is_taken(self) -> bool:
        """Whether nothing known prevents the pod from running on the node."""
        return self.exists and not self.refusals and not self.claim

    @property
    def text(self) -> str:
        bound = bound_text(self.node)
        if not self.exists:
            return f"{bound}; the node does not exist"
        if self.refusals:
            return f"{bound}; its kubelet rejects the pod ({', '.join(self.refusals)})"
        if self.claim:
            return f"{bound}, which would select the node of claim {self.claim}: the claim stays unbound"
        return f"{bound}; resources, ports, node affinity, and NoExecute taints permit it"


def bound_by_hand(cycle: Cycle) -> BoundByHand | None:
    """Return what is known about a pod with spec.nodeName; None for other pods."""
    name = cycle.pod.spec.node_name
    if not name or cycle.snapshot.source.may_lack("Node") or cycle.snapshot.left_out_node(cycle.pod):
        return None
    row = cycle.snapshot.cluster.index.get(name)
    if row is None:
        return BoundByHand(node=name, exists=False)
    refusals = dict.fromkeys(_kubelet_refusals(cycle, cycle.snapshot.cluster.nodes[row]))
    claim = claim_without_node(cycle.snapshot, cycle.pod)
    return BoundByHand(node=name, exists=True, refusals=tuple(refusals), claim=claim)


# What keeps a pod from starting on a node that kube-scheduler accepts: the kubelet checks spec.os
# (pkg/kubelet/lifecycle/predicate.go) and its node's pressure (pkg/kubelet/eviction/eviction_manager.go), and a CSI
# driver attaches and mounts volumes where its CSINode lists it (pkg/volume/csi/csi_attacher.go). An image for one
# architecture names it by convention.


class _StartObstacle(Struct, frozen=True, kw_only=True):
    why: str
    label: str = ""  # the label of nodes that the pod needs, such as `kubernetes.io/os=windows`
    driver: str = ""  # the CSI driver that the node lacks
    claim: str = ""  # the claim whose volume is attached to another node
    pressure: str = ""  # the node's condition for which its kubelet rejects the pod


_ARCHITECTURES = {
    "amd64": "amd64", "x86_64": "amd64", "arm64": "arm64", "arm64v8": "arm64", "aarch64": "arm64",
    "ppc64le": "ppc64le", "s390x": "s390x", "riscv64": "riscv64",
}  # fmt: skip
"""Words in the names of images for one architecture, and the values of the node label."""


def _architecture_of(image: str) -> str:
    """Return the architecture in the repository (`arm64v8/nginx`) or at the end of the tag (`app:1.2-arm64`)."""
    path, _, tag = image.partition("@")[0].rpartition("/")[-1].partition(":")
    owner = image.rpartition("/")[0].rpartition("/")[-1]
    words = (owner, tag.replace("_", "-").rpartition("-")[-1], path.rpartition("-")[-1])
    return next((_ARCHITECTURES[word] for word in words if word in _ARCHITECTURES), "")


def _platform_of(image: str) -> dict[str, str]:
    """Return the labels of the nodes for which an image is built, as far as its name says."""
    system = {OS_LABEL: "windows"} if _OF_WINDOWS.search(image) else {}
    return system | ({ARCH_LABEL: architecture} if (architecture := _architecture_of(image)) else {})


_OF_WINDOWS = lazy_pattern(r"^mcr\.microsoft\.com/(windows|dotnet/framework)[/:]|windowsservercore|nanoserver")


def _is_host_process(spec: PodSpec) -> bool:
    """Return whether the containers are processes of a Windows host."""
    contexts = (spec.security_context, *(container.security_context for container in spec.containers))
    return any(context is not None and context.is_host_process for context in contexts)


def may_lack_node_support(spec: PodSpec) -> bool:
    """Return whether `start_obstacle` can find anything for a pod with this spec."""
    is_bound = any(volume.csi or is_counted(volume) for volume in spec.volumes)
    images = (container.image for container in (*spec.init_containers, *spec.containers))
    tolerated = {toleration.key for toleration in spec.tolerations}
    is_bound |= not tolerated.isdisjoint(("", *_PRESSURES)) and (spec.priority or 0) < SYSTEM_CRITICAL
    is_bound |= _is_host_process(spec) or bool(spec.os and spec.os.name)
    return is_bound or any(map(_platform_of, images))


_PRESSURES = {"node.kubernetes.io/disk-pressure": "DiskPressure", "node.kubernetes.io/pid-pressure": "PIDPressure"}
"""Taints to the conditions for which a kubelet rejects every pod that is not critical."""


def _pressure(node: Node, pod: Pod) -> _StartObstacle | None:
    if pod.priority >= SYSTEM_CRITICAL:
        return None
    for condition in _PRESSURES.values():
        if condition_of(node.status.conditions, condition, "True") is not None:
            return _StartObstacle(why=f"its kubelet rejects pods, because it has {condition}", pressure=condition)
    return None


def start_obstacle(snapshot: Snapshot, pod: Pod, name: str) -> _StartObstacle | None:
    """Return the first reason for which the pod cannot start on a node of the cluster; None if none is known."""
    row = snapshot.cluster.index.get(name)
    if row is None:
        return None
    node, os = snapshot.cluster.nodes[row], pod.spec.os
    labels = node.metadata.labels
    if (pressure := _pressure(node, pod)) is not None:
        return pressure
    actual = labels.get(OS_LABEL)
    if os is not None and os.name and actual not in (None, os.name):
        why = f"spec.os is {os.name}, and the node runs {actual} (PodOSNotSupported)"
        return _StartObstacle(why=why, label=f"{OS_LABEL}={os.name}")
    if _is_host_process(pod.spec) and actual not in (None, "windows"):
        why = f"hostProcess containers need Windows, and the node runs {actual}"
        return _StartObstacle(why=why, label=f"{OS_LABEL}=windows")
    if (driver := _missing_driver(snapshot, pod, name)) is not None:
        listing = (entry.name for csi_node in snapshot.storage.csi_nodes.values() for entry in csi_node.spec.drivers)
        lacks = f"CSINode {name} does not list" if driver in listing else "no CSINode lists"
        return _StartObstacle(why=f"{lacks} driver {driver}", driver=driver)
    for claim, why in attached_elsewhere(snapshot, pod, name):
        return _StartObstacle(why=why, claim=claim)
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for label, built in _platform_of(container.image).items():
            if (here := labels.get(label)) not in (None, built):
                why = f"image {container.image} is for {built} by its name, and the node is {here}"
                return _StartObstacle(why=why, label=f"{label}={built}")
    return None


def claims_for_one_node(snapshot: Snapshot, pod: Pod) -> Iterator[PersistentVolumeClaim]:
    """Yield the claims of a pod whose volumes are attached to one node at a time.

    kube-scheduler does not compare ReadWriteOnce volumes. Only volumes that are attached count: those in one place, and
    those with a VolumeAttachment.
    """
    storage = snapshot.storage
    for claim in storage.claims_of(pod):
        modes, volume = claim.spec.access_modes, storage.volumes.get(claim.spec.volume_name)
        if volume is None or volume.spec.csi is None or not modes:
            continue
        attached = (item.spec.source.persistent_volume_name for item in storage.attachments)
        if all(mode.startswith("ReadWriteOnce") for mode in modes) and (
            volume.required_node_affinity is not None or volume.name in attached
        ):
            yield claim


def attached_elsewhere(snapshot: Snapshot, pod: Pod, name: str) -> Iterator[tuple[str, str]]:
    """Yield the pod's claims for one node at a time that a running pod on another node uses, with that reason."""
    pods = snapshot.pods
    for claim in claims_for_one_node(snapshot, pod):
        key, modes = claim.key, claim.spec.access_modes
        there = pods.in_namespace(pod.metadata.namespace)
        there &= pods.phases.where(lambda phase: phase == "Running")
        there &= pods.node_names.where(lambda other: other not in ("", name))
        for row in there.nonzero()[0].tolist():
            holder = pods[row]
            if not pods.deletion_timestamps[row] and holder.key != pod.key and key in own_claims(holder):
                uses = f"claim {key} ({', '.join(modes)}) is in use by {holder.key}"
                yield key, f"{uses} on {holder.spec.node_name}, to which its volume is attached"
                break


def _missing_driver(snapshot: Snapshot, pod: Pod, name: str) -> str | None:
    """Return the first CSI driver of the pod's volumes that the node's CSINode does not list."""
    storage = snapshot.storage
    csi_node = storage.csi_nodes.get(name)
    if csi_node is None:
        return None
    installed = {driver.name for driver in csi_node.spec.drivers}
    drivers = [volume.csi.driver for volume in pod.spec.volumes if volume.csi is not None]
    volumes = [volume for volume in pod.spec.volumes if volume.csi is None]
    unbound = {claim.key for claim in storage.claims_of(pod) if not claim.spec.volume_name}
    migrated = csi_node.migrated_plugins
    try:
        # a provisioner of an unbound claim need not be a CSI driver
        drivers += (
            volume.driver
            for volume in attachable_volumes(pod.metadata, volumes, storage, migrated=migrated, is_new=True)
            if volume.title not in unbound or is_csi_name(volume.driver) or volume.driver in storage.csi_drivers
        )
    except VolumeError:
        return None  # VolumeBinding rejects the pod
    return next((driver for driver in drivers if driver not in installed), None)


def claim_without_node(snapshot: Snapshot, pod: Pod) -> str:
    """Return the first claim of a pod that waits for kube-scheduler to select a node, or an empty string."""
    storage = snapshot.storage
    for claim in storage.claims_of(pod):
        if not claim.spec.volume_name and claim.selected_node is None and storage.waits(claim):
            return claim.key
    return ""


def claim_without_devices(snapshot: Snapshot, pod: Pod) -> str:
    """Return the first ResourceClaim of a pod that kube-scheduler has not allocated, or an empty string."""
    claims = snapshot.devices.claims_of(pod)
    return next((claim.key for claim in claims if claim.status.allocation is None), "")


def _kubelet_refusals(cycle: Cycle, node: Node) -> Iterator[str]:
    """Yield the kubelet's reasons in its order."""
    names = [cycle.nodes.name(TableRow(at)) for at in range(len(cycle.nodes))] if cycle.nodes is not None else []
    if cycle.filter is not None and node.name in names:
        findings = account(cycle, TableRow(names.index(node.name))).findings
        for finding in findings:
            if isinstance(finding, TooManyPods):
                yield "OutOfpods"
            elif isinstance(finding, InsufficientResource):
                yield f"OutOf{finding.resource}"
        if any(isinstance(finding, NodeAffinityMismatch) and finding.source != "addedAffinity" for finding in findings):
            yield "NodeAffinity"
        if any(isinstance(finding, HostPortConflict) for finding in findings):
            yield "NodePorts"
    comparison = cycle.release.compares_taints
    tolerations = cycle.pod.spec.tolerations
    if find_untolerated(node.spec.taints, tolerations, effects=(NO_EXECUTE,), comparison=comparison) is not None:
        yield "TaintToleration"
