"""Fixes for an assigned pod that does not run: its kubelet cannot start it, or its node is lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kschedx.controllers import states
from kschedx.controllers.container_states import failed_container, unhealthy_devices
from kschedx.controllers.daemon_set import agents_down
from kschedx.controllers.node_lifecycle import is_unreachable
from kschedx.controllers.pod_lifecycle import OF_NODE_AFFINITY, awaited_head, holders_elsewhere, is_node_lost, is_ready
from kschedx.controllers.workloads import is_of_daemon_set, member_rows, other_replicas, workload_of
from kschedx.explain.advice import FixGroup
from kschedx.explain.kubelet import ARCH_LABEL, OS_LABEL
from kschedx.explain.root_causes import off_virtual_nodes, virtual_node
from kschedx.explain.setup import Setup, Subject
from kschedx.findings.constraints import CORDON_TAINT
from kschedx.fixes import FixCertainty
from kschedx.fixes.eviction import stop_workload
from kschedx.fixes.node_remedies import node_repairs
from kschedx.fixes.node_requirements import taint_remover
from kschedx.fixes.owners import template_owner
from kschedx.fixes.phrases import (
    FAILURES,
    NO_DRIVER,
    OF_JOBS,
    PULLS,
    RECREATED,
    REJECTIONS,
    STARTS,
    advice_for,
    amount_text,
)
from kschedx.fixes.steps import TakeOldFirst
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.stopped_pod import StoppedPod, fix_with_outcome
from kschedx.kube.decoding import map_at
from kschedx.kube.documents import Target, set_field
from kschedx.kube.escaping import shell_command, why_command
from kschedx.kube.kubectl import delete_pod, pod_logs, remove_finalizers
from kschedx.kube.names import HOSTNAME
from kschedx.kube.quantity import resource_amount, value
from kschedx.kube.resources import container_requests
from kschedx.kube.storage import identifying_parts, own_claims
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, Tolerations, find_untolerated
from kschedx.kube.types import OUT_OF_SERVICE, Node, Pod, ResourceRequirements, Taint
from kschedx.kube.typos import nearest_name
from kschedx.kube.workloads import selects_node
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.daemon_sets import daemon_pods
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

_ATTACHED = lazy_pattern(r"Multi-Attach error|(?<!\d\) )already (exclusively )?attached|already used by pod")
_OTHER_PLATFORM = lazy_pattern(r"no match for platform|no matching manifest for|exec format error")
_FOR_ALL = lazy_pattern(r"OutOf|UnexpectedAdmissionError")
"""Reasons for which a kubelet also fails the controller's next pod."""
_RESIZE_SHORTAGE = lazy_pattern(
    r"(?P<resource>\S+), requested: (?P<requested>\d+)(?:, used: (?P<used>\d+))?, capacity: (\d+)"
)
"""Part of the message of a resize: `Node didn't have enough capacity: cpu, requested: 8000, capacity: 4000`."""
_KILLED = lazy_pattern(r"exit code (?:0|137|143)\b")  # how a container ends that its kubelet stops
_FAILED_PROBE = lazy_pattern(r"(?P<kind>Liveness|Readiness|Startup) probe (?:failed|errored)")
"""What follows is the report of the container, not of the kubelet."""
_KINDS_OF_PODS = {
    "secret": "Secret",
    "configmap": "ConfigMap",
    "serviceaccounts": "ServiceAccount",
    "network-attachment-definitions.k8s.cni.cncf.io": "NetworkAttachmentDefinition",
}
_PUBLISHERS = {
    "kube-root-ca.crt": "kube-controller-manager",
    "openshift-service-ca.crt": "the service CA operator of OpenShift",
}
"""ConfigMaps that a controller creates in every namespace."""
_NO_OBJECT = lazy_pattern(rf'(?P<kind>{"|".join(map(re.escape, _KINDS_OF_PODS))}) "(?P<name>[^"]+)" not found')


def _start_report(state: states.WaitingForKubelet, phrase: str) -> str:
    """Return why a container does not start, with how it ended if that was at its start."""
    is_start = state.last.startswith(("StartError", "ContainerCannotRun"))
    return f"{state.reason} {phrase} {state.last if is_start else ''}"


def _probe_advice(container: str, kind: str) -> str:
    """Return what to do about a failed probe that restarts its container."""
    return (
        "" if kind == "Readiness" else f"find out why container {container} fails its {kind.lower()} probe, or relax it"
    )


