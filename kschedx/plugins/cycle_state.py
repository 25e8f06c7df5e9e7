"""What a Filter answers whose PreFilter was not run, as a profile may leave it out of that extension point."""

from __future__ import annotations

import numpy as np

from kschedx.findings import PluginMessage
from kschedx.framework.status import Code, Verdicts


def not_prepared(count: int, reading: str) -> Verdicts:
    """The internal error on each of `count` nodes; `reading` is how the plugin words what it tried to read."""
    text = f"{reading} from cycleState: not found"
    everywhere = np.ones(count, dtype=np.bool_)
    return Verdicts.first_of((everywhere, Code.ERROR, text), explain=lambda _: (PluginMessage(text=text),))
