"""What all states have in common, and pods as a fact of a state: their number, end, or what keeps them."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from kschedx.wording import count, list_names


class StateFacts(Struct, frozen=True, kw_only=True, rename="camel"):
    """The facts about a state. `subject` is `shop/web-0`, or `shop/deploy/web` for a workload."""

    is_open: ClassVar[bool] = False  # whether the answer includes where the pod would go once the state ends

    subject: str


def share_of(number: int, wanted: int) -> str:
    """Return how many of its pods a workload has, such as `8 of 12`; empty if it has none or all."""
    return f"{number:,} of {wanted:,}" if 0 < number < wanted else ""


class Running(StateFacts, frozen=True, kw_only=True):
    """A workload whose pods run in a cluster whose nodes were not read."""

    does: str  # `runs its only pod: db-0 on n1`
    because: str
    command: str = ""  # reads the nodes


class CommonEnd(Struct, frozen=True, omit_defaults=True):
    """How most of the failed pods of a Job ended: `container app ended with OOMKilled, exit code 137`."""

    number: int = 0
    end: str = ""

    @property
    def text(self) -> str:
        return f"{count(self.number, 'pod')} failed: {self.end}" if self.end else ""


class KeptPods(Struct, frozen=True):
    """Pods that keep a namespace or workload in deletion: by their finalizer, or by a lost node."""

    pods: tuple[str, ...]
    finalizer: str = ""
    node: str = ""

    @property
    def text(self) -> str:
        by = f"finalizer {self.finalizer}" if self.finalizer else f"the kubelet of {self.node} does not respond and"
        return f"{by} keeps {count(len(self.pods), 'pod')}: {list_names(self.pods, 3)}"
