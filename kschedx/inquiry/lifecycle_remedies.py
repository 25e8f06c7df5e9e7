"""Fixes for pods that are refused, suspended, paused, scaled to zero, or stuck in deletion.

Each is tried before it is printed: the pod is admitted and goes through a scheduling cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from kschedx.controllers import states
from kschedx.controllers.daemon_set import home_node, pods_for
from kschedx.controllers.pod_autoscaling import NO_METRICS
from kschedx.controllers.pod_lifecycle import controller_manager_down, pod_lifecycle
from kschedx.controllers.state_facts import KeptPods
from kschedx.controllers.stateful_set import unsure_of_name
from kschedx.controllers.workload_lifecycle import failing_rollout
from kschedx.controllers.workloads import (
    SCALED,
    Workload,
    controlling_custom_resource,
    ordinal_of,
    pods_of_ordinals,
    replica_sets_of,
    workload_of,
)
from kschedx.errors import InputError, UndecidableError
from kschedx.explain.admission import readmitted
from kschedx.explain.events import extender_failure
from kschedx.explain.root_causes import NewerTemplate, superseding
from kschedx.explain.setup import stored_subject
from kschedx.fixes import FixCertainty
from kschedx.fixes.owners import template_owner
from kschedx.fixes.phrases import REJECTIONS, advice_for
from kschedx.fixes.proposal import PodStep
from kschedx.fixes.provisioning import provisioner_repair
from kschedx.fixes.storage_remedies import volume_of_other_class
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.inquiry.assigned_pod_remedies import AssignedPodRemedies, repair_fix
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.fix import Fix, activation, component_repair, queue_creation
from kschedx.inquiry.refusal_remedies import Refusal
from kschedx.inquiry.stopped_pod import Patch, StoppedPod
from kschedx.kube.custom_resources import stop_of
from kschedx.kube.decoding import map_at
from kschedx.kube.documents import Change, Target, merged_fields, pointer, remove_field, set_field
from kschedx.kube.escaping import shell_command
from kschedx.kube.kubectl import delete_pod, merge_patch, remove_finalizers, scale_workload
from kschedx.kube.kueue import QUEUE_LABEL, LocalQueue
from kschedx.kube.other_schedulers import POD_GROUP_LABEL
from kschedx.kube.schedules import is_never_due
from kschedx.kube.types import Pod
from kschedx.kube.workloads import LONGEST_STATEFUL_SET_NAME, is_foreign
from kschedx.patterns import lazy_pattern
from kschedx.wording import list_names

_MOST_FIXES = 3
_MOST_OF_ANOTHER = 2  # fixes of the pending pod for which another waits
_NO_REQUEST = lazy_pattern(r"missing request for (?P<resource>\S+) in container (?P<container>\S+)")
_NO_METRIC = lazy_pattern(r"could not find the metric (?P<name>\S+)")
_SEVERAL = lazy_pattern(r"controlled by multiple HPAs: \[(?P<names>[^\]]+)\]")
_UNDISCOVERED = lazy_pattern(r"(?P<group>[a-z0-9.-]+\.[a-z0-9-]+)/(?P<version>v\d\w*)")
_READINESS_GATE = lazy_pattern(r'pod readiness gate "(?P<key>[^"]+)"')
_SETTERS = (
    ("target-health.elbv2.k8s.aws/", "the AWS Load Balancer Controller"),
    ("cloud.google.com/load-balancer-neg-ready", "GKE's load balancer"),
)
"""The starts of readiness gates, and what sets their conditions."""
_HELD_CONTENT = lazy_pattern(r"(?P<finalizer>(?!and )\S+) in \d+ resource instances")


class LifecycleRemedies(StoppedPod, frozen=True, kw_only=True):
    """A pod that is not created or does not reach kube-scheduler, and the fixes for that."""

    def fixes(self, lifecycle: states.Lifecycle) -> tuple[Fix, ...]:
        all_fixes = (fix for fix in self._each(lifecycle) if fix is not None)
        ordered = sorted(all_fixes, key=lambda fix: fix.certainty is FixCertainty.PARTIAL and not fix.is_completed)
        return tuple(ordered)[:_MOST_FIXES]

    def _each(self, lifecycle: states.Lifecycle) -> Iterator[Fix | None]:
        row = self.snapshot.pods.rows.get(lifecycle.subject)
        if isinstance(lifecycle, states.BeingDeleted) and row is not None and lifecycle.subject != self.pod.key:
            yield from replace(self, pod=self.snapshot.pods[row])._each(lifecycle)  # not about its successor
            return
        yield from self._workload_fixes(lifecycle)
        yield from self._resume_fixes(lifecycle)
        yield from self._predecessor_fixes(lifecycle)
        yield from self._pod_fixes(lifecycle)
        yield from self.to(AssignedPodRemedies).fixes(lifecycle)

    def _workload_fixes(self, lifecycle: states.Lifecycle) -> Iterator[Fix | None]:
        match lifecycle:
            case states.ScaledToZero(autoscaler=autoscaler, down=down) if autoscaler:
                if lifecycle.is_unready:
                    yield Fix.untried(f"repair {autoscaler}: {lifecycle.why}")
                yield self._scaled_by(autoscaler, lifecycle.idle) if down is None else component_repair(down)
            case states.UpdateHeld(pods=pods, is_on_delete=is_on_delete):
                yield self._update_fix(pods, is_on_delete=is_on_delete)
            case states.NotScaled(autoscaler=autoscaler, most=most):
                yield self._scaled_further(autoscaler, most) if most else self._metrics_fix(lifecycle)
            case states.NoJobStarted(reason=reason):
                yield self._missed_job_fix(reason)
            case states.NamespaceTerminating(remaining=remaining, kept=kept):
                fixes = (*map(_content_fix, remaining), *(_kept_pods_fix(lifecycle.namespace, each) for each in kept))
                yield from {fix.title: fix for fix in fixes if fix is not None}.values()
            case states.BeingDeleted(is_workload=True, kept=kept):
                yield from (_kept_pods_fix(self._namespace, each) for each in kept)
            case states.ScaledToZero(owner=owner) if owner:
                yield self._scaled_by_owner(owner)
            case states.ScaledToZero(field=field):
                yield self._start_fix() if lifecycle.value else self._scale_fix(field)
            case states.RejectedByKubelet(is_bound_by_hand=True):
                yield Fix.untried("remove nodeName from the pod template, so that kube-scheduler selects a node")
            case states.RejectedByKubelet(reason=reason, message=message, nodes=nodes):
                phrase = f"{reason} {message}"
                advice = advice_for(REJECTIONS, phrase)
                yield Fix.untried(advice.format(node=list_names(nodes, 3))) if advice else None
            case states.RolloutStalled(nodes=nodes) if nodes:
                yield from map(repair_fix, nodes)
            case states.RolloutStalled(seconds=0, pods=pods):
                if (gate := _READINESS_GATE.search(" ".join(pods))) is not None:
                    by = next((by for key, by in _SETTERS if gate["key"].startswith(key)), "its controller")
                    yield Fix.untried(f"find out why {by} has not set condition {gate['key']} of the new pods to True")
                yield from self._rolled_back()
            case states.NotChanged():
                yield self.to(Refusal).recreate_fix()
            case states.NotRead() if self.maker and lifecycle == unsure_of_name(self.snapshot, workload_of(self.maker)):
                yield Fix.untried(f"choose a name of at most {LONGEST_STATEFUL_SET_NAME} characters")
            case states.NotObserved(kind=kind, message=""):
                known = "kube-controller-manager" if kind in SCALED else f"the controller of {kind}"
                done = "changed" if lifecycle.generations else "created"
                yield Fix.untried(f"see whether {known} runs, unless the {kind} was {done} just now")
            case states.StillActive(pod="", message=message) if message:
                yield from self.to(Refusal).fixes(message)
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
                schedule = str(map_at(self.maker or {}, "spec").get("schedule") or "")
                if kind == "CronJob" and is_never_due(schedule):
                    title = f"start a Job by hand: the schedule {schedule} is never due"
                    yield Fix.untried(title, self._job_command())
                    yield Fix.untried("correct spec.schedule of the CronJob, and resume it")
                elif not waits:
                    yield self._workload_fix(f"resume the {kind}", spec) or self._untried_resume(kind, spec)
                if waits or lifecycle.may_be_of_kueue:
                    yield self._with_queue(lifecycle)
            case states.Suspended():
                yield self._queue_fix(lifecycle)
            case states.Paused(reason=reason) if reason:
                title, verb = "promote the Rollout, so that it goes on with its next step", "promote"
                if "Aborted" in reason:
                    title, verb = "correct what aborted the update, then retry it", "retry rollout"
                template = f"kubectl argo rollouts {verb} {{}} -n {{}}"
                yield Fix.untried(title, shell_command(template, self._workload_name, self._namespace))
            case states.Paused(kind="Rollout"):
                title, spec = "resume the Rollout", {"paused": False}
                command = self._merge_command("rollouts.argoproj.io {}", self._workload_name, spec=spec)
                yield self._workload_fix(title, spec) or Fix.untried(title, command)
            case states.Paused():
                command = shell_command(
                    "kubectl rollout resume deployment/{} -n {}", self._workload_name, self._namespace
                )
                patch = [set_field("/spec/paused", False)]
                yield self._try("resume the Deployment", (self._workload_change(patch),), commands=(command,))

    def _next_fixes(self, message: str) -> Iterator[Fix]:
        return self.to(Refusal).fixes(message)

    def _untried_resume(self, kind: str, spec: Mapping[str, object]) -> Fix | None:
        """Return the resumption of a custom resource whose pods only its controller knows, as a TrainJob's."""
        if self.maker is None or self.pod.spec.containers:
            return None
        command = self._merge_command("{}/{}", kind.lower(), self._workload_name, spec=spec)
        return Fix.untried(f"resume the {kind}", command)

    def _predecessor_fixes(self, lifecycle: states.Lifecycle) -> Iterator[Fix | None]:
        """Yield fixes for the earlier pod that delays this one, or for finalizers that keep this one."""
        match lifecycle:
            case states.WaitingForOrdinal(predecessor=name, node=node, is_node_lost=True):
                row = self.snapshot.pods.rows.get(f"{self._namespace}/{name}")
                if row is not None and self.snapshot.pods.deletion_timestamps[row]:
                    earlier = replace(self, pod=self.snapshot.pods[row])
                    yield from earlier.to(AssignedPodRemedies).lost_node_fixes(node)
            case states.WaitingForOrdinal(predecessor=name, because=because):
                yield from (fixes := [*self._started_other(f"{self._namespace}/{name}")])
                if not fixes and because == "is not ready":
                    command = shell_command("kubectl describe pod {} -n {}", name, self._namespace)
                    yield Fix.untried(f"find out why {name} {because}", command)
            case states.NotAvailable(nodes=nodes) if nodes:
                yield from map(repair_fix, nodes)
            case states.NotAvailable(first=name):
                command = shell_command("kubectl describe pod {} -n {}", name, self._namespace)
                yield Fix.untried(f"find out why {name} is not ready", command)
            case states.BeingDeleted(finalizers=finalizers, is_workload=False, is_node_lost=False) if finalizers:
                if lifecycle.down and (down := controller_manager_down(self.snapshot, self.pod.key)) is not None:
                    yield component_repair(down)
                yield self._unheld(finalizers)

    def _pod_fixes(self, lifecycle: states.Lifecycle) -> Iterator[Fix | None]:
        match lifecycle:
            case states.NoScheduler(profiles=profiles, hint=hint, others=0, message="", running="", is_managed=False):
                yield self._scheduler_fix(hint, profiles)
            case states.NotSynced():
                yield Fix.untried("mend it in the host cluster, whose API server refuses the pod")
            case states.Refused(past=past) if past:
                yield self._next_attempt()
            case states.Refused(message=message) if not isinstance(lifecycle, states.NotChanged):
                yield from self.to(Refusal).fixes(message)
            case states.NotBound(group=group) if group:
                yield Fix.untried(f"create PodGroup {group}, or correct the pod's label {POD_GROUP_LABEL}")
            case states.NotBound(message=message, extender=extender) if extender:
                failed = extender_failure(message)
                yield None if failed is None else Fix.untried(failed.advice)
            case states.NotBound(claim="", provisioner=driver) if driver:
                yield Fix.untried(f"if this lasts, repair DRA driver {driver}, which makes the devices ready")
            case states.NotBound(claim=key, provisioner=driver) if key:
                driver, claim = driver or "the storage driver", self.snapshot.storage.claims[key]
                if (volume := volume_of_other_class(self.snapshot, claim)) is not None:
                    named = f'storageClassName "{volume.spec.storage_class_name}", as volume {volume.name} has it'
                    yield Fix.untried(f"delete and recreate claim {key} with {named}")
                yield Fix.untried(provisioner_repair(self.snapshot, claim, driver))
            case states.WaitingForKubelet() if not superseding(self.snapshot, self.pod):
                if (owner := template_owner(self.snapshot, self.pod)) is not None:
                    workload = Workload(owner.kind, self._namespace, owner.name)
                    yield from replace(self, maker=failing_rollout(self.snapshot, workload))._rolled_back()
            case states.ComponentDown():
                yield component_repair(lifecycle)

    def _next_attempt(self) -> Fix:
        """Return what lets a controller try again at once, which otherwise waits for its back-off of up to 1,000 s, or
        of up to 60 s for a Job (MaxJobApiBackOff in pkg/controller/job/job_controller.go)."""
        kind = str((self.maker or {}).get("kind")).lower()
        if kind in ("deployment", "statefulset", "daemonset"):
            command = shell_command("kubectl rollout restart {}/{} -n {}", kind, self._workload_name, self._namespace)
            return Fix.untried("wait up to 17 minutes for its next attempt, or restart the rollout", command)
        most = "1 minute" if kind in ("job", "cronjob") else "17 minutes"
        return Fix.untried(f"wait up to {most} for its controller's next attempt")

    def _started_other(self, key: str) -> Iterator[Fix | None]:
        """Yield fixes for another pod, which a kubelet does not run or which fits no node."""
        row = self.snapshot.pods.rows.get(key)
        state = None if row is None else pod_lifecycle(self.snapshot, self.snapshot.pods[row])
        if row is not None and isinstance(state, states.WaitingForKubelet):
            yield from replace(self, pod=self.snapshot.pods[row]).to(AssignedPodRemedies).fixes(state)
        elif row is not None and row in self.snapshot.pods.pending and state is None:
            yield from self.explain(stored_subject(self.snapshot, key), self.setup).fixes[:_MOST_OF_ANOTHER]

    # --- states of the workload

    def _queue_fix(self, state: states.Suspended) -> Fix | None:
        """Return the fix for a workload that Kueue cannot admit in its current form, however much quota is free."""
        if state.meant:
            return self._with_queue(state)
        if state.inactive:
            return activation(self._namespace, state.inactive)
        queues = [(it.metadata.namespace, it.metadata.name) for it in self.snapshot.of(LocalQueue)]
        if not queues or (self._namespace, state.queue) in queues:
            return None
        others = sorted(namespace for namespace, name in queues if name == state.queue)
        return queue_creation(state.queue, self._namespace, others)

    def _with_queue(self, state: states.Suspended) -> Fix:
        instead = f" instead of {state.queue}" if state.queue else ""
        if not state.meant:
            return Fix.untried(f"label it {QUEUE_LABEL} with a LocalQueue of its namespace, if Kueue suspended it")
        template = f"kubectl label {{}} {{}} -n {{}} --overwrite {QUEUE_LABEL}={{}}"
        command = shell_command(template, state.kind.lower(), self._workload_name, self._namespace, state.meant)
        condition = ", if Kueue suspended it" if state.may_be_of_kueue else ""
        return Fix.untried(f"use LocalQueue {state.meant}{instead}{condition}", command)

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
            return Fix.untried("send a request to it: Knative adds pods for it, or keeps one", command)
        return None if kind == "Deployment" else Fix.untried(f"raise the replicas in {owner}, which sets them")

    def _scaled_by(self, autoscaler: str, idle: str) -> Fix | None:
        """Return a change of the autoscaler, which would revert `kubectl scale`. `idle` is its field or annotation that
        must be removed."""
        kind, _, name = autoscaler.partition(" ")
        if "/" in idle:
            patch: Patch = [remove_field(f"/metadata/annotations/{pointer(idle)}")]
            title, template = f"resume {autoscaler}", "kubectl annotate {} {} {}- -n {}"
            command = shell_command(template, kind.lower(), name, idle, self._namespace)
        else:
            least = "minReplicaCount" if kind == "ScaledObject" else "minReplicas"
            values = ({idle: None} if idle else {}) | {least: 1}
            patch = [*merged_fields("/spec", values)]
            title = f"set {least} of {autoscaler} to 1"
            command = self._merge_command("{} {}", kind.lower(), name, spec=values)
        version = "keda.sh/v1alpha1" if kind == "ScaledObject" else "autoscaling/v2"
        change = Target(version, kind, name, self._namespace).patched(*patch)
        return self._try(title, (change,), commands=(command,))

    def _update_fix(self, pods: Sequence[str], *, is_on_delete: bool) -> Fix | None:
        """Return the fix to delete the pods, highest ordinal first, or to lower the partition."""
        if is_on_delete:
            commands = (delete_pod(f"{self._namespace}/{pod}") for pod in reversed(pods))
            return Fix.untried("delete its pods one after the other, each once the one before is ready", *commands)
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
        if state.down is not None:
            return component_repair(state.down)
        if match := _NO_METRIC.search(state.message):
            return Fix.untried(
                f"export metric {match['name']} from the pods, with a rule of the metrics adapter for it"
            )
        if match := NO_METRICS.search(state.message):
            server = "an adapter that serves " + match[0] if match["of"] else "metrics-server"
            return Fix.untried(f"install or repair {server}: {state.autoscaler} gets no metrics")
        if match := _SEVERAL.search(state.message):
            every = list_names(match["names"].split(), 3, conjunction="and")
            return Fix.untried(f"delete all but one of the HorizontalPodAutoscalers {every}, or make their pods differ")
        return Fix.untried(f"repair what {state.autoscaler} reports")

    def _missed_job_fix(self, reason: str) -> Fix:
        if reason == "UnknownTimeZone":
            return Fix.untried(
                "correct spec.timeZone of the CronJob, or let kube-controller-manager have time zone data"
            )
        if "schedule" in reason.lower() and reason != "MissSchedule":
            return Fix.untried("correct spec.schedule of the CronJob")
        command = self._job_command()
        if reason in ("TooManyMissedTimes", "FailedNeedsStart"):
            missed = "set startingDeadlineSeconds to fewer than 100 intervals"
            return Fix.untried(f"see why kube-controller-manager did not run, and {missed}", command)
        return Fix.untried("start the missed Job by hand, and raise startingDeadlineSeconds", command)

    def _job_command(self) -> str:
        """Return the command that starts a Job of a CronJob now."""
        name = self._workload_name
        return shell_command("kubectl create job {}-1 --from=cronjob/{} -n {}", name, name, self._namespace)

    def _rolled_back(self) -> Iterator[Fix | None]:
        """Yield the fix to return to the previous template, if a ReplicaSet still has it."""
        if self.maker is not None and len([*replica_sets_of(self.snapshot, workload_of(self.maker))]) > 1:
            command = shell_command("kubectl rollout undo deployment/{} -n {}", self._workload_name, self._namespace)
            yield Fix.untried("go back to the former pod template, if the new one is at fault", command)

    def _workload_fix(self, title: str, spec: Mapping[str, object]) -> Fix | None:
        if self.maker is None:
            return None
        kind = str(self.maker.get("kind")).lower()
        command = self._merge_command("{}/{}", kind, self._workload_name, spec=spec)
        return self._try(title, (self._workload_change([*merged_fields("/spec", spec)]),), commands=(command,))

    def _merge_command(self, named: str, *data: str, spec: Mapping[str, object]) -> str:
        template = f"kubectl patch {named} -n {{}} --type merge -p {{}}"
        return shell_command(template, *data, self._namespace, {"spec": spec})

    def _unheld(self, finalizers: Sequence[str]) -> Fix:
        """Return the last resort: to remove finalizers, which skips the cleanup of their controllers."""
        which = "finalizers" if len(finalizers) > 1 else "finalizer"
        return Fix.untried(
            f"remove {which} {', '.join(finalizers)}, if the controller behind is gone",
            remove_finalizers("pod", self._namespace, self.pod.metadata.name),
            changes=(Target.pod(self.pod.key).patched(remove_field("/metadata/finalizers")),),
        )


