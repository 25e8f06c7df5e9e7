"""Why a pod does not reach kube-scheduler, or is past scheduling: it is being deleted, has ended, is on a lost node, or
waits for its kubelet.

Also: whether the component that should act is running.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from kschedx.controllers import states
from kschedx.controllers.container_states import (
    between_restarts,
    failed_container,
    is_running,
    other_waits,
    termination,
    unhealthy_devices,
    volume_without_image,
    waiting_container,
)
from kschedx.controllers.due_deletions import deleted_with_owner, ended_job
from kschedx.controllers.node_lifecycle import is_unreachable
from kschedx.controllers.state_causes import predicate
from kschedx.controllers.state_facts import CommonEnd, KeptPods
from kschedx.controllers.workloads import (
    SCALED,
    Workload,
    ends_job,
    is_mirror_pod,
    is_of_daemon_set,
    loss_reason,
    other_replicas,
    owners_in,
    waits_until_gone,
    why_surplus,
)
from kschedx.explain.events import recorded_event
from kschedx.explain.kubelet import claim_without_devices, claim_without_node, start_obstacle
from kschedx.explain.root_causes import RESIZE_PENDING, newer_revision
from kschedx.kube.autoscalers import RAY_CLUSTER, RAY_ROLE
from kschedx.kube.conditions import DISRUPTION_TARGET, condition_of, condition_text, reports_ready
from kschedx.kube.controllers import stored_controller, stored_metadata
from kschedx.kube.decoding import map_at
from kschedx.kube.escaping import shell_command
from kschedx.kube.kubectl import dump_objects
from kschedx.kube.names import DEFAULT_SCHEDULER
from kschedx.kube.other_schedulers import OpenShiftScheduler
from kschedx.kube.resources import ClusterResourceQuota, Lease, ResourceQuota
from kschedx.kube.scalars import earlier, elapsed, newest
from kschedx.kube.storage import own_claims
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, NO_EXECUTE, find_untolerated, stay_seconds
from kschedx.kube.types import JOB_TRACKING, UNREACHABLE, Namespace, Pod, Taint
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.events import NOT_STOPPED, OF_DEVICES, OF_SANDBOX, OF_VOLUMES, PULLING, SYNC_ERROR
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

_BY_REASON = (
    (OF_VOLUMES, states.Waits.VOLUMES),
    (OF_SANDBOX, states.Waits.NETWORK),
    (OF_DEVICES, states.Waits.DEVICES),
    ((PULLING,), states.Waits.CONTAINER),
)
_RESOURCE_QUOTA, CLUSTER_RESOURCE_QUOTA = "ResourceQuota", "ClusterResourceQuota"
_NAME_LABELS = ("app.kubernetes.io/name", "app", "k8s-app")
_READINESS = ("PodReadyToStartContainers", "Initialized", "Ready")


OF_NODE_AFFINITY = ("NodeAffinity", "MatchNodeSelector")
"""The reasons of a kubelet for a pod that no longer selects its node; the second one before Kubernetes 1.20."""


def pod_lifecycle(snapshot: Snapshot, pod: Pod) -> states.Lifecycle | None:
    """Return the state of a pod of the cluster that no decision of kube-scheduler explains; None if one does."""
    subject, node = pod.key, pod.spec.node_name
    if pod.metadata.deletion_timestamp:
        seconds = snapshot.pods.grace_periods.get(subject, 0)
        finalizers = snapshot.pods.finalizers.get(subject, ())
        down = controller_manager_down(snapshot, subject) if JOB_TRACKING in finalizers else None
        warning = snapshot.pod_warnings.get(subject)
        return states.BeingDeleted(
            subject=subject,
            facts=(warning.message,) if warning is not None and warning.reason == NOT_STOPPED else (),
            since=earlier(pod.metadata.deletion_timestamp, seconds),
            until=pod.metadata.deletion_timestamp if seconds else "",
            is_overdue=bool(node) and is_long_past(snapshot, pod.metadata.deletion_timestamp),
            why=_eviction(snapshot, pod),
            node=node,
            finalizers=finalizers,
            down="" if down is None else down.report,
            is_node_lost=is_node_lost(snapshot, node),
            owner=_recreating_owner(snapshot, pod),
            is_replaced=_is_replaced_early(snapshot, pod),
            barrier=_barrier(snapshot, pod),
            successor=successor(snapshot, pod),
        )
    if pod.status.phase == "Failed":
        reason, message = _failure(pod)
        container = "" if reason else failed_container(pod)
        unmet = _unmet_selector(snapshot, pod) if reason in OF_NODE_AFFINITY else ""
        return states.Failed(
            subject=subject,
            reason=reason,
            message=f"{_eviction(snapshot, pod) or message or _end(pod, container)}{unmet}",
            node=node,
            owner="" if (has_ended := ended_job(snapshot, pod) is not None) else _owner(pod),
            surplus="" if has_ended else why_surplus(snapshot, pod),
            is_replaced=other_replicas(snapshot, pod) is not None,
            container=container,
        )
    if pod.status.phase == "Succeeded":
        return states.Finished(subject=subject, phase=pod.status.phase)
    if node:
        state = _kubelet_wait(snapshot, pod) or _lost_node(snapshot, pod) or _resize_held(pod) or _kept_by_sidecar(pod)
        return state or _unread_node(snapshot, pod)
    terminating = namespace_lifecycle(snapshot, pod.metadata.namespace, subject, is_pod=True)
    deleted = terminating or deleted_with_owner(snapshot, pod) or ended_job(snapshot, pod)
    return deleted or _sync_refusal(snapshot, pod) or _assigned_since(snapshot, pod) or _unserved(snapshot, pod)


def _unserved(snapshot: Snapshot, pod: Pod) -> states.ComponentDown | None:
    """Return kube-controller-manager if it does not run and has not created a claim of the pod."""
    is_claim_missing = any(is_own and key not in snapshot.storage.claims for key, is_own in own_claims(pod).items())
    is_missing = is_claim_missing or len(pod.device_claims) < len(pod.spec.resource_claims)
    return _control_plane_down(snapshot, pod.key, "kube-controller-manager") if is_missing else None


def _failure(pod: Pod) -> tuple[str, str]:
    """Return why a failed pod was ended from outside, as a reason and a message; empty if its containers ended."""
    disruption = condition_of(pod.status.conditions, DISRUPTION_TARGET, "True")
    if pod.status.reason or disruption is None:
        return pod.status.reason, pod.status.message
    return disruption.reason, disruption.message or pod.status.message


def _eviction(snapshot: Snapshot, pod: Pod) -> str:
    """Return who evicted a terminating pod and why, according to its condition DisruptionTarget; empty without one."""
    disruption, node = condition_of(pod.status.conditions, DISRUPTION_TARGET, "True"), pod.spec.node_name
    if disruption is None:
        return ""
    match disruption.reason:
        case "PreemptionByScheduler":
            preempts = "preempted" if pod.status.phase == "Failed" else "preempts"
            return (
                f"kube-scheduler {preempts} it on {node} for {_preemptor(snapshot, pod)}, which has a higher priority"
            )
        case "DeletionByTaintManager":
            row = snapshot.cluster.index.get(node)
            taints = () if row is None else snapshot.cluster.nodes[row].spec.taints
            taint = find_untolerated(taints, pod.spec.tolerations, effects=(NO_EXECUTE,), comparison=False)
            return f"evicted because it does not tolerate {taint or 'a NoExecute taint'} of {node}"
        case "DeletionByDeviceTaintManager":
            return "evicted because one of its claims does not tolerate a NoExecute taint of a device"
        case "EvictionByEvictionAPI":
            event = snapshot.evictions.get(pod.key)
            by = "which kubectl drain and autoscalers use" if event is None else f"by {event.message}"
            return f"evicted through the Eviction API, {by}"
        case _:
            return ": ".join(filter(None, (disruption.reason, disruption.message)))


def _preemptor(snapshot: Snapshot, pod: Pod) -> str:
    """Return the pod for which another is preempted: the one that the event names, or one that is nominated."""
    pods, priorities, event = snapshot.pods, snapshot.pods.priorities, snapshot.evictions.get(pod.key)
    words = event.message.split() if event is not None else ()
    rows = [row for row in range(len(pods)) if pods.uids[row] in words] if words else []
    rows = rows or [
        row
        for row in pods.nominated
        if pods.nominated_node_names[row] == pod.spec.node_name and priorities[row] > (pod.spec.priority or 0)
    ]
    return f"{pods.key(rows[0])} (priority {priorities[rows[0]]:,})" if rows else "another pod"


def common_end(pods: Sequence[Pod]) -> CommonEnd:
    """Return how most of these failed pods ended, as far as their statuses show it."""
    ends = Counter(": ".join(filter(None, _failure(pod))) or _end(pod, failed_container(pod)) for pod in pods)
    del ends[""]
    return next((CommonEnd(number, end) for end, number in ends.most_common(1)), CommonEnd())


def _sync_refusal(snapshot: Snapshot, pod: Pod) -> states.NotSynced | None:
    """Return the state of a pod in a virtual cluster, whose nodes do not show what the host cluster admits."""
    event = snapshot.failed_create("Pod", pod.metadata)
    if event is None or not event.message.startswith(SYNC_ERROR):
        return None
    message = event.message.removeprefix(f"{SYNC_ERROR}: ")
    source = f"event {SYNC_ERROR} of vCluster's syncer"
    return states.NotSynced(subject=pod.key, message=message, by=refuser(message), source=source)


_REFUSERS = (
    ('" denied the request', "an admission webhook"),
    ("violates PodSecurity", "Pod Security"),
    ("maximum ", "LimitRange"),
    ("minimum ", "LimitRange"),
    ("max limit to request ratio", "LimitRange"),
    ("insufficient quota to match these scopes", "ResourceQuota admission"),
    ("security context constraint", "SecurityContextConstraints"),
    ("x509: ", "an admission webhook whose certificate is not trusted"),
    ("failed calling webhook", "an admission webhook that does not answer"),
    ("admission webhook", "an admission webhook"),
    ("ValidatingAdmissionPolicy", "a ValidatingAdmissionPolicy"),
)
"""Words in refusals, and the component that writes them. The first one counts: a webhook denies in words of its own."""


_QUOTA = lazy_pattern(r"(?:exceeded|failed) quota(?:: (?P<quota>[^\s,:]+))?")


def refuser(message: str, quotas: Sequence[str] = (_RESOURCE_QUOTA,)) -> str:
    """Return the component that refuses an object. `quotas` are the kinds of quota that it may mean."""
    by = next((by for words, by in _REFUSERS if words in message), "the API server")
    return " or ".join(quotas) if by == "the API server" and _QUOTA.search(message) else by


def quota_names(snapshot: Snapshot, namespace: str) -> set[str]:
    return {quota.metadata.name for quota in snapshot.of(ResourceQuota) if quota.metadata.namespace == namespace}


def quota_kinds(snapshot: Snapshot, namespace: str, message: str) -> tuple[str, ...]:
    """Return the kinds of the quota that a recorded refusal may name. OpenShift refuses with the same words for a
    ClusterResourceQuota (pkg/admission/quota/clusterresourcequota of openshift/apiserver-library-go)."""
    match = _QUOTA.search(message)
    if match is not None and any(quota.name == match["quota"] for quota in snapshot.of(ClusterResourceQuota)):
        return (CLUSTER_RESOURCE_QUOTA,)
    known = quota_names(snapshot, namespace)
    if match is None or match["quota"] in (None, *known) or not _is_openshift(snapshot):
        return (_RESOURCE_QUOTA,)
    is_read = any(snapshot.of(ResourceQuota)) or snapshot.source.is_complete(_RESOURCE_QUOTA, namespace)
    is_read |= f"{CLUSTER_RESOURCE_QUOTA}.quota.openshift.io" in snapshot.source.kinds
    return (CLUSTER_RESOURCE_QUOTA,) if is_read else (_RESOURCE_QUOTA, CLUSTER_RESOURCE_QUOTA)


def _is_openshift(snapshot: Snapshot) -> bool:
    names = snapshot.known_namespaces
    annotations = (key for space in snapshot.of(Namespace) for key in space.metadata.annotations)
    return (
        any(snapshot.of(OpenShiftScheduler))
        or any(name.startswith("openshift-") for name in names)
        or any(kind.endswith(".openshift.io") for kind in snapshot.source.kinds)
        or any(key.startswith("openshift.io/") for key in annotations)
    )


def _owner(pod: Pod) -> str:
    owner = pod.metadata.controller
    return "" if owner is None or owner.kind == "Node" else f"{owner.kind} {owner.name}"


def _recreating_owner(snapshot: Snapshot, pod: Pod) -> str:
    """Return the controller that creates another pod when this one is deleted, such as `ReplicaSet web-1`."""
    row = snapshot.pods.rows.get(pod.key)
    is_last = row is not None and ends_job(snapshot, snapshot.pods, row)
    is_lost = is_last or ended_job(snapshot, pod) is not None or why_surplus(snapshot, pod)
    return "" if is_lost else _owner(pod)


def _is_replaced_early(snapshot: Snapshot, pod: Pod) -> bool:
    """Return whether a controller of Kubernetes replaces the pod while it terminates."""
    owner, kinds = pod.metadata.controller, ("ReplicaSet", "ReplicationController", "Job")
    return bool(owner and owner.kind in kinds and not waits_until_gone(snapshot, pod.metadata.namespace, owner))


def _lost_node(snapshot: Snapshot, pod: Pod) -> states.OnLostNode | None:
    """The state of a pod whose node's kubelet does not respond. The pod's tolerations decide when it is deleted."""
    row = snapshot.cluster.index.get(pod.spec.node_name)
    if row is None or pod.status.phase not in ("Running", "Unknown"):
        return None
    node = snapshot.cluster.nodes[row]
    ready = condition_of(node.status.conditions, "Ready")
    if not is_unreachable(node):
        return None
    lost = (Taint(key=UNREACHABLE, effect=NO_EXECUTE),)
    seconds = stay_seconds(lost, pod.spec.tolerations, comparison=False)
    message = "" if ready is None or ready.status == "True" else ready.message
    own_row = snapshot.pods.rows.get(pod.key)
    return states.OnLostNode(
        subject=pod.key,
        node=node.name,
        message=message,
        seconds=seconds,
        owner=_recreating_owner(snapshot, pod),
        is_replaced=_is_replaced_early(snapshot, pod),
        loss="" if own_row is None else loss_reason(snapshot, snapshot.pods, own_row),
    )


def _unread_node(snapshot: Snapshot, pod: Pod) -> states.NotRead | None:
    """Return the state of a pod whose node was left out of a dump. A pod that runs in a dump without nodes is fine."""
    node, is_fine = pod.spec.node_name, pod.status.phase == "Running" and not snapshot.cluster.nodes
    if is_fine or not snapshot.left_out_node(pod):
        return None
    runs = "the pod runs on" if pod.status.phase == "Running" else "the pod waits for the kubelet of"
    because = f"{runs} {node}, which the dump does not hold"
    return states.NotRead(subject=pod.key, unknown=f"node {node}", because=because, command=dump_objects(["Node"]))


def _assigned_since(snapshot: Snapshot, pod: Pod) -> states.NotRead | None:
    """Return the state of a pod that has a node by now: the dump's pods are older than its events."""
    event = snapshot.assigned.get(pod.key)
    if event is None:
        return None
    because = "a scheduler has assigned it since: the dump's pods are older than its events"
    command = shell_command("kubectl get pod {} -n {} -o wide", pod.metadata.name, pod.metadata.namespace)
    return states.NotRead(
        subject=pod.key, unknown="its present state", because=because, command=command, message=event.message
    )


