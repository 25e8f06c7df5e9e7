"""Anonymized dumps of OpenShift, EKS, GKE, and AKS with add-ons have no private word."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml

from kschedx.errors import InputError
from kschedx.export.anonymous import Anonymous
from kschedx.export.anonymous.vocabulary import VOCABULARY, WORD
from kschedx.kube.kinds import KINDS
from kschedx.sources.files import read
from tests.builders import Manifest
from tests.command import ROOT, kschedx
from tests.fuzz import hostile
from tests.snapshot.test_anonymous import paths_to

PLATFORMS = Path(__file__).parent / "platforms.yaml"
PRIVATE = ("canary", "987650123456", "10.11.12.13", "10-20-30-40")
RECORDED = ("karpenter-grows", "kueue-order", "kueue-topology", "device-claims", "descheduler-fight", "volcano-job")
KEYS = {"labels", "annotations", "matchLabels", "nodeSelector", "data", "allocatable", "capacity", "requests", "limits"}
AMOUNT = re.compile(r"\d+[A-Za-z]{0,2}|\d+T\d+")
FREE_TEXT = 'Secret of canary: cannot pull reg.canary.com/canary:v1 ("canary") [canary] canary@canary.org %63canary'


def objects_of(path: Path) -> list[Manifest]:
    decoder = msgspec.json.Decoder(list[Manifest])
    return [item for batch in read(str(path)) for item in batch.decode(decoder)]


def left(objects: list[Manifest]) -> Iterator[str]:
    """Return the places of private words in an anonymized file."""
    anonymous = Anonymous.of(objects)
    for item in filter(None, map(anonymous.anonymize, objects)):
        for text in PRIVATE:
            yield from paths_to(text, item, str(item["kind"]))


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_dump_of_a_platform_has_no_private_word(form: str, tmp_path: Path) -> None:
    out = tmp_path / f"public.{form}"
    result = kschedx("snapshot", "--anonymize", "-s", str(PLATFORMS), "-o", str(out))
    assert result.code == 0, result.err
    text = out.read_text(encoding="utf-8").lower()
    assert [word for word in PRIVATE if word in text] == []
    assert not list(left(objects_of(PLATFORMS)))


def test_kinds_of_platforms_are_read() -> None:
    """The test above would prove nothing about a kind that is left out."""
    kinds = {str(item["kind"]) for item in objects_of(PLATFORMS)}
    assert kinds - {kind.name for kind in KINDS.values()} == {"Event"}
    objects = objects_of(PLATFORMS)
    anonymous = Anonymous.of(objects)
    assert all(anonymous.anonymize(item) for item in objects)


def marked(value: object, *, with_keys: bool = False, free_text: bool = False) -> object:
    """Return the object with "canary" in every private word, or with free texts."""

    def marked_text(text: str) -> str:
        if free_text:
            return FREE_TEXT
        return WORD.sub(lambda word: word[0] if is_public(word[0]) else f"canary{word[0]}", text)

    def is_public(word: str) -> bool:
        return word in VOCABULARY or AMOUNT.fullmatch(word) is not None

    match value:
        case dict():
            changed = {
                marked_text(key) if with_keys and not free_text else key: item
                if key in ("kind", "apiVersion", "expression")
                else marked(item, with_keys=key in KEYS, free_text=free_text)
                for key, item in value.items()
            }
            return changed | {"notRead": "canary", "canary": {"canary": "canary"}}
        case list():
            return [marked(item, free_text=free_text) for item in value]
        case str():
            return marked_text(value)
        case _:
            return value


@pytest.mark.parametrize("kind", sorted(hostile.RECORDS))
def test_a_marked_object_of_every_kind_has_no_mark_left(kind: str) -> None:
    """Draw objects with random fields of those that kschedx reads."""
    result = set()
    for seed in range(12):
        item = marked(hostile.object_of(kind, "web", random.Random(seed)))
        assert isinstance(item, dict)
        with contextlib.suppress(InputError):  # a selector of devices that looks into a text
            result |= set(left([item]))
    assert not result


NOT_READ = """
- {apiVersion: route.openshift.io/v1, kind: Route, spec: {host: canary, to: {kind: Service, name: canary}}}
- {apiVersion: security.openshift.io/v1, kind: SecurityContextConstraints, users: [canary], groups: [canary]}
- {apiVersion: machine.openshift.io/v1beta1, kind: Machine, spec: {providerSpec: {value: {userDataSecret: canary}}}}
- {apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, spec: {paused: false}}
- {apiVersion: config.openshift.io/v1, kind: Infrastructure, status: {apiServerURL: "https://canary:6443"}}
- {apiVersion: user.openshift.io/v1, kind: Identity, user: {name: canary}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: aws-auth, namespace: kube-system}, data: {mapRoles: canary}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: canary}, data: {canary: canary}}
- {apiVersion: v1, kind: Secret, metadata: {name: canary}, data: {canary: Y2FuYXJ5}, stringData: {canary: canary}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {eks.amazonaws.com/role-arn: canary}}}
- {apiVersion: crd.k8s.amazonaws.com/v1alpha1, kind: ENIConfig, spec: {subnet: subnet-canary}}
- {apiVersion: vpcresources.k8s.aws/v1beta1, kind: CNINode, spec: {tags: {canary: canary}}}
- {apiVersion: cloud.google.com/v1, kind: ComputeClass, spec: {priorities: [{nodepools: [canary]}]}}
- {apiVersion: networking.gke.io/v1, kind: ManagedCertificate, spec: {domains: [canary.com]}}
- {apiVersion: karpenter.azure.com/v1beta1, kind: AKSNodeClass, spec: {vnetSubnetID: /subscriptions/canary}}
- {apiVersion: aadpodidentity.k8s.io/v1, kind: AzureIdentity, spec: {resourceID: /subscriptions/canary}}
- {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachineTemplate, spec: {ami: canary}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{kind: User, name: canary}]}
- {apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, spec: {targetRef: {kind: Deployment, name: canary}}}
- {apiVersion: keda.sh/v1alpha1, kind: TriggerAuthentication, spec: {secretTargetRef: [{name: canary, key: canary}]}}
- {apiVersion: coordination.k8s.io/v1, kind: Lease, spec: {holderIdentity: canary_1}}
- {apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: canary, template: {}}]}}
- {apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, spec: {leaderWorkerTemplate: {size: 4}}}
- {apiVersion: argoproj.io/v1alpha1, kind: Rollout, spec: {template: {spec: {containers: [{name: canary}]}}}}
- {apiVersion: descheduler/v1alpha2, kind: DeschedulerPolicy, profiles: [{name: canary}]}
- {apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{schedulerName: canary}]}
- {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, spec: {queue: canary, tasks: [{name: canary, template: {}}]}}
- {apiVersion: v1, kind: Event, metadata: {name: canary}, message: canary, involvedObject: {kind: Route, name: canary}}
"""


def test_an_object_that_scheduling_does_not_read_leaves_no_mark() -> None:
    for item in yaml.safe_load(NOT_READ):
        named = {**item, "metadata": {"name": "canary", "labels": {"canary": "canary"}, **item.get("metadata", {})}}
        assert not list(left([named]))


@pytest.mark.parametrize("free_text", [False, True], ids=["words", "free text"])
@pytest.mark.parametrize("name", RECORDED)
def test_a_marked_cluster_has_no_mark_left(name: str, free_text: bool) -> None:
    [cluster] = (ROOT / "fixtures" / name).glob("cluster*")
    objects = [marked(item, free_text=free_text) for item in objects_of(cluster)]
    assert not sorted(set(left([item for item in objects if isinstance(item, dict)])))
