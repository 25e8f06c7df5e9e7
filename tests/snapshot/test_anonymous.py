"""No name of the owner remains in an anonymized cluster, and its references stay intact."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from kschedx.apiserver import placement_validation, validation
from kschedx.apiserver import validation as container_validation
from kschedx.apiserver.pod_classes import BUILT_IN_CLASSES
from kschedx.apiserver.validation import _STANDARD as STANDARD_RESOURCES
from kschedx.controllers.workloads import JOB_ENDS
from kschedx.explain.setup import GROUP_CONDITIONS
from kschedx.export.anonymous import Anonymous, anonymize, tokens
from kschedx.export.anonymous.fields import ANNOTATIONS, RECORDS
from kschedx.export.anonymous.vocabulary import VOCABULARY, WORD
from kschedx.export.slim import ANNOTATIONS as SLIM_ANNOTATIONS
from kschedx.fixes.node_remedies import SET_BY_ADMINISTRATORS, SET_BY_COMPONENTS
from kschedx.fixes.node_requirements import AGENT_NOT_READY, REMOVED_BY
from kschedx.fixes.node_requirements import KEPT as KEPT_TAINTS
from kschedx.holding.schedulers import SCHEDULERS
from kschedx.kube import storage, types
from kschedx.kube import types as pod_volumes
from kschedx.kube.kinds import KINDS
from kschedx.kube.names import (
    DEFAULT_SCHEDULER,
    REGION,
    ZONE,
    dns_label_errors,
    dns_subdomain_errors,
    label_key_errors,
    label_value_errors,
)
from kschedx.kube.selectors import NODE_OPERATORS, SelectorRequirement
from kschedx.kube.storage import IN_TREE_PLUGINS, csi_limit_key
from kschedx.kube.workloads import MAKING_PODS, pod_from_workload
from kschedx.plugins.node_declared_features import KNOWN as KNOWN_FEATURES
from kschedx.releases.plugins import PLUGINS
from kschedx.snapshot.events import CUT, FAILED_SCHEDULING, GROUPS, KARPENTER, KIND, NOTE_LENGTH, REASONS, EventItem
from tests.builders import Manifest, at, node, pod
from tests.command import ROOT
from tests.conformance.decisions import cases

# --- nothing gets through


def filled(kind: inspect.Type, text: str) -> Any:
    """Return a value of a type with a text at every possible place."""
    match kind:
        case inspect.StructType(fields=fields):
            return {field.encode_name: filled(field.type, text) for field in fields} | {"unread": text, text: text}
        case inspect.VarTupleType(item_type=item):
            return [filled(item, text)]
        case inspect.DictType():
            return {f"{text}/{text}": text, **dict.fromkeys(ANNOTATIONS, text)}
        case inspect.UnionType(types=parts):
            return filled(next(part for part in parts if not isinstance(part, inspect.NoneType)), text)
        case inspect.StrType():
            return text
        case inspect.BoolType():
            return True
        case _:
            return 1


def objects_full_of(text: str) -> Iterator[Manifest]:
    records: dict[str, type[Any]] = {key: kind.record for key, kind in KINDS.items() if kind.record}
    records[KIND] = EventItem
    for kind in RECORDS:
        item: dict[str, Any] = {"metadata": filled(inspect.type_info(types.ObjectMeta), text), "unread": text}
        if kind in records:
            item |= filled(inspect.type_info(records[kind]), text)
        template: Any = filled(inspect.type_info(types.PodTemplateSpec), text)
        for part in reversed(KINDS[kind].template if kind in KINDS else ()):
            template = {part: template, text: text}
        if kind in MAKING_PODS:
            item["spec"] = item.get("spec", {}) | template["spec"]
        if kind == "StatefulSet":
            claim = filled(inspect.type_info(storage.PersistentVolumeClaim), text)
            item["spec"] |= {"volumeClaimTemplates": [claim], "ordinals": {"start": text}}
        if kind == KIND:
            item["reason"] = FAILED_SCHEDULING
        row = KINDS.get(kind)
        yield {**item, "apiVersion": row.api_version if row else "v1", "kind": row.name if row else kind}


def paths_to(text: str, value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if text in key:
                yield f"{path}.{key}"
            yield from paths_to(text, item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from paths_to(text, item, path)
    elif text in str(value).lower():
        yield path


@pytest.mark.sample(3)
@pytest.mark.parametrize("written", ["canary", "a.canary-1", "registry.canary/x:1", "canary__canary", "Canary9"])
def test_no_field_keeps_a_name(written: str) -> None:
    objects = list(objects_full_of(written))
    assert {str(item["kind"]) for item in objects} == {KINDS[key].name if key in KINDS else key for key in RECORDS}
    result = anonymize(objects)
    assert len(result) == len(objects)
    assert not {path for item in result for path in paths_to("canary", item)}


def test_every_value_is_replaced() -> None:
    """The test above would prove nothing if its objects were empty."""
    anonymous = Anonymous.of(list(objects_full_of("canary")))
    result = map(anonymous.anonymize, objects_full_of("canary"))
    paths = {path for item in result if item for path in paths_to(anonymous.name("canary"), item, str(item["kind"]))}
    assert "Pod.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.namespaces" in paths
    assert "CronJob.spec.jobTemplate.spec.template.spec.containers.image" in paths
    assert "PersistentVolume.spec.csi.volumeHandle" in paths


def test_names_in_annotations_are_replaced() -> None:
    written = {
        "scheduler.alpha.kubernetes.io/node-selector": " canary = canary, disk=canary",
        "scheduler.alpha.kubernetes.io/defaultTolerations": '[{"key":"canary","operator":"Exists","other":"canary"}]',
        "example.com/owner": "canary",
    }
    metadata = {"name": "shop", "annotations": written}
    [result] = anonymize([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])
    assert result["metadata"] == {
        "name": "e1",
        "annotations": {
            "scheduler.alpha.kubernetes.io/node-selector": "a1=a1,disk=a1",
            "scheduler.alpha.kubernetes.io/defaultTolerations": '[{"key":"a1","operator":"Exists"}]',
        },
    }


def test_annotations_of_an_autoscaler_keep_their_effect() -> None:
    prefix = "cluster-autoscaler.kubernetes.io"
    written = {
        f"{prefix}/safe-to-evict": "false",
        f"{prefix}/safe-to-evict-local-volumes": "canary,canary",
        f"{prefix}/pod-scale-up-delay": "10m0s",
        f"{prefix}/daemonset-pod": "canary",
        "autoscaling.x-k8s.io/consume-provisioning-request": "canary",
    }
    mine = pod("web", metadata={"annotations": written}, volumes=[{"name": "canary", "emptyDir": {}}])
    [result] = anonymize([mine])
    [volume] = at(result, "spec.volumes")
    assert at(result, "metadata.annotations") == {
        f"{prefix}/safe-to-evict": "false",
        f"{prefix}/safe-to-evict-local-volumes": f"{volume['name']},{volume['name']}",
        f"{prefix}/pod-scale-up-delay": "10m0s",
        f"{prefix}/daemonset-pod": "",
        "autoscaling.x-k8s.io/consume-provisioning-request": volume["name"],
    }
    assert "canary" not in str(result)


def test_kinds_without_effect_on_scheduling_are_left_out() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "canary"}}
    foreign = {"apiVersion": "acme.example/v1", "kind": "Pod", "metadata": {"name": "canary"}}
    strange = {"apiVersion": "canary", "kind": "Pod", "metadata": {"name": "canary"}}
    assert anonymize([secret, foreign, strange, {"kind": "Canary"}, {}]) == []


def test_a_pod_may_leave_out_its_version() -> None:
    bare: Manifest = {"kind": "Pod", "metadata": {"name": "shop"}}
    [result] = anonymize([bare])
    assert result["metadata"] == {"name": "a1"}
    anonymous = Anonymous.of_lines([msgspec.json.encode(bare)])
    assert anonymous.line(msgspec.json.encode(bare)) == msgspec.json.encode(result)


def test_only_conditions_of_schedulers_are_kept_with_replaced_names() -> None:
    reported = (
        "0/12 nodes are available: 12 node(s) had untolerated taint {acme/team: red}, 3 Insufficient acme.io/fpga."
    )
    conditions = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": reported},
        {"type": "Ready", "status": "False", "message": "containers with unready status: [canary]"},
    ]
    tainted = node("n", taints=["acme/team=red:NoSchedule"], allocatable={"acme.io/fpga": "1"})
    _, result = anonymize([tainted, pod("web", status={"conditions": conditions})])
    assert result["status"] == {
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/12 nodes are available: 12 node(s) had untolerated taint {a1/j4: j3}, "
                "3 Insufficient a1.io/e1.",
            },
            {"type": "Ready", "status": "False"},
        ]
    }


def event(message: str, **fields: object) -> Manifest:
    about = {"kind": "Pod", "namespace": "shop", "name": "web"}
    fixed = {"apiVersion": "v1", "kind": KIND, "involvedObject": about, "reason": FAILED_SCHEDULING}
    return {**fixed, "message": message, **fields}


@pytest.mark.parametrize(
    ("message", "result"),
    [
        ("The node had condition: [DiskPressure]. ", "The node had condition: [DiskPressure]. "),
        ("Node didn't have enough resource: cpu, requested: 4000, used: 500, capacity: 4000",) * 2,
        ("Preempted by pod default/web on node gpu-7", "Preempted by pod default/q1 on node gpu-7"),
        ('Back-off pulling image "registry.acme.io/web:1"', 'Back-off pulling image "q1.a1.io/q2:1"'),
        ("Preempted by pod default/gone on node gpu-7", None),
        ("Pod acme was rejected", None),
        ("Waiting for our own approval", None),
    ],
)
def test_a_known_message_of_another_program_is_kept(message: str, result: str | None) -> None:
    failed = pod("a", status={"phase": "Failed", "reason": "Evicted", "message": message})
    anonymous, *_ = anonymize([failed, pod("web"), node("gpu-7")])
    assert at(anonymous, "status") == {"phase": "Failed", "reason": "Evicted"} | ({"message": result} if result else {})


@pytest.mark.parametrize(
    ("message", "result"),
    [
        (
            'Error creating: pods "web" is forbidden: exceeded quota: small, requested: requests.cpu=500m, used: cpu=4',
            'Error creating: pods "w1" is forbidden: exceeded quota: s2, requested: requests.cpu=500m, used: cpu=4',
        ),
        (
            'failed calling webhook "gate.io": Post "https://gate.shop.svc:8443/v?timeout=10s": EOF',
            'failed calling webhook "a1.io": Post "https://a1.j1.svc:8443/u1?timeout=10s": EOF',
        ),
        ("failed filter with extender at URL http://gpu-7:12345/filter, code 500",) * 2,
        (
            'MountVolume.SetUp failed for volume "data" : secret "token" not found',
            'MountVolume.SetUp failed for volume "a1" : secret "a3" not found',
        ),
    ],
)
def test_the_text_of_a_refusal_is_kept(message: str, result: str) -> None:
    [anonymous] = anonymize([event(message, reason="FailedCreate")])
    assert anonymous["message"] == result


def test_events_of_a_scheduler_are_kept_unless_they_were_cut() -> None:
    cut = "x" * (NOTE_LENGTH - len(CUT)) + CUT
    other = event("Started container canary", reason="Started")
    [result] = anonymize([event("0/1 nodes are available: 1 Insufficient acme.io/fpga."), event(cut), other])
    assert result["message"] == "0/1 nodes are available: 1 Insufficient a1.io/a2."
    assert result["involvedObject"] == {"kind": "Pod", "namespace": "j1", "name": "w1"}


# --- what rules know by name


FIELD_VALUES = (
    placement_validation.EFFECTS,
    placement_validation.OPERATORS,
    container_validation.PROTOCOLS,
    validation.RESTART_POLICIES,
    container_validation.RESTART_ACTIONS,
    validation.PREEMPTION_POLICIES,
    placement_validation.SPREAD_ACTIONS,
    placement_validation.NODE_POLICIES,
)
KNOWN = {
    *NODE_OPERATORS,
    *(text for plugin in IN_TREE_PLUGINS for text in (plugin.name, plugin.driver, plugin.topology_key)),
    *BUILT_IN_CLASSES,
    *KEPT_TAINTS,
    *REMOVED_BY,
    *AGENT_NOT_READY,
    *SET_BY_COMPONENTS,
    *SET_BY_ADMINISTRATORS,
    *KNOWN_FEATURES,
    *STANDARD_RESOURCES,
    *(text for texts in FIELD_VALUES for text in texts),
    *(pod_volumes.FILESYSTEM, storage.READ_WRITE_ONCE_POD, storage.IMMEDIATE, storage.WAIT_FOR_FIRST_CONSUMER),
    *(ZONE, REGION, storage.BETA_ZONE, storage.BETA_REGION, storage.NO_PROVISIONER),
    *MAKING_PODS,
    *SCHEDULERS,
    *(*GROUPS, *REASONS, *JOB_ENDS, *GROUP_CONDITIONS),
    *("Progressing", "ProgressDeadlineExceeded", "OnDelete", "ScalingActive", "ScalingLimited", "SyncFailed"),
    *(plugin.name for plugin in PLUGINS),
    KARPENTER,
    DEFAULT_SCHEDULER,
}


def test_names_that_rules_depend_on_are_kept() -> None:
    assert not {text for text in KNOWN if not set(WORD.findall(text)) <= VOCABULARY}


def test_texts_of_kube_scheduler_are_kept() -> None:
    """Return the texts of recorded decisions, without names."""
    result: set[str] = set()
    for case in cases()[::4]:
        theirs = {word for item in case.record["objects"] for word in WORD.findall(str(item))}
        result |= {word for word in WORD.findall(case.record["expect"].get("message") or "") if word not in theirs}
    assert not {word for word in result if not word.isdigit()} - VOCABULARY


# --- what belongs together


def names(*texts: str) -> Callable[[str], str]:
    """Return the anonymized names of pods."""
    return Anonymous.of([pod(text) for text in texts]).name


def test_names_composed_of_names_stay_composed() -> None:
    name = names(
        "web", "data", "data-web-0", "web-0", "web-0-scratch", "scratch", "web-7d9f", "eu-1-a", "eu-1-b", "eu-1"
    )
    assert name("data-web-0") == f"{name('data')}-{name('web')}-0"
    assert name("web-0-scratch") == f"{name('web-0')}-{name('scratch')}"
    assert name("eu-1-a").rpartition("-")[0] == name("eu-1-b").rpartition("-")[0] == name("eu-1")


@pytest.mark.parametrize(
    "text",
    [
        "kube-system",
        "node.kubernetes.io/not-ready",
        "topology.kubernetes.io/zone",
        "nvidia.com/gpu",
        "attachable-volumes-aws-ebs",
        "ebs.csi.aws.com",
        "kubernetes.io/no-provisioner",
        "system-node-critical",
    ],
)
def test_public_names_are_kept(text: str) -> None:
    assert names(text)(text) == text


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("ip-10-20-30-40.eu-west-1.compute.internal", ["10", "20", "30", "40", "west", "internal"]),
        ("123456789012.dkr.ecr.eu-west-1.amazonaws.com/app", ["123456789012", "2345"]),
        ("example.com/secret-fpga", ["example", "secret", "fpga"]),
        ("node-role.kubernetes.io/payments-gpu", ["payments"]),
    ],
)
def test_private_names_are_replaced(text: str, secrets: list[str]) -> None:
    assert not [secret for secret in secrets if secret in names(text)(text)]


def test_an_image_without_a_tag_is_the_latest() -> None:
    images = [{"names": ["docker.io/acme/web:latest"], "sizeBytes": 1}]
    holder = node("n") | {"status": {"images": images}}
    result, new = anonymize([holder, pod("web", spec={"containers": [{"name": "c", "image": "docker.io/acme/web"}]})])
    [image] = at(new, "spec.containers")
    assert result["status"] == {"images": [{"names": [f"{image['image']}:latest"], "sizeBytes": 1}]}


def test_only_compared_numbers_are_kept() -> None:
    bound = SelectorRequirement(key="acme/cores", operator="Gt", values=("15",))
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [msgspec.to_builtins(bound)]}]
        }
    }
    asking = pod("web", spec={"affinity": {"nodeAffinity": affinity}})
    result, _ = anonymize([node("n", labels={"acme/cores": "16", "acme/rack": "16"}), asking])
    assert isinstance(result["metadata"], dict)
    assert list(result["metadata"]["labels"].values()) == ["16", "1a1"]


def test_an_instance_type_of_ec2_stays_since_it_limits_volumes() -> None:
    key = "node.kubernetes.io/instance-type"
    nodes = [node(kind, labels={key: kind}) for kind in ("m5.xlarge", "u-6tb1.metal", "acme-rack.large", "acme")]
    labels = [at(result, "metadata.labels")[key] for result in anonymize(nodes)]
    assert labels[:2] == ["m5.xlarge", "u-6tb1.metal"]
    assert "acme" not in "".join(labels)


def test_addresses_are_replaced_by_reserved_ones() -> None:
    ports = [{"containerPort": 1, "hostPort": 1, "hostIP": ip} for ip in ("192.168.40.14", "0.0.0.0", "::1", "fd00::7")]
    [result] = anonymize([pod("web", spec={"containers": [{"name": "c", "ports": ports}]})])
    [container] = at(result, "spec.containers")
    assert [port["hostIP"] for port in container["ports"]] == ["198.18.0.2", "0.0.0.0", "::1", "2001:db8::4"]


@pytest.mark.parametrize("driver", ["csi.acme.example", "driver.storage.a-rather-long-division.acme.example"])
def test_a_volume_limit_keeps_the_name_of_its_driver(driver: str) -> None:
    driver_object = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": driver}}
    limited = node("n", allocatable={csi_limit_key(driver): "8"})
    result, new_driver = anonymize([limited, driver_object])
    assert isinstance(new_driver["metadata"], dict)
    assert result["status"] == {"allocatable": {csi_limit_key(new_driver["metadata"]["name"]): "8"}}


@pytest.mark.parametrize("written", [{}, {"storageClassName": ""}])
def test_no_storage_class_is_not_the_default_one(written: Manifest) -> None:
    metadata: Manifest = {"name": "main"}
    [result] = anonymize([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": written}])
    assert result["spec"] == written


def test_the_annotations_that_count_are_those_of_a_snapshot() -> None:
    assert set(ANNOTATIONS) == SLIM_ANNOTATIONS


def test_a_lease_and_a_webhook_for_evictions_keep_what_decides() -> None:
    head, renewed = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}, "2026-01-02T08:00:00.000000Z"
    lease = {**head, "metadata": {"name": "kube-scheduler", "namespace": "kube-system"}, "spec": {"renewTime": renewed}}
    rule = {"apiGroups": [""], "operations": ["CREATE"], "resources": ["pods/eviction"]}
    webhooks = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "bank"},
        "webhooks": [{"name": "ledger.bank", "rules": [rule]}],
    }
    anonymous = Anonymous.of([lease, webhooks])
    assert anonymous.anonymize(lease) == lease
    new = anonymous.anonymize(webhooks)
    assert new is not None
    assert at(new, "webhooks")[0]["rules"] == [rule]
    assert "ledger" not in str(new)


@pytest.mark.parametrize("kind", ["Accepted", "Provisioned", "Failed", "BookingExpired", "CapacityRevoked"])
def test_a_provisioning_request_keeps_its_state(kind: str) -> None:
    request = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "ledger", "namespace": "bank"},
        "status": {"conditions": [{"type": kind, "status": "True"}]},
    }
    new = Anonymous.of([request]).anonymize(request)
    assert new is not None
    assert at(new, "status") == request["status"]


def test_a_workload_still_creates_its_pods() -> None:
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": "db"}]}}
    claims = [{"metadata": {"name": "data"}, "spec": {}}]
    spec = {"template": template, "volumeClaimTemplates": claims, "ordinals": {"start": 12}}
    workload = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "ledger", "namespace": "bank", "uid": "u"},
        "spec": spec,
    }
    made = pod_from_workload(workload)
    anonymous = Anonymous.of([workload, made])
    new = anonymous.anonymize(workload)
    assert new is not None
    assert pod_from_workload(new) == anonymous.anonymize(made)


def test_the_mapping_has_the_original_words() -> None:
    anonymous = Anonymous.of([pod("ledger-0", namespace="kube-bank")])
    assert anonymous.mapping() == {"bank": "a1", "ledger": "l1", "main": "l2"}
    assert anonymous.name("kube-bank/ledger-0") == "kube-a1/l1-0"
    assert anonymous.text('pod "ledger-0" is one of 12') == 'pod "l1-0" is one of 12'


def test_equal_input_gives_equal_output_in_every_process() -> None:
    """The order of sets differs between processes."""
    program = """
