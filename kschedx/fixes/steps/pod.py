"""Steps that change the pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import numpy as np
from msgspec.structs import fields, replace

from kschedx.apiserver.pod_classes import PREEMPT_LOWER_PRIORITY
from kschedx.findings import RequirementMatch
from kschedx.fixes import pod_edits as edit
from kschedx.fixes.phrases import requirement_text
from kschedx.fixes.proposal import Cost, PodStep, Proposal
from kschedx.grouping import group_pairs
from kschedx.kube.documents import with_spec
from kschedx.kube.quantity import Unit, format_quantities, format_quantity
from kschedx.kube.resources import RequestOptions
from kschedx.kube.selectors import NodeSelectorTerm, SelectorRequirement
from kschedx.kube.tolerations import toleration_text
from kschedx.kube.types import (
    Affinity,
    ContainerPort,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from kschedx.kube.typos import UnlikelyQuantity
from kschedx.kube.workloads import with_required_terms, without_node_names
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

# --- gates


class RemoveGates(PodStep, frozen=True, kw_only=True):
    gates: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"remove scheduling {'gate' if len(self.gates) == 1 else 'gates'} {' and '.join(self.gates)}"

    def edit(self, pod: Pod) -> Pod:
        return with_spec(pod, scheduling_gates=())


class AwaitController(PodStep, frozen=True, kw_only=True):
    """A controller removes the pod's gates when it admits the pod; the other steps have to be done before."""

    _title = "then wait for {s.controller} to admit the pod"
    _cost = Cost.WAITING
    gates: tuple[str, ...]
    controller: str

    @property
    def lifts_gates(self) -> bool:
        return True

    def edit(self, pod: Pod) -> Pod:
        return with_spec(pod, scheduling_gates=())


# --- node selection


class Tolerate(PodStep, frozen=True, kw_only=True):
    taints: tuple[Taint, ...]

    @property
    def title(self) -> str:
        return f"tolerate {' and '.join(map(str, self.taints))}"

    def edit(self, pod: Pod) -> Pod:
        new = (
            Toleration(key=t.key, operator="Equal" if t.value else "Exists", value=t.value, effect=t.effect)
            for t in self.taints
        )
        known = pod.spec.tolerations
        return with_spec(pod, tolerations=(*known, *(t for t in new if t not in known)))


class TolerateInstead(PodStep, frozen=True, kw_only=True):
    """A toleration as it was probably meant; the present one tolerates no taint of any node."""

    _cost = Cost.TYPO
    wrong: Toleration
    taint: Taint

    @property
    def title(self) -> str:
        return f"tolerate {self.taint} instead of {toleration_text(self.wrong)}"

    def edit(self, pod: Pod) -> Pod:
        taint, wrong = self.taint, self.wrong
        value = "" if wrong.operator == "Exists" else taint.value
        meant = replace(wrong, key=taint.key, value=value, effect=wrong.effect and taint.effect)
        tolerations = tuple(meant if toleration == wrong else toleration for toleration in pod.spec.tolerations)
        return with_spec(pod, tolerations=tolerations)


class SelectInstead(PodStep, frozen=True, kw_only=True):
    """Expressions of a required term as they were probably meant, or with the only pool that there is, or that replaces
    the required one."""

    source: str
    term: int
    wrong: RequirementMatch
    meant: RequirementMatch
    also: tuple[tuple[RequirementMatch, RequirementMatch], ...] = ()  # others, each with what was meant
    cost: Cost = Cost.TYPO
    is_replaced: bool = False  # whether all nodes of the required pool are cordoned and older

    @property
    def title(self) -> str:
        because = ", whose nodes are all cordoned and older" if self.is_replaced else ""
        wrong, meant = zip((self.wrong, self.meant), *self.also, strict=True)
        chosen, instead_of = (" and ".join(map(requirement_text, its)) for its in (meant, wrong))
        return f"select {chosen} instead of {instead_of}{because}"

    def edit(self, pod: Pod) -> Pod:
        for wrong, meant in ((self.wrong, self.meant), *self.also):
            if self.source == "nodeSelector":
                selector = {key: value for key, value in pod.spec.node_selector.items() if key != wrong.key}
                pod = _with_selector(pod, selector | {meant.key: meant.values[0]})
                continue
            changed = tuple(
                SelectorRequirement(key=meant.key, operator=requirement.operator, values=meant.values)
                if _is_same(requirement, wrong)
                else requirement
                for requirement in edit.expressions(pod, self.term)
            )
            pod = _with_term(pod, self.term, changed)
        return pod


