"""Fixes of a blocked drain, in words and as kubectl's commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from kschedx.controllers.disruption_budgets import ALWAYS, BudgetStatus
from kschedx.inquiry.pending_pods import PendingStory, SharedFixes
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.stalled_drain import (
    BudgetStep,
    DrainFix,
    EvictUnhealthy,
    MoreReplicas,
    OutOfService,
    SmallerBudget,
    WithoutBudget,
)
from kschedx.kube.documents import Document
from kschedx.kube.escaping import shell_command, why_command
from kschedx.kube.types import OUT_OF_SERVICE
from kschedx.render.fixes import fix_lines, story_fix_lines, story_reason
from kschedx.render.terminal import BLANK, DIM, SEPARATOR, StyledLine, line, more, paragraph, title_lines
from kschedx.render.view import Fix, Tone
from kschedx.render.wording import Fact, count, listed
from kschedx.simulate.drain import REFUSES, STAYS, DrainedPod, DrainOutcome, DrainResult


def drain_remedy_title(fix: DrainFix) -> str:
    """`scale shop/deploy/web to 4 · all 3 nodes can be drained`."""
    if fix.of == 1:
        seen = "the node can be drained"
    elif fix.done == fix.of:
        seen = f"all {count(fix.of, 'node')} can be drained"
    else:
        seen = f"{fix.done:,} of {count(fix.of, 'node')} can be drained"
    return f"{', '.join(map(_remedy_step_text, fix.steps))} · {seen}"


def drain_remedy_commands(fix: DrainFix) -> tuple[str, ...]:
    return tuple(_remedy_command(step) for step in fix.steps if not (isinstance(step, SmallerBudget) and step.manager))


class BudgetFixDocument(Document, frozen=True):
    title: str
    commands: tuple[str, ...]
    drained: int
    of: int


def drain_remedy_document(fix: DrainFix) -> BudgetFixDocument:
    title = ", ".join(map(_remedy_step_text, fix.steps))
    return BudgetFixDocument(title, tuple(drain_remedy_commands(fix)), fix.done, fix.of)


def _remedy_step_text(step: BudgetStep) -> str:
    match step:
        case MoreReplicas():
            return f"scale {step.workload.reference} to {step.replicas:,}"
        case SmallerBudget():
            return _budget_change(step)
        case EvictUnhealthy():
            return f"set unhealthyPodEvictionPolicy of PDB {step.namespace}/{step.name} to {ALWAYS}"
        case OutOfService(node=node):
            return f"taint {node} out of service if it is shut down, else repair its kubelet"
        case WithoutBudget():
            return f"delete PDB {step.namespace}/{step.name}, since another PDB covers the same pod"
        case _:
            assert_never(step)


def _budget_change(step: SmallerBudget) -> str:
    name = f"PDB {step.namespace}/{step.name}"
    [(field, value)] = [(field, value) for field, value in step.fields.items() if value is not None]
    if field not in step.before:
        old = ", ".join(f"{field} {value}" for field, value in step.before.items())
        return f"replace {old} of {name} with {field} {value}"
    verb = "lower" if field == "minAvailable" else "raise"
    there = f", in {step.manager}, which manages the PDB and undoes other changes of it" if step.manager else ""
    return f"{verb} {field} of {name} from {step.before[field]} to {value}{there}"


def _remedy_command(step: BudgetStep) -> str:
    match step:
        case MoreReplicas(workload=workload, replicas=replicas):
            target = f"{workload.reference.split('/')[1]}/{workload.name}"
            return shell_command("kubectl scale {} -n {} --replicas={}", target, workload.namespace, str(replicas))
        case SmallerBudget():
            return _patch_command(step, step.fields)
        case EvictUnhealthy():
            return _patch_command(step, {"unhealthyPodEvictionPolicy": ALWAYS})
        case OutOfService(node=node):
            return shell_command("kubectl taint node {} {}=nodeshutdown:NoExecute", node, OUT_OF_SERVICE)
        case WithoutBudget():
            return shell_command("kubectl delete pdb {} -n {}", step.name, step.namespace)
        case _:
            assert_never(step)


def _patch_command(step: SmallerBudget | EvictUnhealthy, fields: Mapping[str, object]) -> str:
    return shell_command("kubectl patch pdb {} -n {} --type merge -p {}", step.name, step.namespace, {"spec": fields})


# The result of a drain, in lines.

MOST_NODES = 8
MOST_CAUSES = 8


StrandedStory = Callable[[DrainResult], PendingStory | None]
"""Returns why evicted pods fit no other node, and what fixes it; None if there are no such pods."""


def stranded_stories(simulation: Simulation) -> StrandedStory:
    """Return the stories of the drains, each of which is computed once."""
    known: dict[str, PendingStory | None] = {}

    def story_of(drained: DrainResult) -> PendingStory | None:
        if drained.node not in known:
            scene, pods = simulation.scenes.get(drained.node), tuple(pod.pod for pod in drained.pending)
            is_stranded = scene is not None and pods
            known[drained.node] = SharedFixes(simulation, scene).story(pods) if is_stranded else None
        return known[drained.node]

    return story_of


def several_lines(
    simulation: Simulation,
    lets_go: Sequence[DrainFix],
    forced: Mapping[str, DrainResult],
    width: int,
    most: int | None,
    nodes: int,
    *,
    story_of: StrandedStory,
    wide: bool = False,
) -> list[StyledLine]:
    """Return the result for several nodes: how many can be drained, what unblocks the others, the blocked nodes, then a
    line for each of the others.

    At most `nodes` of each are shown, unless `wide`. `forced` maps nodes to the drains that kubectl refuses, with the
    flags that it requires.
    """
    drained = simulation.drained
    fixes = fix_lines(tuple(map(drain_fix, lets_go)), "", width)

    def story(result: DrainResult) -> list[StyledLine]:
        its = fixes if len(drained) == 1 else ()
        lines = drain_lines(result, width, most, story_of(result), its)
        if result.is_refused and result.node in forced:
            then = forced[result.node]
            lines += paragraph(f"with {_flags(result, then)}: {verdict(then)}", width, first="  ", indent=4)
        return lines

    if len(drained) == 1:
        return story(drained[0])
    good = [drain for drain in drained if drain.is_done]
    bad = [drain for drain in drained if not drain.is_done]
    lines = [*title_lines(drains_headline(drained), Tone.BAD if bad else Tone.GOOD, width), *fixes]
    if wide:
        return [*lines, *(line for drain in drained for line in [BLANK, *story(drain)])]
    for drain_result in bad[:nodes]:
        lines += [BLANK, *story(drain_result)]
    lines += more(len(bad) - nodes, "node", " that cannot")
    lines += [BLANK] if good else []
    for drain_result in good[:nodes]:
        lines += paragraph(f"{drain_result.node}: {shared_verdict(drain_result)}", width, first="✓ ")
    return lines + more(len(good) - nodes, "node", " that can")


def drain_fix(fix: DrainFix) -> Fix:
    title, _, seen = drain_remedy_title(fix).partition(SEPARATOR)
    return Fix(title=title, seen=seen, commands=drain_remedy_commands(fix))


def drains_headline(drained: Sequence[DrainResult]) -> str:
    """Return the verdict about one node, or how many of several can be drained."""
    if len(drained) == 1:
        return f"{drained[0].node}: {verdict(drained[0])}"
    return f"{sum(result.is_done for result in drained):,} of {count(len(drained), 'node')} can be drained"


def drain_facts(drained: DrainResult, story: PendingStory | None = None, *, with_pods: bool = True) -> Iterator[Fact]:
    """Yield why kubectl or a budget blocks the drain, and which pods fit no other node. Without the names of the pods,
    other nodes may have the same facts."""

    def about(pods: Sequence[str], phrase: str) -> str:
        return f"{listed(pods, 3)}: {phrase}" if with_pods else phrase

    if drained.is_refused:
        refused: dict[str, list[str]] = {}
        for pod in drained.of(*REFUSES):
            refused.setdefault(pod.message, []).append(pod.pod)
        for phrase, pods in refused.items():
            yield Fact(label="refused", items=(f"{phrase}: {listed(pods, 3)}" if with_pods else phrase,))
        return
    for key, finalizers in drained.finalizers.items():
        names = f"finalizer {finalizers[0]}" if len(finalizers) == 1 else f"finalizers {listed(finalizers, 3)}"
        yield Fact(label="blocked", items=(about([key], f"it is being deleted, and its {names} keeps it"),))
    if drained.is_silent and drained.is_unconfirmed:
        its = [drained_pod.pod for drained_pod in drained.unconfirmed]
        phrase = f"the kubelet of {drained.node} does not answer, so no deletion is confirmed"
        yield Fact(label="blocked", items=(about(its, phrase),))
        if kept := [drained_pod.pod for drained_pod in drained.of(DrainOutcome.TERMINATING)]:
            yield Fact(label="", items=(about(kept, "recreated only once it is gone"),))
    stopped: dict[tuple[DrainOutcome, str], list[str]] = {}
    for pod in drained.of(*STAYS):
        stopped.setdefault((pod.fate, pod.budget), []).append(pod.pod)
    for (fate, budget), pods in stopped.items():
        phrase = _several(budget) if fate is DrainOutcome.BUDGETS else _stopped(budget, drained)
        yield Fact(label="blocked", items=(about(pods, phrase),))
        if fate is DrainOutcome.BUDGET and (pending := drained.held[budget].pending):
            ask = why_command(pending[0])
            yield Fact(label="", items=(f"first let {pending[0]} be scheduled: {ask}",), command=ask)
    if with_pods and (deleted := [drained_pod.pod for drained_pod in drained.of(DrainOutcome.DELETED)]):
        yield Fact(label="deleted", items=(f"not recreated: {listed(deleted, 3)}",))
    stranded = [drained_pod.pod for drained_pod in drained.pending]
    if stranded:
        verb = "fits" if len(stranded) == 1 else "fit"
        why = "" if story is None else story_reason(story)
        yield Fact(label="pending", items=(about(stranded, f"{verb} no other node{f', {why}' if why else ''}"),))


def drain_lines(
    drained: DrainResult,
    width: int,
    most: int | None = None,
    story: PendingStory | None = None,
    lets_go: Iterable[StyledLine] = (),
) -> list[StyledLine]:
    """Return the verdict, then what blocks the drain and the lines of `lets_go`, the pods that stay pending, and where
    the others go."""
    tone = Tone.GOOD if drained.is_done else Tone.BAD
    lines = title_lines(f"{drained.node}: {verdict(drained)}", tone, width)
    for fact in drain_facts(drained, story):
        if fact.label == "pending":
            lines += [
                *lets_go,
                *paragraph(fact.items[0], width, first="  ✗ ", indent=4),
                *story_fix_lines(story, width),
            ]
            lets_go = ()
        else:
            lines += paragraph(fact.items[0], width, first="  ")
    lines += lets_go
    if drained.is_refused:
        return lines
    moved = [pod for pod in drained.of(DrainOutcome.EVICTED) if pod.node]
    lines += _moved(moved, width, most)
    if drained.waves > 1:
        lines += paragraph(f"PDBs allow it in {drained.waves:,} rounds: {_budgets(drained)}", width, first="  ")
    stays = drained.of(DrainOutcome.OF_DAEMON_SET, DrainOutcome.OF_KUBELET)
    if stays:
        lines.append(line((f"  {count(len(stays), 'pod')} of DaemonSets and the kubelet stay on the node", DIM)))
    return lines


def each_lines(
    drained: Sequence[DrainResult],
    width: int,
    forced: Mapping[str, DrainResult],
    *,
    wide: bool,
) -> list[StyledLine]:
    """Return how many of the nodes can be drained, and how many with the flags that kubectl requires, then a line for
    each that cannot. `forced` is as for several nodes."""
    good = [result for result in drained if result.is_done]
    bad = [result for result in drained if not result.is_done]
    lines = title_lines(drains_headline(drained), Tone.BAD if bad else Tone.GOOD, width)
    refused = [(drain, forced[drain.node]) for drain in bad if drain.is_refused and drain.node in forced]
    if refused:
        flags = dict.fromkeys(flag for drain, then in refused for flag in _flags(drain, then).split())
        could = len(good) + sum(then.is_done for _, then in refused)
        text = f"with {' '.join(sorted(flags, reverse=True))}: {could:,} of {count(len(drained), 'node')}"
        lines += paragraph(text, width, first="  ")
    if wide or len(bad) <= MOST_NODES:
        for drain_result in bad:
            lines += paragraph(
                f"{drain_result.node}: {verdict(drain_result)}{'' if wide else _first_cause(drain_result)}",
                width,
                first="✗ ",
            )
            for fact in drain_facts(drain_result) if wide else ():
                lines += paragraph(fact.items[0], width, first="  ")
            if wide and drain_result.node in forced:
                text = f"with {_flags(drain_result, forced[drain_result.node])}: {verdict(forced[drain_result.node])}"
                lines += paragraph(text, width, first="  ", indent=4)
    else:
        lines += _by_cause(bad, width)
    for drain_result in good if wide else ():
        lines += paragraph(f"{drain_result.node}: {shared_verdict(drain_result)}", width, first="✓ ")
    if good and not wide:
        lines += paragraph(listed((drain.node for drain in good), 12), width, first="✓ ")
    return lines


def _flags(refused: DrainResult, then: DrainResult) -> str:
    """Return the flags that kubectl requires for the `refused` drain; `then` is the same drain with both flags."""
    force = ["--force"] if refused.of(DrainOutcome.NEEDS_FORCE) or then.of(DrainOutcome.DELETED) else []
    return " ".join([*force, *(["--delete-emptydir-data"] if refused.of(DrainOutcome.NEEDS_EMPTYDIR_FLAG) else [])])


def _by_cause(bad: Sequence[DrainResult], width: int) -> list[StyledLine]:
    """Return a line for each cause that nodes share, most common first."""
    causes: dict[str, list[str]] = {}
    for result in bad:
        causes.setdefault(shared_cause(result), []).append(result.node)
    ordered = sorted(causes.items(), key=lambda item: -len(item[1]))
    lines: list[StyledLine] = []
    for cause, names in ordered[:MOST_CAUSES]:
        lines += paragraph(f"{count(len(names), 'node')}: {cause}: {listed(names, 3)}", width, first="✗ ")
    if len(ordered) > MOST_CAUSES:
        lines.append(line((f"  {count(len(ordered) - MOST_CAUSES, 'more cause')}: -o wide shows all nodes", DIM)))
    return lines


def shared_cause(result: DrainResult) -> str:
    """Return the cause in words that other nodes may share."""
    if result.is_refused:
        fate = result.of(*REFUSES)[0].fate
        return "pods need --force" if fate is DrainOutcome.NEEDS_FORCE else "pods need --delete-emptydir-data"
    if result.is_unconfirmed:
        return "the kubelet does not answer" if result.is_silent else "pods stay Terminating"
    stopped = result.of(*STAYS)
    if stopped:
        return f"PDB {stopped[0].budget}" if stopped[0].fate is DrainOutcome.BUDGET else "pods with several PDBs"
    return "pods fit no other node"


def _first_cause(drained: DrainResult) -> str:
    """Return the name of the pod or budget behind the verdict."""
    if drained.is_refused:
        return f": {drained.of(*REFUSES)[0].pod}"
    stopped = drained.of(*STAYS)
    if drained.is_unconfirmed:
        return ": the kubelet does not answer" if drained.is_silent else f": {drained.unconfirmed[0].pod}"
    if stopped:
        return f": {stopped[0].budget}"
    return f": {drained.pending[0].pod}" if drained.pending else ""


def verdict(drained: DrainResult) -> str:
    evicted = drained.of(DrainOutcome.EVICTED)
    deleted = drained.of(DrainOutcome.DELETED)
    blocked, pending = drained.of(*STAYS), drained.pending
    if drained.is_refused:
        return "kubectl drain refuses and evicts nothing"
    parts = []
    if drained.is_unconfirmed:
        stay = drained.unconfirmed
        parts.append(f"the drain does not end: {count(len(stay), 'pod')} {_stays(stay)} Terminating")
    elif not evicted and not deleted and not blocked:
        leaving = len(drained.of(DrainOutcome.TERMINATING))
        return "nothing to evict" + (f", {count(leaving, 'pod')} already Terminating" if leaving else "")
    if blocked:
        parts.append(f"PodDisruptionBudgets block the eviction of {count(len(blocked), 'pod')}")
    if pending:
        verb = "fits" if len(pending) == 1 else "fit"
        parts.append(f"{count(len(pending), 'pod')} {verb} no other node")
    if evicted and not pending:
        every = "all " if not blocked and len(evicted) > 2 else ""
        verb = "fits" if len(evicted) == 1 else "fit"
        parts.append(f"{every}{count(len(evicted), 'evicted pod')} {verb} on other nodes")
    if deleted:
        parts.append(f"{count(len(deleted), 'pod')} deleted and not recreated")
    return ("can be drained, " if drained.is_done else "") + ", ".join(parts)


def shared_verdict(drained: DrainResult) -> str:
    """Return the verdict among those of many nodes: without the number of pods if every evicted pod is rescheduled."""
    is_plain = drained.is_done and drained.of(DrainOutcome.EVICTED) and not drained.of(DrainOutcome.DELETED)
    return "can be drained, all evicted pods fit on other nodes" if is_plain else verdict(drained)


def _stays(pods: Sequence[DrainedPod]) -> str:
    return "stays" if len(pods) == 1 else "stay"


def _stopped(budget: str, drained: DrainResult) -> str:
    """Return why a budget blocks it, with the numbers of the API server's error."""
    first, now = drained.budgets[budget], budget_text(drained.held[budget])
    if first and not drained.held[budget].failure:
        return f"PDB {budget} allows {count(first, 'disruption')} at a time; evicted pods are still pending: it {now}"
    return f"PDB {budget} {now}"


