"""The command line of cluster-autoscaler, as the one Deployment that runs it has it.

What may be kept of it is what decides: the flags named here. Upstream: config/flags/flags.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Written = dict[str, list[str]]
"""Flag without dashes to each value that it was given."""

PROGRAM = "cluster-autoscaler"

SCHEDULER_CONFIG = "scheduler-config-file"
"""The file whose profile the autoscaler judges all pods with, instead of the default one."""

SCALE_UP = frozenset({
    "cloud-provider", "expander", "balance-similar-node-groups", "balancing-label", "balancing-ignore-label",
    "memory-difference-ratio", "max-free-difference-ratio", "max-allocatable-difference-ratio", "max-nodes-total",
    "max-nodes-per-scaleup", "cores-total", "memory-total", "gpu-total", "ok-total-unready-count",
    "max-total-unready-percentage", "max-node-startup-time", "expendable-pods-priority-cutoff",
    "new-pod-scale-up-delay", "startup-taint", "ignore-taint", "startup-taint-prefix", "status-taint", "force-ds",
    "scale-from-unschedulable", "scale-up-from-zero", "fastpath-binpacking-enabled",
    "scaleup-simulation-for-skipped-node-groups-enabled", "bypassed-scheduler-names", "allowed-scheduler-names",
    SCHEDULER_CONFIG,
})  # fmt: skip
"""The flags that decide about adding nodes."""

SCALE_DOWN = frozenset({
    "scale-down-enabled", "scale-down-unneeded-time", "scale-down-unready-time", "scale-down-unready-enabled",
    "scale-down-utilization-threshold", "scale-down-gpu-utilization-threshold",
    "scale-down-delay-after-add", "scale-down-delay-after-delete", "scale-down-delay-after-failure",
    "scale-down-delay-type-local", "scale-down-non-empty-candidates-count", "scale-down-candidates-pool-ratio",
    "scale-down-candidates-pool-min-count", "ignore-daemonsets-utilization", "ignore-mirror-pods-utilization",
    "skip-nodes-with-local-storage", "skip-nodes-with-system-pods", "skip-nodes-with-custom-controller-pods",
    "cores-total", "memory-total", "gpu-total", "min-replica-count",
    "blocking-system-pod-distruption-timeout", "max-drain-parallelism", SCHEDULER_CONFIG,
    "enable-dynamic-resource-allocation",
})  # fmt: skip
"""The flags that decide about removing nodes."""

FLAGS = SCALE_UP | SCALE_DOWN

SWITCHES = frozenset({
    "balance-similar-node-groups", "force-ds", "scale-from-unschedulable", "scale-up-from-zero",
    "fastpath-binpacking-enabled", "scaleup-simulation-for-skipped-node-groups-enabled",
    "skip-nodes-with-local-storage", "skip-nodes-with-system-pods", "skip-nodes-with-custom-controller-pods",
    "scale-down-enabled", "scale-down-unready-enabled", "scale-down-delay-type-local",
    "ignore-daemonsets-utilization", "ignore-mirror-pods-utilization", "enable-dynamic-resource-allocation",
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
            takes_next = name not in SWITCHES and words and not words[0].startswith("-")
            value = words.pop(0) if takes_next else "true"
        found.setdefault(name, []).append(value)
    return found


def flags_of_containers(deployment: object) -> Iterator[tuple[int, Written]]:
    """Position of each container of a Deployment's template that runs cluster-autoscaler, with its `FLAGS`."""
    at = deployment
    for part in ("spec", "template", "spec", "containers"):
        at = at.get(part) if isinstance(at, Mapping) else None
    for position, container in enumerate(at if isinstance(at, list) else ()):
        if not isinstance(container, Mapping):
            continue
        words = [*_texts(container.get("command")), *_texts(container.get("args"))]
        program = words[0].rpartition("/")[2] if words else ""
        if program == PROGRAM or PROGRAM in str(container.get("image", "")):
            yield position, {name: values for name, values in parsed(words).items() if name in FLAGS}


def command(flags: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """The fields of a container that runs cluster-autoscaler with these flags."""
    return {"command": [PROGRAM], "args": [f"--{name}={value}" for name in sorted(flags) for value in flags[name]]}


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []
