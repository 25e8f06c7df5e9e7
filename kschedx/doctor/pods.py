"""Pods that must be somewhere and are not there, and pods that do not say enough."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from kschedx.api.kinds import kind_of
from kschedx.doctor.contents import Contents
from kschedx.doctor.findings import (
    Certainty,
    EmptyNodes,
    Finding,
    NamespacesOnly,
    NoStatus,
    Orphans,
    PodsOfNamespaces,
    Reaction,
    UnknownNode,
    Weakness,
    WorkloadPods,
)
from kschedx.doctor.needs import UNKNOWN_PODS
from kschedx.doctor.objects import Pod, Workload

SYSTEM = ("kube-", "openshift-")
"""What the names of namespaces begin with that are the cluster's own."""
SHOWN = 10
TOLERATED = 50
"""One pod in so many may come or go between the list of pods and that of workloads."""


def pod_findings(contents: Contents) -> Iterator[Finding]:
    """Nothing is said where there are no pods at all, which is a finding of its own."""
    namespaces = contents.only_namespaces
    if namespaces:
        yield NamespacesOnly(certainty=Certainty.CERTAIN, weakens=UNKNOWN_PODS, namespaces=namespaces)
    if contents.pods:
        if contents.nodes and not contents.is_complete("Node"):
            yield from _orphans(contents)
        if not namespaces and not contents.is_complete("Pod"):
            yield from _of_namespaces(contents)
            yield from _empty_nodes(contents)
        yield from _without_status(contents)


def _is_system(namespace: str) -> bool:
    return namespace.startswith(SYSTEM)


def _of_namespaces(contents: Contents) -> Iterator[PodsOfNamespaces | WorkloadPods]:
    present = {pod.namespace for pod in contents.pods.values()}
    short = _short(contents)
    elsewhere = [(workload, pods) for workload, pods in short if workload.namespace not in present]
    absent = {workload.namespace for workload, _ in elsewhere}
    runs = any(pod.node for pod in contents.pods.values())
    certainty = Certainty.CERTAIN
    if not absent and contents.nodes:
        if runs and not any(map(_is_system, present)):
            absent, certainty = {"kube-system"}, Certainty.LIKELY
        elif all(map(_is_system, present)):
            certainty = Certainty.POSSIBLE
    if absent or certainty is Certainty.POSSIBLE:
        evidence = f"{elsewhere[0][0].title} has {elsewhere[0][0].pods:,}" if elsewhere else ""
        yield PodsOfNamespaces(
            certainty=certainty,
            weakens=UNKNOWN_PODS,
            present=tuple(sorted(present)[:SHOWN]),
            namespaces=len(present),
            absent=tuple(sorted(absent)[:SHOWN]),
            namespaces_absent=len(absent),
            evidence=evidence,
            pods=sum(pods for _, pods in elsewhere),
        )
    here = [(workload, pods) for workload, pods in short if workload.namespace in present]
    missing, total = sum(pods for _, pods in here), sum(one.pods for one in contents.workloads)
    if missing > total // TOLERATED:
        yield WorkloadPods(
            certainty=Certainty.LIKELY,
            weakens=UNKNOWN_PODS,
            pods=missing,
            workloads=tuple(workload.title for workload, _ in here[:SHOWN]),
            of=total,
        )


def _short(contents: Contents) -> list[tuple[Workload, int]]:
    """Workloads that say that they have more pods than are there, and how many more."""
    owned = Counter(
        (owner.kind, f"{pod.namespace}/{owner.name}")
        for pod in contents.pods.values()
        if not pod.is_finished and kind_of((owner := pod.owner).kind or "", owner.group)
    )
    found = ((workload, workload.pods - owned[workload.kind, workload.key]) for workload in contents.workloads)
    return sorted(((one, pods) for one, pods in found if pods > 0), key=lambda short: (-short[1], short[0].key))


def _orphans(contents: Contents) -> Iterator[Orphans]:
    there = contents.nodes
    on: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in contents.pods.values():
        if pod.node and pod.node not in there and not pod.is_finished:
            on[pod.node].append(pod)
    if not on:
        return
    most = sorted(on.items(), key=lambda item: (-len(item[1]), item[0]))
    nodes = tuple(
        UnknownNode(name=name, pods=len(pods), example=pods[0].key, place=pods[0].place, nearest=_nearest(name, there))
        for name, pods in most[:3]
    )
    effect = "what these pods hold counts on no node"
    yield Orphans(
        certainty=Certainty.CERTAIN,
        reaction=Reaction.REFUSES,
        weakens=(Weakness(plugins=("NodeResourcesFit",), effect=effect),),
        nodes=nodes,
        pods=sum(map(len, on.values())),
        total=len(on),
    )


def _nearest(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.8)
    return close[0] if close else ""


def _empty_nodes(contents: Contents) -> Iterator[EmptyNodes]:
    used = {pod.node for pod in contents.pods.values()}
    empty = [name for name in contents.nodes if name not in used]
    if not empty:
        return
    served = {pod.node for pod in contents.pods.values() if pod.owner.kind == "DaemonSet"}
    # where DaemonSets reach most nodes, a ready one that none has reached is an exception
    is_odd = 2 * len(served) > len(contents.nodes) and any(contents.nodes[name].is_ready for name in empty)
    yield EmptyNodes(
        certainty=Certainty.LIKELY if is_odd else Certainty.POSSIBLE,
        weakens=(Weakness(plugins=("NodeResourcesFit",), effect="optimistic on these nodes, if they run pods"),),
        nodes=tuple(sorted(empty)[:SHOWN]),
        empty=len(empty),
        total=len(contents.nodes),
    )


def _without_status(contents: Contents) -> Iterator[NoStatus]:
    pods = [pod for pod in contents.pods.values() if pod.node and not pod.phase and (pod.uid or pod.created)]
    if pods:
        effect = "pods that have finished may be counted on their nodes"
        yield NoStatus(
            certainty=Certainty.CERTAIN,
            weakens=(Weakness(plugins=("NodeResourcesFit",), effect=effect),),
            pods=len(pods),
            examples=tuple(pod.key for pod in pods[:SHOWN]),
        )