def _with_selector(pod: Pod, selector: Mapping[str, str]) -> Pod:
    return with_spec(pod, node_selector=dict(selector))


def _with_term(pod: Pod, index: int, requirements: tuple[SelectorRequirement, ...]) -> Pod:
    """Return the pod with other expressions in a required node affinity term; without expressions, the whole
    requirement is removed."""
    required = pod.spec.required_node_affinity
    if required is None or index >= len(required.node_selector_terms):
        return pod  # of an earlier template
    terms = list(required.node_selector_terms)
    terms[index] = NodeSelectorTerm(match_expressions=requirements, match_fields=terms[index].match_fields)
    return with_required_terms(pod, None if terms[index].is_empty else tuple(terms))


class SelectEither(PodStep, frozen=True, kw_only=True):
    """Expressions of a required term that no node satisfies together, as one expression with the values of all."""

    _cost = Cost.TYPO
    term: int
    meant: RequirementMatch

    @property
    def title(self) -> str:
        return f"select {requirement_text(self.meant)} in one expression: all expressions of a term must match"

    def edit(self, pod: Pod) -> Pod:
        meant = SelectorRequirement(key=self.meant.key, operator="In", values=self.meant.values)
        others = (it for it in edit.expressions(pod, self.term) if (it.key, it.operator) != (meant.key, "In"))
        return _with_term(pod, self.term, (*others, meant))


class DropRequirements(PodStep, frozen=True, kw_only=True):
    """The removal of the expressions of a required term that a node does not satisfy."""

    source: str
    term: int
    requirements: tuple[RequirementMatch, ...]
    cost: Cost = Cost.CONSTRAINT
    others: tuple[RequirementMatch, ...] = ()
    """The expressions of the other terms, if no term is left: the whole requirement is removed."""

    @property
    def title(self) -> str:
        own = " and ".join(map(requirement_text, self.requirements))
        others = dict.fromkeys(text for other in self.others if (text := requirement_text(other)) != own)
        if len(others) > 1:
            return f"stop requiring {own} or another term of the node affinity"
        return f"stop requiring {' or '.join((own, *others))}"

    def edit(self, pod: Pod) -> Pod:
        if self.source == "nodeSelector":
            gone = {requirement.key for requirement in self.requirements}
            return _with_selector(pod, {key: value for key, value in pod.spec.node_selector.items() if key not in gone})
        kept = (it for it in edit.expressions(pod, self.term) if not any(_is_same(it, r) for r in self.requirements))
        return _with_term(pod, self.term, tuple(kept))


class DropNodeNames(PodStep, frozen=True, kw_only=True):
    """The removal of node names from the required terms of the node affinity."""

    _title = "remove the node names from the node affinity"
    _cost = Cost.CONSTRAINT

    def edit(self, pod: Pod) -> Pod:
        return without_node_names(pod)


class DropNodeName(PodStep, frozen=True, kw_only=True):
    _title = "remove spec.nodeName {s.wanted}"
    _cost = Cost.REPAIR  # kube-scheduler then decides as for any other pod
    wanted: str

    def edit(self, pod: Pod) -> Pod:
        return with_spec(pod, node_name="")


class UseHostPort(PodStep, frozen=True, kw_only=True):
    """Another host port; 0 removes it. Under hostNetwork, the container listens on the same number."""

    _cost = Cost.CONSTRAINT
    port: int
    protocol: str
    instead: int

    @property
    def title(self) -> str:
        return (
            f"use host port {self.instead} instead of {self.port}" if self.instead else f"remove host port {self.port}"
        )

    def edit(self, pod: Pod) -> Pod:
        def changed(old: ContainerPort) -> ContainerPort:
            if (old.host_port, old.protocol or "TCP") != (self.port, self.protocol):
                return old
            if self.instead == 0:
                return replace(old, host_port=0, host_ip="")
            inside = self.instead if pod.spec.host_network else old.container_port
            return replace(old, host_port=self.instead, container_port=inside)

        containers = tuple(replace(c, ports=tuple(map(changed, c.ports))) for c in pod.spec.containers)
        return with_spec(pod, containers=containers)


# --- rules between pods

_Rule = PodAffinityTerm | TopologySpreadConstraint


class RuleKind(StrEnum):
    """The list of the pod's spec that holds a rule."""

    SPREAD = "topologySpreadConstraints"
    AFFINITY = "podAffinity"
    ANTI_AFFINITY = "podAntiAffinity"


def _rules(pod: Pod, *, anti: bool) -> PodAffinity:
    affinity = pod.spec.affinity or Affinity()
    return (affinity.pod_anti_affinity if anti else affinity.pod_affinity) or PodAffinity()


