"""The state of a pod or workload, determined from objects of the cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kschedx.controllers.kubelet_rejections import overuse_text
from kschedx.controllers.states import Refused
from tests.builders import Manifest, at, autoscaler_status, config_map, disruption_budget, node, pod
from tests.cli.manifests import changed
from tests.command import CommandResult, kschedx
from tests.storage_builders import HOSTNAME, claim, csi_node, in_term, storage_class, using

SMALL: Manifest = {"containers": [{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}]}
LARGE: Manifest = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "40"}}}]}
SINCE = "2026-01-02T00:00:00Z"


def workload(kind: str, name: str = "web", *, metadata: Manifest | None = None, **spec: object) -> Manifest:
    template = {"metadata": {"labels": {"app": name}}, "spec": SMALL}
    own: Manifest = {"template": template}
    if kind == "CronJob":
        own = {"schedule": "* * * * *", "jobTemplate": {"spec": own}}
    elif kind != "Job":
        own |= {"selector": {"matchLabels": {"app": name}}}
    group = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    named = {"name": name, "namespace": "default", "uid": f"u-{name}", **(metadata or {})}
    return {"apiVersion": group, "kind": kind, "metadata": named, "spec": {**own, **spec}}


def owned(kind: str, name: str) -> Manifest:
    return {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": True}]}


def replica(name: str, kind: str, of: str, *, on: str | None = "n", ready: bool = True, **status: object) -> Manifest:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return pod(name, on=on, metadata=owned(kind, of), status={"phase": "Running", "conditions": conditions, **status})


def waiting(reason: str, message: str = "") -> list[Manifest]:
    return [{"name": "app", "state": {"waiting": {"reason": reason, "message": message}}}]


def kubelet(name: str = "web-0", **status: object) -> Manifest:
    return pod(name, on="n", metadata=owned("StatefulSet", "web"), status={"phase": "Pending", **status})


def static(component: str, *, ready: bool = False) -> Manifest:
    """Return a pod of the control plane, on a node that other pods do not tolerate."""
    metadata = {"namespace": "kube-system", "annotations": {"kubernetes.io/config.mirror": "x"}}
    fails = {} if ready else {"containerStatuses": waiting("CrashLoopBackOff")}
    conditions = [{"type": "Ready", "status": str(ready)}]
    return pod(
        f"{component}-n", on="n", metadata=metadata, status={"phase": "Running", "conditions": conditions, **fails}
    )


LABELED_SCHEDULER = static("kube-scheduler")
at(LABELED_SCHEDULER, "metadata").update({"annotations": {}, "labels": {"tier": "control-plane"}})
KUEUE_ITSELF: Manifest = {"namespace": "kueue-system", "labels": {"app.kubernetes.io/name": "kueue"}}
FORBIDS: Manifest = {
    **workload("CronJob", concurrencyPolicy="Forbid"),
    "status": {"active": [{"kind": "Job", "name": "web-1", "namespace": "default"}]},
}
FAILS_TO_PULL = pod(
    "web-1-x",
    on="n",
    metadata=owned("Job", "web-1"),
    status={"phase": "Pending", "containerStatuses": waiting("ErrImagePull")},
)
RUNS_ON = pod("web-1-x", on="n", metadata=owned("Job", "web-1"), status={"phase": "Running"})
DUMPED: Manifest = {**node("d"), "metadata": {"name": "d", "creationTimestamp": SINCE}}
IS_ACCEPTED = {"phase": "Pending", "startTime": SINCE}
LEFT_OUT_NODE = pod("x", on="m", metadata={"creationTimestamp": SINCE}, status=IS_ACCEPTED)
GONE_NODE = pod("x", on="m", metadata={"creationTimestamp": SINCE}, status={"phase": "Pending"})
TERMINATING: Manifest = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default", "deletionTimestamp": SINCE},
    "status": {"phase": "Terminating"},
}
FAILURE = {"type": "ReplicaFailure", "status": "True", "message": 'serviceaccount "api" not found'}
REPLICA_SET: Manifest = {
    **workload("ReplicaSet", "web-1", metadata=owned("Deployment", "web"), replicas=2),
    "status": {"replicas": 0, "conditions": [FAILURE]},
}
ROLLED_OUT: Manifest = {
    **workload("ReplicaSet", "web-1", metadata=owned("Deployment", "web")),
    "spec": workload("Deployment")["spec"],
}
SURGE: Manifest = {**REPLICA_SET, "spec": {**at(REPLICA_SET, "spec"), "replicas": 1}}
FAILED_TO_INITIALIZE: Manifest = {
    "phase": "Failed",
    "initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}],
}
REJECTED: Manifest = {"phase": "Failed", "reason": "OutOfcpu", "message": "Pod was rejected: not enough: cpu"}
ON_FULL_NODE: list[Manifest] = [
    workload("Deployment", replicas=2),
    {**ROLLED_OUT, "spec": {**at(ROLLED_OUT, "spec"), "replicas": 2}},
    replica("web-1-a", "ReplicaSet", "web-1"),
    pod("web-1-b", on="n", metadata=owned("ReplicaSet", "web-1"), status=REJECTED),
]
BINDS_LATE: Manifest = {
    "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
    "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer",
}  # fmt: skip
UNBOUND: Manifest = {
    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
    "spec": {"storageClassName": "late", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}},
}  # fmt: skip
BY_HAND: list[Manifest] = [
    *(BINDS_LATE, UNBOUND),
    pod(
        "x",
        on="n",
        spec={**SMALL, "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
        status={"phase": "Pending", "containerStatuses": waiting("ContainerCreating")},
    ),
]
OLD = workload("ReplicaSet", "web-0", metadata=owned("Deployment", "web"))
ROLLS_OUT: list[Manifest] = [
    {**workload("StatefulSet", replicas=2), "status": {"updateRevision": "web-2"}},
    *(
        pod(
            f"web-{number}",
            on="n",
            metadata={**owned("StatefulSet", "web"), "labels": {"controller-revision-hash": f"web-{number + 1}"}},
            status={"phase": "Running", "conditions": [{"type": "Ready", "status": str(not number)}]},
        )
        for number in range(2)
    ),
]
ROLLOUT: Manifest = {
    **workload("Deployment", replicas=0),
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Rollout",
}
VIRTUAL_MACHINE: Manifest = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachine",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {}}}},
}
DATABASE: Manifest = {
    "apiVersion": "postgresql.cnpg.io/v1",
    "kind": "Cluster",
    "metadata": {"name": "web", "namespace": "default", "annotations": {"cnpg.io/hibernation": "on"}},
    "spec": {"instances": 3},
}
NOTEBOOK: Manifest = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "Notebook",
    "metadata": {"name": "web", "namespace": "default", "annotations": {"kubeflow-resource-stopped": ""}},
    "spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web"}]}}},
}
AT_PAUSE: Manifest = {
    **workload("Deployment", replicas=2),
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Rollout",
    "status": {
        "replicas": 2, "updatedReplicas": 1, "availableReplicas": 2,
        "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": SINCE}],
    },
}  # fmt: skip
ABORTED: Manifest = {
    **AT_PAUSE,
    "status": {**at(AT_PAUSE, "status"), "abort": True, "message": "RolloutAborted: metric x failed"},
}
INVALID: Manifest = {
    **workload("Deployment", replicas=2),
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Rollout",
    "status": {"conditions": [{"type": "InvalidSpec", "status": "True", "message": "missing field"}]},
}
OF_ROLLOUT: list[Manifest] = [
    {
        **workload("ReplicaSet", "web-1"),
        "metadata": {
            "name": "web-1", "namespace": "default",
            "ownerReferences": [
                {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "uid": "r", "controller": True}
            ],
        },
    },
    replica("web-1-a", "ReplicaSet", "web-1"),
]  # fmt: skip
JOB_SET: Manifest = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {"suspend": True, "replicatedJobs": []},
}
OF_JOB_SET: Manifest = {
    "ownerReferences": [
        {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": "s", "controller": True}
    ]
}
DEVICES_BY_HAND: list[Manifest] = [
    {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": "default"}, "spec": {"devices": {"requests": []}},
    },
    pod(
        "x",
        on="n",
        spec={**SMALL, "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]},
        status={"phase": "Pending", "containerStatuses": waiting("ContainerCreating")},
    ),
]  # fmt: skip
UNOBSERVED: Manifest = {
    **workload("Deployment", replicas=2, metadata={"creationTimestamp": SINCE, "generation": 3}),
    "status": {"observedGeneration": 2, "replicas": 1},
}
UNREADY = replica("web-0", "StatefulSet", "web", ready=False)
DELETED_ORDINAL: Manifest = {
    **UNREADY,
    "metadata": {**at(UNREADY, "metadata"), "deletionTimestamp": SINCE, "deletionGracePeriodSeconds": 0},
}
LOST = node("m", taints=["node.kubernetes.io/unreachable:NoExecute"])
RESIZE: Manifest = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "capacity: 1"}
NOT_ROLLED_OUT: list[Manifest] = [
    {
        **workload("StatefulSet", replicas=1, updateStrategy={"type": "OnDelete"}),
        "status": {"updateRevision": "web-2"},
    },
    pod(
        "web-0",
        on="n",
        metadata={**owned("StatefulSet", "web"), "labels": {"controller-revision-hash": "web-1"}},
        status={"phase": "Running"},
    ),
]


def reports(kind: str, name: str, reason: str, message: str, *, by: str = "x") -> Manifest:
    about = {"kind": kind, "namespace": "default", "name": name}
    metadata = {"name": f"{name}.{reason}", "namespace": "default"}
    source = {"component": "default-scheduler" if reason == "FailedScheduling" else by}
    event = {"reason": reason, "message": message, "involvedObject": about, "source": source}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, **event}


def scaler(
    kind: str, *, annotations: Manifest | None = None, status: Manifest | None = None, **spec: object
) -> Manifest:
    version = "keda.sh/v1alpha1" if kind == "ScaledObject" else "autoscaling/v2"
    metadata = {"name": "scaler", "namespace": "default", "annotations": annotations or {}}
    target = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": metadata,
        "spec": {**target, **spec},
        "status": status or {},
    }


def limits(kind: str, status: str, reason: str, message: str = "") -> Manifest:
    return {"conditions": [{"type": kind, "status": status, "reason": reason, "message": message}]}


def ended(condition: str, reason: str) -> Manifest:
    return {**workload("Job"), "status": limits(condition, "True", reason)}


AT_MOST = scaler("HorizontalPodAutoscaler", maxReplicas=1, status=limits("ScalingLimited", "True", "TooManyReplicas"))
PULLS = "is scheduled to n and cannot pull the image of container app: ErrImagePull"

OUT_OF_MEMORY: Manifest = {
    "phase": "Failed",
    "containerStatuses": [{"name": "app", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}],
}
SECOND = {"deprecated.daemonset.template.generation": "2"}
OF_FIRST = {**owned("DaemonSet", "web"), "labels": {"pod-template-generation": "1"}}

NOT_CREATED = {kind: reports(kind, "web", "FailedCreate", "no") for kind in ("StatefulSet", "Job")}


def deleted_with(finalizer: str) -> list[Manifest]:
    return [
        workload("Deployment", metadata={"deletionTimestamp": SINCE, "finalizers": [finalizer]}),
        workload("ReplicaSet", "web-1", metadata=owned("Deployment", "web")),
        pod("web-1-a", metadata=owned("ReplicaSet", "web-1")),
    ]


CASES: list[tuple[str, list[Manifest], str, int]] = [
    ("pod/x", [pod("x", metadata={"deletionTimestamp": SINCE})], f"default/x is being deleted (since {SINCE})", 1),
    ("pod/x", [pod("x", status={"phase": "Succeeded"}, on="n")], "default/x has finished: Succeeded", 0),
    (
        "pod/x",
        [pod("x", status={"phase": "Failed", "reason": "OutOfcpu", "message": "too many"}, on="n")],
        "default/x has failed on n: OutOfcpu",
        1,
    ),
    ("pod/x", [TERMINATING, pod("x")], "default/x is pending: namespace default is being deleted", 1),
    (
        "pod/x",
        [pod("x", status={"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}, on="n")],
        "default/x is scheduled to n and waits for its kubelet",
        0,
    ),
    ("pod/web-0", [kubelet(containerStatuses=waiting("ErrImagePull"))], f"default/web-0 {PULLS}", 0),
    (
        "pod/web-0",
        [kubelet(containerStatuses=waiting("ContainerCreating"))],
        "default/web-0 is scheduled to n and waits for its volumes or network: ContainerCreating",
        0,
    ),
    (
        "pod/web-0",
        [
            kubelet(
                initContainerStatuses=[{"name": "migrate", "state": {"running": {"startedAt": SINCE}}}],
                containerStatuses=waiting("PodInitializing"),
            )
        ],
        "default/web-0 is scheduled to n and waits for init container migrate",
        0,
    ),
    (
        "sts/web",
        [workload("StatefulSet", replicas=1), kubelet(containerStatuses=waiting("ErrImagePull"))],
        f"default/web-0 {PULLS}",
        0,
    ),
    ("pod/web-1-a", deleted_with("foregroundDeletion"), f"default/web-1-a is being deleted (since {SINCE})", 1),
    ("pod/x", BY_HAND, "default/x is scheduled to n and waits for its volumes: claim default/data is not bound", 0),
    (
        "job/web",
        [workload("Job"), pod("web-b", on="n", metadata=owned("Job", "web"), status=REJECTED)],
        "default/job/web lacks pods: the kubelet of n rejects them: OutOfcpu",
        1,
    ),
    ("deploy/web", ON_FULL_NODE, "default/deploy/web lacks pods: the kubelet of n rejects them: OutOfcpu", 1),
    (
        "deploy/web",
        [DUMPED, {**workload("Deployment", replicas=1), "status": {"replicas": 1}}, *ON_FULL_NODE[1::2]],
        "default/deploy/web lacks pods: the kubelet of n rejects them: OutOfcpu",
        1,
    ),
    (
        "pod/web-1-c",
        [*ON_FULL_NODE, pod("web-1-c", metadata=owned("ReplicaSet", "web-1"))],
        "default/web-1-c fits n, whose kubelet rejects pods of ReplicaSet web-1: OutOfcpu",
        1,
    ),
    ("deploy/web", [TERMINATING, workload("Deployment")], "default/deploy/web gets no pods: namespace default is", 1),
    ("deploy/web", [workload("Deployment", replicas=0)], "default/deploy/web is scaled to zero: spec.replicas is 0", 0),
    ("sts/web", [workload("StatefulSet", replicas=0)], "default/sts/web is scaled to zero: spec.replicas is 0", 0),
    ("sts/web", ROLLS_OUT, "default/sts/web waits in its rollout: 1 pod is not ready", 0),
    ("rollout/web", [ROLLOUT], "default/rollout/web is scaled to zero: spec.replicas is 0", 0),
    (
        "cluster.postgresql.cnpg.io/web",
        [DATABASE],
        "default/cluster/web is stopped: annotation cnpg.io/hibernation is on",
        0,
    ),
    ("notebook/web", [NOTEBOOK], 'default/notebook/web is stopped: annotation kubeflow-resource-stopped is ""', 0),
    ("job/web", [workload("Job", parallelism=0)], "default/job/web is scaled to zero: spec.parallelism is 0", 0),
    (
        "job/web",
        [workload("Job"), pod("web-x", on="n", metadata=owned("Job", "web"), status=OUT_OF_MEMORY)],
        "default/job/web has failed 1 time, and creates its next pod after a back-off",
        1,
    ),
    (
        "ds/web",
        [
            workload("DaemonSet", metadata={"annotations": SECOND}, updateStrategy={"type": "OnDelete"}),
            pod("web-x", on="n", metadata=OF_FIRST, status={"phase": "Running"}),
        ],
        "default/ds/web keeps 1 pod of an earlier template: updateStrategy is OnDelete",
        0,
    ),
    ("job/web", [workload("Job", suspend=True)], "default/job/web is suspended: spec.suspend is true", 1),
    ("cj/web", [workload("CronJob", suspend=True)], "default/cj/web is suspended: spec.suspend is true", 1),
    ("deploy/web", [workload("Deployment", paused=True)], "default/deploy/web is paused: it has no ReplicaSet yet", 1),
    (
        "deploy/web",
        [workload("Deployment", metadata={"deletionTimestamp": SINCE})],
        f"default/deploy/web is being deleted (since {SINCE})",
        1,
    ),
    (
        "deploy/web",
        [workload("Deployment", replicas=2), REPLICA_SET],
        "default/deploy/web gets no pods: the API server refuses them",
        1,
    ),
    (
        "deploy/web",
        [workload("Deployment", replicas=2), REPLICA_SET, replica("web-1-a", "ReplicaSet", "web-1")],
        "default/deploy/web has 1 of 2 pods and gets no others: the API server refuses them",
        1,
    ),
    (
        "sts/web",
        [workload("StatefulSet", replicas=2), replica("web-0", "StatefulSet", "web"), NOT_CREATED["StatefulSet"]],
        "default/sts/web has 1 of 2 pods and gets no others: the API server refuses them",
        1,
    ),
    (
        "job/web",
        [workload("Job", parallelism=2), replica("web-a", "Job", "web"), NOT_CREATED["Job"]],
        "default/job/web gets no other pods: the API server refuses them",
        1,
    ),
    (
        "sts/web",
        [
            workload("StatefulSet", replicas=1),
            kubelet(containerStatuses=waiting("ErrImagePull")),
            NOT_CREATED["StatefulSet"],
        ],
        f"default/web-0 {PULLS}",
        0,
    ),
    (
        "deploy/web",
        [workload("Deployment"), SURGE, OLD, replica("web-0-a", "ReplicaSet", "web-0")],
        "default/deploy/web gets no other pods: the API server refuses them",
        1,
    ),
    (
        "deploy/web",
        [
            {**workload("Deployment"), "status": at(REPLICA_SET, "status")},
            {**SURGE, "status": {"replicas": 0}},
            *(OLD, replica("web-0-a", "ReplicaSet", "web-0")),
        ],
        "default/deploy/web gets no other pods: the API server refuses them",
        1,
    ),
    ("pod/x", [static("kube-scheduler"), pod("x")], "default/x is not scheduled: kube-scheduler does not run", 1),
    ("pod/x", [LABELED_SCHEDULER, pod("x")], "default/x is not scheduled: kube-scheduler does not run", 1),
    *(
        (
            "pod/x",
            [static("kube-controller-manager"), pod("x", **needs)],
            "default/x is not scheduled: kube-controller-manager does not run",
            1,
        )
        for needs in (
            {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]},
            {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
        )
    ),
    (
        "pod/x",
        [static("kube-apiserver", ready=True), static("kube-controller-manager", ready=True), pod("x")],
        "default/x is not scheduled: kube-scheduler does not run",
        1,
    ),
    (
        "deploy/web",
        [static("kube-controller-manager"), workload("Deployment")],
        "default/deploy/web gets no new pods: kube-controller-manager does not run",
        1,
    ),
    (
        "job/web",
        [
            workload("Deployment", "kueue-controller-manager", metadata=KUEUE_ITSELF, replicas=0),
            workload("Job", metadata={"labels": {"kueue.x-k8s.io/queue-name": "lq"}}, suspend=True),
        ],
        "default/job/web gets no new pods: Kueue does not run",
        1,
    ),
    (
        "job/web",
        [
            workload("Deployment", "other", metadata={"labels": {"app": "notkueue"}}, replicas=0),
            workload("Job", metadata={"labels": {"kueue.x-k8s.io/queue-name": "lq"}}, suspend=True),
        ],
        "default/job/web is suspended: it waits for Kueue; its Workload is not in this snapshot (queue lq)",
        1,
    ),
    (
        "cj/web",
        [FORBIDS, workload("Job", "web-1"), pod("web-1-x", metadata=owned("Job", "web-1"))],
        "default/cj/web starts no Job: web-1 is still active, and concurrencyPolicy is Forbid",
        1,
    ),
    (
        "cj/web",
        [
            *(DUMPED, pod("other", on="d"), FORBIDS),
            {**workload("Job", "web-1", metadata=owned("CronJob", "web")), "status": {"active": 1}},
        ],
        "default/job/web-1 is undecided: the dump lacks pods of it",
        3,
    ),
    *(
        (
            "sts/web",
            [
                *(DUMPED, pod("other", on="d")),
                {**workload("StatefulSet", podManagementPolicy=policy), "status": {"replicas": 1}},
                pod(
                    "web-0",
                    on="d",
                    metadata=owned("StatefulSet", "web"),
                    status={"phase": "Failed", "reason": "Evicted"},
                ),
            ],
            "default/web-0 has failed on d: Evicted",
            1,
        )
        for policy in ("OrderedReady", "Parallel")
    ),
    (
        "cj/web",
        [FORBIDS, workload("Job", "web-1"), FAILS_TO_PULL],
        "default/cj/web starts no Job: web-1 is still active, and concurrencyPolicy is Forbid",
        1,
    ),
    (
        "cj/web",
        [FORBIDS, reports("CronJob", "web", "JobAlreadyActive", "Not starting job"), RUNS_ON],
        "default/cj/web starts no Job: web-1 is still active, and concurrencyPolicy is Forbid",
        1,
    ),
    (
        "job/web",
        [workload("Job", managedBy="kueue.x-k8s.io/multikueue")],
        "default/job/web gets no pods from this cluster's Job controller: MultiKueue manages it",
        3,
    ),
    (
        "job/web",
        [{**workload("Job", managedBy="kueue.x-k8s.io/multikueue"), "status": {}}],
        "default/job/web gets no pods from this cluster's Job controller: MultiKueue manages it",
        3,
    ),
    (
        "job/web",
        [JOB_SET, workload("Job", metadata=OF_JOB_SET, suspend=True)],
        "default/job/web is suspended: JobSet train is suspended",
        1,
    ),
    *(
        (
            "rollout/web",
            [stopped, *OF_ROLLOUT],
            "default/rollout/web is paused: its rollout stops with 1 of 2 pods updated",
            1,
        )
        for stopped in (AT_PAUSE, ABORTED)
    ),
    ("rollout/web", [INVALID], "default/rollout/web gets no new pods: its controller reports a problem", 1),
    ("pod/x", DEVICES_BY_HAND, "default/x is scheduled to n and waits for its devices: claim default/gpu is not al", 0),
    (
        "pod/x",
        [pod("x"), reports("Pod", "x", "SyncError", 'Error syncing: pods "x-v" is forbidden: exceeded quota: q')],
        "default/x is not created in the host cluster: ResourceQuota refuses it there",
        1,
    ),
    (
        "pod/x",
        [pod("x"), reports("Pod", "x", "Scheduled", "Successfully assigned default/x to n")],
        "default/x is undecided: its present state is not known",
        3,
    ),
    ("pod/x", [GONE_NODE], "default/x is bound to m and cannot start: the node does not exist", 1),
    ("pod/x", [DUMPED, LEFT_OUT_NODE], "default/x is undecided: node m is not known", 3),
    (
        "pod/x",
        [
            DUMPED,
            {**LEFT_OUT_NODE, "status": {**IS_ACCEPTED, "containerStatuses": waiting("ErrImagePull")}},
        ],
        "default/x is scheduled to m and cannot pull the image of container app: ErrImagePull",
        0,
    ),
    (
        "sts/web",
        [workload("StatefulSet", replicas=3), UNREADY],
        "default/sts/web: web-1 is not created, because web-0 is not ready",
        1,
    ),
    (
        "sts/web",
        [workload("StatefulSet", replicas=1), DELETED_ORDINAL],
        f"default/web-0 is being deleted (since {SINCE})",
        1,
    ),
    (
        "pod/x",
        [pod("x", on="n", status={"phase": "Running", "conditions": [RESIZE]})],
        "default/x runs on n, and its resize is Infeasible",
        0,
    ),
    ("sts/web", NOT_ROLLED_OUT, "default/sts/web keeps 1 pod of an earlier template: updateStrategy is OnDelete", 0),
    (
        "deploy/web",
        [workload("Deployment"), ROLLED_OUT, replica("web-1-a", "ReplicaSet", "web-1"), AT_MOST],
        "default/deploy/web has its 1 replica: HorizontalPodAutoscaler scaler is at maxReplicas 1",
        0,
    ),
    (
        "hpa/scaler",
        [
            *(workload("Deployment"), ROLLED_OUT, replica("web-1-a", "ReplicaSet", "web-1")),
            scaler("HorizontalPodAutoscaler", status=limits("AbleToScale", "False", "FailedUpdateScale", "denied")),
        ],
        "default/deploy/web has its 1 replica: HorizontalPodAutoscaler scaler does not scale (FailedUpdateScale)",
        0,
    ),
    (
        "hpa/scaler",
        [workload("Deployment"), ROLLED_OUT, replica("web-1-a", "ReplicaSet", "web-1"), AT_MOST],
        "default/deploy/web has its 1 replica: HorizontalPodAutoscaler scaler is at maxReplicas 1",
        0,
    ),
    (
        "deploy/web",
        [workload("Deployment"), ROLLED_OUT, LOST, replica("web-1-a", "ReplicaSet", "web-1", on="m")],
        "default/web-1-a is on m, which is unreachable",
        0,
    ),
    (
        "deploy/web",
        [workload("Deployment", replicas=0), scaler("HorizontalPodAutoscaler", minReplicas=2, maxReplicas=4)],
        "default/deploy/web is scaled to zero: spec.replicas is 0, which disables HorizontalPodAutoscaler scaler",
        0,
    ),
    ("job/web", [ended("FailureTarget", "DeadlineExceeded")], "default/job/web has failed: DeadlineExceeded", 1),
    ("job/web", [ended("SuccessCriteriaMet", "")], "default/job/web has finished: SuccessCriteriaMet", 0),
    (
        "pod/web-x",
        [ended("FailureTarget", "DeadlineExceeded"), pod("web-x", metadata=owned("Job", "web"))],
        "default/web-x is pending, and its Job has ended: DeadlineExceeded",
        1,
    ),
    (
        "cj/web",
        [workload("CronJob"), reports("CronJob", "web", "UnknownTimeZone", 'invalid timeZone: "Mars"')],
        "default/cj/web starts no Job: UnknownTimeZone",
        1,
    ),
    (
        "cj/web",
        [workload("CronJob", schedule="TZ=UTC 0 0 31 feb,apr *")],
        "default/cj/web starts no Job: its schedule TZ=UTC 0 0 31 feb,apr * is never due",
        1,
    ),
    (
        "deploy/web",
        [{**workload("Deployment", metadata={"creationTimestamp": SINCE}), "status": {}}],
        "default/deploy/web gets no new pods: no controller has observed it",
        1,
    ),
    (
        "deploy/web",
        [UNOBSERVED, ROLLED_OUT, replica("web-1-a", "ReplicaSet", "web-1")],
        "default/deploy/web gets no new pods: no controller has observed its newest change",
        1,
    ),
    (
        "deploy/web",
        [
            workload("Deployment", replicas=2, paused=True),
            *(ROLLED_OUT, {**OLD, "spec": {**at(OLD, "spec"), "replicas": 1}}),
            *(replica("web-1-a", "ReplicaSet", "web-1"), replica("web-0-a", "ReplicaSet", "web-0")),
        ],
        "default/deploy/web is paused: its rollout stops with 1 of 2 pods updated",
        1,
    ),
    (
        "pod/web-0",
        [
            kubelet(
                initContainerStatuses=[{"name": "migrate", "state": {"waiting": {"reason": "PodInitializing"}}}],
                containerStatuses=waiting("PodInitializing"),
            )
        ],
        "default/web-0 is scheduled to n and waits for its volumes or network: PodInitializing",
        0,
    ),
    (
        "cj/web",
        [FORBIDS, workload("Job", "web-1"), reports("Job", "web-1", "FailedCreate", "denied the request: latest")],
        "default/cj/web starts no Job: web-1 is still active, and concurrencyPolicy is Forbid",
        1,
    ),
]


SIDECAR = [
    {"name": "app", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
    {"name": "proxy", "state": {"running": {"startedAt": SINCE}}},
]
KEPT = replica("web-1-x", "Job", "web-1", ready=False, containerStatuses=SIDECAR)
SCALED_DOWN = workload("ReplicaSet", "web-0", metadata=owned("Deployment", "web"), replicas=0)
at(SCALED_DOWN, "spec")["template"] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "old"}]},
}
KEPT_OLD = replica("web-0-a", "ReplicaSet", "web-0", on="m")
at(KEPT_OLD, "metadata")["deletionTimestamp"] = SINCE
CASES += [
    (
        "deploy/web",
        [LOST, workload("Deployment", replicas=1, strategy={"type": "Recreate"}), SCALED_DOWN, KEPT_OLD],
        "default/deploy/web gets no new pods: its rollout waits for web-0-a on unreachable m",
        1,
    ),
    (
        "job/web-1",
        [workload("Job", "web-1"), KEPT],
        "default/web-1-x still runs on n (ended: app; running: proxy)",
        0,
    ),
    (
        "cj/web",
        [FORBIDS, workload("Job", "web-1"), KEPT],
        "default/cj/web starts no Job: web-1 is still active, and concurrencyPolicy is Forbid",
        1,
    ),
]
GROWS = Path(__file__).parents[2] / "fixtures" / "autoscaler-grows"
QUEUED = {"kueue.x-k8s.io/queue-name": "team"}
OWNED_BY_JOB = {**owned("Job", "web"), "name": "job-web", "namespace": "default"}


def kueue(kind: str, **fields: object) -> Manifest:
    metadata = {"name": "teams", "namespace": "default"}
    return {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": metadata, **fields}


def manages(*, without_queue: bool) -> Manifest:
    written = {"apiVersion": "config.kueue.x-k8s.io/v1beta1", "kind": "Configuration"}
    data = {"config.yaml": json.dumps({**written, "manageJobsWithoutQueueName": without_queue})}
    return config_map("kueue-manager-config", data, namespace="kueue-system")


PAUSED_ROLLOUT: Manifest = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Rollout",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"paused": True, "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}
TEAM = kueue("LocalQueue", spec={"clusterQueue": "all"}, metadata={"name": "team", "namespace": "default"})
INACTIVE = kueue("Workload", metadata=OWNED_BY_JOB, spec={"queueName": "team", "active": False, "podSets": []})
CHECKED = kueue(
    "Workload",
    metadata=OWNED_BY_JOB,
    spec={"queueName": "team", "podSets": []},
    status={
        "conditions": [{"type": "QuotaReserved", "status": "True"}],
        "admissionChecks": [{"name": "capacity", "state": "Pending", "message": "no zone has room"}],
    },
)
REJECTED_CHECK = changed(
    INACTIVE,
    "status",
    {
        "conditions": [{"type": "Evicted", "status": "True", "message": "Admission check(s): dws, were rejected"}],
        "admissionChecks": [{"name": "dws", "state": "Rejected", "message": "no capacity"}],
    },
)
IN_QUEUE = workload("Job", metadata={"labels": QUEUED}, suspend=True)
CRASHES = replica("web-0", "StatefulSet", "web", ready=False, containerStatuses=waiting("CrashLoopBackOff"))
KUEUE_DOWN = pod(
    "manager",
    on="n",
    metadata={**owned("ReplicaSet", "kueue"), "labels": {"app.kubernetes.io/name": "kueue"}},
    status={"phase": "Running", "containerStatuses": waiting("CrashLoopBackOff"), **limits("Ready", "False", "")},
)
ADMITTED = kueue(
    "Workload",
    metadata=OWNED_BY_JOB,
    spec={"queueName": "team", "podSets": []},
    status={"conditions": [{"type": kind, "status": "True"} for kind in ("QuotaReserved", "Admitted")]},
)
OF_KUEUE: list[tuple[str, list[Manifest], str, int]] = [
    (
        "job/web",
        [IN_QUEUE, kueue("LocalQueue", spec={"clusterQueue": "all"})],
        "default/job/web is suspended: it waits in Kueue because its LocalQueue does not exist (queue team)",
        1,
    ),
    ("job/web", [IN_QUEUE, TEAM, INACTIVE], "default/job/web is suspended: it is deactivated in Kueue", 1),
    (
        "job/web",
        [IN_QUEUE, TEAM, CHECKED],
        "default/job/web is suspended: it has quota in Kueue and waits for admission check capacity (queue team)",
        1,
    ),
    *(
        ("job/web", [workload("Job", suspend=True), TEAM, *more], f"default/job/web is suspended: {why}", 1)
        for more, why in (
            ([], "spec.suspend is true"),
            ([manages(without_queue=False)], "spec.suspend is true"),
            ([manages(without_queue=True)], "it is without a LocalQueue, and Kueue manages it"),
            ([INACTIVE], "it is without a LocalQueue, and Kueue manages it"),
        )
    ),
    ("rollout/web", [PAUSED_ROLLOUT], "default/rollout/web is paused: it has no ReplicaSet yet", 1),
    (
        "deploy/web",
        [PAUSED_ROLLOUT, workload("Deployment", replicas=0)],
        "default/deploy/web has no pods of its own: Rollout web uses its template",
        0,
    ),
    (
        "deploy/web",
        [DUMPED, pod("other", on="d"), {**workload("Deployment", replicas=3), "status": {"replicas": 3}}],
        "default/deploy/web is undecided: the dump lacks pods of it",
        3,
    ),
    (
        "ds/web",
        [DUMPED, {**workload("DaemonSet"), "status": {"currentNumberScheduled": 2}}],
        "default/ds/web is undecided: the dump lacks pods of it",
        3,
    ),
    (
        "deploy/web",
        [DUMPED, pod("other", on="d"), {**workload("Deployment", replicas=0), "status": {"replicas": 3}}],
        "default/deploy/web is scaled to zero: spec.replicas is 0",
        0,
    ),
    (
        "job/web",
        [DUMPED, {**workload("Job", managedBy="kueue.x-k8s.io/multikueue"), "status": {"active": 2}}],
        "default/job/web gets no pods from this cluster's Job controller: MultiKueue manages it",
        3,
    ),
    ("ns/default", [TERMINATING], "namespace/default gets no pods: namespace default is being deleted", 1),
    (
        "job/web",
        [IN_QUEUE],
        "default/job/web is suspended: it waits for Kueue; its Workload is not in this snapshot (queue team)",
        1,
    ),
    (
        "job/web",
        [IN_QUEUE, kueue("Workload", metadata=OWNED_BY_JOB, spec={"queueName": "team", "podSets": []})],
        "default/job/web is suspended: it waits in Kueue, whose LocalQueue team is not in this snapshot (queue team)",
        1,
    ),
]


def why(folder: Path, target: str, *objects: Manifest, output: str = "") -> CommandResult:
    (folder / "cluster.json").write_text(json.dumps({"kind": "List", "items": [node("n"), *objects]}))
    more = ("-o", output) if output else ()
    return kschedx("why", target, "-s", "cluster.json", *more, cwd=folder, columns=400)


def leads(component: str, renewed: str) -> Manifest:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": component, "namespace": "kube-system"},
        "spec": {"holderIdentity": "n_0", "leaseDurationSeconds": 15, "renewTime": renewed},
    }


LATER = {"creationTimestamp": "2026-01-01T08:30:00Z"}
CREATED = pod("z-1", on="n", metadata={**owned("ReplicaSet", "z"), **LATER})


@pytest.mark.parametrize(
    ("objects", "target", "expected"),
    [
        (
            [static("kube-scheduler", ready=True), leads("kube-scheduler", "2026-01-01T08:00:00.000000Z")],
            "pod/x",
            [
                "default/x is not scheduled: kube-scheduler has no leader",
                "kubectl logs kube-scheduler-n -n kube-system",
            ],
        ),
        (
            [leads("kube-scheduler", "2026-01-01T08:00:00.000000Z")],
            "pod/x",
            [
                "default/x is not scheduled: kube-scheduler has no leader",
                "kubectl get lease kube-scheduler -n kube-sys",
            ],
        ),
        (
            [leads("kube-controller-manager", "2026-01-01T08:00:00Z"), workload("Deployment")],
            "deploy/web",
            ["default/deploy/web gets no new pods: kube-controller-manager has no leader"],
        ),
        (
            [static("kube-scheduler"), leads("kube-scheduler", "2026-01-01T08:00:00Z")],
            "pod/x",
            ["default/x is not scheduled: kube-scheduler does not run"],
        ),
        ([leads("kube-scheduler", "2026-01-01T08:55:00Z")], "pod/x", ["✓ default/x would be assigned to n"]),
        (
            [leads("kube-scheduler", "2026-01-01T08:00:00Z"), pod("y", on="n", metadata=LATER)],
            "pod/x",
            ["✓ default/x would be assigned to n"],
        ),
        (
            [leads("kube-controller-manager", "2026-01-01T08:00:00Z"), workload("Deployment"), CREATED],
            "deploy/web",
            ["would be assigned to n"],
        ),
    ],
)
def test_a_lease_that_no_instance_renews(
    objects: list[Manifest], target: str, expected: list[str], tmp_path: Path
) -> None:
    """Objects are read one after another, so that a lease that is a few minutes older says nothing; nor does one
    that is older than what the component did."""
    new = pod("x", metadata={"creationTimestamp": "2026-01-01T09:00:00Z"})
    result = why(tmp_path, target, *objects, new)
    assert all(text in result.out for text in expected)
    simulated = kschedx("simulate", "-s", "cluster.json", cwd=tmp_path, columns=400).out
    assert [text in simulated for text in expected if text.startswith("kubectl")] == [True] * (len(expected) - 1)


@pytest.mark.parametrize(
    ("manifest", "code", "headline"),
    [
        (ROLLOUT | {"spec": {**at(ROLLOUT, "spec"), "replicas": 1}}, 0, "✓ default/web-new would be assigned to n"),
        (PAUSED_ROLLOUT | {"spec": {}}, 3, "? default/rollout/web is undecided"),
        (PAUSED_ROLLOUT | {"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": {}}, 0, "✓ default/rayjob/web has"),
    ],
)
def test_a_completed_rollout_does_not_end_its_workload(
    manifest: Manifest, code: int, headline: str, tmp_path: Path
) -> None:
    completed = {"type": "Completed", "status": "True", "reason": "RolloutCompleted"}
    (tmp_path / "app.json").write_text(json.dumps({**manifest, "status": {"conditions": [completed]}}))
    (tmp_path / "cluster.json").write_text(json.dumps(node("n")))
    result = kschedx("why", tmp_path / "app.json", "-s", tmp_path / "cluster.json")
    assert (result.code, result.out.startswith(headline)) == (code, True), result.out


def test_a_refusal_of_pods_of_an_earlier_template_is_past(tmp_path: Path) -> None:
    def replica_set(number: int, wanted: int, **status: object) -> Manifest:
        metadata = {"annotations": {"deployment.kubernetes.io/revision": str(number)}, **owned("Deployment", "web")}
        return {**workload("ReplicaSet", f"web-{number}", metadata=metadata, replicas=wanted), "status": status}

    failure = {"type": "ReplicaFailure", "status": "True", "message": 'pods "web-1-x" is forbidden: no'}
    deployment = {**workload("Deployment", replicas=2), "status": {"observedGeneration": 2, "conditions": [failure]}}
    sets = [replica_set(1, 2, conditions=[failure]), replica_set(2, 1, replicas=1)]
    refused = why(tmp_path, "deploy/web", deployment, *sets)
    assert refused.out.startswith("✗ default/deploy/web gets no pods: the API server refuses them")
    waits = pod("web-2-x", metadata=owned("ReplicaSet", "web-2"), nodeSelector={"disk": "ssd"})
    result = why(tmp_path, "deploy/web", deployment, *sets, waits)
    assert "default/web-2-x is unschedulable" in result.out


OBSERVED: Manifest = {**workload("Deployment", "other"), "status": {"observedGeneration": 1}}
RUNS = pod("web-1-x", on="n", metadata=owned("ReplicaSet", "web-1"), status={"phase": "Running"})
OF_WEB: Manifest = {
    **workload("ReplicaSet", "web-1"),
    "metadata": {"name": "web-1", "namespace": "default", **owned("Deployment", "web")},
}


@pytest.mark.parametrize(("others", "is_noted"), [([], False), ([OBSERVED], True), ([OBSERVED, OF_WEB, RUNS], False)])
def test_a_status_is_missed_only_if_others_have_one_and_no_pod_shows_that_the_controller_runs(
    others: list[Manifest], is_noted: bool, tmp_path: Path
) -> None:
    deployment = workload("Deployment", replicas=2)
    deployment["metadata"] = {"name": "web", "namespace": "default", "uid": "w"}
    result = why(tmp_path, "deploy/web", deployment, *others)
    assert ("the dump lacks the status of Deployment web" in result.out) is is_noted, result.out


@pytest.mark.parametrize(("target", "objects", "reads", "code"), [*CASES, *OF_KUEUE])
def test_the_state_is_the_headline(tmp_path: Path, target: str, objects: list[Manifest], reads: str, code: int) -> None:
    result = why(tmp_path, target, *objects)
    first = result.out.splitlines()[0][2:]
    assert (first[: len(reads)], result.code, result.err) == (reads, code, "")
    document = json.loads(why(tmp_path, target, *objects, output="json").out)
    assert reads.startswith(document["state"]["headline"]) or document["state"]["headline"].startswith(reads)


def test_a_pod_that_its_deleted_workload_orphans_is_decided(tmp_path: Path) -> None:
    assert why(tmp_path, "pod/web-1-a", node("n"), *deleted_with("orphan")).code == 0


def test_a_name_that_looks_like_an_option_is_in_no_command(tmp_path: Path) -> None:
    commands = ""
    for target, objects, *_ in [*CASES, *OF_KUEUE]:
        name = target.rpartition("/")[2]
        hostile = json.loads(json.dumps(objects).replace(f'"{name}"', '"--all"'))
        result = why(tmp_path, target.replace(name, "--all"), *hostile)
        commands += "".join(
            line for line in result.out.splitlines(keepends=True) if line.strip().startswith(("$ ", "# "))
        )
    assert 'no command: "--all" is not a name' in commands
    assert not re.search(r"kubectl .*--all\b", commands), commands


@pytest.mark.parametrize(
    ("target", "objects"),
    [
        (
            "sts/web",
            [
                workload("StatefulSet", replicas=3, podManagementPolicy="Parallel"),
                replica("web-0", "StatefulSet", "web", ready=False),
            ],
        ),
        ("sts/web", [workload("StatefulSet", replicas=2), replica("web-0", "StatefulSet", "web")]),
        (
            "deploy/web",
            [
                workload("Deployment", paused=True, replicas=2),
                {
                    **workload("ReplicaSet", "web-1", metadata=owned("Deployment", "web")),
                    "spec": workload("Deployment")["spec"],
                },
            ],
        ),
        ("pod/x", [pod("x")]),
        ("pod/x", [static("kube-scheduler", ready=True), pod("x")]),
        ("pod/x", [static("kube-apiserver", ready=True), pod("x")]),
        ("jobset/t", [pod("t-0", metadata=owned("JobSet", "t"))]),
    ],
    ids=[
        "parallel",
        "ready",
        "paused with its ReplicaSet",
        "pending",
        "scheduler runs",
        "no pod shows the scheduler",
        "of a custom resource",
    ],
)
def test_a_pod_that_reaches_kube_scheduler_is_decided(tmp_path: Path, target: str, objects: list[Manifest]) -> None:
    document = json.loads(why(tmp_path, target, *objects, output="json").out)
    assert document["state"] == {"name": "Schedulable"}


def test_a_pod_on_a_lost_node_has_two_fixes(tmp_path: Path) -> None:
    lost = node("lost")
    lost["status"] = {"allocatable": {"cpu": "4", "pods": "9"}, "conditions": [{"type": "Ready", "status": "Unknown"}]}
    stuck = pod("web-0", on="lost", metadata={**owned("StatefulSet", "web"), "deletionTimestamp": SINCE})
    result = why(tmp_path, "pod/web-0", lost, stuck)
    assert "$ kubectl delete pod web-0 -n default --force --grace-period=0" in result.out
    assert "$ kubectl taint node lost node.kubernetes.io/out-of-service=nodeshutdown:NoExecute" in result.out
    script = kschedx("why", "pod/web-0", "-s", tmp_path / "cluster.json", "--fix", "1", "-o", "patch").out
    assert script == "kubectl delete pod web-0 -n default --force --grace-period=0\n"


@pytest.mark.parametrize(
    ("taints", "reads"),
    [
        (
            ["node.kubernetes.io/unreachable:NoSchedule"],
            "DaemonSet web creates no other pod for lost while",
        ),
        (["node.kubernetes.io/unreachable:NoExecute"], "DaemonSet web creates the pod again once it is gone"),
    ],
)
def test_a_daemon_set_creates_no_pod_for_a_node_whose_taint_it_does_not_tolerate(
    tmp_path: Path, taints: list[str], reads: str
) -> None:
    lost = {
        **node("lost", labels={"pool": "db"}, taints=taints),
        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    }
    tolerated = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}]
    metadata = {**owned("DaemonSet", "web"), "deletionTimestamp": SINCE}
    result = why(tmp_path, "pod/web-0", lost, pod("web-0", on="lost", metadata=metadata, tolerations=tolerated))
    assert reads in result.out
    assert "unschedulable then" not in result.out


@pytest.mark.parametrize(
    ("seen", "recovered", "newest", "code"),
    [
        ("2026-01-02T00:10:00Z", SINCE, "2026-01-02T00:20:00Z", 3),
        ("2026-01-02T00:10:00Z", "2026-01-02T00:15:00Z", "2026-01-02T00:20:00Z", 0),
        ("2026-01-02T00:10:00Z", SINCE, "2026-01-02T05:00:00Z", 0),
    ],
    ids=["as old as the dump", "a node has recovered", "not repeated for hours"],
)
def test_later_changes_explain_a_contradicting_event(
    tmp_path: Path, seen: str, recovered: str, newest: str, code: int
) -> None:
    event = reports("Pod", "x", "FailedScheduling", "0/2 nodes are available: 2 Insufficient cpu.")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": recovered}
    other = {**node("m"), "status": {"allocatable": {"cpu": "4", "pods": "9"}, "conditions": [ready]}}
    later = pod("y", on="m", metadata={"creationTimestamp": newest})
    result = why(tmp_path, "pod/x", pod("x", spec=SMALL), other, later, {**event, "lastTimestamp": seen})
    assert result.code == code


@pytest.mark.parametrize(
    ("created", "is_cordoned", "code"),
    [("2026-01-02T00:15:00Z", False, 0), ("2026-01-02T00:15:00Z", True, 3), (SINCE, False, 3)],
    ids=["added", "cordoned", "older than the event"],
)
def test_a_node_explains_the_events_before_it_was_added(
    tmp_path: Path, created: str, is_cordoned: bool, code: int
) -> None:
    message = "0/1 nodes are available: 1 Insufficient cpu."
    event = {**reports("Pod", "x", "FailedScheduling", message), "lastTimestamp": "2026-01-02T00:10:00Z"}
    nodes = [node("old"), node("new", unschedulable=is_cordoned)]
    for item, stamp in zip(nodes, (SINCE, created), strict=True):
        at(item, "metadata")["creationTimestamp"] = stamp
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*nodes, pod("x"), event]}))
    assert kschedx("why", "pod/x", "-s", "cluster.json", cwd=tmp_path).code == code


def test_a_contradicting_event_makes_the_answer_undecided(tmp_path: Path) -> None:
    message = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    result = why(tmp_path, "pod/x", pod("x", status={"phase": "Pending", "conditions": [refused]}))
    assert (result.code, f"event     {message}" in result.out) == (3, True)
    more = [pod("x", status={"phase": "Pending", "conditions": [refused]}), node("added")]
    joined = why(tmp_path, "pod/x", *more)
    assert (joined.code, "it fits more than the 1 node that joined since" in joined.out) == (3, True)
    for command in (("why", "--all-pending"), ("simulate",)):
        assert kschedx(*command, "-s", "cluster.json", cwd=tmp_path).code == 3, "all commands agree"
    selects = pod("x", spec={"nodeSelector": {"pool": "new"}}, status={"phase": "Pending", "conditions": [refused]})
    assert why(tmp_path, "pod/x", selects, node("added", labels={"pool": "new"})).code == 0, "only the added node fits"
    assert why(tmp_path, "pod/x", more[0], node("added", unschedulable=True)).code == 3, "the pod fits on the old node"
    of_many = {**refused, "message": message.replace("0/1", "0/40")}
    assert why(tmp_path, "pod/x", pod("x", status={"phase": "Pending", "conditions": [of_many]})).code == 3


def test_an_event_that_is_newer_than_all_nodes_is_about_no_added_node(tmp_path: Path) -> None:
    nodes = [node(name, labels={"pool": name}) for name in ("a", "b")]
    for item in nodes:
        at(item, "metadata")["creationTimestamp"] = "2026-01-01T00:00:00Z"
    late = reports("Pod", "x", "FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.")
    late["lastTimestamp"] = "2026-01-02T00:00:00Z"
    on_a = pod("x", spec={"nodeName": "", "nodeSelector": {"pool": "a"}})
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*nodes, on_a, late]}))
    result = kschedx("why", "pod/x", "-s", "cluster.json", cwd=tmp_path)
    assert (result.code, "that joined since" in result.out) == (3, False)


@pytest.mark.parametrize(("cpu", "code"), [("1", 3), ("2", 0)], ids=["as stored", "changed"])
def test_an_event_about_a_stored_pod_counts_for_its_manifest(tmp_path: Path, cpu: str, code: int) -> None:
    message = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}

    def requesting(cpu: str) -> Manifest:
        container = {"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}
        return pod("x", spec={"containers": [container]}, status={"phase": "Pending", "conditions": [refused]})

    (tmp_path / "pod.json").write_text(json.dumps(requesting(cpu)))
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [node("n"), requesting("1")]}))
    result = kschedx("why", "-f", "pod.json", "-s", "cluster.json", cwd=tmp_path)
    assert (result.code, f"event     {message}" in result.out) == (code, code == 3)


def test_a_cluster_without_nodes_has_an_answer(tmp_path: Path) -> None:
    message = "no nodes available to schedule pods"
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    stored = {"creationTimestamp": "2026-05-01T00:00:00Z"}
    pending = pod("x", metadata=stored, status={"phase": "Pending", "conditions": [refused]})
    assigned = pod("y", on="n1", metadata=stored)
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": [pending]}))
    result = kschedx("why", "pod/x", "-s", "pods.json", cwd=tmp_path)
    assert result.out.startswith("✗ default/x is unschedulable: the cluster has no nodes\n")
    assert (result.code, "fix       add a node" in result.out, f"event     {message}" in result.out) == (1, True, True)
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": [pending, assigned]}))
    result = kschedx("why", "pod/x", "-s", "pods.json", cwd=tmp_path)
    assert (result.code, result.out.partition("\n")[0]) == (
        3,
        "? default/x is undecided: where the pod fits is not known",
    )


def test_pods_of_a_cluster_without_nodes_share_no_cause_of_one_of_them(tmp_path: Path) -> None:
    waits = reports("Pod", "y", "FailedScheduling", "no nodes available to schedule pods")
    missing = reports(
        "PersistentVolumeClaim", "data", "ProvisioningFailed", 'storageclass.storage.k8s.io "gp3" not found'
    )
    objects = [using("x", "data"), pod("y"), pod("z"), claim("data", storage_class="gp3"), waits, missing]
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": objects}))
    result = kschedx("why", "--all-pending", "-s", "pods.json", cwd=tmp_path)
    assert "\n✗ 2 pods: the cluster has no nodes\n" in result.out
    assert "because   the last event of claim default/data" in result.out.partition("default/x\n")[2]
    stored = changed(objects[3], "metadata.uid", "c")
    (tmp_path / "claim.json").write_text(json.dumps({"kind": "List", "items": [stored, missing]}))
    text = kschedx("why", "pvc/data", "-s", "claim.json", cwd=tmp_path, columns=200).out
    assert "because   kube-controller-manager reports: ProvisioningFailed: " in text
    assert "fix       create StorageClass gp3, or delete and recreate claim default/data with a class that" in text


def test_a_dump_without_nodes_has_the_condition_of_the_pod(tmp_path: Path) -> None:
    message = "0/6 nodes are available: 6 Insufficient cpu."
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    stored = {"creationTimestamp": "2026-05-01T00:00:00Z"}
    pending = pod("x", metadata=stored, status={"phase": "Pending", "conditions": [refused]})
    pulling = {"phase": "Pending", "containerStatuses": waiting("ImagePullBackOff")}
    assigned = pod("y", on="n1", metadata=stored, status=pulling)
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": [pending, assigned]}))
    result = kschedx("why", "pod/x", "-s", "pods.json", cwd=tmp_path)
    assert result.out.startswith("? default/x is undecided: where the pod fits is not known")
    assert (result.code, f"event     {message}" in result.out, "note" in result.out) == (3, True, False)
    result = kschedx("why", "pod/y", "-s", "pods.json", cwd=tmp_path, columns=200)
    assert result.out.startswith("‖ default/y is scheduled to n1 and cannot pull the image of container app")
    assert (result.code, "not in the cluster" in result.out) == (0, False)
    for command in (("fit", "pod/x"), ("simulate",), ("drain", "n1"), ("nodes",)):
        result = kschedx(*command, "-s", "pods.json", cwd=tmp_path)
        assert (result.code, "the dump holds no nodes" in result.err) == (3, True)
    result = kschedx("why", "--all-pending", "-s", "pods.json", cwd=tmp_path, columns=200)
    assert (
        result.code,
        f"the dump holds no nodes, and pods of namespace default only; the event: {message}" in result.out,
    ) == (3, True)


@pytest.mark.parametrize(
    ("objects", "reads", "code"),
    [
        ([workload("Deployment", paused=True)], "✗ default/deploy/web is paused", 1),
        ([{**workload("Deployment"), "status": {"conditions": [FAILURE]}}], "✗ default/deploy/web gets no pods", 1),
        ([{**workload("Deployment"), "status": {"replicas": 1}}], "? default/deploy/web is undecided: the dump", 3),
        ([workload("Deployment")], "? default/deploy/web is undecided: where the pod fits is not known", 3),
        ([workload("DaemonSet")], "? default/ds/web is undecided: where the pod fits is not known", 3),
        ([workload("Deployment", replicas=2), ROLLED_OUT, kubelet()], "? default/web-0 is undecided: where", 3),
    ],
)
def test_a_dump_of_workloads_alone(tmp_path: Path, objects: list[Manifest], reads: str, code: int) -> None:
    stored = [{**each, "metadata": {**at(each, "metadata"), "creationTimestamp": SINCE}} for each in objects]
    for each in stored:
        if each["kind"] == "Pod":
            at(each, "spec").pop("nodeName")
            at(each, "metadata").update(owned("ReplicaSet", "web-1"))
    (tmp_path / "dump.json").write_text(json.dumps({"kind": "List", "items": stored}))
    target = f"{objects[0]['kind']}/web".lower()
    result = kschedx("why", target, "-s", "dump.json", cwd=tmp_path, columns=200)
    assert (result.out.startswith(reads), result.code) == (True, code)


def test_a_pod_that_finished_after_the_event_is_named(tmp_path: Path) -> None:
    message = "0/1 nodes are available: 1 Insufficient cpu."
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    done = pod("done", on="n", status={"phase": "Succeeded"})
    result = why(tmp_path, "pod/x", done, pod("x", status={"phase": "Pending", "conditions": [refused]}))
    assert "default/done has finished, perhaps after the event, and made room there" in result.out


@pytest.mark.parametrize(
    ("others", "code", "reads"), [([], 3, "is undecided"), (["other"], 1, "is not bound: PodGroup")]
)
def test_coscheduling_needs_a_complete_group(tmp_path: Path, others: list[str], code: int, reads: str) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps(COSCHEDULING))
    kind = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": {"minMember": 1}}
    groups = [{**kind, "metadata": {"name": name, "namespace": "default"}} for name in others]
    items = [DUMPED, *groups, pod("x", labels={"scheduling.x-k8s.io/pod-group": "pg"})]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}))
    answer = ("-s", "cluster.json", "--config", "config.yaml")
    item, many = (kschedx("why", name, *answer, cwd=tmp_path, columns=200) for name in ("pod/x", "--all-pending"))
    assert (item.code, many.code, reads in item.out) == (code, code, True)


def test_a_nominated_pod_has_one_answer(tmp_path: Path) -> None:
    """While its victims terminate, the pod cannot be scheduled, in a list as well."""
    low = pod("low", on="n", metadata={"deletionTimestamp": SINCE}, spec=LARGE)
    high = pod("high", priority=1000, status={"phase": "Pending", "nominatedNodeName": "n"}, spec=LARGE)
    reads = "waits for 1 victim to terminate on its nominated node n"
    result = why(tmp_path, "pod/high", low, high)
    many = kschedx("why", "--all-pending", "-s", "cluster.json", cwd=tmp_path, columns=400)
    assert (result.code, many.code, reads in result.out, reads in many.out) == (1, 1, True, True)


def test_an_autoscaler_that_does_not_run_adds_no_node(tmp_path: Path) -> None:
    metadata = {"namespace": "kube-system", "labels": {"app": "cluster-autoscaler"}}
    fails = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    down = pod(
        "ca",
        on="ip-10-0-1-20.ec2.internal",
        metadata=metadata,
        status={**fails, "containerStatuses": waiting("CrashLoopBackOff")},
    )
    (tmp_path / "down.json").write_text(json.dumps({"kind": "List", "items": [down]}))
    answer = ("why", str(GROWS / "pod.yaml"), "-s", str(GROWS / "cluster.yaml"))
    runs, result = (kschedx(*answer, *more, cwd=tmp_path, columns=400) for more in ((), ("-s", "down.json")))
    assert "; cluster-autoscaler adds a node of group" in runs.out.splitlines()[0]
    assert result.out.splitlines()[0].endswith("; cluster-autoscaler does not run")
    assert "repair cluster-autoscaler: its logs say why it does not run" in result.out
    none = workload("Deployment", "cluster-autoscaler", metadata={"namespace": "kube-system"}, replicas=0)
    (tmp_path / "down.json").write_text(json.dumps({"kind": "List", "items": [none]}))
    result = kschedx(*answer, "-s", "down.json", cwd=tmp_path, columns=400)
    assert result.out.splitlines()[0].endswith("; cluster-autoscaler does not run")
    assert "scale kube-system/deploy/cluster-autoscaler to 1 replica" in result.out
    unready = {**limits("Available", "False", "MinimumReplicasUnavailable"), "replicas": 1}
    at(none, "spec")["replicas"] = 1
    for status, is_down in ((unready, True), ({**unready, "readyReplicas": 1}, False), ({"replicas": 1}, False)):
        (tmp_path / "down.json").write_text(json.dumps({"kind": "List", "items": [{**none, "status": status}]}))
        result = kschedx(*answer, "-s", "down.json", cwd=tmp_path, columns=400)
        assert result.out.splitlines()[0].endswith("; cluster-autoscaler does not run") is is_down
        assert ("see why no pod of kube-system/deploy/cluster-autoscaler is ready" in result.out) is is_down


COSCHEDULING: Manifest = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {
                "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
                "queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Coscheduling"}]},
            },
        }
    ],
}


def test_the_members_of_a_gang_have_one_answer(tmp_path: Path) -> None:
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": {"minMember": 2}}
    group["metadata"] = {"name": "pg", "namespace": "default"}
    labels = {"scheduling.x-k8s.io/pod-group": "pg"}
    pods = [
        pod(f"w-{item}", labels=labels, containers=[{"name": "c", "resources": {"requests": {"cpu": "40"}}}])
        for item in "ab"
    ]
    (tmp_path / "config.yaml").write_text(json.dumps(COSCHEDULING))
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [node("n"), group, *pods]}))
    answer = ("-s", "cluster.json", "--config", "config.yaml")
    for name in ("pod/w-a", "pod/w-b"):
        document = json.loads(kschedx("why", name, *answer, "-o", "json", cwd=tmp_path).out)
        assert (document["state"]["name"], document["overall"]) == ("WaitingForGang", "Unschedulable")
    assert kschedx("why", "--all-pending", *answer, cwd=tmp_path).code == 1
    assert kschedx("simulate", *answer, cwd=tmp_path).code == 1
    ignored = kschedx("why", "pod/w-a", "-s", "cluster.json", cwd=tmp_path, columns=200).out
    assert "ignored unless the scheduler's configuration (--config) enables plugin Coscheduling" in ignored


def test_a_gang_that_lacks_room_for_one_member_keeps_the_others(tmp_path: Path) -> None:
    group: Manifest = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": {"minMember": 3}}
    group["metadata"] = {"name": "pg", "namespace": "default"}
    labels = {"scheduling.x-k8s.io/pod-group": "pg"}
    room = {"cpu": "1", "memory": "1Gi", "pods": "9"}
    nodes = [node(name, allocatable=room) for name in "nm"]
    members = [pod(f"w-{number}", labels=labels, spec=SMALL) for number in range(3)]
    assigned = pod("w-0", labels=labels, spec=SMALL, on="n")
    (tmp_path / "config.yaml").write_text(json.dumps(COSCHEDULING))
    for pods in (members, [assigned, *members[1:]]):
        (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*nodes, group, *pods]}))
        answer = ("-s", "cluster.json", "--config", "config.yaml")
        simulated = kschedx("simulate", *answer, cwd=tmp_path, columns=200)
        assert (simulated.code, "add a node like" in simulated.out, "0 nodes" in simulated.out) == (1, True, False)
        fixes = json.loads(kschedx("why", "pod/w-2", *answer, "-o", "json", cwd=tmp_path).out)["fixes"]
        assert fixes[0]["title"].startswith("add a node like")
        assert not any("delete" in fix["title"] for fix in fixes)


def test_an_unevaluated_pod_group_has_a_note(tmp_path: Path) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "pg", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    member = pod("x", schedulingGroup={"podGroupName": "pg"})
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [node("n"), group, member]}))
    for command in (("simulate",), ("fit", "pod/x")):
        result = kschedx(*command, "-s", "cluster.json", cwd=tmp_path)
        assert "note: PodGroups are ignored unless the feature gates" in result.err
        gates = ("--feature-gate", "GenericWorkload=true", "--feature-gate", "GangScheduling=true")
        assert "PodGroups are ignored" not in kschedx(*command, "-s", "cluster.json", *gates, cwd=tmp_path).err


def test_a_claim_template_that_a_limit_range_refuses(tmp_path: Path) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
    item = workload("StatefulSet", replicas=1, volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": spec}])
    bounds = [{"type": "PersistentVolumeClaim", "min": {"storage": "50Gi"}}]
    metadata = {"name": "sizes", "namespace": "default"}
    least: Manifest = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": bounds}}
    rule = "minimum storage usage per PersistentVolumeClaim is 50Gi, but request is 10Gi"
    message = f'failed to create PVC data-web-0: persistentvolumeclaims "data-web-0" is forbidden: {rule}'
    result = why(tmp_path, "sts/web", item, least, reports("StatefulSet", "web", "FailedCreate", message))
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    size = "set storage of volumeClaimTemplate data of StatefulSet web to 50Gi"
    assert any(line.startswith(f"fix 1 {size}") for line in lines)
    assert any(line.startswith("2 lower min.storage of LimitRange sizes from 50Gi to 10Gi") for line in lines)
    assert "create claim" not in result.out  # which the StatefulSet's controller does
    command = ("why", "sts/web", "-s", "cluster.json", "--fix", "1", "-o", "patch")
    assert "storage: 50Gi" in kschedx(*command, cwd=tmp_path).out


REFUSALS: list[tuple[str, Manifest, str]] = [
    ("cpu max limit to request ratio per Container is 2, but provided ratio is 8.000000", {}, "lower limits.cpu"),
    (
        "[cpu max limit to request ratio per Container is 2, but no request is specified or request is 0]",
        {},
        "set requests and limits of every container: limits.cpu at most 2 times requests · not tried",
    ),
    (
        (
            'persistentvolumeclaims "data-web-0" is forbidden: maximum storage usage per PersistentVolumeClaim is 5Gi, '
            "but request is 10Gi"
        ),
        {},
        "keep the size of the claim template within the LimitRange · not tried",
    ),
    (
        "maximum cpu usage per Pod is 5a1, but limit is 1",
        {},
        "keep requests and limits of the pod template within the LimitRange · not tried",
    ),
    ("minimum cpu usage per Pod is 2, but request is 1", {}, "raise requests.cpu of container app to 2"),
    (
        (
            "[minimum cpu usage per Container is 2, but request is 1, "
            "cpu max limit to request ratio per Container is 2, but provided ratio is 8.000000]"
        ),
        {},
        "set requests.cpu of container app to 2, limits.cpu of container app to ",
    ),
    ('pod rejected: RuntimeClass "gvisor" not found', {"runtimeClassName": "gvisor"}, "create RuntimeClass gvisor"),
    (
        "exceeded quota: q, requested: requests.memory=2Gi, used: requests.memory=9Gi, limited: requests.memory=10Gi",
        {},
        "raise requests.memory from 10Gi to 13Gi in ResourceQuota q",
    ),
    (
        "failed quota: q: must specify limits.cpu for: injected; requests.cpu for: injected",
        {},
        "create a LimitRange with default limits and requests for container injected, which a webhook adds · not tried",
    ),
    ("failed quota: q: must specify limits.cpu for: app", {}, "set limits.cpu of container app to 1"),
    (
        "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical]}]",
        {"priorityClassName": "system-node-critical"},
        "create a ResourceQuota with scope PriorityClass system-node-critical",
    ),
    (
        "insufficient quota to match these scopes: [{BestEffort Exists []}]",
        {},
        "create a ResourceQuota with scope BestEffort",
    ),
    (
        'failed calling webhook "v.example.com": failed to call webhook: Post "https://svc.policy.svc:443/v": refused',
        {},
        "repair what answers for webhook v.example.com: service policy/svc · not tried",
    ),
    (
        'failed calling webhook "v.x": Post "https://svc.policy.svc:443/v": service "svc" not found',
        {},
        "delete the configuration of webhook v.x, if it is left over: service policy/svc does not exist · not tried",
    ),
    (
        'failed calling webhook "v.x": failed to call webhook: Post "https://svc.policy.svc:443/v": x509: expired',
        {},
        (
            "renew the certificate of webhook v.x, or its caBundle: the API server does not trust service policy/svc"
            " · not tried"
        ),
    ),
    (
        'admission webhook "validation.gatekeeper.sh" denied the request: [needs-owner] you must provide labels: owner',
        {},
        (
            "change the pod template as Gatekeeper's constraint needs-owner requires: you must provide labels: owner"
            " · not tried"
        ),
    ),
    (
        (
            'admission webhook "validate.kyverno.svc-fail" denied the request: resource Pod/a was blocked due to the '
            "following policies needs-owner: check: 'no owner'"
        ),
        {},
        "change the pod template as Kyverno's policy needs-owner requires · not tried",
    ),
    (
        (
            'admission webhook "warden-validating.common-webhooks.networking.gke.io" denied the request: violates '
            """constraints. Details: {"[denied by autogke-limit]":["Total cpu is above the maximum '30'."]}"""
        ),
        {},
        (
            "change the pod template as constraint autogke-limit of GKE Autopilot requires: "
            "Total cpu is above the maximum '30' · not tried"
        ),
    ),
    (
        (
            "unable to validate against any security context constraint: [provider restricted-v2: "
            ".containers[0].runAsUser: Invalid value: 0: must be in the ranges]"
        ),
        {},
        "remove containers[0].runAsUser from the pod template: OpenShift sets them · not tried",
    ),
    (
        (
            "unable to validate against any security context constraint: [provider restricted-v2: "
            ".containers[0].privileged: Invalid value: true: Privileged containers are not allowed]"
        ),
        {},
        "let service account default use SecurityContextConstraints privileged, if the pod needs it · not tried",
    ),
    (
        (
            "unable to validate against any security context constraint: [provider restricted-v2: "
            ".containers[0].allowPrivilegeEscalation: Invalid value: true: not allowed, but would validate "
            "successfully against the `restricted` security context constraint]"
        ),
        {},
        "set containers[0].allowPrivilegeEscalation in the pod template to false · not tried",
    ),
    *(
        (
            f'unable to validate against any security context constraint: [provider "anyuid": Forbidden, {fields}]',
            {},
            f"let service account default use SecurityContextConstraints {name}, if the pod needs it · not tried",
        )
        for fields, name in (
            (
                'spec.volumes[0]: Invalid value: "hostPath": hostPath volumes are not allowed to be used',
                "hostmount-anyuid",
            ),
            ("provider restricted-v2: .spec.securityContext.hostNetwork: Invalid value: true: no", "hostnetwork-v2"),
            (
                "spec.volumes[0]: Invalid value: x, provider restricted-v2: .containers[0].hostPort: Invalid value: 80",
                "privileged",
            ),
        )
    ),
    (
        (
            "PodSecurityPolicy: unable to admit pod: [spec.securityContext.hostNetwork: Invalid value: true: Host "
            "network is not allowed to be used]"
        ),
        {},
        (
            "let service account default use a PodSecurityPolicy that allows spec.securityContext.hostNetwork, if the "
            "pod needs it · not tried"
        ),
    ),
    (
        "PodSecurityPolicy: unable to admit pod: []",
        {},
        "let service account default use a PodSecurityPolicy, if the pod needs it · not tried",
    ),
    (
        "unable to validate against any security context constraint: []",
        {},
        "let service account default use SecurityContextConstraints restricted-v2, if the pod needs it · not tried",
    ),
    (
        "the integer value of priority (9) must not be provided in pod spec; priority admission controller computed 0",
        {"priority": 9},
        "remove spec.priority: admission sets it",
    ),
    (
        "Invalid value: must be less than or equal to cpu limit of 500m",
        at(workload("Deployment"), "spec.template.spec"),
        "set limits.cpu of container app to 1",
    ),
    ("must be less than or equal to cpu limit of 500m", {}, "lower requests.cpu of container app to 500m"),
    (
        'violates PodSecurity "restricted:latest": runAsNonRoot != true',
        {},
        "set the securityContext that restricted requires",
    ),
    ("no PriorityClass with name gold was found", {}, "create PriorityClass gold"),
    (
        "memory max limit to request ratio per Container is 2, but provided ratio is 8.000000",
        {},
        "keep requests and limits of the pod template within the LimitRange · not tried",
    ),
    (
        "pods is forbidden: status unknown for quota: q, resources: pods",
        {},
        "wait until kube-controller-manager has counted the quota's usage, or see whether it runs · not tried",
    ),
    (
        'create Pod web-1- failed error: pods "web-1-" already exists',
        {},
        "delete the pod of that name, which has another owner or none, or wait until it is gone · not tried",
    ),
    (
        "pod node label selector conflicts with its namespace node label selector",
        {},
        "keep nodeSelector within what annotation scheduler.alpha.kubernetes.io/node-selector of the · not tried",
    ),
    (
        'Pod "web-1-" is invalid: spec.containers[0].env[1].valueFrom: Invalid value: "": may not be specified',
        {},
        "correct spec.containers[0].env[1].valueFrom in the pod template · not tried",
    ),
]
"""The condition of a ReplicaSet, fields of its template, and the first fix."""


@pytest.mark.parametrize(("message", "spec", "fix"), REFUSALS)
def test_a_refusal_has_its_fix(tmp_path: Path, message: str, spec: Manifest, fix: str) -> None:
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "8"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], **spec}}
    deployment = workload("Deployment", replicas=2, template=template)
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    stuck = {
        **workload("ReplicaSet", "web-1", metadata=owned("Deployment", "web"), replicas=2, template=template),
        "status": {"conditions": [condition]},
    }
    document = json.loads(why(tmp_path, "deploy/web", deployment, stuck, output="json").out)
    assert document["state"]["name"] == "Refused"
    assert document["fixes"][0]["title"].startswith(fix.partition(" · ")[0])
    assert (document["fixes"][0]["certainty"] == "untried") == (fix.endswith("not tried") or "RuntimeClass" in fix)
    many = kschedx("why", "--all-pending", "-s", "cluster.json", cwd=tmp_path, columns=400)
    assert (many.code, many.out.startswith("✗ 2 pods are not created")) == (1, True)


@pytest.mark.parametrize(("hard", "is_past"), [("1", False), ("9", True)])
def test_a_refusal_by_a_changed_rule_is_past(tmp_path: Path, hard: str, is_past: bool) -> None:
    message = "exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1"
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    stuck = {**workload("Deployment", replicas=2), "status": {"conditions": [condition]}}
    amounts = {"hard": {"pods": hard}, "used": {"pods": "1"}}
    quota: Manifest = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {"pods": hard}},
        "status": amounts,
    }
    document = json.loads(why(tmp_path, "deploy/web", stuck, quota, output="json").out)
    assert (document["state"].get("past"), "wait" in document["fixes"][0]["title"]) == (
        ("ResourceQuota team", True) if is_past else (None, False)
    )


QUOTA: Manifest = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
OPENSHIFT: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-dns"}}
PROJECT: Manifest = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default", "annotations": {"openshift.io/description": ""}},
}
QUOTA_OF_PROJECTS: Manifest = {
    "apiVersion": "quota.openshift.io/v1",
    "kind": "ClusterResourceQuota",
    "metadata": {"name": "q"},
}


@pytest.mark.parametrize(
    ("objects", "by"),
    [
        ([], "ResourceQuota"),
        ([OPENSHIFT], "ResourceQuota or ClusterResourceQuota"),
        ([PROJECT], "ResourceQuota or ClusterResourceQuota"),
        ([QUOTA_OF_PROJECTS], "ClusterResourceQuota"),
        ([OPENSHIFT, QUOTA], "ResourceQuota"),
        ([OPENSHIFT, {**QUOTA, "metadata": {"name": "other", "namespace": "default"}}], "ClusterResourceQuota"),
    ],
)
def test_the_kind_of_quota_that_refuses_on_openshift(tmp_path: Path, objects: list[Manifest], by: str) -> None:
    report = "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    stuck = reports("Job", "web", "FailedCreate", f"Error creating: {report}")
    result = why(tmp_path, "job/web", workload("Job"), stuck, *objects)
    assert f"gets no pods: {by} refuses them" in result.out
    assert f"raise pods from 1 to 2 in {by} q" in result.out
    assert ("kubectl patch clusterresourcequota q" in result.out) == (by == "ClusterResourceQuota")


@pytest.mark.parametrize(("name", "meant"), [("batch", False), ("kube-bacth", True)])
def test_a_scheduler_with_a_word_more_is_not_meant(tmp_path: Path, name: str, *, meant: bool) -> None:
    result = why(tmp_path, "pod/x", pod("x", schedulerName=name))
    assert (result.code, 'did you mean "kube-batch"?' in result.out) == (3, meant)


@pytest.mark.parametrize(("named", "is_told"), [("n", True), ("other", False)])
def test_the_template_that_names_the_node_of_a_running_pod(tmp_path: Path, named: str, *, is_told: bool) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**SMALL, "nodeName": named}}
    result = why(
        tmp_path,
        "pod/web-a",
        workload("ReplicaSet", template=template),
        replica("web-a", "ReplicaSet", "web"),
        node("other"),
    )
    assert ("it runs on n, which the template of ReplicaSet web names (spec.nodeName)" in result.out) is is_told
    assert ("default/web-a: spec.nodeName binds it to n, without kube-scheduler" in result.out) is is_told


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [("n", "its only replica has a node"), ("nn", "both replicas are on n;"), ("nnm", "all 3 replicas have nodes;")],
)
def test_where_all_replicas_are(tmp_path: Path, nodes: str, expected: str) -> None:
    kept = [replica(f"web-{at}", "ReplicaSet", "web", on=name) for at, name in enumerate(nodes)]
    result = why(tmp_path, "rs/web", workload("ReplicaSet", replicas=len(nodes)), *kept, node("m"))
    assert expected in result.out


def test_a_pod_that_only_its_preemption_shows(tmp_path: Path) -> None:
    event = reports("Pod", "web-0", "Preempted", "Preempted by pod u on node n")
    by = {"related": {"kind": "Pod", "namespace": "prod", "name": "db-0"}}
    result = why(tmp_path, "pod/web-0", {**event, **by}, pod("other"))
    assert result.code == 2
    assert 'no pod "web-0" in namespace "default" (kube-scheduler preempted it for prod/db-0)' in result.err


def test_an_earlier_pod_keeps_the_name_of_the_next_one(tmp_path: Path) -> None:
    gone = pod("web-0", on="n", metadata={**owned("StatefulSet", "web"), "deletionTimestamp": SINCE})
    refused = reports("StatefulSet", "web", "FailedCreate", 'pods "web-0" already exists')
    parallel = workload("StatefulSet", replicas=2, podManagementPolicy="Parallel")
    result = why(tmp_path, "sts/web", parallel, gone, refused)
    assert "and an earlier pod of that name is being deleted: kschedx why pod/web-0" in result.out


@pytest.mark.parametrize(("cpu", "is_rejected"), [("1", False), ("100", True)])
def test_what_kube_scheduler_would_report_of_a_pod_of_another_scheduler(
    tmp_path: Path, cpu: str, *, is_rejected: bool
) -> None:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], "schedulerName": "volcano"}
    result = why(tmp_path, "pod/x", pod("x", spec=spec))
    report = "kube-scheduler would report: 0/1 nodes are available: 1 Insufficient cpu"
    assert (result.code, report in result.out) == (3, is_rejected)


def test_an_event_names_the_runtime_class_that_the_dump_may_lack(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**SMALL, "runtimeClassName": "nvidia"}}
    refused = reports("DaemonSet", "web", "FailedCreate", 'pod rejected: RuntimeClass "nvidia" not found')
    result = why(tmp_path, "ds/web", DUMPED, workload("DaemonSet", template=template), refused)
    assert (result.code, "fix 1     create RuntimeClass nvidia" in result.out) == (1, True)


@pytest.mark.parametrize(
    ("spec", "status", "why_stopped"),
    [
        ({"runStrategy": "Halted"}, "Stopped", "spec.runStrategy is Halted"),
        ({"running": False}, "Stopped", "spec.running is false"),
        ({"runStrategy": "Manual"}, "Stopped", "spec.runStrategy is Manual"),
        ({"runStrategy": "Manual"}, "Running", ""),
        ({"runStrategy": "Always"}, "Stopped", ""),
    ],
)
def test_a_virtual_machine_that_is_stopped(tmp_path: Path, spec: Manifest, status: str, why_stopped: str) -> None:
    able = node("able", labels={"kubevirt.io/schedulable": "true"})
    at(able, "status")["allocatable"]["devices.kubevirt.io/kvm"] = "1k"
    machine = {**VIRTUAL_MACHINE, "spec": {"template": {"spec": {"domain": {}}}, **spec}}
    machine["status"] = {"printableStatus": status}
    result = json.loads(why(tmp_path, "vm/web", able, machine, output="json").out)
    headline = f"default/virtualmachine/web is stopped: {why_stopped}"
    assert result["state"].get("headline", "") == (headline if why_stopped else "")
    assert ("start the VirtualMachine" in [fix["title"] for fix in result["fixes"]]) == bool(why_stopped)


def test_a_stopped_resource_is_started_by_its_full_name(tmp_path: Path) -> None:
    """Cluster API and others also have a kind Cluster."""
    result = why(tmp_path, "cluster.postgresql.cnpg.io/web", node("n"), DATABASE)
    assert "$ kubectl patch cluster.postgresql.cnpg.io web -n default --type merge -p" in result.out


def test_quotas_of_a_fix_count_the_missing_pods_beside_running_ones(tmp_path: Path) -> None:
    def quota(name: str, hard: int) -> Manifest:
        amounts = {"hard": {"pods": str(hard)}, "used": {"pods": "2"}}
        metadata = {"name": name, "namespace": "default"}
        return {**QUOTA, "metadata": metadata, "spec": {"hard": amounts["hard"]}, "status": amounts}

    refusal = 'pods "web-1-x" is forbidden: exceeded quota: a, requested: pods=1, used: pods=2, limited: pods=2'
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": refusal}
    stuck = {
        **workload("ReplicaSet", "web-1", metadata=owned("Deployment", "web"), replicas=4),
        "status": {"conditions": [condition]},
    }
    running = [replica(f"web-1-{number}", "ReplicaSet", "web-1", on="n") for number in range(2)]
    objects = [node("n"), workload("Deployment", replicas=4), stuck, *running, quota("a", 2), quota("b", 3)]
    result = json.loads(why(tmp_path, "deploy/web", *objects, output="json").out)
    raised = "raise pods from 2 to 4 in ResourceQuota a and pods from 3 to 4 in ResourceQuota b"
    assert result["fixes"][0]["title"] == raised
    assert "costs" not in result["fixes"][0]
    other = {**workload("ReplicaSet", "api", replicas=1), "status": {"conditions": [condition]}}
    result = json.loads(why(tmp_path, "deploy/web", *objects, other, output="json").out)
    assert result["fixes"][0]["costs"] == ["unless ReplicaSet api, refused as well, takes the room"]


@pytest.mark.parametrize(
    ("schedule", "fixes"),
    [
        ("0 0 * * *", ["resume the CronJob"]),
        (
            "0 0 31 2 *",
            [
                "start a Job by hand: the schedule 0 0 31 2 * is never due",
                "correct spec.schedule of the CronJob, and resume it",
            ],
        ),
    ],
)
def test_a_resumed_cron_job_starts_jobs_only_if_its_schedule_is_due(
    tmp_path: Path, schedule: str, fixes: list[str]
) -> None:
    cron_job = workload("CronJob", schedule=schedule, suspend=True)
    result = json.loads(why(tmp_path, "cj/web", node("n"), cron_job, output="json").out)
    assert [fix["title"] for fix in result["fixes"]] == fixes


@pytest.mark.parametrize(("length", "code"), [(52, 0), (53, 3)])
def test_a_name_that_may_be_too_long_for_a_label_of_pods(tmp_path: Path, length: int, code: int) -> None:
    name = "s" * length
    result = why(tmp_path, f"sts/{name}", node("n"), workload("StatefulSet", name))
    assert result.code == code
    assert ("fix choose a name of at most 52 characters" in " ".join(result.out.split())) is (code == 3)


@pytest.mark.parametrize("other", ["requests.cpu", "count/pods"])
def test_all_quotas_that_refuse_a_pod_are_raised(tmp_path: Path, other: str) -> None:
    def full(name: str, resource: str) -> Manifest:
        amounts = {"hard": {resource: "1"}, "used": {resource: "1"}}
        return {**QUOTA, "metadata": {"name": name, "namespace": "default"}, "spec": {"hard": {resource: "1"}}} | {
            "status": amounts
        }

    result = why(tmp_path, "job/web", workload("Job"), full("a", "pods"), full("b", other), output="json")
    (fix,) = json.loads(result.out)["fixes"]
    assert fix["title"] == f"raise pods from 1 to 2 in ResourceQuota a and {other} from 1 to 2 in ResourceQuota b"
    assert [change["target"]["name"] for change in fix["changes"]] == ["a", "b"]
    assert fix["certainty"] == "verified"


def test_a_quota_for_pods_without_requests(tmp_path: Path) -> None:
    spec = {"hard": {"pods": "0"}, "scopes": ["BestEffort"]}
    quota = {**QUOTA, "spec": spec, "status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}
    container = {"name": "app", "image": "app:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    job = workload("Job", template={"metadata": {}, "spec": {"containers": [container]}})
    offering = node("gpu")
    at(offering, "status")["allocatable"]["nvidia.com/gpu"] = "1"
    fixes = json.loads(why(tmp_path, "job/web", offering, job, quota, output="json").out)["fixes"]
    assert {"nvidia.com/gpu": "1"} in [op["value"].get("limits") for op in fixes[0]["changes"][0]["patch"]]
    assert [(fix["title"], fix["certainty"]) for fix in fixes] == [
        ("set requests: the quota counts only pods without any (BestEffort)", "verified"),
        ("raise pods from 0 to 1 in ResourceQuota q (scope BestEffort)", "verified"),
    ]


@pytest.mark.parametrize(("limit", "order"), [("0", [0, 1]), ("1", [1, 0])])
def test_a_quota_for_pods_of_a_priority_class(tmp_path: Path, limit: str, order: list[int]) -> None:
    """A quota of 0 forbids the class in the namespace."""
    selected = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    amounts = {"hard": {"pods": limit}, "used": {"pods": limit}}
    quota = {**QUOTA, "spec": {"hard": {"pods": limit}, "scopeSelector": {"matchExpressions": [selected]}}}
    high: Manifest = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    template = {"metadata": {}, "spec": {**SMALL, "priorityClassName": "high"}}
    objects = [{**high, "value": 9}, node("n"), workload("Job", template=template), {**quota, "status": amounts}]
    fixes = json.loads(why(tmp_path, "job/web", *objects, output="json").out)["fixes"]
    more = str(int(limit) + 1)
    titles = [
        "remove priorityClassName high: the quota counts only pods of such classes",
        f"raise pods from {limit} to {more} in ResourceQuota q (scope PriorityClass In [high])",
    ]
    assert [(fix["title"], fix["certainty"]) for fix in fixes] == [(titles[at], "verified") for at in order]
    exceeded = 'Error creating: pods "web-x" is forbidden: exceeded quota: q, requested: pods=1, used: pods={used}, '
    exceeded += f"limited: pods={limit}"
    default = {**high, "value": 9, "globalDefault": True}
    job = {**workload("Job", template=template, completions=2), "status": {"succeeded": 1}}
    done = pod("web-1", on="n", metadata=owned("Job", "web"), status={"phase": "Succeeded"})
    running = pod("web-1-a", on="n", metadata=owned("ReplicaSet", "web-1"), containers=at(template, "spec.containers"))
    latest = {**ROLLED_OUT, "spec": {**at(ROLLED_OUT, "spec"), "template": template, "replicas": 2}}
    several = [workload("Deployment", template=template, replicas=2), latest, running]
    event = reports("ReplicaSet", "web-1", "FailedCreate", exceeded.format(used=limit))
    for kind, own in (("job", [job, done]), ("deploy", [*several, event])):
        again = [default, node("n"), *own, {**quota, "status": amounts}]
        fixes = json.loads(why(tmp_path, f"{kind}/web", *again, output="json").out)["fixes"]
        assert titles[0] not in [fix["title"] for fix in fixes]  # the pod gets the default class again
        assert titles[1] in [fix["title"] for fix in fixes]


@pytest.mark.parametrize(
    ("resource", "name", "says"),
    [
        ("deployments.apps", "web", "is not created: ResourceQuota refuses it"),
        ("pods", "web-1-x", "gets no pods: ResourceQuota refuses them"),
        ("persistentvolumeclaims", "data-web-0", "gets no pods: ResourceQuota refuses them"),
    ],
)
def test_a_workload_that_is_refused_itself(resource: str, name: str, says: str) -> None:
    message = f'{resource} "{name}" is forbidden: exceeded quota: q, requested: x=1, used: x=1, limited: x=1'
    state = Refused(subject="default/deploy/web", message=message, by="ResourceQuota", is_workload=True)
    assert state.effect == says


CONFLICT = "pod node label selector conflicts with its namespace node label selector"
NOT_ALLOWED = (
    "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"
)
RULES = "scheduler.alpha.kubernetes.io/"


@pytest.mark.parametrize(
    ("annotations", "spec", "report", "fix"),
    [
        (
            {f"{RULES}node-selector": "pool=a,disk=ssd"},
            {"nodeSelector": {"pool": "b", "disk": "ssd"}},
            CONFLICT,
            "remove pool=b from nodeSelector: it conflicts with pool=a of namespace default",
        ),
        (
            {f"{RULES}tolerationsWhitelist": '[{"key": "a", "operator": "Exists"}]'},
            {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]},
            NOT_ALLOWED,
            f"remove toleration b op=Exists, which annotation {RULES}tolerationsWhitelist of namespace default does",
        ),
        (
            {},
            {},
            NOT_ALLOWED,
            f"remove the tolerations that annotation {RULES}tolerationsWhitelist of namespace default does not allow",
        ),
    ],
)
def test_a_rule_of_the_namespace_that_the_pod_breaks(
    tmp_path: Path, annotations: Manifest, spec: Manifest, report: str, fix: str
) -> None:
    space: Manifest = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "annotations": annotations},
    }
    job = workload("Job", template={"metadata": {}, "spec": {**SMALL, **spec}})
    event = reports("Job", "web", "FailedCreate", f'Error creating: pods "web-" is forbidden: {report}')
    result = why(tmp_path, "job/web", space, job, event, output="json")
    assert json.loads(result.out)["fixes"][0]["title"].startswith(fix)


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("ReadinessGatesNotReady", 'corresponding condition of pod readiness gate "x.io/lb" does not exist.'),
        ("ContainersNotReady", "containers with unready status: [app]"),
        ("MaintenanceOfItsOperator", "the operator drains it"),
    ],
)
def test_why_a_running_pod_is_not_ready(tmp_path: Path, reason: str, says: str) -> None:
    gate = {"type": "Ready", "status": "False", "reason": reason, "message": says}
    result = why(tmp_path, "pod/x", pod("x", on="n", status={"phase": "Running", "conditions": [gate]}))
    assert result.out.splitlines()[0] == f"‖ default/x runs on n and is not ready: {says}"


@pytest.mark.parametrize(("count", "is_told"), [(4, False), (47, True)])
def test_a_running_pod_that_restarted_often_says_why(tmp_path: Path, count: int, *, is_told: bool) -> None:
    """A snapshot keeps it."""
    ended = {"exitCode": 137, "reason": "OOMKilled"}
    containers = [{"name": "app", "restartCount": count, "state": {"running": {}}, "lastState": {"terminated": ended}}]
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": containers}
    result = why(tmp_path, "pod/x", pod("x", on="n", status={"phase": "Running", **ready}))
    kschedx("snapshot", "-s", "cluster.json", "-o", "saved.json", cwd=tmp_path)
    saved = kschedx("why", "pod/x", "-s", "saved.json", cwd=tmp_path)
    for out in (result.out, saved.out):
        told = "  container app has restarted 47 times; it last ended with OOMKilled, exit code 137"
        assert (told in out.splitlines()) is is_told, out


def test_a_quota_with_scopes_names_them(tmp_path: Path) -> None:
    quota: Manifest = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "short", "namespace": "default"},
        "spec": {"hard": {"pods": "2"}, "scopes": ["Terminating"]}, "status": {"hard": {"pods": "2"}},
    }  # fmt: skip
    message = "Error creating: exceeded quota: short, requested: pods=1, used: pods=2, limited: pods=2"
    result = why(tmp_path, "job/web", workload("Job"), quota, reports("Job", "web", "FailedCreate", message))
    assert "raise pods from 2 to 3 in ResourceQuota short (scope Terminating)" in result.out


NO_ADDRESS = 'plugin type="aws-cni" failed (add): add cmd: failed to assign an IP address to container'


@pytest.mark.parametrize(
    ("earlier", "later", "cause"),
    [
        (("FailedAttachVolume", "Multi-Attach error"), ("FailedMount", "timed out"), "Multi-Attach error"),
        (("FailedMount", "failed to sync secret cache: timed out"), ("FailedMount", "timed out"), "unmounted volumes"),
        (("FailedMount", "failed to sync secret cache"), ("FailedCreatePodSandBox", NO_ADDRESS), NO_ADDRESS),
        (("BranchAllocationFailed", "no branch ENI"), ("FailedCreatePodSandBox", NO_ADDRESS), "no branch ENI"),
        (("FailedCreatePodSandBox", "cni not initialized"), ("FailedCreatePodSandBox", NO_ADDRESS), NO_ADDRESS),
        (("FailedCreatePodSandBox", "no network"), ("FailedCreatePodSandBox", 'is reserved for "a"'), "no network"),
    ],
)
def test_a_warning_that_follows_from_another_is_not_the_cause(
    tmp_path: Path, earlier: tuple[str, str], later: tuple[str, str], cause: str
) -> None:
    events = []
    for minute, (reason, message) in enumerate((earlier, later)):
        text = message.replace("timed out", "unmounted volumes=[v], unattached volumes=[v]: timed out waiting")
        event = reports("Pod", "web-0", reason, message if "cache" in message else text)
        at(event, "metadata")["name"] = str(minute)
        events.append({**event, "lastTimestamp": f"2026-01-01T00:0{minute}:00Z"})
    out = why(tmp_path, "pod/web-0", kubelet(containerStatuses=waiting("ContainerCreating")), *events).out
    assert cause in out.splitlines()[1]


@pytest.mark.parametrize(("ready", "waits"), [(False, True), (True, False)])
def test_a_worker_of_ray_waits_for_its_head(tmp_path: Path, *, ready: bool, waits: bool) -> None:
    starting = [{"name": "wait-gcs-ready", "state": {"running": {"startedAt": SINCE}}}]
    worker = kubelet(initContainerStatuses=starting, containerStatuses=waiting("PodInitializing"))
    conditions = [{"type": "Ready", "status": str(ready)}]
    head = pod("head", on="n", status={"phase": "Running", "conditions": conditions})
    for each, role in ((worker, "worker"), (head, "head")):
        at(each, "metadata")["labels"] = {"ray.io/cluster": "r", "ray.io/node-type": role}
    out = why(tmp_path, "pod/web-0", worker, head).out
    assert ("the head of its Ray cluster, default/head, is not ready" in out) == waits
    assert ("fix       repair default/head, for which the pod waits" in out) == waits


def test_a_pod_that_its_kubelet_does_not_end(tmp_path: Path) -> None:
    metadata = {"deletionTimestamp": "2026-01-02T01:00:00Z", "deletionGracePeriodSeconds": 30}
    gone = pod("x", on="n", metadata=metadata, status={"phase": "Running"})
    warning = reports("Pod", "x", "FailedKillPod", 'plugin type="calico" failed (delete): Unauthorized')
    late = pod("late", metadata={"creationTimestamp": "2026-01-02T02:00:00Z"})
    lines = why(tmp_path, "pod/x", gone, warning, late).out.splitlines()
    assert lines[1] == '  because   FailedKillPod: plugin type="calico" failed (delete): Unauthorized'
    assert "  fix 1     repair the CNI plugin on n · not tried" in lines


def test_the_pod_that_prepares_a_database_is_its_answer(tmp_path: Path) -> None:
    owner = {"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "name": "pg", "uid": "u", "controller": True}
    cluster = {**workload("Cluster", "pg", instances=3), "apiVersion": "postgresql.cnpg.io/v1"}
    first = pod("pg-1-initdb", metadata={"ownerReferences": [owner]}, nodeSelector={"disk": "ssd"})
    at(first, "metadata")["labels"] = {"cnpg.io/jobRole": "initdb"}
    assert why(tmp_path, "cluster/pg", cluster, first).out.startswith("✗ default/pg-1-initdb is unschedulable")


def test_a_pod_that_its_kubelet_does_not_start(tmp_path: Path) -> None:
    status = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    out = why(tmp_path, "pod/x", pod("x", on="n", status=status)).out
    assert "fix       if this lasts, find out from the kubelet's log on n why it does not start the pod" in out


@pytest.mark.parametrize(("created", "headline"), [(0, "✗ default/rc/app-1 gets no pods"), (1, "✓ default/app-1-x")])
def test_a_deployment_config_whose_pods_are_refused(tmp_path: Path, created: int, headline: str) -> None:
    """The pod that deploys it belongs to it, and runs."""
    config = {**workload("DeploymentConfig", "app"), "apiVersion": "apps.openshift.io/v1"}
    controller = workload("ReplicationController", "app-1", metadata=owned("DeploymentConfig", "app"), replicas=1)
    controller |= {"apiVersion": "v1"}
    at(controller, "spec")["selector"] = {"app": "app-1"}
    deployer = pod("app-1-deploy", on="n", metadata=owned("ReplicationController", "app-1"))
    del at(deployer, "metadata")["ownerReferences"][0]["controller"]
    refused = reports("ReplicationController", "app-1", "FailedCreate", "pods is forbidden: exceeded quota: q")
    made = [pod("app-1-x", on="n", metadata=owned("ReplicationController", "app-1"))] * created
    assert why(tmp_path, "dc/app", config, controller, deployer, refused, *made).out.startswith(headline)


def test_the_pod_of_a_virtual_machine_is_found_through_its_instance(tmp_path: Path) -> None:
    """The condition of the machine only repeats that its pod does not run."""
    unready = {"conditions": [{"type": "Ready", "status": "False", "message": "Guest VM is not reported as running"}]}
    machine = {**workload("VirtualMachine", "vm"), "apiVersion": "kubevirt.io/v1", "status": unready}
    instance = workload("VirtualMachineInstance", "vm", metadata=owned("VirtualMachine", "vm"))
    instance |= {"apiVersion": "kubevirt.io/v1"}
    launcher = pod("virt-launcher-vm", metadata=owned("VirtualMachineInstance", "vm"), nodeSelector={"kvm": "true"})
    for each, above in ((instance, "VirtualMachine"), (launcher, "VirtualMachineInstance")):
        at(each, "metadata")["ownerReferences"][0] |= {"apiVersion": "kubevirt.io/v1", "kind": above}
    out = why(tmp_path, "vm/vm", machine, instance, launcher).out
    assert out.startswith("✗ default/virt-launcher-vm is unschedulable")


@pytest.mark.parametrize(
    ("reason", "report"),
    [
        ("FailedMount", "waits for its volumes: FailedMount"),
        ("FailedCreatePodSandBox", "waits for its network sandbox: FailedCreatePodSandBox"),
    ],
)
def test_the_kubelets_event_is_the_cause(tmp_path: Path, reason: str, report: str) -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "web-0"}
    event: Manifest = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "reason": reason,
        "message": 'secret "tls" not found',
        "involvedObject": about,
    }
    result = why(tmp_path, "pod/web-0", kubelet(containerStatuses=waiting("ContainerCreating")), event)
    assert result.out.splitlines()[:2] == [
        f"‖ default/web-0 is scheduled to n and {report}",
        '  because   secret "tls" not found',
    ]
    many = kschedx("why", "--all-pending", "-s", "cluster.json", cwd=tmp_path, columns=400)
    assert (many.code, many.out.splitlines()[0]) == (0, "‖ 1 pod is scheduled and not running")


PULLED = {
    "manifest unknown": "correct the image app:1",
    "401 Unauthorized": "give the pod an imagePullSecret for app:1",
    "pull access denied, repository does not exist or may require authorization": "correct the image app:1, or give",
    "Source image rejected: A signature was required": "sign the image app:1, or change the policy of n",
    "unsupported media type application/v1+prettyjws": "push app:1 again in a format that the container runtime of n",
    "no basic auth credentials": "give the pod an imagePullSecret for app:1",
    "app@sha256:14035: not found": "correct the image app:1",
    "http: server gave HTTP response to HTTPS client": "let the registry of app:1 serve HTTPS, or let n use HTTP",
    "toomanyrequests: rate limit": "wait, or pull app:1 with credentials",
    "Unable to retrieve some image pull secrets (regcred)": "create the Secret that imagePullSecrets of the pod names",
    "not present with pull policy of Never": "load app:1 onto n, or set imagePullPolicy: IfNotPresent",
    "no match for platform in manifest": "use an image that is built for the platform of n",
    "dial tcp: lookup registry: no such host": "let n reach the registry of app:1",
    "tls: failed to verify certificate: x509: unknown authority": "let n trust the certificate of the registry",
    "failed to extract layer: no space left on device": "free disk space on n",
}
OOM_KILLED = {"lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}
NO_COMMAND = {
    "lastState": {
        "terminated": {
            "reason": "StartError", "exitCode": 128, "message": 'exec: "/app": stat /app: no such file or directory',
        }
    }
}  # fmt: skip
NO_MEMORY: Manifest = {
    "terminated": {"reason": "StartError", "exitCode": 128, "message": "OOM-killed (memory limit too low?)"}
}
STARTS: list[tuple[list[Manifest], str]] = [
    *((waiting("ErrImagePull", report), fix) for report, fix in PULLED.items()),
    (waiting("CreateContainerConfigError", 'configmap "conf" not found'), "create ConfigMap default/conf"),
    (waiting("CrashLoopBackOff"), "find out from its logs why container app ends"),
    ([{**waiting("CrashLoopBackOff")[0], **OOM_KILLED}], "raise limits.memory of container app"),
    ([{**waiting("CrashLoopBackOff")[0], **NO_COMMAND}], "correct the command of the container"),
    ([{**waiting("CrashLoopBackOff")[0], "lastState": NO_MEMORY}], "raise limits.memory of the container"),
    *(
        (waiting("CreateContainerError", message), fix)
        for message, fix in (
            ('chdir to cwd ("/srv/app"): permission denied: unknown', "correct workingDir of the container"),
            ("unable to find user app: no matching entries in passwd file", "set runAsUser and runAsGroup to numbers"),
            ('error mounting "/v" to rootfs at "/etc/a.conf": not a directory', "correct mountPath or subPath"),
            ("nvidia-container-cli: initialization error: nvml error", "repair the GPU driver and its container"),
            ("unable to apply cgroup configuration: device or resource busy", "repair the container runtime of n"),
            ('cannot load seccomp profile "/p.json": no such file', "put the seccomp profile on n"),
            ("apparmor profile not found k8s-x", "load the AppArmor profile on n"),
        )
    ),
    (waiting("PostStartHookError", "command exited with 127"), "correct the postStart hook of the container"),
    (waiting("CreateContainerError", 'name "a" is reserved for "b"'), "wait, or restart the container runtime of n"),
    (waiting("CreateContainerConfigError", "failed to prepare subPath"), "create the path of subPath in the volume"),
    (waiting("CreateContainerConfigError", "couldn't find key a in Secret default/b"), "add the key to the ConfigMap"),
    (waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"), "set runAsUser"),
]


@pytest.mark.parametrize(
    ("reason", "report", "fix"),
    [
        (
            "FailedMount",
            "driver name a.b not found in the list of registered CSI drivers",
            "run the node plugin of a.b",
        ),
        (
            "FailedMount",
            'MountVolume.NewMounter initialization failed for volume "v" : path "/data" does not exist',
            "create the path of the volume on n",
        ),
        (
            "FailedAttachVolume",
            "unable to attach volume pvc-da81 to n2: volume pvc-da81 not scheduled, code=Server Error",
            "let Longhorn place the replicas of the volume",
        ),
        (
            "FailedAttachVolume",
            "CSINode n does not contain driver a.b",
            "run the node plugin of a.b on n, where it is not registered: default/agent is not ready there",
        ),
        (
            "FailedCreatePodSandBox",
            'the handler "runc" is not known to support user namespaces',
            "run the pod on a node whose container runtime and kernel support user namespaces",
        ),
        ("FailedMount", "mount failed: access denied by server", "let n access the volume"),
        ("FailedMount", "conflicting SELinux labels of volume v", "give all pods of the volume the same"),
        ("FailedMount", 'MountVolume.SetUp failed: PodCertificateRequest "a" was denied', "let its signer issue the"),
        ("FailedMount", 'MountVolume.SetUp failed: clustertrustbundle "a" not found', "create the ClusterTrustBundle"),
        ("FailedCreatePodSandBox", 'plugin type="multus": VF pci addr is required', "request the resource that the"),
        ("BranchAllocationFailed", "failed to allocate branch ENI to pod", "delete the pod, and see that the VPC"),
        ("FailedMount", 'object "default"/"c" not registered', "delete the pod and create it again if this lasts"),
        ("FailedMount", "failed to mount secrets store objects: permission denied", "correct the SecretProviderClass"),
        ("FailedMount", "mountVolume.NodeExpandVolume failed: could not resize", "find out from the storage driver"),
        ("FailedMount", 'mount: Failed to resolve "fs-1.efs"', "let n resolve the name of the storage system"),
        ("FailedCreatePodSandBox", "listen tcp4 :80: bind: address already in use", "stop the process that uses the"),
        ("FailedAttachVolume", "403, UnauthorizedOperation: You are not", "give the storage driver the permission"),
        (
            "FailedCreatePodSandBox",
            "fork/exec: resource temporarily unavailable",
            "free processes, open files, or memory",
        ),
        ("FailedMount", "hostPath type check failed: /data is not a directory", "create on n what the hostPath names"),
        ("FailedMount", "you might need a /sbin/mount.<type> helper program", "install the mount helper"),
        ("FailedAttachVolume", "AttachVolume.Attach failed: IncorrectState", "find out from the storage driver why it"),
        ("FailedMount", 'configmap "kube-root-ca.crt" not found', "repair kube-controller-manager, which publishes"),
        ("FailedMount", "an operation with the given Volume ID 1 already exists", "find out from the storage driver"),
        ("FailedCreatePodSandBox", 'no runtime for "k" is configured', "install the runtime of RuntimeClass of the"),
        ("FailedAttachVolume", 'code = NotFound desc = Volume "v" not found', "restore the volume"),
        ("FailedPrepareDynamicResources", "NodePrepareResources failed", "repair the node plugin of the device driver"),
        ("FailedCreatePodSandBox", "failed to assign an IP address to container", "give n more pod IP addresses"),
        (
            "FailedCreatePodSandBox",
            'plugin type="azure-vnet": not enough IPs available',
            "give n more pod IP addresses",
        ),
        (
            "FailedCreatePodSandBox",
            "failed to get sandbox image: dial tcp: i/o timeout",
            "let n pull the sandbox image",
        ),
        ("FailedCreatePodSandBox", 'name "x" is reserved for "y"', "wait, or restart the container runtime of n"),
        ("FailedMount", 'serviceaccounts "build" not found', "create ServiceAccount default/build"),
        ("FailedAttachVolume", "Could not attach: volume not found", "restore the volume in the storage system"),
        ("FailedCreatePodSandBox", 'plugin type="azure-vnet": no IPs available on NC', "give n more pod IP addresses"),
        (
            "FailedCreatePodSandBox",
            'plugin type="calico" failed',
            "repair the CNI plugin on n: default/agent is not re",
        ),
        (
            "FailedCreatePodSandBox",
            'plugin type="multus-shim" failed: network-attachment-definitions.k8s.cni.cncf.io "macvlan" not found',
            "create NetworkAttachmentDefinition default/macvlan",
        ),
    ],
)
def test_a_missing_resource_of_the_kubelet_has_its_fix(tmp_path: Path, reason: str, report: str, fix: str) -> None:
    starting = kubelet(containerStatuses=waiting("ContainerCreating"))
    agent = replica("agent", "DaemonSet", "agent", ready=False)
    result = why(tmp_path, "pod/web-0", starting, agent, reports("Pod", "web-0", reason, report), output="json")
    assert json.loads(result.out)["fixes"][0]["title"].startswith(fix)


WINDOWS: Manifest = {"nodeSelector": {"kubernetes.io/os": "windows"}}


@pytest.mark.parametrize(
    ("spec", "why_not"),
    [
        ({}, "does not tolerate gpu=true:NoSchedule"),
        ({"nodeSelector": {"disk": "ssd"}}, "does not select it"),
        ({"tolerations": [{"operator": "Exists"}]}, ""),
    ],
)
def test_a_daemon_set_that_keeps_a_driver_off_a_node(tmp_path: Path, spec: Manifest, why_not: str) -> None:
    report = "driver name secrets-store.csi.k8s.io not found in the list of registered CSI drivers"
    starting, event = (
        kubelet(containerStatuses=waiting("ContainerCreating")),
        reports("Pod", "web-0", "FailedMount", report),
    )
    tainted, at(starting, "spec")["nodeName"] = node("t", taints=["gpu=true:NoSchedule"]), "t"
    daemons = [
        workload("DaemonSet", name, template={"metadata": {"labels": {"app": name}}, "spec": {**SMALL, **spec}})
        for name in ("secrets-store-csi-driver", "aws-node")
    ]
    result = why(tmp_path, "pod/web-0", tainted, starting, *daemons, event, output="json")
    title = "run the node plugin of secrets-store.csi.k8s.io on t, where it is not registered"
    because = f": DaemonSet default/secrets-store-csi-driver {why_not}" if why_not else ""
    assert json.loads(result.out)["fixes"][0]["title"] == title + because


@pytest.mark.parametrize(
    ("daemons", "because"),
    [
        ({"ebs-csi-windows": WINDOWS, "ebs-csi-node": {}}, "DaemonSet default/ebs-csi-node does not tolerate"),
        ({"ebs-csi-windows": WINDOWS, "ebs-csi-node": {"tolerations": [{"operator": "Exists"}]}}, ""),
        ({"aws-efs-csi-node": {}}, ""),
    ],
)
def test_the_daemon_set_of_another_platform_or_driver_is_not_meant(
    tmp_path: Path, daemons: dict[str, Manifest], because: str
) -> None:
    report = "driver name ebs.csi.aws.com not found in the list of registered CSI drivers"
    starting = kubelet(containerStatuses=waiting("ContainerCreating"))
    tainted, at(starting, "spec")["nodeName"] = node("t", taints=["gpu=true:NoSchedule"]), "t"
    sets = [workload("DaemonSet", name, template={"spec": {**SMALL, **spec}}) for name, spec in daemons.items()]
    event = reports("Pod", "web-0", "FailedMount", report)
    title = json.loads(why(tmp_path, "pod/web-0", tainted, starting, *sets, event, output="json").out)["fixes"][0][
        "title"
    ]
    assert title.partition(": ")[2].startswith(because)
    assert bool(because) == (": " in title)


def test_a_static_pod_is_changed_in_its_file(tmp_path: Path) -> None:
    mirror = pod("etcd-n", on="n", status={"phase": "Pending", "containerStatuses": waiting("ErrImagePull")})
    at(mirror, "metadata")["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": "n", "controller": True}]
    result = why(tmp_path, "pod/etcd-n", mirror)
    assert "because   the kubelet of n runs this static pod from a manifest file" in result.out
    assert "-o wide shows where" not in result.out


@pytest.mark.parametrize("length", [52, 53])
def test_a_stateful_set_with_a_long_name(tmp_path: Path, length: int) -> None:
    """Kubernetes puts its name and a hash into a label of its pods."""
    name = "x" * length
    is_long = length > 52
    result = why(tmp_path, f"sts/{name}", workload("StatefulSet", name, replicas=1))
    assert result.code == (3 if is_long else 0)
    assert ("at most 52 characters is safe" in " ".join(result.out.split())) == is_long
    report = f'Pod "{name}-0" is invalid: metadata.labels: Invalid value: "{name}-76fd497866": must be no more than 63'
    event = reports("StatefulSet", name, "FailedCreate", f"create Pod {name}-0 in StatefulSet {name} failed: {report}")
    result = why(tmp_path, f"sts/{name}", workload("StatefulSet", name, replicas=1), event, output="json")
    title = json.loads(result.out)["fixes"][0]["title"]
    assert title.startswith(f"delete StatefulSet {name} and" if is_long else "correct metadata.labels in")


def test_a_pod_of_an_older_revision_is_not_replaced_while_it_fails(tmp_path: Path) -> None:
    newer: Manifest = {**workload("StatefulSet", replicas=1), "status": {"updateRevision": "web-2"}}
    stuck = kubelet(containerStatuses=waiting("ErrImagePull"))
    at(stuck, "metadata")["labels"] = {"controller-revision-hash": "web-1"}
    result = why(tmp_path, "sts/web", newer, stuck)
    assert "StatefulSet web has a newer revision" in result.out.splitlines()[1]
    assert "kubectl delete pod web-0" in result.out
    at(newer, "spec")["updateStrategy"] = {"rollingUpdate": {"partition": 1}}
    assert "newer revision" not in why(tmp_path, "sts/web", newer, stuck).out


def limit_range(cpu: str) -> Manifest:
    spec = {"limits": [{"type": "Container", "defaultRequest": {"cpu": cpu}}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r", "namespace": "default"}, "spec": spec}


def runtime_class(cpu: str) -> Manifest:
    fixed = {"overhead": {"podFixed": {"cpu": cpu}}}
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, **fixed}


@pytest.mark.parametrize(
    ("is_set_by_range", "present", "by"),
    [
        (True, limit_range("1"), "LimitRanges"),
        (False, limit_range("1"), ""),
        (True, limit_range("65"), ""),
        (False, runtime_class("1"), "RuntimeClass kata"),
        (False, runtime_class("65"), ""),
    ],
)
@pytest.mark.parametrize("is_owned", [True, False])
def test_a_pod_that_was_admitted_under_earlier_rules(
    tmp_path: Path, present: Manifest, by: str, *, is_set_by_range: bool, is_owned: bool
) -> None:
    """The requests, overhead, and tolerations of a pod stay as they were when it was created."""
    text = "LimitRanger plugin set: cpu request for container main"
    annotations = {"kubernetes.io/limit-ranger": text} if is_set_by_range else {}
    stuck = pod("web-0", metadata={**(owned("ReplicaSet", "web-1") if is_owned else {}), "annotations": annotations})
    at(stuck, "spec.containers")[0]["image"] = "web"
    if is_of_class := present["kind"] == "RuntimeClass":
        at(stuck, "spec").update({"runtimeClassName": "kata", "overhead": {"cpu": "65"}})
    else:
        at(stuck, "spec.containers")[0]["resources"] = {"requests": {"cpu": "65"}}
    result = why(tmp_path, "pod/web-0", stuck, present, workload("ReplicaSet", "web-1"))
    whose = "pending pods of ReplicaSet web-1: it creates them" if is_owned else "default/web-0 and create it"
    assert (f"fix       delete {whose} again under the present {by}\n" in result.out) is bool(by)
    assert ("kubectl delete pod web-0" in result.out) is bool(by and is_owned)
    assert ("RuntimeClass kata adds 65 cpu" in result.out) is (is_of_class and not by)


DELETED = "delete default/web-0, which {} web creates with its newer revision"
LOWERED = "lower partition of StatefulSet web from 1 to 0"


@pytest.mark.parametrize(
    ("kind", "spec", "fix"),
    [
        ("StatefulSet", {}, DELETED),
        ("StatefulSet", {"podManagementPolicy": "Parallel"}, ""),
        ("StatefulSet", {"podManagementPolicy": "Parallel", "updateStrategy": {"type": "OnDelete"}}, DELETED),
        ("StatefulSet", {"updateStrategy": {"rollingUpdate": {"partition": 1}}}, f"{LOWERED}, then delete pod web-0"),
        ("DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, DELETED),
        ("DaemonSet", {}, ""),
    ],
)
def test_a_pending_pod_of_an_older_revision(tmp_path: Path, kind: str, spec: Manifest, fix: str) -> None:
    generation: Manifest = {"annotations": {"deprecated.daemonset.template.generation": "2"}}
    newer = {**workload(kind, metadata=generation), "status": {"updateRevision": "web-2"}}
    at(newer, "spec").update(spec)
    older = {"controller-revision-hash": "web-1", "pod-template-generation": "1"}
    stuck = pod("web-0", metadata={**owned(kind, "web"), "labels": older}, nodeSelector={"a": "b"})
    if kind == "DaemonSet":
        field = {"key": "metadata.name", "operator": "In", "values": ["n"]}
        node_terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        at(stuck, "spec")["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": node_terms},
        }
    result = why(tmp_path, "pod/web-0", newer, stuck)
    assert ("has a newer revision" in result.out) is bool(fix)
    assert f"fix       {fix.format(kind)}" in result.out
    shared = kschedx("simulate", "-s", "cluster.json", cwd=tmp_path)
    assert f"fix       {fix.format(kind)}" in " ".join(shared.out.split("\n"))
    whole = kschedx("why", f"{kind}/web", "-s", "cluster.json", cwd=tmp_path)
    assert (f"fix       {DELETED.format(kind)}" in whole.out) is (fix == DELETED)


def test_a_partition_counts_from_the_first_ordinal(tmp_path: Path) -> None:
    rolling: dict[str, Any] = {"updateStrategy": {"rollingUpdate": {"partition": 1}}, "ordinals": {"start": 5}}
    newer = {**workload("StatefulSet", replicas=2, **rolling), "status": {"updateRevision": "web-2"}}
    older, newest = replica("web-5", "StatefulSet", "web"), replica("web-6", "StatefulSet", "web")
    at(older, "metadata")["labels"] = {"controller-revision-hash": "web-1"}
    at(newest, "metadata")["labels"] = {"controller-revision-hash": "web-2"}
    result = why(tmp_path, "sts/web", newer, older, newest)
    kept = "default/sts/web keeps 1 pod of an earlier template: partition is 1, counted from ordinal 5"
    assert result.out.splitlines()[0].endswith(kept)
    pending = {**older, "spec": {**at(older, "spec"), "nodeName": "", "nodeSelector": {"a": "b"}}, "status": {}}
    assert f"fix       {LOWERED}" in why(tmp_path, "pod/web-5", newer, pending).out


@pytest.mark.parametrize(
    ("kind", "spec", "then"),
    [
        ("ReplicaSet", {}, "ReplicaSet web then creates another"),
        ("StatefulSet", {}, "StatefulSet web creates another once the node is back or removed"),
        ("Job", {}, "Job web then creates another"),
        ("Job", {"podReplacementPolicy": "Failed"}, "Job web creates another once the node is back or removed"),
    ],
)
def test_when_a_pod_on_an_unreachable_node_is_replaced(
    tmp_path: Path, kind: str, spec: dict[str, Any], then: str
) -> None:
    stays = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300}
    there = replica("web-0", kind, "web", on="m")
    at(there, "spec")["tolerations"] = [stays, {"operator": "Exists"}]
    limit = f"it is deleted 300 s after its node became unreachable, and {then}"
    assert limit in why(tmp_path, "pod/web-0", LOST, workload(kind, **spec), there).out
    at(there, "spec")["tolerations"] = [{"operator": "Exists"}, stays]
    assert "so that it is not evicted" in why(tmp_path, "pod/web-0", LOST, workload(kind, **spec), there).out


@pytest.mark.parametrize(("kind", "has_fix"), [("DaemonSet", True), ("ReplicaSet", False)])
def test_a_daemon_set_is_kept_off_virtual_nodes(tmp_path: Path, kind: str, *, has_fix: bool) -> None:
    virtual = node("v", labels={"type": "virtual-kubelet"})
    status = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    agent = pod("agent-1", on="v", metadata=owned(kind, "agent"), status=status)
    fixes = json.loads(why(tmp_path, "pod/agent-1", virtual, agent, output="json").out)["fixes"]
    title = (
        "keep DaemonSet agent off nodes of Virtual Kubelet: require type NotIn [virtual-kubelet] in its nodeAffinity"
    )
    assert [fix["title"] for fix in fixes] == [title] * has_fix


@pytest.mark.parametrize(("spec", "waits"), [({}, False), ({"podReplacementPolicy": "Failed"}, True)])
def test_a_job_that_waits_for_a_terminating_pod(tmp_path: Path, spec: dict[str, Any], *, waits: bool) -> None:
    ending = replica("web-0", "Job", "web")
    at(ending, "metadata")["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    out = why(tmp_path, "job/web", workload("Job", **spec), ending).out
    assert out.startswith("✗ default/web-0 is being deleted" if waits else "✓ default/web-")
    then = "Job web creates another pod once it has terminated (podReplacementPolicy Failed)"
    assert (then in out) == waits


@pytest.mark.parametrize(
    ("job", "headline"),
    [
        (ended("Complete", ""), "default/job/web has finished: Complete"),
        (workload("Job", suspend=True), "default/job/web is suspended"),
        (workload("Job"), "default/job/web gets no new pods: kube-controller-manager does not run"),
    ],
)
def test_a_job_that_needs_no_pod_does_not_wait_for_its_controller(tmp_path: Path, job: Manifest, headline: str) -> None:
    assert headline in why(tmp_path, "job/web", static("kube-controller-manager"), job).out.splitlines()[0]


@pytest.mark.parametrize(("created", "is_refused"), [("2026-01-01T00:05:00Z", True), ("2026-01-01T00:20:00Z", False)])
def test_a_job_with_completed_pods_lacks_those_that_are_left(tmp_path: Path, created: str, is_refused: bool) -> None:
    message = (
        'Error creating: pods "web-x" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=0, limited: cpu=0'
    )
    event = {**reports("Job", "web", "FailedCreate", message), "lastTimestamp": "2026-01-01T00:10:00Z"}
    job = {**workload("Job", parallelism=3, completions=3), "status": {"succeeded": 2}}
    done = [
        pod(f"web-{n}", on="n", metadata={**owned("Job", "web"), "creationTimestamp": created}, status={"phase": phase})
        for n, phase in enumerate(["Succeeded", "Succeeded"])
    ]
    result = why(tmp_path, "job/web", job, event, *done)
    assert ("default/job/web gets no other pods: ResourceQuota refuses them" in result.out) is is_refused
    assert ("raise cpu from 0 to 1 in ResourceQuota q" in result.out) is is_refused
    every = kschedx("why", "--all-pending", "-s", "cluster.json", cwd=tmp_path)
    assert ("1 pod is not created" in every.out) is is_refused


@pytest.mark.parametrize("strategy", ["Recreate", "RollingUpdate"])
def test_recreate_deletes_all_old_pods_first(tmp_path: Path, strategy: str) -> None:
    web = workload("Deployment", replicas=1, strategy={"type": strategy})
    old = workload("ReplicaSet", "web-old", metadata=owned("Deployment", "web"), replicas=0)
    going = replica("web-old-x", "ReplicaSet", "web-old")
    at(going, "metadata")["deletionTimestamp"] = SINCE
    result = why(tmp_path, "deploy/web", web, old, going)
    waits = "Deployment web creates its new pods once the old ones are gone (strategy Recreate)"
    assert (result.code, waits in result.out) == ((1, True) if strategy == "Recreate" else (0, False))


@pytest.mark.parametrize("in_file", [False, True], ids=["stored", "file"])
@pytest.mark.parametrize(
    ("strategy", "old_image", "taint", "waits"),
    [
        ("Recreate", "web:1", "unreachable", True),
        ("Recreate", "web:1", "out-of-service", False),
        ("Recreate", "web:2", "unreachable", False),
        ("RollingUpdate", "web:1", "unreachable", False),
    ],
    ids=["lost", "out of service", "same template", "RollingUpdate"],
)
def test_recreate_waits_for_old_pods_on_lost_nodes(
    tmp_path: Path, strategy: str, old_image: str, taint: str, *, in_file: bool, waits: bool
) -> None:
    def web(image: str, kind: str = "Deployment", name: str = "web", **changes: Any) -> Manifest:
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": image}]}}
        return workload(kind, name, template=template, **changes)

    changed = web("web:2", replicas=2, strategy={"type": strategy})
    stored = web(old_image, replicas=2, strategy={"type": strategy}) if in_file else changed
    old = web(old_image, "ReplicaSet", "web-old", metadata=owned("Deployment", "web"), replicas=2 if in_file else 0)
    lost = node("m", taints=["node.kubernetes.io/unreachable:NoSchedule", f"node.kubernetes.io/{taint}:NoExecute"])
    kept = [replica(f"web-old-{name}", "ReplicaSet", "web-old", on="m") for name in "xy"]
    for each in () if in_file else kept:
        at(each, "metadata")["deletionTimestamp"] = SINCE
    (tmp_path / "web.json").write_text(json.dumps(changed))
    result = why(tmp_path, "web.json" if in_file else "deploy/web", stored, old, lost, *kept)
    headline = "default/deploy/web gets no new pods: its rollout waits for web-old-x and web-old-y on unreachable m"
    assert (headline in result.out) is waits
    if waits:
        assert result.code == 1
        assert "force the deletion of web-old-x and web-old-y if node m is gone for good" in result.out
        assert "kubectl delete pod web-old-y -n default --force --grace-period=0" in result.out
        assert "repair m, or delete the node if its machine is gone" in result.out
    every = kschedx("why", "--all-pending", "-s", "cluster.json", cwd=tmp_path)
    assert ("2 pods are waiting for old pods" in every.out) is (waits and not in_file)


def test_a_pod_that_follows_a_pending_one_names_it(tmp_path: Path) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    ahead = pod("db", metadata={"labels": {"app": "db"}}, nodeSelector={"a": "b"})
    result = why(tmp_path, "pod/x", ahead, pod("x", affinity=near))
    assert "podAffinity term 1 selects default/db, which has no node itself" in result.out
    assert "fix 1     make room for default/db first" in result.out
    there = pod("db", on="n", metadata={"labels": {"app": "db"}})
    assert (
        "selects default/db" not in why(tmp_path, "pod/x", there, pod("x", affinity=near, nodeSelector={"a": "b"})).out
    )


@pytest.mark.parametrize(
    ("host", "says"),
    [
        (node("m"), "fix 1     wait until default/gone, which the quota counts, is gone · not tried"),
        (
            LOST,
            "fix 1     force-delete default/gone: the kubelet of m does not answer, and the quota counts it",
        ),
    ],
)
def test_a_quota_waits_for_pods_that_are_being_deleted(tmp_path: Path, host: Manifest, says: str) -> None:
    quota = {**QUOTA, "spec": {"hard": {"pods": "1"}}, "status": {"hard": {"pods": "1"}, "used": {"pods": "1"}}}
    report = "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    stuck = {**REPLICA_SET, "status": {"conditions": [{**FAILURE, "message": report}]}}
    deleted = {"deletionTimestamp": "2026-07-01T00:00:00Z", "deletionGracePeriodSeconds": 30, "namespace": "default"}
    gone = pod("gone", on="m", metadata={**deleted, **owned("ReplicaSet", "web-1")})
    result = why(tmp_path, "deploy/web", workload("Deployment"), stuck, quota, gone, host)
    assert says in result.out
    assert "maxSurge" not in result.out


def test_a_rollout_that_a_quota_stops_can_use_max_unavailable(tmp_path: Path) -> None:
    report = "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    full = {**SURGE, "status": {"conditions": [{**FAILURE, "message": report}]}}
    result = why(tmp_path, "deploy/web", workload("Deployment"), full, OLD, replica("web-0-a", "ReplicaSet", "web-0"))
    assert "set maxSurge: 0" in result.out


@pytest.mark.parametrize(
    ("new", "raised", "is_enough_without_surge"), [("1", "3", True), ("2", "5", False), ("500m", "2500m", True)]
)
def test_a_quota_has_room_for_the_whole_rollout(
    tmp_path: Path, new: str, raised: str, *, is_enough_without_surge: bool
) -> None:
    """Two old pods request 1 CPU each. A larger new pod is created beside the last old one."""
    amounts = {"requests.cpu": "2"}
    named = {"name": "q", "namespace": "default"}
    quota = {**QUOTA, "metadata": named, "spec": {"hard": amounts}, "status": {"hard": amounts, "used": amounts}}
    asks = [{"name": "app", "resources": {"requests": {"cpu": new}}}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": asks}}
    refusal = f"exceeded quota: q, requested: requests.cpu={new}, used: requests.cpu=2, limited: requests.cpu=2"
    stuck = {**SURGE, "status": {"conditions": [{**FAILURE, "message": refusal}]}}
    stuck["spec"] = {**at(SURGE, "spec"), "template": template}
    small = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]}
    old = [pod(f"web-0-{at}", on="n", metadata=owned("ReplicaSet", "web-0"), spec=small) for at in "ab"]
    result = why(tmp_path, "deploy/web", workload("Deployment", replicas=2, template=template), stuck, OLD, *old, quota)
    assert f"raise requests.cpu from 2 to {raised} in ResourceQuota q" in result.out
    assert ("set maxSurge: 0" in result.out) is is_enough_without_surge


@pytest.mark.parametrize(("containers", "fix"), STARTS)
def test_a_pod_that_does_not_start_has_its_fix(tmp_path: Path, containers: list[Manifest], fix: str) -> None:
    starting = kubelet(containerStatuses=containers)
    at(starting, "spec").update(SMALL)
    document = json.loads(why(tmp_path, "pod/web-0", starting, output="json").out)
    assert document["fixes"][0]["title"].startswith(fix)


def test_the_image_of_a_volume_that_cannot_be_pulled(tmp_path: Path) -> None:
    starting = kubelet(containerStatuses=waiting("ErrImagePull", 'Failed to pull image "models:1": not found'))
    at(starting, "spec").update({**SMALL, "volumes": [{"name": "m", "image": {"reference": "models:1"}}]})
    out = why(tmp_path, "pod/web-0", starting).out
    assert out.startswith("‖ default/web-0 is scheduled to n and cannot pull the image of volume m: ErrImagePull")
    assert "correct the image models:1" in out


def test_a_device_that_its_kubelet_reports_as_unhealthy(tmp_path: Path) -> None:
    health = [{"name": "nvidia.com/gpu", "resources": [{"resourceID": "gpu-7", "health": "Unhealthy"}]}]
    crashing = {**waiting("CrashLoopBackOff", "back-off 5m0s")[0], "allocatedResourcesStatus": health}
    starting = kubelet(containerStatuses=[crashing])
    at(starting, "spec").update(SMALL)
    out = why(tmp_path, "pod/web-0", starting).out
    assert "device gpu-7 (nvidia.com/gpu) is unhealthy" in out
    assert "fix 1     delete the pod, so that its next one gets a healthy device" in out


CLAIM: Manifest = {"claimName": "d"}
USING: Manifest = {"volumes": [{"name": "d", "persistentVolumeClaim": CLAIM}]}
GONE: Manifest = {"deletionTimestamp": SINCE}
ELSEWHERE: list[tuple[bool, Manifest, str]] = [
    (False, GONE, "taint node m out of service, if it is shut down"),
    (True, GONE, "wait until default/old on m has terminated"),
    (True, {}, "delete default/old on m, which uses the volume"),
]


@pytest.mark.parametrize(
    ("kind", "fix"),
    [
        ("StatefulSet", "scale StatefulSet default/old to 0, which removes default/old-0 and default/old-1"),
        ("Job", "wait until Job old ends, which uses the volume on m"),
    ],
)
def test_the_workload_that_uses_the_volume_ends(tmp_path: Path, kind: str, fix: str) -> None:
    """Its controller would recreate a deleted pod."""
    event = reports("Pod", "web-0", "FailedAttachVolume", 'Multi-Attach error for volume "v"')
    starting = kubelet(containerStatuses=waiting("ContainerCreating"))
    at(starting, "spec").update(USING)
    holders = [pod(f"old-{number}", on="m", metadata=owned(kind, "old"), spec=USING) for number in range(2)]
    result = why(tmp_path, "pod/web-0", starting, event, node("m"), workload(kind, "old"), *holders, output="json")
    titles = [fix["title"] for fix in json.loads(result.out)["fixes"]]
    assert titles == [fix, "run both pods on one node, or use a claim with ReadWriteMany"]


def test_running_pods_that_are_not_ready_are_examined(tmp_path: Path) -> None:
    result = why(tmp_path, "sts/web", workload("StatefulSet", replicas=3), UNREADY, output="json")
    [fix] = json.loads(result.out)["fixes"]
    assert fix["title"] == "find out why web-0 is not ready"


@pytest.mark.parametrize("is_expired", [False, True])
@pytest.mark.parametrize(("is_ready", "metadata", "fix"), ELSEWHERE)
def test_a_volume_is_detached_first(
    tmp_path: Path, is_ready: bool, metadata: Manifest, fix: str, is_expired: bool
) -> None:
    event = reports("Pod", "web-0", "FailedAttachVolume", 'Multi-Attach error for volume "v"')
    event = claim("d", volume="v") if is_expired else event
    starting = kubelet(containerStatuses=waiting("ContainerCreating"))
    at(starting, "spec").update(USING)
    other = node("m")
    at(other, "status")["conditions"] = [{"type": "Ready", "status": "True" if is_ready else "Unknown"}]
    document = json.loads(
        why(
            tmp_path,
            "pod/web-0",
            starting,
            event,
            other,
            pod("old", on="m", metadata=metadata, spec=USING),
            output="json",
        ).out
    )
    assert document["fixes"][0]["title"].startswith(fix)


SILENT: Manifest = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}


def test_an_image_for_another_architecture_restricts_the_daemon_set(tmp_path: Path) -> None:
    arms = [node(name, labels={"kubernetes.io/arch": arch}) for name, arch in (("arm", "arm64"), ("amd", "amd64"))]
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": "exec format error"}}
    status = {"containerStatuses": [{**waiting("CrashLoopBackOff")[0], "lastState": ended}]}
    crashes = replica("agent-x", "DaemonSet", "agent", on="arm", ready=False, **status)
    document = json.loads(why(tmp_path, "pod/agent-x", *arms, crashes, output="json").out)
    fix = "require kubernetes.io/arch=amd64 in the pod template: it then runs on no other node"
    assert document["fixes"][0]["title"] == fix


def test_a_daemon_set_of_another_operating_system_skips_the_node(tmp_path: Path) -> None:
    systems = [node(name, labels={"kubernetes.io/os": name}) for name in ("linux", "windows")]
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {**SMALL, "os": {"name": "linux"}}}
    agent = workload("DaemonSet", "agent", template=template)
    document = json.loads(why(tmp_path, "ds/agent", *systems, agent, output="json").out)
    fix = "require kubernetes.io/os=linux in the pod template: it then runs on no other node"
    assert [each["title"] for each in document["fixes"]] == [fix]


def test_a_label_lets_a_daemon_set_with_a_host_port_run(tmp_path: Path) -> None:
    container = {"name": "main", "image": "a", "ports": [{"containerPort": 80, "hostPort": 80}]}
    spec = {"nodeSelector": {"lb": "true"}, "containers": [container]}
    agent = workload("DaemonSet", "agent", template={"metadata": {"labels": {"app": "agent"}}, "spec": spec})
    out = why(tmp_path, "ds/agent", agent).out
    assert "label n lb=true" in out
    assert "stays pending" not in out


def test_a_replica_on_another_node_that_cannot_start(tmp_path: Path) -> None:
    host, system = "kubernetes.io/hostname", "kubernetes.io/os"
    systems = [node(name, labels={host: name, system: name}) for name in ("linux", "windows")]
    image = "mcr.microsoft.com/windows/servercore/iis:ltsc2022"
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    (tmp_path / "web.json").write_text(json.dumps(workload("Deployment", replicas=2, template=template)))
    (tmp_path / "cluster.json").write_text(
        json.dumps({"kind": "List", "items": [*systems, pod("other", on="linux", spec=SMALL)]})
    )
    result = kschedx("why", "web.json", "-s", "cluster.json", cwd=tmp_path, columns=400)
    assert result.code == 1
    assert result.out.startswith("✗ default/deploy/web: both replicas have room, but 1 does not start")
    assert "fits linux, but cannot start there" in result.out
    assert kschedx("simulate", "-f", "web.json", "-s", "cluster.json", cwd=tmp_path).code == 1


@pytest.mark.parametrize(
    ("spec", "is_meant"),
    [({}, True), ({"os": {"name": "windows"}}, False), ({"nodeSelector": {"kubernetes.io/os": "windows"}}, False)],
)
def test_a_sandbox_fails_on_a_windows_node_that_the_pod_does_not_select(
    tmp_path: Path, spec: Manifest, *, is_meant: bool
) -> None:
    key, message = "kubernetes.io/os", "Failed to create pod sandbox: hcs::CreateComputeSystem web: The container"
    status = {"phase": "Pending", "containerStatuses": waiting("ContainerCreating")}
    stuck = pod("web", on="win", spec={**SMALL, **spec}, status=status)
    nodes = [node("win", labels={key: "windows"}), node("lin", labels={key: "linux"})]
    out = why(tmp_path, "pod/web", *nodes, stuck, reports("Pod", "web", "FailedCreatePodSandBox", message)).out
    assert ("require kubernetes.io/os=linux, if the image is not built for windows" in out) is is_meant


def test_a_node_that_fits_and_cannot_start_the_pod(tmp_path: Path) -> None:
    windows = node("windows", labels={"kubernetes.io/os": "windows"})
    why(tmp_path, "pod/web", windows, pod("web", spec={**SMALL, "os": {"name": "linux"}}))
    view = kschedx("why", "pod/web", "-s", "cluster.json", "--node", "windows", cwd=tmp_path, columns=400).out
    assert view.startswith("✗ windows: default/web fits, but cannot start there: spec.os is linux")


def test_no_pod_tolerates_the_cordon_of_a_node_with_its_architecture(tmp_path: Path) -> None:
    arm = node("arm", labels={"kubernetes.io/arch": "arm64"})
    cordon = ["node.kubernetes.io/unschedulable:NoSchedule", "team=a:NoSchedule"]
    amd = node("amd", labels={"kubernetes.io/arch": "amd64"}, taints=cordon, unschedulable=True)
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": "exec format error"}}
    status = {"containerStatuses": [{**waiting("CrashLoopBackOff")[0], "lastState": ended}]}
    crashes = replica("web-1-x", "ReplicaSet", "web-1", on="arm", ready=False, **status)
    crashes["spec"] = {**at(crashes, "spec"), **SMALL}
    out = " ".join(why(tmp_path, "pod/web-1-x", arm, amd, crashes).out.split())
    assert "require kubernetes.io/arch=amd64 and tolerate team=a:NoSchedule: the image is not built for arm64" in out
    assert "then uncordon amd" in out
    assert "unschedulable:NoSchedule" not in out
    assert out.index("require kubernetes.io/arch") < out.index("use an image")


@pytest.mark.parametrize(
    ("nodes", "metadata", "fix"),
    [
        ([], {}, "delete VolumeAttachment a of volume v to m, which does not exist"),
        ([], GONE, "remove the finalizer of Volume"),
        ([{**node("m"), "status": {"conditions": [SILENT]}}], {}, "repair m, or taint it out of service if it is shut"),
    ],
)
def test_an_attachment_to_a_lost_node_is_named(
    tmp_path: Path, nodes: list[Manifest], metadata: Manifest, fix: str
) -> None:
    starting = kubelet(containerStatuses=waiting("ContainerCreating"))
    at(starting, "spec").update(USING)
    claim: Manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"volumeName": "v"}}
    attachment: Manifest = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": "a", **metadata},
        "spec": {"attacher": "x", "nodeName": "m", "source": {"persistentVolumeName": "v"}},
    }
    event = reports("Pod", "web-0", "FailedAttachVolume", 'Multi-Attach error for volume "v"')
    objects = (*nodes, starting, {**claim, "metadata": {"name": "d", "namespace": "default"}}, attachment, event)
    document = json.loads(why(tmp_path, "pod/web-0", *objects, output="json").out)
    assert document["fixes"][0]["title"].startswith(fix)


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        ([], "repair what answers for webhook v.x: service policy/svc; policy/v-0 is not ready"),
        (
            [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 x."}],
            "find a node for policy/v-0 first, which serves webhook v.x: 0/1 nodes are available: 1 x",
        ),
    ],
)
def test_the_pods_behind_a_webhook_are_named(tmp_path: Path, conditions: list[Manifest], says: str) -> None:
    report = 'failed calling webhook "v.x": failed to call webhook: Post "https://svc.policy.svc:443/v": no endpoints'
    condition = {**FAILURE, "message": report}
    stuck = {**REPLICA_SET, "status": {"conditions": [condition]}}
    backend = pod("v-0", metadata={"namespace": "policy"}, status={"phase": "Pending", "conditions": conditions})
    result = why(tmp_path, "deploy/web", workload("Deployment", replicas=2), stuck, backend)
    assert says in result.out


@pytest.mark.parametrize(
    ("replicas", "selector", "says"),
    [
        (0, {"app": "hook"}, "service policy/svc; Deployment hook has 0 replicas"),
        (0, {"app": "other"}, "service policy/svc"),
        (1, {"app": "hook"}, "service policy/svc"),
    ],
)
def test_the_workload_behind_a_webhook_has_no_replicas(
    tmp_path: Path, replicas: int, selector: Manifest, says: str
) -> None:
    report = 'failed calling webhook "v.x": failed to call webhook: Post "https://svc.policy.svc:443/v": no endpoints'
    stuck = {**REPLICA_SET, "status": {"conditions": [{**FAILURE, "message": report}]}}
    hook = workload("Deployment", "hook", metadata={"namespace": "policy"}, replicas=replicas)
    service: Manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc", "namespace": "policy"}}
    service["spec"] = {"selector": selector}
    result = why(tmp_path, "deploy/web", workload("Deployment", replicas=2), stuck, hook, service)
    assert f"repair what answers for webhook v.x: {says} · not tried" in result.out


def test_a_pod_whose_volume_is_not_provisioned_is_not_bound(tmp_path: Path) -> None:
    claim: Manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "d", "namespace": "default"},
    }
    spec: Manifest = {
        "storageClassName": "late",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    late: Manifest = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"}}
    late |= {"provisioner": "disk.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    csi_node: Manifest = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n"},
        "spec": {"drivers": []},
    }
    failed = reports("PersistentVolumeClaim", "d", "ProvisioningFailed", "it is slow")
    slow = reports("Pod", "x", "FailedScheduling", 'running PreBind plugin "VolumeBinding": timed out')
    objects = ({**claim, "spec": spec}, late, csi_node, pod("x", spec=USING))
    for events in ([failed, slow], [slow], [failed]):
        result = why(tmp_path, "pod/x", *objects, *events)
        assert (result.code, result.out.partition(";")[0]) == (
            1,
            "✗ default/x is not bound: claim default/d waits for its volume",
        )
        assert ("it is slow" in result.out, "timed out" in result.out) == (failed in events, slow in events)
        assert "fix       repair disk.example.com" in result.out
    early = 'running PreFilter plugin "VolumeBinding": error getting PVC: could not find it'
    assert "not bound" not in why(tmp_path, "pod/x", *objects, reports("Pod", "x", "FailedScheduling", early)).out
    at(failed, "involvedObject")["uid"] = "of-an-earlier-claim"
    at(claim, "metadata")["uid"] = "of-this-claim"
    assert why(tmp_path, "pod/x", *objects, failed).out.startswith("✓ default/x")


SLOW_CLAIM = [
    *(claim("d", storage_class="late"), storage_class("late", provisioner="disk.example.com"), csi_node("n")),
    reports("PersistentVolumeClaim", "d", "ProvisioningFailed", "disk full"),
]


@pytest.mark.parametrize(
    ("volumes", "sentence"),
    [
        (("d", "d"), "both replicas have room, but do not start"),
        (("d", "none"), "both replicas have room, but 1 does not start"),
        (("none", "none"), "both replicas can be scheduled"),
    ],
)
def test_replicas_whose_claim_waits_for_its_volume(tmp_path: Path, volumes: tuple[str, str], sentence: str) -> None:
    pods = [
        pod(f"web-{number}", metadata=owned("ReplicaSet", "web"), spec=USING if volume == "d" else SMALL)
        for number, volume in enumerate(volumes)
    ]
    result = why(tmp_path, "rs/web", *SLOW_CLAIM, workload("ReplicaSet", replicas=2), *pods)
    assert f"default/rs/web: {sentence}\n" in result.out
    is_stuck = "d" in volumes
    assert (result.code, "disk.example.com reports: ProvisioningFailed: disk full" in result.out) == (
        is_stuck,
        is_stuck,
    )


def test_a_new_pod_whose_claim_waits_for_its_volume(tmp_path: Path) -> None:
    (tmp_path / "pod.json").write_text(json.dumps(pod("new", spec={**SMALL, **USING})))
    result = why(tmp_path, "pod.json", *SLOW_CLAIM)
    assert (result.code, result.out.partition(";")[0]) == (
        1,
        "✗ default/new is not bound: claim default/d waits for its volume",
    )


@pytest.mark.parametrize(
    ("selector", "metadata", "code", "headline"),
    [
        ({}, GONE, 0, "fits 1 eligible node"),
        ({}, {**GONE, "finalizers": ["x.io/f"]}, 1, "fits 0 of 1 eligible node; 1 pod is being deleted"),
        (
            {"nodeSelector": {"a": "b"}},
            {**GONE, "finalizers": ["x.io/f"]},
            1,
            "does not select the only node",
        ),
    ],
)
def test_a_pod_of_a_daemon_set_whose_deletion_is_blocked(
    tmp_path: Path, selector: Manifest, metadata: Manifest, code: int, headline: str
) -> None:
    agents = workload("DaemonSet", template={"metadata": {"labels": {"app": "web"}}, "spec": {**SMALL, **selector}})
    going = pod("web-0", on="n", metadata={**owned("DaemonSet", "web"), **metadata}, spec=SMALL)
    result = why(tmp_path, "ds/web", agents, going)
    assert (result.code, headline in result.out) == (code, True)
    assert ("finalizer x.io/f: the object stays" in result.out) is ("finalizers" in metadata)
    assert ("fix       remove finalizer x.io/f" in result.out) is ("finalizers" in metadata and not selector)


@pytest.mark.parametrize("others", [("--node", "n"), ("pod/other",), ("pod/other", "--alone")])
def test_a_blocked_deletion_is_in_every_answer_about_the_daemon_set(tmp_path: Path, others: Sequence[str]) -> None:
    agents = workload("DaemonSet", template={"metadata": {"labels": {"app": "web"}}, "spec": SMALL})
    held: Manifest = {**owned("DaemonSet", "web"), **GONE, "finalizers": ["x.io/f"]}
    objects = [node("n"), agents, pod("web-0", on="n", metadata=held, spec=SMALL), pod("other", spec=SMALL)]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    result = kschedx("why", "ds/web", *others, "-s", "cluster.json", cwd=tmp_path, columns=400)
    assert (result.code, "being deleted" in result.out.splitlines()[0]) == (1, True), result.out
    assert "remove finalizer x.io/f" in result.out


@pytest.mark.parametrize(("count", "code"), [(1, 0), (40, 1)])
def test_a_claim_whose_driver_may_not_run(tmp_path: Path, count: int, code: int) -> None:
    """kube-controller-manager reports a claim that waits for its driver every 15 seconds."""
    waits = reports("PersistentVolumeClaim", "d", "ExternalProvisioning", "Waiting for a volume")
    result = why(tmp_path, "pod/x", *SLOW_CLAIM[:-1], {**waits, "count": count}, pod("x", spec=USING))
    assert result.code == code
    assert ("kube-controller-manager reports: ExternalProvisioning: Waiting" in result.out) is bool(code)
    assert ("install or repair disk.example.com, so that it provisions" in result.out) is bool(code)
    both = why(tmp_path, "pod/x", *SLOW_CLAIM, {**waits, "count": 40}, pod("x", spec=USING))
    assert "disk.example.com reports: ProvisioningFailed: disk full" in both.out


def test_pods_of_a_daemon_set_whose_claim_waits_for_its_volume(tmp_path: Path) -> None:
    on_n = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_n]}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**SMALL, **USING}}
    pending = pod("web-0", metadata=owned("DaemonSet", "web"), spec={**USING, "affinity": {"nodeAffinity": required}})
    result = why(tmp_path, "ds/web", *SLOW_CLAIM, workload("DaemonSet", template=template), pending)
    assert result.out.startswith("✗ DaemonSet default/web fits 0 of 1 eligible node; 1 pod cannot start")
    assert "repair disk.example.com, so that it provisions the volume for claim default/d · not tried" in " ".join(
        result.out.split()
    )


def test_a_queue_of_another_namespace_is_created(tmp_path: Path) -> None:
    elsewhere = changed(TEAM, "metadata.namespace", "prod")
    result = why(tmp_path, "job/web", IN_QUEUE, elsewhere)
    assert "fix       create LocalQueue team in namespace default, as prod has it" in result.out


def test_an_admission_check_that_failed_is_quoted(tmp_path: Path) -> None:
    result = why(tmp_path, "job/web", IN_QUEUE, TEAM, REJECTED_CHECK)
    assert "because   Admission check(s): dws, were rejected: dws: no capacity" in result.out


def test_an_autoscaler_whose_groups_are_not_in_the_dump_is_quoted(tmp_path: Path) -> None:
    message = "pod didn't trigger scale-up: 1 max node group size reached"
    result = why(
        tmp_path, "pod/x", pod("x", nodeSelector={"pool": "a"}), reports("Pod", "x", "NotTriggerScaleUp", message)
    )
    assert f"cluster-autoscaler reports: {message}" in result.out
    assert "fix 1     raise the maximum of the node group" in result.out
    result = why(
        tmp_path, "pod/x", pod("x", nodeSelector={"pool": "a"}), reports("Pod", "x", "TriggeredScaleUp", "[{g 1->2}]")
    )
    assert "fix 1     wait for cluster-autoscaler" in result.out
    failed = reports("Pod", "x", "FailedScaleUp", "Node scale up failed: GCE quota exceeded.")
    result = why(tmp_path, "pod/x", pod("x", nodeSelector={"pool": "a"}), failed)
    assert "fix 1     raise the quota of the cloud account" in result.out
    limited = reports(
        "Pod", "x", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max cluster memory limit reached"
    )
    result = why(tmp_path, "pod/x", pod("x", nodeSelector={"pool": "a"}), limited)
    assert "fix 1     raise the limit of memory for the whole cluster (--memory-total, or" in result.out


@pytest.mark.parametrize(("kind", "is_shared"), [("ReplicaSet", True), ("StatefulSet", False)])
def test_an_event_of_the_autoscaler_is_about_all_replicas(tmp_path: Path, kind: str, is_shared: bool) -> None:
    message = "pod didn't trigger scale-up: 1 max node group size reached"
    replicas = [pod(name, nodeSelector={"pool": "a"}, metadata=owned(kind, "web")) for name in ("x", "y")]
    result = why(tmp_path, "pod/y", *replicas, reports("Pod", "x", "NotTriggerScaleUp", message))
    assert (f"cluster-autoscaler reports: {message}" in result.out) is is_shared


@pytest.mark.parametrize(
    ("created", "sibling", "rejected"),
    [
        ("2026-01-02T00:01:00Z", "2026-01-01T00:00:00Z", True),
        ("2026-01-02T09:00:00Z", "2026-01-01T00:00:00Z", False),  # the cause may be gone
        ("2026-01-02T00:01:00Z", "2026-01-02T00:00:30Z", False),  # the kubelet accepted the next one
    ],
)
def test_a_kubelet_that_rejected_earlier_pods(tmp_path: Path, created: str, sibling: str, rejected: bool) -> None:
    def at_time(item: Manifest, time: str) -> Manifest:
        return {**item, "metadata": {**at(item, "metadata"), "creationTimestamp": time}}

    *workloads, running, failed = ON_FULL_NODE
    pods = [at_time(running, sibling), at_time(failed, SINCE)]
    pending = at_time(pod("web-1-c", metadata=owned("ReplicaSet", "web-1")), created)
    assert why(tmp_path, "pod/web-1-c", *workloads, *pods, pending).code == int(rejected)


def test_a_node_group_without_template_that_is_backed_off_is_named(tmp_path: Path) -> None:
    status = """{autoscalerStatus: Running, nodeGroups: [{name: g, health: {status: Healthy, cloudProviderTarget: 0,
        minSize: 0, maxSize: 3}, scaleUp: {status: Backoff, backoffInfo: {errorCode: OutOfResources}}}]}"""
    message = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    marked = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    asking = pod("x", nodeSelector={"pool": "a"}, status=marked)
    result = why(
        tmp_path, "pod/x", asking, autoscaler_status(status), reports("Pod", "x", "NotTriggerScaleUp", message)
    )
    assert "let node group g use other instance types or zones, or add another: OutOfResources" in result.out
    assert "no fix" not in result.out


def test_a_gang_lacks_a_pod_that_is_refused(tmp_path: Path) -> None:
    group: Manifest = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": 2},
    }
    member = pod("x", metadata={**owned("Job", "g"), "labels": {"scheduling.x-k8s.io/pod-group": "g"}})
    enabled = "enabled: [{name: Coscheduling}]"
    plugins = f"multiPoint: {{{enabled}}}, queueSort: {{{enabled}, disabled: [{{name: '*'}}]}}"
    config = f"profiles: [{{plugins: {{{plugins}}}}}]\n"
    (tmp_path / "config.yaml").write_text(
        f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{config}"
    )
    why(tmp_path, "pod/x", group, member, reports("Job", "g", "FailedCreate", "Error creating: exceeded quota"))
    result = kschedx("why", "pod/x", "-s", "cluster.json", "--config", "config.yaml", cwd=tmp_path, columns=400)
    assert "Job g cannot create the others: exceeded quota" in result.out
    assert "no fix    pod group default/g needs 1 more pod" in result.out


def test_a_gang_out_of_the_queue_lacks_a_pod_that_is_refused(tmp_path: Path) -> None:
    group: Manifest = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    member = pod("x", metadata={**owned("Job", "g"), "uid": "x"}, schedulingGroup={"podGroupName": "g"})
    gates = ("--feature-gate", "GenericWorkload=true", "--feature-gate", "GangScheduling=true")
    why(tmp_path, "pod/x", group, member, reports("Job", "g", "FailedCreate", "Error creating: exceeded quota"))
    result = kschedx("why", "pod/x", "-s", "cluster.json", *gates, cwd=tmp_path, columns=400)
    assert "Job g cannot create the others: exceeded quota" in result.out


def test_a_finalizer_is_named(tmp_path: Path) -> None:
    metadata = {"deletionTimestamp": SINCE, "finalizers": ["example.com/backup"]}
    result = why(tmp_path, "pod/x", pod("x", on="n", metadata=metadata))
    assert "finalizer example.com/backup" in result.out.splitlines()[1]
    assert "kubectl patch pod x" in result.out


@pytest.mark.parametrize(
    ("api", "kind", "spec", "field"),
    [
        ("jobset.x-k8s.io/v1alpha2", "JobSet", {"suspend": True, "replicatedJobs": []}, "spec.suspend"),
        ("kubeflow.org/v1", "PyTorchJob", {"runPolicy": {"suspend": True}}, "spec.runPolicy.suspend"),
    ],
)
def test_a_custom_resource_is_suspended(tmp_path: Path, api: str, kind: str, spec: Manifest, field: str) -> None:
    template = {"spec": {**SMALL, "restartPolicy": "Never"}}
    pods: dict[str, Manifest] = {
        "JobSet": {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"template": template}}}]},
        "PyTorchJob": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}},
    }
    manifest = {"apiVersion": api, "kind": kind, "metadata": {"name": "t"}, "spec": {**spec, **pods[kind]}}
    (tmp_path / "t.json").write_text(json.dumps(manifest))
    result = why(tmp_path, "t.json")
    assert result.code == 1
    assert result.out.startswith(f"✗ default/{kind.lower()}/t is suspended: {field} is true")


@pytest.mark.parametrize(
    ("seconds", "available", "reads"),
    [
        (600, 0, "✗ default/sts/web: web-1 is not created, because web-0 has been ready for less than 600 s"),
        (600, 1, "✓ default/web-1 would be assigned"),
        (0, 0, "✓ default/web-1 would be assigned"),
    ],
    ids=["not yet available", "available", "without minReadySeconds"],
)
def test_an_ordinal_is_created_once_the_one_before_is_available(
    tmp_path: Path, seconds: int, available: int, reads: str
) -> None:
    status = {"readyReplicas": 1, "availableReplicas": available}
    waiting = {**workload("StatefulSet", replicas=2, minReadySeconds=seconds), "status": status}
    result = why(tmp_path, "sts/web", waiting, replica("web-0", "StatefulSet", "web"))
    assert result.out.startswith(reads)
    after = "a pod is created after web-0 on n has been ready for minReadySeconds 600"
    assert (after in result.out) is (result.code == 1)


def test_an_earlier_ordinal_on_a_lost_node_has_both_fixes(tmp_path: Path) -> None:
    terminating = {**owned("StatefulSet", "web"), "deletionTimestamp": SINCE}
    lost = {**node("lost"), "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    gone = pod("web-0", on="lost", metadata=terminating, status={"phase": "Running"})
    result = why(tmp_path, "sts/web", lost, workload("StatefulSet", replicas=2), gone)
    assert result.out.splitlines()[0].endswith("web-1 is not created, because web-0 is being deleted")
    assert "kubectl delete pod web-0 -n default --force --grace-period=0" in result.out
    assert "node.kubernetes.io/out-of-service" in result.out


EVICTIONS = [
    ("PreemptionByScheduler", "kube-scheduler preempts it on m for default/urgent (priority 9)"),
    ("DeletionByTaintManager", "evicted because it does not tolerate example.com/drain:NoExecute of m"),
    ("DeletionByDeviceTaintManager", "evicted because one of its claims does not tolerate a NoExecute taint"),
    ("EvictionByEvictionAPI", "evicted through the Eviction API"),
    ("DeletionByPodGC", "DeletionByPodGC: by a controller"),
]


@pytest.mark.parametrize(("reason", "cause"), EVICTIONS)
def test_a_terminating_pod_names_its_eviction_and_the_end_of_its_grace_period(
    tmp_path: Path, reason: str, cause: str
) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "by a controller"}
    metadata = {"deletionTimestamp": "2026-01-02T01:00:00Z", "deletionGracePeriodSeconds": 3600}
    victim = pod("x", on="m", metadata=metadata, status={"phase": "Running", "conditions": [condition]})
    urgent = pod("urgent", spec={**SMALL, "priority": 9}, status={"phase": "Pending", "nominatedNodeName": "m"})
    result = why(tmp_path, "pod/x", node("m", taints=["example.com/drain:NoExecute"]), victim, urgent)
    assert f"default/x is being deleted (since {SINCE})" in result.out.splitlines()[0]
    assert cause in result.out.splitlines()[1]
    assert "its containers are stopping on node m, by 2026-01-02T01:00:00Z at the latest" in result.out


def test_a_terminating_pod_whose_grace_period_ended_long_ago(tmp_path: Path) -> None:
    metadata = {"deletionTimestamp": "2026-01-02T01:00:00Z", "deletionGracePeriodSeconds": 30}
    late = pod("late", metadata={"creationTimestamp": "2026-01-02T02:00:00Z"})
    result = why(tmp_path, "pod/x", pod("x", on="n", metadata=metadata, status={"phase": "Running"}), late)
    assert "the kubelet of n has not confirmed its end, which was due by 2026-01-02T01:00:00Z" in result.out
    assert "repair the kubelet of n, or force the deletion once the pod's containers are gone" in result.out


def test_a_pod_that_is_being_deleted_is_not_taken_for_its_successor(tmp_path: Path) -> None:
    """Its Job creates another pod, of another name."""
    metadata = {**owned("Job", "web"), "deletionTimestamp": "2026-01-02T01:00:00Z"}
    old = pod("web-old", on="m", metadata=metadata, status={"phase": "Running"})
    lost = node("m", taints=["node.kubernetes.io/unreachable:NoExecute"])
    result = why(tmp_path, "job/web", workload("Job", podReplacementPolicy="Failed"), lost, old)
    assert "kubectl delete pod web-old -n default --force --grace-period=0" in result.out


@pytest.mark.parametrize(
    ("reason", "event", "cause"),
    [
        (
            "EvictionByEvictionAPI",
            ("Evicted", "karpenter", "Evicted pod: Drifted"),
            "by karpenter: Evicted pod: Drifted",
        ),
        (
            "PreemptionByScheduler",
            ("Preempted", "default-scheduler", "Preempted by pod u-1 on node m"),
            "default/urgent",
        ),
        ("PreemptionByScheduler", ("Preempted", "default-scheduler", "Preempted by pod u-2 on node m"), "another pod"),
    ],
)
@pytest.mark.parametrize(
    "ended",
    [{"metadata": {"deletionTimestamp": SINCE}, "status": {}}, {"metadata": {}, "status": {"phase": "Failed"}}],
)
def test_the_event_names_what_ended_a_pod(
    tmp_path: Path, reason: str, event: tuple[str, str, str], cause: str, ended: Manifest
) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "by a controller"}
    status = {"phase": "Running", **at(ended, "status"), "conditions": [condition]}
    victim = pod("x", on="m", metadata=at(ended, "metadata"), status=status)
    urgent = pod("urgent", on="m", spec={**SMALL, "priority": 9}, metadata={"uid": "u-1"})
    result = why(tmp_path, "pod/x", node("m"), victim, urgent, reports("Pod", "x", event[0], event[2], by=event[1]))
    assert cause in result.out.splitlines()[1]


@pytest.mark.parametrize("verb", ["drain", "cordon"])
def test_no_fix_reverts_the_change_of_the_question(tmp_path: Path, verb: str) -> None:
    only, waits = node("only", labels={"pool": "db"}), pod("x", spec={**SMALL, "nodeSelector": {"pool": "db"}})
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [only, node("n"), waits]}))
    result = kschedx("why", "pod/x", f"--{verb}", "only", "-s", "cluster.json", cwd=tmp_path, columns=400)
    assert "add a node like only" in result.out
    assert "uncordon" not in result.out


def test_a_lost_node_is_repaired_first_if_its_pod_fits_no_other(tmp_path: Path) -> None:
    lost = node("lost", taints=["node.kubernetes.io/unreachable:NoSchedule"])
    lost["status"] = {**at(lost, "status"), "conditions": [{"type": "Ready", "status": "Unknown"}]}
    gone = pod(
        "web-0",
        on="lost",
        metadata={**owned("StatefulSet", "web"), "deletionTimestamp": SINCE},
        status={"phase": "Running"},
        spec={**SMALL, "nodeSelector": {"pool": "db"}},
    )
    result = why(tmp_path, "pod/web-0", lost, gone)
    first, *others = re.findall(r"^ +(?:fix +)?\d +(.*)", result.out, re.MULTILINE)
    assert first.startswith("repair lost, or delete the node")
    assert others
    assert all("; then " in other and "lost" not in other.partition("; then ")[2] for other in others)


@pytest.mark.parametrize(
    ("autoscaler", "reads", "fix"),
    [
        (
            scaler("ScaledObject"),
            "ScaledObject scaler: no trigger is active, and minReplicaCount is 0",
            """kubectl patch scaledobject scaler -n default --type merge -p '{"spec":{"minReplicaCount":1}}'""",
        ),
        (
            scaler("ScaledObject", idleReplicaCount=0, minReplicaCount=2),
            "ScaledObject scaler: no trigger is active, and idleReplicaCount is 0",
            '{"spec":{"idleReplicaCount":null,"minReplicaCount":1}}',
        ),
        (
            scaler("ScaledObject", annotations={"autoscaling.keda.sh/paused": "true"}, minReplicaCount=2),
            "ScaledObject scaler: annotation autoscaling.keda.sh/paused is true",
            "kubectl annotate scaledobject scaler autoscaling.keda.sh/paused- -n default",
        ),
        (
            scaler("ScaledObject", annotations={"autoscaling.keda.sh/paused-replicas": "0"}),
            "ScaledObject scaler: annotation autoscaling.keda.sh/paused-replicas is 0",
            "kubectl annotate scaledobject scaler autoscaling.keda.sh/paused-replicas- -n default",
        ),
        (
            scaler("HorizontalPodAutoscaler", minReplicas=0),
            "HorizontalPodAutoscaler scaler: its metrics call for no pods, and minReplicas is 0",
            """kubectl patch horizontalpodautoscaler scaler -n default --type merge -p '{"spec":{"minReplicas":1}}'""",
        ),
        (
            scaler("ScaledObject", status=limits("Ready", "False", "ScaledObjectCheckFailed", "no queue")),
            "ScaledObject scaler: it is not ready: no queue",
            "fix 1 repair ScaledObject scaler",
        ),
        (
            scaler("ScaledObject", status=limits("Ready", "False", "ScaledObjectCheckFailed", "an idle queue")),
            "ScaledObject scaler: it is not ready: an idle queue",
            '{"spec":{"minReplicaCount":1}}',
        ),
        (
            scaler("HorizontalPodAutoscaler", minReplicas=1),
            ": spec.replicas is 0, which disables HorizontalPodAutoscaler scaler",
            "kubectl scale deployment/web -n default --replicas=1",
        ),
        (
            scaler("ScaledObject", minReplicaCount=1),
            ": spec.replicas is 0",
            "kubectl scale deployment/web -n default --replicas=1",
        ),
    ],
)
def test_the_autoscaler_that_keeps_a_workload_at_zero_is_named(
    tmp_path: Path, autoscaler: Manifest, reads: str, fix: str
) -> None:
    outcome = why(tmp_path, "deploy/web", workload("Deployment", replicas=0), autoscaler, output="json")
    result = json.loads(outcome.out)
    by = reads if reads.startswith(":") else f" by {reads}"
    assert (outcome.code, result["state"]["headline"]) == (0, f"default/deploy/web is scaled to zero{by}")
    screen = why(tmp_path, "deploy/web", workload("Deployment", replicas=0), autoscaler).out
    assert fix in " ".join(screen.replace("\\", "").split())


def test_an_operator_that_does_not_run_scales_nothing_up(tmp_path: Path) -> None:
    operator = pod("keda-operator-1", namespace="keda", labels={"app": "keda-operator"})
    unready = limits("Ready", "False", "", "")
    failing = pod("keda-operator-1", on="n", namespace="keda", labels={"app": "keda-operator"}, status=unready)
    for known, is_pending in ((operator, True), (failing, False)):
        out = why(tmp_path, "deploy/web", workload("Deployment", replicas=0), scaler("ScaledObject"), known).out
        assert "by ScaledObject scaler: keda-operator does not run: keda/keda-operator-1 " in " ".join(out.split())
        assert ("make room for keda/keda-operator-1 first" in out) is is_pending
        assert "minReplicaCount" not in out
        assert "repair ScaledObject" not in out


LATE: Manifest = {
    "type": "Progressing",
    "status": "False",
    "reason": "ProgressDeadlineExceeded",
    "message": 'ReplicaSet "web-1" has timed out progressing.',
}
STALLED: Manifest = {**workload("Deployment", replicas=1), "status": {"conditions": [LATE]}}


@pytest.mark.parametrize(
    ("pods", "state", "code"),
    [
        ([replica("web-1-x", "ReplicaSet", "web-1", ready=False)], "RolloutStalled", 0),
        (
            [replica("web-1-x", "ReplicaSet", "web-1", containerStatuses=waiting("ImagePullBackOff"), phase="Pending")],
            "WaitingForKubelet",
            0,
        ),
        ([pod("web-1-x", metadata=owned("ReplicaSet", "web-1"), nodeSelector={"disk": "ssd"})], "Unschedulable", 1),
    ],
)
def test_a_rollout_past_its_progress_deadline_is_named(
    tmp_path: Path, pods: list[Manifest], state: str, code: int
) -> None:
    objects = [STALLED, ROLLED_OUT, *pods]
    result = why(tmp_path, "deploy/web", *objects, output="json")
    assert (result.code, json.loads(result.out)["state"]["name"]) == (code, state)
    assert 'ReplicaSet "web-1" has timed out progressing.' in " ".join(
        why(tmp_path, "deploy/web", *objects).out.split()
    )


@pytest.mark.parametrize(
    ("gate", "by"),
    [
        ("target-health.elbv2.k8s.aws/web", "the AWS Load Balancer Controller"),
        ("example.com/gate", "its controller"),
    ],
)
def test_a_rollout_that_waits_for_a_readiness_gate(tmp_path: Path, gate: str, by: str) -> None:
    message = f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    unready = replica("web-1-x", "ReplicaSet", "web-1")
    at(unready, "status")["conditions"] = [{"type": "Ready", "status": "False", "message": message}]
    out = why(tmp_path, "deploy/web", STALLED, ROLLED_OUT, unready).out
    assert f"find out why {by} has not set condition {gate} of the new pods to True" in out


def test_a_job_without_its_queue_has_no_fix_of_a_pod(tmp_path: Path) -> None:
    out = why(tmp_path, "job/web", *OF_KUEUE[0][1]).out
    assert "instead of team · not tried" in out
    assert "recreate the pod" not in out


@pytest.mark.parametrize(
    ("is_ready", "seconds", "report"),
    [(False, 0, ": 1 pod is not ready"), (True, 60, " until its new pods have been ready for minReadySeconds 60")],
)
def test_a_rollout_waits_for_its_new_pods(tmp_path: Path, is_ready: bool, seconds: int, report: str) -> None:
    old: Manifest = {**OLD, "spec": {**at(OLD, "spec"), "template": {"spec": {"containers": [{"name": "old"}]}}}}
    pods = [replica("web-0-a", "ReplicaSet", "web-0"), replica("web-1-a", "ReplicaSet", "web-1", ready=is_ready)]
    result = why(tmp_path, "deploy/web", workload("Deployment", minReadySeconds=seconds), old, ROLLED_OUT, *pods)
    assert (result.code, result.out.splitlines()[0]) == (
        0,
        f"‖ default/deploy/web waits in its rollout{report}",
    )


PREEMPTED = pod(
    "web-x",
    on="n",
    metadata=owned("Job", "web"),
    status={"phase": "Failed", **limits("DisruptionTarget", "True", "PreemptionByScheduler", "preempting")},
)
UNALIGNED = pod(
    "web-x", on="n", metadata=owned("Job", "web"), status={"phase": "Failed", "reason": "TopologyAffinityError"}
)


@pytest.mark.parametrize(
    ("target", "objects", "fix"),
    [
        ("sts/web", NOT_ROLLED_OUT, "kubectl delete pod web-0 -n default"),
        ("deploy/web", ON_FULL_NODE, "free resources on n, or cordon it"),
        (
            "job/web",
            [JOB_SET, workload("Job", metadata=OF_JOB_SET, suspend=True)],
            "kubectl patch jobset/train -n default",
        ),
        ("rollout/web", [AT_PAUSE, *OF_ROLLOUT], "kubectl argo rollouts promote web -n default"),
        ("rollout/web", [ABORTED, *OF_ROLLOUT], "kubectl argo rollouts retry rollout web -n default"),
        ("pod/x", DEVICES_BY_HAND, "create the pod with nodeSelector kubernetes.io/hostname=n"),
        ("pod/x", BY_HAND, "create the pod with nodeSelector kubernetes.io/hostname=n instead of spec.nodeName"),
        ("sts/web", [workload("StatefulSet", replicas=2), CRASHES], "kubectl logs web-0 -n default -c app --previous"),
        ("job/web", OF_KUEUE[0][1], "kubectl label job web -n default --overwrite kueue.x-k8s.io/queue-name=teams"),
        ("job/web", OF_KUEUE[1][1], "kubectl patch workloads.kueue.x-k8s.io job-web -n default --type merge"),
        (
            "sts/web",
            [
                {
                    **workload("StatefulSet", replicas=1, updateStrategy={"rollingUpdate": {"partition": 1}}),
                    "status": {"updateRevision": "web-2"},
                },
                NOT_ROLLED_OUT[1],
            ],
            """kubectl patch statefulset/web -n default --type merge -p '{"spec":{"updateStrategy":""",
        ),
        (
            "deploy/web",
            [workload("Deployment"), ROLLED_OUT, replica("web-1-a", "ReplicaSet", "web-1"), AT_MOST],
            """kubectl patch hpa scaler -n default --type merge -p '{"spec":{"maxReplicas":2}}'""",
        ),
        (
            "deploy/web",
            [
                workload("Deployment"),
                ROLLED_OUT,
                replica("web-1-a", "ReplicaSet", "web-1"),
                scaler(
                    "HorizontalPodAutoscaler",
                    status=limits("ScalingActive", "False", "X", "missing request for cpu in container app of Pod a"),
                ),
            ],
            "set requests.cpu of container app",
        ),
        *(
            (
                "deploy/web",
                [
                    workload("Deployment"),
                    ROLLED_OUT,
                    replica("web-1-a", "ReplicaSet", "web-1"),
                    scaler("HorizontalPodAutoscaler", status=limits("ScalingActive", "False", "X", message)),
                ],
                fix,
            )
            for message, fix in (
                ("did not receive metrics for targeted pods", "install or repair metrics-server: "),
                (
                    "could not find the metric rps for pods (get pods.custom.metrics.k8s.io)",
                    "export metric rps from the pods, with a rule of the metrics adapter for it",
                ),
            )
        ),
        (
            "deploy/web",
            [
                workload("Deployment"),
                ROLLED_OUT,
                replica("web-1-a", "ReplicaSet", "web-1"),
                scaler(
                    "HorizontalPodAutoscaler",
                    status=limits("ScalingActive", "False", "X", "could not find it (get pods.metrics.k8s.io)"),
                ),
            ],
            "install or repair metrics-server: HorizontalPodAutoscaler scaler gets no metrics",
        ),
        (
            "deploy/web",
            [
                workload("Deployment"),
                ROLLED_OUT,
                replica("web-1-a", "ReplicaSet", "web-1"),
                scaler(
                    "HorizontalPodAutoscaler",
                    status=limits("ScalingActive", "False", "X", "could not find it (get pods.metrics.k8s.io)"),
                ),
                pod("metrics-server-a", namespace="kube-system", labels={"k8s-app": "metrics-server"}),
            ],
            "make room for kube-system/metrics-server-a first: metrics-server has no node",
        ),
        (
            "deploy/web",
            [
                workload("Deployment"),
                ROLLED_OUT,
                replica("web-1-a", "ReplicaSet", "web-1"),
                scaler(
                    "HorizontalPodAutoscaler",
                    status=limits(
                        "ScalingActive", "False", "X", "controlled by multiple HPAs: [default/scaler default/other]"
                    ),
                ),
            ],
            "delete all but one of the HorizontalPodAutoscalers default/scaler and default/other",
        ),
        (
            "pod/x",
            [
                pod(
                    "x",
                    on="n",
                    status={
                        "phase": "Running",
                        "conditions": [RESIZE],
                        "containerStatuses": [
                            {"name": "app", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
                        ],
                    },
                )
            ],
            """{"containers":[{"name":"app","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}}]}}'""",
        ),
        *(
            (
                "pod/x",
                [
                    pod(
                        "x",
                        on="n",
                        status={"phase": "Running", "conditions": [{**RESIZE, "reason": reason, "message": message}]},
                    )
                ],
                fix,
            )
            for reason, message, fix in (
                (
                    "Deferred",
                    "Node didn't have enough resource: cpu, requested: 3000, used: 2600, capacity: 4000",
                    "free 1600m CPU on n; the kubelet then carries out the resize",
                ),
                (
                    "Infeasible",
                    "Node didn't have enough capacity: cpu, requested: 80000, capacity: 4000",
                    "request at most 4 CPU, the size of n · not tried 2 add a node with more than 80 CPU, then",
                ),
                (
                    "Infeasible",
                    "Node didn't have enough capacity: cpu, requested: 8000, capacity: 4000",
                    "recreate the pod on a node that is large enough",
                ),
                (
                    "Infeasible",
                    "Resize is infeasible for Guaranteed Pods",
                    "recreate the pod: this kubelet cannot resize it",
                ),
            )
        ),
        (
            "job/web",
            [
                {**workload("Job"), "status": limits("Failed", "True", "BackoffLimitExceeded")},
                pod("web-x", on="n", metadata=owned("Job", "web"), status={"phase": "Failed"}),
            ],
            "kubectl logs web-x -n default",
        ),
        (
            "job/web",
            [workload("Job"), pod("web-x", on="n", metadata=owned("Job", "web"), status=FAILED_TO_INITIALIZE)],
            "kubectl logs web-x -n default -c init",
        ),
        (
            "pod/x",
            [pod("x", on="n", metadata=owned("Node", "n"), status=REJECTED)],
            "free resources on n: its kubelet runs this static pod from a manifest file",
        ),
        *(
            ("pod/x", [pod("x", on=on, metadata=owned(kind, "n"), status={"phase": "Failed", "reason": reason})], fix)
            for reason, on, kind, fix in (
                ("SMTAlignmentError", "n", "Node", "request whole cores, or free some on n: its CPU manager"),
                (
                    "VolumeAttachmentLimitExceeded",
                    "n",
                    "Node",
                    "set nodeAllocatableUpdatePeriodSeconds of its CSIDriver",
                ),
                ("Other", "n", "Node", "find out on n why it ended: its kubelet runs this static pod"),
                ("ResourceReservationTimeout", "", "RayCluster", "make room for all placeholders of the gang"),
                ("Other", "", "RayCluster", "correct what its scheduler rejects (Other); then delete the pod"),
            )
        ),
        (
            "pod/x",
            [
                pod(
                    "x",
                    on="n",
                    status={
                        "phase": "Failed",
                        "reason": "Evicted",
                        "message": "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.",
                    },
                )
            ],
            "raise limits.ephemeral-storage to what the pod writes",
        ),
        (
            "job/web",
            [{**workload("Job"), "status": {**limits("Failed", "True", "FailedIndexes"), "failedIndexes": "3,9"}}],
            ": 3,9",
        ),
        (
            "job/web",
            [{**workload("Job"), "status": limits("Failed", "True", "BackoffLimitExceeded")}, PREEMPTED],
            "let podFailurePolicy ignore condition DisruptionTarget",
        ),
        (
            "job/web",
            [
                {**workload("Job"), "status": limits("Failed", "True", "BackoffLimitExceeded")},
                pod("web-x", on="n", metadata=owned("Job", "web"), status={"phase": "Failed", "reason": "Terminated"}),
            ],
            "let podFailurePolicy ignore condition DisruptionTarget, or raise backoffLimit: nodes were shut down",
        ),
        (
            "job/web",
            [{**workload("Job"), "status": limits("Failed", "True", "BackoffLimitExceeded")}, UNALIGNED],
            "make room in one NUMA node of n, or relax its topology policy; then delete Job web and create it again",
        ),
        (
            "ds/web",
            [
                workload("DaemonSet"),
                pod(
                    "web-x",
                    on="n",
                    metadata=owned("DaemonSet", "web"),
                    status={
                        "phase": "Failed",
                        "reason": "Evicted",
                        "message": "The node had condition: [DiskPressure]. ",
                    },
                ),
            ],
            "free disk space on n",
        ),
        ("pod/web-x", [PREEMPTED], "has failed on n: PreemptionByScheduler"),
        *(
            (
                "cj/web",
                [workload("CronJob"), reports("CronJob", "web", reason, "too many missed start times: 240")],
                "set startingDeadlineSeconds to fewer than 100 intervals",
            )
            for reason in ("TooManyMissedTimes", "FailedNeedsStart")
        ),
        (
            "deploy/web",
            [workload("Deployment", replicas=0, metadata=owned("Grafana", "main"))],
            "raise the replicas in Grafana main",
        ),
        (
            "deploy/web",
            [
                workload(
                    "Deployment",
                    replicas=0,
                    metadata={**owned("Revision", "web-1"), "labels": {"serving.knative.dev/service": "web"}},
                )
            ],
            "kubectl patch services.serving.knative.dev web -n default --type merge",
        ),
        (
            "pod/x",
            [pod("x", schedulerName="volcano"), pod("dns", namespace="kube-system", on="n")],
            "install Volcano, or recreate the pod with schedulerName default-scheduler",
        ),
        (
            "deploy/web",
            [
                workload("Deployment", replicas=1, template={"spec": {**SMALL, "schedulerName": "volcano"}}),
                pod("dns", namespace="kube-system", on="n"),
            ],
            "install Volcano, or create the pod with schedulerName default-scheduler",
        ),
        (
            "pod/x",
            [
                pod("x", schedulerName="batch"),
                workload("Deployment", "batch-scheduler", metadata={"namespace": "ops"}, replicas=0),
            ],
            "kubectl scale deploy/batch-scheduler -n ops --replicas=1",
        ),
        (
            "pod/web-x",
            [
                {**workload("Job"), "status": limits("Failed", "True", "BackoffLimitExceeded")},
                pod(
                    "web-x",
                    on="n",
                    metadata=owned("Job", "web"),
                    status={
                        "phase": "Failed",
                        "containerStatuses": [{"name": "app", "state": {"terminated": {"exitCode": 2}}}],
                    },
                ),
            ],
            "kubectl logs web-x -n default -c app",
        ),
        (
            "pod/x",
            [
                pod(
                    "x",
                    on="n",
                    metadata=owned("ReplicaSet", "web-1"),
                    status={"phase": "Failed", "reason": "NodeShutdown"},
                )
            ],
            "delete the pod: ReplicaSet web-1 replaces it",
        ),
        (
            "pod/x",
            [
                pod("x", on="n", metadata=owned("ReplicaSet", "web-1"), status=REJECTED),
                workload("ReplicaSet", "web-1", replicas=1),
                replica("web-1-a", "ReplicaSet", "web-1", ready=True),
            ],
            "delete the pod: ReplicaSet web-1 has replaced it",
        ),
        (
            "pod/x",
            [pod("x", on="n", metadata=owned("Workflow", "build"), status=REJECTED)],
            "Workflow build may create another",
        ),
        (
            "pod/x",
            [
                pod("x", nodeSelector={"a": "b"}),
                reports("Pod", "x", "FailedScaleUp", "IP space exhausted", by="cluster-autoscaler"),
            ],
            "give the node group a larger IP range, or another subnet",
        ),
        (
            "pod/web-0",
            [
                kubelet(
                    initContainerStatuses=[{"name": "wait", "state": {"running": {"startedAt": SINCE}}}],
                    containerStatuses=waiting("PodInitializing"),
                )
            ],
            "kubectl logs web-0 -n default -c wait",
        ),
        (
            "cj/web",
            [workload("CronJob"), reports("CronJob", "web", "MissSchedule", "Missed scheduled time")],
            "kubectl create job web-1 --from=cronjob/web -n default",
        ),
        ("cj/web", [workload("CronJob", schedule="0 0 30 2 *")], "correct spec.schedule of the CronJob"),
        (
            "deploy/web",
            [
                {
                    **TERMINATING,
                    "status": limits("A", "True", "B", "Discovery failed: metrics.k8s.io/v1beta1: stale"),
                },
                workload("Deployment"),
            ],
            "kubectl describe apiservice v1beta1.metrics.k8s.io",
        ),
        (
            "ns/default",
            [TERMINATING, pod("x", metadata={"finalizers": ["a.b/c"], "deletionTimestamp": SINCE})],
            "repair the controller of finalizer a.b/c, or remove the finalizer",
        ),
        (
            "ns/default",
            [TERMINATING, pod("x", on="gone", metadata={"deletionTimestamp": SINCE})],
            "fix repair gone, or force the deletion of its pods if it is gone for good",
        ),
        ("job/web", [IN_QUEUE, TEAM, ADMITTED], "it is admitted by Kueue, which has not resumed it"),
        ("job/web", [IN_QUEUE, KUEUE_DOWN], "repair Kueue: its logs say why it does not run"),
        (
            "pod/x",
            [pod("x", spec={"schedulerName": "vocalno"}), pod("y", on="n", spec={"schedulerName": "volcano"})],
            "fix set schedulerName to volcano",
        ),
        (
            "pod/x",
            [pod("x", status=REJECTED, on="n"), pod("y", on="n", spec={"schedulerName": "other"})],
            "let one scheduler assign pods to n, on which default-scheduler and other do",
        ),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_a_state_has_its_fix(tmp_path: Path, target: str, objects: list[Manifest], fix: str) -> None:
    assert fix in " ".join(why(tmp_path, target, *objects).out.replace("\\", "").split())


def test_a_shared_volume_needs_the_old_pod_deleted_first(tmp_path: Path) -> None:
    labels = {"labels": {"app": "web", "pod-template-hash": "1"}}
    old, new = (
        pod(name, on=at, metadata={**owned("ReplicaSet", "web-1"), **labels}, spec=USING)
        for name, at in (("web-1-a", "m"), ("web-1-b", "n"))
    )
    new["status"] = {"phase": "Pending", "containerStatuses": waiting("ContainerCreating")}
    event = reports("Pod", "web-1-b", "FailedAttachVolume", 'Multi-Attach error for volume "v"')
    result = why(tmp_path, "pod/web-1-b", workload("Deployment"), ROLLED_OUT, node("m"), old, new, event)
    assert "fix 1     set strategy Recreate on Deployment web, so that default/web-1-a goes before" in result.out


PROVISIONING = {
    "MULTI_NODE_MULTI_WRITER not supported": "recreate claim default/d with an access mode that disk.example.com",
    "NodePath only supports ReadWriteOnce access modes": "recreate claim default/d with an access mode that disk.",
    "claim Selector is not supported": "delete and recreate claim default/d without its selector, which disk.",
    "snapshot nightly is not Ready": "make the data source of claim default/d ready",
    'volumeattributesclass.storage.k8s.io "gold" not found': "create VolumeAttributesClass gold of disk.example.com",
    'secret "ceph" not found': "create Secret ceph, which disk.example.com needs",
    "ResourceExhausted: Cannot satisfy the topology constraint": (
        "restrict class late to places where disk.example.com has storage"
    ),
    "ResourceExhausted: full": "raise the storage quota of disk.example.com, or free capacity there",
    "UnauthorizedOperation: no": "give disk.example.com the permission that it lacks",
    'InvalidArgument: unknown parameter "a"': "delete and recreate StorageClass late with correct parameters",
    "no topology key found on CSINode n": "run the node plugin of disk.example.com on n, where it is not registered",
    "it is slow": "repair disk.example.com (default/disk-provisioner-0 is not ready), so that it provisions",
}


@pytest.mark.parametrize(
    ("reason", "report", "fix"),
    [
        ("ProvisioningFailed", "snapshot nightly is not Ready", "make Hello nightly ready"),
        ("ProvisioningFailed", 'persistentvolumeclaims "nightly" not found', "repair disk.example.com"),
        (
            "ProvisioningFailed",
            'error getting PVC nightly: persistentvolumeclaims "nightly" not found',
            "create Hello nightly, or correct the data source",
        ),
        (
            "ProvisioningFailed",
            "new request must be greater than or equal in size to the specified PVC data source, ... source is 1024",
            "delete and recreate claim default/d with at least 1Ki, the size of Hello nightly",
        ),
        (
            "ProvisioningFailed",
            "requested volume size 1073741824 is less than the size 10737418240 for the source snapshot nightly",
            "delete and recreate claim default/d with at least 10Gi, the size of Hello nightly",
        ),
        (
            "UnrecognizedDataSourceKind",
            "The datasource for this PVC does not match any registered VolumePopulator",
            "install the volume populator for data sources of kind Hello",
        ),
    ],
)
def test_a_claim_with_a_data_source_has_its_fix(tmp_path: Path, reason: str, report: str, fix: str) -> None:
    assert f"fix       {fix}" in provisioned(tmp_path, reason, report, dataSource={"kind": "Hello", "name": "nightly"})


@pytest.mark.parametrize(("report", "fix"), PROVISIONING.items())
def test_a_report_of_a_provisioner_has_its_fix(tmp_path: Path, report: str, fix: str) -> None:
    assert f"fix       {fix}" in provisioned(tmp_path, "ProvisioningFailed", report)


def provisioned(tmp_path: Path, reason: str, report: str, **fields: object) -> str:
    """Return what is printed for a pod whose claim has an event about its volume."""
    spec = {"storageClassName": "late", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "d", "namespace": "default"}
    claim: Manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
    claim["spec"] = {**spec, **fields}
    driver: Manifest = {"provisioner": "disk.example.com", "volumeBindingMode": "Immediate"}
    late: Manifest = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"}, **driver}
    down = replica("disk-provisioner-0", "StatefulSet", "disk-provisioner", ready=False)
    report_event = reports("PersistentVolumeClaim", "d", reason, report)
    return why(tmp_path, "pod/x", claim, late, down, report_event, pod("x", spec=USING)).out


@pytest.mark.parametrize(
    ("binds", "modes", "host", "is_meant"),
    [
        ("WaitForFirstConsumer", "ReadWriteMany", "", True),
        ("Immediate", "ReadWriteMany", "", True),
        ("WaitForFirstConsumer", "ReadWriteOnce", "", False),
        ("WaitForFirstConsumer", "ReadWriteMany", "gone", False),
    ],
)
def test_a_claim_that_got_a_default_class_is_meant_for_a_free_volume(
    tmp_path: Path, binds: str, modes: str, host: str, *, is_meant: bool
) -> None:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "d", "namespace": "default"}
    claim: Manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
    claim |= {"spec": {**spec, "storageClassName": "late"}}
    late: Manifest = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"}}
    late |= {"provisioner": "disk.example.com", "volumeBindingMode": binds}
    free: Manifest = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "share"}}
    reach: Manifest = {"nodeAffinity": in_term(HOSTNAME, host)} if host else {}
    free |= {"spec": {"accessModes": [modes], "capacity": {"storage": "5Gi"}, "storageClassName": "", **reach}}
    free |= {"status": {"phase": "Available"}}
    refused = reports("PersistentVolumeClaim", "d", "ProvisioningFailed", "MULTI_NODE_MULTI_WRITER not supported")
    out = why(tmp_path, "pod/x", claim, late, free, refused, pod("x", spec=USING)).out
    assert ('delete and recreate claim default/d with storageClassName "", as volume share has it' in out) is is_meant


