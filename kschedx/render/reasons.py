"""What each reason means, when it arises and what usually fixes it: the text of `kschedx reason ID`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason explained. Its id is that of the finding, or of something that only an event's text says."""

    plugins: tuple[str, ...]
    """Those that give it."""
    means: str
    arises: str
    fixes: tuple[str, ...]
    """The usual ones, cheapest first; none where there is nothing to fix."""


REASONS: Mapping[str, Reason] = {
    # --- the pod as a whole
    "scheduling-gated": Reason(
        plugins=("SchedulingGates",),
        means="The pod has scheduling gates, so it does not enter the queue: kube-scheduler does not look at it.",
        arises=(
            "Somebody set spec.schedulingGates, usually a quota or admission controller such as Kueue. Gates can "
            "only be removed, by whoever set them."
        ),
        fixes=("find the controller that owns the gate and what it waits for", "remove the gate"),
    ),
    "nodes-excluded": Reason(
        plugins=("NodeAffinity",),
        means="PreFilter left only the nodes in that the pod names; all others are not evaluated at all.",
        arises=(
            "Every required term of the node affinity names nodes by metadata.name in matchFields, as the "
            "DaemonSet controller does for its pods."
        ),
        fixes=("look at the nodes that are left", "correct the names, where a person wrote them"),
    ),
    "pod-group-incomplete": Reason(
        plugins=("GangScheduling",),
        means="The pod belongs to a group that is scheduled all at once, and the group is not complete.",
        arises="The PodGroup does not exist, or fewer pods than its minCount have been created.",
        fixes=("create the missing pods or the group", "lower minCount"),
    ),
    # --- a node's own properties
    "node-unschedulable": Reason(
        plugins=("NodeUnschedulable",),
        means=(
            "The node is cordoned: spec.unschedulable is true, and the pod does not tolerate "
            "node.kubernetes.io/unschedulable:NoSchedule."
        ),
        arises="kubectl cordon or drain, an autoscaler that removes the node, a maintenance controller.",
        fixes=("wait until the maintenance is over", "kubectl uncordon NODE"),
    ),
    "node-name-mismatch": Reason(
        plugins=("NodeName",),
        means="spec.nodeName names another node.",
        arises=(
            "The pod was bound by hand, or a template has spec.nodeName set; then the scheduler has no choice left."
        ),
        fixes=("remove spec.nodeName and use a node selector", "correct the name"),
    ),
    "untolerated-taint": Reason(
        plugins=("TaintToleration",),
        means=(
            "The node has a taint with effect NoSchedule or NoExecute that no toleration of the pod matches. Key "
            "and effect must be equal, and the value too unless the operator is Exists."
        ),
        arises=(
            "Nodes set apart for a team or a kind of hardware, control planes, and nodes with trouble: not-ready, "
            "unreachable, disk-pressure and the like are taints since 1.12."
        ),
        fixes=(
            "add a toleration, or correct the one that comes nearest",
            "for a condition such as not-ready: repair the node",
            "remove the taint: kubectl taint nodes NODE KEY-",
        ),
    ),
    "node-affinity-mismatch": Reason(
        plugins=("NodeAffinity",),
        means=(
            "The node's labels do not satisfy spec.nodeSelector, or none of the required node affinity terms. The "
            "expressions of one term must all hold; the terms are alternatives."
        ),
        arises=(
            "A typo in a key or value, labels that new nodes lack, a pin to a zone that is full, or an affinity "
            "that the scheduler's profile adds to every pod (addedAffinity)."
        ),
        fixes=(
            "correct or drop the expression that fails",
            "label the nodes",
            "make it preferred instead of required",
        ),
    ),
    "missing-node-features": Reason(
        plugins=("NodeDeclaredFeatures",),
        means="The pod needs a feature that the node's kubelet does not declare in status.declaredFeatures.",
        arises="A cluster with kubelets of several versions, or with different feature gates.",
        fixes=("upgrade the node or enable the gate there", "do without the feature"),
    ),
    # --- what other pods hold
    "host-port-conflict": Reason(
        plugins=("NodePorts",),
        means=(
            "Another pod on the node has the host port. The port is compared with its protocol and address; "
            "0.0.0.0 stands for every address."
        ),
        arises=(
            "hostPort or hostNetwork: the second replica on a node, two ingress controllers, a rolling update "
            "with maxSurge."
        ),
        fixes=("use a Service instead of a host port", "another port or address", "remove the pod that has it"),
    ),
    "insufficient-resource": Reason(
        plugins=("NodeResourcesFit",),
        means=(
            "The pod's request exceeds what is left: the node's allocatable less the requests of the pods on it. "
            "Actual usage, limits and what `kubectl top` shows do not count."
        ),
        arises=(
            "A full node, fragmentation (enough in sum, nowhere in one piece), an init container that asks for "
            "more than the main ones, requests far above usage, or a resource that the node does not offer."
        ),
        fixes=(
            "request less, if less is used",
            "remove or move pods that hold it",
            "give the pod a higher priority",
            "add a node; where the request exceeds the whole node, a larger one",
        ),
    ),
    "too-many-pods": Reason(
        plugins=("NodeResourcesFit",),
        means="The node runs as many pods as its allocatable allows (status.allocatable.pods, 110 by default).",
        arises="Many small pods, or a network plugin with few addresses per machine.",
        fixes=("remove pods", "raise maxPods in the kubelet's configuration", "add a node"),
    ),
    # --- topology
    "topology-spread-skew": Reason(
        plugins=("PodTopologySpread",),
        means=(
            "With this pod, its domain would have more than maxSkew matching pods above the domain with the "
            "fewest: matching + this pod - minimum > maxSkew."
        ),
        arises=(
            "whenUnsatisfiable: DoNotSchedule, and the emptiest domain cannot take pods: it is full or tainted, "
            "or the pod's node affinity forbids it while nodeAffinityPolicy: Ignore still counts it, or fewer "
            "domains than minDomains exist."
        ),
        fixes=(
            "make room in the domain with the fewest",
            "set nodeAffinityPolicy or nodeTaintsPolicy to Honor",
            "raise maxSkew, or whenUnsatisfiable: ScheduleAnyway",
        ),
    ),
    "topology-label-missing": Reason(
        plugins=("PodTopologySpread",),
        means="The node lacks the label that a hard spread constraint names as its topologyKey.",
        arises="Nodes without zone labels, or a typo in the key.",
        fixes=("label the node", "correct the topologyKey"),
    ),
    "pod-affinity-unsatisfied": Reason(
        plugins=("InterPodAffinity",),
        means=(
            "A required podAffinity term wants a matching pod in the node's domain, and there is none. The first "
            "pod of a group may go anywhere, if it matches its own terms and no other pod does."
        ),
        arises=(
            "The pod to be near is not running yet, runs in another namespace or has other labels, or its nodes "
            "are full."
        ),
        fixes=("start the other pod", "correct selector, namespaces or topologyKey", "make it preferred"),
    ),
    "pod-anti-affinity-conflict": Reason(
        plugins=("InterPodAffinity",),
        means="This pod's required podAntiAffinity matches a pod that runs in the node's domain.",
        arises="As many replicas as domains, and one more: a rolling update, or a node less than before.",
        fixes=("one replica less, or maxSurge: 0", "a smaller domain, such as the hostname", "make it preferred"),
    ),
    "existing-anti-affinity-conflict": Reason(
        plugins=("InterPodAffinity",),
        means=(
            "A running pod's required podAntiAffinity matches this pod. The rule is the other pod's; this one may "
            "have none at all."
        ),
        arises="Labels copied from another application, or a selector that is wider than meant.",
        fixes=("change this pod's labels", "narrow the other pod's selector", "use another node or domain"),
    ),
    # --- claims
    "claim-not-found": Reason(
        plugins=("VolumeRestrictions", "VolumeBinding", "NodeVolumeLimits", "VolumeZone"),
        means="A volume names a PersistentVolumeClaim that does not exist in the pod's namespace.",
        arises=(
            "The claim was deleted, was never created, or has another name; for an ephemeral volume, kube- "
            "controller-manager has not made it yet."
        ),
        fixes=(
            "create the claim",
            "correct claimName",
            "for a StatefulSet: delete the pod, so that both are made again",
        ),
    ),
    "claim-lost": Reason(
        plugins=("VolumeBinding",),
        means="The claim's phase is Lost: the PersistentVolume that it was bound to is gone.",
        arises="Somebody deleted the volume, or the storage system did.",
        fixes=("restore the PersistentVolume", "delete the claim and make a new one; its data is gone"),
    ),
    "claim-being-deleted": Reason(
        plugins=("VolumeBinding",),
        means="The claim has a deletion timestamp; no new pod may use it.",
        arises="It was deleted while a pod still used it, and goes when the last one has gone.",
        fixes=("wait, then create it again",),
    ),
    "claim-not-owned": Reason(
        plugins=("VolumeBinding",),
        means="An ephemeral volume's claim has the right name but belongs to another owner.",
        arises="A claim of the name POD-VOLUME existed before.",
        fixes=("rename the volume or the pod", "delete the other claim, if nobody needs it"),
    ),
    "claim-unbound": Reason(
        plugins=("VolumeBinding",),
        means=(
            "A claim that must be bound before its pod is scheduled is not bound. Only classes with "
            "volumeBindingMode: WaitForFirstConsumer wait for the pod."
        ),
        arises="The provisioner is slow, missing or failing; the claim names no class or one that does not exist.",
        fixes=("kubectl describe pvc: its events say why", "name an existing class", "repair the provisioner"),
    ),
    # --- volumes against nodes
    "volume-not-found": Reason(
        plugins=("VolumeBinding", "VolumeZone"),
        means="A claim is bound to a PersistentVolume that does not exist.",
        arises="The volume was deleted by force, or the cluster was restored without it.",
        fixes=("restore the PersistentVolume", "delete the claim and make a new one"),
    ),
    "volume-node-affinity-mismatch": Reason(
        plugins=("VolumeBinding",),
        means=(
            "The claim's volume can be used only from nodes that its node affinity selects, and this is none of them."
        ),
        arises="Zonal disks and local volumes do not move: when their zone or node is full, the pod waits.",
        fixes=("make room in the volume's zone or on its node", "move the data to a new volume elsewhere"),
    ),
    "volume-zone-mismatch": Reason(
        plugins=("VolumeZone",),
        means="The volume's zone or region label names other zones than the node's.",
        arises="As for the volume's node affinity, with volumes that carry labels instead.",
        fixes=("make room in the volume's zone", "move the data to a new volume elsewhere"),
    ),
    "selected-node-mismatch": Reason(
        plugins=("VolumeBinding",),
        means="The claim's volume is being made for another node (annotation volume.kubernetes.io/selected-node).",
        arises="An earlier try chose that node and provisioning has not finished or failed.",
        fixes=("wait for the provisioner", "remove the annotation from the claim"),
    ),
    "no-matching-volume": Reason(
        plugins=("VolumeBinding",),
        means="No existing volume can be bound to the claim on this node, and none can be made.",
        arises="A class without a provisioner whose volumes are bound, too small or on other nodes.",
        fixes=("create a PersistentVolume that fits", "release one that is no longer used", "ask for less"),
    ),
    "provisioning-topology-mismatch": Reason(
        plugins=("VolumeBinding",),
        means=(
            "The claim's class makes volumes only in the topology that allowedTopologies names; the node is outside."
        ),
        arises="A class for one zone, and pods that may go to others.",
        fixes=("make room on nodes inside", "use a class for this zone"),
    ),
    "insufficient-storage-capacity": Reason(
        plugins=("VolumeBinding",),
        means=(
            "The driver reports its capacity (CSIStorageCapacity), and no storage that the node can reach has "
            "room for the claim. The maximum volume size counts before the capacity."
        ),
        arises="A full storage pool, or one that cannot make a volume this large in one piece.",
        fixes=("ask for less", "make room in the pool", "use another class"),
    ),
    "disk-conflict": Reason(
        plugins=("VolumeRestrictions",),
        means="A pod on the node uses the same disk, and one of the two writes to it.",
        arises="Disks named in the pod itself (gcePersistentDisk, awsElasticBlockStore, iscsi, rbd).",
        fixes=("mount it read-only in both", "use a claim instead", "let the other pod finish"),
    ),
    "claim-in-use": Reason(
        plugins=("VolumeRestrictions",),
        means="The claim's access mode is ReadWriteOncePod, and a running pod has it.",
        arises="A rolling update that starts the new pod before the old one stops.",
        fixes=("strategy: Recreate, or maxSurge: 0", "delete the pod that has it"),
    ),
    "volume-limit-exceeded": Reason(
        plugins=("NodeVolumeLimits",),
        means="The node can attach no further volumes of this driver: the limit is in its CSINode.",
        arises="Many small volumes on few machines, or attachments that were left behind.",
        fixes=("detach what no pod uses", "move pods with volumes", "add a node"),
    ),
    "driver-not-installed": Reason(
        plugins=("NodeVolumeLimits",),
        means="The node's CSINode does not list the CSI driver that the volume needs.",
        arises="The driver's DaemonSet does not run there, because of a taint or a selector.",
        fixes=("let the driver run on the node", "use nodes that have it"),
    ),
    "volume-to-bind": Reason(
        plugins=("VolumeBinding",),
        means="On the chosen node an existing volume would be bound to the claim. Nothing is wrong.",
        arises="A class with WaitForFirstConsumer, whose claim waits for its pod.",
        fixes=(),
    ),
    "volume-to-provision": Reason(
        plugins=("VolumeBinding",),
        means="On the chosen node a volume would be made for the claim. Nothing is wrong.",
        arises="A class with WaitForFirstConsumer and a provisioner.",
        fixes=(),
    ),
    # --- devices
    "device-claim-not-found": Reason(
        plugins=("DynamicResources",),
        means="The pod names a ResourceClaim that does not exist.",
        arises="The name in spec.resourceClaims is wrong, or the claim is still to be created.",
        fixes=("correct resourceClaimName", "create the ResourceClaim in the pod's namespace"),
    ),
    "device-claim-not-created": Reason(
        plugins=("DynamicResources",),
        means="The ResourceClaim that is made from the pod's template does not exist yet, so the pod waits outside.",
        arises=(
            "kube-controller-manager's resourceclaim controller makes it and writes its name to the pod's status: the "
            "pod is new, the ResourceClaimTemplate does not exist, or a quota forbids the claim."
        ),
        fixes=("look at the pod's events and at the ResourceClaimTemplate", "create the template"),
    ),
    "device-claim-being-deleted": Reason(
        plugins=("DynamicResources",),
        means="The pod's ResourceClaim is being deleted; a new pod cannot use it.",
        arises="Somebody deleted it, and pods that use it hold it until they are gone.",
        fixes=("wait until it is gone, and create it again",),
    ),
    "device-claim-not-owned": Reason(
        plugins=("DynamicResources",),
        means="The pod's status names a ResourceClaim that was not made for it.",
        arises="A claim of the generated name existed before, or the pod was made again under its old name.",
        fixes=("delete the claim, so that the controller makes its own",),
    ),
    "device-class-not-found": Reason(
        plugins=("DynamicResources",),
        means="A request of a ResourceClaim is for a DeviceClass that does not exist.",
        arises="A misspelled name, or a driver whose chart, which brings the class, is not installed.",
        fixes=("correct deviceClassName", "install the driver or create the DeviceClass"),
    ),
    "device-selector-failed": Reason(
        plugins=("DynamicResources",),
        means="A CEL expression of a DeviceClass or ResourceClaim fails on a device; the pod is tried again and again.",
        arises=(
            "It reads an attribute that the device does not have, or compares values of different types. One such "
            "device on one node is enough."
        ),
        fixes=(
            "ask for what there is: has(...), or .?name.orValue(...)",
            "ask for the driver first, with device.driver == 'NAME' &&",
        ),
    ),
    "device-claim-out-of-reach": Reason(
        plugins=("DynamicResources",),
        means=(
            "The ResourceClaim has devices already, and this node cannot use them: they are on other nodes, or their "
            "driver did not get them ready in time."
        ),
        arises="Pods share a claim whose devices belong to one node, or the claim was kept from an earlier pod.",
        fixes=(
            "let the pod run where the devices are: that node needs room for it",
            "give the pod a claim of its own, with a ResourceClaimTemplate",
            "delete the pods for which the claim is reserved, so that it can be allocated anew",
        ),
    ),
    "insufficient-devices": Reason(
        plugins=("DynamicResources",),
        means="The node cannot give the pod's claims the devices that they ask for.",
        arises=(
            "Its devices are of another class, fail a selector, are taken by other claims or tainted, or their "
            "counters or capacity are used up. kube-scheduler does not evict pods for devices."
        ),
        fixes=(
            "look which of its devices match, and who has them",
            "ask for less: fewer devices, wider selectors, alternatives with firstAvailable",
            "delete pods whose claims have matching devices",
            "add nodes with such devices",
        ),
    ),
    "devices-to-allocate": Reason(
        plugins=("DynamicResources",),
        means="On the chosen node the claim would get these devices. Nothing is wrong.",
        arises="A claim is allocated when its first pod is scheduled.",
        fixes=(),
    ),
    # --- anything else
    "plugin-message": Reason(
        plugins=(),
        means="A plugin says it in its own words: an internal error, or a plugin that kschedx knows no more about.",
        arises="Objects that contradict each other, a device selector that fails, or a plugin from another package.",
        fixes=("read the plugin's text",),
    ),
    # --- what only an event's text says
    "preemption-not-helpful": Reason(
        plugins=("DefaultPreemption",),
        means="Whoever is evicted, the pod would not fit on these nodes: the node itself does not suit.",
        arises="Taints, node affinity, cordons, volumes, or a request larger than the whole node.",
        fixes=("look at the other reasons: priority does not help here",),
    ),
    "no-preemption-victims": Reason(
        plugins=("DefaultPreemption",),
        means="Eviction could help on these nodes, but no pods there have a lower priority.",
        arises="All pods have the same priority, which is so unless PriorityClasses are used.",
        fixes=("make room by hand", "give the pod a PriorityClass of higher value"),
    ),
    "preemption-not-eligible": Reason(
        plugins=("DefaultPreemption",),
        means="The pod may not evict others, so no node was tried.",
        arises="preemptionPolicy: Never in its PriorityClass, or its victims are terminating already.",
        fixes=("wait for the victims", "use a PriorityClass that may preempt"),
    ),
    "preemption-not-tried": Reason(
        plugins=("DynamicResources",),
        means=(
            "PreFilter rejected the pod before DynamicResources was asked; its PostFilter then finds no state, "
            'and says only "not found". Preemption is not tried.'
        ),
        arises="Any rejection in PreFilter, such as a missing claim, since 1.34.",
        fixes=("look at the reason before it",),
    ),
    "no-nodes": Reason(
        plugins=(),
        means="The cluster has no nodes.",
        arises="A new cluster, or node registration that fails.",
        fixes=("add nodes",),
    ),
}

REASON_IDS: tuple[str, ...] = tuple(REASONS)
