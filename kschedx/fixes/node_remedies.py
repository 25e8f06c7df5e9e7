"""Labels that state a fact about a node or that a selector uses, and requirements that are added again after removal.

A label that states a fact (hardware, provider, topology, operating system, a discovered feature, the provisioner, the
runtime) is set by the component that knows the fact: setting it by hand does not make it true.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice, product

from msgspec import json
from msgspec.structs import replace

from kschedx.apiserver.admission import NODE_SELECTOR, project_selector
from kschedx.controllers.daemon_set import is_running
from kschedx.controllers.workloads import is_of_daemon_set
from kschedx.errors import differs_by_one_letter
from kschedx.explain.agent_labels import LostLabel, is_of_kubevirt, lost_labels
from kschedx.explain.hardware import names_hardware
from kschedx.explain.setup import minor_version
from kschedx.findings import HostPortConflict, NodeAffinityMismatch, RequirementMatch
from kschedx.findings.constraints import CORDON_TAINT, TermMatch
from kschedx.fixes import steps as s
from kschedx.fixes.eviction import delete_all
from kschedx.fixes.node_requirements import (
    ABOUT_TO_BE_REMOVED,
    KEPT,
    OF_ROLES,
    STANDARD_KEYS,
    are_all_of_control_plane,
    contradiction,
    faults_of,
    initializes,
    intended_key,
    is_kept,
    is_removed_by_itself,
)
from kschedx.fixes.owners import template_owner
from kschedx.fixes.pod_edits import expressions
from kschedx.fixes.steps.node import NodeFault
from kschedx.fixes.trial import RemedyCandidate, Situation
from kschedx.kube.autoscalers import NODE_POOL
from kschedx.kube.conditions import condition_of
from kschedx.kube.kueue import ResourceFlavor, Workload
from kschedx.kube.maintenance import MAINTENANCE_TAINTS
from kschedx.kube.names import (
    ARCH_LABELS,
    HOSTNAME,
    INSTANCE_TYPE_LABELS,
    NEW_NAMES,
    OF_CONTROL_PLANE,
    OF_OPENSHIFT,
    POOL_LABELS,
    REGION_LABELS,
    ZONE,
    ZONE_LABELS,
    first_label,
)
from kschedx.kube.selectors import NODE_NAME_FIELD, SelectorRequirement, terms_of
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, NO_SCHEDULE, Tolerations, left_over_since, tolerates
from kschedx.kube.types import AUTOSCALER_STATUS, OUT_OF_SERVICE, Node, PodSpec, Taint, Toleration
from kschedx.kube.typos import nearest_name, nearest_product
from kschedx.patterns import lazy_pattern
from kschedx.plugins.taint_toleration import refutation
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.maintenance import maintenance_of, ordered_maintenance
from kschedx.snapshot.nodes import ClusterNodes
from kschedx.snapshot.snapshot import Snapshot

SET_BY_ADMINISTRATORS = ("node-role.kubernetes.io", "node-restriction.kubernetes.io")
"""Domains of Kubernetes whose labels administrators set."""

SET_BY_COMPONENTS = (
    *("kubernetes.io", "k8s.io"),
    *("amazonaws.com", "k8s.aws", "aws.amazon.com", "eksctl.io", "cloud.google.com", "gke.io", "google.com"),
    *("azure.com", "microsoft.com", "digitalocean.com", "linode.com", "hetzner.cloud", "scaleway.com", "ovh.com"),
    *("alibabacloud.com", "aliyun.com", "oraclecloud.com", "ibm.com", "vultr.com", "civo.com", "exoscale.com"),
    *("openstack.org", "vmware.com", "nutanix.com", "openshift.io", "k3s.io", "rke.cattle.io", "talos.dev"),
    *("karpenter.sh", "spotinst.io", "cast.ai", "virtual-kubelet.io"),
    *("nvidia.com", "amd.com", "intel.com", "habana.ai", "qualcomm.com", "xilinx.com", "huawei.com", "mellanox.com"),
    *("katacontainers.io", "gvisor.dev", "kubevirt.io", "confidentialcontainers.org", "cilium.io"),
)
"""Domains of providers, vendors, provisioners, and runtimes; subdomains count."""

_WORDS_OF_COMPONENTS = lazy_pattern(
    r"(^|[-_./])(zones?|region|rack|datacenter|arch|architecture|os|kernel|instance|machine|capacity|lifecycle|spot|"
    r"accelerators?|gpus?|fpga|disks?|ssd|nvme|storage|cpu|memory|hostname|hypervisor|provider|runtime|"
    r"nodegroup|nodepool|agentpool)([-_.]|$)|(type|model)$",
    re.IGNORECASE,
)
"""Words in the name of a label, after its domain: `disk-type`, `gpu`, `instance-type`, `eu-zone`."""
_SET_BY_AKS = "kubernetes.azure.com/"
"""Taints that AKS restores on the nodes of a pool, such as that of spot nodes: to remove them is no fix."""


def is_of_provider(key: str) -> bool:
    """Whether a label's domain is that of a provider, a vendor, a provisioner, or a runtime, which sets it."""
    domain, slash, _ = key.rpartition("/")
    return bool(slash) and any(f".{domain}".endswith(f".{provider_domain}") for provider_domain in SET_BY_COMPONENTS)