ANNOTATED = {"annotations": {"volume.kubernetes.io/storage-provisioner": "disk.example.com"}}
NO_CLASS = reports("PersistentVolumeClaim", "d", "ProvisioningFailed", 'storageclass.storage.k8s.io "late" not found')


@pytest.mark.parametrize(
    ("message", "annotated", "more", "code", "shown"),
    [
        ("pod has unbound immediate PersistentVolumeClaims", ANNOTATED, [], 1, "claim default/d is not bound"),
        ("pod has unbound immediate PersistentVolumeClaims", {}, [NO_CLASS], 1, "late, which does not exist"),
        ("pod has unbound immediate PersistentVolumeClaims", {}, [], 3, "StorageClass late is not in this dump"),
        ("1 Insufficient cpu", ANNOTATED, [], 3, "StorageClass late is not in this dump"),
    ],
)
def test_events_show_a_class_that_the_dump_lacks(
    tmp_path: Path, message: str, annotated: Manifest, more: list[Manifest], code: int, shown: str
) -> None:
    spec = {"storageClassName": "late", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "d", "namespace": "default", "creationTimestamp": SINCE, **annotated}
    claim: Manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    refused["message"] = f"0/1 nodes are available: {message}."
    target = pod("x", spec=USING, status={"phase": "Pending", "conditions": [refused]})
    result = why(tmp_path, "pod/x", DUMPED, claim, target, *more)
    assert (result.code, shown in result.out) == (code, True)