class ChangeRule(PodStep, frozen=True, kw_only=True):
    """A spread constraint, or a required term of podAffinity or podAntiAffinity, with other values of some fields."""

    kind: RuleKind
    index: int
    before: _Rule
    after: _Rule
    selector: str = ""  # the selector of a term, as kubectl writes it
    cost: Cost = Cost.CONSTRAINT

    @property
    def only_lowers_min_domains(self) -> bool:
        """Whether the rule stays as strict within the domains that exist."""
        before, after = self.before, self.after
        if isinstance(before, PodAffinityTerm) or isinstance(after, PodAffinityTerm):
            return False
        return replace(before, min_domains=after.min_domains) == after

    @property
    def title(self) -> str:
        before, after = self.before, self.after
        number = (
            f"spread constraint {self.index + 1}"
            if self.kind is RuleKind.SPREAD
            else f"{self.kind} term {self.index + 1}"
        )
        if before.topology_key != after.topology_key:
            return f"set topologyKey: {after.topology_key} instead of {before.topology_key} in {number}"
        if before.label_selector != after.label_selector:
            return f"select {_labels_not_in(after, before)} instead of {_labels_not_in(before, after)} in {number}"
        if isinstance(before, TopologySpreadConstraint) and isinstance(after, TopologySpreadConstraint):
            key = before.topology_key
            if before.when_unsatisfiable != after.when_unsatisfiable:
                return f"set whenUnsatisfiable: {after.when_unsatisfiable} in the spread constraint over {key}"
            if before.max_skew != after.max_skew:
                return f"raise maxSkew over {key} from {before.max_skew} to {after.max_skew}"
            if before.min_domains != after.min_domains:
                return f"lower minDomains over {key} from {before.min_domains} to {after.min_domains or 1}"
            if before.match_label_keys != after.match_label_keys:
                added = [key for key in after.match_label_keys if key not in before.match_label_keys]
                return f"add matchLabelKeys: [{', '.join(added)}] to the spread constraint over {key}"
            policy = (
                "nodeTaintsPolicy" if before.node_taints_policy != after.node_taints_policy else "nodeAffinityPolicy"
            )
            return f"set {policy}: Honor in the spread constraint over {key}"
        if isinstance(after, PodAffinityTerm) and not (after.namespaces or after.namespace_selector):
            return f"limit {number} ({self.selector}) to pods of its own namespace"
        former, namespaces = (rule.namespaces if isinstance(rule, PodAffinityTerm) else () for rule in (before, after))
        verb, where = ("set", "in") if former else ("add", "to")
        return f"{verb} namespaces: [{', '.join(namespaces)}] {where} {number} ({self.selector})"

    def edit(self, pod: Pod) -> Pod:
        names = (info.name for info in fields(self.before))
        changed = {name: new for name in names if (new := getattr(self.after, name)) != getattr(self.before, name)}
        if self.kind is RuleKind.SPREAD:
            constraints = pod.spec.topology_spread_constraints  # those of an earlier template may be others
            changed_constraints = tuple(replace(it, **changed) if it == self.before else it for it in constraints)
            return with_spec(pod, topology_spread_constraints=changed_constraints)
        anti = self.kind is RuleKind.ANTI_AFFINITY
        rules = _rules(pod, anti=anti)
        required = rules.required_during_scheduling_ignored_during_execution
        terms = tuple(replace(term, **changed) if term == self.before else term for term in required)
        return _with_rules(pod, replace(rules, required_during_scheduling_ignored_during_execution=terms), anti=anti)


def _with_rules(pod: Pod, new: PodAffinity, *, anti: bool) -> Pod:
    affinity = pod.spec.affinity or Affinity()
    changed = replace(affinity, pod_anti_affinity=new) if anti else replace(affinity, pod_affinity=new)
    return with_spec(pod, affinity=changed)


def _labels_not_in(item: _Rule, other: _Rule) -> str:
    mine, its = (it.label_selector.match_labels if it.label_selector is not None else {} for it in (item, other))
    return ",".join(f"{key}={value}" for key, value in mine.items() if its.get(key) != value)


