"""What cluster-autoscaler or Karpenter does about a pod, and what it adds for all pending pods, in words.

The words of node groups are in `render.autoscaler`, those of NodePools in `render.karpenter`: each is loaded only if
the cluster has that autoscaler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kschedx.grouping import group_pairs
from kschedx.inquiry.explanation import Explanation
from kschedx.render.terminal import DIM, StyledLine, fact_block, labelled_lines, paragraph, text
from kschedx.render.view import Decider, DeciderRow, FixView
from kschedx.wording import count, list_names
from kschedx.words.growth import MOST_NAMES, OUTCOMES, DecisionWords

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import Growth, NodeScaling

_SAME = "the recorded event is the same"

# The decision about one pod.


def decider_of(scaling: NodeScaling, explanation: Explanation) -> Decider:
    """Return what an autoscaler does about the pod, and that it does not run if none of its pods runs."""
    snapshot, key = explanation.cycle.snapshot, explanation.cycle.pod.key
    if scaling.autoscaler.name == "Karpenter":
        from kschedx.render.karpenter import decision_words as pool_words
        from kschedx.render.karpenter import trial_result

        name, words = "karpenter", pool_words(scaling, snapshot.karpenter_events.get(key))
    else:
        from kschedx.render.autoscaler import decision_words as group_words
        from kschedx.render.autoscaler import trial_result

        name, words = "autoscaler", group_words(scaling, snapshot.autoscaler_events.get(key))
    titles = tuple(fix.title for fix in explanation.fixes)
    remedies = (it for it in scaling.remedies if not any(title.startswith(it.title) for title in titles))
    down = explanation.autoscaler_down
    recorded = words.recorded
    if recorded and words.event:
        others = f"(recorded at another time, or with other {words.settings})"
        recorded = _SAME if words.is_same else f"{recorded}  {others}"
    return Decider(
        name=name,
        sentence=words.sentence if down is None else f"does not run: {down.shown}; otherwise {words.sentence}",
        rows=(*([DeciderRow(text=words.first)] if words.first else ()), *_rows(words)),
        event=words.event,
        recorded=recorded,
        reports=words.reports,
        fixes=tuple(FixView(title=remedy.title, seen=trial_result(remedy)) for remedy in remedies),
        basis=words.basis,
    )


def _rows(words: DecisionWords) -> Iterator[DeciderRow]:
    """Yield a row for all places with the same text."""
    rows = group_pairs((place.text, place) for place in words.places)
    for number, row in enumerate(sorted(rows.values(), key=lambda row: row[0].order)):
        many = f" ({count(len(row), words.noun)})" if len(row) > 1 else ""
        yield DeciderRow(
            text=f"{list_names([place.name for place in row], MOST_NAMES)}{many} {row[0].text}",
            facts=tuple(row[0].facts()),
            is_brief=number > 0 or row[0].is_brief,
        )


def decider_lines(
    decider: Decider, width: int, limit: int | None = None, *, is_brief: bool = False
) -> list[StyledLine]:
    """Return the sentence, why each node group or NodePool does not help, the event, and what makes it help. `limit` is
    the maximum number of rows; a brief decision has no facts, and no basis."""
    lines = paragraph(decider.sentence, width, first=decider.name.ljust(12))
    shown = []
    for row in decider.rows:
        facts = () if is_brief or (row.is_brief and limit is not None) else row.facts
        is_said = row.is_cause and limit is not None
        if facts or not is_said:
            shown.append((row.names if is_said else row.text, facts))
    for content, facts in shown[:limit]:
        lines += paragraph(content, width, first="  ", indent=6)
        lines += fact_block(facts, width, 2)
    if limit is not None and len(shown) > limit:
        lines.append(text(f"  {count(len(shown) - limit, 'more reason')}: -o wide", DIM))
    if decider.event:
        lines += labelled_lines("event", decider.event, width, exact=True)
    if decider.recorded and not (is_brief and decider.recorded == _SAME):
        lines += labelled_lines("" if decider.recorded == _SAME else "recorded", decider.recorded, width, exact=True)
    for number, fix in enumerate(decider.fixes):
        lines += labelled_lines("" if number else "fix", fix.text, width, further=2)
    basis = () if is_brief else decider.basis if limit is None else decider.basis[:1]
    return [*lines, *(line for phrase in basis for line in labelled_lines("by", phrase, width))]


# What an autoscaler adds for all pending pods.


def growth_text(growth: Growth) -> str:
    """Return what an autoscaler adds for all pending pods, in a sentence, and the most common reason of the node groups
    or NodePools for pods that none helps: `. spot: in backoff after failed scale-up`."""
    if growth.autoscaler == "Karpenter":
        from kschedx.render.karpenter import growth_words as pool_words

        words = pool_words(growth)
    else:
        from kschedx.render.autoscaler import growth_words as group_words

        words = group_words(growth)
    added = f"{', '.join(words.added)} for {count(growth.helped, 'pod')}{words.how}" if words.added else "no node"
    left = [words.no_help.format(count(growth.left, "pod"))] if growth.left else []
    passed_over = (f"{number:,} {OUTCOMES[outcome][1]}" for outcome, number in growth.passed_over.items())
    phrase = "; ".join((f"{growth.autoscaler} adds {added}", *left, *words.expected, *passed_over, *words.failed))
    texts = [
        f"{list_names(names, MOST_NAMES)}: {reason}" if names else reason for reason, names in words.reasons.items()
    ]
    if not texts:
        return phrase
    more = [f"{count(len(texts) - MOST_NAMES, 'more reason')}"] if len(texts) > MOST_NAMES else []
    most = "" if words.refused == growth.left else f"Most often ({count(words.refused, 'pod')}): "
    return f"{phrase}. {most}{'; '.join([*texts[:MOST_NAMES], *more])}"
