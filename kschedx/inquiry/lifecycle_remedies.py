"""Fixes for pods that are refused, suspended, paused, scaled to zero, or stuck in deletion.

Each is tried before it is printed: the pod is admitted and goes through a scheduling cycle.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kschedx.controllers import states
from kschedx.controllers.daemon_set import agents_down, home_node, pods_for
from kschedx.controllers.pod_lifecycle import (
    controller_manager_down,
    holders_elsewhere,
    is_node_lost,
    is_ready,
    pod_lifecycle,
)
from kschedx.controllers.stateful_set import unsure_of_name
from kschedx.controllers.workload_lifecycle import failing_rollout
from kschedx.controllers.workloads import (
    SCALED,
    Workload,
    controlling_custom_resource,
    is_of_daemon_set,
    manifest_of,
    ordinal_of,
    pods_of_ordinals,
    replica_sets_of,
    workload_of,
)
from kschedx.errors import InputError, UndecidableError
from kschedx.explain.events import extender_failure
from kschedx.explain.kubelet import ARCH_LABEL, OS_LABEL
from kschedx.explain.root_causes import NewerTemplate
from kschedx.explain.setup import Subject, stored_subject
from kschedx.findings.constraints import CORDON_TAINT
from kschedx.fixes import FixCertainty
from kschedx.fixes.eviction import stop_workload
from kschedx.fixes.node_remedies import node_repairs
from kschedx.fixes.node_requirements import taint_remover
from kschedx.fixes.owners import template_owner
from kschedx.fixes.phrases import FAILURES, NO_DRIVER, OF_JOBS, PULLS, REJECTIONS, STARTS, advice_for
from kschedx.fixes.proposal import FixGroup
from kschedx.fixes.steps import TakeOldFirst
from kschedx.fixes.storage_remedies import provisioner_repair
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.fix import Fix, activation, component_repair
from kschedx.inquiry.refusal_remedies import Patch, Refusal, fix_with_outcome
from kschedx.kube.autoscalers import PAUSED
from kschedx.kube.controllers import stored_controller
from kschedx.kube.custom_resources import stop_of
from kschedx.kube.decoding import map_at
from kschedx.kube.documents import Target, merged_fields, pointer, remove_field, set_field
from kschedx.kube.escaping import shell_command
from kschedx.kube.kubectl import delete_pod, merge_patch, pod_logs, scale_workload
from kschedx.kube.kueue import QUEUE_LABEL
from kschedx.kube.names import HOSTNAME
from kschedx.kube.other_schedulers import POD_GROUP_LABEL
from kschedx.kube.quantity import value
from kschedx.kube.resources import container_requests
from kschedx.kube.storage import own_claims
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, Tolerations
from kschedx.kube.types import OUT_OF_SERVICE, Node, Pod, Taint
from kschedx.kube.typos import nearest_name
from kschedx.kube.workloads import LONGEST_STATEFUL_SET_NAME, is_foreign
from kschedx.patterns import lazy_pattern
from kschedx.wording import list_names

_MOST_FIXES = 3
_MOST_OF_ANOTHER = 2  # fixes of the pending pod for which another waits
_ATTACHED = lazy_pattern(r"Multi-Attach error|(?<!\d\) )already (exclusively )?attached|already used by pod")
_NO_REQUEST = lazy_pattern(r"missing request for (?P<resource>\S+) in container (?P<container>\S+)")
_SEVERAL = lazy_pattern(r"controlled by multiple HPAs: \[(?P<names>[^\]]+)\]")
_NO_METRICS = lazy_pattern(r"(?P<of>custom\.|external\.)?metrics\.k8s\.io")
_UNDISCOVERED = lazy_pattern(r"(?P<group>[a-z0-9.-]+\.[a-z0-9-]+)/(?P<version>v\d\w*)")
_HELD_CONTENT = lazy_pattern(r"(?P<finalizer>(?!and )\S+) (?:in \d+ resource instances|keeps \d+ pods?:)")
_ON_LOST_NODE = lazy_pattern(r"the kubelet of (?P<node>\S+) does not respond and keeps \d+ pods?: (?P<pod>[^\s,]+)")
_OTHER_PLATFORM = lazy_pattern(r"no match for platform|no matching manifest for|exec format error")
_FOR_ALL = lazy_pattern(r"OutOf|UnexpectedAdmissionError")
"""Reasons for which a kubelet also fails the controller's next pod."""
_KILLED = lazy_pattern(r"exit code (?:0|137|143)\b")  # how a container ends that its kubelet stops
_NO_FINALIZERS: Mapping[str, object] = {"metadata": {"finalizers": None}}
_KINDS_OF_PODS = {
    "secret": "Secret",
    "configmap": "ConfigMap",
    "network-attachment-definitions.k8s.cni.cncf.io": "NetworkAttachmentDefinition",
}
_PUBLISHERS = {
    "kube-root-ca.crt": "kube-controller-manager",
    "openshift-service-ca.crt": "the service CA operator of OpenShift",
}
"""ConfigMaps that a controller creates in every namespace."""
_NO_OBJECT = lazy_pattern(rf'(?P<kind>{"|".join(map(re.escape, _KINDS_OF_PODS))}) "(?P<name>[^"]+)" not found')


def _repair_fix(node: str) -> Fix:
    return Fix.untried(f"repair {node}, or delete the node if its machine is gone")


