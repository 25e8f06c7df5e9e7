"""The autoscaler's flags as its Deployment has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from kschedx.autoscaler.flags import READ
from kschedx.errors import InputError

Written = dict[str, list[str]]
"""Flag without dashes to each value that it was given."""

_SWITCHES = frozenset({
    "balance-similar-node-groups", "force-ds", "scale-from-unschedulable", "scale-up-from-zero",
    "fastpath-binpacking-enabled", "scaleup-simulation-for-skipped-node-groups-enabled",
    "skip-nodes-with-local-storage", "skip-nodes-with-system-pods", "skip-nodes-with-custom-controller-pods",
})  # fmt: skip
"""Flags that need no value."""


def parsed(arguments: Sequence[str]) -> Written:
    """`--name=value`, `--name value`, `-name=value`, and a switch alone."""
    found: Written = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or len(word.lstrip("-")) == 0:
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not equals:
            takes_next = name not in _SWITCHES and words and not words[0].startswith("-")
            value = words.pop(0) if takes_next else "true"
        found.setdefault(name, []).append(value)
    return found


def typed(options: Sequence[str]) -> Written:
    """`NAME=VALUE` of `--autoscaler-flag`. Raises `InputError`."""
    found: Written = {}
    for option in options:
        name, equals, value = option.lstrip("-").partition("=")
        if not name:
            raise InputError(f"--autoscaler-flag: {json.dumps(option)} is not NAME=VALUE")
        found.setdefault(name, []).append(value if equals else "true")
    return found


def of_deployments(workloads: Mapping[tuple[str, str, str], bytes]) -> Written | None:
    """The flags of the one Deployment that runs cluster-autoscaler; None where there is none, or several."""
    found = [flags for (kind, _, _), raw in workloads.items() if kind == "Deployment" for flags in _flags_in(raw)]
    return found[0] if len(found) == 1 else None


def _flags_in(raw: bytes) -> Iterator[Written]:
    if b"cluster-autoscaler" not in raw:
        return
    spec = json.loads(raw).get("spec", {}).get("template", {}).get("spec", {})
    for container in spec.get("containers") or ():
        words = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
        program = words[0].rpartition("/")[2] if words else ""
        is_it = program == "cluster-autoscaler" or "cluster-autoscaler" in str(container.get("image", ""))
        if is_it:
            yield {name: values for name, values in parsed(words).items() if name in READ or name == "cloud-provider"}
