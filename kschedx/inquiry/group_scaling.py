"""cluster-autoscaler's decision about a pod that fits no node, and the changes after which it would add one. Each is
tried in its own loop before it is proposed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.apiserver.pod_classes import BUILT_IN_CLASSES, resolve_priority
from kschedx.autoscaler.cluster import Autoscaler, GroupVerdict, PodScaling
from kschedx.autoscaler.node_groups import group_title, groups_of_pools
from kschedx.autoscaler.pods import PodOutcome, consumed_request
from kschedx.autoscaler.sizes import AT_MAXIMUM, Resize
from kschedx.autoscaler.state import LoopOutcome
from kschedx.autoscaler.status import Health, NodeGroupStatus, ScaleUp
from kschedx.autoscaler.templates import CloudTemplate, Template, daemon_sets
from kschedx.findings import InsufficientResource, NodeAffinityMismatch, NodeUnschedulable, UntoleratedTaint
from kschedx.fixes.node_requirements import OF_ROLES, labels_for, own_terms, required_terms
from kschedx.fixes.pod_edits import rounded_down
from kschedx.fixes.steps import DropRequirements, LowerRequests, PodStep, Tolerate
from kschedx.framework.config import Profile
from kschedx.framework.runtime import request_options
from kschedx.framework.status import StatusDocument
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.node_scaling import (
    LEAST_SHARE,
    NodeRemedy,
    NodeTrial,
    ScalingTrial,
    StepKind,
    autoscaler_fix,
    find_remedies,
    limit_flag,
    other_ways,
    refusal_now,
    reported_fixes,
)
from kschedx.kube.autoscalers import OpenShiftMachineSet, ProvisioningRequest
from kschedx.kube.conditions import Condition, condition_of, condition_text
from kschedx.kube.documents import Document, Json, part_of
from kschedx.kube.escaping import shell_command
from kschedx.kube.kinds import name_of
from kschedx.kube.names import HOSTNAME, ZONE, is_extended_resource
from kschedx.kube.resources import pod_request
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, find_untolerated
from kschedx.kube.types import Pod, Taint
from kschedx.kube.typos import nearest_name
from kschedx.patterns import lazy_pattern
from kschedx.releases.plugins import Trait, plugins_with
from kschedx.simulate.changes import set_cordon
from kschedx.snapshot.events import BACKED_OFF
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

_MOST_MODELS = 3  # the maximum number of existing groups after which a new group is modeled
_PLENTY = 1000


_UPCOMING = lazy_pattern(r"template-node-for-(?P<group>.+)-upcoming-\d+")


class GroupScaling(Struct, frozen=True, kw_only=True, dict=True):
    """The decision about the node groups."""

    autoscaler: Autoscaler
    decision: PodScaling
    pod: Pod
    is_changed: bool = False  # whether the question changes the cluster

    @property
    def adds_node(self) -> bool:
        return (self.decision.choice is not None and not self.denial) or self.decision.pod.is_on_upcoming

    @cached_property
    def denial(self) -> str:
        """The autoscaler's own recent message that it adds no node for the pod, although by the dump it would."""
        if self.is_changed or self.decision.choice is None:
            return ""
        snapshot = self.autoscaler.snapshot
        return refusal_now(snapshot.autoscaler_events.get(self.pod.key), snapshot)

    @property
    def progress(self) -> str:
        """What is in progress for the pod; empty if nothing is known."""
        if self.decision.choice is not None and self.decision.choice.resizes and not self.denial:
            return f"cluster-autoscaler adds a node of group {group_title(self.decision.choice.resizes[0].group)}"
        upcoming = group_title(self._starting_group)
        return f"a node of group {upcoming} is starting for it" if upcoming else ""

    @property
    def _starting_group(self) -> str:
        """The group of the starting node for which the pod waits; empty if there is none."""
        match = _UPCOMING.fullmatch(self.decision.pod.node) if self.decision.pod.is_on_upcoming else None
        return "" if match is None else match["group"]

    @property
    def consumed_request(self) -> str:
        """The ProvisioningRequest that the pod consumes, `namespace/name`; empty if it consumes none."""
        name = consumed_request(self.pod.metadata.annotations)
        return "" if name is None else f"{self.pod.metadata.namespace}/{name}"

    @property
    def _request_condition(self) -> Condition | None:
        """What keeps the pod's ProvisioningRequest from providing nodes: its failure or end, or what it waits for."""
        named = tuple(self.consumed_request.split("/"))
        requests = (it for it in self.autoscaler.snapshot.of(ProvisioningRequest) if name_of(it) == named)
        conditions = [condition for request in requests for condition in request.status.conditions]
        ended = (condition_of(conditions, kind, "True") for kind in ("Failed", "BookingExpired", "CapacityRevoked"))
        waits = (condition_of(conditions, kind, "False", "Unknown") for kind in ("Accepted", "Provisioned"))
        return next(filter(None, (*ended, *waits)), None)

    @property
    def request_state(self) -> str:
        """`Failed=True (FailedToProvision): Capacity is not found` of the pod's ProvisioningRequest; empty if no
        condition keeps it from providing nodes."""
        condition = self._request_condition
        return "" if condition is None else condition_text(condition)

    @property
    def _request_repair(self) -> tuple[str, str]:
        """The title and the command of a fix: only the ProvisioningRequest provisions nodes for its pods."""
        namespace, _, name = self.consumed_request.partition("/")
        named = f"ProvisioningRequest {self.consumed_request}"
        snapshot, condition = self.autoscaler.snapshot, self._request_condition
        known = [it.name for it in snapshot.of(ProvisioningRequest) if it.metadata.namespace == namespace]
        title = f"check {named}, which provisions the nodes for the pod"
        if known and name not in known:
            near = nearest_name(name, known)
            title = f"create {named}, which does not exist{f', or consume {near}' if near else ''}"
        elif condition is not None and condition.status == "True":
            title = f"recreate {named}, and the pod after it is provisioned"
        elif condition is not None:
            title = f"wait for {named}, or request less capacity in it"
        return title, shell_command("kubectl describe provisioningrequest {} -n {}", name, namespace)

    @property
    def event(self) -> str:
        """The event about the pod; empty if there is none, or if it is not known."""
        if self.decision.choice is not None:
            return self.decision.choice.event
        is_known = self.decision.pod.remains and not self.decision.unknown_groups
        return f"pod didn't trigger scale-up: {', '.join(self.decision.pod.parts)}" if is_known else ""

    @property
    def document(self) -> ScalingDocument:
        autoscaler, scaling = self.autoscaler, self.decision
        pod, choice = scaling.pod, scaling.choice
        is_there = pod.outcome is PodOutcome.SCHEDULABLE
        return part_of(
            ScalingDocument,
            scaling,
            outcome=pod.outcome,
            groups={group.name: _group(group) for group in scaling.groups},
            scale_ups=choice.resizes if choice else (),
            event=self.event,
            is_told=bool(choice) or pod.is_event_sent,
            groups_told_by=autoscaler.membership.sources,
            flags_are_known=autoscaler.flags_are_known,
            is_measured=autoscaler.is_measured,
            node=pod.node if is_there else "",
            is_upcoming=pod.is_on_upcoming if is_there else None,
            unknown_status=tuple(autoscaler.status.unknown),
            scheduler_config_file=autoscaler.config_not_here,
            fixes=tuple(GroupRemedyDocument(remedy.title, remedy.place, remedy.nodes) for remedy in self.remedies),
        )

    @cached_property
    def remedies(self) -> tuple[NodeRemedy, ...]:
        """The remedies for a pod that gets no new node: changes of the pod, or, if these do not help, a new group."""
        scaling = self.decision
        if scaling.choice is not None or scaling.is_waiting:
            return ()
        models = islice(_new_groups(self.autoscaler, scaling, self.pod), _MOST_MODELS)
        return find_remedies(_trials(self.autoscaler, scaling, self.pod)) or find_remedies(models, 1)

    def fixes(self, trial: NodeTrial, *, with_changes_of_pod: bool) -> Iterator[Fix]:
        """Yield what the autoscaler does, or would do with other settings."""
        scaling = self.decision
        if self.denial and trial.event is not None:
            yield from reported_fixes(trial.event)
        elif scaling.choice is not None and not scaling.choice.error:
            for resize in scaling.choice.resizes[:1]:
                adds = f"it adds nodes to node group {group_title(resize.group)} ({resize.before} → {resize.after})"
                helps = _helped_pods(self.autoscaler, scaling)
                yield trial.fix(f"wait for cluster-autoscaler: {adds}", scaling.node_of(resize.group), helps=helps)
        elif scaling.pod.is_on_upcoming:
            title = f"wait for the node of node group {group_title(self._starting_group)} that is starting"
            yield trial.fix(title, scaling.node_of(self._starting_group))
        elif scaling.pod.outcome is PodOutcome.CONSUMES_REQUEST:
            yield autoscaler_fix(*self._request_repair)
        yield from self._without_template(trial)
        failing = [group for group in scaling.groups if group.fails_to_register and (group.fits or group.is_unknown)]
        for group in failing:
            number = f": {count(group.unregistered, 'instance')} did not become nodes" if group.unregistered else ""
            yield trial.fix(f"repair how nodes of {group.title} join the cluster{number}", None)
        for remedy in self.remedies:
            if with_changes_of_pod or remedy.makes_room:
                yield trial.remedy_fix(remedy, f"to {group_title(remedy.place)}")
        for group in scaling.groups:
            if group in failing:
                continue
            reason = group.detail.partition(":")[0]
            is_backed_off = trial.event is not None and BACKED_OFF in trial.event.message
            is_unknown = group.template is None and is_backed_off and reason
            if (group.fits and group.skipped == (BACKED_OFF,)) or is_unknown:
                why = f": {reason}" if 0 < len(reason) <= _LONGEST_CODE else ""
                title = f"{other_ways(f'node group {group.title}', group.detail)}{why}"
                yield trial.fix(title, None if group.template is None else group.template.node, group=None)

    def _without_template(self, trial: NodeTrial) -> Iterator[Fix]:
        """Yield untried fixes of groups whose template the cluster does not show: a larger maximum, and what a group
        without nodes declares about its nodes."""
        if self.adds_node:
            return
        if (lacking := undeclared_need(self.autoscaler, self.decision, self.pod)) is not None:
            yield trial.fix(f"if nodes of {lacking.group} have {lacking.need}, {lacking.how}", None)
        unknown = self.decision.unknown_groups
        idle = [group.name for group in self.decision.groups if group.target == 0 and group.name in unknown]
        if lacking is None and (pools := groups_of_pools(idle, _required_labels(self.pod))):
            titles = list_names([*map(group_title, pools)], 2, conjunction="or")
            yield trial.fix(f"add a node to node group {titles}: it is the required pool, and has no node", None)
        full = [group for group in self.decision.groups if group.is_unknown and group.skipped == (AT_MAXIMUM,)]
        if full and not any(group.fits for group in self.decision.groups):
            names = list_names([group.title for group in full], 2)
            yield trial.fix(f"raise the maximum of node group {names}, which is reached", None)


