"""Larger quotas, or smaller requests, for what a quota refuses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.deployment import DeploymentStrategy
from kschedx.controllers.pod_lifecycle import CLUSTER_RESOURCE_QUOTA, is_node_lost, quota_kinds
from kschedx.controllers.states import Refused
from kschedx.controllers.workload_lifecycle import state_of
from kschedx.controllers.workloads import Workload, has_ended, member_rows, wanted_replicas, workload_of
from kschedx.explain.admission import QuotaLedger, quotas_of
from kschedx.kube.controllers import stored_metadata
from kschedx.kube.decoding import Manifest, map_at
from kschedx.kube.documents import Change, Target, merged_fields
from kschedx.kube.kubectl import merge_patch
from kschedx.kube.quantity import Quantity, parse_quantity
from kschedx.kube.resources import ClusterResourceQuota, ResourceQuota, ScopedResourceSelectorRequirement
from kschedx.kube.types import LimitRange, Pod, controller_of
from kschedx.patterns import lazy_pattern
from kschedx.releases.release import Release
from kschedx.snapshot.snapshot import Snapshot

EXCEEDED = lazy_pattern(
    r"exceeded quota: (?P<quota>\S+), requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)"
)
"""The part of a refusal that names the quota and its amounts."""


_Amounts = dict[str, dict[str, dict[str, str]]]  # container to `requests` and `limits` to resource to amount


class RaisedQuota(Struct, frozen=True, kw_only=True):
    title: str  # `pods from 2 to 5 in ResourceQuota q`
    hard: Mapping[str, str]
    command: str
    changes: tuple[Change, ...] = ()  # empty for a ClusterResourceQuota
    snapshot: Snapshot


def raised_quota(snapshot: Snapshot, namespace: str, match: re.Match[str], pods: int) -> RaisedQuota:
    """Return a quota with its usage plus the requests of so many pods, and the snapshot with it."""
    name = match["quota"]
    requested, used, limited = _amounts_of(match)
    quotas = snapshot.of(ResourceQuota)
    own = next((it for it in quotas if it.metadata.name == name and it.metadata.namespace == namespace), None)
    covering = (quota for quota in quotas_of(snapshot) if quota.metadata.name == name and quota.covers(namespace))
    for quota in covering:
        used |= {resource: str(amount) for resource, amount in quota.status.used.items()}
    hard = {
        resource: _sum(used.get(resource, "0"), requested[resource], pods)
        for resource in limited
        if resource in requested
    }
    phrase = ", ".join(f"{resource} from {limited[resource]} to {amount}" for resource, amount in hard.items())
    kinds = quota_kinds(snapshot, namespace, match[0])
    if CLUSTER_RESOURCE_QUOTA in kinds:
        patch = {"spec": {"quota": {"hard": hard}}}
        command = merge_patch("clusterresourcequota", "", name, patch) if len(kinds) == 1 else ""
        return RaisedQuota(
            title=f"{phrase} in {' or '.join(kinds)} {name}",
            hard=hard,
            command=command,
            snapshot=_with_larger(snapshot, name, hard),
        )
    target = Target(api_version="v1", kind="ResourceQuota", namespace=namespace, name=name)
    if own is not None:
        larger = replace(
            own,
            spec=replace(own.spec, hard={**own.spec.hard, **hard}),
            status=replace(own.status, hard={**own.status.hard, **hard}) if own.status.hard else own.status,
        )
        snapshot = snapshot.with_records(ResourceQuota, (larger if quota is own else quota for quota in quotas))
    scopes = "" if own is None else ", ".join(map(_scope_text, own.scopes))
    return RaisedQuota(
        title=f"{phrase} in ResourceQuota {name}{scopes and f' (scope {scopes})'}",
        hard=hard,
        command=merge_patch("resourcequota", namespace, name, {"spec": {"hard": hard}}),
        changes=(target.patched(*merged_fields("/spec/hard", hard)),),
        snapshot=snapshot,
    )


class RolloutQuota(Struct, frozen=True, kw_only=True):
    """A rollout of a Deployment or StatefulSet, whose new pods replace the old ones in a quota's usage."""

    snapshot: Snapshot
    release: Release
    maker: Manifest
    pod: Pod  # a new one

    @property
    def is_surging(self) -> bool:
        """Whether new pods may exist beside the old ones: a StatefulSet's pods keep their names."""
        return self.maker.get("kind") == "Deployment"

    @property
    def is_whole(self) -> bool:
        """Whether all replicas exist, so that the rollout adds the missing pods."""
        return len(self._rows) >= wanted_replicas(self.maker)

    @property
    def _rows(self) -> list[int]:
        leaving = self.snapshot.pods.terminating
        return [row for row in member_rows(self.snapshot, workload_of(self.maker)) if not leaving[row]]

    def raised(self, now: RaisedQuota, match: re.Match[str]) -> RaisedQuota:
        """Return `now`, which admits the missing pods, or a larger quota if the last new pods need it: they are larger
        than the old ones that they replace, or no old pod may go before a new one is ready."""
        keeps_all = self.is_surging and not DeploymentStrategy.of(self.maker, wanted_replicas(self.maker)).unavailable
        then = self._at_end(match, int(keeps_all))
        is_less = then is None or not _exceeds(then.hard, now.hard)
        return now if then is None or (is_less and (self.is_surging or not self.is_whole)) else then

    def suffices(self, match: re.Match[str]) -> bool:
        """Whether the quota, as far as it is known, admits all new pods once the old ones are gone."""
        then = self._at_end(match, 0)
        return then is None or not _exceeds(then.hard, _amounts_of(match)[2])

    def _at_end(self, match: re.Match[str], surge: int) -> RaisedQuota | None:
        """Return the quota for all new pods, and for as many old ones as exist when the last new ones are created; None
        if the cluster does not have the quota."""
        if all(quota.metadata.name != match["quota"] for quota in quotas_of(self.snapshot)):
            return None
        pods, rows, new = self.snapshot.pods, self._rows, self.pod.metadata.controller
        of_rows = ((row, controller_of(pods.owners[row])) for row in rows)
        old = [row for row, its in of_rows if not self.is_surging or new is None or its is None or its.name != new.name]
        ledger = QuotaLedger(self.snapshot, self.release)
        for row in old[surge:]:
            ledger.give(pods[row])
        created = wanted_replicas(self.maker) - len(rows) + len(old)
        return raised_quota(ledger.apply_to(self.snapshot), self.pod.metadata.namespace, match, created)


