"""The results of drains, node by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kschedx.fixes import FixCertainty
from kschedx.grouping import group_pairs
from kschedx.inquiry.pending_pods import PendingStory, SharedFixes
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.stalled_drain import DrainRemedies
from kschedx.kube.escaping import shell_command
from kschedx.render.fixes import fix_lines, story_fixes, story_reason
from kschedx.render.terminal import DIM, StyledLine, fact_block, more, paragraph, title_lines
from kschedx.render.view import FixView, ItemList, Tone, ViewItem
from kschedx.simulate.drain import REFUSES, STAYS, DrainOutcome, DrainResult
from kschedx.wording import Fact, count, list_names

# The result of a drain, in lines.

_MOST_NODES = 8
_MOST_CAUSES = 8


def drain_list(simulation: Simulation, remedies: DrainRemedies, most: int = 0, *, each: bool = False) -> ItemList:
    """Return a row for each drained node; those that cannot be drained come first, with the most common cause first.

    Fixes are tried for the pods of `most` nodes. With `each`, the rows have no names of pods, so that nodes are
    identical.
    """
    then = {result.node: result for result in remedies.forced}
    ordered = sorted(simulation.drained, key=lambda drained: drained.is_done)
    items = [
        _node_item(drained, then.get(drained.node), _story(simulation, drained) if at < most else None, each=each)
        for at, drained in enumerate(ordered)
    ]
    causes = Counter(map(_result, items))
    return ItemList(
        title="Nodes" if each or len(items) > 1 else "Node",
        noun="node",
        columns=(("pods evicted", True), ("cause", False), ("result", False)),
        items=tuple(sorted(items, key=lambda item: (item.tone is Tone.GOOD, -causes[_result(item)]))),
        identical_rows=each,
    )


def _story(simulation: Simulation, drained: DrainResult) -> PendingStory | None:
    """Return why evicted pods fit no other node, and what fixes it; None if there are no such pods."""
    scene, pods = simulation.scenes.get(drained.node), tuple(pod.pod for pod in drained.pending)
    return SharedFixes(simulation, scene).story(pods) if scene is not None and pods else None


def _node_item(drained: DrainResult, then: DrainResult | None, story: PendingStory | None, *, each: bool) -> ViewItem:
    facts = list(drain_facts(drained, story, with_pods=not each))
    stays = [pod.pod for pod in drained.of(*REFUSES, *STAYS)]
    if drained.is_refused and then is not None:
        facts.append(Fact.of("forced", f"with {_flags(drained, then)}: {verdict(then)}"))
    return ViewItem(
        title=drained.node,
        tone=drain_tone([drained]),
        kind=_kind(drained),
        values=(
            len(drained.of(DrainOutcome.EVICTED)),
            "" if drained.is_done else _shared_cause(drained),
            _shared_verdict(drained) if each else verdict(drained),
        ),
        facts=tuple(facts),
        fixes=drained_fixes(story, [drained], [pod.pod for pod in drained.pending]),
        members=(
            *(
                f"{leaves.pod} → {leaves.node or ('undecided' if leaves.is_undecided else 'pending')}"
                for leaves in (() if drained.is_refused else drained.of(DrainOutcome.EVICTED))
            ),
            *([f"{list_names(stays, 3)} {'is' if len(stays) == 1 else 'are'} not evicted"] if stays else ()),
        ),
    )


def drained_fixes(
    story: PendingStory | None, drained: Iterable[DrainResult], pods: Sequence[str]
) -> tuple[FixView, ...]:
    """Return the first fix of the pods; if it is not enough, what lets them run on their drained nodes again."""
    fixes, shared = story_fixes(story), None if story is None else story.shared_fix
    if story is None or (shared is not None and shared.fix.certainty is not FixCertainty.PARTIAL):
        return fixes
    its = (each for each in drained if not {*pods}.isdisjoint(pod.pod for pod in each.pending))
    return tuple(fix for each in its for fix in _uncordoned(each)) or fixes


def _uncordoned(drained: DrainResult) -> Iterator[FixView]:
    """Yield what lets pods run again that belong to the node, or whose data does."""
    if pods := [drained_pod.pod for drained_pod in drained.pending]:
        verb = "fits" if len(pods) == 1 else "fit"
        title = f"uncordon {drained.node} after its maintenance: {list_names(pods, 3)} {verb} no other node"
        yield FixView(title=title, commands=(shell_command("kubectl uncordon {}", drained.node),))


def _result(item: ViewItem) -> tuple[object, ...]:
    """Return the result and the causes of a drain."""
    return *item.values[1:], item.facts


def drain_tone(drained: Sequence[DrainResult]) -> Tone:
    if all(result.is_done for result in drained):
        return Tone.GOOD
    return Tone.OPEN if all(result.is_open for result in drained) else Tone.BAD


def _kind(drained: DrainResult) -> str:
    if drained.is_open:
        return "can be drained" if drained.is_done else "undecided"
    if drained.is_refused:
        return "kubectl refuses"
    return "pods stay pending" if drained.pending else "blocked by a PDB"


def result_lines(item: ViewItem, width: int) -> list[StyledLine]:
    """Return the node's name and its verdict."""
    return title_lines(f"{item.title}: {item.values[-1]}", item.tone, width)