def test_a_claim_with_a_missing_attributes_class_gets_no_volume_where_its_pod_fits(tmp_path: Path) -> None:
    spec = {"storageClassName": "late", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "d", "namespace": "default"}
    claim: Manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    spec["volumeAttributesClassName"] = "gold"
    driver: Manifest = {"provisioner": "disk.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    late: Manifest = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"}, **driver}
    attributes: Manifest = {**late, "kind": "VolumeAttributesClass", "driverName": "disk.example.com"}
    result = why(tmp_path, "pod/x", claim, late, attributes, pod("x", spec=USING))
    cause = "because   VolumeAttributesClass gold does not exist, so that disk.example.com provisions no"
    assert (result.code, cause in result.out) == (1, True)
    assert "fix       create VolumeAttributesClass gold of disk.example.com" in result.out
    alone = why(tmp_path, "pvc/d", claim, late, attributes)
    assert "VolumeAttributesClass gold does not exist" in alone.out
    bound = {**claim, "spec": {**spec, "volumeAttributesClassName": "late"}}
    assert "not bound" not in why(tmp_path, "pod/x", bound, late, attributes, pod("x", spec=USING)).out


NOT_ALLOCATED = "Allocate failed due to {}, which is unexpected"
USES_DEVICE: Manifest = {"containers": [{"name": "app", "resources": {"limits": {"x.com/gpu": "1"}}}]}