def _kept_pods_fix(namespace: str, kept: KeptPods) -> Fix:
    """Return the fix for pods that keep a deletion from its end."""
    if kept.finalizer:
        return _finalizer_fix([kept.finalizer])
    title = f"repair {kept.node}, or force the deletion of its pods if it is gone for good"
    return Fix.untried(title, delete_pod(f"{namespace}/{kept.pods[0]}", force=True))


def _finalizer_fix(finalizers: Sequence[str]) -> Fix:
    which = "finalizer" if len(finalizers) == 1 else "finalizers"
    return Fix.untried(f"repair the controller of {which} {', '.join(finalizers)}, or remove the {which}")


def _content_fix(remaining: str) -> Fix | None:
    """Return the fix for a message in a namespace's condition."""
    if "iscovery" in remaining and (match := _UNDISCOVERED.search(remaining)):
        name = f"{match['version']}.{match['group']}"
        command = shell_command("kubectl describe apiservice {}", name)
        return Fix.untried(f"repair what serves APIService {name}, or delete it", command)
    finalizers = _HELD_CONTENT.findall(remaining)
    return _finalizer_fix(finalizers) if finalizers else None


def with_newer_template(explanation: Explanation, pod: Pod, template: NewerTemplate) -> Fix | None:
    """Return the fix that gives a pod the newer template of its controller; None if that does not help."""
    snapshot, metadata = explanation.cycle.snapshot, pod.metadata
    if explanation.setup is None:
        return None
    manifest = snapshot.manifest_of((template.kind, metadata.namespace, template.name)) or {}
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
    return _recreation(title, changes, commands, then[0])