class LifecycleRemedies(Refusal, frozen=True, kw_only=True, dict=True):
    """A pod that is not created or does not reach kube-scheduler, and the fixes for that."""

    def fixes(self, lifecycle: states.Lifecycle) -> tuple[Fix, ...]:
        all_fixes = (fix for fix in self._each(lifecycle) if fix is not None)
        return tuple(sorted(all_fixes, key=lambda fix: fix.certainty is FixCertainty.PARTIAL))[:_MOST_FIXES]

    def _each(self, lifecycle: states.Lifecycle) -> Iterator[Fix | None]:
        yield from self._workload_fixes(lifecycle)
        yield from self._resume_fixes(lifecycle)
        yield from self._predecessor_fixes(lifecycle)
        yield from self._pod_fixes(lifecycle)

    def _workload_fixes(self, lifecycle: states.Lifecycle) -> Iterator[Fix | None]:
        match lifecycle:
            case states.ScaledToZero(autoscaler=autoscaler, why=why) if autoscaler:
                if "not ready" in why:
                    yield Fix.untried(f"repair {autoscaler}: {why}")
                yield self._scaled_by(autoscaler, why)
            case states.UpdateHeld(pods=pods, why=why):
                yield self._update_fix(pods, why)
            case states.NotScaled(autoscaler=autoscaler, most=most):
                yield self._scaled_further(autoscaler, most) if most else self._metrics_fix(lifecycle)
            case states.NoJobStarted(reason=reason):
                yield self._missed_job_fix(reason)
            case states.NamespaceTerminating(remaining=remaining):
                fixes = filter(None, (_namespace_content_fix(lifecycle.namespace, item) for item in remaining))
                yield from {fix.title: fix for fix in fixes}.values()
            case states.ScaledToZero(owner=owner) if owner:
                yield self._scaled_by_owner(owner)
            case states.ScaledToZero(field=field):
                yield self._start_fix() if lifecycle.value else self._scale_fix(field)
            case states.RejectedByKubelet(reason=reason, message=message, nodes=nodes):
                phrase = f"{reason} {message}"
                advice = advice_for(REJECTIONS, phrase)
                yield Fix.untried(advice.format(node=list_names(nodes, 3))) if advice else None
            case states.RolloutStalled(nodes=nodes) if nodes:
                yield from map(_repair_fix, nodes)
            case states.RolloutStalled(seconds=0):
                yield from self._rolled_back()
            case states.NotChanged():
                yield self._recreate_fix()
            case states.NotRead() if self.maker and lifecycle == unsure_of_name(self.snapshot, workload_of(self.maker)):
                yield Fix.untried(f"choose a name of at most {LONGEST_STATEFUL_SET_NAME} characters")
            case states.NotObserved(kind=kind, message=""):
                known = "kube-controller-manager" if kind in SCALED else f"the controller of {kind}"
                done = "changed" if lifecycle.generations else "created"
                yield Fix.untried(f"see whether {known} runs, unless the {kind} was {done} just now")
            case states.StillActive(pod="", message=message) if message:
                yield from self._refusal_fixes(message)
            case states.StillActive(job=job, pod=key):
                yield from self._started_other(key)
                command = shell_command("kubectl delete job {} -n {}", job, self._namespace)
                yield self._try(
                    f"delete Job {job}, so that the next run starts",
                    (Target("batch/v1", "Job", job, self._namespace).deletion,),
                    commands=(command,),
                )

    def _resume_fixes(self, lifecycle: states.Lifecycle) -> Iterator[Fix | None]:
        """Yield what resumes a workload that is suspended or paused."""
        match lifecycle:
            case states.Suspended(owner=owner) if owner and self.maker is not None:
                above = controlling_custom_resource(self.snapshot, self.maker)
                yield from replace(self, maker=above)._resume_fixes(replace(lifecycle, owner=""))
            case states.Suspended(kind=kind, queue="", field=field, waits=waits):
                spec: Mapping[str, object] = {"suspend": False}
                if "runPolicy" in field:
                    spec = {"runPolicy": spec}
                if not waits:
                    yield self._workload_fix(f"resume the {kind}", spec) or self._untried_resume(kind, spec)
                if waits or lifecycle.may_be_of_kueue:
                    yield self._with_queue(lifecycle)
            case states.Suspended():
                yield self._queue_fix(lifecycle)
            case states.Paused(reason=reason) if reason:
                command = shell_command("kubectl argo rollouts promote {} -n {}", self._workload_name, self._namespace)
                yield Fix.untried("promote the Rollout, so that it goes on with its next step", commands=(command,))
            case states.Paused(kind="Rollout"):
                title, spec = "resume the Rollout", {"paused": False}
                command = self._merge_command("rollouts.argoproj.io {}", self._workload_name, spec=spec)
                yield self._workload_fix(title, spec) or Fix.untried(title, commands=(command,))
            case states.Paused():
                command = shell_command(
                    "kubectl rollout resume deployment/{} -n {}", self._workload_name, self._namespace
                )
                patch = [set_field("/spec/paused", False)]
                yield self._try("resume the Deployment", (self._workload_change(patch),), commands=(command,))

    def _untried_resume(self, kind: str, spec: Mapping[str, object]) -> Fix | None:
        """Return the resumption of a custom resource whose pods only its controller knows, as a TrainJob's."""
        if self.maker is None or self.pod.spec.containers:
            return None
        command = self._merge_command("{}/{}", kind.lower(), self._workload_name, spec=spec)
        return Fix.untried(f"resume the {kind}", commands=(command,))

    def _predecessor_fixes(self, lifecycle: states.Lifecycle) -> Iterator[Fix | None]:
        """Yield fixes for a pod that is being deleted, or for the earlier pod that delays this one."""
        match lifecycle:
            case states.BeingDeleted(node=node, is_node_lost=True, barrier=barrier) if barrier:
                yield from self._lost_pod_fixes(node)
            case states.BeingDeleted(node=node, is_node_lost=True, owner=owner, successor=later) if node:
                yield from self._lost_node_fixes(node) if owner or later else self._lost_pod_fixes(node)
            case states.WaitingForOrdinal(predecessor=name, node=node, is_node_lost=True):
                row = self.snapshot.pods.rows.get(f"{self._namespace}/{name}")
                if row is not None and self.snapshot.pods.deletion_timestamps[row]:
                    earlier = replace(self, pod=self.snapshot.pods[row])
                    yield from earlier._lost_node_fixes(node)
            case states.WaitingForOrdinal(predecessor=name, because=because):
                yield from (fixes := [*self._started_other(f"{self._namespace}/{name}")])
                if not fixes and because == "is not ready":
                    command = shell_command("kubectl describe pod {} -n {}", name, self._namespace)
                    yield Fix.untried(f"find out why {name} {because}", commands=(command,))
            case states.BeingDeleted(finalizers=finalizers, is_workload=False) if finalizers:
                if lifecycle.down and (down := controller_manager_down(self.snapshot, self.pod.key)) is not None:
                    yield component_repair(down)
                yield self._unheld(finalizers)

    def _pod_fixes(self, lifecycle: states.Lifecycle) -> Iterator[Fix | None]:
        match lifecycle:
            case states.OnLostNode(node=node):
                yield _repair_fix(node)
            case states.KeptBySidecar(running=running):
                native = f"run {running} as an init container with restartPolicy Always"
                yield Fix.untried(f"{native}: it ends with the Job's other containers")
            case states.ResizeHeld():
                yield from self._resize_fixes(lifecycle)
            case states.NoScheduler(profiles=profiles, hint=hint, others=0, message="", running="", is_managed=False):
                yield self._scheduler_fix(hint, profiles)
            case states.NotSynced():
                yield Fix.untried("mend it in the host cluster, whose API server refuses the pod")
            case states.Refused(past=past) if past:
                yield self._next_attempt()
            case states.Refused(message=message) if not isinstance(lifecycle, states.NotChanged):
                yield from self._refusal_fixes(message)
            case states.NotBound(group=group) if group:
                yield Fix.untried(f"create PodGroup {group}, or correct the pod's label {POD_GROUP_LABEL}")
            case states.NotBound(message=message, extender=extender) if extender:
                failed = extender_failure(message)
                yield None if failed is None else Fix.untried(failed.advice)
            case states.NotBound(claim=key, provisioner=driver) if key:
                driver, claim = driver or "the storage driver", self.snapshot.storage.claims[key]
                yield Fix.untried(provisioner_repair(self.snapshot, claim, driver))
            case states.CannotStart():
                yield from self._able_to_start(lifecycle)
            case states.WaitingForKubelet():
                if (owner := template_owner(self.snapshot, self.pod)) is not None:
                    workload = Workload(owner.kind, self._namespace, owner.name)
                    yield from replace(self, maker=failing_rollout(self.snapshot, workload))._rolled_back()
                yield from self._kubelet_fixes(lifecycle)
            case states.ComponentDown():
                yield component_repair(lifecycle)
            case states.Failed():
                yield from self._failure_fixes(lifecycle)

    def _next_attempt(self) -> Fix:
        """Return what lets a controller try again at once, which otherwise waits for its back-off of up to 1,000 s, or
        of up to 60 s for a Job (MaxJobApiBackOff in pkg/controller/job/job_controller.go)."""
        kind = str((self.maker or {}).get("kind")).lower()
        if kind in ("deployment", "statefulset", "daemonset"):
            command = shell_command("kubectl rollout restart {}/{} -n {}", kind, self._workload_name, self._namespace)
            return Fix.untried(
                "wait up to 17 minutes for its next attempt, or restart the rollout", commands=(command,)
            )
        most = "1 minute" if kind in ("job", "cronjob") else "17 minutes"
        return Fix.untried(f"wait up to {most} for its controller's next attempt")

    def _started_other(self, key: str) -> Iterator[Fix | None]:
        """Yield fixes for another pod, which a kubelet does not run or which fits no node."""
        row = self.snapshot.pods.rows.get(key)
        state = None if row is None else pod_lifecycle(self.snapshot, self.snapshot.pods[row])
        if row is not None and isinstance(state, states.WaitingForKubelet):
            yield from replace(self, pod=self.snapshot.pods[row])._kubelet_fixes(state)
        elif row is not None and row in self.snapshot.pods.pending and state is None:
            yield from self.explain(stored_subject(self.snapshot, key), self.setup).fixes[:_MOST_OF_ANOTHER]

    # --- states of the workload

    def _queue_fix(self, state: states.Suspended) -> Fix | None:
        """Return the fix for a workload that Kueue cannot admit in its current form, however much quota is free."""
        if state.meant:
            return self._with_queue(state)
        if state.inactive:
            return activation(self._namespace, state.inactive)
        return None

    def _with_queue(self, state: states.Suspended) -> Fix:
        instead = f" instead of {state.queue}" if state.queue else ""
        if not state.meant:
            return Fix.untried(f"label it {QUEUE_LABEL} with a LocalQueue of its namespace, if Kueue suspended it")
        template = f"kubectl label {{}} {{}} -n {{}} --overwrite {QUEUE_LABEL}={{}}"
        command = shell_command(template, state.kind.lower(), self._workload_name, self._namespace, state.meant)
        condition = ", if Kueue suspended it" if state.may_be_of_kueue else ""
        return Fix.untried(f"use LocalQueue {state.meant}{instead}{condition}", commands=(command,))

    def _scheduler_fix(self, meant: str, profiles: Sequence[str]) -> Fix | None:
        name = meant or ("default-scheduler" if "default-scheduler" in profiles else min(profiles, default=""))
        title, patch = f"set schedulerName to {name}", [set_field("/spec/schedulerName", name)]
        return self._patch_fix(title, patch) if name in profiles else Fix.untried(title)

    def _scale_fix(self, field: str) -> Fix | None:
        if self.maker is None or not field.startswith("spec."):
            return None
        name = field.rpartition(".")[2]
        if is_foreign(self.maker):  # it may have no scale subresource
            return self._workload_fix("scale to 1 replica", {name: 1})
        kind = str(self.maker.get("kind")).lower()
        if name == "parallelism":
            return self._workload_fix("set parallelism to 1", {"parallelism": 1})
        patch = [set_field(f"/{field.replace('.', '/')}", 1)]
        command = scale_workload(kind, self._namespace, self._workload_name, 1)
        return self._try("scale to 1 replica", (self._workload_change(patch),), commands=(command,))

    def _start_fix(self) -> Fix | None:
        stop = None if self.maker is None else stop_of(self.maker)
        if self.maker is None or stop is None:
            return None
        kind, group = str(self.maker.get("kind")), str(self.maker.get("apiVersion")).rpartition("/")[0]
        command = merge_patch(f"{kind.lower()}.{group}", self._namespace, self._workload_name, stop.start)
        change = self._workload_change([*merged_fields("", stop.start)])
        return self._try(f"start the {kind}", (change,), commands=(command,))

    def _scaled_by_owner(self, owner: str) -> Fix | None:
        """Return what makes the owner create pods; a Deployment keeps its former ReplicaSets at zero."""
        kind, _, _ = owner.partition(" ")
        service = str(map_at(self.maker or {}, "metadata", "labels").get("serving.knative.dev/service") or "")
        if kind == "Revision" and service:
            annotations = {"autoscaling.knative.dev/min-scale": "1"}
            spec = {"template": {"metadata": {"annotations": annotations}}}
            command = self._merge_command("services.serving.knative.dev {}", service, spec=spec)
            return Fix.untried("send a request to it: Knative adds pods for it, or keeps one", commands=(command,))
        return None if kind == "Deployment" else Fix.untried(f"raise the replicas in {owner}, which sets them")

    def _scaled_by(self, autoscaler: str, why: str) -> Fix | None:
        """Return a change of the autoscaler, which would revert `kubectl scale`."""
        kind, _, name = autoscaler.partition(" ")
        if why.startswith(f"annotation {PAUSED}"):
            patch: Patch = [remove_field(f"/metadata/annotations/{pointer(annotation := why.split()[1])}")]
            title, template = f"resume {autoscaler}", "kubectl annotate {} {} {}- -n {}"
            command = shell_command(template, kind.lower(), name, annotation, self._namespace)
        else:
            fields: tuple[str, ...] = ("minReplicas",)
            if kind == "ScaledObject":
                fields = ("idleReplicaCount", "minReplicaCount") if "idle" in why else ("minReplicaCount",)
            values = {field: None if field.startswith("idle") else 1 for field in fields}
            patch = [*merged_fields("/spec", values)]
            title = f"set {fields[-1]} of {autoscaler} to 1"
            command = self._merge_command("{} {}", kind.lower(), name, spec=values)
        version = "keda.sh/v1alpha1" if kind == "ScaledObject" else "autoscaling/v2"
        change = Target(version, kind, name, self._namespace).patched(*patch)
        return self._try(title, (change,), commands=(command,))

    def _update_fix(self, pods: Sequence[str], why: str) -> Fix | None:
        """Return the fix to delete the pods, highest ordinal first, or to lower the partition."""
        if "partition" not in why:
            commands = (delete_pod(f"{self._namespace}/{pod}") for pod in reversed(pods))
            return Fix.untried(
                "delete its pods one after the other, each once the one before is ready", commands=(*commands,)
            )
        spec = {"updateStrategy": {"rollingUpdate": {"partition": 0}}}
        return self._workload_fix("set partition to 0, so that all pods get the new template", spec)

    def _scaled_further(self, autoscaler: str, most: int) -> Fix | None:
        kind, _, name = autoscaler.partition(" ")
        target = Target("autoscaling/v2", kind, name, self._namespace)
        change = target.patched(set_field("/spec/maxReplicas", most + 1))
        command = self._merge_command("hpa {}", name, spec={"maxReplicas": most + 1})
        return self._try(f"raise maxReplicas of {autoscaler} from {most}", (change,), commands=(command,))

    def _metrics_fix(self, state: states.NotScaled) -> Fix:
        if match := _NO_REQUEST.search(state.message):
            return Fix.untried(
                f"set requests.{match['resource']} of container {match['container']}: {state.autoscaler} needs it"
            )
        if match := _NO_METRICS.search(state.message):
            server = "an adapter that serves " + match[0] if match["of"] else "metrics-server"
            return Fix.untried(f"install or repair {server}: {state.autoscaler} gets no metrics")
        if match := _SEVERAL.search(state.message):
            every = list_names(match["names"].split(), 3, conjunction="and")
            return Fix.untried(f"delete all but one of the HorizontalPodAutoscalers {every}, or make their pods differ")
        return Fix.untried(f"repair what {state.autoscaler} reports")

    def _resize_fixes(self, state: states.ResizeHeld) -> Iterator[Fix]:
        """Yield fixes for a resize. A kubelet retries a deferred one; meanwhile, the pod keeps its allocated
        resources."""
        if state.reason == "Deferred":
            yield Fix.untried(f"free as much as the resize lacks on {state.node}; the kubelet then carries it out")
        else:
            yield Fix.untried("change the pod template and let the pod be recreated on a node that is large enough")
        requests = [
            {"name": status.name, "resources": {"requests": dict(given)}}
            for status in self.pod.status.container_statuses
            if (
                given := status.allocated_resources
                or (status.resources.requests if status.resources is not None else {})
            )
        ]
        if requests:
            body = {"spec": {"containers": requests}}
            template = "kubectl patch pod {} -n {} --subresource resize -p {}"
            command = shell_command(template, self.pod.metadata.name, self._namespace, body)
            yield Fix.untried("withdraw the resize: request what is allocated", commands=(command,))

    def _missed_job_fix(self, reason: str) -> Fix:
        if reason == "UnknownTimeZone":
            return Fix.untried(
                "correct spec.timeZone of the CronJob, or let kube-controller-manager have time zone data"
            )
        if "schedule" in reason.lower() and reason != "MissSchedule":
            return Fix.untried("correct spec.schedule of the CronJob")
        name = self._workload_name
        command = shell_command("kubectl create job {}-1 --from=cronjob/{} -n {}", name, name, self._namespace)
        if reason == "TooManyMissedTimes":
            missed = "set startingDeadlineSeconds to fewer than 100 intervals"
            return Fix.untried(f"see why kube-controller-manager did not run, and {missed}", commands=(command,))
        return Fix.untried("start the missed Job by hand, and raise startingDeadlineSeconds", commands=(command,))

    def _failure_fixes(self, state: states.Failed) -> Iterator[Fix]:
        """Yield fixes for a pod or Job that has failed permanently."""
        known = REJECTIONS if state.owner and _FOR_ALL.match(state.reason) else FAILURES
        advice = advice_for(known, f"{state.reason} {state.message}")
        if "no healthy devices" in state.message and not state.owner and self._has_devices(state.node):
            advice = "delete the pod and create it again: {node} has its devices again"
        if state.reason.startswith("OutOf") and len(names := self._schedulers_on(state.node)) > 1:
            both = list_names(names, 3, conjunction="and")
            yield Fix.untried(f"let one scheduler assign pods to {state.node}, on which {both} do: they race for room")
        if state.container:
            title = f"find out from its logs why container {state.container} ended"
            yield Fix.untried(title, commands=(pod_logs(self.pod.key, state.container),))
        elif any(owner.kind == "Node" for owner in self.pod.metadata.owner_references):
            rejected = state.reason.startswith("OutOf")
            repair = f"free resources on {state.node}" if rejected else f"find out on {state.node} why it ended"
            yield Fix.untried(f"{repair}: its kubelet runs this static pod from a manifest file")
        elif state.surplus:
            yield self._deletion_fix(f"delete the pod, which {state.owner} no longer needs")
        elif state.owner and ((is_replaced := self._is_replaced(state)) or advice.startswith("delete the pod")):
            title = f"delete the pod: {state.owner} {'has replaced' if is_replaced else 'replaces'} it"
            yield self._deletion_fix(title)
        elif not state.node:
            last = state.pods[-1:]
            end = state.ends.partition(" failed: ")[2].replace(": ", " ", 1)
            if not advice and (known_end := advice_for(OF_JOBS, end)):
                pods = self.snapshot.pods
                node = pods[pods.rows[f"{self._namespace}/{state.pods[-1]}"]].spec.node_name
                advice, last = known_end.format(node=node), ()
            title = advice or ("find out from their logs why its pods fail" if last else "find out why its pods fail")
            of_pods = tuple(pod_logs(f"{self._namespace}/{name}") for name in last)
            kind = str((self.maker or {}).get("kind") or "Job")
            ended = f"a {kind} that has failed creates no pods"
            why = "the pod template of a Job is immutable" if state.is_retried else ended
            again = f"delete {kind} {self._workload_name} and create it again: {why}"
            yield Fix.untried(f"{title}; then {again}", commands=of_pods)
        elif advice:
            then = "" if "again" in advice or state.owner else "; then delete the pod and create it again"
            yield Fix.untried(f"{advice.format(node=state.node)}{then}")

    def _is_replaced(self, state: states.Failed) -> bool:
        """Return whether the ReplicaSet of a pod that its kubelet rejected has all of its pods, and all are ready. An
        eviction shows a shortage on the node, which may go on."""
        owner, pods = self.pod.metadata.controller, self.snapshot.pods
        raw = None if owner is None else self.snapshot.workloads.get((owner.kind, self._namespace, owner.name))
        if raw is None or owner is None or owner.kind != "ReplicaSet" or state.reason == "Evicted":
            return False
        rows = pods.owners.where(lambda owners: owner in owners).nonzero()[0].tolist()
        return sum(is_ready(pods[row]) for row in rows) >= (stored_controller(raw).spec.replicas or 1)

    def _has_devices(self, node: str) -> bool:
        """Return whether a node has as many devices allocatable as the pod requests."""
        row = self.snapshot.cluster.index.get(node)
        allocatable = {} if row is None else self.snapshot.cluster.nodes[row].status.allocatable
        wanted = {name: quantity for name, quantity in container_requests(self.pod.spec).items() if "/" in name}
        return all(value(str(allocatable.get(name, 0))) >= quantity.value() for name, quantity in wanted.items())

    def _rolled_back(self) -> Iterator[Fix | None]:
        """Yield the fix to return to the previous template, if a ReplicaSet still has it."""
        if self.maker is not None and len([*replica_sets_of(self.snapshot, workload_of(self.maker))]) > 1:
            command = shell_command("kubectl rollout undo deployment/{} -n {}", self._workload_name, self._namespace)
            yield Fix.untried("go back to the former pod template, if the new one is at fault", commands=(command,))

    def _workload_fix(self, title: str, spec: Mapping[str, object]) -> Fix | None:
        if self.maker is None:
            return None
        kind = str(self.maker.get("kind")).lower()
        command = self._merge_command("{}/{}", kind, self._workload_name, spec=spec)
        return self._try(title, (self._workload_change([*merged_fields("/spec", spec)]),), commands=(command,))

    def _lost_pod_fixes(self, node: str) -> Iterator[Fix]:
        """Yield the untried fixes for a pod on a lost node. A node that is gone cannot be tainted."""
        is_there = node in self.snapshot.cluster.index
        gone = f"if node {node} is gone for good" if is_there else f"since node {node} is gone"
        command = f"{delete_pod(self.pod.key)} --force --grace-period=0"
        title = f"force the deletion of {self.pod.metadata.name} {gone}"
        yield Fix.untried(title, (Target.pod(self.pod.key).deletion,), commands=(command,))
        if is_there:
            taint = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
            change = Target("v1", "Node", node).patched(set_field("/spec/taints/-", taint))
            command = shell_command(f"kubectl taint node {{}} {OUT_OF_SERVICE}=nodeshutdown:NoExecute", node)
            yield Fix.untried(f"taint node {node} out of service, if it is shut down", (change,), commands=(command,))

    def _deletion_fix(self, title: str) -> Fix:
        return Fix.untried(title, (Target.pod(self.pod.key).deletion,), commands=(delete_pod(self.pod.key),))

    def _kubelet_fixes(self, state: states.WaitingForKubelet) -> Iterator[Fix | None]:
        """Yield fixes according to the messages of the kubelet, the attach controller, or the registry."""
        phrase = f"{state.message} {state.event}".strip()
        start = f"{phrase} {state.last}" if state.last.startswith(("StartError", "ContainerCannotRun")) else phrase
        containers = (*self.pod.spec.init_containers, *self.pod.spec.containers)
        image = next((container.image for container in containers if container.name == state.container), "")
        if state.outdated:
            title = f"delete {self.pod.key}, which {state.outdated} creates with its newer revision"
            yield self._deletion_fix(title)
        if isinstance(state, states.BoundToMissingNode):
            meant = nearest_name(state.node, self.snapshot.cluster.names)
            hint = f" (did you mean {meant}?)" if meant else ""
            yield self._deletion_fix(f"delete the pod, and create it without spec.nodeName {state.node}{hint}")
        elif state.claim:
            node = self.snapshot.cluster.nodes[self.snapshot.cluster.index[state.node]]
            host = f"{HOSTNAME}={node.metadata.labels.get(HOSTNAME, node.name)}"
            title = f"create the pod with nodeSelector {host} instead of spec.nodeName"
            yield Fix.untried(f"{title}, so that kube-scheduler selects its node")
        elif state.is_node_lost and state.node in self.snapshot.cluster.index:
            yield Fix.untried(f"repair {state.node}: no kubelet answers there")
        elif state.waits is states.Waits.VOLUMES and _ATTACHED.search(phrase):
            yield from self._attachment_fixes()
        elif _OTHER_PLATFORM.search(f"{phrase} {state.last}") and state.node in self.snapshot.cluster.index:
            yield from self._platform_fixes(state.node)
        elif (match := _NO_OBJECT.search(phrase)) and (publisher := _PUBLISHERS.get(match["name"])):
            yield Fix.untried(f"repair {publisher}, which publishes ConfigMap {match['name']} in every namespace")
        elif match:
            kind = _KINDS_OF_PODS[match["kind"]]
            yield Fix.untried(f"create {kind} {self._namespace}/{match['name']}, or correct its name in the pod")
        elif state.waits is states.Waits.IMAGE:
            known = (advice for words, advice in PULLS if re.search(words, phrase, re.IGNORECASE))
            advice = next(known, "see that {image} exists, and that {node} may pull it (imagePullSecrets)")
            yield Fix.untried(advice.format(image=image or "the image", node=state.node))
        elif state.last.startswith("OOMKilled"):
            yield Fix.untried(f"raise limits.memory of container {state.container}: it was OOMKilled")
        elif advice := advice_for(STARTS, start):
            driver = match["name"] if (match := NO_DRIVER.search(phrase)) else "its driver"
            down = self._agents_text([state.node])
            runtime = f"RuntimeClass {self.pod.spec.runtime_class_name or 'of the pod'}"
            yield Fix.untried(advice.format(node=state.node, driver=driver, agents=down, runtime=runtime))
        elif state.waits is states.Waits.INIT and state.container and not state.reason:
            title = f"find out from its logs what init container {state.container} waits for"
            yield Fix.untried(title, commands=(pod_logs(self.pod.key, state.container),))
        elif state.container and (state.waits is states.Waits.CRASH or state.reason == "CrashLoopBackOff"):
            command = pod_logs(self.pod.key, state.container, previous=True)
            title = f"find out from its logs why container {state.container} ends"
            if "Liveness probe failed" in state.event and _KILLED.search(state.last):
                title = f"find out why container {state.container} fails its liveness probe, or relax the probe"
            yield Fix.untried(title, commands=(command,))

    def _platform_fixes(self, node: str) -> Iterator[Fix | None]:
        """Yield fixes for a wrong platform: nodes for which the image may be built, or another image."""
        nodes, own = self.snapshot.cluster.nodes, self.snapshot.cluster.nodes[self.snapshot.cluster.index[node]]
        for key in (OS_LABEL, ARCH_LABEL):
            here = own.metadata.labels.get(key, "")
            others = Counter(node.metadata.labels.get(key, here) for node in nodes)
            if wanted := next((value for value, _ in others.most_common() if value != here), ""):
                if is_of_daemon_set(self.pod.metadata.owner_references):
                    yield Fix.untried(f"require {key}={wanted} in the pod template: it then runs on no {here} node")
                    break
                suited = (node for node in nodes if node.metadata.labels.get(key, here) == wanted)
                there = min(suited, key=lambda node: node.spec.unschedulable)
                because = f": the image is not built for {here}"
                yield self._require_label_fix(key, wanted, because, self._reserved(there))
                break
        yield Fix.untried(f"use an image that is built for the platform of {node}")

    def _reserved(self, node: Node) -> tuple[Taint, ...]:
        """Return the taints of a node that the pod does not tolerate and that stand for no fault of it."""
        tolerations = Tolerations(self.pod.spec.tolerations, comparison=False)
        taints = (taint for taint in node.spec.taints if taint.effect in DO_NOT_SCHEDULE and taint.key != CORDON_TAINT)
        return tuple(taint for taint in taints if not (taint_remover(taint) or tolerations.cover(taint)))

    def _require_label_fix(self, key: str, value: str, because: str = "", taints: Sequence[Taint] = ()) -> Fix | None:
        """Return the fix that selects nodes with a label, and tolerates their taints, instead of a fixed node."""
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
            agents = self._agents_text(state.nodes)
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

    def _agents_text(self, nodes: Sequence[str]) -> str:
        """Return `: gpu/driver-1 is not ready there` for agents of these nodes that are down, or an empty string."""
        down = [*dict.fromkeys(agent for node in nodes for agent in agents_down(self.snapshot, node))]
        return f": {', '.join(down[:3])} {'is' if len(down) == 1 else 'are'} not ready there" if down else ""

    def _merge_command(self, named: str, *data: str, spec: Mapping[str, object]) -> str:
        template = f"kubectl patch {named} -n {{}} --type merge -p {{}}"
        return shell_command(template, *data, self._namespace, {"spec": spec})

    def _attachment_fixes(self) -> Iterator[Fix | None]:
        """Yield fixes for a volume that is attached to the node of another pod with the same claim."""
        rows, stopped = [*holders_elsewhere(self.snapshot, self.pod)], set[str]()
        for row in rows:
            holder = self.snapshot.pods[row]
            if holder.key in stopped:
                continue
            node = holder.spec.node_name
            if is_node_lost(self.snapshot, node):
                fixes = [*replace(self, pod=holder)._lost_pod_fixes(node)]
                yield from reversed(fixes)  # the taint detaches the volume as well
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
                    yield wait if stop.is_deleted else Fix.untried(stop.title, changes, commands=stop.commands())
                    yield Fix.untried("run both pods on one node, or use a claim with ReadWriteMany")
                    continue
                title = f"delete {holder.key} on {node}, which uses the volume"
                yield Fix.untried(title, commands=(delete_pod(holder.key),))
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
        return Fix.untried(title, changes, commands=(command,))

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
                    *_, taint = self._lost_pod_fixes(node)
                    title = (
                        f"repair {node}, or taint it out of service if it is shut down, so that {volume} is detached"
                    )
                    return Fix.untried(title, commands=taint.commands)
                return Fix.untried(f"wait until {named} is gone, or find out from {driver} why it is not")
            if attachment.metadata.deletion_timestamp:
                command = merge_patch("volumeattachment", "", name, _NO_FINALIZERS)
                title = f"remove the finalizer of {named}, which does not exist, once the volume is detached there"
                return Fix.untried(title, commands=(command,))
            command = shell_command("kubectl delete volumeattachment {}", name)
            return Fix.untried(f"delete {named}, which does not exist", commands=(command,))
        return Fix.untried("delete the VolumeAttachment of the volume to its former node, if that node is gone")

    def _schedulers_on(self, node: str) -> list[str]:
        """Return the schedulers of the pods on a node, and of this pod; a DaemonSet's pod with the default one may be
        of any cluster."""
        pods, row = self.snapshot.pods, self.snapshot.cluster.index.get(node)
        its = [] if row is None else pods.on_node(row).tolist()
        return sorted({self.pod.spec.scheduler_name, *(pods.specs[pod].scheduler_name for pod in its)} - {""})

    def _unheld(self, finalizers: Sequence[str]) -> Fix:
        """Return the last resort: to remove finalizers, which skips the cleanup of their controllers."""
        which = "finalizers" if len(finalizers) > 1 else "finalizer"
        return Fix.untried(
            f"remove {which} {', '.join(finalizers)}, if the controller behind is gone",
            (Target.pod(self.pod.key).patched(remove_field("/metadata/finalizers")),),
            commands=(merge_patch("pod", self._namespace, self.pod.metadata.name, _NO_FINALIZERS),),
        )

    def _lost_node_fixes(self, node: str) -> Iterator[Fix]:
        """Yield the fixes for a pod on a lost node; repairing it comes first if the pod fits no other."""
        moved = [self._with_outcome(fix, node) for fix in self._lost_pod_fixes(node)]
        if node in self.snapshot.cluster.index and all(fix.certainty is FixCertainty.PARTIAL for fix in moved):
            yield _repair_fix(node)
        yield from moved

    def _with_outcome(self, fix: Fix, lost: str) -> Fix:
        """Return a fix with kube-scheduler's decision about the pod that its controller recreates."""
        alone = replace(self.pod, metadata=replace(self.pod.metadata, deletion_timestamp=None))
        row = self.snapshot.pods.rows.get(alone.key)
        snapshot = self.snapshot if row is None else self.snapshot.without_pods([row])
        unbound = replace(alone, spec=replace(alone.spec, node_name=""), status=type(alone.status)())
        then = self._decide(Subject(snapshot=snapshot, pod=unbound, is_new=True))
        return fix_with_outcome(fix, then, lost=lost)


