"""The library's results as screens and cards (`kschedx.results.Shown`)."""

from __future__ import annotations

from kschedx.descheduler.descheduling import Descheduling
from kschedx.doctor.diagnosis import Diagnosis
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.profile_difference import Comparison
from kschedx.kueue.overview import Overview
from kschedx.render.descheduling import descheduling_page
from kschedx.render.kueue import overview_page
from kschedx.render.page.explanation import explanation_page
from kschedx.render.page.model import Page
from kschedx.render.page.reports import (
    comparison_page,
    doctor_page,
    drains_page,
    fit_page,
    simulation_page,
)
from kschedx.render.page.svg import svg
from kschedx.render.survival import survival_page
from kschedx.render.tuning import tuning_page
from kschedx.results import Shown
from kschedx.simulate.fit import Fit
from kschedx.simulate.simulation import Simulation
from kschedx.simulate.survive import Survival
from kschedx.simulate.tuning import Tuning


def screen(result: Shown) -> str:
    """Its first screen as text, 100 columns wide."""
    return page(result).screen


def card(result: Shown) -> str:
    """An SVG picture."""
    return svg(page(result))


def page(result: Shown) -> Page:
    """Without the details that can only be read where something can be opened."""
    match result:
        case Explanation():
            return explanation_page(result, every_node=False)
        case Simulation(drained=()):
            return simulation_page(result)
        case Simulation():
            return drains_page(result, each=len(result.drained) == result.before.cluster.count > 1)
        case Fit():
            return fit_page(result)
        case Survival():
            return survival_page(result)
        case Comparison():
            return comparison_page(result.before, result.after, result.changes, result.summary, result.snapshot)
        case Diagnosis():
            return doctor_page(result)
        case Overview():
            return overview_page(result)
        case Descheduling():
            return descheduling_page(result)
        case Tuning():
            return tuning_page(result)
        case _:
            raise TypeError(f"a {type(result).__name__} has no screen")
