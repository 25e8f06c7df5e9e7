"""The text of an event, of any version, is parsed into counted, known reasons."""

from __future__ import annotations

import gzip
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from kschedx.errors import InputError
from kschedx.explain.events import Stage, events_in, parse
from kschedx.render.catalogue import reason_lines

RECORDED = sorted((Path(__file__).parent.parent / "conformance").glob("*.jsonl.gz"))

Parsed = list[tuple[int | None, str, str]]


def parse_event(text: str, stage: Stage = Stage.FILTER) -> Parsed:
    return [(part.count, part.plugin, part.reason) for part in parse(text).parts if part.stage is stage]


FIT, TAINT = "NodeResourcesFit", "TaintToleration"


@pytest.mark.parametrize(
    ("text", "filtered", "preemption"),
    [
        pytest.param(
            "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s). no new claims to "
            "deallocate, preemption: 0/5 nodes are available: 2 No preemption victims found for incoming pod, "
            "3 Preemption is not helpful for scheduling.",
            [(2, FIT, "insufficient-resource"), (3, TAINT, "untolerated-taint")],
            [
                (None, "DynamicResources", ""),
                (2, "DefaultPreemption", "no-preemption-victims"),
                (3, "DefaultPreemption", "preemption-not-helpful"),
            ],
            id="1.36",
        ),
        pytest.param(
            "0/3 nodes are available: 1 node(s) had taint {dedicated: gpu}, that the pod didn't tolerate, "
            "2 Insufficient memory.",
            [(1, TAINT, "untolerated-taint"), (2, FIT, "insufficient-resource")],
            [],
            id="1.18, a comma in the reason",
        ),
        pytest.param(
            "0/4 nodes are available: 4 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never..",
            [(4, FIT, "insufficient-resource")],
            [(None, "DefaultPreemption", "preemption-not-eligible")],
            id="1.26, two full stops",
        ),
        pytest.param(
            '0/4 nodes are available: persistentvolumeclaim "data-mongo-2" not found. not found',
            [(None, "VolumeBinding", "claim-not-found")],
            [(None, "DynamicResources", "preemption-not-tried")],
            id="PreFilter",
        ),
        pytest.param(
            "pod (web) failed to fit in any node\nfit failure summary on nodes : Insufficient cpu (2), "
            "MatchNodeSelector (6)",
            [(2, FIT, "insufficient-resource"), (6, "NodeAffinity", "node-affinity-mismatch")],
            [],
            id="1.5",
        ),
        pytest.param(
            "0/6 nodes are available: 6 node(s) didn't satisfy plugin(s) [NodeAffinity VolumeBinding] simultaneously.",
            [(6, "NodeAffinity, VolumeBinding", "nodes-excluded")],
            [],
            id="plugins are named in the text",
        ),
        pytest.param(
            "Warning  FailedScheduling  3m (x5 over 9m)  default-scheduler  0/1 nodes are available: 1 Too many pods.",
            [(1, FIT, "too-many-pods")],
            [],
            id="a line of kubectl describe",
        ),
        pytest.param(
            "No nodes are available that match all of the predicates: Insufficient cpu (2), MatchNodeSelector (1).",
            [(2, FIT, "insufficient-resource"), (1, "NodeAffinity", "node-affinity-mismatch")],
            [],
            id="1.8",
        ),
        pytest.param("Insufficient cpu", [(None, FIT, "insufficient-resource")], [], id="a reason alone"),
        pytest.param(
            "no fit: 0/9 nodes available: Insufficient cpu, Insufficient memory, 4 node(s) didn’t match node selector, "
            "and 5 node(s) had taint {dedicated=gpu: NoSchedule}.; waiting",
            [
                (None, FIT, "insufficient-resource"),
                (None, FIT, "insufficient-resource"),
                (4, "NodeAffinity", "node-affinity-mismatch"),
                (5, TAINT, "untolerated-taint"),
            ],
            [],
            id="as people write it down",
        ),
        pytest.param("0/2 nodes are available: 2 foo, bar.", [(2, "", "")], [], id="unknown"),
        pytest.param(
            "0/x nodes are available: 1 Insufficient cpu. preemption: 0/9 nodes are available: 9 No preemption victims "
            "found for incoming pod.",
            [(1, FIT, "insufficient-resource")],
            [(9, "DefaultPreemption", "no-preemption-victims")],
            id="a number made unreadable",
        ),
        pytest.param(
            "Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available: 1 No preemption victims found for "
            "incoming pod.",
            [(None, FIT, "insufficient-resource")],
            [(1, "DefaultPreemption", "no-preemption-victims")],
            id="without its beginning",
        ),
        pytest.param(
            'running "VolumeBinding" filter plugin for pod "db-0": pod has unbound immediate PersistentVolumeClaims',
            [(None, "VolumeBinding", "claim-unbound")],
            [],
            id="1.18",
        ),
        *(
            pytest.param(
                f"{head}: number of allocations 1 is smaller than number of claims 2",
                [(None, "DynamicResources", "plugin-message")],
                [],
                id=head,
            )
            for head in (
                'running "DynamicResources" filter plugin',
                'running PreFilter plugin "DynamicResources"',
                'running Score plugins: plugin "DynamicResources" failed with',
            )
        ),
        pytest.param(
            "pod has unbound PersistentVolumeClaims (repeated 2 times)",
            [(None, "VolumeBinding", "claim-unbound")],
            [],
            id="1.10",
        ),
        pytest.param(
            "0/3 nodes are available: 1 ExistingPodsAntiAffinityRulesNotMatch, 2 CheckServiceAffinity",
            [
                (1, "InterPodAffinity", "existing-anti-affinity-conflict"),
                (2, "CheckServiceAffinity", "service-affinity-mismatch"),
            ],
            [],
            id="1.9, of a policy",
        ),
        pytest.param(
            "all nodes are unavailable: 1 plugin InterPodAffinity predicates failed node(s) didn't match pod "
            "affinity/anti-affinity rules, 2 node(s) resource fit failed.",
            [(1, "InterPodAffinity", "pod-affinity-unsatisfied"), (2, FIT, "insufficient-resource")],
            [],
            id="Volcano",
        ),
        pytest.param(
            "I0211 15:35:46.498813       1 scale_up.go:288] Pod restic can't be scheduled on ng-1, predicate checking "
            "error: node(s) didn't match Pod's node affinity; predicateName=NodeAffinity; reasons: node(s) didn't "
            "match Pod's node affinity; debugInfo=",
            [(None, "cluster-autoscaler", "no-scale-up"), (None, "NodeAffinity", "node-affinity-mismatch")],
            [],
            id="the log of cluster-autoscaler",
        ),
        pytest.param(
            '11:26:54 AMI0518 18:26:54.972753       1 event.go:211] Event(api.ObjectReference{Kind:"Pod", '
            "Name:\"web\", FieldPath:\"\"}): type: 'Warning' reason: 'FailedScheduling' no nodes available to schedule "
            "pods",
            [(None, "kube-scheduler", "no-nodes")],
            [],
            id="an event in a log, copied from a console",
        ),
    ],
)
def test_texts(text: str, filtered: Parsed, preemption: Parsed) -> None:
    assert parse_event(text) == filtered
    assert parse_event(text, Stage.PREEMPTION) == preemption


