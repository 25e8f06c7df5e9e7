"""HTTP extenders: webhooks that filter, score and choose victims beside the plugins.

`cycle` has their part of a cycle, in which `run` asks them and `scoring` adds what they say to the plugins' scores;
`requests` and `answers` are what goes over the wire, `calls` the facts that are kept of it. Who really asks is handed
in (`calls.Ask`): kschedx calls nobody by itself.
"""

from kschedx.framework.extenders.calls import Answer, Ask, Failure, Question, Reply, Trace, Verb
from kschedx.framework.extenders.requests import Objects
from kschedx.framework.extenders.run import Extenders, Feasible, Filtered, Preempted

__all__ = [
    "Answer",
    "Ask",
    "Extenders",
    "Failure",
    "Feasible",
    "Filtered",
    "Objects",
    "Preempted",
    "Question",
    "Reply",
    "Trace",
    "Verb",
]