@pytest.mark.parametrize(
    ("state", "report"),
    [
        (
            {"reason": "NodeAffinity", "message": "Pod was rejected: Predicate NodeAffinity failed"},
            "Pod was rejected: Predicate NodeAffinity failed; m is not labeled role=edge",
        ),
        (
            {"reason": "NodeAffinity", "message": "Pod was rejected: Predicate NodeAffinity failed"},
            "fix 1 label m role=edge again, if it lost what the pod selects",
        ),
        (
            {"reason": "MatchNodeSelector", "message": "Predicate MatchNodeSelector failed"},
            "delete the pod and create it again, without nodeName if it sets it: the kubelet of m refuses it",
        ),
        (
            {"reason": "UnexpectedAdmissionError", "message": NOT_ALLOCATED.format("no healthy devices present")},
            "fix delete the pod and create it again: m has its devices again",
        ),
        (
            {
                "reason": "UnexpectedAdmissionError",
                "message": NOT_ALLOCATED.format("requested number of devices unavailable for x.com/gpu"),
            },
            "fix restart the kubelet of m, which has fewer devices left than reported; then delete the pod",
        ),
        (
            {"reason": "UnexpectedAdmissionError", "message": NOT_ALLOCATED.format("not enough cpus available")},
            "fix free exclusive CPUs on m, whose kubelet pins them to pods; then delete the pod and create it again",
        ),
        (
            {"reason": "UnexpectedAdmissionError", "message": NOT_ALLOCATED.format("[memorymanager] no NUMA nodes")},
            "fix free memory in a NUMA node of m, whose kubelet pins it to pods; then delete the pod",
        ),
        (
            {"reason": "Evicted", "message": "The node was low on resource: pids. Threshold quantity: 1000"},
            "fix free process IDs on m; then delete the pod and create it again",
        ),
        (
            {"reason": "SMTAlignmentError", "message": "SMT Alignment Error: not enough free physical CPUs"},
            "its CPU manager divides none; then delete the pod and create it again",
        ),
        (
            {"reason": "AppArmor", "message": 'Pod was rejected: Cannot enforce AppArmor: profile "x" is not loaded'},
            "fix load the AppArmor profile on m, or name another one in the pod; then delete the pod",
        ),
        ({"phase": "Pending"}, "because node m is unreachable: Kubelet stopped posting node status."),
        (
            {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
            "default/x runs on m and is not ready: Ready=False scheduled now, it is unschedulable",
        ),
    ],
)
def test_reports_of_kubelets(tmp_path: Path, state: Manifest, report: str) -> None:
    status: Manifest = {"phase": "Failed", **state}
    here = node("m", allocatable={"pods": "9", "x.com/gpu": "1"})
    if status["phase"] == "Pending":
        here["status"] = {**at(here, "status"), "conditions": [SILENT]}
    item = pod("x", on="m", spec={**USES_DEVICE, "nodeSelector": {"role": "edge"}}, status=status)
    assert report in " ".join(why(tmp_path, "pod/x", here, item).out.split())


def job_of_cron_job(name: str, created: str, condition: str) -> Manifest:
    ended = {"type": condition, "status": "True", "reason": "BackoffLimitExceeded", "message": "too many failures"}
    owner = {"ownerReferences": [{"kind": "CronJob", "name": "web", "uid": "u", "controller": True}]}
    job = workload("Job", name, metadata={**owner, "creationTimestamp": created})
    return {**job, "status": {"conditions": [ended]}}


@pytest.mark.parametrize(
    ("second", "changed", "headline"),
    [
        ("Failed", False, "✗ default/job/web-2 has failed: BackoffLimitExceeded"),
        ("Failed", True, "✓ default/web-new would be assigned to n, the only node"),
        ("Complete", False, "✓ default/web-new would be assigned to n, the only node"),
    ],
)
def test_the_newest_job_of_a_cron_job_tells_whether_it_fails(
    tmp_path: Path, second: str, changed: bool, headline: str
) -> None:
    jobs = [
        job_of_cron_job("web-1", "2026-01-01T00:00:00Z", "Failed"),
        job_of_cron_job("web-2", "2026-01-02T00:00:00Z", second),
    ]
    cron_job = workload("CronJob")
    if changed:
        at(cron_job, "spec.jobTemplate.spec.template")["spec"] = {"containers": [{"name": "app", "image": "app:2"}]}
    out = why(tmp_path, "cj/web", cron_job, *jobs).out
    assert out.startswith(headline)
    assert ("then wait until its next Job starts, which gets the changed template" in out) == out.startswith("✗")


def test_the_pod_of_a_cron_job_that_cannot_start_is_its_answer(tmp_path: Path) -> None:
    job = job_of_cron_job("web-1", SINCE, "None")
    out = why(tmp_path, "cj/web", workload("CronJob"), job, FAILS_TO_PULL).out
    assert out.startswith("‖ default/web-1-x is scheduled to n and cannot pull the image of container app")


def test_a_dump_without_workloads_of_the_kind_lacks_them(tmp_path: Path) -> None:
    result = why(tmp_path, "deploy/web", DUMPED, pod("other", on="d"))
    assert result.code == 2
    assert "(the dump holds none: kubectl get deployments -A -o yaml > missing-deploy.yaml, and add -s" in result.err


@pytest.mark.parametrize(
    ("on", "ready", "headline"),
    [
        ("d", 2, "? default/deploy/web is undecided: the dump lacks pods of it"),
        ("d", 1, "✓ default/deploy/web: both missing replicas can be scheduled"),
        (None, 2, "✓ default/deploy/web: all 3 replicas can be scheduled"),
    ],
)
def test_more_pods_are_ready_than_the_dump_has(tmp_path: Path, on: str | None, ready: int, headline: str) -> None:
    """A pod that a change has removed is still ready by the status."""
    here = replica("web-1-a", "ReplicaSet", "web-1", on=on)
    deployment = {**workload("Deployment", replicas=3), "status": {"replicas": 3, "readyReplicas": ready}}
    assert why(tmp_path, "deploy/web", DUMPED, ROLLED_OUT, here, deployment).out.startswith(headline)
    scaled = kschedx("simulate", "--scale", "deploy/web=1", "-s", "cluster.json", cwd=tmp_path)
    assert "the dump lacks pods of it" not in scaled.out


@pytest.mark.parametrize(
    ("kind", "status", "headline"),
    [
        (
            "StatefulSet",
            {"availableReplicas": 1},
            "‖ default/sts/web is not fully available: 1 of its 2 pods is not ready",
        ),
        ("StatefulSet", {"readyReplicas": 1}, "‖ default/sts/web is not fully available: 1 of its 2 pods is not ready"),
        ("ReplicaSet", {}, "‖ default/rs/web is not available: 1 of its 2 pods is not ready"),
        ("ReplicaSet", {"availableReplicas": 1}, "✓ default/web-new would be assigned to n"),
    ],
)
def test_a_workload_with_all_its_pods_is_not_available(
    tmp_path: Path, kind: str, status: Manifest, headline: str
) -> None:
    pods = [replica(f"web-{number}", kind, "web", ready=not number) for number in range(2)]
    own = {**workload(kind, replicas=2), "status": {"replicas": 2, **status}}
    assert why(tmp_path, f"{kind.lower()}/web", own, *pods).out.startswith(headline)


def test_the_pending_pod_of_a_rollout_with_max_surge_is_explained(tmp_path: Path) -> None:
    """The old pod on its node keeps its room until the new one is ready."""
    field = {"key": "metadata.name", "operator": "In", "values": ["m"]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "3"}}}
    spec = {"containers": [container], "affinity": {"nodeAffinity": required}}
    old = pod("web-0", on="m", metadata=owned("DaemonSet", "web"), spec=spec)
    new = pod("web-1", metadata=owned("DaemonSet", "web"), spec=spec)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    surge = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    agent = {**workload("DaemonSet", template=template, updateStrategy=surge), "status": {"desiredNumberScheduled": 1}}
    full = node("m", allocatable={"cpu": "4", "pods": "9"})
    out = why(tmp_path, "ds/web", agent, full, old, new).out
    assert out.startswith("✗ default/web-1 is unschedulable: 0 of 2 nodes fit")
    assert "set maxSurge: 0, maxUnavailable: 1 on DaemonSet web" in out


