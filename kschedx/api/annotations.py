"""The annotations of pods that autoscalers and other schedulers read; a snapshot keeps no other."""

from __future__ import annotations

MIRROR = "kubernetes.io/config.mirror"
"""The kubelet's copy of a static pod has it."""
AUTOSCALER = "cluster-autoscaler.kubernetes.io/"
DAEMON_SET_POD = f"{AUTOSCALER}daemonset-pod"
"""`true`: the cluster-autoscaler takes the pod for one of a DaemonSet."""
SCALE_UP_DELAY = f"{AUTOSCALER}pod-scale-up-delay"
"""How long the cluster-autoscaler leaves a pending pod alone, as a Go duration."""
SAFE_TO_EVICT = f"{AUTOSCALER}safe-to-evict"
SAFE_TO_EVICT_LOCAL_VOLUMES = f"{AUTOSCALER}safe-to-evict-local-volumes"
"""Names of local volumes that need not be kept, separated by commas."""
SCALE_DOWN_DISABLED = f"{AUTOSCALER}scale-down-disabled"
"""Of a node: `true` keeps the cluster-autoscaler from removing it."""
NODE_POOL_ID = "oci.oraclecloud.com/node-pool-id"
"""Of a node of OKE: its group."""
KARPENTER = "karpenter.sh/"
DO_NOT_DISRUPT = f"{KARPENTER}do-not-disrupt"

GANG_LEAST = "gang.scheduling.koordinator.sh/min-available"
"""Of a gang of Koordinator without a PodGroup."""
GROUP_NAMES = (
    "scheduling.k8s.io/group-name",
    "volcano.sh/group-name",
    "pod-group-name",
    "pod-group.scheduling.sigs.k8s.io/name",
    "pod-group.scheduling.sigs.k8s.io",
    "gang.scheduling.koordinator.sh/name",
)
"""What Volcano, KAI and Koordinator call a pod's group, in annotations or labels, the one that counts first."""

YUNIKORN_QUEUE, YUNIKORN_APPLICATION = "yunikorn.apache.org/queue", "yunikorn.apache.org/app-id"
TASK_GROUP, TASK_GROUPS = "yunikorn.apache.org/task-group-name", "yunikorn.apache.org/task-groups"
"""The group of its application that a pod is of, and in JSON all groups of the application."""
OTHER_SCHEDULERS = (*GROUP_NAMES, GANG_LEAST, YUNIKORN_QUEUE, YUNIKORN_APPLICATION, TASK_GROUP, TASK_GROUPS)

ANNOTATION_MARKS = (
    *(AUTOSCALER.encode(), MIRROR.encode(), KARPENTER.encode()),
    *(name.encode() for name in OTHER_SCHEDULERS),
)
"""Texts of which JSON holds one wherever it holds an annotation that is read, a slash written as such."""


def is_read(key: str) -> bool:
    return key == MIRROR or key in OTHER_SCHEDULERS or key.startswith((AUTOSCALER, KARPENTER))
