"""Pods that are alike: the cluster-autoscaler judges one of them for all.

Upstream: core/scaleup/equivalence/groups.go, simulator/scheduling/similar_pods.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import msgspec

from kschedx.autoscaler.templates import has_daemon_set_annotation
from kschedx.snapshot.pods import PodTable

MOST_KINDS_OF_A_CONTROLLER = 10

_ENCODER = msgspec.json.Encoder()


class PodKinds:
    """What makes the pods of a table alike."""

    def __init__(self, pods: PodTable) -> None:
        self._pods = pods
        self._specs: dict[int, bytes] = {}
        self._labels: dict[int, Hashable] = {}

    def controller(self, row: int) -> str | None:
        """The uid of the pod's controller."""
        return next((owner.uid for owner in self._pods.owners[row] if owner.controller), None)

    def template(self, row: int) -> Hashable:
        """What two pods of a controller have in common where they are alike: labels and spec."""
        labels, spec = int(self._pods.labels.codes[row]), int(self._pods.specs.codes[row])
        if labels not in self._labels:
            self._labels[labels] = tuple(sorted(self._pods.labels.values[labels].items()))
        if spec not in self._specs:
            self._specs[spec] = _ENCODER.encode(self._pods.specs.values[spec])
        return self._labels[labels], self._specs[spec]

    def identity(self, row: int) -> Hashable:
        """What decides about a pod on a node; claims of its own name are a part of that."""
        pods = self._pods
        spec = pods.specs[row]
        named = pods.names[row] if any(volume.ephemeral is not None for volume in spec.volumes) else ""
        return (
            int(pods.namespaces.codes[row]),
            int(pods.labels.codes[row]),
            int(pods.specs.codes[row]),
            named,
        )

    def is_of_daemon_set(self, row: int) -> bool:
        owner = next((owner for owner in self._pods.owners[row] if owner.controller), None)
        is_owned = owner is not None and owner.kind == "DaemonSet"
        return is_owned or has_daemon_set_annotation(self._pods.annotations[row])

    def groups(self, rows: Iterable[int]) -> tuple[tuple[int, ...], ...]:
        """Pods that are judged together, each in the order of `rows`.

        A pod without controller is alone, and so is each pod of a controller beyond its first ten kinds.
        """
        groups: list[list[int]] = []
        of_controller: dict[str, dict[Hashable, int]] = {}
        for row in rows:
            controller = self.controller(row)
            if controller is None or self.is_of_daemon_set(row):
                groups.append([row])
                continue
            known = of_controller.setdefault(controller, {})
            kind = self.template(row)
            if kind in known:
                groups[known[kind]].append(row)
                continue
            if len(known) < MOST_KINDS_OF_A_CONTROLLER:
                known[kind] = len(groups)
            groups.append([row])
        return tuple(tuple(group) for group in groups)

    def remembering(self) -> Remembered:
        return Remembered(self)


class Remembered:
    """Kinds that found no place, so that their likes are not tried."""

    def __init__(self, kinds: PodKinds) -> None:
        self._kinds = kinds
        self._of_controller: dict[str, set[Hashable]] = {}

    def knows(self, row: int) -> bool:
        controller = self._kinds.controller(row)
        if controller is None or controller not in self._of_controller:
            return False
        return self._kinds.template(row) in self._of_controller[controller]

    def remember(self, row: int) -> None:
        controller = self._kinds.controller(row)
        if controller is None or self._kinds.is_of_daemon_set(row):
            return
        known = self._of_controller.setdefault(controller, set())
        if len(known) < MOST_KINDS_OF_A_CONTROLLER:
            known.add(self._kinds.template(row))