class _Readmission(PodStep, frozen=True, kw_only=True):
    """The pod is created again, and admitted as its RuntimeClass and LimitRanges are now."""

    title: str
    admit: Callable[[Pod], Pod | None]

    def edit(self, pod: Pod) -> Pod:
        return self.admit(pod) or pod


def with_present_admission(explanation: Explanation, pod: Pod) -> Fix | None:
    """Return the fix that pending pods are created again, because their RuntimeClass or a LimitRange has changed since;
    None if that does not help."""
    owner, name, setup = pod.metadata.controller, pod.spec.runtime_class_name, explanation.setup
    if setup is None:
        return None
    scheduler, snapshot = explanation.scheduler, explanation.cycle.snapshot
    admit = partial(readmitted, snapshot, release=scheduler.release, plugins=setup.admission_plugins)
    present = admit(pod)
    then = None if present is None else scheduler.schedule(present, explanation.cycle.profile)
    if present is None or then is None or then.outcome is not Outcome.SCHEDULED:
        return None
    parts = [(it.overhead, it.tolerations, it.node_selector) for it in (pod.spec, present.spec)]
    every = [[each.resources for each in (*it.containers, *it.init_containers)] for it in (pod.spec, present.spec)]
    by = [f"RuntimeClass {name}"] if name and parts[0] != parts[1] else []
    by += ["LimitRanges"] if every[0] != every[1] else []
    pending = () if explanation.replicas is None else explanation.replicas.pending
    keys = [key for key in pending if key in snapshot.pods.rows] or [pod.key]
    whose = f"pending pods of {owner.kind} {owner.name}: it creates them" if owner else f"{pod.key} and create it"
    title = f"delete {whose} again under the present {' and '.join(by)}"
    changes = [Target.pod(key).deletion for key in keys if owner]
    commands = [delete_pod(key) for key in keys[: len(changes)]]
    return _recreation(title, changes, commands, then, _Readmission(title=title, admit=admit))


def _recreation(title: str, changes: Sequence[Change], commands: Sequence[str], then: Cycle, *steps: PodStep) -> Fix:
    return Fix(
        title=title,
        certainty=FixCertainty.VERIFIED,
        changes=tuple(changes),
        feasible_nodes=tuple(then.all_nodes.cluster.names[row] for row in then.choice),
        steps=steps,
        commands=tuple(commands),
        apply=tuple(changes),
    )
