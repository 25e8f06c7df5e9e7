"""The library's results (`kschedx.results.Shown`) as screens, pages, and cards: the one table of what shows which.

A renderer is imported when a result is shown, since each loads a part of kschedx that the others do not need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, cast

from kschedx.results import Shown

if TYPE_CHECKING:
    from rich.text import Text

    from kschedx.render.page.model import Page

LINES: Mapping[str, str] = {
    "Descheduling": "descheduling.descheduling_lines",
    "Diagnosis": "doctor.diagnosis_lines",
    "Fit": "simulation.fit_lines",
    "Overview": "kueue.overview_lines",
    "Survival": "survival.survival_lines",
    "Tuning": "tuning.tuning_lines",
}
"""A result's class to the function of `kschedx.render` that gives its screen; the others' screens take more."""
PAGES: Mapping[str, str] = {
    "Comparison": "page.reports.result_comparison_page",
    "Descheduling": "descheduling.descheduling_page",
    "Diagnosis": "page.reports.doctor_page",
    "Explanation": "page.explanation.explanation_page",
    "Fit": "page.reports.fit_page",
    "Overview": "kueue.overview_page",
    "Simulation": "page.reports.result_simulation_page",
    "Survival": "survival.survival_page",
    "Tuning": "tuning.tuning_page",
}
"""The same for its page, without the details that can only be read where something can be opened."""


def _renderer(result: Shown, table: Mapping[str, str]) -> Callable[..., object]:
    module, _, name = table.get(type(result).__name__, "").rpartition(".")
    if not module:
        raise TypeError(f"a {type(result).__name__} has no screen")
    found: Callable[..., object] = getattr(import_module(f"kschedx.render.{module}"), name)
    return found


def lines(result: Shown, width: int, *, wide: bool = False) -> Sequence[Text]:
    return cast("Sequence[Text]", _renderer(result, LINES)(result, width=width, wide=wide))


def page(result: Shown) -> Page:
    return cast("Page", _renderer(result, PAGES)(result))


def screen(result: Shown) -> str:
    """Its first screen as text, 100 columns wide."""
    return page(result).screen


def card(result: Shown) -> str:
    """An SVG picture."""
    from kschedx.render.page.svg import svg

    return svg(page(result))
