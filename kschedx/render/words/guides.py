"""How to confirm each reason with kubectl, what does not help, and where Kubernetes documents it.

`kschedx reason ID` and the documentation print this beside the reason's own entry.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Guide(Struct, frozen=True, kw_only=True):
    """What an operator does with a reason."""

    confirm: tuple[str, ...] = ()
    """Commands; words in capitals stand for names."""
    useless: tuple[str, ...] = ()
    """What people try, and why it does not help."""
    links: tuple[str, ...] = ()
    """Pages below `KUBERNETES_DOCS`."""


KUBERNETES_DOCS = "https://kubernetes.io/docs/"
DOCUMENTATION = "https://kschedx.github.io/kschedx/"
"""Where `docs/` is published; `docs/mkdocs.yml` names it as well."""


def reason_page(name: str) -> str:
    """The address of the page about a reason."""
    return f"{DOCUMENTATION}reference/reasons/{name}.html"


_ASSIGN = "concepts/scheduling-eviction/assign-pod-node/"
_TAINTS = "concepts/scheduling-eviction/taint-and-toleration/"
_SPREAD = "concepts/scheduling-eviction/topology-spread-constraints/"
_RESOURCES = "concepts/configuration/manage-resources-containers/"
_AUTOSCALING = "concepts/cluster-administration/node-autoscaling/"
_PREEMPTION = "concepts/scheduling-eviction/pod-priority-preemption/"
_VOLUMES = "concepts/storage/persistent-volumes/"
_CLASSES = "concepts/storage/storage-classes/"
_LIMITS = "concepts/storage/storage-limits/"
_DEVICES = "concepts/scheduling-eviction/dynamic-resource-allocation/"
_FRAMEWORK = "concepts/scheduling-eviction/scheduling-framework/"
_GANGS = "concepts/scheduling-eviction/gang-scheduling/"

_NODE_LABELS = "kubectl get nodes --show-labels"
_CLAIM = "kubectl describe pvc CLAIM -n NAMESPACE"
_DEVICE_CLAIM = "kubectl describe resourceclaim CLAIM -n NAMESPACE"
_PODS_OF_NODE = "kubectl get pods -A --field-selector spec.nodeName=NODE"
_SLICES = "kubectl get resourceslices"
_SCHEDULER_CONFIG = "kubectl get pod -n kube-system -l component=kube-scheduler -o yaml"
_SCHEDULER_LOG = "kubectl logs -n kube-system -l component=kube-scheduler"
_ZONE_IS_FIXED = "another zone in the pod's node affinity: the volume does not move"

GUIDES: Mapping[str, Guide] = {
    "scheduling-gated": Guide(
        confirm=("kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.schedulingGates}'",),
        useless=("more capacity: kube-scheduler does not look at a gated pod",),
        links=("concepts/scheduling-eviction/pod-scheduling-readiness/",),
    ),
    "nodes-excluded": Guide(
        confirm=("kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.affinity.nodeAffinity}'",),
        useless=("more nodes: the pod names the nodes that it accepts",),
        links=(_ASSIGN, "concepts/workloads/controllers/daemonset/"),
    ),
    "pod-group-incomplete": Guide(
        confirm=("kubectl get podgroups -n NAMESPACE", "kubectl get pods -n NAMESPACE"),
        useless=("more capacity: the group waits for pods, not for nodes",),
        links=(_GANGS,),
    ),
    "node-unschedulable": Guide(
        confirm=("kubectl get nodes", "kubectl get node NODE -o jsonpath='{.spec.unschedulable}'"),
        useless=("lower requests: a cordoned node accepts no pod",),
        links=("concepts/architecture/nodes/#manual-node-administration",),
    ),
    "node-name-mismatch": Guide(
        confirm=("kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.nodeName}'",),
        useless=("labels or tolerations: the node's name is the only thing that counts",),
        links=(_ASSIGN,),
    ),
    "untolerated-taint": Guide(
        confirm=("kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints",),
        useless=(
            "a toleration alone: it allows the node and does not attract the pod to it",
            "tolerating node.kubernetes.io/not-ready: the pod would start on a node that is not ready",
        ),
        links=(_TAINTS,),
    ),
    "node-affinity-mismatch": Guide(
        confirm=(
            "kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.nodeSelector} {.spec.affinity.nodeAffinity}'",
            _NODE_LABELS,
        ),
        useless=("a label that states a hardware fact: it does not add the hardware",),
        links=(_ASSIGN,),
    ),
    "missing-node-features": Guide(
        confirm=("kubectl get node NODE -o jsonpath='{.status.declaredFeatures}'", "kubectl get nodes"),
        useless=("a label on the node: the kubelet declares its features itself",),
        links=("reference/command-line-tools-reference/feature-gates/",),
    ),
    "host-port-conflict": Guide(
        confirm=(_PODS_OF_NODE + " -o custom-columns=NAME:.metadata.name,PORTS:.spec.containers[*].ports[*].hostPort",),
        useless=("more CPU or memory: one port of a node serves one pod",),
        links=("concepts/configuration/overview/#services",),
    ),
    "insufficient-resource": Guide(
        confirm=("kubectl describe node NODE", _PODS_OF_NODE),
        useless=(
            "a look at kubectl top: only requests count, not what pods use",
            "lower limits: limits do not count unless they set the request",
        ),
        links=(_RESOURCES,),
    ),
    "too-many-pods": Guide(
        confirm=("kubectl get node NODE -o jsonpath='{.status.allocatable.pods}'",),
        useless=("lower requests: the number of pods is the limit, not their size",),
        links=("setup/best-practices/cluster-large/", "tasks/administer-cluster/kubelet-config-file/"),
    ),
    "topology-spread-skew": Guide(
        confirm=("kubectl get pods -n NAMESPACE -l SELECTOR -o wide", "kubectl get nodes --label-columns KEY"),
        useless=("more nodes in the fullest domain: the emptiest domain sets the limit",),
        links=(_SPREAD,),
    ),
    "topology-label-missing": Guide(
        confirm=("kubectl get nodes --label-columns KEY",),
        useless=("a higher maxSkew: a node without the label is never counted",),
        links=(_SPREAD, "reference/labels-annotations-taints/"),
    ),
    "pod-affinity-unsatisfied": Guide(
        confirm=("kubectl get pods -A -l SELECTOR -o wide",),
        useless=("more nodes: the other pod has to run in their domain",),
        links=(_ASSIGN,),
    ),
    "pod-anti-affinity-conflict": Guide(
        confirm=("kubectl get pods -A -l SELECTOR -o wide",),
        useless=("a higher priority alone: preemption evicts only pods with a lower priority",),
        links=(_ASSIGN,),
    ),
    "existing-anti-affinity-conflict": Guide(
        confirm=("kubectl get pod OTHER -n NAMESPACE -o jsonpath='{.spec.affinity.podAntiAffinity}'",),
        useless=("a change of this pod's own affinity: the rule is the other pod's",),
        links=(_ASSIGN,),
    ),
    "claim-not-found": Guide(
        confirm=("kubectl get pvc -n NAMESPACE",),
        useless=("a PersistentVolume: the pod names a claim, and the claim is missing",),
        links=(_VOLUMES,),
    ),
    "claim-lost": Guide(
        confirm=(_CLAIM, "kubectl get pv"),
        useless=("a new volume with the same name: the claim stays Lost",),
        links=(_VOLUMES,),
    ),
    "claim-being-deleted": Guide(
        confirm=("kubectl get pvc CLAIM -n NAMESPACE -o jsonpath='{.metadata.deletionTimestamp}'",),
        useless=("removing the finalizer by hand: a pod may still write to the volume",),
        links=(_VOLUMES + "#storage-object-in-use-protection",),
    ),
    "claim-not-owned": Guide(
        confirm=("kubectl get pvc POD-VOLUME -n NAMESPACE -o jsonpath='{.metadata.ownerReferences}'",),
        useless=("editing the owner of the claim: its data belongs to something else",),
        links=("concepts/storage/ephemeral-volumes/",),
    ),
    "claim-unbound": Guide(
        confirm=(_CLAIM, "kubectl get storageclass"),
        useless=("recreating the pod: the claim is what has to be bound",),
        links=(_VOLUMES, _CLASSES),
    ),
    "volume-not-found": Guide(
        confirm=("kubectl get pvc CLAIM -n NAMESPACE -o jsonpath='{.spec.volumeName}'", "kubectl get pv"),
        useless=("waiting: a claim that is bound is not bound again",),
        links=(_VOLUMES,),
    ),
    "volume-node-affinity-mismatch": Guide(
        confirm=(
            "kubectl get pv VOLUME -o jsonpath='{.spec.nodeAffinity}'",
            "kubectl get nodes -L topology.kubernetes.io/zone",
        ),
        useless=(_ZONE_IS_FIXED,),
        links=(_VOLUMES + "#node-affinity", "concepts/storage/volumes/#local"),
    ),
    "volume-zone-mismatch": Guide(
        confirm=("kubectl get pv VOLUME --show-labels", "kubectl get nodes -L topology.kubernetes.io/zone"),
        useless=(_ZONE_IS_FIXED,),
        links=(_VOLUMES,),
    ),
    "selected-node-mismatch": Guide(
        confirm=(_CLAIM,),
        useless=("a second claim: the pod names this one",),
        links=(_CLASSES + "#volume-binding-mode",),
    ),
    "no-matching-volume": Guide(
        confirm=("kubectl get pv", _CLAIM),
        useless=("a larger node: the volume is missing, not CPU or memory",),
        links=(_VOLUMES + "#binding",),
    ),
    "provisioning-topology-mismatch": Guide(
        confirm=("kubectl get storageclass CLASS -o jsonpath='{.allowedTopologies}'",),
        useless=("labels on the nodes: the provisioner reads where a machine really is",),
        links=(_CLASSES + "#allowed-topologies",),
    ),
    "insufficient-storage-capacity": Guide(
        confirm=("kubectl get csistoragecapacities -A",),
        useless=("more CPU or memory: the storage pool is full",),
        links=("concepts/storage/storage-capacity/",),
    ),
    "disk-conflict": Guide(
        confirm=(_PODS_OF_NODE,),
        useless=("more replicas: each of them mounts the same disk",),
        links=("concepts/storage/volumes/",),
    ),
    "claim-in-use": Guide(
        confirm=(_CLAIM,),
        useless=("a second replica: ReadWriteOncePod admits one pod",),
        links=(_VOLUMES + "#access-modes",),
    ),
    "volume-limit-exceeded": Guide(
        confirm=("kubectl get csinode NODE -o yaml", "kubectl get volumeattachments"),
        useless=("lower requests: the number of volumes is the limit",),
        links=(_LIMITS,),
    ),
    "driver-not-installed": Guide(
        confirm=("kubectl get csinode NODE -o jsonpath='{.spec.drivers[*].name}'", "kubectl get daemonsets -A"),
        useless=("a new claim: the node lacks the driver",),
        links=("concepts/storage/volumes/#csi",),
    ),
    "volume-to-bind": Guide(
        confirm=(_CLAIM,),
        useless=("binding the claim by hand: it is bound with its pod",),
        links=(_CLASSES + "#volume-binding-mode",),
    ),
    "volume-to-provision": Guide(
        confirm=(_CLAIM,),
        useless=("a volume by hand: the provisioner creates one",),
        links=(_CLASSES + "#volume-binding-mode",),
    ),
    "devices-to-allocate": Guide(
        confirm=(_SLICES,), useless=("another claim: this one is allocated with its pod",), links=(_DEVICES,)
    ),
    "device-claim-not-found": Guide(
        confirm=("kubectl get resourceclaims -n NAMESPACE",),
        useless=("more devices: the claim itself is missing",),
        links=(_DEVICES,),
    ),
    "device-claim-not-created": Guide(
        confirm=("kubectl get resourceclaimtemplates -n NAMESPACE", "kubectl describe pod POD -n NAMESPACE"),
        useless=("a ResourceClaim by hand: the pod uses the one that is created from its template",),
        links=(_DEVICES,),
    ),
    "device-claim-being-deleted": Guide(
        confirm=(_DEVICE_CLAIM,), useless=("recreating the pod: the claim is still being deleted",), links=(_DEVICES,)
    ),
    "device-claim-not-owned": Guide(
        confirm=("kubectl get resourceclaim CLAIM -n NAMESPACE -o jsonpath='{.metadata.ownerReferences}'",),
        useless=("a change of the claim's owner: the devices may be in use",),
        links=(_DEVICES,),
    ),
    "device-class-not-found": Guide(
        confirm=("kubectl get deviceclasses",),
        useless=("more devices: no request can name them without the class",),
        links=(_DEVICES,),
    ),
    "device-selector-failed": Guide(
        confirm=(_SLICES + " -o yaml", "kubectl get deviceclass CLASS -o yaml"),
        useless=("another node: the expression fails wherever such a device is",),
        links=(_DEVICES, "reference/using-api/cel/"),
    ),
    "device-claim-out-of-reach": Guide(
        confirm=("kubectl get resourceclaim CLAIM -n NAMESPACE -o jsonpath='{.status.allocation}'",),
        useless=("devices on other nodes: this claim has its devices already",),
        links=(_DEVICES,),
    ),
    "insufficient-devices": Guide(
        confirm=(_SLICES, "kubectl get resourceclaims -A"),
        useless=("a higher priority: kube-scheduler does not evict pods for devices",),
        links=(_DEVICES,),
    ),
    "extender-refused": Guide(
        confirm=(_SCHEDULER_CONFIG,),
        useless=("a look at kube-scheduler's event: it does not name the extender",),
        links=("reference/config-api/kube-scheduler-config.v1/",),
    ),
    "extender-dropped": Guide(
        confirm=(_SCHEDULER_CONFIG,),
        useless=("a look at kube-scheduler's event: such a node appears under no reason",),
        links=("reference/config-api/kube-scheduler-config.v1/",),
    ),
    "gang-too-small": Guide(
        confirm=("kubectl get podgroups -n NAMESPACE", "kubectl get pods -n NAMESPACE"),
        useless=("more capacity: pods of the group are missing",),
        links=(_FRAMEWORK,),
    ),
    "gang-resources-short": Guide(
        confirm=("kubectl get podgroup GROUP -n NAMESPACE -o yaml",),
        useless=("room for one pod: the group needs room for all of them",),
        links=(_FRAMEWORK,),
    ),
    "elastic-quota-exceeded": Guide(
        confirm=("kubectl get elasticquotas -A",),
        useless=("more nodes: the quota is the limit",),
        links=(_FRAMEWORK,),
    ),
    "numa-misfit": Guide(
        confirm=("kubectl get noderesourcetopologies NODE -o yaml",),
        useless=("free capacity in total: one NUMA node has to hold the whole container",),
        links=("tasks/administer-cluster/topology-manager/",),
    ),
    "plugin-message": Guide(
        confirm=(_SCHEDULER_LOG,), useless=("more nodes: the plugin reports an error",), links=(_FRAMEWORK,)
    ),
    "plugin-finding": Guide(
        confirm=(_SCHEDULER_CONFIG,),
        useless=("the reasons of Kubernetes' own plugins: this plugin has its own rules",),
        links=(_FRAMEWORK,),
    ),
    "preemption-not-helpful": Guide(
        confirm=("kubectl describe pod POD -n NAMESPACE",),
        useless=("a higher priority: the nodes reject the pod for other reasons",),
        links=(_PREEMPTION,),
    ),
    "no-preemption-victims": Guide(
        confirm=("kubectl get priorityclasses",),
        useless=("a higher request: more pods would have to be evicted",),
        links=(_PREEMPTION,),
    ),
    "preemption-not-eligible": Guide(
        confirm=("kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.preemptionPolicy}'",),
        useless=("a higher priority with preemptionPolicy: Never: the pod still evicts no pod",),
        links=(_PREEMPTION,),
    ),
    "preemption-not-tried": Guide(
        confirm=("kubectl describe pod POD -n NAMESPACE",),
        useless=("a higher priority: the other reason comes first",),
        links=(_PREEMPTION,),
    ),
    "no-nodes": Guide(
        confirm=("kubectl get nodes",),
        useless=("lower requests: a pod needs a node",),
        links=("concepts/architecture/nodes/",),
    ),
    "binding-failed": Guide(
        confirm=("kubectl describe pod POD -n NAMESPACE", "kubectl describe pvc CLAIM -n NAMESPACE"),
        useless=("another node: kube-scheduler chose one that fits",),
        links=("concepts/storage/persistent-volumes/",),
    ),
    "preempted": Guide(
        confirm=("kubectl get events -n NAMESPACE --field-selector reason=Preempted",),
        useless=("a PodDisruptionBudget: preemption prefers other victims, and breaks it if there are none",),
        links=(_PREEMPTION,),
    ),
    "refused": Guide(
        confirm=("kubectl describe replicaset -n NAMESPACE", "kubectl describe resourcequota -n NAMESPACE"),
        useless=("more nodes: the pod does not exist yet",),
        links=("concepts/policy/resource-quotas/", "concepts/security/pod-security-admission/"),
    ),
    "deleted-while-pending": Guide(
        confirm=(
            "kubectl get pod POD -n NAMESPACE -o jsonpath='{.metadata.deletionTimestamp} {.metadata.finalizers}'",
        ),
        useless=("more nodes: the pod is not scheduled any more",),
        links=("concepts/overview/working-with-objects/finalizers/",),
    ),
    "scale-up": Guide(
        confirm=("kubectl get nodes --watch", "kubectl get configmap cluster-autoscaler-status -n kube-system -o yaml"),
        useless=("a second copy of the pod: the autoscaler counts each",),
        links=(_AUTOSCALING,),
    ),
    "no-scale-up": Guide(
        confirm=("kubectl get configmap cluster-autoscaler-status -n kube-system -o yaml",),
        useless=("a higher maximum, where the new node would not fit the pod",),
        links=(_AUTOSCALING,),
    ),
    "no-node-pool": Guide(
        confirm=("kubectl get nodepools", "kubectl describe nodepool NAME"),
        useless=("more replicas of Karpenter: one of them decides",),
        links=(_AUTOSCALING,),
    ),
}
