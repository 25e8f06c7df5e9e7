"""The screen for many pods: its first line, and its note about pods that are explained alone."""

from __future__ import annotations

import pytest

from kschedx.explain.causes import PodAnswer
from kschedx.framework.cycle import Outcome
from kschedx.render.pending import competing_note, pending_sentence


def answers(*outcomes: Outcome | None) -> list[PodAnswer]:
    return [PodAnswer(pod=f"shop/p-{number}", priority=0, outcome=item) for number, item in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([Outcome.SCHEDULED], "1 pod can be scheduled"),
        ([Outcome.UNSCHEDULABLE] * 2, "2 pods are unschedulable"),
        ([None, None], "2 pods are undecided"),
        ([Outcome.GATED], "1 pod is gated"),
        ([Outcome.SCHEDULED, Outcome.UNSCHEDULABLE, Outcome.SCHEDULED], "3 pods: 2 can be scheduled, 1 unschedulable"),
    ],
)
def test_the_first_line(outcomes: list[Outcome | None], expected: str) -> None:
    assert pending_sentence(answers(*outcomes)) == expected


@pytest.mark.parametrize(
    ("outcomes", "is_said"), [([Outcome.SCHEDULED] * 2, True), ([Outcome.SCHEDULED, Outcome.UNSCHEDULABLE], False)]
)
def test_a_note_says_that_competing_pods_are_explained_alone(outcomes: list[Outcome | None], is_said: bool) -> None:
    assert bool(competing_note(answers(*outcomes))) == is_said
