"""What ResourceQuotas refuse, in the API server's words."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from kschedx.apiserver.resource_quota import charge, quota_refusal, with_status
from kschedx.kube.resources import ResourceQuota
from kschedx.kube.storage import PersistentVolumeClaim
from kschedx.kube.types import Pod
from tests.builders import Manifest


def quota(
    hard: Mapping[str, object], used: Mapping[str, object] | None = None, spec: Mapping[str, object] | None = None
) -> ResourceQuota:
    """Whose status is `hard` too, and what is `used` of it: nothing."""
    status = {"hard": hard, "used": {**dict.fromkeys(hard, "0"), **(used or {})}}
    return msgspec.convert(
        {"metadata": {"name": "q"}, "spec": {"hard": hard, **(spec or {})}, "status": status}, ResourceQuota
    )


def pod(requests: Manifest | None = None, limits: Manifest | None = None, **spec: object) -> Pod:
    container = {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}
    return msgspec.convert({"metadata": {"name": "x"}, "spec": {"containers": [container], **spec}}, Pod)


def refused(new: Pod | PersistentVolumeClaim, *quotas: ResourceQuota, pod_level: bool = True) -> str | None:
    said = quota_refusal(new, quotas, pod_level_resources=pod_level)
    return None if said is None else said.partition(" is forbidden: ")[2]


def test_the_words_of_the_api_server() -> None:
    said = quota_refusal(pod({"cpu": "1"}), [quota({"cpu": "10"}, {"cpu": "9500m"})], pod_level_resources=True)
    assert said == 'pods "x" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=9500m, limited: cpu=10'


def exceeded(requested: str, used: str, limited: str) -> str:
    return f"exceeded quota: q, requested: {requested}, used: {used}, limited: {limited}"


@pytest.mark.parametrize(
    ("new", "held", "expected"),
    [
        (pod({"cpu": "500m"}), quota({"cpu": "10"}, {"cpu": "9500m"}), None),
        # all that is exceeded, in order of its names, and nothing else
        (
            pod({"cpu": "2", "memory": "2Gi"}, {"cpu": "2"}),
            quota({"requests.memory": "1Gi", "requests.cpu": "1", "limits.cpu": "9"}),
            exceeded("requests.cpu=2,requests.memory=2Gi", "requests.cpu=0,requests.memory=0",
                     "requests.cpu=1,requests.memory=1Gi"),
        ),
        (pod(), quota({"pods": "3"}, {"pods": "3"}), exceeded("pods=1", "pods=3", "pods=3")),
        (
            pod(),
            quota({"count/pods": "3"}, {"count/pods": "3"}),
            exceeded("count/pods=1", "count/pods=3", "count/pods=3"),
        ),
        # extended resources are counted under requests. alone
        (
            pod({"nvidia.com/gpu": "2"}),
            quota({"requests.nvidia.com/gpu": "1"}),
            exceeded("requests.nvidia.com/gpu=2", "requests.nvidia.com/gpu=0", "requests.nvidia.com/gpu=1"),
        ),
        (pod({"nvidia.com/gpu": "2"}), quota({"nvidia.com/gpu": "1"}), None),
        (
            pod({"hugepages-2Mi": "8Mi"}),
            quota({"hugepages-2Mi": "4Mi"}),
            exceeded("hugepages-2Mi=8Mi", "hugepages-2Mi=0", "hugepages-2Mi=4Mi"),
        ),
        # the runtime class's overhead counts, for limits where there are some
        (
            pod({"cpu": "1"}, {"cpu": "1"}, overhead={"cpu": "250m"}),
            quota({"limits.cpu": "1"}),
            exceeded("limits.cpu=1250m", "limits.cpu=0", "limits.cpu=1"),
        ),
        # what a quota counts of cpu and memory has to be said; nothing else has to
        (pod({"cpu": "1"}), quota({"limits.cpu": "9", "memory": "9Gi"}),
         "failed quota: q: must specify limits.cpu for: c; memory for: c"),
        (pod(), quota({"requests.ephemeral-storage": "1Gi", "requests.nvidia.com/gpu": "1"}), None),
        (pod(resources={"limits": {"cpu": "1"}}), quota({"limits.cpu": "2"}), None),
        # nobody has counted yet
        (
            pod({"cpu": "1"}),
            msgspec.convert({"metadata": {"name": "q"}, "status": {"hard": {"cpu": "1", "pods": "1"}}}, ResourceQuota),
            "status unknown for quota: q, resources: cpu,pods",
        ),
        (pod(), quota({"services": "0", "requests.storage": "0"}), None),
    ],
)  # fmt: skip
def test_what_is_counted(new: Pod, held: ResourceQuota, expected: str | None) -> None:
    assert refused(new, held) == expected


FULL: Manifest = {"pods": "0"}
FULL_SAID = exceeded("pods=1", "pods=0", "pods=0")
ELSEWHERE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "namespaces": ["other"]}]
    }
}


def of_class(operator: str, *values: str) -> Manifest:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
    return {"scopeSelector": {"matchExpressions": [expression]}}


@pytest.mark.parametrize(
    ("new", "scope", "is_in"),
    [
        (pod(activeDeadlineSeconds=9), {"scopes": ["Terminating"]}, True),
        (pod(), {"scopes": ["Terminating"]}, False),
        (pod(), {"scopes": ["NotTerminating"]}, True),
        (pod(), {"scopes": ["BestEffort"]}, True),
        (pod(limits={"memory": "1"}), {"scopes": ["BestEffort"]}, False),
        (pod(limits={"memory": "1"}), {"scopes": ["NotBestEffort", "NotTerminating"]}, True),
        (pod(limits={"memory": "1"}), {"scopes": ["NotBestEffort", "Terminating"]}, False),
        (pod(affinity=ELSEWHERE), {"scopes": ["CrossNamespacePodAffinity"]}, True),
        (pod(), {"scopes": ["CrossNamespacePodAffinity"]}, False),
        (pod(priorityClassName="high"), of_class("In", "high", "low"), True),
        (pod(), of_class("In", "high"), False),
        (pod(priorityClassName="high"), of_class("NotIn", "high"), False),
        (pod(), of_class("NotIn", "high"), True),
        (pod(priorityClassName="high"), of_class("Exists"), True),
        (pod(), of_class("Exists"), False),
        (pod(), of_class("DoesNotExist"), True),
        (pod(), {"scopes": ["VolumeAttributesClass"]}, False),
    ],
)
def test_scopes(new: Pod, scope: Manifest, is_in: bool) -> None:
    assert refused(new, quota(FULL, spec=scope)) == (FULL_SAID if is_in else None)


CLAIM = msgspec.convert(
    {
        "metadata": {"name": "data"},
        "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "8Gi"}}},
    },
    PersistentVolumeClaim,
)


@pytest.mark.parametrize(
    "resource", ["requests.storage", "gold.storageclass.storage.k8s.io/requests.storage"], ids=["all", "of its class"]
)
def test_claims(resource: str) -> None:
    held = quota({resource: "10Gi"}, {resource: "5Gi"})
    assert refused(CLAIM, held) == (exceeded(f"{resource}=8Gi", f"{resource}=5Gi", f"{resource}=10Gi"))
    assert refused(CLAIM, quota({"silver.storageclass.storage.k8s.io/requests.storage": "1"})) is None


def test_a_quota_that_nobody_has_seen_counts_what_is_there() -> None:
    new = msgspec.structs.replace(quota({"cpu": "2", "pods": "9"}), status=ResourceQuota().status)
    assert refused(pod({"cpu": "2"}), new) is None
    seen = with_status(new, [pod({"cpu": "500m"}), pod({"cpu": "1"})], pod_level_resources=True)
    assert seen.status.used == {"cpu": "1500m", "pods": "2"}
    assert charge(seen, pod({"cpu": "500m"}), pod_level_resources=True).status.used == {"cpu": "2", "pods": "3"}
    assert refused(pod({"cpu": "1"}), seen) == (exceeded("cpu=1", "cpu=1500m", "cpu=2"))
