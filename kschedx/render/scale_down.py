"""Why cluster-autoscaler or Karpenter keeps a node, or how it removes it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import assert_never

from msgspec.structs import replace
from rich.cells import cell_len

from kschedx.autoscaler.scale_down import (
    PodFate,
    Removal,
    RemovalBlocker,
    RemovalFate,
    ScaleDown,
    Unremovable,
    UtilizationResult,
)
from kschedx.explain.advice import Advice
from kschedx.fixes.phrases import budgets_by_drain, open_pool_budget, unguard_pod
from kschedx.inquiry.scale_down import NodeRemovals
from kschedx.karpenter.consolidation import NOT_TRIED, PRICES_UNKNOWN, Command, Consolidation, Method
from kschedx.karpenter.disruption import BLOCKED, Balance, NodeDisruption
from kschedx.kube.autoscalers import DO_NOT_DISRUPT, SAFE_TO_EVICT, SCALE_DOWN_DISABLED
from kschedx.kube.escaping import shell_command
from kschedx.kube.kubectl import merge_patch
from kschedx.render.fixes import fix_lines
from kschedx.render.page.model import SCREEN_WIDTH, Page, page_of
from kschedx.render.terminal import (
    BLANK,
    DIM,
    GOOD,
    StyledLine,
    columns,
    fact_block,
    paragraph,
    shortens,
    snapshot_nodes,
    text,
    title_lines,
    wrap,
)
from kschedx.render.terminal import shown as as_shown
from kschedx.render.view import FixView, ItemList, Tone, View, ViewItem, identical, shared_value
from kschedx.simulate.repack import EmptiedNodes
from kschedx.wording import Fact, amount, count, list_facts, list_names, price_text

_NAMES = 3


def _removal_text(removal: Removal) -> str:
    """Return the text about a node that can be removed."""
    moving = len(removal.places)
    pods = (
        f", {count(moving, 'pod')} {'moves' if moving == 1 else 'move'} to other nodes" if moving else ", it is empty"
    )
    if removal.unneeded_for is None and removal.needed > 0:
        return f"cluster-autoscaler removes it after {removal.needed} unneeded{pods}"
    return f"cluster-autoscaler removes it{pods}"


def _unremovable_text(removal: Removal, reason: Unremovable) -> str:
    """Return the text after `cluster-autoscaler keeps it,`."""
    group = removal.group
    match reason:
        case Unremovable.SCALE_DOWN_DISABLED:
            return "it removes no nodes (--scale-down-enabled=false)"
        case Unremovable.CLUSTER_UNHEALTHY:
            return "too many nodes are not ready (--max-total-unready-percentage)"
        case Unremovable.NOT_AUTOSCALED:
            return "the node is in no node group"
        case Unremovable.NODE_GROUP_MIN_SIZE_REACHED:
            assert group is not None
            which = "at" if group.target - removal.leaving == group.min_size else "below"
            return f"its node group {group.name} is {which} its minimum of {group.min_size}{_leaving(removal)}"
        case Unremovable.STARTING:
            return "it is starting"
        case Unremovable.CURRENTLY_BEING_DELETED:
            return "it is already being deleted"
        case Unremovable.SCALE_DOWN_DISABLED_ANNOTATION:
            return f"the node is annotated {SCALE_DOWN_DISABLED}=true"
        case Unremovable.SCALE_DOWN_UNREADY_DISABLED:
            return "the node is not ready (--scale-down-unready-enabled=false)"
        case Unremovable.UNEXPECTED_ERROR:
            return "its utilization is unknown: no allocatable CPU or memory, or an incomplete pool of devices"
        case Unremovable.NOT_UNDERUTILIZED:
            assert removal.utilization is not None
            used = removal.utilization
            flag = "gpu-utilization" if used.is_gpu else "utilization"
            share = f"{'more than ' if used.is_above_threshold else ''}{used.threshold_percent}%"
            return f"{share} of its {used.resource} is requested (--scale-down-{flag}-threshold)"
        case Unremovable.BLOCKED_BY_POD:
            blocking = removal.of(RemovalFate.BLOCKS)
            if len(blocking) > 1:
                return f"{count(len(blocking), 'pod')} cannot be evicted"
            return f"{blocking[0].pod} cannot be evicted: {_blocker_text(blocking[0])}"
        case Unremovable.NO_PLACE_TO_MOVE_PODS:
            assert removal.stranded is not None
            phrase = ", ".join(f"{number} {why}" for why, number in sorted(removal.stranded.refusals.items()))
            return f"{removal.stranded.pod} fits no other node: {phrase or 'there is none'}"
        case Unremovable.NOT_UNNEEDED_LONG_ENOUGH | Unremovable.NOT_UNREADY_LONG_ENOUGH:
            state = "not needed" if reason is Unremovable.NOT_UNNEEDED_LONG_ENOUGH else "not ready"
            return f"it has been {state} for {removal.unneeded_for} of {removal.needed}"
        case Unremovable.MINIMAL_RESOURCE_LIMIT_EXCEEDED:
            assert removal.minimum is not None
            resource, left, least = removal.minimum.resource, removal.minimum.left, removal.minimum.least
            return f"the cluster keeps at least {least:,} {resource}; {left:,} would be left"
        case Unremovable.BLOCKED_BY_ON_COMPLETION_POD:
            pods = [fate.pod for fate in removal.of(RemovalFate.COMPLETES)]
            return f"it waits for {list_names(pods, _NAMES)} to complete"
        case _:
            assert_never(reason)


def _leaving(removal: Removal) -> str:
    """Return `, as 1 node is being deleted`; empty if no other node of the group is."""
    verb = "is" if removal.leaving == 1 else "are"
    return f", as {count(removal.leaving, 'node')} {verb} being deleted" if removal.leaving else ""


def _removal_label(removal: Removal, *, named: bool) -> str:
    """Return the result in a few words for a row of a table; `named` with the pod that keeps the node."""
    if removal.is_removable:
        return "removed, its pods move" if removal.places else "removed"
    match removal.reasons[0]:
        case Unremovable.NOT_UNDERUTILIZED:
            used = removal.utilization
            assert used is not None
            return f"{'above' if used.is_above_threshold else 'at'} {used.threshold_percent}%"
        case Unremovable.NODE_GROUP_MIN_SIZE_REACHED:
            assert removal.group is not None
            return f"minimum of {removal.group.min_size} in {removal.group.name}"
        case Unremovable.BLOCKED_BY_POD:
            blocking = removal.of(RemovalFate.BLOCKS)
            if not named:
                texts = sorted({_blocker_text(fate, named=False) for fate in blocking})
                return f"pods cannot be evicted: {'; '.join(texts)}"
            more = f" and {len(blocking) - 1:,} more" if len(blocking) > 1 else ""
            return f"kept by {blocking[0].pod}{more}: {_blocker_text(blocking[0])}"
        case reason:
            return _unremovable_text(removal, reason)


def _blocker_text(fate: PodFate, *, named: bool = True) -> str:
    """Return why a pod cannot be evicted; empty if it can. Without names, other pods may have the same text."""
    controller = fate.controller if named and fate.controller else "its controller"
    match fate.blocker:
        case RemovalBlocker.CONTROLLER_NOT_FOUND:
            return f"{'its controller ' if named else ''}{controller} does not exist"
        case RemovalBlocker.MIN_REPLICAS_REACHED:
            replicas = f"{count(fate.replicas or 0, 'replica')}, " if named else ""
            return f"{controller} keeps {replicas}fewer{'' if named else ' replicas'} than --min-replica-count"
        case RemovalBlocker.NOT_REPLICATED:
            reason = f"{controller} is an unknown kind" if fate.controller else "it has no controller"
            return f"not replicated: {reason}"
        case RemovalBlocker.LOCAL_STORAGE_REQUESTED:
            return f"local storage in {list_names(fate.volumes, _NAMES)}" if named else "local storage"
        case RemovalBlocker.NOT_SAFE_TO_EVICT_ANNOTATION:
            return f"annotated {SAFE_TO_EVICT}=false"
        case RemovalBlocker.UNMOVABLE_KUBE_SYSTEM_POD:
            return "a pod of kube-system without a PodDisruptionBudget"
        case RemovalBlocker.NOT_ENOUGH_PDB:
            budget = f"the PodDisruptionBudget {list_names(fate.budgets, _NAMES)}" if named else "a PDB"
            return f"{budget} allows no disruption"
        case None:
            return ""
        case _:
            assert_never(fate.blocker)


def _utilization_text(used: UtilizationResult) -> str:
    """Return how much of the node is requested."""
    requested, offered = amount(used.resource, used.requested), amount(used.resource, used.offered)
    return f"{used.percent}% of its {used.resource} ({requested} of {offered})"


# The screen of `kschedx scale-down`.

_MOST_BLOCKERS = 5  # pods on the first screen
_MOST_BLOCKS = 5  # Karpenter's nodes that have a block each; more are rows
_MOST_NODES = 20
_MOST_COMMANDS = 3  # commands that remove one node each
_MOST_CAUSES = 5
_MOST_ITEMS = 10**9  # enough for all names


@shortens(snapshot_nodes)
def scale_down_lines(answer: NodeRemovals, *, width: int, wide: bool = False) -> list[StyledLine]:
    """Return the answer about one node, or a row for each of cluster-autoscaler's nodes and a block for each of
    Karpenter's."""
    view, number = scale_down_view(answer, wide=wide), len(answer.removals)
    lines = title_lines(view.headline, view.tone, width)
    lines += fact_block(_kept_facts(view.items), width)
    if view.details:
        lines.append(BLANK)
    for phrase in view.details:
        lines += paragraph(phrase, width, first="✓ ", style=GOOD)
    blocks = view.items if wide else view.items[number:] if len(answer.disruptions) <= _MOST_BLOCKS else ()
    listed = view.items[:number] if wide or blocks else view.items
    if len(view.items) == 1:
        lines += _details(view.items[0], width, wide=wide)
    elif listed:
        lines += [BLANK, *_table(listed, width, wide=wide)]
    together = fact_block(_together_facts(answer.together, _MOST_ITEMS if wide else _NAMES), width)
    lines += [BLANK, *together] if together else []
    for item in blocks if len(view.items) > 1 else ():
        title = f"{item.title}: {item.facts[0].items[0]}"
        lines += [BLANK, *title_lines(title, item.tone, width), *_details(item, width, wide=wide)]
    lines.append(BLANK)
    for note in view.notes:
        lines += paragraph(note, width, style=DIM)
    return lines


