"""Kueue next to kube-scheduler: Workloads that it admits become pods that are scheduled, and evicted Workloads lose
their pods.

Kueue does not look at nodes, except for topologies, so its cycles do not depend on kube-scheduler's decisions. The pods
that one cycle admits are scheduled before those of the next. Upstream: pkg/controller/jobframework/reconciler.go,
pkg/podset, pkg/controller/tas of kubernetes-sigs/kueue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat

import msgspec
from msgspec.structs import replace

from kschedx.controllers.workloads import Workload as Owner
from kschedx.controllers.workloads import copy_pod, wanted_replicas
from kschedx.errors import InputError
from kschedx.explain.setup import admit as stored_pod
from kschedx.holding.kueue import admit_pod
from kschedx.kube import kueue as api
from kschedx.kube.decoding import map_at
from kschedx.kube.kueue import PodSetAssignment, ResourceFlavor, Workload
from kschedx.kube.types import Pod
from kschedx.kueue.document import Eviction
from kschedx.kueue.run import AdmissionRun, cycles_of, start_of
from kschedx.kueue.settings import settings_of
from kschedx.kueue.workloads import READY, Job, timestamp
from kschedx.simulate.simulator import KueueResult, Simulator

_Labels = Mapping[str, str]


def admit_workloads(simulator: Simulator) -> KueueResult:
    """Run Kueue on the current cluster until nothing changes, and schedule the pods of the admitted Workloads."""
    return _Admission(simulator).run()


class _Admission:
    def __init__(self, simulator: Simulator) -> None:
        snapshot = simulator.snapshot
        self._simulator = simulator
        self._run = AdmissionRun(snapshot, settings_of(snapshot), timestamp(start_of(snapshot, None)))
        self._workloads = {workload.key: workload for workload in snapshot.of(Workload)}
        self._flavors = {flavor.metadata.name: flavor for flavor in snapshot.of(ResourceFlavor)}
        self._rows: dict[str, list[int]] = {}
        for row, key in self._pods_of_workloads():
            self._rows.setdefault(key, []).append(row)
        names = simulator.pods.node_names
        self._run.presumed_ready |= {key for key, rows in self._rows.items() if all(names[row] for row in rows)}
        self._admitted: dict[str, None] = {}
        self._evicted: dict[str, str] = {}
        self._refused: dict[str, str] = {}

    def _pods_of_workloads(self) -> Iterator[tuple[int, str]]:
        """Yield the rows of pods with the Workloads that hold quota for them."""
        by_owner = {owner: key for key, workload in self._workloads.items() for owner in workload.owners}
        pods, gone = self._simulator.pods, self._simulator.deleted
        for row in range(len(pods)):
            namespace = pods.namespaces[row]
            owners = [("Pod", pods.names[row]), *((owner.kind, owner.name) for owner in pods.owners[row])]
            names = (pods.annotations[row].get(api.WORKLOAD_ANNOTATION), pods.labels[row].get(api.GROUP_LABEL))
            keys = [f"{namespace}/{name}" for name in names if name]
            keys += [by_owner[kind, namespace, name] for kind, name in owners if (kind, namespace, name) in by_owner]
            key = next((key for key in keys if key in self._workloads), None)
            if key is not None and row not in gone:
                yield row, key

    def run(self) -> KueueResult:
        jobs = self._run.jobs
        for key, job in jobs.items():
            if job.is_active and not job.is_admitted and self._is_started(key):
                self._suspend(key)
        begun = [key for key, job in jobs.items() if job.is_admitted and not self._workloads[key].has("Admitted")]
        self._follow(begun, self._run.begin)
        for cycle in cycles_of(self._run):
            self._follow([key for key, head in cycle.heads.items() if head.outcome == "Admitted"], cycle.evicted)
        snapshot = self._simulator.snapshot
        self._simulator.put(snapshot.with_records(Workload, [jobs[it.key].record(it) for it in snapshot.of(Workload)]))
        return KueueResult(
            admitted=tuple(self._admitted),
            evicted=self._evicted,
            pending={
                key: job.pending_message
                for key, job in jobs.items()
                if job.is_active and (job.state == "Pending" or (job.state == "QuotaReserved" and job.pending_message))
            },
            refused=self._refused,
        )

    def _follow(self, admitted: Iterable[str], evicted: Mapping[str, Eviction]) -> None:
        """Start and stop jobs; kube-scheduler schedules the pods of started jobs."""
        rows = [row for key in admitted for row in self._start(self._run.jobs[key])]
        for key, eviction in evicted.items():
            self._stop(key, eviction.message)
        self._simulator.react(rows)

    # --- jobs

    def _start(self, job: Job) -> list[int]:
        """The rows of the Workload's pods: those that Kueue's gate holds back, or those that the job creates now."""
        self._admitted[job.key] = None
        self._evicted.pop(job.key, None)
        held = [row for row in self._rows.get(job.key, ()) if row not in self._simulator.deleted]
        rows = self._rows[job.key] = self._ungate(job, held) if held else self._create_pods(job)
        self._resume(job.key, sum(assigned.count or 0 for assigned in _assignments(job)))
        return rows

    def _stop(self, key: str, message: str) -> None:
        """Suspend the job and delete its pods."""
        if self._admitted.pop(key, key) is not None:
            self._evicted[key] = message
        self._suspend(key)

    def _is_started(self, key: str) -> bool:
        """Return whether a user resumed the job; Kueue suspends it again until it admits the Workload."""
        return map_at(self._simulator.snapshot.manifest_of(self._owner(key)) or {}, "spec").get("suspend") is False

    def _suspend(self, key: str) -> None:
        for row in self._rows.pop(key, ()):
            if row not in self._simulator.deleted:
                self._simulator.manager.delete_pod(row)
        self._resume(key, 0)

    def _resume(self, key: str, pods: int) -> None:
        """Write `spec.suspend` of the job, if the snapshot has its manifest; without `pods`, it is suspended. A Job of
        which Kueue admits a part gets that parallelism."""
        maker = self._owner(key)
        manifest = self._simulator.snapshot.manifest_of(maker)
        spec = map_at(manifest, "spec") if manifest is not None else {}
        if manifest is not None and "suspend" in spec:
            changed = {**spec, "suspend": not pods}
            if maker.kind == "Job" and 0 < pods < wanted_replicas(manifest):
                changed["parallelism"] = pods
            self._simulator.manager.keep_manifest(maker, {**manifest, "spec": changed})

    def _owner(self, key: str) -> Owner:
        metadata = self._workloads[key].metadata
        owner = metadata.controller
        kind, name = ("Workload", metadata.name) if owner is None else (owner.kind, owner.name)
        return Owner(kind, metadata.namespace, name)

    def _ungate(self, job: Job, rows: Sequence[int]) -> list[int]:
        simulator = self._simulator
        assigned = {assignment.name: assignment for assignment in _assignments(job)}
        places = {name: chain(_places(assignment), repeat({})) for name, assignment in assigned.items()}
        ungated: list[int] = []
        for row in rows:
            pod = simulator.pods[row]
            name = pod.metadata.labels.get(api.PODSET_LABEL, "")
            name = name if name in assigned else next(iter(assigned))
            simulator.delete(row)
            changed = self._admit_pod(job, assigned[name], pod, next(places[name]))
            ungated += simulator.create(simulator.snapshot, [changed])
        return ungated

    def _create_pods(self, job: Job) -> list[int]:
        """Create the pods of the Workload's templates, owned by the Workload's owner, and return their rows."""
        simulator, workload = self._simulator, self._workloads[job.key]
        maker, owner = self._owner(job.key), workload.metadata.controller
        templates = {pod_set.name: pod_set.template for pod_set in workload.spec.pod_sets}
        before = len(simulator.pods)
        for assignment in _assignments(job):
            template = templates[assignment.name]
            metadata = replace(
                template.metadata,
                name=maker.name if len(templates) == 1 else f"{maker.name}-{assignment.name}",
                namespace=job.namespace,
                owner_references=() if owner is None else (owner,),
            )
            for place, count in _domain_counts(assignment):
                pod = self._admit_pod(job, assignment, Pod(metadata=metadata, spec=template.spec), place)
                manifest = {"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(pod)}
                try:
                    subject = stored_pod(simulator.snapshot, manifest, simulator.setup, title=f"Workload {job.key}")
                except InputError as error:
                    self._refused[job.key] = error.message
                    continue
                simulator.manager.add(maker, *copy_pod(subject.snapshot, subject.pod, count))
        return [*range(before, len(simulator.pods))]

    def _admit_pod(self, job: Job, assigned: PodSetAssignment, pod: Pod, place: _Labels) -> Pod:
        """The pod with the labels and tolerations of its flavors, its admission checks, and its topology domain."""
        updates = [
            up
            for check in job.checks
            if check.state == READY
            for up in check.pod_set_updates
            if up.name == assigned.name
        ]
        for name in dict.fromkeys(assigned.flavors.values()):
            if name in self._flavors:
                pod = admit_pod(pod, self._flavors[name], updates)
        return replace(pod, spec=replace(pod.spec, node_selector={**pod.spec.node_selector, **place}))


def _assignments(job: Job) -> tuple[PodSetAssignment, ...]:
    return job.admission.pod_set_assignments if job.admission is not None else ()


def _domain_counts(assigned: PodSetAssignment) -> Iterator[tuple[_Labels, int]]:
    """Yield the labels of each topology domain with its number of pods; without a topology, all pods together."""
    topology = assigned.topology_assignment
    if topology is None:
        yield {}, assigned.count or 0
        return
    for domain in topology.counted_domains():
        yield dict(zip(topology.levels, domain.values, strict=True)), domain.count


def _places(assigned: PodSetAssignment) -> Iterator[_Labels]:
    """Yield the labels of each pod's topology domain."""
    for place, count in _domain_counts(assigned):
        yield from repeat(place, count)
