"""HTTP extenders: webhooks that filter, score and choose victims beside the plugins.

`run` is their part of a cycle; `requests` and `answers` are what goes over the wire, `calls` the facts that are kept of
it. Who answers is handed in (`calls.Ask`): the extenders themselves (`client`), or a recording (`replay`).
"""

from kschedx.extenders.calls import Ask, ExtenderAnswer, ExtenderFailure, ExtenderRequest, ExtenderVerb, Reply, Trace
from kschedx.extenders.requests import Objects
from kschedx.extenders.run import Extenders, Feasible, FilteredByExtenders, Preempted

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
