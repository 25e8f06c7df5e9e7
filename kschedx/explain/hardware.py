"""Hardware of nodes that offer less of it than the pod requests, or offer it under another name; devices of drivers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import ge

from msgspec import Struct, json
from msgspec.structs import replace

from kschedx.explain.advice import Advice, FixGroup, RootCause, root_cause
from kschedx.findings import DeviceShortage, Finding, InsufficientResource
from kschedx.grouping import group_pairs
from kschedx.kube.autoscalers import HAMI_REGISTER
from kschedx.kube.conditions import reports_ready
from kschedx.kube.decoding import list_at
from kschedx.kube.devices import ADMIN_ACCESS_LABEL, DeviceSelector
from kschedx.kube.escaping import shell_command, why_command
from kschedx.kube.names import INSTANCE_TYPE, INSTANCE_TYPE_LABELS, first_label, is_hugepages, is_native_resource
from kschedx.kube.quantity import Unit, format_quantities, resource_amount
from kschedx.kube.resources import RequestOptions, container_requests, pod_request
from kschedx.kube.scalars import parse_int64
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, find_untolerated
from kschedx.kube.types import Node, Pod, PodSpec
from kschedx.kube.typos import nearest_name
from kschedx.kube.workloads import pinned_to, selects_node
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.columns import ClusterRow, Memo
from kschedx.snapshot.daemon_sets import daemon_pods
from kschedx.snapshot.nodes import ClusterNodes
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

_DRIVER = lazy_pattern(r"device\.driver\s*==\s*[\"']([^\"']+)[\"']")


class _NoDevicesPublished(RootCause, frozen=True, kw_only=True):
    driver: str  # empty if the class does not name one


class _PartitionedResource(RootCause, frozen=True, kw_only=True):
    """Nodes offer other resources of the same vendor instead of the requested one."""

    others: tuple[str, ...]


class DevicePluginDown(RootCause, frozen=True, kw_only=True):
    """Why a node's device plugin publishes nothing."""

    pod: str = ""  # the plugin's pod, `namespace/name`; empty if the node has none
    finds_nothing: bool = False  # whether the pod runs, and the node has none of the resource
    repair: str = ""  # what lets the node publish its devices; empty if that is not known


# Nodes with the labels of some hardware that do not offer its device plugin's resource.

VENDOR_LABELS: Mapping[str, tuple[str, ...]] = {
    "nvidia.com": ("nvidia.com/", "feature.node.kubernetes.io/pci-10de", "feature.node.kubernetes.io/pci-0302_10de"),
    "amd.com": ("amd.com/", "feature.node.kubernetes.io/pci-1002"),
    "gpu.intel.com": ("gpu.intel.com/", "intel.feature.node.kubernetes.io/gpu", "feature.node.kubernetes.io/pci-8086"),
    "habana.ai": ("habana.ai/", "feature.node.kubernetes.io/pci-1da3"),
    "aws.amazon.com": ("aws.amazon.com/neuron", "feature.node.kubernetes.io/pci-1d0f"),
}
"""Domain of an extended resource to the prefixes of its hardware labels: the vendor's, and node-feature-discovery's."""
_ANY_GPU = ("cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator", "accelerator")
"""Labels of cloud providers for nodes with any vendor's accelerators."""

_OF_MACHINES = ("cloud.google.com/gke-tpu-", "cloud.google.com/compute-class", "cloud.google.com/machine-family")
"""Labels of GKE for machines with a property that a pod selects."""

INSTANCE_TYPES: Mapping[str, re.Pattern[str]] = {
    "nvidia.com": re.compile(r"(?:g4dn|g5g?|g6e?|gr6|p[2-6]\w*)\.\w+|Standard_N[CD]\w+|a[23]-\w+gpu-\w+"),
    "amd.com": re.compile(r"g4ad\.\w+"),
    "habana.ai": re.compile(r"dl1\.\w+"),
    "aws.amazon.com": re.compile(r"(?:inf|trn)\d\w*\.\w+"),
}
"""Domain of an extended resource to the instance types of cloud providers that have the hardware."""
NODE_FEATURES: Mapping[str, str] = {
    "devices.kubevirt.io/kvm": "hardware virtualization (/dev/kvm)",
    "devices.kubevirt.io/sev": "AMD SEV (/dev/sev)",
}
"""Resources that nodes offer without a device of their own, and the setting of the machine that it takes."""