@pytest.mark.parametrize(("failed", "says"), [(0, "; this shows"), (2, "; 2 pods failed: container app ended with Er")])
def test_a_job_with_all_its_pods_tells_how_earlier_ones_failed(tmp_path: Path, failed: int, says: str) -> None:
    ended = {"containerStatuses": [{"name": "app", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}
    status = {"phase": "Failed", **ended}
    earlier = [pod(f"web-{number}", on="n", metadata=owned("Job", "web"), status=status) for number in range(failed)]
    out = why(tmp_path, "job/web", workload("Job"), *earlier, replica("web-x", "Job", "web")).out
    assert f"its only active pod has a node{says}" in " ".join(out.split())


def test_the_manifest_of_a_new_node_has_its_room(tmp_path: Path) -> None:
    spec = {**SMALL, "nodeSelector": {"kubernetes.io/arch": "arm64"}}
    amd = node("amd", labels={"kubernetes.io/arch": "amd64"})
    assert "add a node with label kubernetes.io/arch=arm64" in why(tmp_path, "pod/x", amd, pod("x", spec=spec)).out
    command = ("-s", "cluster.json", "--fix", "1", "-o", "yaml")
    (tmp_path / "node.yaml").write_text(kschedx("why", "pod/x", *command, cwd=tmp_path).out)
    result = kschedx("why", "pod/x", "-s", "cluster.json", "--add-nodes", "1=node.yaml", cwd=tmp_path)
    assert result.out.startswith("✓ default/x would be assigned to new-node-new1")


def test_a_correction_that_helps_some_replicas_is_first(tmp_path: Path) -> None:
    """The rollout of the changed template adds pods that stay pending beside the old ones."""
    room = {"cpu": "1", "memory": "1Gi", "pods": "9"}
    labels, taints = {"pool": "web"}, ["pool=web:NoSchedule"]
    reserved = [node(name, labels=labels, taints=taints, allocatable=room) for name in ("a", "b")]
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
    tolerations = [{"key": "pool", "operator": "Equal", "value": "wbe", "effect": "NoSchedule"}]
    spec = {"containers": [container], "nodeSelector": {"pool": "web"}, "tolerations": tolerations}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    controllers = [
        workload("Deployment", replicas=5, template=template),
        workload("ReplicaSet", "web-1", metadata=owned("Deployment", "web"), replicas=5, template=template),
    ]
    pods = [pod(f"web-1-{number}", metadata=owned("ReplicaSet", "web-1"), spec=spec) for number in range(5)]
    out = why(tmp_path, "deploy/web", *reserved, *controllers, *pods).out
    assert "fix 1     tolerate pool=web:NoSchedule instead of pool=wbe:NoSchedule · for 2 of 5" in out


def test_more_nodes_come_before_a_change_of_pods_that_helps_only_some(tmp_path: Path) -> None:
    labels, room = {"eks.amazonaws.com/nodegroup": "web"}, {"cpu": "1", "pods": "9"}
    spec = {**SMALL, "nodeSelector": {"team": "a"}}
    listed = [*(node(name, labels=labels, allocatable=room) for name in ("m", "n"))]
    listed += [pod(f"web-{number}", spec=spec) for number in range(4)]
    (tmp_path / "cluster.json").write_text(json.dumps(listed))
    out = kschedx("why", "--all-pending", "-s", "cluster.json", cwd=tmp_path, columns=200).out
    assert "fix       add 4 nodes each with label team=a and at least 1 CPU free · for all 4" in out


@pytest.mark.parametrize(("desired", "raised"), [(3, 3), (2, 2)])
def test_a_quota_is_raised_for_every_node_that_lacks_a_daemon(tmp_path: Path, desired: int, raised: int) -> None:
    hard = {"pods": "1"}
    quota: Manifest = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
    quota |= {"spec": {"hard": hard}, "status": {"hard": hard, "used": hard}}
    report = 'Error creating: pods "web-x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: '
    agent = {**workload("DaemonSet"), "status": {"desiredNumberScheduled": desired, "currentNumberScheduled": 1}}
    nodes = [node(name) for name in ("a", "b")]
    here = replica("web-a", "DaemonSet", "web", on="a")
    out = why(
        tmp_path, "ds/web", *nodes, agent, here, quota, reports("DaemonSet", "web", "FailedCreate", f"{report}pods=1")
    ).out
    assert f"raise pods from 1 to {raised} in ResourceQuota q" in out


@pytest.mark.parametrize("is_leaving", [True, False])
def test_a_pod_keeps_its_workload_in_deletion(tmp_path: Path, is_leaving: bool) -> None:
    kept = replica("web-a", "ReplicaSet", "web")
    at(kept, "metadata").update({"finalizers": ["x.io/f"]} | ({"deletionTimestamp": SINCE} if is_leaving else {}))
    leaving = workload("ReplicaSet", metadata={"deletionTimestamp": SINCE, "finalizers": ["foregroundDeletion"]})
    out = why(tmp_path, "rs/web", leaving, kept).out
    assert out.startswith("✗ default/rs/web is being deleted")
    assert ("finalizer x.io/f keeps 1 pod: web-a" in out) == is_leaving
    assert ("repair the controller of finalizer x.io/f, or remove the finalizer" in out) == is_leaving


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "ContainerCreating"])
def test_another_container_that_waits_is_named(tmp_path: Path, reason: str) -> None:
    other = {**waiting(reason, "Back-off pulling image")[0], "name": "proxy"}
    out = why(tmp_path, "pod/web-0", kubelet(containerStatuses=[*waiting("CrashLoopBackOff"), other])).out
    assert out.startswith("‖ default/web-0 is scheduled to n and restarts container app, which fails: CrashLoopBackOff")
    says = "container proxy waits as well: ImagePullBackOff: Back-off pulling image"
    assert (says in out) == (reason == "ImagePullBackOff")


