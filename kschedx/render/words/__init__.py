"""Findings in words: a headline that stands alone, the facts under it, and what differs from node to node.

A module per family registers the words of each finding with `in_words`; what `kschedx reason` says of it stands in
`reasons.toml`. Text is not escaped here; whatever prints it calls `wording.visible` first.
"""

from __future__ import annotations

from kschedx.explain.diagnosis import NodeDetail
from kschedx.findings import Finding, InsufficientResource
from kschedx.render.wording import Words, in_words
from kschedx.render.words import constraints, devices, pod, resources, volumes

FAMILIES = (constraints, devices, pod, resources, volumes)
"""Each registers its words when it is loaded."""


def headline(finding: Finding) -> str:
    """One line in lower case with the number in it and no advice."""
    return describe(finding).headline


def describe(finding: Finding, detail: NodeDetail | None = None) -> Words:
    """A finding in words; `detail` adds what surrounds it on its node: parts of the request, holders."""
    if isinstance(finding, InsufficientResource):
        return resources.insufficient_resource(finding, detail)
    return in_words(finding)