def drain_lines(
    item: ViewItem, width: int, *, most: int | None = None, lets_go: Sequence[FixView] = (), wide: bool = False
) -> list[StyledLine]:
    """Return what is below a verdict: the causes, the fixes, of which `lets_go` come first, and where the pods go."""
    lines = fact_block(item.facts, width)
    own = (replace(fix, changes=()) if wide else fix.brief for fix in item.fixes)
    lines += fix_lines((*lets_go, *own), item.no_fix, width)
    pods = list_names(item.members, most or len(item.members))
    return lines + (paragraph(pods, width, first="  ", style=DIM) if pods else [])


def each_lines(nodes: ItemList, width: int, *, wide: bool) -> list[StyledLine]:
    """Return a block for each node that cannot be drained, or a line for each of their causes, then the others."""
    bad = [item for item in nodes.items if item.tone is not Tone.GOOD]
    good = [item for item in nodes.items if item.tone is Tone.GOOD]
    lines: list[StyledLine] = []
    if wide or len(bad) <= _MOST_NODES:
        for item in bad:
            lines += result_lines(item, width) if len(nodes.items) > 1 else []  # the headline is about one
            lines += drain_lines(item, width) if wide else fact_block(item.facts[:1], width, 1)
    else:
        causes = group_pairs((str(item.values[1]), item.title) for item in bad)
        ordered = sorted(causes.items(), key=lambda cause: -len(cause[1]))
        for cause, names in ordered[:_MOST_CAUSES]:
            lines += paragraph(f"{count(len(names), 'node')}: {cause}: {list_names(names, 3)}", width, first="✗ ")
        lines += more(len(ordered) - _MOST_CAUSES, "cause")
    if wide:
        return lines + [row for it in good for row in paragraph(f"{it.title}: {it.values[-1]}", width, first="✓ ")]
    if len(nodes.items) == 1:
        return lines
    return lines + (paragraph(list_names((item.title for item in good), 12), width, first="✓ ") if good else [])


def with_flags(drained: Sequence[DrainResult], forced: Sequence[DrainResult]) -> Iterator[str]:
    """Yield how many of the nodes can be drained with the flags that kubectl requires."""
    then = {result.node: result for result in forced}
    refused = [(result, then[result.node]) for result in drained if result.is_refused and result.node in then]
    if refused:
        flags = {flag for result, with_both in refused for flag in _flags(result, with_both).split()}
        could = sum(result.is_done for result in drained) + sum(with_both.is_done for _, with_both in refused)
        more = could - sum(result.is_done for result in drained)
        then_done = f"{could:,} of {count(len(drained), 'node')}" if more else "no other node can be drained"
        yield f"with {' '.join(sorted(flags, reverse=True))}: {then_done}"


def drains_headline(drained: Sequence[DrainResult]) -> str:
    """Return the verdict about one node, or how many of several can be drained."""
    if len(drained) == 1:
        return f"{drained[0].node}: {verdict(drained[0])}"
    return f"{sum(result.is_done for result in drained):,} of {count(len(drained), 'node')} can be drained"