def messages() -> Iterator[str]:
    for path in RECORDED:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for load in map(json.loads, lines):
                expected = load["expect"]
                if expected.get("message") and not expected.get("error"):
                    yield expected["message"]


def test_every_recorded_event_is_known() -> None:
    events = {message: parse(message) for message in messages()}
    assert len(events) > 100
    unknown = {part.text for event in events.values() for part in event.parts if not part.is_known}
    assert not unknown
    assert all(event.parts for event in events.values())


def test_an_event_without_the_quotation_marks_that_a_shell_removes_has_the_same_reasons() -> None:
    quoted = {part.text for message in messages() for part in parse(message).parts if re.search("['\"]", part.text)}
    assert len(quoted) > 10
    for text in quoted:
        assert parse_event(re.sub("['\"]", "", text)) == parse_event(text)


def test_an_unknown_reason_is_named_unknown() -> None:
    lines = [line.plain for line in reason_lines("0/2 nodes are available: 2 foo.", 80)]
    assert any("unknown" in line for line in lines)


def test_counts_that_exceed_the_nodes_are_explained() -> None:
    text = "0/4 nodes are available: 3 Insufficient memory, 4 Insufficient cpu."
    assert any("exceed" in line.plain for line in reason_lines(text, 80))


@pytest.mark.parametrize(
    "what", ["insufficient-resource", "NodeResourcesFit", "0/1 nodes are available: 1 Too many pods."]
)
@pytest.mark.parametrize("width", [60, 80, 100])
def test_screens_keep_to_the_width(what: str, width: int) -> None:
    lines = reason_lines(what, width)
    assert all(line.cell_len <= width or line.plain.startswith("https://") for line in lines)