def _details(item: ViewItem, width: int, *, wide: bool) -> list[StyledLine]:
    """Return the lines below the sentence of a node, which is its first fact."""
    facts = [*item.facts[1:], *item.own]
    if item.members:
        facts.append(Fact.of("moves", *(item.members if wide else (list_names(item.members, _NAMES),))))
    return [*fix_lines(item.fixes, "", width), *fact_block(facts, width)]


def _table(items: Sequence[ViewItem], width: int, *, wide: bool) -> list[StyledLine]:
    in_any_group = [replace(item, facts=(), values=(*item.values[:2], "", item.values[3])) for item in items]
    groups = [[item] for item in items] if wide or len(items) <= _MOST_NODES else identical(in_any_group)
    shown = groups if wide else groups[:_MOST_NODES]
    cells = [
        [
            items[0].title + (f" and {len(items) - 1:,} more" if len(items) > 1 else ""),
            *(str(shared_value(values)) for values in zip(*(item.values for item in items), strict=True)),
        ]
        for items in shown
    ]
    has_shares, moves = any(row[1] for row in cells), any(row[2] for row in cells)
    kept = [0, *([1] if has_shares else []), *([2] if moves else []), 4]
    heads = [("node", "requested", "pods moved", "", "why")[at] for at in kept]
    cells = [[f"{row[at]}%" if at == 1 and row[at] else row[at] for at in kept] for row in cells]
    sizes = [max(cell_len(as_shown(row[at])) for row in [heads, *cells]) for at in range(len(heads) - 1)]
    room = max(width - sum(sizes) - 2 * len(heads), 24)
    rows = [heads]
    for *row, why in cells:
        first, *more = wrap(as_shown(why), room)
        rows += [[*row, first], *([*("" for _ in row), phrase] for phrase in more)]
    lines = columns(rows, indent=2, header=True)
    left = len(items) - sum(map(len, shown))
    if left:
        lines.append(text(f"  {count(left, 'more node')}: -o wide", DIM))
    return lines


