"""Reads a live cluster as kubectl does. All requests are GETs, unless a dry run is requested.

`kubeconfig` finds the cluster, `credentials` logs in, `client` sends requests, `lists` reads the pages of one kind, and
`cluster` all kinds.
"""
