"""Which pods Karpenter looks at, and why it passes over the others.

Upstream: pkg/utils/pod (IsProvisionable, IsReschedulable), Validate in provisioner.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from kschedx.api.integers import parse_int64
from kschedx.api.karpenter import CAPACITY_TYPE, NODE_POOL
from kschedx.api.names import label_key_errors, label_value_errors
from kschedx.api.selectors import NodeSelectorRequirement
from kschedx.api.types import Pod
from kschedx.karpenter.labels import (
    CAPACITY_TYPES,
    NORMALIZED,
    is_reserved,
    reserved_domains,
    well_known,
)
from kschedx.karpenter.nodes import is_of_daemon_set, is_static
from kschedx.karpenter.preferences import requirements_of
from kschedx.karpenter.volumes import refusal
from kschedx.snapshot.storage import Storage

UNSCHEDULABLE = "Unschedulable"
_BOUNDS = ("Gt", "Lt")


class Outcome(StrEnum):
    """What Karpenter does with a pod that waits."""

    CONSIDERED = "considered"
    NOT_MARKED = "not-marked-unschedulable"
    NOMINATED = "nominated"
    DAEMON_SET = "daemonset"
    STATIC = "static"
    AVOIDS_KARPENTER = "avoids-karpenter"
    REFUSED = "refused"
    """With an event that says why."""
    NO_POOLS = "no-pools"
    WAITING = "waiting-for-nodeclaim"


class Looked(Struct, frozen=True, kw_only=True):
    outcome: Outcome
    reason: str = ""
    """In Karpenter's words, where it says something."""


def look_at(pod: Pod, storage: Storage, group: str) -> Looked:
    """`group` is that of the cluster's node classes."""
    is_written = not pod.status.phase  # by hand: no API server has stored it, and no scheduler has seen it
    if not is_written and not any(
        one.type == "PodScheduled" and one.reason == UNSCHEDULABLE for one in pod.status.conditions
    ):
        return Looked(outcome=Outcome.NOT_MARKED)
    if pod.status.nominated_node_name:
        return Looked(outcome=Outcome.NOMINATED)
    if is_of_daemon_set(pod.metadata.owner_references):
        return Looked(outcome=Outcome.DAEMON_SET)
    if is_static(pod.metadata.owner_references):
        return Looked(outcome=Outcome.STATIC)
    pool = requirements_of(pod, prefers=True).get(NODE_POOL)
    if pool is not None and pool.operator == "DoesNotExist":
        return Looked(outcome=Outcome.AVOIDS_KARPENTER)
    wrong = [*_selector_errors(pod, group)]
    wrong += filter(None, [refusal(pod, storage)])
    return Looked(outcome=Outcome.REFUSED, reason="; ".join(wrong)) if wrong else Looked(outcome=Outcome.CONSIDERED)


def _selector_errors(pod: Pod, group: str) -> Iterator[str]:
    """Of the node selector and the required terms."""
    for key, value in sorted(pod.spec.node_selector.items()):
        yield from _requirement_errors(NodeSelectorRequirement(key=key, operator="In", values=(value,)), group)
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in required.node_selector_terms if required is not None else ():
        if term.match_fields:
            yield "node selector term with matchFields is not supported"
        for one in term.match_expressions:
            yield from _requirement_errors(one, group)


def _requirement_errors(one: NodeSelectorRequirement, group: str) -> Iterator[str]:
    key = NORMALIZED.get(one.key, one.key)
    if is_reserved(key, group):
        known, domains = " ".join(sorted(well_known(group))), " ".join(reserved_domains(group))
        yield (
            f"using label {key} is not allowed as it might interfere with the internal provisioning logic; specify a "
            f"well known label: [{known}], or a custom label that does not use a restricted domain: [{domains}]"
        )
    if key == CAPACITY_TYPE and one.operator == "In" and not set(one.values) & set(CAPACITY_TYPES):
        named, known = " ".join(one.values), " ".join(f"{name}:{{}}" for name in CAPACITY_TYPES)
        yield f"no valid values found in [{named}] for {key}, expected one of: map[{known}], got: [{named}]"
    for error in label_key_errors(key):
        yield f"key {key} is not a qualified name, {error}"
    for value in one.values:
        for error in label_value_errors(value):
            yield f"invalid value {value} for key {key}, {error}"
    if one.operator == "In" and not one.values:
        yield f"key {key} with operator In must have a value defined"
    if one.operator in _BOUNDS and ((len(one.values) != 1) or (parse_int64(one.values[0]) or 0) < 0):
        yield f"key {key} with operator {one.operator} must have a single positive integer value"
