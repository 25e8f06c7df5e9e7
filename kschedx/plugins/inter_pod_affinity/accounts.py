"""Why a node was rejected: the terms, the domain, and the pods that meet there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, reduce

import numpy as np

from kschedx.api.types import Pod
from kschedx.findings import ExistingAntiAffinityConflict, Finding, PodAffinityUnsatisfied, PodAntiAffinityConflict
from kschedx.findings.topology import HOSTNAME
from kschedx.plugins.inter_pod_affinity.domains import present
from kschedx.plugins.inter_pod_affinity.filtering import FilterState
from kschedx.plugins.inter_pod_affinity.tallies import SatisfiesAll
from kschedx.plugins.inter_pod_affinity.terms import AffinityTerm
from kschedx.snapshot.columns import BoolArray, IntArray, distinct, paired, rows_by_group
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.rows import ClusterRow, TableRow, TableRows

SHOWN = 5
"""How many pods or domains a finding names."""


class Accounts:
    """Row of the table that was filtered to its findings: every rule that the node fails, not only the first one."""

    def __init__(self, counts: FilterState, pod: Pod, nodes: NodeTable) -> None:
        self._counts = counts
        self._pod = pod
        self._nodes = nodes

    def __call__(self, row: TableRow) -> tuple[Finding, ...]:
        node = self._nodes.cluster_row(row)
        lacks_affinity = self._counts.lacks_affinity(self._nodes.take(TableRows(np.array([row], dtype=np.int64))))
        return (
            *(self._affinity(node) if lacks_affinity[0] else ()),
            *self._anti_affinity(node),
            *self._existing_anti_affinity(node),
        )

    def alike(self) -> IntArray:
        """(node of the table,) equal only where the same rules fail, and in the same domains but for single hosts."""
        nodes = self._nodes
        if nodes.removed is not None or nodes.added is not None:
            return np.arange(len(nodes), dtype=np.int64)  # each is in a world of its own
        lacks_affinity = self._counts.lacks_affinity(nodes).astype(np.int64)
        about = (*self._satisfying, *self._conflicting, *self._by_rule())
        return reduce(paired, (one.alike[nodes.rows] for one in about), lacks_affinity)

    def _by_rule(self) -> Iterator[_Neighbours]:
        """The pods that keep the incoming one away, each rule's by themselves."""
        group = self._counts.existing.group
        for key, repelling in self._repelling.items():
            stating: dict[tuple[int, str], list[int]] = {}
            for number, terms in self._counts.repelling.items():
                for term in terms:
                    if term.topology_key == key:
                        stating.setdefault((term.index, term.selector_text), []).append(number)
            if len(stating) == 1:
                yield repelling
            else:
                yield from (repelling.of(np.isin(group, groups)) for groups in stating.values())

    # --- a finding for each rule that fails

    def _affinity(self, node: ClusterRow) -> Iterator[PodAffinityUnsatisfied]:
        for term, satisfying in zip(self._counts.affinity_terms, self._satisfying, strict=True):
            domain = satisfying.domain(node)
            if domain is not None and len(satisfying.around(node)):
                continue
            pods = satisfying.anywhere(node)
            yield PodAffinityUnsatisfied(
                term=term.index,
                topology_key=term.topology_key,
                domain=domain,
                selector=term.selector_text,
                namespaces=tuple(sorted(term.namespaces)),
                every_namespace=term.covers_every_namespace,
                matches_itself=self._counts.matches_itself,
                pods=self._keys(pods),
                matching_pods=len(pods),
                matching_domains=satisfying.domains,
            )

    def _anti_affinity(self, node: ClusterRow) -> Iterator[PodAntiAffinityConflict]:
        for term, conflicting in zip(self._counts.anti_affinity_terms, self._conflicting, strict=True):
            domain = conflicting.domain(node)
            pods = conflicting.around(node)
            if domain is not None and len(pods):
                yield PodAntiAffinityConflict(
                    term=term.index,
                    topology_key=term.topology_key,
                    domain=domain,
                    selector=term.selector_text,
                    pods=self._keys(pods),
                    pod_count=len(pods),
                )

    def _existing_anti_affinity(self, node: ClusterRow) -> Iterator[ExistingAntiAffinityConflict]:
        for key, repelling in self._repelling.items():
            domain = repelling.domain(node)
            if domain is None:
                continue
            for term, pods in self._rules(key, repelling.around(node)):
                yield ExistingAntiAffinityConflict(
                    pods=self._keys(pods),
                    pod_count=len(pods),
                    term=term.index,
                    topology_key=key,
                    domain=domain,
                    selector=term.selector_text,
                    matched_labels=self._labels_read_by(term),
                )

    def _rules(self, key: str, pods: IntArray) -> Iterator[tuple[AffinityTerm, IntArray]]:
        """The terms with this key by which pods keep the incoming one away, each with all pods that state it so."""
        group = self._counts.existing.group[pods]
        stated: dict[tuple[int, str], tuple[AffinityTerm, list[int]]] = {}
        for number in distinct(group).tolist():
            for term in self._counts.repelling.get(number, ()):
                if term.topology_key == key:
                    stated.setdefault((term.index, term.selector_text), (term, []))[1].append(number)
        for term, groups in stated.values():
            yield term, pods[np.isin(group, groups)]

    def _labels_read_by(self, term: AffinityTerm) -> tuple[str, ...]:
        labels = self._pod.metadata.labels
        keys = sorted({requirement.key for requirement in term.selector.requirements} & labels.keys())
        return tuple(f"{key}={labels[key]}" for key in keys)

    def _keys(self, pods: IntArray) -> tuple[str, ...]:
        return tuple(self._nodes.pods.key(int(pod)) for pod in pods[:SHOWN])

    # --- the pods behind the counts, sorted when the first node asks

    @cached_property
    def _satisfying(self) -> tuple[_Neighbours, ...]:
        pods = self._nodes.pods
        terms = self._counts.affinity_terms
        satisfying = SatisfiesAll(terms, 1).weights(pods, np.arange(len(pods))) > 0
        return tuple(_Neighbours(self._nodes, term.topology_key, satisfying) for term in terms)

    @cached_property
    def _conflicting(self) -> tuple[_Neighbours, ...]:
        pods = self._nodes.pods
        return tuple(
            _Neighbours(self._nodes, term.topology_key, term.matching(pods))
            for term in self._counts.anti_affinity_terms
        )

    @cached_property
    def _repelling(self) -> Mapping[str, _Neighbours]:
        weights = self._counts.existing_anti_affinity.weights
        pods = self._nodes.pods
        everyone = np.arange(len(pods))
        return {
            key: _Neighbours(self._nodes, key, weight.weights(pods, everyone) > 0) for key, weight in weights.items()
        }