def _states_fact(key: str, snapshot: Snapshot) -> bool:
    """Whether a label states what a node is, rather than what an administrator uses it for."""
    domain, slash, name = key.rpartition("/")
    if key in OF_CONTROL_PLANE or key == NODE_NAME_FIELD:
        return True
    if domain in SET_BY_ADMINISTRATORS:
        return False
    if is_of_provider(key) or is_of_kubevirt(key) or (slash and "csi" in domain.split(".")):
        return True
    return _WORDS_OF_COMPONENTS.search(name) is not None or key in set(_keys_of_cluster(snapshot))


def _keys_of_cluster(snapshot: Snapshot) -> Iterator[str]:
    """Yield labels with which runtimes, storage drivers, and Kueue's flavors select their nodes."""
    yield from _flavor_labels(snapshot)
    for runtime in snapshot.runtime_classes.values():
        yield from runtime.scheduling.node_selector if runtime.scheduling is not None else ()
    for storage_class in snapshot.storage.classes.values():
        for topology in storage_class.allowed_topologies:
            yield from (expression.key for expression in topology.match_label_expressions)
    for csi_node in snapshot.storage.csi_nodes.values():
        for driver in csi_node.spec.drivers:
            yield from driver.topology_keys
    for volume in snapshot.storage.volumes.values():
        for term in terms_of(volume.required_node_affinity):
            yield from (expression.key for expression in term.match_expressions)


def _is_runtime_known(place: RemedyCandidate) -> bool:
    """Whether it is known which part of the pod's nodeSelector comes from its RuntimeClass."""
    return place.pod.spec.runtime_class_name in (None, "", *place.snapshot.runtime_classes)


def _is_selected(key: str, snapshot: Snapshot, but: str) -> bool:
    """Whether another pod than `but`, or a workload, selects nodes by this label."""
    pods = snapshot.pods
    rows = pods.specs.where(lambda spec: _selects(spec, key))
    own = pods.rows.get(but)
    if own is not None:
        rows[own] = False
    if rows.any():
        return True
    name = json.encode(key)
    return any(name in raw for raw in snapshot.workloads.values())


def _selects(spec: PodSpec, key: str) -> bool:
    return key in spec.node_selector or any(
        expression.key == key for term in terms_of(spec.required_node_affinity) for expression in term.match_expressions
    )


def _flavor_labels(snapshot: Snapshot) -> frozenset[str]:
    """Return labels with which Kueue's flavors select their nodes; Kueue adds them to the pods of Workloads that it
    admits."""
    return frozenset(key for flavor in snapshot.of(ResourceFlavor) for key in flavor.spec.node_labels)


def _is_admitted_by_kueue(place: RemedyCandidate | Situation) -> bool:
    metadata = place.pod.metadata
    return metadata.controller is not None and any(
        (reference.kind, reference.name) == (metadata.controller.kind, metadata.controller.name)
        for workload in place.snapshot.of(Workload)
        if workload.metadata.namespace == metadata.namespace
        for reference in workload.metadata.owner_references
    )


def _is_readded(requirement: RequirementMatch, source: str, place: RemedyCandidate | Situation) -> bool:
    """Whether admission or a controller adds a requirement again after you drop or change it. It does if the pod's
    RuntimeClass, namespace, or Kueue flavor has it, or if the template of the pod's workload lacks it. A
    RuntimeClass that the dump lacks counts as having it."""
    pod, snapshot = place.pod, place.snapshot
    annotations = snapshot.namespace_annotations.get(pod.metadata.namespace, {})
    added = annotations.get(NODE_SELECTOR) or project_selector(annotations, snapshot.default_node_selector)
    if requirement.key in (part.partition("=")[0].strip() for part in added.split(",")):
        return source == "nodeSelector"
    name = pod.spec.runtime_class_name or ""
    runtime = snapshot.runtime_classes.get(name)
    scheduling = None if runtime is None else runtime.scheduling
    if (name and runtime is None) or (scheduling is not None and requirement.key in scheduling.node_selector):
        return source == "nodeSelector"
    if requirement.key in _flavor_labels(snapshot) and _is_admitted_by_kueue(place):
        return True
    if is_of_kubevirt(requirement.key) and any(it.kind == _MACHINE for it in pod.metadata.owner_references):
        return True
    owner = template_owner(snapshot, pod)
    return owner is not None and json.encode(requirement.key) not in json.encode(owner.manifest.get("spec"))