_REGISTERED_BY: Mapping[str, str] = {
    "vpc.amazonaws.com/pod-eni": "EKS adds it to Nitro instances if aws-node has ENABLE_POD_ENI=true",
    "vpc.amazonaws.com/PrivateIPv4Address": "EKS adds it to Windows nodes if amazon-vpc-cni enables Windows IPAM",
    "vpc.amazonaws.com/efa": "the EFA device plugin registers it on instances with EFA",
    "smarter-devices/": "smarter-device-manager registers it on nodes with a device that its ConfigMap names",
    "squat.ai/": "generic-device-plugin registers it on nodes with a device that its arguments name",
    "rdma/": "the RDMA shared device plugin registers it, as its ConfigMap names it",
    "intel.com/": "the SR-IOV network device plugin registers it, as its ConfigMap names it",
    "openshift.io/": "the SR-IOV network operator registers it, as a SriovNetworkNodePolicy names it",
    "devices.kubevirt.io/": "virt-handler registers it on nodes that can run virtual machines",
    "google.com/tpu": "GKE registers it on nodes of TPU node pools",
    "nvidia.com/gpumem": "only HAMi's scheduler counts it, on nodes with HAMi's device plugin",
    "nvidia.com/gpucores": "only HAMi's scheduler counts it, on nodes with HAMi's device plugin",
    "aliyun.com/gpu-mem": "the GPU share device plugin registers it, and its scheduler extender counts it",
    "volcano.sh/vgpu-": "Volcano's vGPU device plugin registers it",
    "aws.amazon.com/neuron": "the Neuron device plugin registers it on Inferentia and Trainium instances",
    "kubernetes.io/batch-": "Koordinator's koord-manager adds it to nodes for which colocation is enabled",
    "kubernetes.io/mid-": "Koordinator's koord-manager adds it to nodes for which colocation is enabled",
    "koordinator.sh/": "Koordinator's koord-manager adds it to nodes whose koordlet reports devices",
}
"""Extended resources, or their domains, to the component that registers them with the kubelet, and where."""
_ENABLED_BY: Mapping[str, str] = {
    "vpc.amazonaws.com/pod-eni": "set ENABLE_POD_ENI=true in DaemonSet kube-system/aws-node, for nodes on Nitro",
    "vpc.amazonaws.com/PrivateIPv4Address": 'set enable-windows-ipam: "true" in ConfigMap kube-system/amazon-vpc-cni',
    "nvidia.com/gpumem": "install HAMi, or request whole GPUs",
    "aliyun.com/gpu-mem": "install the GPU share device plugin and scheduler extender, or request whole GPUs",
}

_BRANCH_INTERFACE = "vpc.amazonaws.com/pod-eni"
_UNLIKE_OTHERS = ("devices.kubevirt.io/", "vpc.amazonaws.com/")
"""Prefixes of resources of different kinds, so that none replaces another: devices.kubevirt.io/kvm and tun."""


def _registration(resource: str) -> str:
    return next((text for prefix, text in _REGISTERED_BY.items() if resource.startswith(prefix)), "")


def names_hardware(key: str) -> bool:
    """Return whether a label names the node's hardware, for which a pod that selects it is built."""
    of_vendors = (prefix for its in VENDOR_LABELS.values() for prefix in its)
    prefixes = (*of_vendors, *_ANY_GPU, *_OF_MACHINES, "feature.node.kubernetes.io/")
    return key.startswith(prefixes)


class HardwareHint(Struct, frozen=True, kw_only=True):
    resource: str
    nodes: tuple[tuple[str, str], ...]  # node and its hardware label, `key=value`


def hardware_hint(finding: Finding, cluster: ClusterNodes) -> HardwareHint | None:
    """Return None if no node has such labels, or if some node offers the resource. A node that offers another resource
    of the vendor runs its plugin and has nothing more to offer; so does one with any GPU and a label that names no
    vendor."""
    if not isinstance(finding, InsufficientResource) or not finding.offered_nowhere:
        return None
    if is_native_resource(finding.resource):  # no vendor's: any node has labels of kubernetes.io
        return None
    domain = finding.resource.partition("/")[0]
    of_vendor = VENDOR_LABELS.get(domain, (f"{domain}/",))
    wanted = (finding.resource, *of_vendor, *(_ANY_GPU if "gpu" in finding.resource else ()))
    keys = [key for prefix in wanted for key in sorted(cluster.label_keys) if key.startswith(prefix)]
    hints: dict[str, str] = {}
    if (types := INSTANCE_TYPES.get(domain)) is not None:
        for node in cluster.nodes:
            kind = first_label(node.metadata.labels, INSTANCE_TYPE_LABELS)
            if types.fullmatch(kind) and not _offers_of(node, domain):
                hints[node.name] = f"{INSTANCE_TYPE}={kind}"
    for key in keys:
        for node in cluster.nodes:
            value = node.metadata.labels.get(key)
            offered = (name.partition("/")[2] for name in _offered_resources(node))
            # GPUs of any vendor explain a label for any vendor's accelerators
            is_of_any = not key.startswith((finding.resource, *of_vendor)) and any("gpu" in name for name in offered)
            if value is not None and value != "false" and not is_of_any and not _offers_of(node, domain):
                hints.setdefault(node.name, f"{key}={value}")
    return HardwareHint(resource=finding.resource, nodes=tuple(hints.items())) if hints else None


