"""Remedies for spread constraints and for rules between pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kschedx.findings import (
    ExistingAntiAffinityConflict,
    PodAffinityUnsatisfied,
    PodAntiAffinityConflict,
    TopologyLabelMissing,
    TopologySpreadSkew,
)
from kschedx.fixes import pod_edits as edit
from kschedx.fixes.remedy import Cost, Place, Remedy, change_pod, delete_pods


def spread_remedies(finding: TopologySpreadSkew | TopologyLabelMissing, place: Place) -> Iterator[Remedy]:
    index, key = finding.constraint, finding.topology_key
    constraints = place.pod.spec.topology_spread_constraints
    if index >= len(constraints) or constraints[index].topology_key != key:
        return  # one of the profile's default constraints: not the pod's to change
    constraint = constraints[index]
    if constraint.node_taints_policy != "Honor":
        yield Remedy(
            title=f"honor node taints in the spread over {key}",
            cost=Cost.POD,
            step=change_pod(lambda p: edit.with_constraint(p, index, lambda c: replace(c, node_taints_policy="Honor"))),
        )
    if constraint.node_affinity_policy == "Ignore":
        yield Remedy(
            title=f"honor node affinity in the spread over {key}",
            cost=Cost.POD,
            step=change_pod(
                lambda p: edit.with_constraint(p, index, lambda c: replace(c, node_affinity_policy="Honor"))
            ),
        )
    if isinstance(finding, TopologySpreadSkew):
        skew = finding.skew
        yield Remedy(
            title=f"raise maxSkew over {key} from {finding.max_skew} to {skew}",
            cost=Cost.LESS,
            step=change_pod(lambda p: edit.with_constraint(p, index, lambda c: replace(c, max_skew=skew))),
        )
    yield Remedy(
        title=f"spread over {key} with ScheduleAnyway",
        cost=Cost.LESS,
        step=change_pod(
            lambda p: edit.with_constraint(
                p, index, lambda c: replace(c, when_unsatisfiable="ScheduleAnyway", min_domains=None)
            )
        ),
    )


def own_rule_remedies(finding: PodAffinityUnsatisfied | PodAntiAffinityConflict, place: Place) -> Iterator[Remedy]:
    anti = isinstance(finding, PodAntiAffinityConflict)
    kind = "podAntiAffinity" if anti else "podAffinity"
    term = edit.required_term(place.pod, finding.term, anti=anti)
    if term is not None:
        yield Remedy(
            title=f"prefer {kind} term {finding.term + 1} ({finding.selector}) instead of requiring it",
            cost=Cost.LESS,
            step=change_pod(lambda pod: edit.preferring(pod, term, anti=anti)),
        )
    if isinstance(finding, PodAntiAffinityConflict):
        yield from _delete(finding.pods, finding.pod_count, place)


def existing_rule_remedies(finding: ExistingAntiAffinityConflict, place: Place) -> Iterator[Remedy]:
    yield from _delete(finding.pods, finding.pod_count, place)


def _delete(names: Sequence[str], count: int, place: Place) -> Iterator[Remedy]:
    """Where all the pods in the way are known by name and few."""
    rows = tuple(row for name in names if (row := place.cycle.snapshot.pods.rows.get(name)) is not None)
    if rows and len(rows) == count:
        yield Remedy(title=f"delete {' and '.join(names)}", cost=Cost.OTHER_PODS, step=delete_pods(rows))
