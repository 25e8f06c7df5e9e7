"""HTTP extenders: webhooks that filter, score, and choose victims in addition to plugins.

`run` is their part of a cycle, `requests` and `answers` are the messages, and `framework.extenders` has the facts that
are kept about them. The caller passes in the source of the answers (`framework.extenders.Ask`): the extenders
themselves (`client`) or a recording (`replay`).
"""