def _together_facts(together: EmptiedNodes | None, most: int) -> Iterator[Fact]:
    """Yield which nodes can be removed together, what they cost, and what blocks the others; of many nodes, the first
    `most`."""
    if together is None:
        return
    price = f", {price_text(together.price)} an hour" if together.price is not None else ""
    names = list_names(together.nodes, most)
    phrase = f"{count(len(together.nodes), 'node')}{price}: {names}, {count(len(together.moves), 'pod')} moved"
    yield Fact.of("together", phrase)
    blocked = list(together.blocked.items())
    yield from list_facts("blocked", (f"{name}: {why}" for name, why in blocked[:most]))
    if len(blocked) > most:
        yield Fact.of("", f"{count(len(blocked) - most, 'more node')}: -o wide")
    if together.not_tried:
        yield Fact.of("", f"{count(together.not_tried, 'node')} not tried")


def _consolidation_texts(consolidation: Consolidation, names: Collection[str]) -> list[str]:
    """Return what each of Karpenter's methods does. For single-node consolidation, only the first nodes are named."""
    wanted = {*names}
    commands = [command for command in consolidation.commands if not wanted.isdisjoint(command.nodes)]
    alone = [command for command in commands if command.method is Method.SINGLE_NODE][_MOST_COMMANDS:]
    texts = [_command_text(command) for command in commands if command not in alone]
    if alone:
        texts.append(f"{Method.SINGLE_NODE.value}: {count(len(alone), 'more node')} can be consolidated instead")
    return texts


