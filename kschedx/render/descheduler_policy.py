"""Advice about a DeschedulerPolicy: the effect of every plugin by itself, and the policy for the goal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace
from rich.text import Text

from kschedx.descheduler.advice import PolicyAdvice, PolicyGoal, PolicyTrial
from kschedx.render.layout import head_lines
from kschedx.render.page.model import SCREEN_WIDTH, Column, Page, Table, page_of
from kschedx.render.terminal import BLANK, DIM, columns, line, more
from kschedx.render.view import Fix, Tone, View, ViewItem
from kschedx.render.wording import Fact, count
from kschedx.snapshot.snapshot import Snapshot

MOST_TRIED = 5
_HEADS = ("evictions", "bounces", "returned", "pending")
"""Evicted pods, pods that a later round evicts again, pods that return to the same node, and pods that stay pending."""


def advice_lines(advice: PolicyAdvice, width: int, *, wide: bool = False) -> list[Text]:
    """Return the headline, the plugins that would evict pods, and the policies that were tried for the goal."""
    lines = head_lines(replace(_advice_view(advice), fixes=()), width)  # -o yaml prints the policy, not --fix
    lines += [BLANK, line("each plugin by itself")]
    shown = [plugin for plugin in advice.plugins if wide or plugin.evictions or plugin.error]
    rows = [(_title(trial), *map(_number, _numbers(trial))) for trial in shown]
    lines += _table(("plugin", *_HEADS), rows, width)
    idle = len(advice.plugins) - len(shown)
    if idle:
        lines.append(line((f"  {count(idle, 'other')} evict no pod" if rows else "  none evicts a pod", DIM)))
    tried = sorted(advice.tried, key=lambda trial: (trial is not advice.chosen, not trial.evictions, trial.measure))
    shown = tried if wide else tried[:MOST_TRIED]
    lines += [BLANK, line(f"policies tried for {advice.goal}")]
    rows = [(_title(trial), _limit(trial), *_tried(trial)) for trial in shown]
    lines += _table(("policy", "limit", *_TRIED_HEADS, _measure_name(advice.goal)), rows, width)
    return lines + more(len(tried) - len(shown))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[Text]:
    if not rows:
        return []
    return columns([heads, *rows], indent=2, header=True, right=frozenset(range(1, len(heads))), width=width)


def _measure_name(goal: PolicyGoal) -> str:
    return "apart" if goal is PolicyGoal.BALANCE else "empty"


_TRIED_HEADS = ("evictions", "bounces", "pending")


def _tried(trial: PolicyTrial) -> tuple[str, ...]:
    """Return the cells for `_TRIED_HEADS`, and the measure."""
    return tuple(map(_number, (trial.evictions, trial.bounces, trial.pending, trial.measure)))


def _number(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else value


def _limit(trial: PolicyTrial) -> str:
    limit = trial.max_evictions
    return "" if limit is None else _number(limit)


def _advice_view(advice: PolicyAdvice) -> View:
    """Return a view with the policy as a fix, and a row for each plugin."""
    chosen = advice.chosen
    return View(
        command="kschedx descheduler-policy advise",
        subject=advice.goal.value,
        headline=_headline(advice),
        tone=Tone.GOOD if advice.is_reached and (chosen or advice.target is not None) else Tone.BAD,
        facts=tuple(_facts(advice)),
        fixes=() if chosen is None else (Fix(title=_title(chosen), changes=(chosen.policy,)),),
        items=tuple(_item(plugin) for plugin in advice.plugins),
        list_title="Each plugin by itself",
        list_noun="plugin",
        list_columns=tuple((name, True) for name in _HEADS),
    )


def _headline(advice: PolicyAdvice) -> str:
    chosen, goal = advice.chosen, advice.goal
    if chosen is None:
        if advice.is_reached:
            return f"the goal is reached without any eviction: {_state(goal, advice.before)}"
        return f"no policy that was tried improves {goal}: {_state(goal, advice.before)}"
    text = f"{chosen.plugin} reaches {goal} with {count(chosen.evictions, 'eviction')}"
    if not advice.is_reached:
        text = f"{chosen.plugin} comes closest to {goal} with {count(chosen.evictions, 'eviction')}"
    return f"{text}: {_change(goal, advice.before, chosen.measure)}"


def _state(goal: PolicyGoal, measure: int) -> str:
    if goal is PolicyGoal.BALANCE:
        return f"the fullest and the emptiest node differ by {count(measure, 'percentage point')}"
    return f"{count(measure, 'node')} {'runs' if measure == 1 else 'run'} nothing but DaemonSets"


def _change(goal: PolicyGoal, before: int, after: int) -> str:
    if goal is PolicyGoal.BALANCE:
        return f"the fullest and the emptiest node differ by {after} instead of {count(before, 'percentage point')}"
    return f"{after} instead of {count(before, 'node')} run nothing but DaemonSets"


def _facts(advice: PolicyAdvice) -> Iterator[Fact]:
    if advice.target is not None:
        yield Fact(label="target", items=(_state(advice.goal, advice.target),))
    if advice.chosen is not None:
        limit = advice.chosen.max_evictions
        limits = () if limit is None else (f"at most {count(limit, 'eviction')} a round",)
        yield Fact(label="policy", items=(_title(advice.chosen), *limits, "-o yaml prints it"))
        return
    harmful = [trial for trial in advice.tried if trial.evictions and not trial.is_harmless]
    if harmful:
        back = sum(bool(trial.bounces) for trial in harmful)
        stay = sum(bool(trial.pending) for trial in harmful)
        bounce = f"{count(back, 'policy bounces', 'policies bounce')} pods" if back else ""
        leave = f"{count(stay, 'policy leaves', 'policies leave')} pods pending" if stay else ""
        if bounce or leave:
            yield Fact(label="because", items=tuple(filter(None, (bounce, leave))))
    if advice.goal is PolicyGoal.COMPACTION:
        text = "kube-scheduler's default scoring prefers empty nodes: try --config binpack (MostAllocated)"
        yield Fact(label="note", items=(text,))


def _title(trial: PolicyTrial) -> str:
    return " ".join(filter(None, (trial.plugin, _args_text(trial.args))))


def _args_text(args: Mapping[str, object]) -> str:
    """Return the args on one line, abbreviated."""
    low, high = args.get("thresholds"), args.get("targetThresholds")
    if isinstance(low, Mapping):
        spans: dict[str, list[str]] = {}
        for name, percent in low.items():
            span = f"{percent}-{high[name]}%" if isinstance(high, Mapping) else f"{percent}%"
            spans.setdefault(f"±{percent}" if args.get("useDeviationThresholds") else span, []).append(name)
        return " ".join(f"{', '.join(names)} {span}" for span, names in spans.items())
    kinds = args.get("nodeAffinityType")
    if isinstance(kinds, list):
        return "required" if str(kinds[0]).startswith("required") else "preferred"
    age = args.get("maxPodLifeTimeSeconds")
    if isinstance(age, int):
        return f"above {age // 86400} days"
    return " ".join(f"{name} {json.dumps(value)}" for name, value in args.items())


def _numbers(trial: PolicyTrial) -> tuple[int | str, ...]:
    """Return the cells for `_HEADS`."""
    return (
        (trial.evictions, trial.bounces, trial.returned, trial.pending)
        if trial.placed
        else (trial.evictions, "?", "?", "?")
    )


def _item(trial: PolicyTrial) -> ViewItem:
    facts = [Fact(label="args", items=(json.dumps(trial.args),))] if trial.args else []
    facts += [Fact(label="limited", items=(f"{count(trial.refused, 'eviction')} refused",))] if trial.refused else []
    facts += [Fact(label="error", items=(trial.error,))] if trial.error else []
    tone = Tone.PLAIN if not trial.evictions else Tone.GOOD if trial.is_harmless else Tone.BAD
    return ViewItem(title=_title(trial), tone=tone, values=_numbers(trial), facts=tuple(facts))


def advice_page(advice: PolicyAdvice, snapshot: Snapshot) -> Page:
    """Return a page with the plugins, and the policies that were tried."""
    heads = ("policy", "limit", *_TRIED_HEADS, _measure_name(advice.goal))
    tried = Table(
        title=f"Tried for {advice.goal}",
        columns=tuple(Column(label=label, is_number=number > 0) for number, label in enumerate(heads)),
        rows=tuple((_title(trial), _limit(trial), *_tried(trial)) for trial in advice.tried),
    )
    lines = advice_lines(advice, SCREEN_WIDTH)
    return page_of(_advice_view(advice), lines, (tried,), snapshot)
