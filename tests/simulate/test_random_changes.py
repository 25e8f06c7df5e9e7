"""The report of random changes agrees with the final cluster."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random

import pytest

from kschedx.errors import InputError
from kschedx.explain.setup import Setup
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.simulation_answer import SimulationAnswer
from kschedx.inquiry.what_if import simulate
from kschedx.render.simulation import simulation_lines
from kschedx.simulate.apply import ClusterChanges
from kschedx.simulate.changes import ChangeVerb, parse_changes
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.snapshot import Snapshot
from tests.command import check_document
from tests.simulate.clusters import shop
from tests.simulate.test_rollouts import CPU, daemons, stateful


def some_change(dice: Random) -> dict[str, object]:
    node, cpu = f"node-{dice.randint(1, 5)}", dice.choice(["500m", "1", "2", "3", "5", "9"])
    verb, text = dice.choice(
        [
            ("set", f"{dice.choice(['deploy/web', 'deploy/batch', 'sts/db', 'ds/agent'])}:{CPU}={cpu}"),
            ("set", f"sts/db:spec.podManagementPolicy={dice.choice(['Parallel', 'OrderedReady'])}"),
            ("set", f"sts/db:spec.updateStrategy.rollingUpdate.partition={dice.randint(0, 4)}"),
            ("set", f"ds/agent:spec.updateStrategy.rollingUpdate.maxSurge={dice.randint(0, 2)}"),
            ("set", f"deploy/web:spec.strategy.type={dice.choice(['Recreate', 'RollingUpdate'])}"),
            ("scale", f"{dice.choice(['deploy/web', 'sts/db'])}={dice.randint(0, 8)}"),
            (dice.choice(["drain", "cordon", "uncordon", "remove-node"]), node),
            ("taint", f"{node}:a=b:{dice.choice(['NoExecute', 'NoSchedule'])}"),
            ("delete", dice.choice(["deploy/web", "sts/db", "pod/db-0", "pod/web-0"])),
            ("add-nodes", f"{dice.randint(1, 3)}={node}"),
        ]
    )
    return {verb: text}


def question(dice: Random) -> tuple[Snapshot, list[dict[str, object]]]:
    """Return a cluster and changes, some of which may be impossible because others remove their objects."""
    db = stateful(["node-1", "node-2", dice.choice(["node-3", None])])
    snapshot = Snapshot.from_objects([*shop(), *db, *daemons(["node-1", "node-2", "node-3", "node-4"])])
    return snapshot, [some_change(dice) for _ in range(dice.randint(1, 5))]


def simulated(seed: int) -> Simulation | None:
    """Return the result, or None if a change is impossible."""
    dice = Random(seed)
    snapshot, written = question(dice)
    options = SimulationOptions(recreate=dice.random() < 0.8, force=True)
    try:
        wanted = parse_changes(written, lambda path: [])
        return simulate(snapshot, Setup.of_cluster(snapshot), wanted, options=options, namespace="shop")
    except InputError:
        return None


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(40))
def test_the_report_agrees_with_the_final_cluster(seed: int) -> None:
    simulation = simulated(seed)
    if simulation is None:
        return
    pods = simulation.after.pods
    keys = [pods.key(row) for row in range(len(pods))]
    assert len(keys) == len({*keys})
    assert not [key for key in keys if "~" in key], "every pod of a StatefulSet has its own name"
    assert {key: pods.node_names[pods.rows[key]] for key in simulation.placed} == simulation.placed
    assert {pods.key(row) for row in pods.pending} == {
        *simulation.pending,
        *simulation.gated,
        *simulation.of_other_schedulers,
    }
    check_document(json.loads(json.dumps(simulation.to_dict())))
    assert max(line.cell_len for line in simulation_lines(SimulationAnswer(simulation=simulation), width=80)) <= 80


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(40))
def test_a_reverted_simulator_decides_as_before(seed: int) -> None:
    """The next decisions are those of the mark, whatever changed in between."""
    snapshot, written = question(Random(seed))
    simulator = Simulator(snapshot, Setup.of_cluster(snapshot), SimulationOptions())
    mark = simulator.mark()

    def settled() -> dict[str, str]:
        simulator.settle()
        pods = simulator.after.pods
        return {pods.key(row): pods.node_names[row] for row in range(len(pods))}

    expected = settled()
    simulator.revert(mark)
    by_hand = ClusterChanges(simulator, "shop")
    for change in parse_changes(written, lambda path: []):
        if change.verb is not ChangeVerb.DRAIN:
            with suppress(InputError):
                by_hand.apply(change)
    settled()
    simulator.revert(mark)
    assert simulator.after.workloads == snapshot.workloads
    assert settled() == expected