def _resize_held(pod: Pod) -> states.ResizeHeld | None:
    conditions, node = pod.status.conditions, pod.spec.node_name
    if (held := condition_of(conditions, RESIZE_PENDING, "True")) is not None:
        return states.ResizeHeld(subject=pod.key, node=node, reason=held.reason or "pending", message=held.message)
    failed = condition_of(conditions, "PodResizeInProgress", "True")
    if failed is None or failed.reason != "Error":
        return None
    return states.ResizeHeld(subject=pod.key, node=node, reason="failing", message=failed.message)


def _kept_by_sidecar(pod: Pod) -> states.KeptBySidecar | None:
    owner, ended, running = pod.metadata.controller, [], []
    if owner is None or owner.kind != "Job" or pod.status.phase != "Running":
        return None
    for status in pod.status.container_statuses:
        over = None if status.state is None else status.state.terminated
        if over is not None and not over.exit_code:
            ended.append(status.name)
        elif is_running(status):
            running.append(status.name)
    if not ended or len(ended) + len(running) < len(pod.spec.containers) or not running:
        return None
    names = {"running": list_names(running, 3, conjunction="and"), "ended": list_names(ended, 3, conjunction="and")}
    return states.KeptBySidecar(subject=pod.key, node=pod.spec.node_name, **names)


