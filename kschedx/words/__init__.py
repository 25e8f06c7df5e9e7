"""Findings in words: a headline that is complete by itself, the facts below it, and what differs between nodes.

One module for each family registers the words of its findings with `in_words`; the texts of `kschedx reason` are in
`reasons.toml`. Text is not escaped here; each renderer calls `wording.visible` first.
"""

from __future__ import annotations

from kschedx.explain.diagnosis import NodeDetail
from kschedx.findings import Finding, InsufficientResource
from kschedx.wording import Words, in_words
from kschedx.words import constraints, devices, pod, resources, volumes

FAMILIES = (constraints, devices, pod, resources, volumes)  # modules that register their words when they are loaded


def headline(finding: Finding) -> str:
    """Return one line in lower case, with the number and without advice."""
    return describe(finding).headline


def describe(finding: Finding, detail: NodeDetail | None = None) -> Words:
    """Return a finding in words. `detail` adds its context on the node: parts of the request, and the pods that use the
    resource."""
    if isinstance(finding, InsufficientResource):
        return resources.insufficient_resource(finding, detail)
    return in_words(finding)