_LONGEST_CODE = 40  # the maximum characters of an error's code, such as `InsufficientInstanceCapacity`


class _GroupTrial(ScalingTrial, frozen=True, kw_only=True):
    autoscaler: Autoscaler

    @classmethod
    def of_pod(cls, autoscaler: Autoscaler, change: PodStep, pod: Pod) -> _GroupTrial:
        return cls(title=change.title, kind=StepKind.OF_POD, pod=change.edit(pod), autoscaler=autoscaler)

    def run(self) -> NodeRemedy | None:
        """The title of a raised limit also states the size that the group reaches."""
        then, title = self.autoscaler.explain(self.pod), self.title
        if then is None:
            return None
        if then.choice is None and then.is_waiting and not self.limited:
            group, nodes = next(group.name for group in then.groups if group.fits and not group.skipped), 0
        elif then.choice is not None and then.choice.resizes:
            first = then.choice.resizes[0]
            group, nodes = first.group, first.after - first.before
            title = f"{title} to {first.after}" if self.limited else title
        else:
            return None
        node, helps = then.node_of(group), _helped_pods(self.autoscaler, then) | {self.pod.key}
        return NodeRemedy(title=title, kind=self.kind, place=group, nodes=nodes, pod=self.pod, node=node, helps=helps)


def _helped_pods(autoscaler: Autoscaler, scaling: PodScaling) -> frozenset[str]:
    """Return the pods of the cluster for which the autoscaler adds nodes together with the pod."""
    pods, rows = autoscaler.snapshot.pods, () if scaling.choice is None else scaling.choice.triggered
    return frozenset(pods.key(row) for row in rows if row < len(pods))