def _barrier(snapshot: Snapshot, pod: Pod) -> str:
    """Return why a DaemonSet creates no pod for the node of one of its pods (NodeShouldRunDaemonPod); empty if it
    creates one.

    A DaemonSet's pods tolerate the NoExecute taint of an unreachable node, but not the NoSchedule taint.
    """
    if not is_of_daemon_set(pod.metadata.owner_references):
        return ""
    row = snapshot.cluster.index.get(pod.spec.node_name)
    if row is None:
        return "there is no such node"
    taints = snapshot.cluster.nodes[row].spec.taints
    taint = find_untolerated(taints, pod.spec.tolerations, effects=DO_NOT_SCHEDULE, comparison=False)
    return "" if taint is None else f"the node has the taint {taint}"


def successor(snapshot: Snapshot, pod: Pod) -> str:
    """Return `Deployment web` if its strategy Recreate waits until this pod of an older ReplicaSet is gone
    (pkg/controller/deployment/recreate.go)."""
    owner, namespace = pod.metadata.controller, pod.metadata.namespace
    if owner is None or owner.kind != "ReplicaSet" or pod.key not in snapshot.pods.rows:
        return ""
    workload = owners_in(snapshot).of(snapshot.pods, snapshot.pods.rows[pod.key])
    old, above = snapshot.manifest_of((owner.kind, namespace, owner.name)), snapshot.manifest_of(workload)
    if old is None or above is None or map_at(old, "spec").get("replicas") != 0:
        return ""
    is_recreate = map_at(above, "spec", "strategy").get("type") == "Recreate"
    return f"{workload.kind} {workload.name}" if is_recreate else ""