def hardware_label(driver: str, node: Node) -> str:
    """Return the label, `key=value`, that shows the hardware of a DRA driver on a node, or an empty string."""
    prefixes = next(
        (its for vendor, its in VENDOR_LABELS.items() if f".{driver}".endswith(f".{vendor}")), (f"{driver}/",)
    )
    labels = (
        f"{key}={value}"
        for prefix in (*prefixes, *(_ANY_GPU if "gpu" in driver else ()))
        for key, value in sorted(node.metadata.labels.items())
        if key.startswith(prefix) and value != "false"
    )
    return next(labels, "")


def _offered_resources(node: Node) -> Iterator[str]:
    return (name for name, amount in node.status.allocatable.items() if str(amount) != "0")


def _offers_of(node: Node, domain: str) -> bool:
    return any(name.startswith(f"{domain}/") for name in _offered_resources(node))


def _offers_parts(node: Node, resource: str) -> bool:
    """Return whether a node offers shares of a device, such as nvidia.com/gpu.shared or a MIG profile: its plugin runs
    and publishes the devices under another name."""
    parts = (f"{resource}.", *([_MIG_PROFILES] if resource == "nvidia.com/gpu" else ()))
    return any(name.startswith(parts) for name in _offered_resources(node))


def unhealthy_devices(node: Node, resource: str) -> tuple[int, int] | None:
    """Return a node's capacity and allocatable of an extended resource, if the capacity is larger."""
    capacity, left = node.status.capacity.get(resource), node.status.allocatable.get(resource)
    if "/" not in resource or capacity is None or capacity == left:
        return None
    amounts = resource_amount(resource, capacity), resource_amount(resource, left)
    return amounts if amounts[0] > amounts[1] else None


def nodes_with_unhealthy(cluster: ClusterNodes, resource: str) -> dict[str, tuple[int, int]]:
    """Return nodes to their `unhealthy_devices`."""
    nodes = cluster.nodes if "/" in resource else ()
    return {node.name: amounts for node in nodes if (amounts := unhealthy_devices(node, resource)) is not None}


def unhealthy(snapshot: Snapshot, finding: InsufficientResource, *, is_down: bool) -> Iterator[RootCause]:
    """Yield nodes whose device plugin reports unhealthy devices; without them, nodes whose plugin reports none. The
    repair of a plugin that is down is known."""
    resource = finding.resource
    unhealthy = nodes_with_unhealthy(snapshot.cluster, resource)
    if "/" in resource and finding.offered_nowhere and not unhealthy:
        nodes = (node for node in snapshot.cluster.nodes if not _offers_parts(node, resource))
        empty = [node.name for node in nodes if resource in node.status.allocatable]
        for name in empty[:1]:
            why = _registration(resource) or "its device plugin finds no device, or does not run"
            text = f"{name}{_more_nodes_text(len(empty))}: 0 {resource} in capacity and allocatable; {why}"
            title = f"check why the device plugin finds no {resource} on {name}: its log, its configuration"
            yield root_cause(text, "" if is_down or resource in NODE_FEATURES else title, by_default=FixGroup.CLUSTER)
        if not empty and (registration := _registration(resource)):
            text, title = f"no node lists {resource}: {registration}", _ENABLED_BY.get(resource, "")
            if resource == _BRANCH_INTERFACE and _has_branch_interfaces(snapshot):
                title = "use instance types with branch network interfaces, such as m5 or c5: the t family has none"
            yield root_cause(text, title, by_default=FixGroup.CLUSTER)
    for name, amounts in islice(unhealthy.items(), 1):
        yield RootCause(text=f"{name}{_more_nodes_text(len(unhealthy))}: {unhealthy_text(resource, *amounts)}")


def _has_branch_interfaces(snapshot: Snapshot) -> bool:
    """Whether the VPC CNI of EKS already manages branch network interfaces, for pods with security groups."""
    raw = snapshot.workloads.get(("DaemonSet", "kube-system", "aws-node"), b"{}")
    containers = list_at(json.decode(raw), "spec", "template", "spec", "containers")
    variables = (each for container in containers for each in list_at(container, "env"))
    return {"name": "ENABLE_POD_ENI", "value": "true"} in variables


def unhealthy_text(resource: str, capacity: int, allocatable: int) -> str:
    """Return how much of a resource a node offers, and why it is less than its capacity."""
    amounts = f"capacity {capacity} {resource}, allocatable {allocatable}"
    return f"{amounts}; its device plugin reports unhealthy devices, or does not run"


def _more_nodes_text(nodes: int) -> str:
    return f" (and {count(nodes - 1, 'more node')})" if nodes > 1 else ""


def plugins_down(
    snapshot: Snapshot,
    options: RequestOptions,
    resource: str,
    hints: Iterable[HardwareHint],
    lacking: Iterable[str],
) -> Iterator[DevicePluginDown]:
    """Check the first node that has the hardware and does not offer the resource. Device plugins run on nodes without
    the hardware, too. Nodes may be `lacking` nothing else for the pod."""
    hinted = (hint.nodes for hint in hints if hint.resource == resource)
    ill = nodes_with_unhealthy(snapshot.cluster, resource)
    for node in (*(name for nodes in hinted for name, _ in nodes), *ill):
        if (down := device_plugin_down(snapshot, options, resource, node)) is not None:
            yield down
            return
    if "/" in resource and next(_plugin_rows(snapshot, resource), None) is None:
        downs = (device_plugin_down(snapshot, options, resource, node) for node in lacking)
        for down in islice((down for down in downs if down is not None and down.repair), 1):
            yield replace(down, advice=(Advice(title=down.repair, by_default=FixGroup.CLUSTER),))
            return
    yield from _plugins_failing_everywhere(snapshot, options, resource)


