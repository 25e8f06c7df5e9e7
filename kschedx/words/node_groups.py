"""Phrases about node groups of cluster-autoscaler and NodePools of Karpenter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from kschedx.autoscaler.node_groups import group_title
from kschedx.wording import count, list_names

if TYPE_CHECKING:
    from kschedx.autoscaler.cluster import GroupVerdict
    from kschedx.karpenter.cluster import PoolVerdict

MOST_NAMES = 3
SAME = "the recorded event is the same"
_Verdict = TypeVar("_Verdict")


def most_frequent_text(text: str, pods: int | None) -> str:
    """Return what follows the sentence about all pending pods. `pods` is the number of pods for which it is true, or
    None for all."""
    most = "" if pods is None else f"Most often ({count(pods, 'pod')}): "
    return f". {most}{text}" if text else ""


def group_by_headline(verdicts: Iterable[_Verdict], headline: Callable[[_Verdict], str]) -> list[list[_Verdict]]:
    """Return the verdicts in rows of the same headline."""
    together: dict[str, list[_Verdict]] = {}
    for verdict in verdicts:
        together.setdefault(headline(verdict), []).append(verdict)
    return list(together.values())


def names_of(row: Sequence[GroupVerdict | PoolVerdict], noun: str) -> str:
    many = f" ({count(len(row), noun)})" if len(row) > 1 else ""
    return f"{list_names([group_title(verdict.name) for verdict in row], MOST_NAMES)}{many}"


def reasons_by_name(said: Iterable[tuple[Sequence[str], str]]) -> str:
    """Return reasons by group or pool: `spot: in backoff; a and b: Insufficient cpu`."""
    texts = [f"{list_names(list(map(group_title, names)), MOST_NAMES)}: {text}" for names, text in said]
    more = [f"{count(len(texts) - MOST_NAMES, 'more reason')}"] if len(texts) > MOST_NAMES else []
    return "; ".join([*texts[:MOST_NAMES], *more])