def budget_text(status: BudgetStatus) -> str:
    """Return `needs 2 healthy pods and has 1: shop/web-0 is not ready`, of a budget that allows no disruption."""
    if status.failure:
        return f"allows no disruption (SyncFailed): {status.failure}"
    if status.needed < status.healthy:
        return "allows no disruption"
    state = f"{'is' if len(status.unready) == 1 else 'are'} "
    state += "pending" if status.pending == status.unready else "not ready"
    not_ready = f": {listed(status.unready, 2)} {state}" if status.unready else ""
    return f"needs {count(status.needed, 'healthy pod')} and has {status.healthy:,}{not_ready}"


def _several(budgets: str) -> str:
    return f"more than one PDB covers it ({budgets}), so the API server refuses to evict it"


def _budgets(drained: DrainResult) -> str:
    return ", ".join(f"{name} {number:,} at a time" for name, number in drained.budgets.items() if number)


def _moved(moved: list[DrainedPod], width: int, most: int | None) -> list[StyledLine]:
    lines = []
    shown = moved if most is None else moved[:most]
    for pod in shown:
        lines += paragraph(f"{pod.pod} → {pod.node}", width, first="  ")
    if len(moved) > len(shown):
        lines.append(line((f"  {count(len(moved) - len(shown), 'more pod')} on other nodes", DIM)))
    return lines