def _trials(autoscaler: Autoscaler, scaling: PodScaling, pod: Pod) -> Iterator[ScalingTrial]:
    if scaling.pod.outcome is PodOutcome.EXPENDABLE:
        yield from _higher_priority_trials(autoscaler, pod)
    if scaling.pod.outcome is not PodOutcome.CONSIDERED:
        return
    if scaling.result is LoopOutcome.AT_MAX_NODES_TOTAL:
        title = f"raise --max-nodes-total of cluster-autoscaler above {autoscaler.flags.max_nodes_total}"
        unlimited = replace(autoscaler, changed_flags=replace(autoscaler.flags, max_nodes_total=0))
        yield _GroupTrial(title=title, kind=StepKind.ROOM, pod=pod, autoscaler=unlimited)
    for group in scaling.groups:
        if not group.skipped and group.template is not None and len(group.rejections) == 1:
            yield from _rejection_trials(autoscaler, group, pod)
    for group in scaling.groups:
        if group.fits and (resources := autoscaler.behavior.limited_resources(group.skipped)):
            limits = [limit for limit in autoscaler.flags.limits if limit.resource in resources]
            raised = " and ".join(f"{limit_flag(limit.resource)} above {limit.written_maximum}" for limit in limits)
            others = tuple(limit for limit in autoscaler.flags.limits if limit not in limits)
            unlimited = replace(autoscaler, changed_flags=replace(autoscaler.flags, limits=others))
            title = f"raise {raised} for cluster-autoscaler"
            yield _GroupTrial(title=title, kind=StepKind.ROOM, pod=pod, autoscaler=unlimited)
        elif group.fits and group.skipped == (AT_MAXIMUM,):
            groups = tuple(
                replace(it, max_size=it.target + _PLENTY) if it.name == group.name else it
                for it in autoscaler.status.groups
            )
            larger = replace(autoscaler, status=replace(autoscaler.status, groups=groups))
            title = f"raise {_maximum(autoscaler, group.name)} from {group.max_size}"
            yield _GroupTrial(title=title, kind=StepKind.ROOM, pod=pod, autoscaler=larger, limited=group.name)


