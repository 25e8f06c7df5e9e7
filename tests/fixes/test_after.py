"""The answer after a fix equals its promise."""

from __future__ import annotations

import pytest

from kschedx.fixes import FixCertainty
from kschedx.framework.cycle import Outcome
from tests.golden.stories import OF_PODS, Story, explained


@pytest.mark.sample(4)
@pytest.mark.parametrize("story", OF_PODS, ids=lambda story: story.name)
def test_a_verified_fix_puts_the_pod_on_a_node_that_it_names(story: Story) -> None:
    answer = explained(story)
    for fix in answer.fixes:
        if fix.certainty is FixCertainty.VERIFIED:
            after = answer.after_fix(fix)
            assert after.outcome is Outcome.SCHEDULED, fix.title
            assert set(after.chosen_nodes) <= set(fix.feasible_nodes), fix.title
