"""A live cluster, read as kubectl reads it: `kubeconfig` says where, `client` asks, `lists` pages, `reading` is all kinds.

Nothing but GET is ever sent.
"""
