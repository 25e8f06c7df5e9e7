"""HTTP extenders: webhooks that filter, score and choose victims beside the plugins.

`cycle` has their part of a cycle, in which `run` asks them and `scoring` adds what they say to the plugins' scores;
`requests` and `answers` are what goes over the wire, `calls` the facts that are kept of it. Who really asks is handed
in (`calls.Ask`): kschedx calls nobody by itself.
"""

from kschedx.extenders.calls import Ask, ExtenderAnswer, ExtenderFailure, ExtenderRequest, ExtenderVerb, Reply, Trace
from kschedx.extenders.run import Extenders, Feasible, FilteredByExtenders, Preempted
from kschedx.extenders.wire import Objects

__all__ = [
    "Ask",
    "ExtenderAnswer",
    "ExtenderFailure",
    "ExtenderRequest",
    "ExtenderVerb",
    "Extenders",
    "Feasible",
    "FilteredByExtenders",
    "Objects",
    "Preempted",
    "Reply",
    "Trace",
]
