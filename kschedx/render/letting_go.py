"""What would let a drain go on, in words and as kubectl's commands."""

from __future__ import annotations

import json
from shlex import quote
from typing import assert_never

from kschedx.render.units import count
from kschedx.simulate.letting_go import LetsGo, MoreReplicas, SmallerBudget, Step, WithoutBudget


def title(found: LetsGo) -> str:
    """`scale shop/deploy/web to 4 (verified: all 3 nodes can be drained)`."""
    if found.of == 1:
        seen = "verified" if found.done else "verified: then no budget stops it"
    elif found.done == found.of:
        seen = f"verified: all {count(found.of, 'node')} can be drained"
    else:
        seen = f"verified: no budget stops them, {found.done:,} of {count(found.of, 'node')} can be drained"
    return f"{', '.join(map(_told, found.steps))} ({seen})"


def commands(found: LetsGo) -> tuple[str, ...]:
    """As kubectl takes them."""
    return tuple(map(_command, found.steps))


def document_of(found: LetsGo) -> dict[str, object]:
    return {
        "title": ", ".join(map(_told, found.steps)),
        "commands": list(commands(found)),
        "drained": found.done,
        "of": found.of,
    }


def _told(step: Step) -> str:
    match step:
        case MoreReplicas():
            return f"scale {step.workload.reference} to {step.replicas:,}"
        case SmallerBudget():
            wanted = ", ".join(f"{field} {value}" for field, value in step.fields.items() if value is not None)
            return f"let budget {step.namespace}/{step.name} spare one more pod ({wanted})"
        case WithoutBudget():
            return f"delete budget {step.namespace}/{step.name}, beside which the pod has another"
        case _:
            assert_never(step)


def _command(step: Step) -> str:
    match step:
        case MoreReplicas(workload=workload, replicas=replicas):
            kind = workload.reference.split("/")[1]
            target = quote(f"{kind}/{workload.name}")
            return f"kubectl scale {target} -n {quote(workload.namespace)} --replicas={replicas}"
        case SmallerBudget():
            patch = json.dumps({"spec": step.fields}, separators=(",", ":"))
            return f"kubectl patch pdb {quote(step.name)} -n {quote(step.namespace)} --type merge -p {quote(patch)}"
        case WithoutBudget():
            return f"kubectl delete pdb {quote(step.name)} -n {quote(step.namespace)}"
        case _:
            assert_never(step)