def _maximum(autoscaler: Autoscaler, group: str) -> str:
    """Return the setting that limits a group. On OpenShift, a MachineAutoscaler sets it in its MachineSet."""
    kind, _, key = group.partition("/")
    known = (machine_set.metadata for machine_set in autoscaler.snapshot.of(OpenShiftMachineSet))
    if kind == "MachineSet" and any(key == f"{metadata.namespace}/{metadata.name}" for metadata in known):
        return f"maxReplicas of the MachineAutoscaler of MachineSet {key.partition('/')[2]}"
    return f"the maximum of node group {group_title(group)}"


def _higher_priority_trials(autoscaler: Autoscaler, pod: Pod) -> Iterator[ScalingTrial]:
    """Yield the pod with the lowest PriorityClass that is not below the cutoff, or without a class."""
    cutoff, classes = autoscaler.flags.expendable_pods_priority_cutoff, autoscaler.snapshot.priority_classes
    own = pod.spec.priority_class_name
    enough = sorted(
        (priority_class.value, name) for name, priority_class in classes.items() if priority_class.value >= cutoff
    )
    names = [name for _, name in enough if name not in BUILT_IN_CLASSES]
    for name in [*names[:1], *([""] if own else [])]:
        spec = replace(pod.spec, priority=None, priority_class_name=name, preemption_policy=None)
        spec = resolve_priority(spec, classes)
        if spec.priority is None or spec.priority < cutoff:
            continue
        instead = f" instead of {own}" if own else ""
        title = f"use PriorityClass {name}{instead}" if name else f"remove priorityClassName {own}"
        title = f"{title}: priority {spec.priority}"
        yield _GroupTrial(title=title, kind=StepKind.ROOM, pod=replace(pod, spec=spec), autoscaler=autoscaler)
        return