def test_the_reason_of_most_nodes_is_explained_first() -> None:
    text = "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu."
    headings = [line.plain for line in reason_lines(text, 100) if line.plain.startswith("✗ ")]
    assert [heading.split()[1] for heading in headings[1:]] == ["insufficient-resource", "node-unschedulable"]


def test_an_unknown_id_is_an_error_with_the_nearest() -> None:
    with pytest.raises(InputError, match='did you mean "insufficient-resource"'):
        reason_lines("insuficient-resource", 80)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("cannot allocate all claims", "insufficient-devices"),
        ("resourceclaim not available on the node", "device-claim-out-of-reach"),
        ('could not find ResourceClaim "prod/gpu"', "device-claim-not-found"),
        ('resourceclaim "gpu" is being deleted', "device-claim-being-deleted"),
        ('pod "prod/web": ResourceClaim not created yet', "device-claim-not-created"),
        ("ResourceClaim prod/gpu was not created for Pod prod/web (Pod is not owner)", "device-claim-not-owned"),
        ("request r0: device class ghost does not exist", "device-class-not-found"),
        ("claim prod/gpu: selector #0: CEL runtime error: no such key: numa", "device-selector-failed"),
        ("invalid resource pools were encountered", "plugin-message"),
    ],
)
def test_messages_about_devices(text: str, reason: str) -> None:
    assert parse_event(text) == [(None, "DynamicResources", reason)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'running PreBind plugin "VolumeBinding": binding volumes: timed out waiting for the condition',
            [(None, "kube-scheduler", "binding-failed")],
        ),
        ("Preempted by pod 5f0 on node n3", [(None, "kube-scheduler", "preempted")]),
        (
            'Operation cannot be fulfilled on pods/binding "web-0": pod web-0 is already assigned to node "b"',
            [(None, "kube-scheduler", "binding-failed")],
        ),
        (
            "Scheduling is blocked due to non-empty scheduling gates",
            [(None, "SchedulingGates", "scheduling-gated")],
        ),
        (
            "3/4 tasks in gang unschedulable: pod group is not ready, 3 Pending, 1 Running, 4 minAvailable",
            [(None, "Volcano", "gang-not-ready")],
        ),
        (
            "3/3 tasks in gang unschedulable: x; Origin reason is m-0: 0/2 nodes are unavailable: 2 Insufficient cpu.",
            [(None, "Volcano", "gang-not-ready"), (2, "NodeResourcesFit", "insufficient-resource")],
        ),
        (
            "Request 'main' does not fit in queue 'root.ml' (requested map[vcore:8000], available map[vcore:2000])",
            [(None, "YuniKorn", "queue-limit-reached")],
        ),
        (
            "rejected due to timeout after waiting 10m0s at plugin Coscheduling",
            [(None, "kube-scheduler", "binding-failed")],
        ),
        (
            "Preempted to accommodate a workload (UID: 1) due to prioritization in the ClusterQueue",
            [(None, "Kueue", "preempted")],
        ),
        ("deleting pod for node scale down", [(None, "cluster-autoscaler", "evicted-by-api")]),
        (
            "0/9 nodes are available: 9 node(s) had untolerated taint {dedicated: ing",
            [(9, "TaintToleration", "untolerated-taint")],
        ),
        (
            "Misconfigured Fargate Profile: fargate profile fp blocked for new launches due to: Pod execution role",
            [(None, "EKS Fargate", "not-for-fargate")],
        ),
        (
            "Pod not supported on Fargate: volumes not supported: data",
            [(None, "EKS Fargate", "not-for-fargate")],
        ),
        (
            "Your AWS account is currently blocked from launching new Fargate pods",
            [(None, "EKS Fargate", "not-for-fargate")],
        ),
        (
            (
                "Pod didn't fit: queue ml quota has reached the allowable limit of GPUs. Limit is 2 GPUs, currently "
                "2 GPUs allocated and workload requested 1 GPUs"
            ),
            [(None, "KAI", "queue-limit-reached")],
        ),
        (
            (
                "Non-preemptible workload is over quota. Workload requested 1 GPUs, but ml quota is 2 GPUs, while "
                "2 GPUs are already allocated for non-preemptible pods. Use a preemptible workload to go over quota."
            ),
            [(None, "KAI", "queue-limit-reached")],
        ),
        (
            "Cannot schedule pods: No node pool can be auto-provisioned that would satisfy the pod.",
            [(None, "cluster-autoscaler", "no-scale-up")],
        ),
        ("no.scale.up.nap.pod.zonal.resources.exceeded", [(None, "cluster-autoscaler", "no-scale-up")]),
        ("Cannot schedule pods: Insufficient cpu.", [(None, FIT, "insufficient-resource")]),
        (
            'failed to provision volume with StorageClass "gp3": rpc error: code = Internal desc = not authorized',
            [(None, "storage driver", "provisioning-failed")],
        ),
        ("Job has reached the specified backoff limit", [(None, "kube-controller-manager", "job-failed")]),
        (
            "Cannot determine if job needs to be started: too many missed start time (> 100).",
            [(None, "kube-controller-manager", "runs-missed")],
        ),
        ('Pdb "shop/web" prevents pod evictions', [(None, "Karpenter", "disruption-blocked")]),
        ("skip schedule deleting pod: shop/web-0", [(None, "kube-scheduler", "deleted-while-pending")]),
        (
            "pod didn't trigger scale-up: 1 max node group size reached, 2 Insufficient memory",
            [
                (None, "cluster-autoscaler", "no-scale-up"),
                (1, "cluster-autoscaler", "no-scale-up"),
                (2, FIT, "insufficient-resource"),
            ],
        ),
        (
            "Normal  NotTriggerScaleUp  2m  cluster-autoscaler  pod didn't trigger scale-up: ",
            [(None, "cluster-autoscaler", "no-scale-up")],
        ),
        ("pod triggered scale-up: [{pool-a 1->2 (max: 9)}]", [(None, "cluster-autoscaler", "scale-up")]),
        (
            (
                'Failed to schedule pod, incompatible with nodepool "gpu", daemonset overhead={"pods":"4"}, '
                "did not tolerate taint nvidia.com/gpu:NoSchedule"
            ),
            [(None, "Karpenter", "no-node-pool")],
        ),
        ('incompatible with provisioner "default", no instance type fits', [(None, "Karpenter", "no-node-pool")]),
        ("Pod should schedule on: nodeclaim/default-x7b", [(None, "Karpenter", "scale-up")]),
        (
            'Error creating: pods "web-6c" is forbidden: exceeded quota: compute, requested: cpu=1, used: cpu=4',
            [(None, "API server", "quota-exceeded")],
        ),
        (
            (
                'error when evicting pods/"web-0" -n "a" (will retry after 5s): Cannot evict pod as it would violate '
                "the pod's disruption budget."
            ),
            [(None, "API server", "eviction-refused")],
        ),
        (
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 500, used: 3900, capacity: 4000",
            [(None, "kubelet", "rejected-by-kubelet")],
        ),
        ("UnexpectedAdmissionError", [(None, "kubelet", "rejected-by-kubelet")]),
        (
            (
                "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. Container web was "
                "using 2Gi, request is 1Gi, has larger consumption of memory."
            ),
            [(None, "kubelet", "evicted-by-kubelet")],
        ),
        (
            "Taint manager: deleting due to NoExecute taint",
            [(None, "kube-controller-manager", "evicted-for-taint")],
        ),
        (
            "DeviceTaintManagerEviction: Marking for deletion",
            [(None, "kube-controller-manager", "evicted-for-taint")],
        ),
        (
            'FailedResourceClaimCreation: PodResourceClaim gpu: resourceclaims "web-gpu" is forbidden',
            [(None, "kube-controller-manager", "device-claim-not-created")],
        ),
        ("ImageGCFailed: failed to get imageFs info", [(None, "kubelet", "node-pressure")]),
        (
            "Normal  TaintManagerEviction  9s  taint-eviction-controller  Cancelling deletion of Pod default/web",
            [(None, "kube-controller-manager", "eviction-cancelled")],
        ),
        (
            "Pod was evicted by VPA Updater to apply resource recommendation.",
            [(None, "VerticalPodAutoscaler", "evicted-by-vpa")],
        ),
        (
            (
                "Normal  WaitForFirstConsumer  9s  persistentvolume-controller  waiting for first consumer "
                "to be created before binding"
            ),
            [(None, "kube-controller-manager", "claim-waits-for-pod")],
        ),
        (
            'Warning  FailedBinding  3s  persistentvolume-controller  volume "v" already bound to a different claim.',
            [(None, "kube-controller-manager", "claim-unbound")],
        ),
        (
            'Cannot bind to requested volume "v": requested PV is too small',
            [(None, "kube-controller-manager", "claim-unbound")],
        ),
        (
            'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) web-0',
            [(None, "kube-controller-manager", "volume-attached-elsewhere")],
        ),
        (
            'MountVolume.SetUp failed for volume "cert" : secret "tls-cert" not found',
            [(None, "kubelet", "volume-not-mounted")],
        ),
        (
            'Failed to create pod sandbox: rpc error: code = Unknown desc = plugin type="calico" failed (add)',
            [(None, "kubelet", "sandbox-not-created")],
        ),
        ("Back-off restarting failed container app in pod web-0", [(None, "kubelet", "container-fails")]),
        ("ImagePullBackOff", [(None, "kubelet", "image-not-pulled")]),
        ("exit code 137", [(None, "kubelet", "container-fails")]),
        ("PostStartHook failed", [(None, "kubelet", "container-fails")]),
        ('forbidden sysctl: "net.core.somaxconn" not allowlisted', [(None, "kubelet", "rejected-by-kubelet")]),
        ("Pod sandbox changed, it will be killed and re-created.", [(None, "kubelet", "sandbox-not-created")]),
        ("JobAlreadyActive", [(None, "kube-controller-manager", "runs-missed")]),
        (
            "ScalingLimited  True  TooManyReplicas  the desired replica count is more than the maximum replica count",
            [(None, "kube-controller-manager", "scaling-limited")],
        ),
        ("ScalingDisabled", [(None, "kube-controller-manager", "scaling-inactive")]),
        ("Node n1 has been rebooted, boot id: 1d2c", [(None, "kubelet", "node-rebooted")]),
        ("invalid capacity 0 on image filesystem", [(None, "kubelet", "disk-capacity-unknown")]),
        (
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied line is: 10.0.0.2",
            [(None, "kubelet", "dns-settings-cut")],
        ),
        ("FrequentKubeletRestart", [(None, "node-problem-detector", "node-problem")]),
        ("containers with unready status: [app]", [(None, "kubelet", "containers-not-ready")]),
        ("waiting for an external controller to expand this PVC", [(None, "storage driver", "volume-not-expanded")]),
        (
            "persistentvolume pvc-1 is still attached to node n1",
            [(None, "storage driver", "volume-not-deleted")],
        ),
        ("Container app failed liveness probe, will be restarted", [(None, "kubelet", "probe-failed")]),
        ("Spot interruption warning was triggered", [(None, "Karpenter", "node-removed")]),
        (
            'ReplicaSet "web-6d9f" has timed out progressing.',
            [(None, "kube-controller-manager", "rollout-deadline-exceeded")],
        ),
        (
            (
                "no nodes with enough resources were found: 2 node(s) had untolerated taint(s). \n"
                "5 node(s) didn't have enough resources: GPUs."
            ),
            [(2, "TaintToleration", "untolerated-taint"), (5, "KAI", "insufficient-resource")],
        ),
        (
            'Cannot disrupt Node: Pod "shop/a" has "karpenter.sh/do-not-disrupt" annotation',
            [(None, "Karpenter", "disruption-blocked")],
        ),
        (
            "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor a, 2 more needed",
            [(None, "Kueue", "quota-not-reserved")],
        ),
    ],
)
def test_messages_of_other_components(text: str, expected: Parsed) -> None:
    assert parse_event(text) == expected
    assert reason_lines(text, 80)