import msgspec
from kschedx.export.anonymous import anonymize
from kschedx.sources.files import read
objects = [item for batch in read("fixtures/zone-full/cluster") for item in batch.decode(msgspec.json.Decoder(list))]
print(msgspec.json.encode(anonymize(objects)))
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


# --- names are valid, distinct and sort as before

_words = st.text("abcxyz019", min_size=1, max_size=4) | st.sampled_from(sorted(VOCABULARY))
_joined = st.lists(_words, min_size=1, max_size=9).flatmap(
    lambda words: st.lists(st.sampled_from("-./"), min_size=len(words) - 1, max_size=len(words) - 1).map(
        lambda signs: "".join(itertools.chain(*itertools.zip_longest(words, signs, fillvalue="")))
    )
)


@given(st.lists(_joined, unique=True, max_size=12))
def test_names_sort_as_before_and_stay_distinct(texts: list[str]) -> None:
    name = names(*texts)
    result = [name(text) for text in sorted(texts)]
    assert result == sorted(result)
    assert len(set(result)) == len(result)


@given(st.lists(_joined, max_size=12))
def test_valid_names_stay_valid(texts: list[str]) -> None:
    def are_fine(text: str) -> list[bool]:
        rules = (dns_subdomain_errors, dns_label_errors, label_key_errors, label_value_errors)
        return [not list(rule(text)) for rule in rules]

    cluster = [node(text, labels={text: text}) for text in texts]
    anonymous = Anonymous.of(cluster)
    for text in texts:
        before, after = are_fine(text), are_fine(anonymous.name(text))
        assert all(new or not old for old, new in zip(before, after, strict=True)), (text, anonymous.name(text))


