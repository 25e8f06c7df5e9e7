"""What would make the autoscaler help a pod: each is tried in a loop of its own before it is told."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.quantity import Unit
from kschedx.api.tolerations import DO_NOT_SCHEDULE, untolerated
from kschedx.api.types import Pod, Taint
from kschedx.autoscaler.cluster import Autoscaler, GroupVerdict, PodScaling
from kschedx.autoscaler.limits import AT_MAXIMUM
from kschedx.autoscaler.pods import Outcome
from kschedx.autoscaler.remedy import (
    RaiseMaximum,
    RaisePriority,
    Remedy,
    RemedyStep,
    RequestAtMost,
    ResourceAmount,
    TolerateTaints,
    UncordonNode,
)
from kschedx.autoscaler.status import AutoscalerStatus
from kschedx.findings import InsufficientResource
from kschedx.fixes import pod_edits
from kschedx.framework.runtime import request_options
from kschedx.snapshot.snapshot import Snapshot

MOST_TRIALS = 6
LEAST_SHARE = 2
"""A request is not cut to less than half."""
_PLENTY = 1000


class _Trial(Struct, frozen=True, kw_only=True):
    step: RemedyStep
    pod: Pod
    snapshot: Snapshot | None = None
    status: AutoscalerStatus | None = None


def remedies(autoscaler: Autoscaler, scaling: PodScaling, pod: Pod) -> tuple[Remedy, ...]:
    """For a pod that nothing is added for; changes to the pod come first."""
    if scaling.choice is not None:
        return ()
    found: dict[RemedyStep, Remedy] = {}
    for trial in islice(_trials(autoscaler, scaling, pod), MOST_TRIALS):
        then = autoscaler.about(trial.pod, snapshot=trial.snapshot, status=trial.status)
        if then is None or then.choice is None or not then.choice.resizes:
            continue
        first = then.choice.resizes[0]
        step = trial.step
        if isinstance(step, RaiseMaximum):
            step = replace(step, after=first.after)
        found.setdefault(step, Remedy(step=step, group=first.group, nodes=first.after - first.before))
    return tuple(found.values())


def _trials(autoscaler: Autoscaler, scaling: PodScaling, pod: Pod) -> Iterator[_Trial]:
    if scaling.pod.outcome is Outcome.EXPENDABLE:
        cutoff = autoscaler.flags.expendable_pods_priority_cutoff
        raised = replace(pod, spec=replace(pod.spec, priority=cutoff))
        yield _Trial(step=RaisePriority(at_least=cutoff), pod=raised)
    if scaling.pod.outcome is not Outcome.CONSIDERED:
        return
    for group in scaling.groups:
        if not group.skipped and group.template is not None and len(group.rejections) == 1:
            yield from _of_rejection(autoscaler, group, pod)
    for group in scaling.groups:
        if group.fits and group.skipped == (AT_MAXIMUM,):
            groups = autoscaler.status.groups
            larger = (replace(one, max_size=one.target + _PLENTY) if one.name == group.name else one for one in groups)
            status = replace(autoscaler.status, groups=tuple(larger))
            step = RaiseMaximum(group=group.name, before=group.max_size, after=_PLENTY)
            yield _Trial(step=step, pod=pod, status=status)


def _of_rejection(autoscaler: Autoscaler, group: GroupVerdict, pod: Pod) -> Iterator[_Trial]:
    """By the only plugin that rejects the pod on the group's template."""
    (status,) = group.rejections
    template = group.template
    assert template is not None, "who rejects the pod has looked at a template"
    match status.plugin:
        case "TaintToleration":
            taints = tuple(_untolerated(template.node.spec.taints, pod))
            yield _Trial(step=TolerateTaints(taints=taints), pod=pod_edits.tolerating(pod, taints))
        case "NodeResourcesFit":
            short = [one for one in status.findings if isinstance(one, InsufficientResource)]
            if len(short) < len(status.findings) or any(one.free * LEAST_SHARE < one.requested for one in short):
                return
            options = request_options(autoscaler.release)
            amounts = []
            changed: Pod | None = pod
            for one in short:
                unit = Unit.of(one.resource)
                step = {Unit.MILLI: 10, Unit.BYTE: 1 << 20, Unit.COUNT: 1}[unit]
                amount = one.free // step * step
                changed = changed and pod_edits.requesting(changed, one.resource, amount, options)
                amounts.append(ResourceAmount(resource=one.resource, amount=amount))
            if changed is not None:
                yield _Trial(step=RequestAtMost(amounts=tuple(amounts)), pod=changed)
        case "NodeUnschedulable" if template.source != "template":
            name = template.source.removeprefix("node/")
            row = autoscaler.snapshot.cluster.index[name]
            node = autoscaler.snapshot.cluster.nodes[row]
            open_ = replace(
                node,
                spec=replace(
                    node.spec,
                    unschedulable=False,
                    taints=tuple(one for one in node.spec.taints if one.key != "node.kubernetes.io/unschedulable"),
                ),
            )
            yield _Trial(step=UncordonNode(node=name), pod=pod, snapshot=autoscaler.snapshot.with_nodes({row: open_}))


def _untolerated(taints: tuple[Taint, ...], pod: Pod) -> Iterator[Taint]:
    for taint in taints:
        if untolerated((taint,), pod.spec.tolerations, effects=DO_NOT_SCHEDULE, comparison=False) is not None:
            yield taint
