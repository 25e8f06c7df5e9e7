"""The Simulation document (`-o json`)."""

from __future__ import annotations

from kschedx.answer.document import source_document
from kschedx.framework.cycle import Outcome
from kschedx.simulate.queue import Step
from kschedx.simulate.simulation import Simulation, WorkloadResult

Json = dict[str, object]


def document(simulation: Simulation) -> Json:
    """Keys are a contract: they are added, never changed. Numbers are integers."""
    before, after = simulation.usage_before, simulation.usage_after
    names = dict.fromkeys((*before.names, *after.names))
    return {
        "apiVersion": "kschedx/v1",
        "kind": "Simulation",
        "kubernetesVersion": simulation.setup.release.version,
        "source": source_document(simulation.before.source),
        "changes": [str(change) for change in simulation.changes],
        "steps": [_step(step) for step in simulation.steps],
        "placed": dict(simulation.placed),
        "pending": list(simulation.pending),
        "gated": list(simulation.gated),
        "ofOtherSchedulers": list(simulation.of_others),
        "evicted": dict(simulation.evictions),
        "drains": [drained.to_dict() for drained in simulation.drained],
        "workloads": [_workload(result) for result in simulation.workloads],
        "nodes": {
            name: {
                "before": before[name].to_dict() if name in before else None,
                "after": after[name].to_dict() if name in after else None,
            }
            for name in names
        },
    }


def _step(step: Step) -> Json:
    told: Json = {"pod": step.key}
    decision = step.decision
    if decision is None:
        return told | {"outcome": "Undecided", "message": step.undecided}
    told |= {"outcome": decision.outcome.value}
    if decision.outcome is Outcome.SCHEDULED:
        assert step.node is not None, "who is scheduled has a node"
        return told | {"bestNodes": sorted(step.names(decision.best.tolist())), "node": step.names([step.node])[0]}
    told |= {"message": decision.message}
    if step.nominated is None:
        return told
    return told | {
        "nominatedNode": step.names([step.nominated])[0],
        "tiedCandidates": sorted(step.names(step.tied)),
        "victims": sorted(step.victim_keys),
    }


def _workload(result: WorkloadResult) -> Json:
    workload = result.workload
    return {
        "kind": workload.kind,
        "namespace": workload.namespace,
        "name": workload.name,
        "pods": result.pods,
        "placed": list(result.placed),
        "nodes": dict(result.nodes),
        "pending": list(result.pending),
        "evicted": list(result.evicted),
        "message": result.message,
    }
