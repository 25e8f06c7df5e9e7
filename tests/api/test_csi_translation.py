"""In-tree volumes translated to CSI."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from kschedx.kube.storage import PersistentVolume, TranslationError, inline_handle, plugin_named, plugin_of, translate
from kschedx.kube.types import Volume

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
GKE = "topology.gke.io/zone"

Terms = list[dict[str, list[str]]]
"""Terms as maps from key to values."""


def persistent(
    source: Mapping[str, object], labels: Mapping[str, str] | None = None, terms: Terms | None = None
) -> PersistentVolume:
    affinity: dict[str, object] = {}
    if terms is not None:
        terms_of_affinity = [
            {"matchExpressions": [{"key": key, "operator": "In", "values": values} for key, values in term.items()]}
            for term in terms
        ]
        affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms_of_affinity}}}
    manifest = {"metadata": {"name": "pv", "labels": dict(labels or {})}, "spec": {**source, **affinity}}
    return msgspec.convert(manifest, PersistentVolume)


def gce(labels: Mapping[str, str] | None = None, terms: Terms | None = None) -> PersistentVolume:
    return persistent({"gcePersistentDisk": {"pdName": "disk"}}, labels, terms)


@pytest.mark.parametrize(
    ("labels", "handle"),
    [
        ({}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk"),
        ({ZONE: "us-central1-a"}, "projects/UNSPECIFIED/zones/us-central1-a/disks/disk"),
        ({ZONE: "x", BETA_ZONE: "us-central1-b"}, "projects/UNSPECIFIED/zones/us-central1-b/disks/disk"),
        (
            {ZONE: "us-central1-a__us-central1-b"},
            "projects/UNSPECIFIED/regions/us-central1/disks/disk",
        ),
    ],
)
def test_gce_handles(labels: dict[str, str], handle: str) -> None:
    source = translate(gce(labels)).spec.csi
    assert source is not None
    assert (source.driver, source.volume_handle) == ("pd.csi.storage.gke.io", handle)


@pytest.mark.parametrize(
    ("zones", "problem"),
    [
        ("here__there", "zone in unexpected format, expected: {locale}-{region}-{zone}, got: here"),
        ("us-east1-a__us-west1-a", "multiple or no regions gotten from zones, got: map[us-east1:{} us-west1:{}]"),
    ],
)
def test_gce_zones_without_a_region(zones: str, problem: str) -> None:
    with pytest.raises(TranslationError) as error:
        translate(gce({ZONE: zones}))
    assert str(error.value) == f"failed to get region from zones: {problem}"


@pytest.mark.parametrize(
    ("volume_id", "handle"),
    [("vol-1", "vol-1"), ("aws://zone-a/vol-1", "vol-1"), ("aws:///vol-1", "vol-1"), ("anything", "anything")],
)
def test_ebs_ids(volume_id: str, handle: str) -> None:
    assert inline_handle(msgspec.convert({"awsElasticBlockStore": {"volumeID": volume_id}}, Volume)) == handle
    source = translate(persistent({"awsElasticBlockStore": {"volumeID": volume_id}})).spec.csi
    assert source is not None
    assert source.volume_handle == handle


@pytest.mark.parametrize("volume_id", ["aws://zone/disk-1", "aws://vol-1", "aws:///vol-1/more"])
def test_invalid_ebs_ids(volume_id: str) -> None:
    with pytest.raises(TranslationError, match="Invalid format for AWS volume"):
        translate(persistent({"awsElasticBlockStore": {"volumeID": volume_id}}))


@pytest.mark.parametrize(
    ("kind", "is_supported"), [("Managed", True), ("managed", True), ("Shared", False), (None, False)]
)
def test_only_managed_azure_disks_are_translated(kind: str | None, is_supported: bool) -> None:
    disk = {"diskName": "d", "diskURI": "uri"} | ({"kind": kind} if kind else {})
    inline = msgspec.convert({"azureDisk": disk}, Volume)
    if is_supported:
        assert inline_handle(inline) == "uri"
    else:
        with pytest.raises(TranslationError, match="is not supported in csi migration"):
            inline_handle(inline)


@pytest.mark.parametrize(
    ("labels", "before", "after"),
    [
        ({}, None, None),
        ({ZONE: "a"}, None, [{GKE: ["a"]}]),
        ({ZONE: "us-x-b__us-x-a"}, None, [{GKE: ["us-x-a", "us-x-b"]}]),
        ({ZONE: "b"}, [{ZONE: ["a"]}], [{GKE: ["a"]}]),  # node affinity precedes labels
        ({BETA_ZONE: "a"}, None, [{GKE: ["a"]}]),
        (
            {ZONE: "a"},
            [{"disk": ["ssd"]}, {"disk": ["hdd"]}],
            [{"disk": ["ssd"], GKE: ["a"]}, {"disk": ["hdd"], GKE: ["a"]}],
        ),
        ({}, [{BETA_ZONE: ["a"], BETA_REGION: ["r"]}], [{GKE: ["a"], REGION: ["r"]}]),
        ({}, [{ZONE: ["a"], BETA_REGION: ["r"]}], [{GKE: ["a"], BETA_REGION: ["r"]}]),
        ({BETA_ZONE: "b"}, [{ZONE: ["a"]}], [{GKE: ["a"]}]),
    ],
)
def test_the_topology_of_a_translated_volume(labels: dict[str, str], before: Terms | None, after: Terms | None) -> None:
    required = translate(gce(labels, before)).required_node_affinity
    result = (
        None
        if required is None
        else [
            {match_expression.key: list(match_expression.values) for match_expression in term.match_expressions}
            for term in required.node_selector_terms
        ]
    )
    assert result == after


def test_a_translated_volume_has_only_a_csi_source() -> None:
    volume = translate(persistent({"cinder": {"volumeID": "vol"}}))
    assert volume.spec.cinder is None
    assert plugin_of(volume.spec) is None
    assert volume.spec.csi is not None
    assert (volume.spec.csi.driver, volume.spec.csi.volume_handle) == ("cinder.csi.openstack.org", "vol")


@pytest.mark.parametrize(
    ("source", "name", "is_migrated"),
    [
        ({"gcePersistentDisk": {"pdName": "d"}}, "kubernetes.io/gce-pd", True),
        ({"portworxVolume": {"volumeID": "v"}}, "kubernetes.io/portworx-volume", True),
        ({"azureFile": {"shareName": "s"}}, "kubernetes.io/azure-file", False),
        ({"vsphereVolume": {"volumePath": "p"}}, "kubernetes.io/vsphere-volume", False),
    ],
)
def test_plugins_that_scheduling_treats_as_migrated(source: dict[str, object], name: str, is_migrated: bool) -> None:
    for match in (plugin_of(msgspec.convert(source, Volume)), plugin_of(persistent(source).spec)):
        assert match is not None
        assert (match.name, match.is_migrated) == (name, is_migrated)
    assert plugin_named(name) is not None


def test_other_volumes_have_no_plugin() -> None:
    assert plugin_of(msgspec.convert({"name": "v", "iscsi": {"iqn": "q"}}, Volume)) is None
    assert plugin_named("csi.example.com") is None