@pytest.mark.parametrize(("reason", "is_failing"), [("Error", True), ("", False)])
def test_a_resize_that_fails_is_withdrawn(tmp_path: Path, reason: str, is_failing: bool) -> None:
    message = "attempting to set pod memory limit (64) below current usage (200)"
    resizing = {"type": "PodResizeInProgress", "status": "True", "reason": reason, "message": message}
    given = {"requests": {"memory": "256"}, "limits": {"memory": "300"}}
    container = {"name": "app", "ready": True, "allocatedResources": {"memory": "64"}, "resources": given}
    status = {"phase": "Running", "conditions": [resizing], "containerStatuses": [container]}
    out = why(tmp_path, "pod/x", pod("x", on="n", spec=SMALL, status=status)).out
    assert out.startswith("‖ default/x runs on n, and its resize is failing\n") == is_failing
    withdrawn = """{"name":"app","resources":{"requests":{"memory":"256"},"limits":{"memory":"300"}}}"""
    assert (withdrawn in out, "let the pod use less memory than its new limit" in out) == (is_failing, is_failing)


def test_a_template_with_the_name_of_the_node_is_not_scheduled(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**SMALL, "nodeName": "n"}}
    bound = {**ROLLED_OUT, "spec": {**at(ROLLED_OUT, "spec"), "replicas": 2, "template": template}}
    out = why(
        tmp_path, "deploy/web", workload("Deployment", replicas=2, template=template), bound, *ON_FULL_NODE[2:]
    ).out
    assert "1 pod failed so; it is replaced\n" in out
    assert "fix       remove nodeName from the pod template, so that kube-scheduler selects a node" in out