class _Neighbours:
    """Pods of a mask by the domain of a topology key that they run in. Nodes are rows of the whole cluster."""

    def __init__(self, nodes: NodeTable, key: str, mask: BoolArray) -> None:
        """`mask` is (pod,)."""
        self._nodes = nodes
        self._key = key
        self._label = nodes.cluster.label(key)
        self._mask = mask
        self._running = np.flatnonzero(mask & (nodes.pods.node >= 0))
        domains = self._label.codes[nodes.pods.node[self._running]]
        order, self._start = rows_by_group(domains, len(self._label.values))
        self._by_domain = self._running[order]

    def of(self, mask: BoolArray) -> _Neighbours:
        """Those of these pods that are in another mask too."""
        return _Neighbours(self._nodes, self._key, self._mask & mask)

    @property
    def alike(self) -> IntArray:
        """(node of the cluster,) its domain; where each host is one, whether it is labelled and has such pods."""
        codes = self._label.codes
        if self._key != HOSTNAME:
            return codes
        held: IntArray = (np.diff(self._start) > 0).astype(np.int64)
        return held[codes] * 2 + present(self._label)

    def domain(self, node: ClusterRow) -> str | None:
        return self._label[node]

    @cached_property
    def domains(self) -> tuple[str, ...]:
        """The first domains that hold such pods."""
        held = np.flatnonzero(np.diff(self._start))
        return tuple(sorted(value for code in held.tolist() if (value := self._label.values[code]) is not None)[:SHOWN])

    def around(self, node: ClusterRow) -> IntArray:
        """Rows of the pods in a node's domain, in the node's own world."""
        code = self._label.codes[node]
        return self._in_world(self._by_domain[self._start[code] : self._start[code + 1]], node)

    def anywhere(self, node: ClusterRow) -> IntArray:
        """Rows of the pods in the cluster, in a node's own world."""
        return self._in_world(self._running, node)

    def _in_world(self, pods: IntArray, node: ClusterRow) -> IntArray:
        removed, added = self._here(self._nodes.removed, node), self._here(self._nodes.added, node)
        if len(removed):
            pods = pods[~np.isin(pods, removed)]
        return np.concatenate([pods, added]) if len(added) else pods

    def _here(self, change: PodRows | None, node: ClusterRow) -> IntArray:
        """The pods of the mask that were changed on a node."""
        if change is None:
            return np.empty(0, dtype=np.int64)
        pods: IntArray = change.pods[change.nodes == node]
        return pods[self._mask[pods]]