def _namespace_content_fix(namespace: str, remaining: str) -> Fix | None:
    """Return the fix for a message in a namespace's condition, or about its pods."""
    if match := _ON_LOST_NODE.match(remaining):
        title = f"repair {match['node']}, or force the deletion of its pods if it is gone for good"
        command = delete_pod(f"{namespace}/{match['pod']}")
        return Fix.untried(title, commands=(f"{command} --force --grace-period=0",))
    if "iscovery" in remaining and (match := _UNDISCOVERED.search(remaining)):
        name = f"{match['version']}.{match['group']}"
        command = shell_command("kubectl describe apiservice {}", name)
        return Fix.untried(f"repair what serves APIService {name}, or delete it", commands=(command,))
    if finalizers := _HELD_CONTENT.findall(remaining):
        which = "finalizer" if len(finalizers) == 1 else "finalizers"
        return Fix.untried(f"repair the controller of {which} {', '.join(finalizers)}, or remove the {which}")
    return None


def with_newer_template(explanation: Explanation, pod: Pod, template: NewerTemplate) -> Fix | None:
    """Return the fix that gives a pod the newer template of its controller; None if that does not help."""
    snapshot, metadata = explanation.cycle.snapshot, pod.metadata
    if explanation.setup is None:
        return None
    manifest = manifest_of(snapshot, Workload(template.kind, metadata.namespace, template.name)) or {}
    row = snapshot.pods.rows[pod.key]
    without = snapshot.without_pods([row])
    try:
        if template.kind == "StatefulSet":
            without, pods = pods_of_ordinals(without, explanation.setup, manifest, [ordinal_of(metadata.name)])
        else:
            without, pods = pods_for(without, explanation.setup, manifest, {home_node(snapshot.pods, row)}.__contains__)
        then = [explanation.scheduler.on(without).schedule(pod, explanation.cycle.profile) for pod in pods]
    except (InputError, UndecidableError):
        return None
    if not then or then[0].outcome is not Outcome.SCHEDULED:
        return None
    name, namespace = metadata.name, metadata.namespace
    title = f"delete {pod.key}, which {template.owner} creates with its newer revision"
    changes = [Target.pod(pod.key).deletion]
    commands = [delete_pod(pod.key)]
    if template.partition:
        rolling = {"rollingUpdate": {"partition": (least := template.index)}}
        target = Target("apps/v1", template.kind, template.name, namespace)
        lower = target.patched(set_field("/spec/updateStrategy/rollingUpdate/partition", least))
        changes, then_deleted = [lower, *changes[: template.is_deleted]], f", then delete pod {name}"
        title = f"lower partition of {template.owner} from {template.partition} to {least}"
        title += then_deleted if template.is_deleted else ""
        patch = merge_patch("sts", namespace, template.name, {"spec": {"updateStrategy": rolling}})
        commands = [patch, *commands[: template.is_deleted]]
    return Fix(
        title=title,
        certainty=FixCertainty.VERIFIED,
        changes=tuple(changes),
        feasible_nodes=tuple(then[0].all_nodes.cluster.names[row] for row in then[0].choice),
        steps=(),
        commands=tuple(commands),
        apply=tuple(changes),
    )