def _plugins_failing_everywhere(
    snapshot: Snapshot, options: RequestOptions, resource: str
) -> Iterator[DevicePluginDown]:
    """Yield a device plugin's pod that does not run, if no node lists the resource and none is known to have the
    hardware."""
    if "/" not in resource or any(resource in node.status.allocatable for node in snapshot.cluster.nodes):
        return
    pods = snapshot.pods
    for row in (row for row in _plugin_rows(snapshot, resource) if container_state(pods[row])):
        node = pods.node_names[row]
        if (
            (down := device_plugin_down(snapshot, options, resource, node)) is not None
            and down.pod
            and not down.finds_nothing
        ):
            advice = Advice(
                title=f"repair {down.pod}",
                node=node,
                why=f", if {node} has the device",
                commands=(why_command(down.pod),),
                group=FixGroup.CLUSTER,
            )
            yield replace(down, text=down.text.removeprefix("its "), advice=(advice,))
            return


def idle_plugins(
    snapshot: Snapshot, finding: InsufficientResource, hints: Iterable[HardwareHint]
) -> Iterator[RootCause]:
    """Yield the first device plugin that runs, if no node has the resource, and no label names the hardware."""
    resource, pods = finding.resource, snapshot.pods
    capacities = (node.status.capacity.get(resource, "0") for node in snapshot.cluster.nodes)
    if not finding.offered_nowhere or "/" not in resource or {*hints} or any(str(it) != "0" for it in capacities):
        return
    if resource in NODE_FEATURES and any(resource in node.status.allocatable for node in snapshot.cluster.nodes):
        return
    rows = [row for row in _plugin_rows(snapshot, resource) if not container_state(pods[row])]
    for row in rows[:1]:
        key, node = pods.key(row), pods.node_names[row]
        text = f"device plugin {key} runs on {node}{_more_nodes_text(len(rows))}, and registers no {resource}"
        repair, why = f"if {node} has devices for {resource}, repair its driver or container runtime", "registers none"
        advice = Advice(title=repair, node=node, why=f": its device plugin {why}", group=FixGroup.CAPACITY)
        yield RootCause(text=text, advice=(advice,))


_PLUGIN_NAMES: Mapping[str, str] = {
    "devices.kubevirt.io/": "virt-handler",
    "rdma/": "rdma-shared-dp",
    "smarter-devices/": "smarter-device-m",
}
"""Prefixes of resources to a part of their plugin's name, if that does not tell that it is one."""


def _is_plugin(name: str, resource: str) -> bool:
    """Return whether a pod or DaemonSet of this name is a device plugin of the resource's vendor."""
    if any(resource.startswith(prefix) and part in name for prefix, part in _PLUGIN_NAMES.items()):
        return True
    is_named = "-plugin" in name and "kubelet-plugin" not in name  # a DRA driver's
    return is_named and any(word in name for word in {*re.split(r"[./-]", resource)} - _NO_VENDOR)


def _plugin_rows(snapshot: Snapshot, resource: str) -> Iterator[int]:
    """Yield the rows of the pods with nodes that are device plugins of the resource's vendor."""
    pods = snapshot.pods
    return (row for row, name in enumerate(pods.names) if _is_plugin(name, resource) and pods.node[row] >= 0)


_MIG_LAYOUT, _MIG_STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
_MIG_CAPABLE, _MIG_PROFILES = "nvidia.com/mig.capable", "nvidia.com/mig-"


