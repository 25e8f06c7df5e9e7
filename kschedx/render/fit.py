"""The view and screen of `fit`: how many more pods fit."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.controllers.state_causes import causes
from kschedx.controllers.states import Contradicted, NotBound, headline
from kschedx.explain.notes import AFTER_CHANGES
from kschedx.inquiry.fit import Fit
from kschedx.render.fixes import fix_lines
from kschedx.render.layout import headline_lines, table_lines
from kschedx.render.lifecycle import state_tone
from kschedx.render.outcome import outcome_sentence
from kschedx.render.terminal import (
    BLANK,
    BOLD,
    DIM,
    StyledLine,
    because_lines,
    labelled_lines,
    paragraph,
    shortens,
    snapshot_nodes,
)
from kschedx.render.view import FixView, ItemList, Tone, View, ViewItem
from kschedx.wording import count
from kschedx.words.causes import because
from kschedx.words.pod import could_reject

_SHOWN_FITS = 8


def fit_view(fit: Fit) -> View:
    """Return a view with a row for each node that fits more of the pods."""
    stopped = fit.stopped
    return View(
        command="kschedx fit",
        subject=fit.title,
        headline=headline(fit.lifecycle) if fit.lifecycle is not None and fit.is_held else _count_text(fit),
        tone=_fit_tone(fit),
        because=_fit_causes(fit),
        details=tuple(_fit_details(fit)),
        fixes=_fit_fixes(fit),
        event=stopped.message if stopped is not None else fit.refusal,
        lists=(
            ItemList(
                title="Nodes",
                noun="node",
                columns=(("more", True), ("cpu", True), ("memory", True), ("pods", True)),
                items=tuple(
                    ViewItem(
                        title=name,
                        tone=Tone.GOOD,
                        values=(
                            number,
                            *(
                                f"{fit.usage_before[name].percent(item)}→{fit.usage_after[name].percent(item)}%"
                                for item in ("cpu", "memory", "pods")
                            ),
                        ),
                    )
                    for name, number in fit.nodes.items()
                ),
                identical_rows=True,
            ),
        ),
    )


@shortens(snapshot_nodes)
def fit_lines(fit: Fit, *, width: int, wide: bool = False) -> list[StyledLine]:
    """Return the number, what would be enough, what rejects the next pod, and where the pods go."""
    view = fit_view(fit)
    lines = headline_lines(view, width)
    if fit.stopped is not None:
        if fit.count:
            next_one = "the next one is undecided" if fit.could_reject else "the next one does not fit"
            lines += [BLANK, *paragraph(next_one, width, style=BOLD)]
        lines += because_lines(view.because, width)
        if not view.because:
            why = could_reject(fit.could_reject) or view.event or outcome_sentence(fit.stopped.diagnosis, None)
            lines += paragraph(why, width, first="  ")
        lines += fix_lines(view.fixes, "", width)
        if view.because:
            lines += labelled_lines("event", view.event, width, style=DIM, exact=True)
    if fit.refusal:
        lines += [BLANK, *paragraph("the API server refuses more", width, style=BOLD)]
        lines += paragraph(fit.refusal, width, first="  ")
    return [*lines, BLANK, *table_lines(view.lists[0], width, None if wide else _SHOWN_FITS)] if view.items else lines


def _fit_causes(fit: Fit) -> tuple[str, ...]:
    """Return why the next pod does not fit; empty if that is undecided or kube-scheduler has no message about it."""
    if fit.stopped is None or not fit.stopped.message or fit.could_reject:
        return ()
    return because(fit.stopped.diagnosis)


def _fit_fixes(fit: Fit) -> tuple[FixView, ...]:
    """Return the fixes that make room for the next pod."""
    for_whom = "for one more" if fit.wanted is None or fit.wanted - fit.count > 1 else ""
    return tuple(FixView(title=fix.title, seen=for_whom) for fix in fit.fixes[:2])


def _fit_details(fit: Fit) -> Iterator[str]:
    """Yield the pods' own state or the room besides it, the applied changes, and how many nodes would be enough."""
    if fit.lifecycle is not None:
        yield _room(fit) if fit.is_held else headline(fit.lifecycle)
        yield from causes(fit.lifecycle)
    if isinstance(fit.lifecycle, Contradicted | NotBound) and fit.lifecycle.message:
        yield f"event: {fit.lifecycle.message}"
    yield from (note.text for note in fit.setup.notes if note.id == AFTER_CHANGES)
    if fit.missing:
        yield f"needs {_enough(fit)}"
    elif fit.wanted is not None and not (
        fit.is_enough or fit.refusal or fit.could_reject or fit.pod.spec.resource_claims
    ):
        yield "more nodes like the existing ones do not help"


def _room(fit: Fit) -> str:
    """Return how many pods the nodes have room for, if the pods' own state holds them."""
    if not fit.count:
        return "no node has room for one more"
    number = f"{'at least ' if fit.is_bounded and fit.wanted is None else ''}{fit.count:,}"
    return f"the nodes have room for {number}{'' if fit.wanted is None else f' of {fit.wanted:,}'} more"


def _enough(fit: Fit) -> str:
    """Return `2 more nodes like node-3, or 4 like node-1`."""
    first, *others = fit.missing
    every = [f"{count(first.nodes, 'more node')} like {first.like}"]
    every += [f"{nodes.nodes:,} like {nodes.like}" for nodes in others]
    return ", or ".join(every)


def _fit_tone(fit: Fit) -> Tone:
    if fit.lifecycle is not None and fit.is_held:
        return state_tone(fit.lifecycle)
    return Tone.GOOD if fit.is_enough else Tone.OPEN if fit.could_reject else Tone.BAD


def _count_text(fit: Fit) -> str:
    name, number = fit.title, fit.count
    if fit.could_reject and not fit.is_enough:
        return f"{name}: undecided whether {'more fit' if number else 'any fits'}"
    if fit.wanted is not None:
        if fit.is_enough:
            return f"{name}: {number:,} more fit" if number > 1 else f"{name}: 1 more fits"
        return f"{name}: {number:,} of {fit.wanted:,} more fit" if number else f"{name}: no more fit"
    if not number:
        return f"{name}: no more fit"
    at_least = "at least " if fit.is_bounded else ""
    return f"{name}: {at_least}{number:,} more {'fits' if number == 1 else 'fit'}"