def _exceeds(amounts: Mapping[str, str], limits: Mapping[str, str]) -> bool:
    return any(parse_quantity(limits[name]) < parse_quantity(amount) for name, amount in amounts.items())


def _amounts_of(match: re.Match[str]) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return what was requested, used, and limited, by resource."""
    requested, used, limited = (
        dict(part.split("=", 1) for part in match[key].split(",") if "=" in part)
        for key in ("requested", "used", "limited")
    )
    return requested, used, limited


def amounts_within(containers: Sequence[tuple[str, Mapping[str, object]]], match: re.Match[str], pods: int) -> _Amounts:
    """Return what a quota has left for each of so many pods, if their only container requests more than the whole
    quota; empty if the quota would suffice for one without other pods."""
    requested, used, limited = _amounts_of(match)
    wanted: _Amounts = {}
    if len(containers) != 1:
        return wanted
    [(name, container)] = containers
    for key, amount in requested.items():
        side, _, resource = key.rpartition(".")
        hard, taken = (parse_quantity(each.get(key, "0")).scaled_value(-3) for each in (limited, used))
        left, total = (hard - taken) // pods, parse_quantity(amount)
        is_stated = resource in map_at(container, "resources", side or "requests")
        if not is_stated or left <= 0 or total.scaled_value(-3) <= hard:
            return {}
        wanted.setdefault(name, {}).setdefault(side or "requests", {})[resource] = format_like(total, left)
    return wanted


def below_defaults(
    containers: Sequence[tuple[str, Mapping[str, object]]],
    ranges: Iterable[LimitRange],
    requested: str,
    usual: Mapping[str, str],
) -> tuple[_Amounts, tuple[str, ...]]:
    """Return the usual amounts of what a quota refuses for containers that get more of it from LimitRanges, by
    container, `requests` or `limits`, and resource, and the names of the LimitRanges."""
    wanted: _Amounts = {}
    names: dict[str, None] = {}
    for (side, _, resource), limit_range in product(
        (part.partition("=")[0].rpartition(".") for part in requested.split(",")), ranges
    ):
        items = [item for item in limit_range.spec.limits if item.type == "Container"]
        given = [(item.default if side == "limits" else item.default_request).get(resource) for item in items]
        least = parse_quantity(usual.get(resource, "0")).scaled_value(-3)
        if not least or all(
            amount is None or parse_quantity(str(amount)).scaled_value(-3) <= least for amount in given
        ):
            continue
        for name, container in containers:
            if not any(resource in map_at(container, "resources", each) for each in ("requests", "limits")):
                wanted.setdefault(name, {}).setdefault(side or "requests", {})[resource] = usual[resource]
                names[limit_range.metadata.name] = None
    return wanted, tuple(names)


def also_refused(snapshot: Snapshot, pod: Pod, maker: Manifest | None, quota: str) -> Iterator[str]:
    """Yield the other workloads of the namespace that lack pods because of the quota, such as `Deployment web`."""
    own = {(owner.kind, owner.name) for owner in pod.metadata.owner_references}
    if maker is not None:
        metadata = stored_metadata(msgspec.json.encode(maker))
        own |= {(str(maker.get("kind")), metadata.name), *((it.kind, it.name) for it in metadata.owner_references)}
    for (kind, namespace, name), raw in snapshot.workloads.items():
        if namespace != pod.metadata.namespace or (kind, name) in own:
            continue
        if controller_of(stored_metadata(raw).owner_references) is not None:
            continue
        state = state_of(snapshot, msgspec.json.decode(raw), is_stored=True)
        exceeded = EXCEEDED.search(state.message) if isinstance(state, Refused) else None
        if exceeded is not None and exceeded["quota"] == quota:
            yield f"{kind} {name}"


def finished_pods(snapshot: Snapshot, namespace: str, match: re.Match[str]) -> Counter[str]:
    """Return the number of pods by phase that have finished and that a quota of pod objects (count/pods) counts."""
    rows = snapshot.pods.in_namespace(namespace) & snapshot.pods.finished if "count/pods" in match["limited"] else ()
    return Counter(snapshot.pods.phases[row] for row in np.flatnonzero(rows).tolist())


def finished_jobs(snapshot: Snapshot, namespace: str, match: re.Match[str]) -> list[str]:
    """Return the names of the Jobs that have finished and that a quota of count/jobs.batch counts."""
    if "count/jobs.batch" not in match["limited"]:
        return []
    jobs = (Workload(*key) for key in snapshot.workloads if key[:2] == ("Job", namespace))
    manifests = ((job.name, snapshot.manifest_of(job)) for job in jobs)
    return sorted(name for name, manifest in manifests if manifest is not None and has_ended(manifest))


def wait_for_leaving(
    snapshot: Snapshot, release: Release, namespace: str, match: re.Match[str], missing: int
) -> Iterator[str]:
    """Yield the title of the fix for pods that are being deleted, if a quota admits the missing ones after them."""
    pods, ledger = snapshot.pods, QuotaLedger(snapshot, release)
    rows = np.flatnonzero(pods.in_namespace(namespace) & pods.terminating).tolist()
    for row in rows:
        ledger.give(pods[row])
    then = raised_quota(ledger.apply_to(snapshot), namespace, match, missing)
    if rows and not _exceeds(then.hard, _amounts_of(match)[2]):
        name, node = pods.key(rows[0]), pods.node_names[rows[0]]
        is_lost, lost = is_node_lost(snapshot, node), f"force-delete {name}: the kubelet of {node} does not answer"
        yield f"{lost}, and the quota counts it" if is_lost else f"wait until {name}, which the quota counts, is gone"


def _with_larger(snapshot: Snapshot, name: str, hard: Mapping[str, str]) -> Snapshot:
    """Return the cluster with a larger ClusterResourceQuota of this name, if it is read."""

    def larger(quota: ClusterResourceQuota) -> ClusterResourceQuota:
        spec, total = quota.spec, quota.status.total
        spec = replace(spec, quota=replace(spec.quota, hard={**spec.quota.hard, **hard}))
        total = replace(total, hard={**total.hard, **hard}) if total.hard else total
        return replace(quota, spec=spec, status=replace(quota.status, total=total))

    quotas = snapshot.of(ClusterResourceQuota)
    changed = (larger(quota) if quota.metadata.name == name else quota for quota in quotas)
    return snapshot.with_records(ClusterResourceQuota, changed) if quotas else snapshot


def _scope_text(scope: ScopedResourceSelectorRequirement) -> str:
    """Return `NotTerminating`, or `PriorityClass In [high]`."""
    values = f" {scope.operator} [{', '.join(scope.values)}]" if scope.values else ""
    return f"{scope.scope_name}{values}"


def _sum(used: str, each: str, count: int) -> str:
    """Return `used` plus `count` times `each`, in the format of `used`, or of `each` if `used` is 0."""
    quantity, other = parse_quantity(used), parse_quantity(each)
    return format_like(
        quantity if quantity.mantissa else other, quantity.scaled_value(-3) + count * other.scaled_value(-3)
    )


def format_like(sample: Quantity, thousandths: int) -> str:
    return str(replace(parse_quantity(f"{thousandths}m"), format=sample.format, canonical=""))
