"""HTTP extenders: webhooks that filter, score and choose victims beside the plugins.

`run` is their part of a cycle; `requests` and `answers` are what goes over the wire, `framework.extenders` the facts
that are kept of it. Who answers is handed in (`framework.extenders.Ask`): the extenders themselves (`client`), or a
recording (`replay`).
"""