@pytest.mark.parametrize(
    ("message", "author", "reason"),
    [
        ("failed quota: compute: must specify limits.cpu for: app", "API server", "quota-exceeded"),
        ('pods "x" is forbidden: maximum cpu usage per Pod is 2, but limit is 4', "API server", "limit-range-violated"),
        (
            'pods "x" is forbidden: violates PodSecurity "baseline:latest": host ports',
            "API server",
            "pod-security-violated",
        ),
        ('pods "x" is forbidden: no PriorityClass with name high was found', "API server", "refused"),
        ('Error creating: admission webhook "a.b" denied the request: no', "API server", "denied-by-webhook"),
        ("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", "API server", "denied-by-webhook"),
        ('failed calling webhook "a.b": failed to call webhook: Post "https://x"', "API server", "webhook-unreachable"),
        ('Error creating: Pod "w" is invalid: spec: Required value', "kube-controller-manager", "pods-not-created"),
        ("FailedCreate", "kube-controller-manager", "pods-not-created"),
        ("ReplicaFailure   True    FailedCreate", "kube-controller-manager", "pods-not-created"),
        ('Failed to create new replica set "w-1": quota', "kube-controller-manager", "pods-not-created"),
        ("  Available      False   MinimumReplicasUnavailable", "kube-controller-manager", "replicas-unavailable"),
        ("Progressing      False   ProgressDeadlineExceeded", "kube-controller-manager", "rollout-deadline-exceeded"),
        ("add cmd: failed to assign an IP address to container", "kubelet", "sandbox-not-created"),
        (
            "Warning  OOMKilling  2m  kernel-monitor  Memory cgroup out of memory: Killed process 7 (java)",
            "kubelet",
            "container-fails",
        ),
        ("Normal   DeletingNode  2m  cloud-node-lifecycle-controller", "kube-controller-manager", "node-lost"),
        ("Deployment does not have minimum availability.", "kube-controller-manager", "replicas-unavailable"),
        (
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
            "API server",
            "refused",
        ),
        ('The Deployment "w" is invalid: spec.selector: Required value', "API server", "refused"),
        ("no nodes with enough resources were found", "KAI", "insufficient-resource"),
        (
            "Found failed daemon pod a/b on node c, will try to kill it",
            "kube-controller-manager",
            "failed-pod-replaced",
        ),
        ("failed to get cpu utilization: missing request for cpu", "kube-controller-manager", "metrics-missing"),
        ('AttachVolume.Attach failed for volume "v" : rpc error', "kube-controller-manager", "volume-not-attached"),
        ('storageclass.storage.k8s.io "fast" not found', "VolumeZone", "storage-class-not-found"),
        ('Error: configmap "app" not found', "kubelet", "container-not-configured"),
        ("Readiness probe failed: connection refused", "kubelet", "probe-failed"),
        ("NotTriggerScaleUp", "cluster-autoscaler", "no-scale-up"),
        ("Scale-up failed for group ng-1: OutOfResource", "cluster-autoscaler", "scale-up-failed"),
        ('all available instance types exceed limits for nodepool: "a"', "Karpenter", "node-pool-at-limit"),
        ("Unconsolidatable: Can't replace with a cheaper node", "Karpenter", "not-consolidated"),
        ("InsufficientCapacityError: creating instance failed", "Karpenter", "instance-not-launched"),
        (
            "couldn't assign flavors to pod set main: topology \"t\" doesn't allow to fit any of 4 pod(s)",
            "Kueue",
            "topology-misfit",
        ),
        ("At least one admission check is false", "Kueue", "admission-check-not-ready"),
        ("Exceeded the PodsReady timeout shop/job-1", "Kueue", "pods-ready-timeout"),
        ("The workload is deactivated", "Kueue", "workload-deactivated"),
        (
            "Failed to calculate the number of expected pods: jobs.batch does not implement the scale subresource",
            "kube-controller-manager",
            "budget-not-computed",
        ),
        (
            "error: cannot delete Pods with local storage (use --delete-emptydir-data to override): shop/web-0",
            "kubectl",
            "drain-refused",
        ),
        (
            "DaemonSet-managed pods (use --ignore-daemonsets to ignore): kube-proxy-2",
            "kubectl",
            "drain-refused",
        ),
        ("Attempting to reclaim ephemeral-storage", "kubelet", "node-pressure"),
        ("Node n1 status is now: NodeHasDiskPressure", "kubelet", "node-pressure"),
        (
            "KubeletNotReady  runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni",
            "kubelet",
            "node-not-ready",
        ),
        (
            "I0915 16:59:40.636534 1 cluster.go:89] Fast evaluation: node n1 cannot be removed: pod dns-1 present",
            "cluster-autoscaler",
            "node-not-removed",
        ),
        (
            "I0902 13:22:46.705996 1 utils.go:521] Skipping n1 - node group min size reached",
            "cluster-autoscaler",
            "node-not-removed",
        ),
        ("resource in cluster is overused", "Volcano", "queue-limit-reached"),
        (
            "Node scale up in zones us-central1-a associated with this pod failed: GCE quota exceeded. Pod is at risk.",
            "cluster-autoscaler",
            "scale-up-failed",
        ),
        (
            'waiting for a volume to be created, either by external provisioner "x" or manually created by system',
            "kube-controller-manager",
            "claim-being-provisioned",
        ),
        (
            'error: deployment "web" exceeded its progress deadline',
            "kube-controller-manager",
            "rollout-deadline-exceeded",
        ),
        ("Workload didn't fit in the remaining quota", "Kueue", "quota-not-reserved"),
        (
            '2022-05-09T20:04:37.981Z ERROR controller no instance type satisfied resources {"cpu":"1"} and others',
            "Karpenter",
            "no-node-pool",
        ),
        (
            "failed to place pod on n1: Node didn't have enough resource: cpu, requested: 7, used: 9, capacity: 9",
            "DaemonSet controller",
            "insufficient-resource",
        ),
        ('ProvisioningFailed: storageclass.storage.k8s.io "fast" not found', "VolumeZone", "storage-class-not-found"),
        ("ceph-rgw-548-t5k8d   0/1   NodeAffinity   0   4h25m   <none>   node-5", "kubelet", "rejected-by-kubelet"),
        ("default   spdk-3   0/1   OutOfhugepages-2Mi   0   27d", "kubelet", "rejected-by-kubelet"),
        ("workload namespace doesn't match ClusterQueue selector", "Kueue", "quota-not-reserved"),
        (
            "unsatisfiable topology constraint for topology spread, key=topology.kubernetes.io/zone (counts = a: 1",
            "Karpenter",
            "no-node-pool",
        ),
        ("Warning  EvictionThresholdMet  4m32s  kubelet, n1  its text is unknown", "kubelet", "node-pressure"),
        ("web-0   0/1   Pending   0   5m", "kubectl", "pod-pending"),
        ("web-1   0/2   Init:0/2   0   5m", "kubelet", "pod-starting"),
        ("web-2   0/1   Init:CrashLoopBackOff   5 (1m ago)   50m", "kubelet", "container-fails"),
        ("web-3   1/1   Terminating   2 (5m ago)   5m", "kubelet", "pod-terminating"),
        ("n1   NotReady   <none>   4d   v1.33.1", "kubelet", "node-not-ready"),
        ("n2   Ready,SchedulingDisabled   control-plane   4d   v1.33.1", "kubelet", "node-unschedulable"),
        ("Node n1 status is now: NodeNotSchedulable", "kubelet", "node-unschedulable"),
        ("FailedScheduling", "kube-scheduler", "unschedulable"),
        ("FailedBinding", "kube-controller-manager", "claim-unbound"),
        ("ResizeInfeasible", "kubelet", "resize-pending"),
        ("Job suspended", "kube-controller-manager", "job-suspended"),
        (
            "Failed to prepare dynamic resources: prepare dynamic resources: plugin gpu.nvidia.com: no device",
            "kubelet",
            "devices-not-prepared",
        ),
        ("marked the node as toBeDeleted/unschedulable", "cluster-autoscaler", "node-removed"),
        ("Failed to drain node, 5 pods are waiting to be evicted", "Karpenter", "node-removed"),
        ('plugin type="aws-cni" name="aws-cni" failed (add): add cmd: no IP address', "kubelet", "sandbox-not-created"),
        ('Container image "a:1" is not present with pull policy of Never', "kubelet", "image-not-pulled"),
    ],
)
def test_each_component_has_a_reason_of_its_own(message: str, author: str, reason: str) -> None:
    [part] = parse(message).parts
    assert (part.plugin, part.reason) == (author, reason)


