"""A loop that repeats decisions of a similar loop equals one that makes its own."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kschedx.autoscaler.loop import Loop
from kschedx.autoscaler.pods import PodOutcome
from kschedx.autoscaler.run import Autoscaling
from kschedx.autoscaler.state import LoopMemory
from kschedx.kube.types import PodSpec, Toleration
from tests.autoscaler.loops import Json, cases, state_of

TOLERATES_ALL = (Toleration(operator="Exists"),)


def changed_specs(spec: PodSpec) -> list[PodSpec]:
    """Return the spec so that the pod fits more nodes, none, or is decided earlier than the others."""
    first = spec.containers[0]
    amounts = (first, replace(first, resources=replace(first.resources, requests={"cpu": "9000"})))
    smaller, larger = (replace(spec, containers=(each,), tolerations=TOLERATES_ALL) for each in amounts)
    return [replace(smaller, node_selector={}), larger, replace(spec, priority=(spec.priority or 0) + 1)]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "case", [item for item in cases() if item["expect"].get("pods")], ids=lambda case: case["name"]
)
def test_a_trial_with_another_spec_equals_its_own_loop(case: Json) -> None:
    state = state_of(case)
    _ = Loop(state).result
    for row in state.pending_order.unschedulable[:2]:
        for spec in changed_specs(state.pods.specs[row]):
            then = replace(state.snapshot, pods=state.pods.with_spec(row, spec), _tables={})
            framework = state.framework.on(then)
            shared, own = (
                Autoscaling(
                    answer=Loop(replace(state, framework=framework, memory=memory)).result, pods=then.pods
                ).to_dict()
                for memory in (state.memory, LoopMemory())
            )
            assert shared == own


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "case", [item for item in cases() if item["expect"].get("pods")], ids=lambda case: case["name"]
)
def test_rejections_are_those_of_each_template_alone(case: Json) -> None:
    loop = Loop(state_of(case))
    considered = [pod.row for pod in loop.result.pods if pod.outcome is PodOutcome.CONSIDERED]
    for row in considered[:5]:
        for group, statuses in loop.rejections(row).items():
            with loop._sandbox.fork():
                alone = loop._sandbox.rejections(row, loop._sandbox.add(loop._new_nodes[group]))
            assert statuses == alone