def _rejection_trials(autoscaler: Autoscaler, group: GroupVerdict, pod: Pod) -> Iterator[ScalingTrial]:
    """Yield trials for the only plugin that rejects the pod on the group's template."""
    findings = group.rejections[0].findings
    template = group.template
    assert template is not None, "a plugin that rejects the pod has evaluated a template"
    match findings[:1]:
        case (UntoleratedTaint(key=key),) if not key.startswith(OF_ROLES):
            taints = tuple(_untolerated_taints(template.node.spec.taints, pod))
            yield _GroupTrial.of_pod(autoscaler, Tolerate(taints=taints), pod)
        case (NodeAffinityMismatch(source="nodeSelector", terms=(term,)),):
            unmet = tuple(it for it in term.requirements if not it.matched)
            if {it.key for it in unmet} == {HOSTNAME}:  # no new node has the name of another
                dropped = DropRequirements(source="nodeSelector", term=0, requirements=unmet)
                yield _GroupTrial.of_pod(autoscaler, dropped, pod)
        case (InsufficientResource(),):
            short = [finding for finding in findings if isinstance(finding, InsufficientResource)]
            if len(short) < len(findings) or any(item.free * LEAST_SHARE < item.requested for item in short):
                return
            amounts = {item.resource: rounded_down(item.resource, item.free) for item in short}
            lowered = LowerRequests.of(pod, amounts, request_options(autoscaler.release))
            if lowered is not None:
                yield _GroupTrial.of_pod(autoscaler, lowered, pod)
        case (NodeUnschedulable(),) if template.source != "template":
            name, snapshot = template.source.removeprefix("node/"), autoscaler.snapshot
            row = snapshot.cluster.index[name]
            opened = snapshot.with_nodes({row: set_cordon(snapshot.cluster.nodes[row], unschedulable=False)})
            title = f"uncordon {name}, the template of new nodes"
            yield _GroupTrial(title=title, pod=pod, autoscaler=replace(autoscaler, snapshot=opened))
            if autoscaler.behavior.cordoned_templates_can_be_opened:
                flags = replace(autoscaler.flags, scale_from_unschedulable=True)
                title = "start cluster-autoscaler with --scale-from-unschedulable"
                yield _GroupTrial(title=title, pod=pod, autoscaler=replace(autoscaler, changed_flags=flags))


def _untolerated_taints(taints: tuple[Taint, ...], pod: Pod) -> Iterator[Taint]:
    for taint in taints:
        if find_untolerated((taint,), pod.spec.tolerations, effects=DO_NOT_SCHEDULE, comparison=False) is not None:
            yield taint