class PreferTerm(PodStep, frozen=True, kw_only=True):
    """A required pod (anti-)affinity term becomes a preference of the highest weight."""

    _cost = Cost.CONSTRAINT
    number: int  # the number of the term among the pod's present terms, from 1
    selector: str
    rule: PodAffinityTerm
    anti: bool

    @property
    def title(self) -> str:
        kind = "podAntiAffinity" if self.anti else "podAffinity"
        return f"make {kind} term {self.number} ({self.selector or 'every pod'}) preferred instead of required"

    def edit(self, pod: Pod) -> Pod:
        rules = _rules(pod, anti=self.anti)
        required = list(rules.required_during_scheduling_ignored_during_execution)
        if self.rule not in required:
            return pod
        required.remove(self.rule)
        preferred = rules.preferred_during_scheduling_ignored_during_execution
        softer = PodAffinity(
            required_during_scheduling_ignored_during_execution=tuple(required),
            preferred_during_scheduling_ignored_during_execution=(
                *preferred,
                WeightedPodAffinityTerm(weight=100, pod_affinity_term=self.rule),
            ),
        )
        return _with_rules(pod, softer, anti=self.anti)

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        """Apply it to the pods of the same template too: their anti-affinity may exclude the pod."""
        twins = {pod.key: self.edit(pod) for pod in _twins(proposal.pod, snapshot)} if self.anti else {}
        return replace(super().apply(proposal, snapshot), twins={**proposal.twins, **twins})


def _twins(pod: Pod, snapshot: Snapshot) -> Iterator[Pod]:
    """Yield the other pods of the same controller that are on nodes."""
    pods, controller = snapshot.pods, pod.metadata.controller
    if controller is None:
        return
    of_controller = pods.owners.where(lambda owners: controller in owners)
    in_namespace = pods.in_namespace(pod.metadata.namespace)
    for row in np.flatnonzero(of_controller & in_namespace & (pods.node >= 0)).tolist():
        if pods.key(row) != pod.key:
            yield pods[row]


class RaisePriority(PodStep, frozen=True, kw_only=True):
    """Another priority class, whose pods preempt others."""

    _title = "set priorityClassName: {s.name}"
    name: str
    value: int

    def edit(self, pod: Pod) -> Pod:
        policy = PREEMPT_LOWER_PRIORITY
        return with_spec(pod, priority_class_name=self.name, priority=self.value, preemption_policy=policy)


# --- requests and claims


_INJECTED_BY = {
    "istio-proxy": {"cpu": "sidecar.istio.io/proxyCPU", "memory": "sidecar.istio.io/proxyMemory"},
    "linkerd-proxy": {"cpu": "config.linkerd.io/proxy-cpu-request", "memory": "config.linkerd.io/proxy-memory-request"},
    "daprd": {"cpu": "dapr.io/sidecar-cpu-request", "memory": "dapr.io/sidecar-memory-request"},
    "vault-agent": {
        "cpu": "vault.hashicorp.com/agent-requests-cpu",
        "memory": "vault.hashicorp.com/agent-requests-mem",
    },
}
"""Container to resource to the annotation of the pod template that sets the injected request."""


class LowerRequests(PodStep, frozen=True, kw_only=True):
    requests: tuple[edit.ContainerRequest, ...]
    amounts: Mapping[str, int]  # the requests of the whole pod after the change
    is_most: bool = True  # whether each lowered request is at least half of what it was
    is_unchosen: bool = False
    """Whether LimitRanges, autoscalers, or injectors set all lowered requests, and the pod requests more than a node
    has."""

    @classmethod
    def of(cls, pod: Pod, amounts: Mapping[str, int], options: RequestOptions) -> LowerRequests | None:
        """Return the step; None if no single container requests enough to be lowered."""
        requests: list[edit.ContainerRequest] = []
        is_most = True
        for resource, amount in amounts.items():
            lowered = edit.lowered_requests(pod, resource, amount, options)
            if lowered is None:
                return None
            requests += lowered
            is_most = is_most and all(each.after * 2 >= each.before for each in lowered)
        return cls(requests=tuple(requests), amounts=amounts, is_most=is_most) if requests else None

    @property
    def cost(self) -> Cost:
        return Cost.TYPO if self.is_unchosen else Cost.REQUEST if self.is_most else Cost.STOPGAP

    @property
    def title(self) -> str:
        alike = group_pairs((replace(request, container=""), request.container) for request in self.requests)
        explicit = [self._request(request, names) for request, names in alike.items() if not request.source]
        defaulted = [self._request(request, names) for request, names in alike.items() if request.source]
        parts = (("lower", explicit), ("set", defaulted))
        title = " and ".join(f"{verb} {' and '.join(requests)}" for verb, requests in parts if requests)
        return f"{title}, then delete the pod" if self.editing_component.startswith(edit.VERTICAL) else title

    @property
    def editing_component(self) -> str:
        return next((it.source for it in self.requests if it.source.startswith((edit.VERTICAL, edit.INJECTED))), "")

    @staticmethod
    def _request(request: edit.ContainerRequest, names: Sequence[str]) -> str:
        """Return the change of a request that is the same for these containers."""
        before, after = _change_text(request.resource, request.before, request.after)
        kind = "init container" if request.is_init else "container"
        one = f"{kind}{'' if len(names) == 1 else 's'} {list_names(names, len(names), conjunction='and')}"
        if request.source.startswith(edit.VERTICAL):
            return f"maxAllowed.{request.resource} of {one} to {after} in {request.source} (it sets {before})"
        if request.source.startswith(edit.INJECTED):
            key = _INJECTED_BY.get(names[0], {}).get(request.resource, "")
            where = f"by annotation {key} of the pod template" if key else "in the configuration of its injector"
            return f"requests.{request.resource} of injected {one} to {after} {where}"
        if request.source:
            return f"requests.{request.resource} of {one} to {after} ({request.source} sets {before})"
        whose = one if names[0] else "the pod as a whole"
        return f"requests.{request.resource} of {whose} from {before} to {after}"

    def edit(self, pod: Pod) -> Pod:
        return edit.with_requests(pod, self.requests)

    def covers(self, other: LowerRequests) -> bool:
        """Whether this one lowers at least what `other` lowers, and at least as far."""
        mine = self.amounts
        return all(resource in mine and mine[resource] <= amount for resource, amount in other.amounts.items())


