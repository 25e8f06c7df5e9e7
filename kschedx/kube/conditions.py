"""Conditions in the status of objects, and the health of a pod's devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from msgspec import Struct, field


class Condition(Struct, frozen=True, kw_only=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""

    @property
    def brief(self) -> Condition:
        """The condition without times and other fields of its kind."""
        return Condition(type=self.type, status=self.status, reason=self.reason, message=self.message)


class ObjectStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    conditions: tuple[Condition, ...] = ()


class TimedCondition(Condition, frozen=True, kw_only=True, rename="camel"):
    last_transition_time: str | None = None


class _DeviceHealth(Struct, frozen=True, kw_only=True):
    resource_id: str = field(default="", name="resourceID")
    health: str = ""  # `Healthy`, `Unhealthy`, or `Unknown`


class ResourceStatus(Struct, frozen=True, kw_only=True):
    name: str = ""  # of the resource
    resources: tuple[_DeviceHealth, ...] = ()


UNSCHEDULABLE = "Unschedulable"  # the reason of a pod's condition PodScheduled after kube-scheduler found no node
DISRUPTION_TARGET = "DisruptionTarget"
"""The type of a pod's condition after it was preempted or evicted; its reason names by whom."""
_C = TypeVar("_C", bound=Condition)


def condition_of(conditions: Iterable[_C], kind: str, *statuses: str) -> _C | None:
    """Return the first condition of the type; with statuses, the first that has one of them."""
    return next((it for it in conditions if it.type == kind and (not statuses or it.status in statuses)), None)


def condition_text(condition: Condition) -> str:
    """Return `SubnetsReady=False (SubnetsNotFound): no subnet matches`, with the whole message."""
    reason = f" ({condition.reason})" if condition.reason else ""
    return f"{condition.type}={condition.status}{reason}{f': {condition.message}' if condition.message else ''}"


def reports_ready(conditions: Iterable[Condition]) -> bool:
    """Return whether the condition Ready is True or absent, as in handwritten manifests."""
    return all(condition.status == "True" for condition in conditions if condition.type == "Ready")
