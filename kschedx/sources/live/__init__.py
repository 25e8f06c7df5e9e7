"""A live cluster, read as kubectl reads it. Nothing but GET is sent, unless a dry run is asked for.

`kubeconfig` says where, `credentials` logs in, `client` asks, `lists` takes one kind's pages, `reading` all kinds.
"""