def _new_groups(autoscaler: Autoscaler, scaling: PodScaling, pod: Pod) -> Iterator[ScalingTrial]:
    """Yield new groups derived from existing ones, closest first: with the labels that the pod requires, and without
    the taints that it does not tolerate."""
    if scaling.pod.outcome is not PodOutcome.CONSIDERED:
        return
    models = sorted(
        (group for group in scaling.groups if group.template is not None and group.rejections),
        key=lambda group: len(group.rejections),
    )
    asking = _PodInContext(pod=pod, profile=autoscaler.profile, snapshot=autoscaler.snapshot)
    for group in models:
        plugins = {status.plugin for status in group.rejections}
        template = group.template
        if template is None or not plugins <= plugins_with(Trait.ABOUT_LABELS_AND_TAINTS):
            continue
        for requirements in required_terms(asking):
            named = labels_for(template.node.metadata.labels, requirements)
            if named is None or named[0] or named[1] == template.node.metadata.labels:
                continue
            added = named[1].items() - template.node.metadata.labels.items()
            if not groups_of_pools([it.name for it in scaling.groups], added):  # else that pool exists
                yield _new_group(autoscaler, template, group, named[1], pod)
                break


def _new_group(
    autoscaler: Autoscaler, template: Template, verdict: GroupVerdict, labels: Mapping[str, str], pod: Pod
) -> ScalingTrial:
    node = template.node
    before = node.metadata.labels
    without = tuple(_untolerated_taints(node.spec.taints, pod))
    changed = replace(
        node,
        metadata=replace(node.metadata, labels=dict(labels)),
        spec=replace(node.spec, taints=tuple(taint for taint in node.spec.taints if taint not in without)),
    )
    name = f"{verdict.name}-new"
    groups = autoscaler.status.groups
    new = NodeGroupStatus(name=name, target=0, max_size=_PLENTY, health=Health.HEALTHY, scale_up=ScaleUp.NO_ACTIVITY)
    added = {key: value for key, value in sorted(labels.items()) if before.get(key) != value}
    zone = added.pop(ZONE, "")
    differences = (
        ("in zone", [zone] if zone else []),
        ("with label", [f"{key}={value}" for key, value in added.items()]),
        ("without label", sorted(before.keys() - labels.keys())),
        ("without taint", list(map(str, without))),
    )
    but_for = " and ".join(f"{what} {', '.join(names)}" for what, names in differences if names)
    changed_autoscaler = replace(
        autoscaler,
        status=replace(autoscaler.status, groups=(*groups, new)),
        templates={name: CloudTemplate(node=changed, pods=_pods_of_every_node(autoscaler, template))},
    )
    title = f"add a node group like {verdict.title} {but_for}"
    return _GroupTrial(title=title, kind=StepKind.NEW_GROUP, pod=pod, autoscaler=changed_autoscaler)


def _pods_of_every_node(autoscaler: Autoscaler, template: Template) -> tuple[Pod, ...]:
    """Return the pods of a template that come with every node, without those that a known DaemonSet creates."""
    known = {daemon_set.uid for daemon_set in daemon_sets(autoscaler.snapshot)}
    return tuple(
        it for it in template.pods if it.metadata.controller is None or it.metadata.controller.uid not in known
    )


# What the pod needs and a group without nodes may have.

_DECLARATIONS = {
    "aws": "tag its ASG with k8s.io/cluster-autoscaler/node-template/{kind}/{key}={value}",
    "azure": "tag its scale set with k8s.io_cluster-autoscaler_node-template_{kind}_{underscored}={value}",
    "clusterapi": "annotate it with capacity.cluster-autoscaler.kubernetes.io/{plural}: {key}={value}",
}
"""Cloud provider to how a group without nodes declares a label or a resource of its nodes."""


class _UndeclaredNeed(Struct, frozen=True, kw_only=True):
    """A group without nodes, and what the pod needs and no node has: the cluster does not show whether the group's
    nodes would have it."""

    group: str
    need: str  # `disk=nvme`, `hugepages-2Mi`
    how: str  # how the group declares it