def drain_facts(drained: DrainResult, story: PendingStory | None = None, *, with_pods: bool = True) -> Iterator[Fact]:
    """Yield why kubectl or a budget blocks the drain, and which pods fit no other node. Without the names of the pods,
    other nodes may have the same facts."""

    def about(pods: Sequence[str], phrase: str) -> str:
        return f"{list_names(pods, 3)}: {phrase}" if with_pods else phrase

    if drained.is_refused:
        refused = group_pairs((pod.message, pod.pod) for pod in drained.of(*REFUSES))
        for phrase, pods in refused.items():
            yield Fact.of("refused", f"{phrase}: {list_names(pods, 3)}")
        return
    for finalizers, pods in group_pairs((its, pod) for pod, its in drained.finalizers.items()).items():
        is_one = len(finalizers) == 1
        keeps = f"finalizer {finalizers[0]} keeps" if is_one else f"finalizers {list_names(finalizers, 3)} keep"
        it, of, verb = ("it", "its", "is") if len(pods) == 1 else ("they", "their", "are")
        phrase = f"{it} {verb} being deleted, and {of} {keeps} {'it' if len(pods) == 1 else 'them'}"
        yield Fact.of("blocked", about(pods, phrase))
    if drained.is_silent and drained.is_unconfirmed:
        its = [drained_pod.pod for drained_pod in drained.unconfirmed_pods]
        phrase = f"the kubelet of {drained.node} does not answer, so no deletion is confirmed"
        yield Fact.of("blocked", about(its, phrase))
        if drained.awaited:
            gone = "it is" if len(drained.awaited) == 1 else "they are"
            yield Fact.of("", about(drained.awaited, f"recreated only once {gone} gone"))
    stopped = group_pairs(((pod.fate, pod.budget), pod.pod) for pod in drained.of(*STAYS))
    for (fate, budget), pods in stopped.items():
        several = f"more than one PDB covers it ({budget}), so the API server refuses to evict it"
        phrase = several if fate is DrainOutcome.BUDGETS else _budget_text(budget, drained)
        yield Fact.of("blocked", about(pods, phrase))
    for budget, lag in drained.lagging.items():
        phrase = f"evictions are refused until kube-controller-manager updates the status of PDB {budget} ({lag})"
        yield Fact.of("delayed", phrase)
    for budget, status in drained.bypassed.items():
        phrase = f"PDB {budget} {status.text}; --disable-eviction ignores it"
        yield Fact.of("bypassed", phrase)
    deleted = group_pairs((pod.message, pod.pod) for pod in drained.of(DrainOutcome.DELETED) if with_pods)
    for why, pods in deleted.items():
        yield Fact.of("deleted", f"not recreated: {list_names(pods, 3)}{why and f': {why}'}")
    stranded = [drained_pod.pod for drained_pod in drained.pending]
    if stranded:
        verb = "fits" if len(stranded) == 1 else "fit"
        why = "" if story is None else story_reason(story)
        yield Fact.of("pending", about(stranded, f"{verb} no other node{f', {why}' if why else ''}"))
    if returning := [pod.pod for pod in drained.returning]:
        yield Fact.of("returns", about(returning, "tolerates node.kubernetes.io/unschedulable"))
    for pod in drained.undecided[:3]:
        yield Fact.of("undecided", about([pod.pod], pod.message))
    if not with_pods:
        return
    if drained.slow and not drained.is_silent:
        longest = max(drained.slow.values())
        phrase = f"up to {longest:,} s to terminate (terminationGracePeriodSeconds)"
        yield Fact.of("slow", about([*drained.slow], phrase))
    if drained.waves > 1:
        yield Fact.of("rounds", f"PDBs allow it in {drained.waves:,} rounds: {_budgets(drained)}")
    if stays := drained.of(DrainOutcome.OF_DAEMON_SET, DrainOutcome.OF_KUBELET):
        yield Fact.of("stays", f"{count(len(stays), 'pod')} of DaemonSets and the kubelet")


def _flags(refused: DrainResult, then: DrainResult) -> str:
    """Return the flags that kubectl requires for the `refused` drain; `then` is the same drain with both flags."""
    force = ["--force"] if refused.of(DrainOutcome.NEEDS_FORCE) or then.of(DrainOutcome.DELETED) else []
    return " ".join([*force, *(["--delete-emptydir-data"] if refused.of(DrainOutcome.NEEDS_EMPTYDIR_FLAG) else [])])