def device_plugin_down(
    snapshot: Snapshot, options: RequestOptions, resource: str, node: str
) -> DevicePluginDown | None:
    """Return None if the cluster has no known plugin, or if its pod is ready on a node that has the resource."""
    pods = snapshot.pods
    row = snapshot.cluster.index.get(node)
    labels = snapshot.cluster.nodes[row].metadata.labels if row is not None else {}
    layout, state = labels.get(_MIG_LAYOUT, ""), labels.get(_MIG_STATE, "success")
    if resource.startswith("nvidia.com/") and layout and state != "success":
        text = f"the MIG manager has not applied {_MIG_LAYOUT}={layout} on {node}: state {state}"
        verb = "repair" if state == "failed" else "wait for"
        repair = f"{verb} the MIG manager on {node}, which applies {_MIG_LAYOUT}={layout}"
        return DevicePluginDown(text=text, repair=repair)
    waiting = [row for row in pods.pending if pinned_to(pods.specs[row]) == node]
    for item in (*waiting, *([] if row is None else pods.on_node(row).tolist())):
        if _is_plugin(pods.names[item], resource):
            state, pod, blocker = container_state(pods[item]), pods.key(item), ""
            if state.startswith(_INIT) and row is not None:
                others = (it for it in pods.on_node(row).tolist() if pods.namespaces[it] == pods.namespaces[item])
                failing = ((pods.key(it), why) for it in others if (why := container_state(pods[it])) and it != item)
                blocker, why = next((it for it in failing if not it[1].startswith(_INIT)), ("", ""))
                state = f"it waits for {blocker}: {why}" if blocker else state
            if state:
                text = f"its device plugin {pod} on {node} does not run: {state}"
                waits = f"repair {blocker}, for which the device plugin on {node} waits"
                own = f"repair device plugin {pod} on {node}"
                return DevicePluginDown(text=text, pod=pod, repair=waits if blocker else own)
            if row is None or str(snapshot.cluster.nodes[row].status.capacity.get(resource, "0")) != "0":
                return None
            text = f"its device plugin {pod} on {node} runs, but registers no {resource}"
            repair = f"repair the driver or container runtime of {node}, so that {pod} registers its devices"
            return DevicePluginDown(text=text, pod=pod, finds_nothing=True, repair=repair)
    if row is None:
        return None
    for daemon in daemon_pods(snapshot, options):
        owner = next((it.name for it in daemon.pod.metadata.owner_references if it.kind == "DaemonSet"), "")
        if _is_plugin(owner, resource):
            spec, taints = daemon.spec, snapshot.cluster.nodes[row].spec.taints
            repelling = find_untolerated(taints, spec.tolerations, effects=DO_NOT_SCHEDULE, comparison=True)
            is_selected = selects_node(spec, snapshot.cluster.nodes[row])
            chosen = ", ".join(f"{key}={value}" for key, value in spec.node_selector.items())
            reasons = [] if is_selected else [f"it does not select the node{chosen and f' (nodeSelector {chosen})'}"]
            reasons += [] if repelling is None else [f"it does not tolerate {repelling}"]
            name, why = f"{daemon.pod.metadata.namespace}/{owner}", " and ".join(reasons)
            lacks = f"creates no device plugin pod for {node}: {why}" if why else f"has no device plugin pod on {node}"
            is_tainted = repelling is not None and is_selected
            repair = f"let DaemonSet {name}, the device plugin, tolerate {repelling}" if is_tainted else ""
            return DevicePluginDown(text=f"DaemonSet {name} {lacks}", repair=repair)
    return None


_INIT = "init container"
_NO_VENDOR = frozenset({"com", "ai", "io", "gpu", ""})


def container_state(pod: Pod) -> str:
    """Return why a pod is not ready, or an empty string."""
    for status in pod.status.container_statuses:
        waiting = None if status.state is None else status.state.waiting
        if waiting is not None and waiting.reason == "PodInitializing":
            every = pod.status.init_container_statuses
            init = next((it.name for it in every if it.state is None or it.state.terminated is None), "")
            return f"{_INIT} {init} has not ended" if init else waiting.reason
        if waiting is not None:
            ended = None if status.last_state is None else status.last_state.terminated
            message = waiting.message
            if ended is not None and (ended.reason or ended.exit_code):
                message = ended.message or f"{ended.reason}, exit code {ended.exit_code}".removeprefix(", ")
            return f"{waiting.reason}: {message}" if message else waiting.reason
    ready = reports_ready(pod.status.conditions)
    return (pod.status.phase or "Pending") if not pod.spec.node_name else "" if ready else "NotReady"


_PART_OF_DEVICE = lazy_pattern(r".*/.*(mem|memory|mem-percentage|cores?)")


def is_of_hami(snapshot: Snapshot, finding: InsufficientResource) -> bool:
    if not finding.offered_nowhere or not _PART_OF_DEVICE.fullmatch(finding.resource):
        return False
    return any(HAMI_REGISTER.fullmatch(key) for node in snapshot.cluster.nodes for key in node.metadata.annotations)


_EXTENDERS: Mapping[str, str] = {
    "topolvm.cybozu.com/capacity": "TopoLVM",
    "topolvm.io/capacity": "TopoLVM",
    "telemetry/scheduling": "Telemetry Aware Scheduling",
}
"""Resources that a webhook or a pod template adds for a scheduler extender, to the project with the extender."""


def counted_by_extender(finding: InsufficientResource) -> Iterator[RootCause]:
    """Yield the extender of a resource that no node has, which a configuration with the extender ignores."""
    if finding.offered_nowhere and (extender := _EXTENDERS.get(finding.resource)):
        text = f"no node ever has {finding.resource}: the scheduler extender of {extender} counts it"
        configure = f"configure the extender of {extender} in kube-scheduler"
        title = f"{configure}, with ignoredByScheduler: true for {finding.resource}"
        advice = [Advice(title=title, by_default=FixGroup.CLUSTER)]
        if extender == "TopoLVM":
            off = "turn off TopoLVM's pod webhook (webhook.podMutatingWebhook.enabled: false)"
            advice.append(Advice(title=f"{off}, which adds the request, and recreate the pod"))
        yield RootCause(text=text, advice=tuple(advice), leaves_no_node=True)