def namespace_lifecycle(
    snapshot: Snapshot, namespace: str, subject: str, *, is_pod: bool = False
) -> states.NamespaceTerminating | None:
    if namespace not in snapshot.terminating_namespaces:
        return None
    known = next(each for each in snapshot.of(Namespace) if each.metadata.name == namespace)
    rows = () if is_pod else snapshot.pods.in_namespace(namespace).nonzero()[0].tolist()
    return states.NamespaceTerminating(
        subject=subject,
        namespace=namespace,
        since=known.metadata.deletion_timestamp or "",
        remaining=tuple(it.message for it in known.status.conditions if it.status == "True" and it.message),
        kept=kept_pods(snapshot, rows),
        is_pod=is_pod,
    )


def kept_pods(snapshot: Snapshot, rows: Iterable[int]) -> tuple[KeptPods, ...]:
    """Return the pods that keep a namespace or workload in deletion, by what keeps them."""
    pods, kept = snapshot.pods, defaultdict[tuple[str, str], list[str]](list)
    for row in rows:
        node = pods.node_names[row]
        for finalizer in snapshot.pods.finalizers.get(pods.key(row), ()):
            kept[finalizer, ""].append(pods.names[row])
        if is_node_lost(snapshot, node):
            kept["", node].append(pods.names[row])
    return tuple(KeptPods(tuple(names), *by) for by, names in kept.items())