DESCRIBED = """\
Name:             web-0
Status:           Pending
Node-Selectors:   <none>
Events:
  Type     Reason             Age               From                Message
  Warning  FailedScheduling   12m (x9 over 5h)  default-scheduler   0/5 nodes are available: 5 Insufficient cpu.
  Warning  FailedScheduling   9m                default-scheduler   0/5 nodes are available: 5 Insufficient cpu.
  Normal   NotTriggerScaleUp  2m                cluster-autoscaler  pod didn't trigger scale-up: 1 Too many pods
"""


def test_each_event_in_the_output_of_a_command_is_explained_once() -> None:
    events = events_in(DESCRIBED)
    assert [event.nodes for event in events] == [5, None]
    listed = "NAMESPACE  NAME   READY  STATUS   RESTARTS  AGE\nshop       web-0  0/1    Pending  0         5h\n\n"
    assert events_in(listed + DESCRIBED) == events
    lines = [line.plain for line in reason_lines(DESCRIBED, 100)]
    assert sum(line.startswith("✗ insufficient-resource") for line in lines) == 1
    assert any(line.startswith("✗ no-scale-up") for line in lines)
    statuses = events_in(DESCRIBED[: DESCRIBED.index("Events:")])  # its events are too old to be kept
    assert [part.reason for event in statuses for part in event.parts] == ["pod-pending"]
    with pytest.raises(InputError, match="no line of the text"):
        reason_lines("Name: web-0\nEvents: <none>", 80)