def test_a_name_that_would_grow_too_long_becomes_one_word() -> None:
    long = "-".join("abcdefghijklmnopqrstuvwxyzabcde")
    cluster = [node(f"n{number}", labels={f"acme.io/{long}": long, "team": f"g{number}"}) for number in range(100)]
    name = Anonymous.of(cluster).name
    assert name(long) == "long1x"
    assert name(f"acme.io/{long}").partition("/")[2] == "long2x"


@given(st.lists(st.text("abz09AZé", min_size=1, max_size=5), unique=True), st.sets(st.sampled_from(sorted(VOCABULARY))))
def test_tokens_are_distinct_from_other_words(words: list[str], kept: set[str]) -> None:
    result = tokens(words, kept)
    assert set(result) == set(words) - kept
    assert len({*result.values(), *kept}) == len(result) + len(kept)
    assert all(WORD.fullmatch(token) and not token.isdigit() for token in result.values())
    every = sorted([*result, *kept])
    assert [result.get(word, word) for word in every] == sorted(result.get(word, word) for word in every)


def test_a_token_fits_between_any_two_kept_words() -> None:
    bounds = sorted({*VOCABULARY, "A", "a"})
    for low, high in itertools.pairwise(bounds):
        between = f"{low}0"
        if between < high:
            assert low < tokens([between], {low, high})[between] < high


def test_words_stay_distinct_without_room_between_them() -> None:
    assert tokens(["100", "1001"], {"10", "1000"}) == {"100": "10t1", "1001": "1a1"}