def _change_text(resource: str, before: int, after: int) -> tuple[str, str]:
    """Return two amounts as people type them: CPU in the same unit, bytes in the largest unit of each."""
    unit = Unit.of(resource)
    if unit is Unit.BYTE:
        return format_quantity(before, unit), format_quantity(after, unit)
    first, second = format_quantities((before, after), unit)
    return first, second


class CorrectQuantities(PodStep, frozen=True, kw_only=True):
    """Quantities whose suffix is hardly meant, such as `500M` of cpu, as they were probably meant."""

    _cost = Cost.TYPO
    amounts: tuple[UnlikelyQuantity, ...]

    @property
    def title(self) -> str:
        phrases = (f"{it.resource} of container {it.container} to {it.meant}, not {it.written}" for it in self.amounts)
        return f"set {' and '.join(phrases)}"

    def edit(self, pod: Pod) -> Pod:
        meant = {(amount.container, amount.resource, amount.written): amount.meant for amount in self.amounts}
        return edit.with_amounts(
            pod,
            lambda container, amounts: {
                name: meant.get((container, name, str(amount)), amount) for name, amount in amounts.items()
            },
        )


class RequestInstead(PodStep, frozen=True, kw_only=True):
    """A request for a resource that some node offers, in place of one that no node offers."""

    _title = "request {s.meant} instead of {s.resource}"
    resource: str
    meant: str
    is_part: bool = False  # whether nodes offer their hardware in parts of this name

    @property
    def cost(self) -> Cost:
        return Cost.REQUEST if self.is_part else Cost.TYPO

    def edit(self, pod: Pod) -> Pod:
        names = {self.resource: self.meant}
        return edit.with_amounts(
            pod, lambda _, amounts: {names.get(name, name): amount for name, amount in amounts.items()}
        )


class UseClaim(PodStep, frozen=True, kw_only=True):
    """An existing claim with a similar name, in place of one that does not exist; or a bound claim that no pod uses, in
    place of one that no volume matches."""

    claim: str
    meant: str
    volume: str = ""  # the volume to which the claim is bound, if the other claim exists as well

    @property
    def cost(self) -> Cost:
        return Cost.AROUND if self.volume else Cost.TYPO

    @property
    def title(self) -> str:
        bound = f", which is bound to {self.volume} and used by no pod" if self.volume else ""
        return f"use claim {self.meant} instead of {self.claim}{bound}"

    def edit(self, pod: Pod) -> Pod:
        def changed(volume: Volume) -> Volume:
            source = volume.persistent_volume_claim
            if source is None or source.claim_name != self.claim:
                return volume
            return replace(volume, persistent_volume_claim=replace(source, claim_name=self.meant))

        return edit.with_volumes(pod, changed)


class UseDeviceClaim(PodStep, frozen=True, kw_only=True):
    """An existing ResourceClaim with a similar name, in place of one that does not exist."""

    _title = "use resource claim {s.meant} instead of {s.claim}"
    _cost = Cost.TYPO
    claim: str
    meant: str

    def edit(self, pod: Pod) -> Pod:
        return edit.with_device_claim(pod, self.claim, self.meant)


def _is_same(requirement: SelectorRequirement, match: RequirementMatch) -> bool:
    return (requirement.key, requirement.operator, requirement.values) == (match.key, match.operator, match.values)
