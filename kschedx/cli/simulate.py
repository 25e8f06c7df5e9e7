"""`kschedx simulate`: schedule all pending pods, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kschedx.cli import connection
from kschedx.cli.options import DECIDES, OUT, Command, OptionGroup, flag, value
from kschedx.cli.output import ALL, Answer, Format, Report, option
from kschedx.cli.question import Question, print_open_counts
from kschedx.cli.streams import print_note
from kschedx.controllers.states import decision_name, row_named
from kschedx.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kschedx.explain.setup import Setup
    from kschedx.inquiry.autoscalers import Growth, NewNodes
    from kschedx.inquiry.simulation import Simulation
    from kschedx.simulate.changes import SimulatedChange
    from kschedx.simulate.simulator import SimulationOptions
    from kschedx.snapshot.snapshot import Snapshot

COMMAND = Command(
    "Place pending pods after changes: what if?",
    (*DECIDES, OptionGroup.KUEUE, OptionGroup.CHANGES, OptionGroup.DRAINING),
    help="""Place all pending pods, one after the other, after changes that you name.

\b
Examples:
  kschedx simulate                               # the pending pods
  kschedx simulate --scale deploy/web=40 -n shop # does every pod fit
  kschedx simulate --scale deploy/web=40 --add-nodes 3=node-1
  kschedx simulate --restart deploy/web          # is there room to restart it
  kschedx simulate --remove-node node-7 --cordon node-8
  kschedx simulate -f app.yaml --steps           # every decision
  kschedx simulate --autoscale                   # with new nodes
  kschedx simulate --changes friday.yaml -o json
  kschedx simulate --drain node-7 --out after.json.gz
  kschedx simulate --goal 'fits big-pod.yaml'    # which pods to move

The options under "What if" change the cluster first, in the order given. Controllers recreate pods that preemption
or a drain evicts. If nodes tie, the first name is taken. A pod that fits no node is retried after each change; a queue
that has not ended after 1,000 rounds is an error.

If the cluster has Workloads of Kueue, Kueue admits them in its order and evicts victims, cycle by cycle. The pods of
admitted Workloads are created, or their gates removed, and scheduled. Kueue's configuration is that of --kueue-config,
else that of the ConfigMap kueue-manager-config.

Exit codes: 0 every pod has a node, 1 a pod or Workload stays pending, gated, suspended, or refused, or a rollout
stalls, 2 usage or input error, 3 undecided, or a pod has another scheduler.
""",
)


def simulate(
    output: Format | None = option(
        *ALL, text="wide shows every pod, workload and node; json and yaml the whole document; name every pod's node"
    ),
    steps: bool = flag("List every decision in order.", "--steps"),
    no_recreate: bool = flag("Do not recreate evicted pods.", "--no-recreate"),
    seed: int | None = value("N", "Break ties at random, reproducibly.", min=0),
    ties: str | None = value(
        "all", "Report how many other outcomes are possible, and whether each places as many pods."
    ),
    out: str | None = OUT,
    autoscale: bool = flag(
        "Let cluster-autoscaler, Karpenter, or both add nodes until they add no more.", "--autoscale"
    ),
    goal: str | None = value(
        "'fits FILE'",
        "Move pods so that those of a manifest fit: the fewest evictions, within budgets and priorities, "
        "and every evicted pod finds a node.",
    ),
    *,
    question: Question,
) -> Answer:
    from kschedx.cli.files import check_name, write_snapshot
    from kschedx.inquiry.autoscalers import autoscalers_of, options_after
    from kschedx.inquiry.manifests import objects_of
    from kschedx.inquiry.simulation_answer import SimulationAnswer
    from kschedx.inquiry.stalled_drain import simulated_drain_remedies
    from kschedx.inquiry.what_if import other_outcomes
    from kschedx.inquiry.what_if import simulate as simulated
    from kschedx.simulate.moves import parse_goal
    from kschedx.simulate.simulator import SimulationOptions
    from kschedx.snapshot.edits import with_pods

    if out is not None:
        check_name("--out", out)
    if ties not in (None, "all"):
        raise InputError(f'--ties: found "{ties}", allowed is "all"')
    wanted = None if goal is None else parse_goal(goal, objects_of)
    reached = question.read_to_decide()
    snapshot, setup = reached.snapshot, question.setup(reached.snapshot)
    options = SimulationOptions(
        recreate=not no_recreate, seed=seed, force=question.force, delete_emptydir_data=question.delete_emptydir_data
    )

    growing = _Growing(question, snapshot, setup)
    grows_last = autoscale and wanted is None and bool(question.changes)
    if autoscale and not grows_last:
        added = growing.grow(snapshot, ())
        snapshot = with_pods(added.add_to(snapshot), added.pods)

    def run(options: SimulationOptions, changes: Sequence[SimulatedChange] = question.changes) -> Simulation:
        grow = growing.grow if grows_last else None
        namespace = reached.namespace
        return simulated(snapshot, setup, changes, options=options, namespace=namespace, goal=wanted, grow=grow)

    simulation = run(options)
    simulation.autoscaling = options_after(question.autoscaling, growing.growths)
    if question.node_groups is not None:
        for note in autoscalers_of(snapshot, question.autoscaling, setup.scheduler)[1]:
            print_note(note.text)
    connection.print_notes(snapshot, setup)
    if (then := simulation.run.cluster.snapshot).pod_groups:
        rows = then.pods.rows
        connection.print_ignored_groups(then, setup, (then.pods[rows[pod]] for pod in simulation.placed if pod in rows))
    print_open_counts(simulation)
    other = other_outcomes(simulation, options, run) if ties else None
    if out is not None:
        write_snapshot(out, simulation.after)
    answer = SimulationAnswer(
        simulation=simulation,
        growths=growing.growths,
        other_outcomes=other,
        has_steps=steps,
        remedies=simulated_drain_remedies(simulation, options, run),
    )
    report = Report.of(
        answer, names=lambda: [f"{pod} node/{node}" for pod, node in simulation.placed.items()] + [*simulation.pending]
    )
    return Answer(report, row_named(decision_name(simulation.overall)).exit_code)


class _Growing:
    """The nodes that autoscalers add: every outcome of a simulation gets those of the first."""

    def __init__(self, question: Question, before: Snapshot, setup: Setup) -> None:
        self._question, self._before, self._setup = question, before, setup
        self._added: NewNodes | None = None
        self.growths: tuple[Growth, ...] = ()

    def grow(self, after: Snapshot, pending: Iterable[str]) -> NewNodes:
        """Raises `InputError` for a cluster without an autoscaler."""
        from kschedx.inquiry.autoscalers import growths_after

        if self._added is None:
            self._added, self.growths = growths_after(
                self._before, after, pending, self._question.autoscaling, self._setup.scheduler
            )
        if not self.growths:
            hint = "cluster-autoscaler writes ConfigMap kube-system/cluster-autoscaler-status; Karpenter has NodePools"
            raise InputError("--autoscale: neither cluster-autoscaler nor Karpenter is in the snapshot", hint=hint)
        return self._added