def _crash_advice(state: states.WaitingForKubelet, of_probe: str) -> str:
    """Return what to do about a container that ends again and again; `of_probe` is the advice about its probe."""
    if state.last.startswith("Completed"):
        return f"give container {state.container} a command that does not end, or run it as a Job"
    is_killed = of_probe and _KILLED.search(state.last)
    return of_probe if is_killed else f"find out from its logs why container {state.container} ends"


def repair_fix(node: str) -> Fix:
    return Fix.untried(f"repair {node}, or delete the node if its machine is gone")


def _absent_agent(snapshot: Snapshot, setup: Setup, driver: str, node: Node) -> str:
    """Return why no DaemonSet of a CSI driver creates a pod for a node: `DaemonSet kube-system/ebs-csi-node does not
    tolerate gpu=true:NoSchedule`. Empty if one does, or none is known."""
    parts = next(filter(None, map(identifying_parts, driver.split("."))), frozenset[str]())  # the most specific
    unselected = tainted = ""
    for daemon in daemon_pods(snapshot, setup.scheduler.nodes.options):
        owner, namespace = daemon.pod.metadata.controller, daemon.pod.metadata.namespace
        own = f"{namespace}/{owner.name}" if owner is not None else ""
        if "csi" not in own or not parts & set(re.split("[./-]", own)):
            continue
        taint = find_untolerated(
            node.spec.taints, daemon.spec.tolerations, effects=DO_NOT_SCHEDULE, comparison=setup.release.compares_taints
        )
        if not selects_node(daemon.spec, node):
            unselected = unselected or f"DaemonSet {own} does not select it"
        elif taint is None:
            return ""
        else:
            tainted = tainted or f"DaemonSet {own} does not tolerate {taint}"
    return tainted or unselected