def partitioned_resources(
    snapshot: Snapshot, pod: Pod, finding: InsufficientResource
) -> Iterator[_PartitionedResource]:
    """Yield the other resources of the vendor, if no node has the requested one, not even out of order. A pod that
    requests several of them needs each for itself."""
    domain, slash, _ = finding.resource.partition("/")
    if sum(name.startswith(f"{domain}/") for name in container_requests(pod.spec)) > 1:
        return
    if finding.resource.startswith(_UNLIKE_OTHERS):
        return
    capacities = (node.status.capacity.get(finding.resource) for node in snapshot.cluster.nodes)
    if slash and finding.offered_nowhere and not any(resource_amount(finding.resource, each) for each in capacities):
        yield from _offered_instead(snapshot, finding.resource, re.compile(f"{re.escape(domain)}/.*"))


def other_vendor_causes(snapshot: Snapshot, finding: InsufficientResource) -> Iterator[RootCause]:
    """Yield huge pages of other sizes, which a request must be a multiple of, and devices of other vendors."""
    if not finding.offered_nowhere:
        return
    domain, slash, name = finding.resource.partition("/")
    if is_hugepages(finding.resource):
        yield from _offered_instead(snapshot, finding.resource, re.compile("hugepages-.*"))
    elif slash:
        yield from _offered_instead(
            snapshot, finding.resource, re.compile(f"(?!{re.escape(domain)}/).*/{re.escape(name)}")
        )


def _offered_instead(snapshot: Snapshot, resource: str, pattern: re.Pattern[str]) -> Iterator[_PartitionedResource]:
    amounts: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    for node in snapshot.cluster.nodes:
        for name, written in node.status.allocatable.items():
            if pattern.fullmatch(name) and (amount := resource_amount(name, written)) > 0:
                amounts[name] += amount
                nodes[name] += 1
    if amounts:
        others = amounts.most_common(4)
        present = [f"{_amount_text(amount, name)} {name} on {count(nodes[name], 'node')}" for name, amount in others]
        text = f"the nodes have {list_names(present, 4)} instead of {resource}"
        domain, _, profile = resource.partition("/")
        labels = {node.name: node.metadata.labels for node in snapshot.cluster.nodes if _offers_of(node, domain)}
        capable = [name for name, of in labels.items() if of.get(_MIG_LAYOUT) or of.get(_MIG_CAPABLE) == "true"]
        advice: tuple[Advice, ...] = ()
        layout = labels[capable[0]].get(_MIG_LAYOUT, "") if capable else ""
        if capable and resource.startswith(_MIG_PROFILES) and not layout.endswith(profile.removeprefix("mig")):
            host = capable[0]
            now = f" (now {layout})" if layout else ""
            title = f"choose a MIG layout with {profile} for {host}: label {_MIG_LAYOUT}{now}"
            advice = (Advice(title=title, group=FixGroup.CAPACITY),)
        yield _PartitionedResource(text=text, advice=advice, others=tuple(name for name, _ in others))


def _amount_text(amount: int, resource: str) -> str:
    return format_quantities((amount,), Unit.BYTE)[0] if is_hugepages(resource) else f"{amount:,}"


def admin_access(namespace: str) -> Advice:
    """Return what lets a namespace have device claims with admin access."""
    label = f"{ADMIN_ACCESS_LABEL}=true"
    command = shell_command(f"kubectl label namespace {{}} {label}", namespace)
    return Advice(title=f"label namespace {namespace} {label}", commands=(command,))


# Devices that are all in use: other MIG profiles with free devices, and TPU slices, which GKE creates whole.

_PROFILE_SIZE = lazy_pattern(r"mig-(\d+)g\.(\d+)gb")


def _profile_size(resource: str) -> tuple[int, ...]:
    """Return the compute slices and the memory of a MIG profile, `mig-3g.20gb`."""
    match = _PROFILE_SIZE.search(resource)
    return (int(match[1]), int(match[2])) if match else ()


def _is_larger(resource: str, other: str) -> bool:
    """Return whether a MIG profile has at least the compute slices and the memory of another one."""
    sizes = _profile_size(resource), _profile_size(other)
    return all(sizes) and all(map(ge, *sizes)) and sizes[0] != sizes[1]