def _shared_cause(result: DrainResult) -> str:
    """Return the cause in words that other nodes may share."""
    if result.is_refused:
        fate = result.of(*REFUSES)[0].fate
        return "pods need --force" if fate is DrainOutcome.NEEDS_FORCE else "pods need --delete-emptydir-data"
    if result.is_unconfirmed:
        return "the kubelet does not answer" if result.is_silent else "pods stay Terminating"
    stopped = result.of(*STAYS)
    if stopped:
        return f"PDB {stopped[0].budget}" if stopped[0].fate is DrainOutcome.BUDGET else "pods with several PDBs"
    if result.returning:
        return "pods tolerate the cordon"
    return "pods fit no other node" if result.pending else "undecided"


def verdict(drained: DrainResult) -> str:
    evicted = drained.of(DrainOutcome.EVICTED)
    deleted = drained.of(DrainOutcome.DELETED)
    blocked, pending = drained.of(*STAYS), drained.pending
    if drained.is_refused:
        return "kubectl drain refuses and evicts nothing"
    parts = []
    if drained.is_unconfirmed:
        stay = drained.unconfirmed_pods
        parts.append(f"the drain does not end: {count(len(stay), 'pod stays', 'pods stay')} Terminating")
    elif not evicted and not deleted and not blocked:
        leaving = len(drained.of(DrainOutcome.TERMINATING))
        return "nothing to evict" + (f", {count(leaving, 'pod')} already Terminating" if leaving else "")
    if blocked:
        parts.append(f"PodDisruptionBudgets block the eviction of {count(len(blocked), 'pod')}")
    if pending:
        parts.append(f"{count(len(pending), 'pod fits', 'pods fit')} no other node")
    if drained.undecided:
        parts.append(f"whether {count(len(drained.undecided), 'evicted pod')} can be rescheduled is undecided")
    if returning := drained.returning:
        parts.append(f"{count(len(returning), 'evicted pod returns', 'evicted pods return')} to it")
    elif evicted and not pending and not drained.undecided:
        every = "all " if not blocked and len(evicted) > 2 else ""
        late = f", {len(drained.late):,} of them not at once" if drained.late else ""
        parts.append(f"{every}{count(len(evicted), 'evicted pod fits', 'evicted pods fit')} on other nodes{late}")
    if deleted:
        parts.append(f"{count(len(deleted), 'pod')} deleted and not recreated")
    return ("can be drained, " if drained.is_done else "") + ", ".join(parts)


def undone_text(drained: DrainResult) -> str:
    """Return in one line why a drain is not done, for an answer about something else."""
    refused = drained.of(*REFUSES)
    if not refused:
        return verdict(drained)
    return f"{verdict(drained)} without {_flags(drained, drained)}: {list_names((pod.pod for pod in refused), 2)}"


def _shared_verdict(drained: DrainResult) -> str:
    """Return the verdict among those of many nodes: without the number of pods if every evicted pod is rescheduled."""
    is_plain = drained.is_done and drained.of(DrainOutcome.EVICTED) and not drained.of(DrainOutcome.DELETED)
    return "can be drained, all evicted pods fit on other nodes" if is_plain else verdict(drained)


def _budget_text(budget: str, drained: DrainResult) -> str:
    """Return why a budget blocks it, with the numbers of the API server's error."""
    first, now = drained.budgets[budget], drained.held[budget].text
    if first and not drained.held[budget].failure:
        return f"PDB {budget} allows {count(first, 'disruption')} at a time; evicted pods are still pending: it {now}"
    return f"PDB {budget} {now}"


def _budgets(drained: DrainResult) -> str:
    """Return how many evictions each budget allows now, or what those that allow none wait for."""
    allowed = [f"{name} {number:,} at a time" for name, number in drained.budgets.items() if number]
    return ", ".join(allowed) or f"{list_names([*drained.budgets], 3)} {_AFTER_READY}"


_AFTER_READY = "none until the pods that are not ready are replaced and ready"
