"""A question about one pod or workload to its answer: the state first, then kube-scheduler's decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.defaulting import default_pod
from kschedx.controllers.workloads import Owners, wanted_replicas, workload_of
from kschedx.errors import KschedxError, NotAdmittedError, UndecidableError
from kschedx.explain.admission import has_siblings, without_pods
from kschedx.explain.setup import Setup
from kschedx.explain.subject import Subject, stored
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.lifecycle import refused, waiting_member, workload_lifecycle
from kschedx.inquiry.manifests import Manifest, Written, written_from
from kschedx.inquiry.pod import explain, unscheduled
from kschedx.kube.decoding import decode, encoded
from kschedx.kube.types import ObjectMeta, Pod
from kschedx.render.states import Lifecycle, NamespaceTerminating, Refused, Suspended
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.autoscaler.cluster import AutoscalerOptions
    from kschedx.inquiry.fix import Fix
    from kschedx.inquiry.workload_pods import BoundPods, ManifestQuestions, ReplicaGroup
    from kschedx.karpenter.cluster import KarpenterOptions

Found = Pod | Written
Admit = Callable[[Snapshot], Subject]
"""The pod that is asked about, in a cluster. Raises `NotAdmittedError`."""


class Clusters(Struct, frozen=True, kw_only=True):
    """What is asked about is in the last."""

    read: Snapshot
    """As it is."""
    before: Snapshot
    """With the changes that come first."""
    applied: Snapshot
    """With the manifests that are asked about."""


class Inquiry(Struct, frozen=True, kw_only=True):
    """What all questions to the same clusters share."""

    clusters: Clusters
    setup: Setup
    autoscaling: AutoscalerOptions | None = None
    provisioning: KarpenterOptions | None = None
    is_alone: bool = False
    """Each pod is asked about as if it came next, whatever others take."""
    is_written: bool = False
    """The pod is not what the cluster has, wherever it is from."""

    def answer(self, found: Found, admit: Admit, queue: Sequence[Found]) -> Explanation:
        """The state of a pod or workload, or kube-scheduler's decision about it and its replicas.

        `queue` are it and what is beside it in the files, in their order. Raises `UndecidableError`, and `ConfigError`
        for a pod of no profile.
        """
        try:
            if isinstance(found, Written) and (stopped := self._stopped(found, admit)) is not None:
                return stopped
            made = self.explain(found, admit, queue)
            return self._with_refusal_fixes(found, made) if isinstance(found, Written) else made
        except NotAdmittedError as error:
            if isinstance(found, Pod):
                raise
            return self.refused(found, error)

    def _with_refusal_fixes(self, found: Written, made: Explanation) -> Explanation:
        """Of replicas that the API server refuses after it took others."""
        replicas = made.replicas
        if replicas is None or not replicas.refused or made.becomes is not Outcome.SCHEDULED:
            return made
        lifecycle = refused(replicas.workload, replicas.refusal, is_workload=True, has_pods=True)
        return replace(made, remedies=self._fixes(found, lifecycle, count=len(replicas.refused)))

    def is_stopped(self, found: Written) -> bool:
        """The workload creates no pods, for a reason of its own."""
        return found.workload is not None and workload_lifecycle(self.clusters.before, found.workload) is not None

    def _stopped(self, found: Written, admit: Admit) -> Explanation | None:
        """The answer about a workload that creates no pods; None where it does."""
        if found.workload is None:
            return None
        lifecycle = workload_lifecycle(self.clusters.before, found.workload)
        if lifecycle is None:
            return None
        fixes = self._fixes(found, lifecycle)
        if not lifecycle.is_open:
            return unscheduled(self._unadmitted(found), self.setup, lifecycle, fixes)
        try:
            answer = explain(admit(self.clusters.applied), self.setup, self.autoscaling, self.provisioning)
        except (NotAdmittedError, UndecidableError):
            return unscheduled(self._unadmitted(found), self.setup, lifecycle, fixes)
        return replace(answer, lifecycle=lifecycle, remedies=fixes)

    def refused(self, found: Written, error: NotAdmittedError) -> Explanation:
        """The answer about a pod that the API server refuses, or that its controller could not create."""
        subject = self._unadmitted(found)
        workload = None if found.workload is None else workload_of(found.workload)
        lifecycle = refused(
            subject.pod.key if workload is None else workload.reference,
            error.message,
            source=str(error.place),
            hint=error.hint,
            is_workload=workload is not None,
            has_pods=has_siblings(self.clusters.applied, subject.pod.metadata),
        )
        return unscheduled(subject, self.setup, lifecycle, self._fixes(found, lifecycle))

    def _unadmitted(self, found: Written) -> Subject:
        """The pod as its manifest has it."""
        pod = default_pod(decode(encoded(found.manifest, "pod"), Pod))
        return Subject(snapshot=self.clusters.applied, pod=pod, is_new=True)

    def _fixes(
        self, found: Written, lifecycle: Lifecycle, *, count: int | None = None
    ) -> Callable[[], tuple[Fix, ...]]:
        def fixes() -> tuple[Fix, ...]:
            from kschedx.inquiry.lifecycle_remedies import Stopped

            stopped = Stopped(
                snapshot=self.clusters.applied,
                setup=self.setup,
                explain=explain,
                pod=self._unadmitted(found).pod,
                manifest=found.manifest,
                maker=found.workload,
                made=found.made,
                count=self._missing(found) if count is None else count,
            )
            return stopped.fixes(lifecycle)

        return fixes

    def _missing(self, found: Written) -> int:
        if found.workload is None or found.is_daemon:
            return 1
        members = Owners(self.clusters.before).members(self.clusters.before.pods, workload_of(found.workload))
        return max(wanted_replicas(found.workload) - len(members), 1)

    def explain(self, found: Found, admit: Admit, queue: Sequence[Found]) -> Explanation:
        """The story of a pod, or of the replicas that a workload lacks, which are placed with the others of `queue`.
        Raises `NotAdmittedError`."""
        clusters, setup = self.clusters, self.setup
        workload = None if isinstance(found, Pod) else found.workload
        is_alone = self.is_alone or len(queue) == 1
        if self.is_alone or (is_alone and workload is None):
            return explain(admit(clusters.applied), setup, self.autoscaling, self.provisioning)
        from kschedx.controllers.workloads import has_new_template, has_replicas
        from kschedx.inquiry.workload_pods import BoundPods, ManifestQuestions  # a pod by itself needs no queue

        is_counted = not isinstance(found, Pod) and found.count is not None
        if is_alone and workload is not None and not has_replicas(workload) and not is_counted:
            return explain(admit(clusters.applied), setup, self.autoscaling, self.provisioning)
        is_changed = False
        if not isinstance(found, Pod) and found.document is None and workload is not None:
            is_changed = has_new_template(clusters.read, workload)
        gathering = ManifestQuestions(clusters.read if is_changed else clusters.before, clusters.applied, setup)
        own = gather_queue(gathering, setup, queue, found, admit, is_tried=self.is_written)
        if isinstance(own, BoundPods):
            return own.explanation
        state = gathering.state(own)
        if not is_alone or not state.is_only(own.subject.pod.key) or own.undecided:
            return gathering.place().explain(own, self.autoscaling, self.provisioning)
        if state.pods and state.pods[0] in clusters.applied.pods.rows:
            return explain(stored(clusters.applied, state.pods[0]), setup, self.autoscaling, self.provisioning)
        made = explain(own.subject, setup, self.autoscaling, self.provisioning)
        if state.pods or made.becomes is Outcome.SCHEDULED or own.workload is None:
            return made
        return replace(made, replicas=state.as_replicas(own.workload))


def stopped_workload(snapshot: Snapshot, setup: Setup, manifest: Manifest) -> Explanation | None:
    """The answer about a workload of the cluster that creates no pods; None where it does."""
    if workload_lifecycle(snapshot, manifest) is None:
        return None
    clusters = Clusters(read=snapshot, before=snapshot, applied=snapshot)
    found = written_from(snapshot, manifest)
    return Inquiry(clusters=clusters, setup=setup).answer(found, partial(found.admitted, setup=setup), [found])


def refused_pod(snapshot: Snapshot, setup: Setup, manifest: Manifest, error: NotAdmittedError) -> Explanation:
    """The answer about a pod that the API server refuses."""
    clusters = Clusters(read=snapshot, before=snapshot, applied=snapshot)
    return Inquiry(clusters=clusters, setup=setup).refused(Written(manifest=manifest), error)


def workloads_without_pods(inquiry: Inquiry, within: str | None) -> Iterator[tuple[Written, Explanation]]:
    """Workloads of the cluster, in one namespace or all, whose pods the API server refuses or a queue holds back."""
    snapshot = inquiry.clusters.applied
    asked: set[tuple[str, str, str]] = set()
    events = {(one.kind, one.namespace, one.name) for one in without_pods(snapshot, within)}
    for key, raw in snapshot.workloads.items():
        if within not in (None, key[1]) or not (key in events or any(mark in raw for mark in _STUCK)):
            continue
        manifest: dict[str, object] = msgspec.json.decode(raw)
        owner = decode(raw, _Owned).metadata.controller
        if owner is not None and (above := (owner.kind, key[1], owner.name)) in snapshot.workloads:
            key, manifest = above, msgspec.json.decode(snapshot.workloads[above])
        if key in asked or key[0] == "CronJob":
            continue
        asked.add(key)
        try:
            found = written_from(snapshot, manifest)
            made = inquiry.answer(found, partial(found.admitted, setup=inquiry.setup), [found])
        except KschedxError:
            continue
        state = made.lifecycle
        if isinstance(state, Refused | NamespaceTerminating) or (isinstance(state, Suspended) and state.queue):
            yield found, made


_STUCK = (b'"ReplicaFailure"', b'"suspend":true')


class _Owned(Struct):
    metadata: ObjectMeta = ObjectMeta()


def waiting_member_of(found: Found, snapshot: Snapshot) -> Pod | None:
    """The pod that a question about a workload of the cluster is really about; None where it is the next one."""
    if isinstance(found, Pod) or found.document is not None or found.workload is None:
        return None
    if workload_lifecycle(snapshot, found.workload) is not None:
        return None
    return waiting_member(snapshot, found.workload)


# What is asked about, and what is beside it in the files, in one queue.


def gather(
    gathering: ManifestQuestions, subject: Subject, one: Found, *, is_tried: bool = False
) -> ReplicaGroup | BoundPods:
    """`is_tried`: pods like the subject take the place of those that wait."""
    if isinstance(one, Pod):
        return gathering.take(subject, None)
    return gathering.take(subject, one.workload, count=one.count, is_tried=is_tried)


def gather_beside(gathering: ManifestQuestions, setup: Setup, one: Found) -> None:
    """The other manifests, which count as applied; those that the API server refuses do not."""
    if isinstance(one, Pod):
        return
    try:
        gather(gathering, one.admitted(gathering.snapshot, setup), one)
    except NotAdmittedError:
        return


def gather_queue(
    gathering: ManifestQuestions,
    setup: Setup,
    queue: Sequence[Found],
    found: Found,
    admit: Admit,
    *,
    is_tried: bool = False,
) -> ReplicaGroup | BoundPods:
    """All of a queue, one of which is asked about; `admit` gives its pod in a cluster."""
    own: ReplicaGroup | BoundPods | None = None
    for one in queue:
        if one is found:
            own = gather(gathering, admit(gathering.snapshot), one, is_tried=is_tried)
        else:
            gather_beside(gathering, setup, one)
    assert own is not None, "the subject is in the queue"
    return own