REFUSED = 'probe failed: Get "http://10.0.0.5:80/": dial tcp 10.0.0.5:80: connect: connection refused'


@pytest.mark.parametrize(
    ("kind", "code", "fix"),
    [
        ("Liveness", 137, "find out why container app fails its liveness probe, or relax it"),
        ("Startup", 143, "find out why container app fails its startup probe, or relax it"),
        ("Startup", 1, "find out from its logs why container app ends"),
        ("Readiness", 137, "find out from its logs why container app ends"),
        ("Readiness", 0, "give container app a command that does not end, or run it as a Job"),
    ],
)
def test_what_a_probe_reports_is_no_fault_of_storage(tmp_path: Path, kind: str, code: int, fix: str) -> None:
    ended = {"terminated": {"reason": "Error" if code else "Completed", "exitCode": code}}
    crashing = kubelet(containerStatuses=[{**waiting("CrashLoopBackOff")[0], "lastState": ended}])
    event = reports("Pod", "web-0", "Unhealthy", f"{kind} {REFUSED}", by="kubelet")
    document = json.loads(why(tmp_path, "pod/web-0", crashing, event, output="json").out)
    assert [it["title"] for it in document["fixes"]] == [fix]


RUNNING: Manifest = {"running": {"startedAt": SINCE}}
IS_OVER: Manifest = {"terminated": {"reason": "Error", "exitCode": 1}}


@pytest.mark.parametrize(
    ("ready", "state", "event", "restarts"),
    [
        ("False", RUNNING, ("Unhealthy", f"Startup {REFUSED}"), True),
        ("False", RUNNING, ("BackOff", "Back-off restarting failed container app in pod web-0_default(1)"), True),
        ("False", RUNNING, ("Unhealthy", f"Readiness {REFUSED}"), False),
        ("False", IS_OVER, None, True),
        ("True", RUNNING, ("Unhealthy", f"Liveness {REFUSED}"), False),
    ],
    ids=["killed by a probe", "crashes", "ended once", "has just ended", "ready"],
)
def test_a_container_that_runs_between_two_crashes(
    tmp_path: Path, ready: str, state: Manifest, event: tuple[str, str] | None, restarts: bool
) -> None:
    statuses = [{"name": "app", "state": state, "lastState": IS_OVER}]
    conditions = [{"type": "Ready", "status": ready}]
    stored = kubelet(phase="Running", containerStatuses=statuses, conditions=conditions)
    events = [] if event is None else [reports("Pod", "web-0", *event, by="kubelet")]
    result = why(tmp_path, "pod/web-0", stored, *events)
    assert ("default/web-0 is scheduled to n and restarts container app, which fails\n" in result.out) == restarts
    never = {**stored, "spec": {**at(stored, "spec"), "restartPolicy": "Never"}}
    assert "restarts container" not in why(tmp_path, "pod/web-0", never, *events).out


@pytest.mark.parametrize(
    ("mounts", "cause"),
    [
        (None, "waits for container app: Pulling\n  because   Pulling image"),
        ("2026-01-02T00:01:00Z", "waits for container app: Pulling\n  because   Pulling image"),
        ("2026-01-02T00:03:00Z", "waits for its volumes: FailedMount"),
    ],
)
def test_an_image_is_pulled_after_the_volumes_are_mounted(tmp_path: Path, mounts: str | None, cause: str) -> None:
    creating = kubelet(containerStatuses=waiting("ContainerCreating"))
    pulls = reports("Pod", "web-0", "Pulling", 'Pulling image "app:1"', by="kubelet")
    events = [{**pulls, "lastTimestamp": "2026-01-02T00:02:00Z"}]
    if mounts is not None:
        failed = reports("Pod", "web-0", "FailedMount", 'secret "tls" not found', by="kubelet")
        events.append({**failed, "lastTimestamp": mounts})
    assert cause in why(tmp_path, "pod/web-0", creating, *events).out


@pytest.mark.parametrize(("resource", "number"), [("count/pods", 2), ("pods", 0)])
def test_finished_pods_use_up_a_quota_of_objects(tmp_path: Path, resource: str, number: int) -> None:
    message = f"exceeded quota: q, requested: {resource}=1, used: {resource}=2, limited: {resource}=2"
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    stuck = {**workload("ReplicaSet", replicas=1), "status": {"conditions": [condition]}}
    finished = [pod(f"done-{phase}", on="n", status={"phase": phase}) for phase in ("Failed", "Succeeded")]
    out = why(tmp_path, "rs/web", stuck, *finished).out
    assert ("delete 2 finished pods of the namespace, which count/pods counts as well" in out) is bool(number)
    assert out.count("$ kubectl delete pods -n default --field-selector status.phase=") == number


@pytest.mark.parametrize(("resource", "is_told"), [("count/jobs.batch", True), ("count/pods", False)])
def test_finished_jobs_use_up_a_quota_of_objects(tmp_path: Path, resource: str, *, is_told: bool) -> None:
    message = f'jobs.batch "new" is forbidden: exceeded quota: q, requested: {resource}=1, used: {resource}=3'
    event = reports("CronJob", "web", "FailedCreate", f"Error creating job: {message}, limited: {resource}=3")
    jobs = [{**workload("Job"), "metadata": {"name": name, "namespace": "default"}} for name in ("a", "b", "runs")]
    for job, kind in zip(jobs, ("Complete", "Failed"), strict=False):
        job["status"] = {"conditions": [{"type": kind, "status": "True"}]}
    out = why(tmp_path, "cronjob/web", workload("CronJob"), *jobs, event).out
    assert ("delete 2 finished Jobs of the namespace, which count/jobs.batch counts as well" in out) is is_told
    assert ("$ kubectl delete job a b -n default" in out) is is_told


def test_several_replicas_on_unreachable_nodes_are_counted(tmp_path: Path) -> None:
    lost = node("lost", taints=["node.kubernetes.io/unreachable:NoExecute"])
    pods = [replica(f"web-1-{name}", "ReplicaSet", "web-1", on=on) for name, on in (("a", "lost"), ("b", "lost"))]
    here = replica("web-1-c", "ReplicaSet", "web-1")
    out = why(tmp_path, "deploy/web", lost, workload("Deployment", replicas=3), ROLLED_OUT, *pods, here).out
    assert "2 of 3 pods of Deployment web are on unreachable nodes: lost" in " ".join(out.split())
    out = why(tmp_path, "deploy/web", lost, workload("Deployment", replicas=2), ROLLED_OUT, pods[0], here).out
    assert "unreachable nodes" not in out


GATE = 'corresponding condition of pod readiness gate "x.io/y" does not exist'


@pytest.mark.parametrize(
    ("reported", "why_unready"),
    [({}, ""), ({"reason": "ReadinessGatesNotReady", "message": f"{GATE}."}, f" ({GATE})")],
    ids=["no reason", "a readiness gate"],
)
def test_a_complete_workload_has_its_headline(tmp_path: Path, reported: Manifest, why_unready: str) -> None:
    only = replica("web-1-a", "ReplicaSet", "web-1", conditions=[{"type": "Ready", "status": "False", **reported}])
    result = why(tmp_path, "deploy/web", workload("Deployment"), ROLLED_OUT, only)
    phrase = f"its only replica has a node, but is not ready{why_unready}; this shows where one more would go"
    assert phrase in " ".join(result.out.split())


@pytest.mark.parametrize("name", ["own", "own-scheduler"])
def test_the_workload_that_runs_a_scheduler_has_its_name(tmp_path: Path, name: str) -> None:
    owner = owned("Deployment", name)
    runs = workload("ReplicaSet", f"{name}-1", metadata=owner)
    crashing = waiting("CrashLoopBackOff")
    other = replica("own-controller-1-x", "ReplicaSet", "own-controller-1")
    pods = [
        replica(f"{name}-1-x", "ReplicaSet", f"{name}-1", ready=False, containerStatuses=crashing),
        pod("x", spec={"schedulerName": "own"}),
        other,
    ]
    result = why(tmp_path, "pod/x", workload("Deployment", name, replicas=1), runs, *pods)
    assert result.out.splitlines()[0] == f"✗ default/x is not scheduled: {name} does not run"


UNAVAILABLE: Manifest = {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}


