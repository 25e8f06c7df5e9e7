"""The screen and the page of `kschedx profiles tune`: the tried profiles, the best one, and what it changes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kschedx.explain.profile_changes import changes
from kschedx.render.comparison import changes_table
from kschedx.render.layout import head_lines, table_lines
from kschedx.render.manifests import to_yaml
from kschedx.render.terminal import BLANK, BOLD, StyledLine, paragraph, text
from kschedx.render.view import FixView, ItemList, Tone, View, ViewItem
from kschedx.simulate.tuning import ProfileTrial, Tuning, TuningGoal
from kschedx.wording import Fact, count, price_text

_SHOWN_TRIALS = 8  # rows: the cluster now, today's profile, and the Pareto front
_HEADS = ("nodes", "fragmented", "spread", "moves", "unplaced")


def tuning_lines(tuning: Tuning, width: int, *, wide: bool = False) -> list[StyledLine]:
    """Return the headline, the front, and the best configuration with its difference from today's."""
    view = tuning_view(tuning)
    lines = [
        *head_lines(replace(view, fixes=()), width),
        BLANK,
        *table_lines(view.lists[0], width, None if wide else _SHOWN_TRIALS),
    ]
    for changed in view.tables:
        lines += [BLANK, text(changed.title, BOLD)]
        for row in changed.rows:
            lines += paragraph("  ".join(map(str, row)), width, first="  ", indent=4)
    if not tuning.is_better:
        return lines
    lines += [BLANK, text("its configuration (-o yaml prints it alone)", BOLD)]
    return lines + [text(f"  {splitline}") for splitline in to_yaml(tuning.configuration).splitlines()]


def _values(trial: ProfileTrial, tuning: Tuning) -> tuple[str, ...]:
    """Return the cells for `_HEADS`, and the cost if that of today's profile is known."""
    cost = () if tuning.today.cost is None else ("" if trial.cost is None else f"{trial.cost:.2f}",)
    numbers = (f"{trial.fragmentation:.1f}%", f"{trial.spread:.1f}", f"{trial.moves:,}", f"{trial.unplaced:,}")
    return (f"{trial.nodes:,}", *numbers, *cost)


def tuning_view(tuning: Tuning) -> View:
    """Return a view with the best profile as a fix, and a row for each profile of the front."""
    left_out = (f"{tuning.left_out:,} more had no time: --seconds",) if tuning.left_out else ()
    tried = f"{count(tuning.candidates, 'profile')} for {tuning.goal.value}, seed {tuning.seed}"
    before, after = tuning.before, tuning.after
    changed = changes_table("what the best changes", changes(before, after), before, after)
    fix = FixView(title=f"profile: {tuning.best.candidate.title}", changes=(tuning.configuration,))
    return View(
        command="kschedx profiles tune",
        subject=tuning.goal.value,
        headline=_headline(tuning),
        tone=Tone.GOOD if tuning.is_better else Tone.BAD,
        facts=(Fact.of("tried", tried, *left_out), Fact.of("assumes", *tuning.assumptions)),
        fixes=(fix,) if tuning.is_better else (),
        lists=(
            ItemList(
                title="Profiles of which no other is better in everything",
                noun="profile",
                columns=tuple(
                    (name, True) for name in (*_HEADS, *(("cost",) if tuning.today.cost is not None else ()))
                ),
                items=tuple(_items(tuning)),
            ),
        ),
        tables=(changed,) if tuning.is_better else (),
    )


def _headline(tuning: Tuning) -> str:
    today, best = tuning.today, tuning.best
    if not tuning.is_better:
        return f"no profile that was tried is better than today's: {_measure(tuning.goal, today, tuning)}"
    unplaced = f", and {count(best.unplaced, 'pod')} without a node" if best.unplaced else ""
    title = best.candidate.title
    return (
        f"{title}: {_measure(tuning.goal, best, tuning)}, with today's profile {_short(tuning.goal, today)}{unplaced}"
    )


def _measure(goal: TuningGoal, trial: ProfileTrial, tuning: Tuning) -> str:
    if goal is TuningGoal.FEWEST_NODES:
        return f"{trial.nodes:,} of {count(tuning.all_nodes, 'node')} in use"
    if goal is TuningGoal.LEAST_FRAGMENTATION:
        return f"{trial.fragmentation:.1f}% of the free capacity is fragmented"
    if goal is TuningGoal.SPREAD:
        return f"nodes differ by {trial.spread:.1f} points"
    return f"the nodes in use cost {_short(goal, trial)} an hour"


def _short(goal: TuningGoal, trial: ProfileTrial) -> str:
    if goal is TuningGoal.FEWEST_NODES:
        return f"{trial.nodes:,}"
    if goal is TuningGoal.LEAST_FRAGMENTATION:
        return f"{trial.fragmentation:.1f}%"
    return f"{trial.spread:.1f}" if goal is TuningGoal.SPREAD else price_text(trial.cost or 0.0)


def _items(tuning: Tuning) -> Iterator[ViewItem]:
    yield ViewItem(title="now", tone=Tone.PLAIN, values=_values(tuning.now, tuning))
    for shown_trial in (tuning.today, *(trial for trial in tuning.front if trial is not tuning.today)):
        tone = Tone.GOOD if shown_trial is tuning.best and tuning.is_better else Tone.PLAIN
        title = "today's profile" if shown_trial is tuning.today else shown_trial.candidate.title
        yield ViewItem(title=title, tone=tone, values=_values(shown_trial, tuning))