FITS_NONE = (
    "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient memory. "
    "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, "
    "2 No preemption victims found for incoming pod."
)


@pytest.mark.parametrize(
    "pasted",
    [
        json.dumps({"level": "warn", "msg": FITS_NONE, "reason": "FailedScheduling"}),
        json.dumps(json.dumps({"msg": FITS_NONE})),
        f'E1120 08:50:05.1 1 schedule_one.go:1055] "Unable to schedule pod; no fit" pod="a/b" err="{FITS_NONE}"',
        "message: '" + FITS_NONE.replace("'", "''") + "'",
        "    message: '" + FITS_NONE.replace("'", "''").replace("preemption: ", "preemption:\n      ") + "'",
        "\n".join(textwrap.wrap(FITS_NONE, 60)),
        "\n".join(FITS_NONE[at : at + 60] for at in range(0, len(FITS_NONE), 60)),
        "  Warning  FailedScheduling  4m (x5 over 24m)  default-scheduler  " + FITS_NONE.replace(", 2", ",\n    2"),
        f"11s   Warning   FailedScheduling   pod/web-0   {FITS_NONE}",
        f"1m\t3s\t7\t{{default-scheduler }}\t\t\tWarning\t\tFailedScheduling\t{FITS_NONE}",
        f"59m   6d    124   web-0.15787b365ab1e4   Pod   Warning   FailedScheduling   default-scheduler   {FITS_NONE}",
        f"| Warning | FailedScheduling | 5m | default-scheduler | {FITS_NONE} |",
        f"│   Warning  FailedScheduling  21m   default-scheduler  {FITS_NONE}      │",
    ],
)
def test_an_event_is_read_in_every_pasted_form(pasted: str) -> None:
    [event] = events_in(pasted)
    assert event.texts == parse(FITS_NONE).texts


