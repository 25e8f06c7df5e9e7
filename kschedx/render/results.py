"""The library's results (`kschedx.results.Shown`) as screens, pages, and cards. This module has the only table of which
function renders which result.

A renderer is imported when a result is shown, because each loads a part of kschedx that the others do not need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, cast

from kschedx.results import Shown

if TYPE_CHECKING:
    from kschedx.render.page.model import Page
    from kschedx.render.terminal import StyledLine

LINES: Mapping[str, str] = {
    "DaemonSetAnswer": "subjects.daemon_set_lines",
    "Descheduling": "descheduling.descheduling_lines",
    "DrainPreview": "simulation.drains_lines",
    "DumpDiagnosis": "doctor.diagnosis_lines",
    "ExplanationList": "pending.pending_lines",
    "Fit": "fit.fit_lines",
    "NodeAnswer": "subjects.node_lines",
    "NodeRemovals": "scale_down.scale_down_lines",
    "Overview": "kueue.overview_lines",
    "SetupComparison": "comparison.comparison_lines",
    "SimulationAnswer": "simulation.simulation_lines",
    "Survival": "survival.survival_lines",
    "Tuning": "tuning.tuning_lines",
}
"""A result's class to the function of `kschedx.render` that returns its screen. Screens of the other classes need more
arguments."""
_PAGES: Mapping[str, str] = {
    "Comparison": "comparison.comparison_page",
    "DaemonSetAnswer": "subjects.daemon_set_page",
    "Descheduling": "descheduling.descheduling_page",
    "DrainPreview": "page.simulation.drains_page",
    "DumpDiagnosis": "doctor.doctor_page",
    "Explanation": "page.explanation.explanation_page",
    "ExplanationList": "pending.pending_view",
    "Fit": "fit.fit_view",
    "NodeAnswer": "subjects.node_view",
    "NodeRemovals": "scale_down.scale_down_page",
    "Overview": "kueue.overview_view",
    "SetupComparison": "comparison.comparison_page",
    "Simulation": "page.simulation.result_simulation_page",
    "SimulationAnswer": "page.simulation.simulation_page",
    "Survival": "survival.survival_page",
    "Tuning": "tuning.tuning_view",
}
"""A result's class to the function that returns its page, without the details that can only be read in a viewer that
opens them; or its view, if the page is that with the screen."""


def _renderer(result: Shown, table: Mapping[str, str]) -> Callable[..., object]:
    module, _, name = table.get(type(result).__name__, "").rpartition(".")
    if not module:
        raise TypeError(f"a {type(result).__name__} has no screen")
    function: Callable[..., object] = getattr(import_module(f"kschedx.render.{module}"), name)
    return function


def lines(result: Shown, width: int, *, wide: bool = False) -> Sequence[StyledLine]:
    return cast("Sequence[StyledLine]", _renderer(result, LINES)(result, width=width, wide=wide))


def page(result: Shown) -> Page:
    from kschedx.render.page.model import SCREEN_WIDTH, page_of
    from kschedx.render.view import View

    shown = _renderer(result, _PAGES)(result)
    if isinstance(shown, View):
        return page_of(shown, lines(result, SCREEN_WIDTH), snapshot=getattr(result, "snapshot", None))
    return cast("Page", shown)


def screen(result: Shown) -> str:
    """Return the result's first screen as text, 100 columns wide."""
    return page(result).screen


def card(result: Shown) -> str:
    """Return the result as an SVG picture."""
    from kschedx.render.page.svg import svg

    return svg(page(result))