def undeclared_need(autoscaler: Autoscaler, scaling: PodScaling, pod: Pod) -> _UndeclaredNeed | None:
    """Return None if that cannot be the cause, or if the cloud's groups declare nothing."""
    ids = (node.spec.provider_id for node in autoscaler.snapshot.cluster.nodes)
    scheme, separator, _ = next(filter(None, ids), "").partition("://")
    cloud = autoscaler.flags.cloud_provider if autoscaler.flags_are_known or not separator else scheme
    form = _DECLARATIONS.get(cloud, "")
    empty = [group.name for group in scaling.groups if group.target == 0 and group.is_unknown]
    needs = [*_missing_labels(autoscaler, pod), *_missing_resources(autoscaler, pod)]
    if not form or not empty or not needs:
        return None
    kind, key, value = needs[0]
    words = re.findall("[a-z0-9]+", f"{key.rpartition('/')[2]} {value}".lower())
    pools = groups_of_pools(empty, _required_labels(pod))
    name = max(pools or empty, key=lambda name: sum(word in name.lower() for word in words))
    plural = "capacity" if kind == "resources" else "labels"
    how = form.format(kind=kind, plural=plural, key=key, value=value, underscored=key.replace("/", "_"))
    return _UndeclaredNeed(group=group_title(name), need=f"{key}={value}" if kind == "label" else key, how=how)


def _required_labels(pod: Pod) -> list[tuple[str, str]]:
    """Return the labels that the pod selects; of several values, the first."""
    terms = (term for term in own_terms(pod) if term is not None)
    required = (
        (expression.key, expression.values[0])
        for term in terms
        for expression in term.match_expressions
        if expression.operator == "In"
    )
    return [*pod.spec.node_selector.items(), *required]


def _missing_labels(autoscaler: Autoscaler, pod: Pod) -> Iterator[tuple[str, str, str]]:
    """Yield labels that the pod selects and that no node has under any value."""
    known = autoscaler.snapshot.cluster.label_keys
    yield from (("label", key, value) for key, value in _required_labels(pod) if key not in known)


def _missing_resources(autoscaler: Autoscaler, pod: Pod) -> Iterator[tuple[str, str, str]]:
    """Yield extended resources that the pod requests and no node has, with the amount."""
    allocatable = (node.status.allocatable.items() for node in autoscaler.snapshot.cluster.nodes)
    offered = {name for amounts in allocatable for name, written in amounts if str(written) != "0"}
    requested = pod_request(pod.spec, pod.status, request_options(autoscaler.release)).amounts
    for name, number in requested.items():
        if number > 0 and is_extended_resource(name) and name not in offered:
            yield "resources", name, str(number)


class _PodInContext(Struct, frozen=True, kw_only=True):
    pod: Pod
    profile: Profile
    snapshot: Snapshot


# What the autoscaler does about one pod, as the value of the key `autoscaler` of the Explanation document.


class GroupVerdictDocument(Document, frozen=True, omit_defaults=True):
    target: int
    min_size: int
    max_size: int
    fits: bool
    skipped: tuple[str, ...] = ()
    detail: str = ""
    template: Json | None = field(default_factory=dict)  # null for a group without a template, else left out
    rejected_by: Mapping[str, StatusDocument] = {}


class GroupRemedyDocument(Document, frozen=True):
    title: str
    group: str
    nodes: int


class ScalingDocument(
    Document, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="cluster-autoscaler"
):
    outcome: PodOutcome
    result: LoopOutcome
    groups: Mapping[str, GroupVerdictDocument]
    scale_ups: tuple[Resize, ...]
    event: str
    is_told: bool
    groups_told_by: tuple[str, ...]
    flags_are_known: bool
    is_measured: bool
    node: str = ""
    is_upcoming: bool | None = None
    error: str = ""
    unknown_status: tuple[str, ...] = ()
    scheduler_config_file: str = ""
    alternatives: tuple[str, ...] = ()
    is_waiting: bool = False
    fixes: tuple[GroupRemedyDocument, ...] = ()


def _group(group: GroupVerdict) -> GroupVerdictDocument:
    rejected_by = {rejection.plugin: rejection.document for rejection in group.rejections}
    template: Json | None = None if group.template is None else {}
    return part_of(GroupVerdictDocument, group, template=template, rejected_by=rejected_by)
