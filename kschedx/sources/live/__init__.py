"""A live cluster, read as kubectl reads it. Nothing but GET is ever sent.

`kubeconfig` says where, `credentials` logs in, `client` asks, `lists` takes one kind's pages, `reading` all kinds.
"""
