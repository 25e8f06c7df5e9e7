"""The screen of a simulation: what becomes of how many pods, workload by workload, and how full the nodes are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.text import Text

from kschedx.render import terminal
from kschedx.render.drain import drain_lines, each_lines
from kschedx.render.layout import BAD, BLANK, BOLD, DIM, GOOD, columns, cut, line, paragraph
from kschedx.render.units import count, listed
from kschedx.simulate.queue import Step
from kschedx.simulate.simulation import Simulation, WorkloadResult
from kschedx.simulate.ties import OtherOutcomes
from kschedx.simulate.usage import PODS, NodeUse

SHOWN_WORKLOADS = 8
SHOWN_NODES = 3
SHOWN_CAUSES = 3
BAR = 10


def print_simulation(
    simulation: Simulation, *, steps: bool = False, wide: bool = False, ties: str | None = None
) -> None:
    out = terminal.console()
    terminal.write(simulation_lines(simulation, width=out.width, steps=steps, wide=wide, ties=ties), out)


def print_drains(simulation: Simulation, *, each: bool, wide: bool = False) -> None:
    out = terminal.console()
    terminal.write(drains_lines(simulation, width=out.width, each=each, wide=wide), out)


def drains_lines(simulation: Simulation, *, width: int, each: bool, wide: bool = False) -> list[Text]:
    """What stops a drain comes first; of `each` node by itself, a line."""
    if each:
        return each_lines(simulation.drained, width, wide=wide)
    lines: list[Text] = []
    most = None if wide else max(20 // max(len(simulation.drained), 1), 2)
    for drained in simulation.drained:
        lines += [*([BLANK] if lines else []), *drain_lines(drained, width, most)]
    evicted = list(simulation.evictions)
    if evicted:
        lines += [BLANK, *paragraph(f"preemption evicts {listed(evicted, 3)} for them", width)]
    lines += _nodes(simulation, width, wide=wide)
    return lines + _pending(simulation, width, wide=wide)


def simulation_lines(
    simulation: Simulation, *, width: int, steps: bool = False, wide: bool = False, ties: str | None = None
) -> list[Text]:
    """At most 40 lines, unless `wide` or `steps`."""
    lines = paragraph(headline(simulation), width, style=BOLD)
    if simulation.changes:
        lines += paragraph("; ".join(map(str, simulation.changes)), width, first="  after ", style=DIM)
    if ties is not None:
        lines += paragraph(ties, width, first="  ", style=DIM)
    for drained in simulation.drained:
        lines += [BLANK, *drain_lines(drained, width, most=None if wide else 6)]
    lines += _workloads(simulation, width, None if wide else SHOWN_WORKLOADS)
    lines += _nodes(simulation, width, wide=wide)
    lines += _pending(simulation, width, wide=wide)
    if steps:
        lines += _steps(simulation, width)
    return lines


# --- what becomes of how many


def headline(simulation: Simulation) -> str:
    """What becomes of how many pods."""
    placed, pending = len(simulation.placed), len(simulation.pending)
    parts = []
    if not placed and not pending:
        parts.append("no pod is scheduled" if simulation.gated or simulation.of_others else "no pod waits for a node")
    elif not pending:
        every = "both" if placed == 2 else f"all {placed:,}"
        parts.append("1 pod gets a node" if placed == 1 else f"{every} pods get a node")
    elif not placed:
        parts.append(f"none of {count(pending, 'pod')} gets a node" if pending > 1 else "the pod gets no node")
    else:
        stay = "stays" if pending == 1 else "stay"
        parts.append(f"{placed:,} of {placed + pending:,} pods get a node, {pending:,} {stay} pending")
    evicted = list(simulation.evictions)
    if evicted:
        back = sum(simulation.is_recreated(key) and key in simulation.placed for key in evicted)
        told = f"{count(len(evicted), 'pod')} evicted for them"
        parts.append(told + (f", {back:,} of which find another node" if back else ""))
    if simulation.gated:
        parts.append(f"{count(len(simulation.gated), 'pod')} behind scheduling gates")
    if simulation.of_others:
        parts.append(f"{count(len(simulation.of_others), 'pod')} wait for another scheduler")
    if simulation.undecided:
        parts.append(f"{len(simulation.undecided):,} cannot be decided")
    return "; ".join(parts)


# --- a line for each workload


def _workloads(simulation: Simulation, width: int, most: int | None) -> list[Text]:
    results = sorted(simulation.workloads, key=lambda one: (not one.pending, not one.evicted))
    if not results:
        return []
    lines = [BLANK]
    for result in results[:most]:
        lines += _workload(result, width)
    if most is not None and len(results) > most:
        lines.append(line((f"  {count(len(results) - most, 'more workload')}: -o wide shows all", DIM)))
    return lines


def _workload(result: WorkloadResult, width: int) -> list[Text]:
    mark = ("✗ ", BAD) if result.pending else ("✓ ", GOOD)
    parts = []
    if result.pods == 1:
        parts.append(f"→ {next(iter(result.nodes))}" if result.placed else "pending")
    else:
        parts.append(f"{result.pods - len(result.pending):,} of {result.pods:,} run")
        if result.nodes:
            parts.append(f"{len(result.placed):,} newly {_spread(result.nodes)}")
        if result.pending:
            parts.append(f"{len(result.pending):,} pending")
    if result.evicted:
        parts.append(f"{len(result.evicted):,} evicted")
    return paragraph(f"{result.workload.reference}  {' · '.join(parts)}", width, first=mark[0], style="")


def _spread(nodes: Mapping[str, int]) -> str:
    """`node-1 ×3, node-2 and 4 more nodes`."""
    ordered = sorted(nodes.items(), key=lambda item: (-item[1], item[0]))
    told = [name if number == 1 else f"{name} ×{number:,}" for name, number in ordered]
    return f"on {listed(told, 3)}"


# --- nodes before and after


def _nodes(simulation: Simulation, width: int, *, wide: bool) -> list[Text]:
    before, after = simulation.usage_before, simulation.usage_after
    changed = [name for name in after.names if name not in before or before[name].requested != after[name].requested]
    gone = [name for name in before.names if name not in after]
    if not changed and not gone:
        return []
    shown = shown_resources(simulation)
    ordered = sorted(changed, key=lambda name: (-after[name].percent(shown[0]), name))
    if not wide and len(ordered) > 2 * SHOWN_NODES:
        picked: Sequence[str] = (*ordered[:SHOWN_NODES], *ordered[-SHOWN_NODES:])
    else:
        picked = ordered
    rows = [["node", *shown]]
    size = max(width - (BAR + 16) * len(shown) - 2, 12)
    for name in picked:
        use = after[name]
        rows.append([cut(name, size), *(_bar(before.get(name), use, resource) for resource in shown)])
    rows.append(["all nodes", *(_bar(before.total(), after.total(), resource) for resource in shown)])
    lines = [BLANK, *columns(rows, header=True)]
    left = len(ordered) - len(picked)
    if left:
        lines.append(line((f"  {count(left, 'node')} between the fullest and the emptiest: -o wide shows all", DIM)))
    emptied = sorted(after.empty() - before.empty())
    if emptied:
        lines += paragraph(f"empty afterwards: {listed(emptied, 6)}", width)
    if gone:
        lines += paragraph(f"gone: {listed(gone, 6)}", width)
    return lines


def shown_resources(simulation: Simulation) -> tuple[str, ...]:
    """cpu, memory, pods, and what else the pods of the queue ask for, as long as it fits."""
    pods = simulation.run.cluster.pods
    nodes = simulation.run.scheduler.nodes
    asked = pods.requests(nodes.options)
    others = sorted(
        {name for key in simulation.queue for name, number in asked[pods.rows[key]].amounts.items() if number}
    )
    more = [name for name in others if name not in ("cpu", "memory") and name in nodes.resources.index]
    return ("cpu", "memory", PODS, *more[:1])


def _bar(before: NodeUse | None, after: NodeUse, resource: str) -> str:
    """`██████░░░░ 40→62%`."""
    if not after.allocatable.get(resource):
        return "-"
    now = after.percent(resource)
    filled = min(max(round(now * BAR / 100), 0), BAR)
    was = "new" if before is None else f"{before.percent(resource)}"
    told = f"{now}%" if was == f"{now}" else f"{was}→{now}%"
    return f"{'█' * filled}{'░' * (BAR - filled)} {told}"


# --- who stays behind


def _pending(simulation: Simulation, width: int, *, wide: bool) -> list[Text]:
    causes: dict[str, list[str]] = {}
    for pod, message in simulation.messages.items():
        causes.setdefault(message, []).append(pod)
    if not causes:
        return []
    lines = [BLANK]
    ordered = sorted(causes.items(), key=lambda item: -len(item[1]))
    for message, pods in ordered if wide else ordered[:SHOWN_CAUSES]:
        names = ", ".join(pods) if wide else listed(pods, 2)
        lines += paragraph(f"{count(len(pods), 'pod')} pending: {names}", width, first="✗ ", style=BAD)
        lines += paragraph(message or "cannot be scheduled", width, first="  ")
        lines += [line(("  fix       ", DIM), fix) for fix in _fixes(simulation, pods[0], width)]
    if not wide and len(ordered) > SHOWN_CAUSES:
        lines.append(line((f"  {count(len(ordered) - SHOWN_CAUSES, 'more cause')}: -o wide shows all", DIM)))
    return lines


def _fixes(simulation: Simulation, pod: str, width: int) -> Iterable[str]:
    """The first thing that would mend it, in the cluster as it stands in the end."""
    explanation = simulation.explain_now(pod)
    for fix in explanation.fixes[:1] if explanation is not None else ():
        yield cut(f"{fix.title} ({fix.certainty.value})", width - 12)


# --- every decision


def _steps(simulation: Simulation, width: int) -> list[Text]:
    lines = [BLANK, line(("every decision", BOLD))]
    size = len(str(len(simulation.steps)))
    for number, step in enumerate(simulation.steps, start=1):
        lines += paragraph(told_step(step), width, first=f"{number:>{size}}  ")
    return lines


def told_step(step: Step) -> str:
    """One decision in a line."""
    if step.node is not None:
        others = 0 if step.decision is None else len(step.decision.choice) - 1
        return f"✓ {step.key} → {step.names([step.node])[0]}" + (
            f", one of {others + 1:,} equally good" if others else ""
        )
    if step.nominated is not None:
        victims = listed(step.victim_keys, 4)
        return f"✗ {step.key} evicts {victims or 'nobody'} from {step.names([step.nominated])[0]}"
    return f"✗ {step.key} stays pending: {step.message}"


def ties_text(found: OtherOutcomes) -> str:
    """Whether it matters how ties fall."""
    if not found.ties:
        return "no decision is a matter of chance"
    decisions = f"{count(found.ties, 'decision')} {'is' if found.ties == 1 else 'are'} a matter of chance"
    first, least, most = found.placed[0], min(found.placed), max(found.placed)
    if least == most:
        return f"{decisions}; with {found.tried} other lots as many pods are placed, {first:,}"
    return f"{decisions}; with {found.tried} other lots {least:,} to {most:,} pods are placed"