def _command_text(command: Command) -> str:
    nodes = list_names(command.nodes, _NAMES)
    if command.method is Method.DRIFT:
        does = "replaces" if command.replacements else "removes"
        with_what = f" with {count(command.replacements, 'new node')}" if command.replacements else ""
        return f"drift: {does} {nodes}{with_what}"
    if not command.replacements:
        saved = f", saves {price_text(command.price)} an hour" if command.price is not None else ""
        return f"{command.method.value}: removes {nodes}{saved}{_scores(command)}"
    saved = ""
    if command.savings is not None and command.price is not None:
        saved = f", saves {price_text(command.savings)} of {price_text(command.price)} an hour"
    types = list_names(command.types, 2)
    return f"{command.method.value}: replaces {nodes} with a node of {types}{saved}{_scores(command)}"


def _scores(command: Command) -> str:
    return "".join(f", score {score:.2f} in {pool} (Balanced)" for pool, score in command.scores.items())


def _karpenter_basis(consolidation: Consolidation | None) -> str:
    """Return what the answer is based on."""
    if consolidation is None:
        return "Karpenter: prices and replacement nodes are not evaluated"
    parts = [f"Karpenter {consolidation.follows}: each method by itself; it takes the first"]
    if any(price is None for price in consolidation.prices.values()):
        parts.append("prices are incomplete: --instance-types")
    if consolidation.budgets_at:
        parts.append(f"budgets with a schedule as of {consolidation.budgets_at}")
    return " · ".join(parts)


def _balance_facts(balance: Balance) -> tuple[str, ...]:
    phrase = f"{balance.disruption:.0%} of the pool's disruption; the node has to save {balance.needed:.0%} of its cost"
    if balance.savings is None:
        return (phrase, "prices are not known")
    verdict = "not worth it alone" if balance.rejects else "worth it if no new node is needed"
    return phrase, f"it is {balance.savings:.0%}: {verdict}"


def _karpenter_facts(disruption: NodeDisruption, consolidation: Consolidation | None) -> tuple[Tone, tuple[Fact, ...]]:
    """The tone and facts of a node: whether Karpenter removes it, as far as that is decided, and why or why not."""
    obstacles = [obstacle.text for obstacle in disruption.obstacles]
    if disruption.disabling is not None:  # it is the last one
        field, value = disruption.disabling
        obstacles[-1] += f" ({field} is {value})"
    goes = consolidation is not None and disruption.node in consolidation.nodes
    why = "" if consolidation is None else consolidation.kept.get(disruption.node, "")
    if goes or (disruption.goes_by_drift and disruption.may_go):
        obstacles = []  # what only consolidation requires does not keep a drifted node
    if not obstacles and not goes:
        if not disruption.may_go:
            obstacles.append("its NodeClaim is not Consolidatable: pods changed there recently")
        elif why:
            obstacles.append(why)
    facts: list[Fact] = []
    if disruption.balance is not None and not disruption.is_empty and (disruption.may_go or not obstacles):
        facts.append(Fact.of("balanced", *_balance_facts(disruption.balance)))
    is_open = obstacles in ([PRICES_UNKNOWN], [NOT_TRIED])
    if obstacles == [NOT_TRIED]:
        phrase = "Karpenter may consolidate it; not tried with so many nodes: name the node"
    elif is_open:
        how = "replace it with a cheaper node" if disruption.balance is None else "consolidate it"
        phrase = f"Karpenter may {how}; not decided without prices (--instance-types FILE)"
    elif obstacles:
        phrase = f"Karpenter keeps it, {obstacles[0]}"
        facts = [*list_facts("also", obstacles[1:]), *facts]
    elif goes or disruption.goes_by_drift:
        phrase = f"Karpenter {'removes' if disruption.is_empty or disruption.goes_by_drift else 'consolidates'} it"
        phrase += ": its NodeClaim is Drifted" if disruption.goes_by_drift else ""
    else:
        how = "removes it, it is empty" if disruption.is_empty else "may consolidate it if its pods fit cheaper nodes"
        phrase = f"Karpenter {how}"
    tone = Tone.OPEN if is_open else Tone.BAD if obstacles else Tone.GOOD
    return tone, (Fact.of("because", phrase), *facts)