def reserved_memory(
    snapshot: Snapshot, finding: InsufficientResource, rows: Iterable[ClusterRow]
) -> Iterator[RootCause]:
    """Yield the first of these nodes that is large enough for the pod, and reserves more than half of its memory. Of
    the CPU of shared machines, clouds reserve as much on purpose."""
    for row in rows if finding.resource == "memory" and finding.never_fits else ():
        node = snapshot.cluster.nodes[row]
        capacity, allocatable = node.status.capacity, node.status.allocatable
        whole, left = (resource_amount("memory", of.get("memory", 0)) for of in (capacity, allocatable))
        if not finding.requested <= whole > 2 * left:
            continue
        pages = sum(resource_amount(key, it) for key, it in capacity.items() if key.startswith("hugepages-"))
        is_of_pages = 2 * pages > whole - left
        reserved, total = format_quantities((pages if is_of_pages else whole - left, whole), Unit.BYTE)
        by = "huge pages take" if is_of_pages else "its kubelet reserves"
        setting = "allocate fewer huge pages" if is_of_pages else "lower kubeReserved and systemReserved of the kubelet"
        text = f"{node.name}: {by} {reserved} of {total} memory"
        yield root_cause(text, f"{setting} on {node.name}", by_default=FixGroup.CAPACITY)
        return


def idle_profiles(
    snapshot: Snapshot, options: RequestOptions, finding: InsufficientResource, rows: Iterable[ClusterRow]
) -> Iterator[RootCause]:
    """Yield the nodes of these rows whose MIG profile is used up and that have free devices of another profile. A
    larger one also runs the pod."""
    if not finding.resource.startswith(_MIG_PROFILES) or finding.offered_nowhere:
        return
    for row in rows:
        node, pods = snapshot.cluster.nodes[row], snapshot.pods
        offered = {name: resource_amount(name, it) for name, it in node.status.allocatable.items()}
        free = Counter({name: it for name, it in offered.items() if name.startswith(_MIG_PROFILES)})
        if not free[finding.resource]:
            continue
        for item in pods.on_node(row).tolist():
            free.subtract(pod_request(pods.specs[item], pods.statuses[item], options).amounts)
        others = {name: free[name] for name in sorted(offered) if name.startswith(_MIG_PROFILES) and free[name] > 0}
        if others.pop(finding.resource, 0) == 0 and others:
            listed = list_names((f"{it:,} {name}" for name, it in others.items()), 3, conjunction="and")
            enough = (name for name in others if others[name] >= finding.requested)
            larger = min((name for name in enough if _is_larger(name, finding.resource)), key=_profile_size, default="")
            title = f"request {larger} instead, which is larger and free on {node.name}" if larger else ""
            yield root_cause(f"{node.name} has {listed} free", title)
            return


_TPU, _GKE_POOL = "google.com/tpu", "cloud.google.com/gke-nodepool"
TPU_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
"""The chips of a slice in each dimension, `2x4`. A node pool with several nodes is one slice."""
_MOST_CHIPS = 16_384  # more than the largest TPU slice has


def hosts_of_slice(node: Node) -> int:
    """Return the number of nodes in the TPU slice of a node on GKE; 0 if it has no TPUs, or no valid topology."""
    if TPU_TOPOLOGY not in node.metadata.labels:
        return 0
    sizes = [parse_int64(size) for size in node.metadata.labels[TPU_TOPOLOGY].split("x")]
    chips, in_all = (resource_amount(_TPU, node.status.allocatable.get(_TPU, "0")), math.prod(it or 0 for it in sizes))
    return in_all // chips if chips > 0 and in_all <= _MOST_CHIPS else 0


def slice_pool(node: Node) -> str:
    """Return the node pool of a TPU slice of several nodes, which is the slice; empty for other nodes."""
    return node.metadata.labels.get(_GKE_POOL, "") if hosts_of_slice(node) > 1 else ""


def is_of_existing_slice(snapshot: Snapshot, node: Node) -> bool:
    """Return whether a new node has the label of a node pool that is a TPU slice, which cannot grow."""
    pool = node.metadata.labels.get(_GKE_POOL, "")
    return bool(pool) and any(slice_pool(other) == pool for other in snapshot.cluster.nodes)


def used_slices(
    snapshot: Snapshot, pod: Pod, finding: InsufficientResource, rows: Iterable[ClusterRow]
) -> Iterator[RootCause]:
    """Yield the TPU slices of these nodes with the workloads that use them."""
    if finding.resource != _TPU:
        return
    nodes, pods = snapshot.cluster.nodes, snapshot.pods
    by_pool = group_pairs((pool, row) for row in rows if (pool := slice_pool(nodes[row])))
    for pool, members in [*by_pool.items()][:_MOST_SLICES]:
        using = [item for row in members for item in pods.on_node(row).tolist() if _uses(pods.specs[item], _TPU)]
        users = dict.fromkeys(_user_text(pods, item) for item in using)
        topology = nodes[members[0]].metadata.labels[TPU_TOPOLOGY]
        if users:
            by = list_names(users, 2, conjunction="and")
            title = f"create another TPU node pool, and select it instead of {pool}, which cannot grow"
            is_selected = pod.spec.node_selector.get(_GKE_POOL) == pool
            text = f"TPU slice {pool} ({topology}, {count(len(members), 'node')}) is used by {by}"
            yield root_cause(text, title if is_selected else "", group=FixGroup.CAPACITY)


_MOST_SLICES = 2