def is_node_lost(snapshot: Snapshot, name: str) -> bool:
    """Return whether no kubelet responds for the node: it is gone, unreachable, or not ready. A dump without nodes
    does not show it."""
    row = snapshot.cluster.index.get(name)
    if row is None:
        return bool(name) and not snapshot.source.may_lack("Node")
    return snapshot.cluster.nodes[row].is_lost


def is_ready(pod: Pod) -> bool:
    """Return whether the pod is running according to its status, and its Ready condition is not False."""
    return (
        pod.status.phase in ("Running", "")
        and bool(pod.spec.node_name)
        and reports_ready(pod.status.conditions)
        and not pod.metadata.deletion_timestamp
    )


def unready_pods(snapshot: Snapshot, namespace: str) -> tuple[str, ...]:
    """Return the pods of a namespace that are not ready, so that no Service sends requests to them."""
    pods = snapshot.pods
    rows = pods.in_namespace(namespace).nonzero()[0].tolist()
    ended = ("Succeeded", "Failed")
    return tuple(pods.key(row) for row in rows if pods.phases[row] not in ended and not is_ready(pods[row]))


def backend_state(snapshot: Snapshot, namespace: str, service: str) -> str:
    """Return why a Service may have no endpoint: `policy/v-0 is not ready`, or the workload without replicas whose pods
    it selects. Empty if nothing is known."""
    if down := unready_pods(snapshot, namespace):
        return f"{list_names(down, 2)} {'is' if len(down) == 1 else 'are'} not ready"
    own = [it.spec.selector for it in snapshot.services if it.key == f"{namespace}/{service}" and it.spec.selector]
    for (kind, its, name), raw in snapshot.workloads.items() if own else ():
        if kind in ("Deployment", "StatefulSet") and its == namespace and stored_controller(raw).spec.replicas == 0:
            labels = map_at(msgspec.json.decode(raw), "spec", "template", "metadata", "labels")
            if any(selector.items() <= labels.items() for selector in own):
                return f"{kind} {name} has 0 replicas"
    return ""