def _blocking_facts(removal: Removal, *, wide: bool, named: bool) -> Iterator[Fact]:
    """Yield the pods that keep the node, unless its sentence names the only one."""
    blocking = removal.of(RemovalFate.BLOCKS)
    is_told = named and len(blocking) == 1 and removal.reasons[0] is Unremovable.BLOCKED_BY_POD
    shown = () if is_told else blocking if wide else blocking[:_MOST_BLOCKERS]
    yield from list_facts("kept by", (f"{fate.pod}: {_blocker_text(fate)}" for fate in shown))
    if not wide and len(blocking) > _MOST_BLOCKERS:
        yield Fact.of("", f"{count(len(blocking) - _MOST_BLOCKERS, 'more pod')}: -o wide")


def _other_facts(removal: Removal) -> Iterator[Fact]:
    """Yield what else keeps the node, its node group, and what goes with it."""
    others = [reason for reason in removal.reasons[1:] if reason is not Unremovable.BLOCKED_BY_POD]
    yield from list_facts("also", (_unremovable_text(removal, reason) for reason in others))
    if removal.group is not None:
        group = removal.group
        sizes = f"{count(group.target, 'node')}, {group.min_size} to {group.max_size}"
        yield Fact.of("group", f"{group.name}: {sizes}")
    if removal.pending:
        names = " · ".join(removal.pending[:_MOST_BLOCKERS])
        yield Fact.of("pending", names, "the autoscaler places what fits here first, so it counts")
    staying = removal.of(RemovalFate.DAEMON_SET)
    if staying:
        yield Fact.of("removed", f"{count(len(staying), 'pod')} of DaemonSets with the node")
    if removal.reasons:
        yield Fact.of("reasons", *(reason.value for reason in removal.reasons))


_DISABLING = {
    Unremovable.SCALE_DOWN_DISABLED: "scale-down-enabled",
    Unremovable.SCALE_DOWN_UNREADY_DISABLED: "scale-down-unready-enabled",
}
"""The flag that keeps a node if it is false."""


def _removal_fixes(scale_down: ScaleDown, removal: Removal) -> Iterator[FixView]:
    """Yield what takes away a reason why cluster-autoscaler keeps the node: a setting, or a tried annotation."""
    for reason in removal.reasons:
        others = [other for other in removal.reasons if other is not reason]
        seen = f"not enough: {_unremovable_text(removal, others[0])}" if others else "nothing else keeps the node"
        if reason is Unremovable.SCALE_DOWN_DISABLED_ANNOTATION:
            command = shell_command(f"kubectl annotate node {{}} {SCALE_DOWN_DISABLED}-", removal.node)
            yield FixView(title=f"remove {SCALE_DOWN_DISABLED} from the node", seen=seen, commands=(command,))
        elif reason in _DISABLING:
            yield FixView(title=f"set --{_DISABLING[reason]}=true of cluster-autoscaler", seen=seen)
        elif reason is Unremovable.NODE_GROUP_MIN_SIZE_REACHED and (group := removal.group) is not None:
            stay = group.target - removal.leaving
            sizes = f"from {group.min_size} to {stay - 1}"
            if stay > 0:  # a group of no nodes has none to remove
                yield FixView(title=f"lower the minimum of node group {group.name} {sizes}", seen=seen)
        elif (
            reason is Unremovable.NOT_UNDERUTILIZED
            and not others
            and len(removal.places) == len(removal.of(RemovalFate.MOVES))
            and (used := removal.utilization) is not None
        ):
            flag = "scale-down-gpu-utilization-threshold" if used.is_gpu else "scale-down-utilization-threshold"
            threshold = (math.floor(100 * used.share) + 1) / 100
            yield FixView(title=f"raise --{flag} from {used.threshold:g} to {threshold:g}", seen=seen)
    spent = dict.fromkeys(budget for fate in removal.of(RemovalFate.BLOCKS) for budget in fate.budgets)
    if spent:
        yield _advised(budgets_by_drain(removal.node, [*spent]))
    after = scale_down.safe_to_evict(removal)
    if after is None:
        return
    left = {fate.pod for fate in after.of(RemovalFate.BLOCKS)}
    released = [fate for fate in removal.of(RemovalFate.BLOCKS) if fate.pod not in left]
    does = "the node is removed" if after.is_removable else f"then {_unremovable_text(after, after.reasons[0])}"
    names = list_names([fate.pod for fate in released], _NAMES)
    if {fate.blocker for fate in released} == {RemovalBlocker.UNMOVABLE_KUBE_SYSTEM_POD}:
        yield FixView(title=f"create a PodDisruptionBudget that allows a disruption for {names}", seen=does)
    yield FixView(title=f"annotate {names} with {SAFE_TO_EVICT}=true", seen=does)