def _uses(spec: PodSpec, resource: str) -> bool:
    return any(resource in {**each.resources.limits, **each.resources.requests} for each in spec.containers)


def _user_text(pods: PodTable, row: int) -> str:
    owner = next((owner for owner in pods.owners[row] if owner.controller), None)
    return f"{owner.kind} {pods.namespaces[row]}/{owner.name}" if owner is not None else f"pod {pods.key(row)}"


def missing_features(features: Sequence[str]) -> RootCause:
    """Return when a kubelet declares features that a pod needs."""
    named = list_names(features, 3, conjunction="and")
    text = f"a kubelet declares {named} if its version has it and its feature gate is on"
    return root_cause(text, f"turn on feature gate {named} in kubelets, or upgrade them", group=FixGroup.CLUSTER)


def taint_rules(snapshot: Snapshot, shortage: DeviceShortage) -> Iterator[RootCause]:
    taints = {phrase.rpartition(" on ")[0] for phrase in shortage.taints}
    for rule in snapshot.devices.taint_rules:
        if str(rule.spec.taint) in taints:
            yield RootCause(text=f"DeviceTaintRule {rule.metadata.name} sets the taint {rule.spec.taint} on devices")


def incomplete_pool(snapshot: Snapshot, pool: str) -> RootCause:
    """Return the cause for a pool, `driver/pool`, without all ResourceSlices of its newest generation: kube-scheduler
    uses none of its devices until then."""
    driver, _, name = pool.partition("/")
    slices = snapshot.devices.slices_of_pool(pool)
    expected = max((each.spec.pool.resource_slice_count for each in slices), default=0)
    counts = f": {len(slices):,} of {expected:,} exist" if len(slices) < expected else ""
    text = f"driver {driver} has not published all ResourceSlices of pool {name}{counts}"
    return RootCause(text=text)


def driver_of(selectors: Iterable[DeviceSelector]) -> str:
    """Return the driver that CEL expressions compare with `device.driver`, or an empty string."""
    matches = (_DRIVER.search(selector.cel.expression) for selector in selectors if selector.cel is not None)
    return next((match[1] for match in matches if match is not None), "")


def _published_drivers(snapshot: Snapshot) -> list[str]:
    return sorted({resource_slice.spec.driver for resource_slice in snapshot.devices.slices})


def _other_drivers_text(snapshot: Snapshot) -> str:
    drivers = _published_drivers(snapshot)
    return f"; drivers with ResourceSlices: {list_names(drivers, 3)}" if drivers else ""


def driver_named(snapshot: Snapshot, device_class: str) -> str:
    """Return the driver with ResourceSlices that a missing device class is probably for: one of its name or domain, or
    the only one for a name without a domain. Empty if there is none."""
    drivers, domain = _published_drivers(snapshot), device_class.partition(".")[2]
    if device_class in drivers:
        return device_class
    if not domain:
        return drivers[0] if len(drivers) == 1 else ""
    return next((driver for driver in drivers if driver.partition(".")[2] == domain), "")


def missing_driver(snapshot: Snapshot, device_class: str) -> Iterator[RootCause]:
    if not driver_named(snapshot, device_class) and not nearest_name(device_class, snapshot.devices.classes):
        text = f"no driver publishes devices for device class {device_class}{_other_drivers_text(snapshot)}"
        if snapshot.source.may_lack("ResourceSlice"):
            text = "the installation of a DRA driver usually creates its device classes"
        title = f"install the driver whose devices device class {device_class} is for"
        yield root_cause(text, title, by_default=FixGroup.CLUSTER)


def unpublished_devices(snapshot: Snapshot, device_class: str) -> Iterator[_NoDevicesPublished]:
    drivers, known_class = _published_drivers(snapshot), snapshot.devices.classes.get(device_class)
    driver = driver_of(known_class.spec.selectors if known_class is not None else ())
    if driver in drivers or (drivers and not driver):
        return
    of_driver = f" of driver {driver}" if driver else ""
    text = f"no ResourceSlice{of_driver} exists: no driver publishes devices for class {device_class}"
    is_seen = _is_seen(snapshot, driver)
    title = f"install or repair DRA driver {driver}, which publishes no devices"
    yield _NoDevicesPublished(
        text=f"{text}{_other_drivers_text(snapshot)}",
        driver=driver,
        advice=() if is_seen else (Advice(title=title, by_default=FixGroup.CLUSTER),),
        leaves_no_node=not is_seen and not snapshot.may_run(driver),
    )


_SEEN = Memo[bool]()


def _is_seen(snapshot: Snapshot, driver: str) -> bool:
    """Return whether a DRA driver is probably installed: something is named after its vendor or any DRA driver, or a
    node has labels of its vendor."""

    def search() -> bool:
        vendor, nodes = driver.split(".")[-2] if "." in driver else "", snapshot.cluster.nodes
        return snapshot.is_named(vendor, "/dra-", "-dra-") or any(hardware_label(driver, node) for node in nodes)

    return _SEEN.of(snapshot.derived, search, driver)