@pytest.mark.parametrize("fold", [" preemption:\n      0/2", "\n      preemption: 0/2"])
def test_yaml_may_fold_a_message_at_its_preemption(fold: str) -> None:
    whole = "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 Insufficient cpu."
    [event] = events_in(f"message: '{whole.replace(' preemption: 0/2', fold)}'\nreason: Unschedulable")
    assert event.texts == parse(whole).texts


def test_wrapped_events_end_at_the_next_row() -> None:
    rows = (
        "Warning  FailedScheduling   4m  default-scheduler   0/2 nodes are available: 2 Insufficient\n"
        "                                                    cpu.\n"
        "Normal   NotTriggerScaleUp  4m  cluster-autoscaler  pod didn't trigger scale-up: 1 max node group size reached"
    )
    assert [[part.reason for part in event.parts] for event in events_in(rows)] == [
        ["insufficient-resource"],
        ["no-scale-up", "no-scale-up"],
    ]


@pytest.mark.parametrize(
    "row",
    [
        "Warning  FailedScheduling  33m (x26 over 4h)  default-scheduler  {}",
        "2m     Warning   FailedScheduling   pod/db-0   {}",
        "48s    26s   4   {{default-scheduler }}   Warning   FailedScheduling   {}",
        "FailedScheduling: {}",
    ],
)
def test_a_message_is_read_without_the_columns_before_it(row: str) -> None:
    message = 'persistentvolumeclaim "data-db-0" is being deleted'
    [part] = parse(row.format(message)).parts
    assert (part.reason, part.text) == ("claim-being-deleted", message)


def test_a_reason_of_several_events_is_explained_once() -> None:
    events = "No expansion options\nPod didn't trigger scale-up\nNo pod can fit to ng-1\n"
    lines = [line.plain for line in reason_lines(events, 80)]
    assert lines.count("reasons") > 1
    assert sum(line.startswith("  means   cluster-autoscaler") for line in lines) == 1


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("exceed max volume count", "volume-limit-exceeded"),
        ("didn't match pod anti-affinity rules", "pod-anti-affinity-conflict"),
        ("Multi-Attach error", "volume-attached-elsewhere"),
    ],
)
def test_a_part_of_a_message_that_readers_search_for(part: str, reason: str) -> None:
    assert reason in reason_lines(part, 100)[0].plain