def _kubelet_wait(snapshot: Snapshot, pod: Pod) -> states.WaitingForKubelet | None:
    """Return the state of a pod that waits for its kubelet. It is None for a running pod, and for a pod that was bound
    by hand and that no kubelet has seen."""
    node, warning = pod.spec.node_name, snapshot.pod_warnings.get(pod.key)
    is_left_out = snapshot.left_out_node(pod)
    is_lost = is_node_lost(snapshot, node) and not is_left_out
    event = "" if warning is None else warning.message
    waiting = waiting_container(pod) or between_restarts(pod, event)
    if waiting is None:
        if pod.status.phase != "Pending" or not (pod.status.conditions or event or is_lost):
            return None
        waiting = states.Waits.KUBELET, "", "", ""
    waits, container, reason, message = waiting
    asks_scheduler = waits in (states.Waits.KUBELET, states.Waits.SANDBOX) and not (is_lost or is_left_out)
    claim = claim_without_node(snapshot, pod) if asks_scheduler else ""
    if asks_scheduler and not claim and (claim := claim_without_devices(snapshot, pod)):
        waits, reason = states.Waits.DEVICES, f"claim {claim} is not allocated"
        message = "spec.nodeName bypasses kube-scheduler, which allocates the devices of the claim"
    elif claim:
        waits, reason = states.Waits.VOLUMES, f"claim {claim} is not bound"
        message = "spec.nodeName bypasses kube-scheduler, which selects the node of the claim (WaitForFirstConsumer)"
    elif waits in (states.Waits.KUBELET, states.Waits.SANDBOX) and is_lost:
        waits, reason, message = states.Waits.KUBELET, "", _node_trouble(snapshot, node)
    elif waits in (states.Waits.KUBELET, states.Waits.SANDBOX):
        phrase, _, said = event.partition(": ")
        if (named := next((kind for reasons, kind in _BY_REASON if phrase in reasons), None)) is not None:
            waits, reason = named, phrase
            message, event = message or said, event if message else ""
        elif held := next(_held_volumes(snapshot, pod), ""):
            waits, reason, message = states.Waits.VOLUMES, "", held
        elif condition_of(pod.status.conditions, "PodReadyToStartContainers", "False") is not None:
            waits = states.Waits.SANDBOX
    if is_left_out and waits in (states.Waits.KUBELET, states.Waits.SANDBOX):
        return None
    if waits is states.Waits.INIT and container == _WAITS_FOR_RAY and (head := awaited_head(snapshot, pod)):
        message = message or f"the head of its Ray cluster, {head}, is not ready"
    if waits is states.Waits.CRASH:
        message = next(unhealthy_devices(pod), message)
    is_gone = is_lost and node not in snapshot.cluster.index and pod.status.start_time is None
    state = states.BoundToMissingNode if is_gone else states.WaitingForKubelet
    return state(
        subject=pod.key,
        node=node,
        waits=waits,
        container=container,
        volume=volume_without_image(pod, f"{message} {event}") if waits is states.Waits.IMAGE else "",
        reason=reason,
        message=message,
        conditions=(*other_waits(pod, container), *_false_conditions(pod)),
        event=event,
        claim=claim,
        last=termination(pod, container, is_last=True) or termination(pod, container),
        is_node_lost=is_lost,
        outdated=newer_revision(snapshot, pod),
        is_static=is_mirror_pod(snapshot.pods, snapshot.pods.rows[pod.key]) if pod.key in snapshot.pods.rows else False,
    )


_WAITS_FOR_RAY = "wait-gcs-ready"  # the init container that KubeRay adds to workers


def awaited_head(snapshot: Snapshot, pod: Pod) -> str:
    """Return the head of the pod's Ray cluster if it is not ready; empty if it is, or is not known."""
    pods, head = snapshot.pods, {RAY_CLUSTER: pod.metadata.labels.get(RAY_CLUSTER), RAY_ROLE: "head"}.items()
    there = pods.in_namespace(pod.metadata.namespace) & pods.labels.where(lambda its: head <= its.items())
    return next((pods.key(row) for row in there.nonzero()[0].tolist() if not is_ready(pods[row])), "")


def cannot_start(snapshot: Snapshot, pod: Pod, nodes: Sequence[str]) -> states.CannotStart | None:
    """Return the state of a pod that kube-scheduler assigns to one of these nodes, if it cannot start there: on all of
    them, or on some because of their platform, which the pod has to select."""
    each = ((name, start_obstacle(snapshot, pod, name)) for name in nodes)
    obstacles = {name: obstacle for name, obstacle in each if obstacle is not None}
    first = next(iter(obstacles.values()), None)
    if first is None or not (first.label or len(obstacles) == len(nodes)):
        return None
    named = {"label": first.label, "driver": first.driver, "claim": first.claim, "pressure": first.pressure}
    return states.CannotStart(subject=pod.key, nodes=tuple(obstacles), why=first.why, **named)


def holders_elsewhere(snapshot: Snapshot, pod: Pod) -> list[int]:
    """Return the rows of the pods on other nodes that use a claim of the pod."""
    pods, claims = snapshot.pods, own_claims(pod).keys()
    if not claims:
        return []
    there = pods.in_namespace(pod.metadata.namespace)
    there &= pods.node_names.where(lambda name: name not in ("", pod.spec.node_name))
    there &= ~pods.finished
    return [row for row in there.nonzero()[0].tolist() if claims & own_claims(pods[row]).keys()]


