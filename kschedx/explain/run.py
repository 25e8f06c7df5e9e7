"""From a snapshot and a pod to an Explanation."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kschedx.api.admission import resolve_priority
from kschedx.api.decode import decode
from kschedx.api.defaulting import default_pod
from kschedx.api.types import Pod
from kschedx.errors import ConfigError, InputError, Place, nearest
from kschedx.explain.explanation import Explanation
from kschedx.framework.config import Profile, SchedulerConfig, load_profiles
from kschedx.framework.registry import third_party_points
from kschedx.framework.runtime import Framework
from kschedx.framework.schedule import schedule
from kschedx.releases import resolve
from kschedx.snapshot.snapshot import Snapshot


def explain_pod(
    snapshot: Snapshot,
    pod: str | Mapping[str, object] | Pod,
    *,
    config: Mapping[str, object] | None = None,
    profile: str | None = None,
    kube_version: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
) -> Explanation:
    """Run one pod through the profile that its spec.schedulerName, or `profile`, names."""
    target = pod_of(snapshot, pod)
    release = resolve(kube_version, feature_gates)
    scheduler = load_profiles(config, release, extra_plugins=third_party_points() if config else None)
    row = snapshot.pods.rows.get(target.key)
    if row is not None and snapshot.pods.node_names[row] in snapshot.cluster.index:
        # as if it were scheduled now: without itself, and not bound to the node it is on
        snapshot = snapshot.without_pods([row])
        target = msgspec.structs.replace(target, spec=msgspec.structs.replace(target.spec, node_name=""))
    framework = Framework(_profile(scheduler, target, profile), scheduler, snapshot, release)
    return Explanation(schedule(framework, target), framework)


def _profile(scheduler: SchedulerConfig, pod: Pod, name: str | None) -> Profile:
    if name is not None:
        return scheduler.profile_for(name)
    try:
        return scheduler.profile_for(pod.spec.scheduler_name)
    except ConfigError as error:
        raise error.at(Place(object=f"Pod {pod.key}", field="spec.schedulerName")) from None


def pod_of(snapshot: Snapshot, pod: str | Mapping[str, object] | Pod) -> Pod:
    """The typed pod, with what the API server would have filled in."""
    if isinstance(pod, Pod):
        return pod
    if isinstance(pod, str):
        key = pod if "/" in pod else f"default/{pod}"
        row = snapshot.pods.rows.get(key)
        if row is None:
            raise InputError(f'no pod "{key}" in the snapshot', hint=nearest(key, snapshot.pods.rows))
        return snapshot.pods[row]
    typed = default_pod(decode(msgspec.json.encode(pod), Pod))
    return msgspec.structs.replace(typed, spec=resolve_priority(typed.spec, snapshot.priority_classes))