def _advised(advice: Advice, seen: str = "") -> FixView:
    return FixView(title=advice.title, seen=seen, commands=advice.commands)


def _basis(scale_down: ScaleDown) -> str:
    autoscaler = scale_down.autoscaler
    texts = [f"cluster-autoscaler {autoscaler.release.version}"]
    if not autoscaler.flags_are_known:
        texts.append("default flags (--autoscaler-flag)")
    if autoscaler.membership.sources:
        texts.append(f"node groups by {list_names(autoscaler.membership.sources, _NAMES)}")
    return " · ".join(texts)


# --- the view


def scale_down_view(answer: NodeRemovals, *, wide: bool = True) -> View:
    """Return a view with a row for each node; those that cluster-autoscaler removes come first. Without `wide`, long
    facts are cut, and fixes are tried only for a single node."""
    removals, kept, consolidation = answer.removals, answer.disruptions, answer.consolidation
    ordered = sorted(removals, key=lambda removal: (len(removal.reasons), removal.node))
    number = len(removals) + len(kept)
    mended = answer.scale_down if wide or number == 1 else None
    items = [_removal(mended, removal, wide=wide, named=number <= _MOST_NODES) for removal in ordered]
    disrupted = [_disruption(disruption, consolidation) for disruption in kept]
    items += sorted(disrupted, key=lambda item: (Tone.GOOD, Tone.OPEN, Tone.BAD).index(item.tone))
    going = sum(item.tone is Tone.GOOD for item in items)
    headline = f"{going:,} of {count(len(items), 'node')} can be removed{', each by itself' if removals else ''}"
    if len(items) == 1:
        headline = f"{items[0].title}: {items[0].facts[0].items[0]}"
    commands = () if consolidation is None else _consolidation_texts(consolidation, [it.node for it in kept])
    basis = [
        *([] if answer.scale_down is None else [_basis(answer.scale_down)]),
        *([_karpenter_basis(consolidation)] if kept else []),
    ]
    return View(
        command="kschedx scale-down",
        details=tuple(commands),
        facts=(*_kept_facts(items), *_together_facts(answer.together, _MOST_NODES)),
        headline=headline,
        tone=Tone.GOOD if going else Tone.OPEN if any(item.tone is Tone.OPEN for item in items) else Tone.BAD,
        lists=(
            ItemList(
                title="Nodes",
                noun="node",
                columns=(("requested %", True), ("pods moved", True), ("node group", False), ("result", False)),
                items=tuple(items),
                identical_rows=True,
            ),
        ),
        notes=tuple(basis),
    )


def scale_down_page(answer: NodeRemovals) -> Page:
    lines = scale_down_lines(answer, width=SCREEN_WIDTH)
    return page_of(scale_down_view(answer), lines, snapshot=answer.snapshot)