# Remedies for nodeSelector and node affinity: the value that was meant, one requirement fewer, or the label on the
# node.

_MADE_FOR = (*ARCH_LABELS, "kubernetes.io/os", "beta.kubernetes.io/os", "node.kubernetes.io/windows-build")
"""Labels for which the image was built: a pod that requires one runs on no other node."""

_MACHINE = "VirtualMachineInstance"

_MARKS = frozenset({"", "true", "yes"})
"""Values of labels that only mark a node; `node-role.kubernetes.io/worker` has the first one."""


def affinity_remedies(finding: NodeAffinityMismatch, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield remedies for the term that is closest to matching the node."""
    term = min(finding.terms, key=lambda t: t.missing, default=None)
    if term is None:
        return
    # without the node's own value, equal steps on different nodes compare equal
    unmatched = tuple(replace(r, actual=None) for r in term.requirements if not r.matched)
    if not term.requirements and finding.source == "nodeAffinity":
        unmatched = _invalid(term.index, place)
    cluster, node = place.nodes.cluster, place.node
    lost = {r.key: label for r in unmatched if (label := lost_labels(cluster, r.key).get(node.name)) is not None}
    if lost and len(lost) == len(unmatched):
        restored = tuple((key, label.value) for key, label in lost.items())
        first, names = next(iter(lost.values())), ", ".join(f"{key}={value}" for key, value in restored)
        again = f"so that {first.agent} sets label {names}" if first.setting else f"which sets label {names} again"
        title = f"{_agent_repair(place, first)}, {again}"
        yield s.RepairLabels(row=place.node_row, node=node.name, labels=restored, title=title)
    if any(r.key in _MADE_FOR and not [*_renamed_label(r, cluster), *_same_value(r, cluster)] for r in unmatched):
        return
    misspelled = False
    if finding.source != "addedAffinity":
        kept = tuple(requirement for requirement in unmatched if _is_readded(requirement, finding.source, place))
        corrections = list(_corrections(finding.source, term.index, (r for r in unmatched if r not in kept), cluster))
        misspelled = bool(corrections)
        yield from corrections
        for requirement in unmatched[:1] if finding.source == "nodeAffinity" else ():
            if values := _alternatives(requirement, term):
                yield s.SelectEither(term=term.index, meant=replace(requirement, values=values))
        new_pool = _replacing_pool(unmatched[0], place.snapshot) if len(unmatched) == 1 and not kept else ""
        if any(r.key == NODE_NAME_FIELD for r in unmatched):
            yield s.DropNodeNames()
        elif new_pool:
            meant = replace(unmatched[0], values=(new_pool,))
            step = s.SelectInstead(source=finding.source, term=term.index, wrong=unmatched[0], meant=meant)
            yield replace(step, is_replaced=True)
        elif len(unmatched) == 1 and not kept and (pool := _only_pool(unmatched[0], place.snapshot)):
            meant = replace(unmatched[0], values=(pool,))
            cost = s.Cost.CONSTRAINT
            yield s.SelectInstead(source=finding.source, term=term.index, wrong=unmatched[0], meant=meant, cost=cost)
        elif unmatched and not kept and not any(_is_of_agent(requirement, place) for requirement in unmatched):
            yield (given_up := _given_up(finding, term, unmatched, place))
            misspelled |= isinstance(given_up, s.SelectInstead)
    labels = {r.key: r.values[0] if r.values else "true" for r in unmatched if _may_label(r, place)}
    if labels and len(labels) == len(unmatched) and not misspelled:
        yield s.LabelNode(
            row=place.node_row,
            node=place.node.name,
            labels=tuple(labels.items()),
            pool=first_label(place.node.metadata.labels, POOL_LABELS),
            is_first=not place.nodes.cluster.label_keys & labels.keys(),
            is_overwritten=bool(place.node.metadata.labels.keys() & labels.keys()),
        )


def _given_up(
    finding: NodeAffinityMismatch, term: TermMatch, unmatched: tuple[RequirementMatch, ...], place: RemedyCandidate
) -> s.FixStep:
    """Return the pod without the requirements, or with the value of the nodes that are meant for it."""
    cluster = place.nodes.cluster
    is_offered = all(
        _is_offered(requirement, cluster) or _repeats_request(requirement, place) for requirement in unmatched
    ) and not any(_is_listed_pool(requirement, place.snapshot) for requirement in unmatched)
    cost = s.Cost.CONSTRAINT if is_offered else s.Cost.STOPGAP
    if len(unmatched) == 1 and (value := _tolerated_value(unmatched[0], place)):
        meant = replace(unmatched[0], values=(value,))
        return s.SelectInstead(source=finding.source, term=term.index, wrong=unmatched[0], meant=meant, cost=cost)
    is_emptied = finding.source == "nodeAffinity" and len(unmatched) == len(term.requirements)
    of_others = (r for other in finding.terms if other is not term for r in other.requirements)
    others = tuple(replace(r, actual=None) for r in of_others) if is_emptied else ()
    return s.DropRequirements(source=finding.source, term=term.index, requirements=unmatched, cost=cost, others=others)


_MOST_CORRECTIONS = 16  # of many requirements with several meanings each


def _corrections(
    source: str, term: int, wrong: Iterable[RequirementMatch], cluster: ClusterNodes
) -> Iterator[s.SelectInstead]:
    """Yield the requirements as they were probably meant: all together, or each alone if that is not known of all."""
    each = [[(it, meant) for meant in _intended_requirements(it, cluster)] for it in wrong]
    alone = ((correction,) for corrections in each for correction in corrections)
    together = islice(product(*each), _MOST_CORRECTIONS)
    for (written, meant), *also in together if each and all(each) else alone:
        yield s.SelectInstead(source=source, term=term, wrong=written, meant=meant, also=tuple(also))


def _agent_repair(place: RemedyCandidate, label: LostLabel) -> str:
    """Return what lets the agent run that sets a label of the node: its pod there, or the kubelet."""
    if label.setting:
        return f"set {label.setting} in the kubelet's configuration of {place.node.name}"
    if not label.agent:
        return f"restart the kubelet of {place.node.name}"
    pods = place.snapshot.pods
    agents = (row for row in pods.on_node(place.node_row).tolist() if is_of_daemon_set(pods.owners[row]))
    rows = [row for row in agents if any(part in pods.names[row] for part in label.pods)]
    down = next((pods.key(row) for row in rows if not is_running(pods, row)), "")
    runs = f"restart {pods.key(rows[0])}" if rows else f"run {label.agent}"
    return f"{f'repair {down}' if down else runs} on {place.node.name}"


def _alternatives(requirement: RequirementMatch, term: TermMatch) -> tuple[str, ...]:
    """Return the values of all `In` expressions of a term with the requirement's key, if no value is in all of them."""
    each = [it.values for it in term.requirements if (it.key, it.operator) == (requirement.key, "In")]
    if requirement.operator != "In" or not each or set.intersection(*map(set, each)):
        return ()
    return tuple(sorted(set().union(*each)))


def _is_listed_pool(requirement: RequirementMatch, snapshot: Snapshot) -> bool:
    """Whether a node pool is required that cluster-autoscaler lists. Its groups have the name of their pool:
    `gke-prod-hot-1a2b-grp`, `aks-hot-1234-vmss`."""
    if requirement.key not in POOL_LABELS or requirement.operator not in ("In", "="):
        return False
    status = snapshot.config_maps.get(AUTOSCALER_STATUS)
    listed = "" if status is None else "\n".join(map(str, status.data.values()))
    return any(f"-{pool}-" in listed for pool in requirement.values)


def _only_pool(requirement: RequirementMatch, snapshot: Snapshot) -> str:
    """Return the only node pool of the cluster, if another one is required that cluster-autoscaler does not list; empty
    otherwise."""
    if requirement.key not in POOL_LABELS or requirement.operator not in ("In", "="):
        return ""
    if _is_listed_pool(requirement, snapshot):
        return ""
    pools = set(filter(None, snapshot.cluster.label(requirement.key).values))
    return min(pools) if len(pools) == 1 else ""


def _tolerated_value(requirement: RequirementMatch, place: RemedyCandidate) -> str:
    """Return the only value of the label on nodes that are reserved by a taint which the pod tolerates by its key: they
    are meant for the pod. Empty if there are several, or if some node has the required value."""
    cluster, keys = place.snapshot.cluster, {toleration.key for toleration in place.pod.spec.tolerations}
    wanted = {*requirement.values}
    if requirement.operator not in ("In", "=") or not wanted.isdisjoint(cluster.label_values(requirement.key)):
        return ""
    values = {
        node.metadata.labels.get(requirement.key, "")
        for node in cluster.nodes
        for taint in node.spec.taints
        if taint.key in keys and taint.effect in DO_NOT_SCHEDULE and not taint.key.startswith(OF_ROLES)
        if not is_removed_by_itself(taint, node, place.snapshot)
    }
    return min(values) if len(values) == 1 else ""


def _replacing_pool(requirement: RequirementMatch, snapshot: Snapshot) -> str:
    """Return the only node pool with nodes that are not cordoned, if the required one has only cordoned nodes with an
    earlier minor version; empty otherwise."""
    key, wanted = requirement.key, {*requirement.values}
    if requirement.operator not in ("In", "=") or not (key in POOL_LABELS or _POOL.search(key)):
        return ""
    nodes = [node for node in snapshot.cluster.nodes if node.metadata.labels.get(key)]
    old = [node for node in nodes if node.metadata.labels[key] in wanted]
    new = [node for node in nodes if not node.spec.unschedulable]
    pools = {node.metadata.labels[key] for node in new}
    if not old or len(pools) != 1 or pools & wanted:
        return ""
    newest, first = (
        pick(minor_version(node.status.node_info.kubelet_version) for node in each)
        for pick, each in ((max, old), (min, new))
    )
    return min(pools) if newest < first else ""


_POOL = lazy_pattern(r"(?:^|[./-])(?:node|worker|agent)?[-_]?(?:pool|group)$")
"""Keys of labels that name a node pool, besides those of providers."""


def _repeats_request(requirement: RequirementMatch, place: RemedyCandidate) -> bool:
    """Whether the label only marks nodes with a resource that the pod requests anyway: `nvidia.com/gpu=true` or
    `accelerator=nvidia`."""
    requested, wanted = place.situation.requested, {*requirement.values}
    vendors = {name.partition(".")[0] for name, amount in requested.items() if "/" in name and amount}
    marks = bool(requested.get(requirement.key.removesuffix(".present"))) and _MARKS.issuperset(wanted)
    return marks or (bool(wanted) and wanted <= vendors)


def _is_of_agent(requirement: RequirementMatch, place: RemedyCandidate) -> bool:
    """Whether the requirement limits a DaemonSet, such as a device plugin, to the nodes with its hardware, and there
    are such nodes. On others it has nothing to do."""
    values = {*place.nodes.cluster.label_values(requirement.key)}
    is_there = bool(values.intersection(requirement.values) if requirement.values else values)
    return is_of_daemon_set(place.pod.metadata.owner_references) and names_hardware(requirement.key) and is_there


def _is_offered(requirement: RequirementMatch, cluster: ClusterNodes) -> bool:
    """Whether dropping a requirement is no worse than adding a node that meets it. It is worse if no node that takes
    pods has the hardware, or the zone, region, or instance type, and the provider could offer it."""
    key, wanted = requirement.key, requirement.values
    if names_hardware(key) and wanted and {*wanted}.isdisjoint(cluster.label_values(key)):
        return False
    if key not in (*ZONE_LABELS, *REGION_LABELS, *INSTANCE_TYPE_LABELS) or requirement.operator not in ("In", "="):
        return True
    nodes = [node for node in cluster.nodes if not any(taint.key.startswith(KEPT) for taint in node.spec.taints)]
    known = {value for node in nodes if (value := node.metadata.labels.get(key))}
    if known & {*wanted}:
        return True
    regions = [value for node in nodes if (value := first_label(node.metadata.labels, REGION_LABELS))]
    if key in ZONE_LABELS and regions:
        return not any(value.startswith(region) for value in wanted for region in regions)
    forms = {_NAMES.sub("", value)[:1] for value in known}
    return not any(_NAMES.sub("", value)[:1] in forms for value in wanted)


_NAMES = lazy_pattern(r"[A-Za-z0-9]+")


def _invalid(term: int, place: RemedyCandidate) -> tuple[RequirementMatch, ...]:
    """Return the requirements of a term that matches no node because one of its values is not a valid label value."""
    return tuple(RequirementMatch.unmatched(it.key, it.operator, it.values) for it in expressions(place.pod, term))


def _may_label(requirement: RequirementMatch, place: RemedyCandidate) -> bool:
    """Whether an administrator may set the label on the node: it states no fact, and if it replaces a value, no other
    selector uses that, and no other nodes are the pool of the new one. Nodes of a NodePool have the pool's labels."""
    key = requirement.key
    if NODE_POOL in place.node.metadata.labels or not _is_runtime_known(place):
        return False
    if requirement.operator not in ("In", "=", "Exists") or _states_fact(key, place.snapshot):
        return False
    if key not in place.node.metadata.labels:
        return True
    has_pool = not {*requirement.values}.isdisjoint(place.nodes.cluster.label_values(key))
    return not has_pool and not _is_selected(key, place.snapshot, place.pod.key)


def _intended_requirements(requirement: RequirementMatch, cluster: ClusterNodes) -> Iterator[RequirementMatch]:
    """Yield the requirement that was probably meant, with an equivalent or similar value or key that a node has."""
    if requirement.operator not in ("In", "=", "Exists"):
        return
    exactly = [
        *_renamed_label(requirement, cluster),
        *_same_value(requirement, cluster),
        *_expand_wildcard(requirement, cluster),
        *_other_domain(requirement, cluster),
        *_other_label(requirement, cluster),
    ]
    for key, values in exactly or _nearly(requirement, cluster):
        yield RequirementMatch.unmatched(key, requirement.operator, values)


def _expand_wildcard(requirement: RequirementMatch, cluster: ClusterNodes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the values of nodes that a wildcard stands for, which kube-scheduler reads as it is written."""
    wild = [value for value in requirement.values if "*" in value]
    known = sorted(filter(None, cluster.label(requirement.key).values))
    if values := [value for value in known if any(fnmatchcase(value, pattern) for pattern in wild)]:
        plain = (value for value in requirement.values if value not in wild)
        meant = tuple(dict.fromkeys((*plain, *values)))
        if requirement.operator == "In" or len(meant) == 1:
            yield requirement.key, meant


def _renamed_label(requirement: RequirementMatch, cluster: ClusterNodes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the label's new name, if nodes have only that one, with the value that the pod requires, or the label of a
    role: `node-role.kubernetes.io/master` for `kubernetes.io/role=master`."""
    is_role = requirement.key in _OF_ROLE and len(requirement.values) == 1
    key = f"{_ROLE}{requirement.values[0]}" if is_role else NEW_NAMES.get(requirement.key, "")
    if requirement.key in cluster.label_keys or key not in cluster.label_keys:
        return
    values = {*cluster.label_values(key)}
    if is_role:
        yield key, (min(values),)
    elif not requirement.values or values.intersection(requirement.values):
        yield key, requirement.values


def _other_domain(requirement: RequirementMatch, cluster: ClusterNodes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the only label of the nodes with the same name in another domain and with the value that the pod requires:
    `eks.amazonaws.com/instance-family` for `karpenter.k8s.aws/instance-family`."""
    domain, slash, name = requirement.key.rpartition("/")
    is_known = requirement.key in cluster.label_keys or requirement.key in NEW_NAMES
    if not slash or is_known or _MARKS.issuperset(requirement.values):
        return
    keys = [key for key in cluster.label_keys if key.endswith(f"/{name}") and key.rpartition("/")[0] != domain]
    if len(keys) == 1 and {*cluster.label_values(keys[0])} & {*requirement.values}:
        yield keys[0], requirement.values


def _other_label(requirement: RequirementMatch, cluster: ClusterNodes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the standard label that has the required value, if another standard label was written: the region for
    `topology.kubernetes.io/zone=eu-west-1`."""
    wanted = {*requirement.values}
    if requirement.key not in STANDARD_KEYS or not wanted:
        return
    if wanted.isdisjoint(cluster.label_values(requirement.key)):
        yield from ((key, requirement.values) for key in STANDARD_KEYS if wanted <= {*cluster.label_values(key)})


_ROLE, _OF_ROLE = "node-role.kubernetes.io/", ("kubernetes.io/role", "node.kubernetes.io/role")

_SAME = {"x86_64": "amd64", "x86-64": "amd64", "x64": "amd64", "aarch64": "arm64", "armv8": "arm64"}
"""Names that machines use for their architecture, to those of Kubernetes."""
_LISTED = lazy_pattern(r"[,;|\s]+")


def _same_value(requirement: RequirementMatch, cluster: ClusterNodes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the value that nodes have for the same thing: another name of an architecture, the host name of a node with
    that name, a host name with or without its domain, a zone without its region, the value of a role's label, or
    several values written as one."""
    key, written = requirement.key, requirement.values[0] if len(requirement.values) == 1 else ""
    if not written or requirement.operator not in ("In", "="):
        return
    values = {*cluster.label_values(key)}
    if key.startswith(_ROLE) and len(values) == 1:
        yield key, tuple(values)
    if key in _MADE_FOR and (same := _SAME.get(written.lower(), written.lower())) in values - {written}:
        yield key, (same,)
    if key == HOSTNAME:
        row = cluster.index.get(written)
        named = "" if row is None else cluster.nodes[row].metadata.labels.get(HOSTNAME, "")
        hosts = [value for value in values if (value == named if named else _is_same_host(value, written))]
        yield from ((key, (host,)) for host in hosts if len(hosts) == 1)
    if key == ZONE:
        zones = [value for value in values if value.endswith(f"-{written}")]
        yield from ((key, (zone,)) for zone in zones if len(zones) == 1)
    several = tuple(item for item in _LISTED.split(written) if item)
    if requirement.operator == "In" and len(several) > 1 and values.intersection(several):
        yield key, several


def _is_same_host(value: str, written: str) -> bool:
    return value.startswith(f"{written}.") or written.startswith(f"{value}.") or _plain(value) == _plain(written)


def _plain(host: str) -> str:
    """Return a host name without separators and leading zeros: `worker1` for `worker-01`."""
    return re.sub(r"(?<![0-9])0+(?=[0-9])", "", re.sub(r"[-_.]", "", host.lower()))


def _nearly(requirement: RequirementMatch, cluster: ClusterNodes) -> Iterator[tuple[str, tuple[str, ...]]]:
    known = cluster.label_keys
    key = requirement.key if requirement.key in known else intended_key(requirement.key, known)
    if not key:
        return
    values = {*cluster.label_values(key)}
    if not requirement.values or values.intersection(requirement.values):
        if key != requirement.key:
            yield key, requirement.values
        return
    written = requirement.values[0]
    product = nearest_product(written, sorted(values)) if names_hardware(key) else ""
    if close := nearest_name(written, sorted(values)) or product or _only_value(written, values):
        yield key, (close,)
    elif values <= _MARKS and _MARKS.issuperset(requirement.values):
        yield key, (min(values),)


def _only_value(written: str, values: set[str]) -> str:
    """Return the only value that nodes have, if it differs in one letter from the required one: `ssd` for `sdd` if
    there is no `hdd`. Empty otherwise."""
    known = next(iter(values), "")
    is_word = len(written) > 2 and written.isalpha() and known.isalpha()
    is_slip = is_word and written[:1] == known[:1] and differs_by_one_letter(written, known)
    return known if len(values) == 1 and is_slip else ""


def without_contradiction(situation: Situation) -> Iterator[s.DropRequirements]:
    """Yield the removal of one of two requirements that no node meets together, if it is the pod's own."""
    for requirement in contradiction(situation) or ():
        finding = _requirement_match(requirement, "=")
        is_own = requirement.values == (situation.pod.spec.node_selector.get(requirement.key),)
        if is_own and not _is_readded(finding, "nodeSelector", situation):
            yield s.DropRequirements(source="nodeSelector", term=0, requirements=(finding,))
        for index, term in enumerate(terms_of(situation.pod.spec.required_node_affinity)):
            if requirement in term.match_expressions:
                yield s.DropRequirements(
                    source="nodeAffinity",
                    term=index,
                    requirements=(_requirement_match(requirement, requirement.operator),),
                )


def _requirement_match(requirement: SelectorRequirement, operator: str) -> RequirementMatch:
    return RequirementMatch.unmatched(requirement.key, operator, requirement.values)


# Remedies for a node's cordon and taints, and for host ports.

_MOST_TAINTS = 50  # a sentence with more is no advice


def uncordon(place: RemedyCandidate) -> s.FixStep:
    """Return the step that uncordons the node by hand; if a maintenance cordoned it, the step that waits for it or
    repairs it. The maintenance would cordon the node again, or is not finished there."""
    return _uncordon_step(place.node_row, place.node, place.snapshot)


def _uncordon_step(row: ClusterRow, node: Node, snapshot: Snapshot) -> s.FixStep:
    finding = maintenance_of(snapshot, node)
    if finding is None:
        return s.Uncordon(row=row, node=node.name)
    ordered = ordered_maintenance(snapshot, node.name)
    is_ordered = any(taint.key in MAINTENANCE_TAINTS for taint in node.spec.taints)
    if ordered is not None:
        is_ordered = not ordered.metadata.deletion_timestamp
    fault = NodeFault(
        taint=Taint(key=CORDON_TAINT, effect=NO_SCHEDULE),
        by=finding.title,
        is_failed=finding.is_failed,
        is_ordered=is_ordered,
        maintenance=ordered.name if ordered is not None and is_ordered else "",
    )
    kept = (taint for taint in node.spec.taints if taint.key in (CORDON_TAINT, *MAINTENANCE_TAINTS))
    taints = dict.fromkeys((fault.taint, *kept))
    return s.RepairNode(row=row, node=node.name, faults=tuple(replace(fault, taint=taint) for taint in taints))


def node_repairs(row: ClusterRow, node: Node, snapshot: Snapshot) -> Iterator[s.FixStep]:
    """Yield the steps after which a node has no fault and is not cordoned, unless it is about to be removed."""
    going = [taint for taint in node.spec.taints if taint.key.startswith(ABOUT_TO_BE_REMOVED)]
    if node.metadata.deletion_timestamp or not all(_is_left_over(taint, node, snapshot) for taint in going):
        return
    if left_over := tuple(taint for taint in going if taint.effect in DO_NOT_SCHEDULE):
        yield s.RemoveTaints(row=row, node=node.name, taints=left_over, is_left_over=True)
    old = tuple(taint for taint in node.spec.taints if refutation(taint, node, snapshot.taken))
    if old:
        yield s.RemoveTaints(row=row, node=node.name, taints=old, is_left_over=True)
    healed = [taint for taint in node.spec.taints if is_removed_by_itself(taint, node, snapshot)]
    if missing := [taint for taint in healed if taint not in old]:
        yield s.RepairNode(row=row, node=node.name, faults=faults_of(node, missing, snapshot))
    if node.spec.unschedulable:
        yield _uncordon_step(row, node, snapshot)


def _is_left_over(taint: Taint, node: Node, snapshot: Snapshot) -> bool:
    """Whether what sets the taint should have removed it before; a node that was out of service is ready again."""
    if taint.key == OUT_OF_SERVICE:
        return condition_of(node.status.conditions, "Ready", "True") is not None
    return bool(left_over_since(taint, snapshot.taken) or refutation(taint, node, snapshot.taken))


def taint_remedies(place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield remedies for all taints of the node that the pod does not tolerate: tolerating only the first one does not
    help."""
    missing = _untolerated_taints(place)
    if place.node.spec.unschedulable and any(taint.key == CORDON_TAINT for taint in missing):
        yield uncordon(place)
        missing = tuple(taint for taint in missing if taint.key not in (CORDON_TAINT, *MAINTENANCE_TAINTS))
        if not missing:
            return
    if len(missing) > _MOST_TAINTS:
        return
    if all(_is_left_over(taint, place.node, place.snapshot) for taint in missing):
        yield s.RemoveTaints(row=place.node_row, node=place.node.name, taints=missing, is_left_over=True)
        return
    if all(initializes(place.pod, taint) for taint in missing):
        yield s.Tolerate(taints=missing)
        return
    if all(is_removed_by_itself(taint, place.node, place.snapshot) for taint in missing):
        yield s.RepairNode(
            row=place.node_row, node=place.node.name, faults=faults_of(place.node, missing, place.snapshot)
        )
        return
    if all(taint.key == OUT_OF_SERVICE for taint in missing):
        return
    requested = place.situation.requested
    nobody_else = are_all_of_control_plane(iter(place.snapshot.cluster.nodes))
    open_ = [taint for taint in missing if not (nobody_else and taint.key in OF_CONTROL_PLANE)]
    if any(is_kept(taint, place.node, place.pod, requested) for taint in open_):
        return
    wrong = _misspelled_toleration(missing[0], place) if len(missing) == 1 else None
    meant = {name for it in place.pod.spec.tolerations for name in (it.key, NEW_NAMES.get(it.key))}
    if all(taint in open_ or taint.key in meant for taint in missing):
        yield s.Tolerate(taints=missing) if wrong is None else s.TolerateInstead(wrong=wrong, taint=missing[0])
    offered = place.node.status.allocatable
    names_device = any(offered.get(taint.key, "0") != "0" for taint in missing)  # it reserves the node's devices
    is_kept_by_provider = any(taint.key.startswith((*KEPT, _SET_BY_AKS)) for taint in missing)
    if nobody_else or not (names_device or is_kept_by_provider):
        is_of_openshift = nobody_else and OF_OPENSHIFT in place.node.metadata.labels
        pool = "" if is_of_openshift else first_label(place.node.metadata.labels, POOL_LABELS)
        yield s.RemoveTaints(
            row=place.node_row, node=place.node.name, pool=pool, taints=missing, is_of_openshift=is_of_openshift
        )


def _misspelled_toleration(taint: Taint, place: RemedyCandidate) -> Toleration | None:
    """Return the pod's toleration that was probably meant for the taint: a similar one that tolerates no taint of any
    node. None if there is none."""

    def is_slip(written: str, meant: str) -> bool:
        return written == meant or bool(written and meant and nearest_name(written, [meant]))

    nodes = place.situation.scheduler.nodes
    for toleration in place.pod.spec.tolerations:
        if (
            toleration.operator not in ("", "Equal", "Exists")
            or not toleration.key
            or not is_slip(toleration.key, taint.key)
        ):
            continue
        if toleration.operator != "Exists" and not is_slip(toleration.value, taint.value):
            continue
        if not any(
            tolerates(toleration, other, comparison=False) for taints in nodes.taints.values for other in taints
        ):
            return toleration
    return None


def _untolerated_taints(place: RemedyCandidate) -> tuple[Taint, ...]:
    comparison = place.situation.scheduler.release.compares_taints
    tolerations = Tolerations(place.pod.spec.tolerations, comparison=comparison)
    return tuple(it for it in place.node.spec.taints if it.effect in DO_NOT_SCHEDULE and not tolerations.cover(it))


def host_port_remedies(finding: HostPortConflict, place: RemedyCandidate) -> Iterator[s.FixStep]:
    pods = place.snapshot.pods
    taken = {p.host_port for row in pods.with_host_ports for c in pods.specs[int(row)].containers for p in c.ports}
    taken |= {p.host_port for c in place.pod.spec.containers for p in c.ports}
    free = next((number for number in range(finding.port + 1, 65536) if number not in taken), None)
    if free is not None:
        yield s.UseHostPort(port=finding.port, protocol=finding.protocol, instead=free)
    if not place.pod.spec.host_network:
        yield s.UseHostPort(port=finding.port, protocol=finding.protocol, instead=0)
    yield from delete_all([finding.holder], 1, place)
