"""Replicas whose template names their node: kube-scheduler never sees them, and the kubelet takes what it has room for.

What it refuses stays as a Failed pod, and its controller makes another one in its place. Upstream: canAdmitPod in
pkg/kubelet/kubelet.go.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from kschedx.answer.explanation import Explanation
from kschedx.answer.replicas import Replicas
from kschedx.answer.subject import Subject
from kschedx.api.types import Pod
from kschedx.framework.cycle import Outcome
from kschedx.simulate import workloads
from kschedx.simulate.changes import Manifest
from kschedx.simulate.workloads import Owners
from kschedx.snapshot.edits import with_pods

Explain = Callable[[Subject], Explanation]


class Taken(Struct, frozen=True, kw_only=True):
    """What becomes of the replicas that a workload lacks."""

    explanation: Explanation
    """Of the first that the kubelet refuses, else of the last."""
    pods: tuple[Pod, ...]
    """Those that it takes."""


def taken_by_kubelet(subject: Subject, manifest: Manifest, explain: Explain) -> Taken:
    """How many of the replicas the kubelet of their node takes, one after the other, as far as that is sure.

    What is there of the workload already, wherever it is, stays.
    """
    workload = workloads.workload_of(manifest)
    running = len(Owners(subject.snapshot).members(subject.snapshot.pods, workload))
    wanted = workloads.wanted_replicas(manifest, workloads.manifest_of(subject.snapshot, workload))
    node = subject.pod.spec.node_name
    snapshot, made = workloads.like_pod(subject.snapshot, subject.pod, max(wanted - running, 1))
    made = [replace(pod, spec=replace(pod.spec, node_name=node)) for pod in made]

    def after(number: int) -> Explanation:
        there = with_pods(snapshot, made[:number])
        return explain(replace(subject, snapshot=there, pod=made[number], first=None))

    def is_refused(number: int) -> bool:
        return after(number).becomes is not Outcome.SCHEDULED

    if len(made) == 1 or node not in snapshot.cluster.index:
        alone = explain(subject)
        return Taken(explanation=alone, pods=tuple(made) if alone.becomes is Outcome.SCHEDULED else ())
    number = bisect_left(range(len(made)), True, key=is_refused)  # each leaves less room than there was
    replicas = Replicas(
        workload=workload.reference,
        wanted=wanted,
        running=running,
        placed={pod.key: node for pod in made[:number]},
        pending=tuple(pod.key for pod in made[number:]),
        kubelet=node,
    )
    story = after(min(number, len(made) - 1))
    return Taken(explanation=replace(story, replicas=replicas), pods=tuple(made[:number]))