class AssignedPodRemedies(StoppedPod, frozen=True, kw_only=True):
    """A pod that is assigned to a node and does not run there."""

    def fixes(self, lifecycle: states.Lifecycle) -> Iterator[Fix | None]:
        """Yield fixes for a state of an assigned pod; none for any other state."""
        match lifecycle:
            case states.OnLostNode(node=node):
                yield repair_fix(node)
            case states.BeingDeleted(node=node, is_node_lost=True, barrier=barrier, owner=owner, successor=later):
                is_succeeded = not barrier and (owner or later)
                yield from self.lost_node_fixes(node) if is_succeeded else self._lost_pod_fixes([node])
            case states.BeingDeleted(node=node, is_overdue=True, finalizers=(), facts=facts):
                if facts and (advice := advice_for(STARTS, facts[0])):
                    yield Fix.untried(advice.format(node=node, driver="its driver", agents="", runtime="its runtime"))
                forced = replace(Target.pod(self.pod.key).deletion, force=True)
                title = f"repair the kubelet of {node}, or force the deletion once the pod's containers are gone"
                yield Fix.untried(title, delete_pod(self.pod.key, force=True), changes=(forced,))
            case states.WaitingForOldPods(pods=pods, nodes=nodes):
                yield from self._old_pod_fixes(nodes, [f"{self._namespace}/{name}" for name in pods])
            case states.KeptBySidecar(running=running):
                native = f"run {running} as an init container with restartPolicy Always"
                yield Fix.untried(f"{native}: it ends with the Job's other containers")
            case states.ResizeHeld():
                yield from self._resize_fixes(lifecycle)
            case states.CannotStart():
                yield from self._able_to_start(lifecycle)
            case states.WaitingForKubelet():
                yield from self._start_fixes(lifecycle)
            case states.Failed():
                yield from self._failure_fixes(lifecycle)

    def _resize_fixes(self, state: states.ResizeHeld) -> Iterator[Fix]:
        """Yield fixes for a resize. A kubelet retries a deferred one; meanwhile, the pod keeps its allocated
        resources."""
        is_begun = state.reason == "failing"  # then what is allocated is what the resize requests
        has_template = self.pod.metadata.controller is not None
        recreate = "change the pod template and let the pod be recreated" if has_template else "recreate the pod"
        short = _RESIZE_SHORTAGE.search(state.message)
        requested, used, capacity = (0, 0, 0) if short is None else (int(it or 0) for it in short.groups()[1:])
        resource, on_new_node = "" if short is None else short["resource"], ""
        if state.reason == "Deferred":
            lacking = "as much as the resize lacks"
            if used and requested + used > capacity:
                lacking = amount_text(resource, requested + used - capacity)
            yield Fix.untried(f"free {lacking} on {state.node}; the kubelet then carries out the resize")
        elif is_begun and "usage" in state.message:
            yield Fix.untried("let the pod use less memory than its new limit: the kubelet tries again")
        elif not is_begun and (short is not None or not state.message):
            sizes = (node.status.allocatable.get(resource) for node in self.snapshot.cluster.nodes)
            if short is None or any(resource_amount(resource, size) >= requested for size in sizes):
                yield Fix.untried(f"{recreate} on a node that is large enough")
            else:
                yield Fix.untried(f"request at most {amount_text(resource, capacity)}, the size of {state.node}")
                on_new_node = f"add a node with more than {amount_text(resource, requested)}, then {recreate} there"
        else:
            yield Fix.untried(f"{recreate}: this kubelet cannot resize it")
        containers = []
        for status in self.pod.status.container_statuses:
            actual = status.resources or ResourceRequirements()
            requests = actual.requests if is_begun else status.allocated_resources or actual.requests
            limits = {"limits": dict(actual.limits)} if actual.limits else {}
            if requests:
                containers.append({"name": status.name, "resources": {"requests": dict(requests), **limits}})
        if containers:
            body = {"spec": {"containers": containers}}
            template = "kubectl patch pod {} -n {} --subresource resize -p {}"
            command = shell_command(template, self.pod.metadata.name, self._namespace, body)
            what = "request what it has" if is_begun else "request what is allocated"
            yield Fix.untried(f"withdraw the resize: {what}", command)
        if on_new_node:
            yield Fix.untried(on_new_node)

    def _failure_fixes(self, state: states.Failed) -> Iterator[Fix]:
        """Yield fixes for a pod or Job that has failed permanently."""
        known = REJECTIONS if state.owner and _FOR_ALL.match(state.reason) else FAILURES
        failure = f"{state.reason} {state.message}"
        advice, is_recreated = advice_for(known, failure), bool(advice_for(RECREATED, failure))
        if "no healthy devices" in state.message and not state.owner and self._has_devices(state.node):
            advice, is_recreated = "delete the pod and create it again: {node} has its devices again", True
        if state.reason.startswith("OutOf") and len(names := self._schedulers_on(state.node)) > 1:
            both = list_names(names, 3, conjunction="and")
            yield Fix.untried(f"let one scheduler assign pods to {state.node}, on which {both} do: they race for room")
        if state.reason in OF_NODE_AFFINITY and (lost := self._lost_labels(state.node)):
            labels = [f"{key}={text}" for key, text in lost.items()]
            title = f"label {state.node} {', '.join(labels)} again, if it lost what the pod selects"
            words = (word for label in lost.items() for word in label)
            command = shell_command("kubectl label node {}" + " {}={}" * len(lost), state.node, *words)
            yield Fix.untried(title, command, of_group=FixGroup.CLUSTER)
        if state.container and "OOMKilled" in state.message:
            yield Fix.untried(f"raise limits.memory of container {state.container}: it was OOMKilled")
        elif state.container:
            title = f"find out from its logs why container {state.container} ended"
            yield Fix.untried(title, pod_logs(self.pod.key, state.container))
        elif any(owner.kind == "Node" for owner in self.pod.metadata.owner_references):
            rejected = state.reason.startswith("OutOf")
            known_end = advice or "find out on {node} why it ended"
            repair = f"free resources on {state.node}" if rejected else known_end.format(node=state.node)
            mark = ";" if ":" in repair else ":"
            yield Fix.untried(f"{repair}{mark} its kubelet runs this static pod from a manifest file")
        elif state.surplus:
            yield self._deletion_fix(f"delete the pod, which {state.owner} no longer needs")
        elif state.owner and ((is_replaced := self._is_replaced(state)) or is_recreated):
            title = f"delete the pod: {state.owner} {'has replaced' if is_replaced else 'replaces'} it"
            yield self._deletion_fix(title)
        elif not state.node and not self._workload_name:  # its scheduler has given it up
            by = f", which {state.owner} creates again" if state.owner else " and create it again"
            title = advice or f"correct what its scheduler rejects ({state.reason or 'see its status'})"
            yield Fix.untried(f"{title}; then delete the pod{by}")
        elif not state.node:
            rows = self.snapshot.pods.rows
            last = [self.snapshot.pods[rows[f"{self._namespace}/{name}"]] for name in state.pods[-1:]]
            if not advice and (known_end := advice_for(OF_JOBS, state.ends.end.replace(": ", " ", 1))):
                advice, last = known_end.format(node=last[0].spec.node_name), []
            title = advice or ("find out from their logs why its pods fail" if last else "find out why its pods fail")
            of_pods = tuple(pod_logs(pod.key, failed_container(pod)) for pod in last)
            kind = str((self.maker or {}).get("kind") or "Job")
            ended = f"a {kind} that has failed creates no pods"
            why = "the pod template of a Job is immutable" if state.is_retried else ended
            again = f"delete {kind} {self._workload_name} and create it again: {why}"
            if kind == "CronJob":
                again = "wait until its next Job starts, which gets the changed template"
            yield Fix.untried(f"{title}; then {again}", *of_pods)
        elif advice:
            then = "" if is_recreated or state.owner else "; then delete the pod and create it again"
            yield Fix.untried(f"{advice.format(node=state.node)}{then}")

    def _is_replaced(self, state: states.Failed) -> bool:
        """Return whether the ReplicaSet of a pod that its kubelet rejected has all of its pods, and all are ready. An
        eviction shows a shortage on the node, which may go on."""
        rows = None if state.reason == "Evicted" else other_replicas(self.snapshot, self.pod)
        return rows is not None and all(is_ready(self.snapshot.pods[row]) for row in rows)

    def _lost_labels(self, node: str) -> dict[str, str]:
        """Return the labels that the pod selects and that its node lacks, unless another node has all of them."""
        wanted, nodes = self.pod.spec.node_selector.items(), self.snapshot.cluster.nodes
        if any(wanted <= other.metadata.labels.items() for other in nodes):
            return {}
        own = next((other.metadata.labels for other in nodes if other.name == node), None)
        return {} if own is None else {key: text for key, text in wanted if key not in own}

    def _has_devices(self, node: str) -> bool:
        """Return whether a node has as many devices allocatable as the pod requests, if it requests some."""
        row = self.snapshot.cluster.index.get(node)
        allocatable = {} if row is None else self.snapshot.cluster.nodes[row].status.allocatable
        wanted = {name: quantity for name, quantity in container_requests(self.pod.spec).items() if "/" in name}
        has = (value(str(allocatable.get(name, 0))) >= quantity.value() for name, quantity in wanted.items())
        return bool(wanted) and all(has)

    def _deletion_fix(self, title: str) -> Fix:
        return Fix.untried(title, delete_pod(self.pod.key), changes=(Target.pod(self.pod.key).deletion,))

    def _lost_pod_fixes(self, nodes: Sequence[str], pods: Sequence[str] = ()) -> Iterator[Fix]:
        """Yield the untried fixes for pods, `namespace/name`, or else for this pod, on lost nodes. A node that is gone
        cannot be tainted. The taint also detaches volumes, which otherwise keep the next pod from starting."""
        pods = pods or [self.pod.key]
        is_there, is_one = nodes[0] in self.snapshot.cluster.index, len(nodes) == 1
        where = f"{'node' if is_one else 'nodes'} {list_names(nodes, 3, conjunction='and')}"
        be = "is" if is_one else "are"
        gone = f"if {where} {be} gone for good" if is_there else f"since {where} {be} gone"
        names = list_names([key.partition("/")[2] for key in pods], 2, conjunction="and")
        commands = tuple(delete_pod(key, force=True) for key in pods)
        deletions = tuple(replace(Target.pod(key).deletion, force=True) for key in pods)
        fixes = [Fix.untried(f"force the deletion of {names} {gone}", *commands, changes=deletions)]
        if is_there:
            taint = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
            patch = set_field("/spec/taints/-", taint)
            changes = tuple(Target("v1", "Node", node).patched(patch) for node in nodes)
            template = f"kubectl taint node {{}} {OUT_OF_SERVICE}=nodeshutdown:NoExecute"
            commands = tuple(shell_command(template, node) for node in nodes)
            it = "it is" if is_one else "they are"
            tainted = Fix.untried(f"taint {where} out of service, if {it} shut down", *commands, changes=changes)
            rows = (row for key in pods if (row := self.snapshot.pods.rows.get(key)) is not None)
            volumes = (volume for row in rows for volume in self.snapshot.pods.specs[row].volumes)
            has_claims = any(it.persistent_volume_claim or it.ephemeral for it in volumes)
            fixes.insert(0 if has_claims else 1, tainted)
        yield from fixes

    def _old_pod_fixes(self, nodes: Sequence[str], pods: Sequence[str]) -> Iterator[Fix | None]:
        """Yield the fixes for old pods on lost nodes for which a Deployment waits, with the outcome of its next pod
        once all of its old pods are gone."""
        without = self.snapshot.without_pods(member_rows(self.snapshot, workload_of(self.maker or {})))
        for fix in self._lost_pod_fixes(nodes, pods):
            yield self._try(fix.title, fix.changes, snapshot=without, commands=fix.commands)
        yield from map(repair_fix, nodes)

    def _start_fixes(self, state: states.WaitingForKubelet) -> Iterator[Fix | None]:
        """Yield fixes according to the messages of the kubelet, the attach controller, or the registry."""
        probe = _FAILED_PROBE.search(state.event)
        phrase = (state.message if probe else f"{state.message} {state.event}").strip()
        of_probe = "" if probe is None else _probe_advice(state.container, probe["kind"])
        row = self.snapshot.cluster.index.get(state.node)
        is_silent = row is not None and is_unreachable(self.snapshot.cluster.nodes[row])
        if state.outdated:
            title = f"delete {self.pod.key}, which {state.outdated} creates with its newer revision"
            yield self._deletion_fix(title)
        if any(unhealthy_devices(self.pod)):
            yield self._deletion_fix("delete the pod, so that its next one gets a healthy device")
        if isinstance(state, states.BoundToMissingNode):
            meant = nearest_name(state.node, self.snapshot.cluster.names)
            hint = f" (did you mean {meant}?)" if meant else ""
            maker, name = template_owner(self.snapshot, self.pod), f"spec.nodeName {state.node}"
            if maker is not None:
                yield Fix.untried(f"remove {name} from the pod template of {maker.kind} {maker.name}{hint}")
            else:
                yield self._deletion_fix(f"delete the pod, and create it without {name}{hint}")
        elif state.claim:
            node = self.snapshot.cluster.nodes[self.snapshot.cluster.index[state.node]]
            host = f"{HOSTNAME}={node.metadata.labels.get(HOSTNAME, node.name)}"
            title = f"create the pod with nodeSelector {host} instead of spec.nodeName"
            yield Fix.untried(f"{title}, so that kube-scheduler selects its node")
        elif state.is_node_lost and row is not None and (is_silent or not state.reason):
            yield Fix.untried(f"repair {state.node}: {'no kubelet answers there' if is_silent else 'it is not ready'}")
        elif state.waits is states.Waits.VOLUMES and _ATTACHED.search(phrase):
            yield from self._attachment_fixes()
        elif _OTHER_PLATFORM.search(f"{phrase} {state.last}") and state.node in self.snapshot.cluster.index:
            yield from self._platform_fixes(state.node)
        elif state.waits is states.Waits.NETWORK and state.reason and row is not None and self._may_be_of_linux(row):
            yield from self._platform_fixes(state.node, ", if")
        elif (match := _NO_OBJECT.search(phrase)) and (publisher := _PUBLISHERS.get(match["name"])):
            yield Fix.untried(f"repair {publisher}, which publishes ConfigMap {match['name']} in every namespace")
        elif match:
            kind = _KINDS_OF_PODS[match["kind"]]
            yield Fix.untried(f"create {kind} {self._namespace}/{match['name']}, or correct its name in the pod")
        elif state.waits is states.Waits.IMAGE:
            known = (advice for words, advice in PULLS if re.search(words, phrase, re.IGNORECASE))
            advice = next(known, "see that {image} exists, and that {node} may pull it (imagePullSecrets)")
            yield Fix.untried(advice.format(image=self._image(state), node=state.node))
        elif state.last.startswith("OOMKilled"):
            yield Fix.untried(f"raise limits.memory of container {state.container}: it was OOMKilled")
        elif advice := advice_for(STARTS, _start_report(state, phrase)):
            match = NO_DRIVER.search(phrase)
            driver = "" if match is None else (match["name"] or match["unlisted"])
            down = self._agents_text([state.node], driver)
            runtime = f"RuntimeClass {self.pod.spec.runtime_class_name or 'of the pod'}"
            yield Fix.untried(
                advice.format(node=state.node, driver=driver or "its driver", agents=down, runtime=runtime)
            )
        elif state.waits is states.Waits.INIT and state.message and (head := awaited_head(self.snapshot, self.pod)):
            yield Fix.untried(f"repair {head}, for which the pod waits", why_command(head))
        elif state.waits is states.Waits.INIT and state.container and not state.reason:
            title = of_probe or f"find out from its logs what init container {state.container} waits for"
            yield Fix.untried(title, pod_logs(self.pod.key, state.container))
        elif state.container and (state.waits is states.Waits.CRASH or state.reason == "CrashLoopBackOff"):
            command = pod_logs(self.pod.key, state.container, previous=True)
            yield Fix.untried(_crash_advice(state, of_probe), command)
        elif row is not None:
            yield from self._silent_fixes(state, self.snapshot.cluster.nodes[row])

    def _image(self, state: states.WaitingForKubelet) -> str:
        """Return the image of the volume or container that waits for it."""
        spec = self.pod.spec
        mounted = [it.image.reference for it in spec.volumes if it.image is not None and it.name == state.volume]
        own = [it.image for it in (*spec.init_containers, *spec.containers) if it.name == state.container]
        return next(filter(None, (*mounted, *own)), "the image")

    def _silent_fixes(self, state: states.WaitingForKubelet, node: Node) -> Iterator[Fix]:
        """Yield fixes for a pod about which the kubelet of its node reports nothing that is known."""
        owner, virtual = self.pod.metadata.controller, virtual_node(node)
        if virtual is None and state.waits is states.Waits.KUBELET and not state.reason:
            title = f"if this lasts, find out from the kubelet's log on {node.name} why it does not start the pod"
            yield Fix.untried(title)
        if virtual is not None and owner is not None and owner.kind == "DaemonSet":
            yield Fix.untried(off_virtual_nodes(owner.name, *virtual))

    def _may_be_of_linux(self, row: int) -> bool:
        """Whether the node of the pod, in this row, has Windows, which the pod does not select."""
        labels, spec = self.snapshot.cluster.nodes[row].metadata.labels, self.manifest.get("spec")
        is_chosen = isinstance(spec, Mapping) and map_at(spec, "os").get("name") == "windows"
        is_chosen |= OS_LABEL in self.pod.spec.node_selector or self.pod.spec.required_node_affinity is not None
        return labels.get(OS_LABEL) == "windows" and not is_chosen

    def _platform_fixes(self, node: str, conjunction: str = ":") -> Iterator[Fix | None]:
        """Yield fixes for a wrong platform: nodes for which the image may be built, or another image."""
        nodes, own = self.snapshot.cluster.nodes, self.snapshot.cluster.nodes[self.snapshot.cluster.index[node]]
        for key in (OS_LABEL, ARCH_LABEL):
            here = own.metadata.labels.get(key, "")
            others = Counter(node.metadata.labels.get(key, here) for node in nodes)
            if wanted := next((value for value, _ in others.most_common() if value != here), ""):
                suited = (node for node in nodes if node.metadata.labels.get(key, here) == wanted)
                there = min(suited, key=lambda node: node.spec.unschedulable)
                because = f"{conjunction} the image is not built for {here}"
                yield self._require_label_fix(key, wanted, because, self._reserved(there))
                break
        yield Fix.untried(f"use an image that is built for the platform of {node}")

    def _reserved(self, node: Node) -> tuple[Taint, ...]:
        """Return the taints of a node that the pod does not tolerate and that stand for no fault of it."""
        tolerations = Tolerations(self.pod.spec.tolerations, comparison=False)
        taints = (taint for taint in node.spec.taints if taint.effect in DO_NOT_SCHEDULE and taint.key != CORDON_TAINT)
        return tuple(taint for taint in taints if not (taint_remover(taint) or tolerations.cover(taint)))

    def _require_label_fix(self, key: str, value: str, because: str = "", taints: Sequence[Taint] = ()) -> Fix | None:
        """Return the fix that selects nodes with a label, and tolerates their taints, instead of a fixed node. The
        controller of a DaemonSet then skips the node."""
        if is_of_daemon_set(self.pod.metadata.owner_references):
            return Fix.untried(f"require {key}={value} in the pod template: it then runs on no other node")
        before = self.manifest.get("spec")
        if not isinstance(before, Mapping):
            return None
        unbound = {name: field for name, field in before.items() if name != "nodeName"}
        selector = {**unbound.get("nodeSelector", {}), key: value}
        stopped = replace(self, manifest={**self.manifest, "spec": unbound})
        patch = [set_field("/spec/nodeSelector", selector)]
        if taints:
            added = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in taints]
            patch.append(set_field("/spec/tolerations", [*unbound.get("tolerations", ()), *added]))
        tolerate = f" and tolerate {list_names(map(str, taints), 3)}" if taints else ""
        return stopped._patch_fix(f"require {key}={value}{tolerate}{because}", patch)

    def _able_to_start(self, state: states.CannotStart) -> Iterator[Fix | None]:
        where = list_names(state.nodes, 3, conjunction="and")
        if state.claim:
            yield from self._attachment_fixes()
        for name in state.nodes[:3] if state.pressure else ():
            row = self.snapshot.cluster.index[name]
            for step in node_repairs(row, self.snapshot.cluster.nodes[row], self.snapshot):
                yield Fix.untried(step.title, of_group=FixGroup.CAPACITY)
        if state.driver:
            agents = self._agents_text(state.nodes, state.driver)
            listing = (node.spec.drivers for node in self.snapshot.storage.csi_nodes.values())
            is_listed = any(driver.name == state.driver for drivers in listing for driver in drivers)
            run = f"run the node plugin of {state.driver} on {where}{agents}"
            yield Fix.untried(run if is_listed or agents else f"install or repair {state.driver} on the nodes")
        key, _, value = state.label.partition("=")
        if any(node.metadata.labels.get(key) == value for node in self.snapshot.cluster.nodes if key):
            yield self._require_label_fix(key, value)
        elif key:
            yield Fix.untried(f"add a node with {state.label}, and select it with nodeSelector")
        if key == ARCH_LABEL:
            yield Fix.untried(f"use an image that is built for the platform of {where}")

    def _agents_text(self, nodes: Sequence[str], driver: str) -> str:
        """Return `: gpu/driver-1 is not ready there` for agents of these nodes that are down, the DaemonSet that keeps
        the driver's agent off a node, or an empty string."""
        down = [*dict.fromkeys(agent for node in nodes for agent in agents_down(self.snapshot, node))]
        if down:
            return f": {', '.join(down[:3])} {'is' if len(down) == 1 else 'are'} not ready there"
        rows = (self.snapshot.cluster.index.get(node) for node in nodes if driver)
        known = (self.snapshot.cluster.nodes[row] for row in rows if row is not None)
        why = next(filter(None, (_absent_agent(self.snapshot, self.setup, driver, node) for node in known)), "")
        return f": {why}" if why else ""

    def _attachment_fixes(self) -> Iterator[Fix | None]:
        """Yield fixes for a volume that is attached to the node of another pod with the same claim."""
        rows, stopped = [*holders_elsewhere(self.snapshot, self.pod)], set[str]()
        for row in rows:
            holder = self.snapshot.pods[row]
            if holder.key in stopped:
                continue
            node = holder.spec.node_name
            if is_node_lost(self.snapshot, node):
                yield from replace(self, pod=holder)._lost_pod_fixes([node])
            elif holder.metadata.deletion_timestamp:
                yield Fix.untried(f"wait until {holder.key} on {node} has terminated, and its volume is detached")
            else:
                if self._is_sibling_replica(holder):
                    yield Fix.untried(
                        "run 1 replica, use a claim with ReadWriteMany, or a StatefulSet with a claim each"
                    )
                    continue
                yield (recreate := self._recreate_strategy(holder))
                if recreate is None and (stop := stop_workload(row, self.snapshot, rows)) is not None:
                    stopped.update(victim.pod for victim in stop.victims)
                    wait = Fix.untried(f"wait until Job {stop.workload.name} ends, which uses the volume on {node}")
                    changes = tuple(stop.changes(self._namespace))
                    yield wait if stop.is_deleted else Fix.untried(stop.title, *stop.commands(), changes=changes)
                    yield Fix.untried("run both pods on one node, or use a claim with ReadWriteMany")
                    continue
                title = f"delete {holder.key} on {node}, which uses the volume"
                yield Fix.untried(title, delete_pod(holder.key))
        if not rows:
            yield self._stale_attachment(own_claims(self.pod))

    def _is_sibling_replica(self, holder: Pod) -> bool:
        """Return whether the holder is another replica of the same template, of several that are wanted."""
        owner, controller = template_owner(self.snapshot, self.pod), holder.metadata.controller
        several = owner is not None and map_at(owner.manifest, "spec").get("replicas") not in (0, 1, None)
        return several and controller is not None and controller == self.pod.metadata.controller

    def _recreate_strategy(self, holder: Pod) -> Fix | None:
        """Return the fix for a Deployment whose old pod keeps the volume attached to its node."""
        owners = [template_owner(self.snapshot, pod) for pod in (self.pod, holder)]
        if any(owner is None or owner.kind != "Deployment" for owner in owners) or owners[0] != owners[1]:
            return None
        name = "" if owners[0] is None else owners[0].name
        step = TakeOldFirst(victims=(), owner=name, is_single=True)
        merge = {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}
        command = shell_command("kubectl patch deployment {} -n {} -p {}", name, self._namespace, merge)
        changes = tuple(step.changes(self._namespace))
        title = f"set strategy Recreate on Deployment {name}, so that {holder.key} goes before a new pod is created"
        return Fix.untried(title, command, changes=changes)

    def _stale_attachment(self, claims: Iterable[str]) -> Fix:
        """Return the fix for a VolumeAttachment that keeps a volume on the node of its last pod."""
        storage = self.snapshot.storage
        volumes = {claim.spec.volume_name for key in claims if (claim := storage.claims.get(key)) is not None}
        for attachment in storage.attachments:
            volume, node = attachment.spec.source.persistent_volume_name, attachment.spec.node_name
            if volume not in volumes or node == self.pod.spec.node_name:
                continue
            name = attachment.metadata.name
            named = f"VolumeAttachment {name} of volume {volume} to {node}"
            if node in self.snapshot.cluster.index:
                driver, failed = attachment.spec.attacher, attachment.status.detach_error
                if failed is not None and failed.message:
                    return Fix.untried(
                        f"repair {driver}, which cannot detach volume {volume} from {node}: {failed.message}"
                    )
                if is_node_lost(self.snapshot, node):
                    taint, *_ = self._lost_pod_fixes([node])
                    title = (
                        f"repair {node}, or taint it out of service if it is shut down, so that {volume} is detached"
                    )
                    return Fix.untried(title, *taint.commands)
                return Fix.untried(f"wait until {named} is gone, or find out from {driver} why it is not")
            if attachment.metadata.deletion_timestamp:
                command = remove_finalizers("volumeattachment", "", name)
                title = f"remove the finalizer of {named}, which does not exist, once the volume is detached there"
                return Fix.untried(title, command)
            command = shell_command("kubectl delete volumeattachment {}", name)
            return Fix.untried(f"delete {named}, which does not exist", command)
        return Fix.untried("delete the VolumeAttachment of the volume to its former node, if that node is gone")

    def _schedulers_on(self, node: str) -> list[str]:
        """Return the schedulers of the pods on a node, and of this pod; a DaemonSet's pod with the default one may be
        of any cluster."""
        pods, row = self.snapshot.pods, self.snapshot.cluster.index.get(node)
        its = [] if row is None else pods.on_node(row).tolist()
        return sorted({self.pod.spec.scheduler_name, *(pods.specs[pod].scheduler_name for pod in its)} - {""})

    def lost_node_fixes(self, node: str) -> Iterator[Fix]:
        """Yield the fixes for a pod on a lost node; repairing it comes first if the pod fits no other."""
        moved = [self._with_outcome(fix, node) for fix in self._lost_pod_fixes([node])]
        if node in self.snapshot.cluster.index and all(fix.certainty is FixCertainty.PARTIAL for fix in moved):
            yield repair_fix(node)
        yield from moved

    def _with_outcome(self, fix: Fix, lost: str) -> Fix:
        """Return a fix with kube-scheduler's decision about the pod that its controller recreates."""
        alone = replace(self.pod, metadata=replace(self.pod.metadata, deletion_timestamp=None))
        row = self.snapshot.pods.rows.get(alone.key)
        snapshot = self.snapshot if row is None else self.snapshot.without_pods([row])
        unbound = replace(alone, spec=replace(alone.spec, node_name=""), status=type(alone.status)())
        then = self._decide(Subject(snapshot=snapshot, pod=unbound, is_new=True))
        return fix_with_outcome(fix, then, lost=lost)