def _held_volumes(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    """Yield the claims for one node at a time that pods on other nodes use, if no event reports it any more."""
    for row in holders_elsewhere(snapshot, pod):
        holder = snapshot.pods[row]
        for key in sorted(own_claims(pod).keys() & own_claims(holder).keys()):
            claim = snapshot.storage.claims.get(key)
            modes = () if claim is None else claim.spec.access_modes
            if modes and all(mode.startswith("ReadWriteOnce") for mode in modes):
                yield f"claim {key} ({', '.join(modes)}) is already used by pod {holder.key} on {holder.spec.node_name}"


def _node_trouble(snapshot: Snapshot, name: str) -> str:
    """Return `node n1 is unreachable: Kubelet stopped posting node status.`; empty without a Ready condition."""
    row = snapshot.cluster.index.get(name)
    conditions = () if row is None else snapshot.cluster.nodes[row].status.conditions
    ready = condition_of(conditions, "Ready")
    if ready is None or ready.status == "True":
        return ""
    said = f": {ready.message}" if ready.message else ""
    return f"node {name} is {'unreachable' if ready.status == 'Unknown' else 'not ready'}{said}"


def _unmet_selector(snapshot: Snapshot, pod: Pod) -> str:
    """Return which labels of nodeSelector the node of a pod does not have now."""
    row = snapshot.cluster.index.get(pod.spec.node_name)
    labels = {} if row is None else snapshot.cluster.nodes[row].metadata.labels
    unmet = [f"{key}={value}" for key, value in pod.spec.node_selector.items() if labels.get(key) != value]
    return f"; {pod.spec.node_name} is not labeled {list_names(unmet, 3)}" if unmet and row is not None else ""


def _end(pod: Pod, container: str) -> str:
    """Return how a container of a failed pod ended, with its name."""
    phrase = termination(pod, container)
    return f"container {container} ended with {phrase}" if phrase else ""


def _false_conditions(pod: Pod) -> tuple[str, ...]:
    """Return the pod's readiness conditions that are False and have a reason."""
    return tuple(
        condition_text(condition)
        for kind in _READINESS
        for condition in pod.status.conditions
        if condition.type == kind and condition.status == "False"
    )


def scheduler_down(snapshot: Snapshot, pod: Pod) -> states.ComponentDown | None:
    """Return kube-scheduler if it is down and has reported nothing about a pending pod."""
    if (
        pod.spec.scheduler_name != DEFAULT_SCHEDULER
        or pod.status.conditions
        or recorded_event(snapshot, pod) is not None
    ):
        return None
    return _control_plane_down(snapshot, pod.key, "kube-scheduler")


def controller_manager_down(snapshot: Snapshot, workload: str) -> states.ComponentDown | None:
    """Return kube-controller-manager if it is down; `workload` is the reference of a workload that lacks pods."""
    return _control_plane_down(snapshot, workload, "kube-controller-manager", is_workload=True)


def _control_plane_down(
    snapshot: Snapshot, subject: str, component: str, *, is_workload: bool = False
) -> states.ComponentDown | None:
    """Return the component if none of its static pods can be running, or none leads. Some clusters run the component
    where no pod shows it, so that without such pods it is down only if both other components have them."""
    pods, names = snapshot.pods, (f"{component}-", f"openshift-{component}-")
    static = [
        row
        for row in pods.of_control_plane
        if is_mirror_pod(pods, row) or pods.labels[row].get("tier") == "control-plane"  # kubeadm's label
    ]
    led = states.ComponentDown(subject=subject, component=component, pods=(), is_workload=is_workload)
    without_leader = replace(led, renewed=renewed) if (renewed := _expired_lease(snapshot, component)) else None
    if rows := [row for row in static if pods.names[row].startswith(names)]:
        down = component_down(snapshot, subject, component, rows)
        down = None if down is None else replace(down, is_workload=is_workload)
        return down or (without_leader and replace(without_leader, pods=tuple(map(pods.key, rows))))
    siblings = {
        name: pods.key(row)
        for row in static
        for name in _CONTROL_PLANE
        if pods.namespaces[row] == "kube-system" and pods.names[row].startswith(f"{name}-")
    }
    if len(siblings) < len(_CONTROL_PLANE) - 1:
        return without_leader
    return replace(led, sibling=siblings[_CONTROL_PLANE[0]])


def _expired_lease(snapshot: Snapshot, component: str) -> str:
    """Return when the lease of a component was last renewed, if that is so long ago that its objects were not just
    read one after another, and the component has done nothing since; else empty."""
    for lease in snapshot.of(Lease):
        renewed = lease.spec.renew_time or ""
        is_own = (lease.metadata.namespace, lease.metadata.name) == ("kube-system", component)
        if is_own and is_long_past(snapshot, renewed):
            last = _LAST_ACTIONS.of(snapshot.derived, lambda: newest(_actions(snapshot, component)), component)
            return "" if (elapsed(renewed, last) or 0) > _MINUTE else renewed
    return ""


def _actions(snapshot: Snapshot, component: str) -> Iterator[str | None]:
    """Yield when pods were created that the component has created, or assigned to nodes, and when it last reported
    others as unschedulable."""
    pods = snapshot.pods
    for row, created in enumerate(pods.creation_timestamps):
        if component == "kube-controller-manager":
            yield created if any(owner.kind in (*SCALED, "DaemonSet") for owner in pods.owners[row]) else None
        elif pods.specs[row].scheduler_name == DEFAULT_SCHEDULER and not is_mirror_pod(pods, row):
            event = snapshot.failed_scheduling.get(pods.key(row))
            yield created if pods.node_names[row] else event.last_seen if event is not None else None


def is_long_past(snapshot: Snapshot, time: str) -> bool:
    """Whether the cluster was read more than ten minutes after a time; a dump can take some minutes."""
    return (elapsed(time, snapshot.taken) or 0) > 10 * _MINUTE


_MINUTE = 60 * 10**9
_LAST_ACTIONS = Memo[str]()
_CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""What kubeadm runs as static pods on each node of the control plane."""
_WITHOUT_REPLICAS = Memo[dict[str, str]]()
_ADD_ON_ROWS = Memo[list[int]]()


def component_down(
    snapshot: Snapshot, subject: str, component: str, rows: Sequence[int]
) -> states.ComponentDown | None:
    """Return the component if none of its pods, in these rows, is running, or if its workload has no replicas or no
    ready ones."""
    pods, phrase = snapshot.pods, ""
    for row in rows:
        state = pod_lifecycle(snapshot, pods[row])
        if state is None and (is_ready(pods[row]) or (not pods.node_names[row] and is_mirror_pod(pods, row))):
            return None
        phrase = phrase or ("" if state is None else predicate(state))
        if isinstance(state, states.WaitingForKubelet) and state.last and phrase.endswith("CrashLoopBackOff"):
            phrase = f"{phrase} after {state.last}"
    if not rows:
        named = component.lower()
        why = _WITHOUT_REPLICAS.of(snapshot.derived, lambda: next(_without_replicas(snapshot, named), {}), named)
        return replace(states.ComponentDown(subject=subject, component=component, pods=()), **why) if why else None
    return states.ComponentDown(
        subject=subject,
        component=component,
        pods=tuple(map(pods.key, rows)),
        state=phrase,
        is_pending=not any(pods.node_names[row] for row in rows),
    )


def _without_replicas(snapshot: Snapshot, component: str) -> Iterator[dict[str, str]]:
    """Yield the workload that would run a component, if it has no replicas (`scaled`) or no ready ones (`unready`)."""
    for (kind, namespace, name), raw in snapshot.workloads.items():
        if kind not in ("Deployment", "StatefulSet") or component.encode() not in raw:
            continue
        labels = stored_metadata(raw).labels
        names = (name, *(labels.get(key, "") for key in _NAME_LABELS))
        if any(f"-{each}".endswith(f"-{component}") for each in names):
            controller, reference = stored_controller(raw), Workload(kind, namespace, name).reference
            is_available = condition_of(controller.status.conditions, "Available", "False") is None
            if controller.spec.replicas == 0:
                yield {"scaled": reference}
            elif not is_available and not controller.status.ready_replicas:
                yield {"unready": reference}


def add_on_down(snapshot: Snapshot, subject: str, name: str) -> states.ComponentDown | None:
    """Return the autoscaler or Kueue if it is down."""
    return component_down(snapshot, subject, name, add_on_rows(snapshot, name))


def add_on_rows(snapshot: Snapshot, name: str) -> list[int]:
    """Return the pods of an autoscaler or Kueue, by the labels and container names of its charts and manifests. They
    are searched once for a snapshot."""

    def search() -> list[int]:
        pods, meant = snapshot.pods, name.lower()
        rows = pods.labels.where(lambda labels: any(labels.get(key, "").endswith(meant) for key in _NAME_LABELS))
        rows |= pods.specs.where(lambda spec: any(container.name.endswith(meant) for container in spec.containers))
        found: list[int] = (rows & ~pods.finished).nonzero()[0].tolist()
        return found

    return _ADD_ON_ROWS.of(snapshot.derived, search, name)