@pytest.mark.parametrize(
    ("kind", "status", "is_told"),
    [
        ("Deployment", {"conditions": [UNAVAILABLE]}, True),
        ("Deployment", {"conditions": [{**UNAVAILABLE, "status": "True"}], "unavailableReplicas": 1}, False),
        ("Deployment", {"unavailableReplicas": 2}, True),
        ("Deployment", {"unavailableReplicas": 1, "availableReplicas": 1}, False),
        ("StatefulSet", {"availableReplicas": 1}, True),
        ("StatefulSet", {"availableReplicas": 2}, False),
        ("DaemonSet", {"numberUnavailable": 1}, True),
        ("DaemonSet", {}, False),
    ],
)
def test_a_workload_without_enough_available_pods(
    tmp_path: Path, kind: str, status: Manifest, *, is_told: bool
) -> None:
    owner, names = (kind, "web") if kind != "Deployment" else ("ReplicaSet", "web-1"), ("web-0", "web-1")
    pods = [replica(name, *owner, ready=name == "web-0") for name in names]
    item = {**workload(kind, replicas=2), "status": {"replicas": 2, **status}}
    event = reports("Pod", "web-1", "Unhealthy", "Readiness probe failed: statuscode: 503", by="kubelet")
    result = why(tmp_path, f"{kind.lower()}/web", item, ROLLED_OUT, *pods, event)
    degree = "" if kind == "Deployment" else "fully "
    assert (f"is not {degree}available: 1 of its 2 pods is not ready" in result.out) == is_told
    assert ("web-1 on n: Unhealthy: Readiness probe failed: statuscode: 503" in result.out) == is_told
    assert ("kubectl describe pod web-1 -n default" in result.out) == is_told


def test_a_pod_that_is_being_deleted_is_not_called_unready(tmp_path: Path) -> None:
    leaving = replica("web-1-x", "ReplicaSet", "web-1", ready=False)
    at(leaving, "metadata")["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    pods = [leaving, *(replica(f"web-1-{name}", "ReplicaSet", "web-1", ready=name == "a") for name in "ab")]
    item = {**workload("Deployment", replicas=2), "status": {"conditions": [UNAVAILABLE]}}
    out = why(tmp_path, "deploy/web", item, ROLLED_OUT, *pods).out
    assert "web is not available: 1 of its 2 pods is not ready" in out
    assert "find out why web-1-b is not ready" in out


def test_a_workload_whose_pod_is_on_a_node_that_is_not_ready(tmp_path: Path) -> None:
    lost = node("lost", taints=["node.kubernetes.io/not-ready:NoSchedule"])
    item = {**workload("Deployment"), "status": {"conditions": [UNAVAILABLE]}}
    only = replica("web-1-a", "ReplicaSet", "web-1", on="lost", ready=False)
    result = why(tmp_path, "deploy/web", lost, item, ROLLED_OUT, only)
    headline = "default/deploy/web is not available: its only pod is not ready, because lost is not ready"
    assert headline in " ".join(result.out.split())
    assert "fix repair lost, or delete the node if its machine is gone" in " ".join(result.out.split())


@pytest.mark.parametrize("target", ["deploy/web", "hpa/scaler"])
@pytest.mark.parametrize(
    ("kind", "reason", "text"),
    [
        ("ScalingLimited", "TooFewReplicas", "is at minReplicas 1"),
        ("ScalingLimited", "ScaleUpLimit", "scales up no faster than its behavior allows"),
        ("AbleToScale", "ScaleDownStabilized", "keeps the highest number of its stabilization window"),
        ("AbleToScale", "ReadyForNewScale", ""),
    ],
)
def test_what_keeps_the_replicas_of_a_scaled_workload(
    tmp_path: Path, target: str, kind: str, reason: str, text: str
) -> None:
    hpa = scaler("HorizontalPodAutoscaler", maxReplicas=9, status=limits(kind, "True", reason))
    result = why(tmp_path, target, workload("Deployment"), ROLLED_OUT, replica("web-1-a", "ReplicaSet", "web-1"), hpa)
    kept = f"; HorizontalPodAutoscaler scaler {text}" if text else ""
    assert f"its only replica has a node{kept}; this shows where one more would go" in " ".join(result.out.split())


def test_nodes_that_joined_after_the_replicas_are_named(tmp_path: Path) -> None:
    new, moment = node("late"), "2026-01-02T00:00:00Z"
    new["metadata"] = {**at(new, "metadata"), "creationTimestamp": "2026-01-03T00:00:00Z"}
    full = replica("web-1-a", "ReplicaSet", "web-1", startTime=moment)
    full["spec"] = {**at(full, "spec"), "containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]}
    result = why(tmp_path, "deploy/web", new, workload("Deployment"), ROLLED_OUT, full)
    assert "late joined after its pods were assigned; kube-scheduler does not move pods that have a node" in result.out
    for name, is_new in (("late", True), ("n", False)):
        result = kschedx("why", "pod/web-1-a", "-s", "cluster.json", "--node", name, cwd=tmp_path, columns=400)
        assert (f"  {name} joined after the pod was assigned; kube-scheduler does not move" in result.out) == is_new


def test_nodes_that_became_ready_after_the_replicas_are_named(tmp_path: Path) -> None:
    moments = [f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3)]
    other = node("other")
    at(other, "status")["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": moments[2]}]
    other["metadata"] = {**at(other, "metadata"), "creationTimestamp": moments[0]}
    full = replica("web-1-a", "ReplicaSet", "web-1", startTime=moments[1])
    full["spec"] = {**at(full, "spec"), "containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]}
    result = why(tmp_path, "deploy/web", other, workload("Deployment"), ROLLED_OUT, full)
    assert "  other became ready after its pods were assigned; kube-scheduler does not move pods" in result.out


@pytest.mark.parametrize(
    ("keys", "counts", "is_uneven"),
    [((), (3, 0), True), ((), (1, 0), False), (("pod-template-hash",), (3, 0), True)],
)
def test_replicas_that_exceed_their_own_spread_constraint(
    tmp_path: Path, keys: tuple[str, ...], counts: tuple[int, int], is_uneven: bool
) -> None:
    """A rollout counts the pods of the former template as well; afterwards, the new pods are uneven."""
    labels = {"app": "web", "pod-template-hash": "1"}
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": [*keys],
    }
    template: Manifest = {"metadata": {"labels": labels}, "spec": {**SMALL, "topologySpreadConstraints": [spread]}}
    spec = {"replicas": sum(counts), "template": template}
    makers = [{**item, "spec": {**at(item, "spec"), **spec}} for item in (workload("Deployment"), ROLLED_OUT)]
    names = [name for name, number in zip("ab", counts, strict=True) for _ in range(number)]
    pods = [replica(f"web-1-{number}", "ReplicaSet", "web-1", on=name) for number, name in enumerate(names)]
    for each in pods:
        at(each, "metadata")["labels"] = labels
    hosts = [node(name, labels={"kubernetes.io/hostname": name}) for name in "ab"]
    text = " ".join(why(tmp_path, "deploy/web", *hosts, *makers, *pods).out.split())
    exceeds = "a has 3 matching pods, another domain has 0: above maxSkew 1 already"
    assert (exceeds in text) == is_uneven
    assert ("a rollout counts the pods of the former template as well" in text) == (is_uneven and not keys)


@pytest.mark.parametrize(
    ("message", "used"),
    [
        ("The node had condition: [MemoryPressure]. ", ""),
        (
            "Container app was using 3Gi, request is 0, has larger consumption of ephemeral-storage. ",
            "container app used 3Gi ephemeral-storage and requests 0",
        ),
        (
            "Container a was using 2Gi, request is 1Gi, has larger consumption of memory. " * 3,
            "container a used 2Gi mem",
        ),
    ],
)
def test_what_an_evicted_pod_used(message: str, used: str) -> None:
    assert overuse_text(message).startswith(used)
    assert bool(overuse_text(message)) is bool(used)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ((), "1 pod of ReplicaSet web-1 failed on n: OutOfcpu; its object stays until it is deleted"),
        (
            (node("m"),),
            "kubelets have rejected 1 pod of ReplicaSet web-1 on n before, such as default/web-1-b: OutOfcpu",
        ),
    ],
    ids=["replaced", "one of two nodes"],
)
def test_failed_pods_of_the_same_controller(tmp_path: Path, nodes: tuple[Manifest, ...], expected: str) -> None:
    """The pod may be assigned to either of two nodes, and the kubelet of one has rejected its predecessor."""
    pending = [] if not nodes else [pod("web-1-c", metadata=owned("ReplicaSet", "web-1"))]
    running = replica("web-1-a", "ReplicaSet", "web-1") if not nodes else workload("ReplicaSet", "other")
    at(running, "metadata")["creationTimestamp"] = SINCE
    failed = pod("web-1-b", on="n", metadata=owned("ReplicaSet", "web-1"), status=REJECTED)
    makers = [workload("Deployment"), ROLLED_OUT]
    text = " ".join(why(tmp_path, "deploy/web", node("n"), *nodes, *makers, running, failed, *pending).out.split())
    assert expected in text


@pytest.mark.parametrize(("label", "is_told"), [("x", True), ("y", False)], ids=["pending", "fits"])
def test_the_deadline_of_a_job_runs_while_its_pod_is_pending(tmp_path: Path, label: str, *, is_told: bool) -> None:
    job = {**workload("Job", activeDeadlineSeconds=600), "status": {"active": 1, "startTime": SINCE}}
    pending = pod("web-b", metadata=owned("Job", "web"), nodeSelector={"pool": label})
    text = " ".join(why(tmp_path, "job/web", node("m", labels={"pool": "y"}), job, pending).out.split())
    assert (
        f"activeDeadlineSeconds 600 of Job web runs since {SINCE}, also while its pod is pending" in text
    ) == is_told


VERTICAL = {"vpaUpdates": "Pod resources updated by vpa: container 0: cpu request, memory request"}
DEFAULTED = {"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container app"}
RANGE: Manifest = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "small", "namespace": "default"},
    "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "100"}}]},
}


@pytest.mark.parametrize(
    ("annotations", "fix"),
    [
        (VERTICAL, "set maxAllowed.cpu of container app to 64 in VerticalPodAutoscaler vpa (it sets 100), then delete"),
        (DEFAULTED, "set requests.cpu of container app to 64 (LimitRange small sets 100)"),
        ({}, "add a node with at least 100 CPU free"),
    ],
)
def test_a_request_is_lowered_at_its_origin(tmp_path: Path, annotations: Manifest, fix: str) -> None:
    large = {"containers": [{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "100"}}}]}
    answer = pod("x", spec=large, metadata={"annotations": annotations})
    document = json.loads(why(tmp_path, "pod/x", RANGE, answer, output="json").out)
    assert document["fixes"][0]["title"].startswith(fix)


@pytest.mark.parametrize(
    ("volume", "report"),
    [
        ({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}, "volume v has only 1Gi"),
        (
            {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadOnlyMany"]},
            "volume v has the access modes ReadOnlyMany",
        ),
        (
            {
                "capacity": {"storage": "2Gi"},
                "accessModes": ["ReadWriteOnce"],
                "claimRef": {"namespace": "other", "name": "d"},
            },
            "volume v, which claim default/d names, is reserved for claim other/d",
        ),
    ],
)
def test_the_volume_that_a_claim_cannot_bind_is_named(tmp_path: Path, volume: Manifest, report: str) -> None:
    spec: Manifest = {
        "storageClassName": "",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
        **({"volumeName": "v"} if "claimRef" in volume else {}),
    }
    metadata = {"name": "d", "namespace": "default"}
    claim: Manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    other: Manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {"storageClassName": "", **volume},
        "status": {"phase": "Available"},
    }
    assert report in why(tmp_path, "pod/x", claim, other, pod("x", spec=USING)).out


def test_a_change_that_the_api_server_refuses_is_an_answer(tmp_path: Path) -> None:
    high: Manifest = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "a"},
        "value": 1,
    }
    why(tmp_path, "pod/x", high, pod("x"))
    (tmp_path / "more.json").write_text(json.dumps(pod("y", priorityClassName="b")))
    result = kschedx("why", "pod/x", "-s", "cluster.json", "--apply", "more.json", cwd=tmp_path)
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("✗ default/y is not created: the API server refuses the pod")


@pytest.mark.parametrize(("kind", "target"), [("HorizontalPodAutoscaler", "hpa/web"), ("ScaledObject", "so/web")])
def test_an_autoscaler_without_a_target_scales_nothing(tmp_path: Path, kind: str, target: str) -> None:
    autoscaler: Manifest = {
        "apiVersion": "autoscaling/v2" if kind == "HorizontalPodAutoscaler" else "keda.sh/v1alpha1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "wbe"}, "maxReplicas": 3},
    }
    result = why(tmp_path, target, autoscaler, workload("Deployment"))
    headline = f"default/{target} scales nothing: there is no Deployment wbe in namespace default (did you mean web?)"
    assert (result.code, headline in result.out) == (0, True)
    assert "set its scaleTargetRef.name to web instead of wbe" in result.out


def test_a_budget_that_its_controller_cannot_evaluate_is_named(tmp_path: Path) -> None:
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "SyncFailed",
        "message": "found no controllers",
    }
    status = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "conditions": [condition]}
    budget = disruption_budget("b", labels={"app": "x"}, status=status, maxUnavailable=1)
    metadata = {**owned("Operator", "x"), "labels": {"app": "x"}}
    why(tmp_path, "pod/x-0", budget, node("m"), *(pod(f"x-{at}", on=at, metadata=metadata) for at in ("n", "m")))
    result = kschedx("drain", "n", "-s", "cluster.json", cwd=tmp_path, columns=400)
    assert "PDB default/b allows no disruption (SyncFailed): found no controllers" in result.out
    assert "replace maxUnavailable 1 of PDB default/b with minAvailable 1 · the node can be drained" in result.out


def test_the_last_attempt_of_a_job_on_an_unreachable_node(tmp_path: Path) -> None:
    job = workload("Job", backoffLimit=0)
    there = replica("web-x", "Job", "web", on="m")
    assert "0 s after its node became unreachable; its Job exceeds its backoffLimit, and fails" in (
        why(tmp_path, "pod/web-x", LOST, job, there).out
    )
    lost = {**node("m"), "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    going = pod("web-x", on="m", metadata={**owned("Job", "web"), "deletionTimestamp": SINCE})
    for its in (job, ended("FailureTarget", "DeadlineExceeded")):
        assert "replaces it" not in why(tmp_path, "pod/web-x", lost, its, going).out
    assert "Job web does not count it, and replaces it at once" in (
        why(tmp_path, "pod/web-x", lost, workload("Job", backoffLimit=1), going).out
    )


@pytest.mark.parametrize(("running", "then"), [(1, "creates another"), (2, "has replaced it")])
def test_a_failed_pod_is_replaced_once_its_replica_set_has_all_pods(tmp_path: Path, running: int, then: str) -> None:
    others = [replica(f"web-{number}", "ReplicaSet", "web", on="n") for number in range(1, running + 1)]
    failed = replica("web-0", "ReplicaSet", "web", **EVICTED)
    result = why(tmp_path, "pod/web-0", node("n"), workload("ReplicaSet", replicas=2), failed, *others)
    assert f"a failed pod does not start again; ReplicaSet web {then}" in result.out


def test_a_failed_pod_of_an_ended_job_that_is_deleted(tmp_path: Path) -> None:
    deleted = {**ended("Failed", "DeadlineExceeded")}
    deleted["metadata"] = {**at(deleted, "metadata"), "deletionTimestamp": SINCE}
    failed = pod("web-x", on="n", metadata=owned("Job", "web"), status={"phase": "Failed"})
    assert "creates no other pod" not in why(tmp_path, "pod/web-x", deleted, failed).out


@pytest.mark.parametrize(
    ("ready", "fix"),
    [("Unknown", "repair n: no kubelet answers there"), ("False", "see that a:1 exists, and that n may pull it")],
)
def test_an_image_is_not_pulled_on_a_node_that_is_not_ready(tmp_path: Path, ready: str, fix: str) -> None:
    lost = {**node("n"), "status": {"conditions": [{"type": "Ready", "status": ready}]}}
    status = {"phase": "Pending", "containerStatuses": waiting("ImagePullBackOff")}
    own = pod("x", on="n", containers=[{"name": "app", "image": "a:1"}], status=status)
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [lost, own]}))
    assert fix in kschedx("why", "pod/x", "-s", "cluster.json", cwd=tmp_path, columns=400).out


def test_a_failed_pod_that_was_out_of_memory(tmp_path: Path) -> None:
    result = why(tmp_path, "pod/x", pod("x", on="n", status=OUT_OF_MEMORY))
    assert "fix       raise limits.memory of container app: it was OOMKilled" in result.out


def test_an_event_is_compared_only_with_an_evaluated_pod(tmp_path: Path) -> None:
    message = "0/1 nodes are available: 1 Insufficient cpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    result = why(tmp_path, "pod/x", TERMINATING, pod("x", status={"phase": "Pending", "conditions": [condition]}))
    assert "is pending: namespace default is being deleted" in result.out
    assert "finds a node" not in result.out


def test_a_replica_set_has_replaced_a_terminating_pod(tmp_path: Path) -> None:
    lost = {**node("lost"), "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    metadata = {**owned("ReplicaSet", "web"), "deletionTimestamp": SINCE}
    objects = [workload("ReplicaSet", replicas=1), replica("web-a", "ReplicaSet", "web")]
    result = why(tmp_path, "pod/web-b", lost, *objects, pod("web-b", on="lost", metadata=metadata))
    assert "ReplicaSet web does not count it, and replaces it at once" in result.out
    result = why(tmp_path, "rs/web", lost, *objects, pod("web-b", on="lost", metadata=metadata))
    assert (result.code, "being deleted" in result.out) == (0, False)


EVICTED: dict[str, Any] = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
GONE = {"deletionTimestamp": SINCE}


@pytest.mark.parametrize(
    ("kind", "changed", "state"),
    [
        ("ReplicaSet", {"replicas": 0}, "is scaled to 0"),
        ("StatefulSet", {"replicas": 3, "ordinals": {"start": 1}}, "starts with ordinal 1"),
        ("StatefulSet", {"replicas": 0, "ordinals": {"start": 1}}, "is scaled to 0"),
        ("Job", {"suspend": True}, "is suspended"),
        ("ReplicaSet", {"metadata": GONE}, "is being deleted"),
    ],
)
def test_a_controller_that_needs_no_other_pod(tmp_path: Path, kind: str, changed: dict[str, Any], state: str) -> None:
    owner, after = workload(kind, **changed), f"{kind} web {state}, and creates no other pod"
    result = why(tmp_path, "pod/web-0", owner, replica("web-0", kind, "web", **EVICTED))
    assert after in result.out
    assert f"fix       delete the pod, which {kind} web no longer needs" in result.out
    on_lost = replica("web-0", kind, "web", on="m")
    assert "creates another" not in why(tmp_path, "pod/web-0", LOST, owner, on_lost).out
    deleted = {**on_lost, "metadata": {**at(on_lost, "metadata"), **GONE}}
    lost = {**LOST, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    result = why(tmp_path, "pod/web-0", lost, owner, deleted)
    assert "force the deletion of web-0 if node m is gone for good · not tried" in result.out
    assert f"{kind} web" not in result.out


@pytest.mark.parametrize("detaches", [False, True])
def test_the_taint_that_detaches_volumes_comes_before_a_forced_deletion(tmp_path: Path, *, detaches: bool) -> None:
    going = replica("web-0", "StatefulSet", "web", on="m")
    at(going, "metadata").update(GONE)
    at(going, "spec").update(USING if detaches else {})
    lost = {**LOST, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    result = why(tmp_path, "pod/web-0", lost, workload("StatefulSet", replicas=0), going, output="json")
    titles = [fix["title"].partition(" of ")[0] for fix in json.loads(result.out)["fixes"]]
    expected = ["taint node m out", "force the deletion"]
    assert titles == (expected if detaches else expected[::-1])


FAILS = replica("web-2-z", "ReplicaSet", "web-2", ready=False, containerStatuses=waiting("CrashLoopBackOff"))


@pytest.mark.parametrize(
    ("changes", "newest", "is_stalled"),
    [
        ((), FAILS, True),
        (("--delete", "pod/web-1-x"), FAILS, True),
        (("--cordon", "n"), FAILS, False),
        ((), replica("web-2-z", "ReplicaSet", "web-2", ready=False), False),
    ],
    ids=["as it is", "of its pods", "of others", "starts"],
)
def test_a_simulation_reports_a_failing_rollout(
    tmp_path: Path, changes: tuple[str, ...], newest: Manifest, is_stalled: bool
) -> None:
    status = {"replicas": 2, "updatedReplicas": 1}
    template = {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}
    new = workload("ReplicaSet", "web-2", replicas=1, template=template, metadata=owned("Deployment", "web"))
    current = {**workload("Deployment", replicas=1, template=template), "status": status}
    objects = [node("n"), current, ROLLED_OUT, new, replica("web-1-x", "ReplicaSet", "web-1"), newest]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    result = kschedx("simulate", *changes, "-s", "cluster.json", "-o", "json", cwd=tmp_path)
    states = [state["name"] for state in json.loads(result.out)["states"]]
    assert (states, result.code) == (["RolloutStalled"] if is_stalled else [], 0)
    fixes = kschedx("why", "pod/web-2-z", "-s", "cluster.json", cwd=tmp_path, columns=400).out
    assert ("kubectl rollout undo deployment/web" in fixes) == (newest is FAILS)


def test_the_former_template_is_no_remedy_for_its_own_pods(tmp_path: Path) -> None:
    crashes = waiting("CrashLoopBackOff")
    template = {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}
    status = {"replicas": 2, "updatedReplicas": 1}
    current = {**workload("Deployment", replicas=1, template=template), "status": status}
    new = workload("ReplicaSet", "web-2", template=template, metadata=owned("Deployment", "web"))
    objects = [current, ROLLED_OUT, new]
    for revision, it in zip("212", objects, strict=True):
        at(it, "metadata")["annotations"] = {"deployment.kubernetes.io/revision": revision}
    objects += [replica("web-1-x", "ReplicaSet", "web-1", ready=False, containerStatuses=crashes), FAILS]
    undo = "kubectl rollout undo"
    assert undo not in why(tmp_path, "pod/web-1-x", *objects).out
    result = why(tmp_path, "deploy/web", *objects)
    assert ("default/web-2-z is scheduled" in result.out, undo in result.out) == (True, True)


@pytest.mark.parametrize(
    ("reason", "spec", "says"),
    [
        ("DeadlineExceeded", {"activeDeadlineSeconds": 600}, "too late (activeDeadlineSeconds 600)"),
        ("BackoffLimitExceeded", {"backoffLimit": 0}, "too late (backoffLimit 0)"),
        ("BackoffLimitExceeded", {}, "too late"),
    ],
)
def test_a_failed_job_names_the_limit_that_it_has_reached(
    tmp_path: Path, reason: str, spec: Manifest, says: str
) -> None:
    job = {**workload("Job"), "status": limits("Failed", "True", reason, "too late")}
    at(job, "spec").update(spec)
    assert f"because   {says}\n" in why(tmp_path, "job/web", job).out


def test_a_job_pod_that_is_deleted_waits_for_its_controller(tmp_path: Path) -> None:
    held = {**owned("Job", "web"), "finalizers": ["batch.kubernetes.io/job-tracking"], "deletionTimestamp": SINCE}
    result = why(tmp_path, "web-0", pod("web-0", on="n", metadata=held), static("kube-controller-manager"))
    assert "the object stays until the Job controller is done" in result.out
    assert "fix 1     repair kube-controller-manager" in result.out


@pytest.mark.parametrize(("kind", "target"), [("StatefulSet", "sts/web"), ("Job", "job/web")])
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_workload_with_all_its_pods_is_answered_by_the_pending_one_although_another_would_be_refused(
    tmp_path: Path, kind: str, target: str, replicas: int
) -> None:
    fields = ("parallelism", "completions") if kind == "Job" else ("replicas",)
    owner = workload(kind)
    at(owner, "spec").update(dict.fromkeys(fields, replicas))
    bounds = [{"type": "Container", "max": {"cpu": "500m"}}]
    metadata = {"name": "small", "namespace": "default"}
    limit_range: Manifest = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": bounds}}
    pending = pod("web-0", metadata=owned(kind, "web"), containers=SMALL["containers"], nodeSelector={"disk": "ssd"})
    result = why(tmp_path, target, limit_range, owner, pending)
    is_complete = replicas == 1
    assert result.out.startswith("✗ default/web-0 is unschedulable") is is_complete
    assert ("the API server would refuse another pod" in " ".join(result.out.split())) is is_complete


@pytest.mark.parametrize(
    ("ended", "says"),
    [
        ({"reason": "OOMKilled", "exitCode": 137}, "container app: CrashLoopBackOff: OOMKilled, exit code 137"),
        (None, "container app: CrashLoopBackOff: back-off 5m"),
    ],
)
def test_a_predecessor_that_crashes_is_named_with_its_exit(tmp_path: Path, ended: Manifest | None, says: str) -> None:
    state = waiting("CrashLoopBackOff", "back-off 5m")
    if ended is not None:
        state[0]["lastState"] = {"terminated": ended}
    first = replica("web-0", "StatefulSet", "web", ready=False, containerStatuses=state)
    owner = workload("StatefulSet")
    at(owner, "spec")["replicas"] = 2
    assert f"web-0: {says}\n" in why(tmp_path, "sts/web", owner, first).out


CANARY = "argoproj.io/v1alpha1"


@pytest.mark.parametrize(
    ("strategy", "cpu", "is_shown"),
    [
        ({"canary": {"steps": []}}, "40", True),
        ({"canary": {"maxSurge": 0}}, "40", False),
        ({"blueGreen": {}}, "40", False),
        ({"canary": {}}, "100", False),  # it does not fit without the old pod either
    ],
)
def test_an_old_pod_of_a_canary_goes_first(tmp_path: Path, strategy: Manifest, cpu: str, *, is_shown: bool) -> None:
    def revision(number: str, requested: str) -> tuple[Manifest, Manifest]:
        spec: Manifest = {"containers": [{"name": "c", "resources": {"requests": {"cpu": requested}}}]}
        template = {"metadata": {"labels": {"app": "web", "rollouts-pod-template-hash": number}}, "spec": spec}
        above = {"apiVersion": CANARY, "kind": "Rollout", "name": "web", "uid": "u", "controller": True}
        metadata: Manifest = {"ownerReferences": [above]}
        return workload("ReplicaSet", f"web-{number}", metadata=metadata, replicas=1, template=template), spec

    (old, old_spec), (new, new_spec) = revision("0", "40"), revision("1", cpu)
    rollout = {**workload("Rollout", strategy=strategy, replicas=1), "apiVersion": CANARY}
    pods = [
        pod("web-0-a", on="n", metadata=owned("ReplicaSet", "web-0"), spec=old_spec),
        pod("web-1-a", metadata=owned("ReplicaSet", "web-1"), spec=new_spec),
    ]
    result = why(tmp_path, "rollout/web", rollout, old, new, *pods)
    title = "set maxSurge: 0, maxUnavailable: 1 on Rollout web: an old pod such as default/web-0-a goes first"
    assert (title in " ".join(result.out.split())) is is_shown


@pytest.mark.parametrize(("surge", "is_shown"), [("25%", True), (0, False)])
def test_an_old_pod_of_another_scheduler_goes_first(tmp_path: Path, surge: object, *, is_shown: bool) -> None:
    def revision(number: str) -> Manifest:
        template = {"metadata": {"labels": {"app": "web", "pod-template-hash": number}}, "spec": spec}
        metadata = owned("Deployment", "web")
        return workload("ReplicaSet", f"web-{number}", metadata=metadata, replicas=1, template=template)

    spec: Manifest = {"schedulerName": "volcano", **LARGE}
    strategy = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    deployment = workload("Deployment", strategy=strategy, replicas=1, template=template)
    pods = [
        pod("web-0-a", on="n", metadata=owned("ReplicaSet", "web-0"), spec=spec),
        pod("web-1-a", metadata=owned("ReplicaSet", "web-1"), spec=spec),
    ]
    result = why(tmp_path, "pod/web-1-a", deployment, revision("0"), revision("1"), *pods)
    title = "set maxSurge: 0, maxUnavailable: 1 on Deployment web: an old pod such as default/web-0-a goes first"
    assert (title in " ".join(result.out.split())) is is_shown


@pytest.mark.parametrize(("gpus", "is_shown"), [({}, True), ({"nvidia.com/gpu": "1"}, False)])
def test_a_pod_of_another_scheduler_lacks_gpus(tmp_path: Path, gpus: dict[str, str], *, is_shown: bool) -> None:
    container: Manifest = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"schedulerName": "volcano", "containers": [container]}
    machine = node("m", allocatable={"cpu": "4", "pods": "9"} | gpus)
    result = why(tmp_path, "pod/x", machine, pod("x", spec=spec))
    title = "add a node with nvidia.com/gpu, or repair its device plugin: no node has nvidia.com/gpu in its allocatable"
    assert (title in " ".join(result.out.split())) is is_shown


@pytest.mark.parametrize(
    ("scheduler", "is_down"), [("jhub-user-scheduler", True), ("own-kube-scheduler", False), ("my-scheduler", False)]
)
def test_a_scheduler_whose_pods_lack_the_release_in_their_names(tmp_path: Path, scheduler: str, is_down: bool) -> None:
    names = ("user-scheduler", "kube-scheduler", "scheduler")
    down = [replica(f"{name}-x", "StatefulSet", name, ready=False) for name in names]
    result = why(tmp_path, "pod/x", pod("x", schedulerName=scheduler), *down)
    headline = f"default/x is not scheduled: {scheduler} does not run"
    assert (headline in result.out) is is_down
    assert not is_down or "default/user-scheduler-x is not ready" in result.out


def test_a_workload_whose_pods_are_refused_once_it_is_resumed(tmp_path: Path) -> None:
    paused = workload("Deployment", paused=True)
    limits = {"limits": [{"type": "Container", "min": {"cpu": "1"}}]}
    metadata = {"name": "l", "namespace": "default"}
    limit_range: Manifest = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": limits}
    requests = {"requests": {"cpu": "500m"}}
    small = changed(paused, "spec.template.spec.containers", [{"name": "main", "image": "x", "resources": requests}])
    document = json.loads(why(tmp_path, "deploy/web", node("n"), small, limit_range, output="json").out)
    [fix] = document["fixes"]
    assert fix["title"].startswith("resume the Deployment; then raise requests.cpu of container main to 1")


@pytest.mark.parametrize(("status", "is_observed"), [({}, False), ({"phase": "Progressing"}, True)])
def test_a_rollout_without_a_status_is_not_observed(tmp_path: Path, status: Manifest, is_observed: bool) -> None:
    rollout = workload("Deployment", replicas=2) | {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    result = why(tmp_path, "rollout/web", {**rollout, "status": status})
    assert ("gets no new pods: no controller has observed it" in result.out) is not is_observed
    assert ("fix       see whether the controller of Rollout runs" in result.out) is not is_observed
    assert result.code == int(not is_observed)