def _kept_facts(items: Sequence[ViewItem]) -> Iterator[Fact]:
    """Yield why nodes stay, if there are many; most common cause first. Causes of cluster-autoscaler's nodes have the
    autoscaler's names."""
    if len(items) <= _MOST_BLOCKS:
        return
    counts = Counter(
        item.kind if item.values[2] != "Karpenter" else str(item.values[3])
        for item in items
        if item.tone is not Tone.GOOD
    ).most_common()
    causes = [f"{why}: {count(number, 'node')}" for why, number in counts[:_MOST_CAUSES]]
    left = sum(number for _, number in counts[_MOST_CAUSES:])
    label = "others" if any(item.tone is Tone.GOOD for item in items) else "because"
    yield from list_facts(label, [*causes, *([f"other causes: {count(left, 'node')}"] if left else [])])


def _removal(scale_down: ScaleDown | None, removal: Removal, *, wide: bool, named: bool) -> ViewItem:
    """Return the row of a node. If its sentence is not to name pods and numbers, other nodes may have the same."""
    used = removal.utilization
    label = _removal_label(removal, named=named)
    phrase = _removal_text(removal) if named else f"cluster-autoscaler: {label}"
    if not removal.is_removable:
        why = _unremovable_text(removal, removal.reasons[0]) if named else label
        phrase = f"cluster-autoscaler keeps it, {why}"
    blocking, others = tuple(_blocking_facts(removal, wide=wide, named=named)), tuple(_other_facts(removal))
    because = Fact.of("because", phrase)
    own = () if used is None else (Fact.of("requested", _utilization_text(used)),)
    return ViewItem(
        title=removal.node,
        tone=Tone.GOOD if removal.is_removable else Tone.BAD,
        kind="removed" if removal.is_removable else removal.reasons[0].value,
        values=(
            "" if used is None else used.percent,
            len(removal.places) or "",
            "" if removal.group is None else removal.group.name,
            label,
        ),
        facts=(because, *blocking, *others) if named else (because, *others),
        own=own if named else (*blocking, *own),
        fixes=() if scale_down is None else tuple(_removal_fixes(scale_down, removal)),
        members=tuple(f"{pod} → {node}" for pod, node in removal.places.items()),
    )


def _disruption(disruption: NodeDisruption, consolidation: Consolidation | None) -> ViewItem:
    tone, facts = _karpenter_facts(disruption, consolidation)
    return ViewItem(
        title=disruption.node,
        tone=tone,
        kind={Tone.GOOD: "removed", Tone.OPEN: "undecided"}.get(tone, "kept"),
        values=("", "", "Karpenter", facts[0].items[0].removeprefix("Karpenter keeps it, ")),
        facts=facts,
        fixes=(
            *_guard_fixes(disruption),
            *(_budget_fix(disruption, place) for place in disruption.blocking),
            *_consolidation_fix(disruption),
        ),
    )


def _guard_fixes(disruption: NodeDisruption) -> Iterator[FixView]:
    """Yield the fix for the annotation that keeps a pod, or the node itself, from being disrupted."""
    if not disruption.is_blocked:
        return
    left = disruption.obstacles[1:]
    seen = f"then {left[0].text}" if left else "nothing else blocks the node"
    if disruption.guarded:
        yield _advised(unguard_pod(disruption.guarded), seen)
    elif disruption.is_guarded:
        command = shell_command(f"kubectl annotate node {{}} {DO_NOT_DISRUPT}-", disruption.node)
        yield FixView(title=f"remove {DO_NOT_DISRUPT} from the node", seen=seen, commands=(command,))
    if disruption.protected:
        yield _advised(budgets_by_drain(disruption.node, disruption.protected))


def _budget_fix(disruption: NodeDisruption, place: int) -> FixView:
    left = [obstacle.text for obstacle in disruption.obstacles if obstacle.reason != BLOCKED]
    return _advised(open_pool_budget(disruption.pool, place), f"then {left[0]}" if left else "not tried")


_ENABLING = {"consolidateAfter": "30s", "consolidationPolicy": "WhenEmptyOrUnderutilized"}
"""Karpenter's usual values of the fields that can disable consolidation."""


def _consolidation_fix(disruption: NodeDisruption) -> Iterator[FixView]:
    """Yield the fix for a NodePool that disables the node's consolidation."""
    if disruption.disabling is not None:
        field, value = disruption.disabling
        patch = {"spec": {"disruption": {field: _ENABLING[field]}}}
        command = merge_patch("nodepool", "", disruption.pool, patch)
        title = f"set {field} of NodePool {disruption.pool} from {value} to {_ENABLING[field]}"
        yield FixView(title=title, seen="not tried", commands=(command,))
