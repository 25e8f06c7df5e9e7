"""The answer once a fix is made keeps what the fix promises."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.fixes import FixCertainty
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.explanation import Explanation
from tests.golden.stories import STORIES, Story


def asked(story: Story) -> Explanation:
    return kschedx.explain(kschedx.load(str(story.cluster)), story.manifest, config=story.configuration)


@pytest.mark.parametrize(
    "story", [one for one in STORIES if one.manifest["kind"] == "Pod"], ids=lambda story: story.name
)
def test_a_verified_fix_puts_the_pod_on_a_node_that_it_names(story: Story) -> None:
    answer = asked(story)
    for fix in answer.fixes:
        if fix.certainty is FixCertainty.VERIFIED:
            after = answer.after(fix)
            assert after.outcome is Outcome.SCHEDULED, fix.title
            assert set(after.chosen_nodes) <= set(fix.feasible_nodes), fix.title
