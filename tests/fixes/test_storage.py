"""Fixes for claims and volumes, derived from the claim."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import kschedx
from kschedx.render.outcome import roots
from kschedx.words.causes import because
from tests.builders import Manifest, at, node, pod
from tests.storage_builders import DRIVER, HOSTNAME, ZONE, claim, csi_node, in_term, storage_class, using, volume

RESTORED = "restore volume gone with the handle of its disk, if the disk still exists"
EMPTIED = "delete and recreate claim default/data; the data on volume gone is lost"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
IS_DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
ME = pod("me", spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]})


def titles(*objects: Manifest) -> list[str]:
    snapshot = kschedx.Snapshot.from_objects([node("a"), ME, *objects])
    return [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes if fix.certainty == "verified"]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        # a claim that is not there
        ([storage_class(provisioner=DRIVER)], ["create claim default/data of class waits"]),
        (
            [],
            ["create claim default/data without a class, create a volume of 1Gi ReadWriteOnce for claim default/data"],
        ),
        # one that has to be bound first
        (
            [
                claim("data", storage_class="now"),
                storage_class("now", waits=False),
                volume("free", storage_class="now"),
            ],
            ["bind claim default/data to volume free"],
        ),
        (
            [claim("data", storage_class="now"), storage_class("now", waits=False, provisioner=DRIVER)],
            [
                (
                    f"repair {DRIVER}, so that it provisions the volume for claim default/data: "
                    "10Gi ReadWriteOnce of class now"
                )
            ],
        ),
        (
            [
                claim("data", storage_class="now"),
                storage_class("now", waits=False, provisioner="kubernetes.io/aws-ebs"),
            ],
            [
                (
                    "repair ebs.csi.aws.com, the successor of kubernetes.io/aws-ebs, so that it provisions the volume "
                    "for claim default/data: 10Gi ReadWriteOnce of class now"
                )
            ],
        ),
        # no class is named: one that can make volumes
        (
            [claim("data", storage_class=None), storage_class(provisioner=DRIVER)],
            ["set storageClassName waits on claim default/data", "make storage class waits the default"],
        ),
        # several such claims: one default class serves all of them
        (
            [claim("data", storage_class=None), claim("other", storage_class=None), storage_class(provisioner=DRIVER)],
            ["make storage class waits the default", "set storageClassName waits on claim default/data"],
        ),
        (
            [
                claim("data", storage_class=None),
                claim("other", storage_class=None),
                storage_class("now", waits=False, provisioner=DRIVER),
            ],
            ["make storage class now the default", "set storageClassName now on claim default/data"],
        ),
        # storageClassName "": nothing is provisioned for it, whatever the default
        (
            [claim("data", storage_class=""), storage_class(provisioner=DRIVER, metadata={"annotations": IS_DEFAULT})],
            ['delete and recreate claim default/data with class waits instead of ""'],
        ),
        # a volume that lacks only the access mode, for a class that waits and for one that binds at once
        (
            [claim("data", modes=["ReadWriteMany"]), storage_class(), volume("free")],
            ["delete and recreate claim default/data with ReadWriteOnce, as volume free has it"],
        ),
        (
            [
                claim("data", storage_class="now", modes=["ReadWriteMany"]),
                storage_class("now", waits=False),
                volume("larger", storage_class="now", size="20Gi"),  # the smallest one is bound
                volume("free", storage_class="now"),
            ],
            ["delete and recreate claim default/data with ReadWriteOnce, as volume free has it"],
        ),
        # the data of a deleted claim, and a volume that is reserved for a claim to come
        (
            [storage_class(provisioner=DRIVER), volume("kept", claim_ref="data", uid="before", phase="Released")],
            ["remove the uid from claimRef of volume kept, which has the data, and create claim default/data again"],
        ),
        (
            [claim("data"), storage_class(), volume("kept", claim_ref="other", uid="", phase="Available")],
            ["create a volume of 10Gi ReadWriteOnce of class waits for claim default/data"],
        ),
        # a volume that is reserved for a claim of this name in another namespace
        (
            [
                *(claim("data"), storage_class()),
                volume("kept", phase="Available", claimRef={"namespace": "prod", "name": "data"}),
            ],
            ["reserve volume kept for claim default/data instead of prod/data, which does not exist"],
        ),
        (
            [
                *(
                    claim("data"),
                    storage_class(),
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}},
                ),
                volume("kept", phase="Available", claimRef={"namespace": "prod", "name": "data"}),
            ],
            [
                "create a volume of 10Gi ReadWriteOnce of class waits for claim default/data",
                "reserve volume kept for claim default/data instead of prod/data, which does not exist yet",
            ],
        ),
        # a volume that is kept for a claim that is gone, its own of before first
        (
            [claim("data"), storage_class(), volume("kept", claim_ref="data", uid="before", phase="Released")],
            ["release volume kept, whose earlier claim default/data is deleted; its data stays"],
        ),
        (
            [
                claim("data", storage_class="now"),
                storage_class("now", waits=False),
                volume("kept", storage_class="now", claim_ref="data", uid="before", phase="Released"),
            ],
            ["release volume kept, whose earlier claim default/data is deleted; its data stays"],
        ),
        # a claim that names a volume is bound to no other
        (
            [
                claim("data", volumeName="kept"),
                storage_class("waits", waits=False, provisioner=DRIVER),
                volume("kept", claim_ref="data", uid="before", phase="Released"),
            ],
            [
                "release volume kept, whose earlier claim default/data is deleted; its data stays",
                "delete and recreate claim default/data without volumeName kept",
            ],
        ),
        (
            [
                claim("data", volumeName="taken"),
                storage_class("waits", waits=False, provisioner=DRIVER),
                *(claim("other", volume="taken"), volume("taken", claim_ref="other")),
                volume("kept", claim_ref="data", uid="before", phase="Released"),
            ],
            ["delete and recreate claim default/data without volumeName taken"],
        ),
        (
            [
                claim("data", volumeName="taken"),
                storage_class("waits", waits=False),
                *(claim("other", volume="taken"), volume("taken", claim_ref="other")),
            ],
            [
                (
                    "delete and recreate claim default/data without volumeName taken, and create a volume of 10Gi "
                    "ReadWriteOnce of class waits"
                )
            ],
        ),
        (
            [
                claim("data", volumeName="taken"),
                storage_class("waits", waits=False),
                *(claim("other", volume="taken"), volume("taken", claim_ref="other"), volume("spare")),
            ],
            ["delete and recreate claim default/data without volumeName taken; volume spare is free"],
        ),
        (  # the volume controller binds no volume that is too small, even if the claim names it
            [claim("data", volumeName="small"), storage_class("waits", waits=False), volume("small", size="5Gi")],
            ["delete and recreate claim default/data with 5Gi, as volume small has it"],
        ),
        (
            [claim("data", volumeName="gone"), storage_class("waits", waits=False)],
            ["create volume gone of 10Gi ReadWriteOnce of class waits for claim default/data"],
        ),
        (
            [claim("data", storage_class="standart"), storage_class("standard", provisioner=DRIVER)],
            [
                "delete and recreate claim default/data with class standard instead of standart",
                "create storage class standart",
            ],
        ),
        (
            [
                claim("data", storage_class="premium"),
                storage_class("standard", provisioner=DRIVER, metadata={"annotations": IS_DEFAULT}),
            ],
            [
                "delete and recreate claim default/data with class standard instead of premium",
                "create storage class premium",
            ],
        ),
        (
            [
                claim("data", storage_class="premium", modes=["ReadWriteMany"]),
                storage_class("standard", provisioner="ebs.csi.aws.com", metadata={"annotations": IS_DEFAULT}),
            ],
            ["create storage class premium"],
        ),
        # a class that its project usually installs comes first if its driver is there
        (
            [claim("data", storage_class="gp3"), storage_class("gp2", provisioner="kubernetes.io/aws-ebs")],
            [
                "create storage class gp3 of ebs.csi.aws.com",
                "delete and recreate claim default/data with class gp2 instead of gp3",
            ],
        ),
        (
            [
                claim("data", storage_class="longhorn"),
                storage_class("standard", provisioner=DRIVER),
                csi_node("a", driver="ebs.csi.aws.com"),
            ],
            [
                "delete and recreate claim default/data with class standard instead of longhorn",
                "install driver.longhorn.io, and create its storage class longhorn",
            ],
        ),
        (
            [claim("data", storage_class="longhorn"), storage_class("standard", provisioner=DRIVER)],
            [
                "delete and recreate claim default/data with class standard instead of longhorn",
                "create storage class longhorn of driver.longhorn.io",
            ],
        ),
        (
            [
                claim("data", storage_class="managed-nfs-storage"),
                storage_class("managed-csi", provisioner="disk.csi.azure.com"),
            ],
            [
                "delete and recreate claim default/data with class managed-csi instead of managed-nfs-storage",
                "create storage class managed-nfs-storage",
            ],
        ),
        # disks that no driver provisions for several nodes
        (
            [
                claim("data", storage_class="disk", modes=["ReadWriteMany"]),
                storage_class("disk", provisioner="ebs.csi.aws.com", waits=False),
            ],
            ["delete and recreate claim default/data with ReadWriteOnce, if one node is enough for its pods"],
        ),
        (
            [
                claim("data", storage_class="disk", modes=["ReadWriteMany"]),
                storage_class("disk", provisioner="ebs.csi.aws.com", waits=False),
                storage_class("shared", provisioner=DRIVER, waits=False),
            ],
            [
                "delete and recreate claim default/data with class shared instead of disk",
                "delete and recreate claim default/data with ReadWriteOnce, if one node is enough for its pods",
            ],
        ),
        # volumes that are gone or too small
        ([claim("data", volume="gone"), storage_class(provisioner=DRIVER), volume("other")], [RESTORED, EMPTIED]),
        ([claim("data", volume="gone", phase="Lost"), storage_class(provisioner=DRIVER)], [RESTORED, EMPTIED]),
        (
            [claim("data", annotations={SELECTED_NODE: "gone"}), storage_class(provisioner=DRIVER)],
            [f"remove annotation {SELECTED_NODE}: gone from claim default/data"],
        ),
        (
            [claim("data"), storage_class(), volume("small", size="5Gi")],
            [
                "delete and recreate claim default/data with 5Gi, as volume small has it",
                "create a volume of 10Gi ReadWriteOnce of class waits for claim default/data",
            ],
        ),
        (
            [claim("data"), storage_class()],
            ["create a volume of 10Gi ReadWriteOnce of class waits for claim default/data"],
        ),
    ],
)
def test_claims(objects: list[Manifest], expected: list[str]) -> None:
    assert titles(*objects)[: len(expected)] == expected


OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({ZONE: "eu-1a"}, [f"use label {ZONE} in nodeAffinity of volume disk: no node has {OLD_ZONE}"]),
        ({ZONE: "eu-1b"}, []),
        ({ZONE: "eu-1a", OLD_ZONE: "eu-1b"}, []),
        ({}, []),
    ],
)
def test_zone_labels_of_a_volume_get_their_present_names(labels: dict[str, str], expected: list[str]) -> None:
    """The API server lets a volume's zones change only so."""
    objects = [
        *(node("a", labels=labels), ME, claim("data", volume="disk")),
        volume("disk", node_affinity=in_term(OLD_ZONE, "eu-1a"), claim_ref="data"),
    ]
    fixes = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes
    assert [fix.title for fix in fixes if "nodeAffinity" in fix.title] == expected


def test_a_default_class_is_one_command() -> None:
    """The volume controller binds the claim: no claim is deleted or edited."""
    objects = [claim("data", storage_class=None), storage_class("now", waits=False, provisioner=DRIVER)]
    fixes = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), ME, *objects]), "default/me").fixes
    fix = next(item for item in fixes if item.title == "make storage class now the default")
    sent = [(item.target.kind, item.patch) for item in fix.changes if not item.by]
    assert sent == [("StorageClass", ({"op": "add", "path": "/metadata/annotations", "value": IS_DEFAULT},))]
    assert {item.by for item in fix.changes if item.by} == {"kube-controller-manager", DRIVER}
    assert not any(item.delete for item in fix.changes)


def test_the_claim_of_an_ephemeral_volume_equals_its_template() -> None:
    questions = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "now",
        "resources": {"requests": {"storage": "7Gi"}},
    }
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": questions}}}
    classes = [storage_class("now", provisioner=DRIVER), storage_class("waits", provisioner=DRIVER)]
    me = pod("me", metadata={"uid": "u"}, spec={"volumes": [scratch]})
    fix, *_ = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), me, *classes]), "default/me").fixes
    assert fix.title == "wait until kube-controller-manager creates claim default/me-scratch of class now"
    (change,) = fix.changes
    assert change.create is not None
    assert change.create["spec"] == questions


def test_an_ephemeral_volume_with_a_wrong_class_gets_another_in_the_pod() -> None:
    questions = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fats",
        "resources": {"requests": {"storage": "7Gi"}},
    }
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": questions}}}
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "me", "uid": "u", "controller": True}]
    created = claim("me-scratch", storage_class="fats", metadata={"ownerReferences": owners})
    fast = storage_class("fast", provisioner=DRIVER)
    me = pod("me", metadata={"uid": "u"}, spec={"volumes": [scratch]})
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), me, created, fast]), "default/me")
    fix, *_ = explanation.fixes
    path = "/spec/volumes/0/ephemeral/volumeClaimTemplate/spec/storageClassName"
    assert fix.title == "set storage class fast instead of fats in ephemeral volume scratch"
    assert [change.patch for change in fix.changes if not change.by] == [
        ({"op": "add", "path": path, "value": "fast"},)
    ]
    before = kschedx.Snapshot.from_objects([node("a"), fast])
    assert replace(explanation, before=before).fixes[0].title == fix.title


@pytest.mark.parametrize("name", ["dta", "ata"])
def test_a_claim_with_a_prefix(name: str) -> None:
    objects = [node("n"), claim("etl-ata", volume="pv"), volume("pv", claim_ref="etl-ata"), using("me", name)]
    titles = [fix.title for fix in kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes]
    assert ("use claim etl-ata instead of ata" in titles) == (name == "ata")


def test_a_claim_of_a_similar_name() -> None:
    mounts = [{"name": "a", "configMap": {"name": "c"}}, {"name": "b", "persistentVolumeClaim": {"claimName": "dta"}}]
    objects = [node("n"), claim("data", volume="pv"), volume("pv", claim_ref="data"), pod("me", volumes=mounts)]
    fix = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes[0]
    assert fix.title == "use claim data instead of dta"
    operation = {"op": "add", "path": "/spec/volumes/1/persistentVolumeClaim/claimName", "value": "data"}
    assert [change.patch for change in fix.changes] == [(operation,)]


def test_the_claim_of_a_template_is_changed_there() -> None:
    template = claim("data", storage_class="fast")
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "s", "controller": True}
    stateful: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default", "uid": "s"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": template["spec"]}],
        },
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]
    first = pod("db-0", labels={"app": "db"}, metadata={"ownerReferences": [owner]}, spec={"volumes": volumes})
    result = storage_class(provisioner=DRIVER)
    stored = kschedx.Snapshot.from_objects(
        [node("a"), stateful, first, claim("data-db-0", storage_class="fast"), result]
    )
    fix, *_ = kschedx.explain(stored, "default/db-0").fixes
    assert fix.title == (
        "use class waits instead of fast in volumeClaimTemplate data of StatefulSet db, and recreate claim "
        "default/data-db-0"
    )
    texts = [(change.target.kind, change.delete, change.orphan, change.by) for change in fix.changes]
    assert texts == [
        ("StatefulSet", True, True, ""),
        ("StatefulSet", False, False, ""),
        ("PersistentVolumeClaim", True, False, ""),
        ("PersistentVolumeClaim", False, False, "kube-controller-manager"),
    ]
    assert at(fix.changes[1].create or {}, "spec.volumeClaimTemplates")[0]["spec"]["storageClassName"] == "waits"
    written = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), result]), stateful).fixes[0]
    assert written.title == "use class waits instead of fast in volumeClaimTemplate data of StatefulSet db"


def test_the_claim_of_a_manifest_is_changed_there() -> None:
    manifests = kschedx.Snapshot.from_objects([node("a"), ME, claim("data", storage_class="fast")])
    before = kschedx.Snapshot.from_objects([node("a"), storage_class(provisioner=DRIVER)])
    with_storage_result = manifests.with_storage(replace(manifests.storage, classes=before.storage.classes))
    replace_result = replace(kschedx.explain(with_storage_result, "default/me"), before=before)
    assert replace_result.fixes[0].title == "use class waits instead of fast in the manifest of claim default/data"
    assert [(item.delete, item.create is not None) for item in replace_result.fixes[0].apply] == [(False, True)]


MANUAL = "manual"


@pytest.mark.parametrize(
    ("own", "free", "first"),
    [
        (
            claim("data", storage_class=MANUAL, modes=["ReadWriteMany"]),
            volume("v", storage_class=MANUAL),
            "ReadWriteOnce",
        ),
        (claim("data", storage_class=MANUAL), volume("v", storage_class=MANUAL, size="5Gi"), "5Gi"),
        (
            claim("data", storage_class=MANUAL, selector={"matchLabels": {"type": "fats"}}),
            volume("v", storage_class=MANUAL, labels={"type": "fast"}),
            "selector type=fast",
        ),
        (claim("data", storage_class=MANUAL), volume("v", storage_class="fixed"), "class fixed"),
        (
            claim("data", storage_class=MANUAL, volumeMode="Block"),
            volume("v", storage_class=MANUAL, nfs={"server": "a", "path": "/"}),
            "volumeMode Filesystem",
        ),
        (
            claim("data", storage_class=MANUAL),
            [volume("u", storage_class=MANUAL, modes=[]), volume("v", storage_class="fixed")],
            "class fixed",
        ),
    ],
    ids=["modes", "size", "selector", "class", "volumeMode", "another volume has no modes"],
)
def test_a_claim_without_a_provisioner_matches_the_free_volume(
    own: Manifest, free: Manifest | list[Manifest], first: str
) -> None:
    recreated = f"delete and recreate claim default/data with {first}, as volume v has it"
    volumes = free if isinstance(free, list) else [free]
    assert titles(own, *volumes, storage_class(provisioner=DRIVER))[0] == recreated


@pytest.mark.parametrize(
    ("own", "free", "expected"),
    [
        ({"selector": {"matchLabels": {"app": "web"}}}, {}, "label volume v app=web"),
        ({"selector": {"matchLabels": {"app": "web"}}}, {"labels": {"app": "shop"}}, None),
        ({"selector": {"matchLabels": {"app": "a", "on": "b"}}}, {"labels": {"app": "a"}}, "label volume v on=b"),
        ({}, {"volumeMode": "Block"}, "delete and recreate volume v with volumeMode Filesystem"),
        ({"volumeMode": "Block"}, {"csi": True}, "delete and recreate volume v with volumeMode Block"),
    ],
)
def test_a_volume_that_lacks_what_its_claim_selects_is_changed(
    own: dict[str, Any], free: dict[str, Any], expected: str | None
) -> None:
    first = titles(claim("data", storage_class=MANUAL, **own), volume("v", storage_class=MANUAL, **free))[:1]
    assert [title.startswith(expected or "create") for title in first] == [True]


@pytest.mark.parametrize(
    ("own", "is_offered"),
    [
        ({"local": {"path": "/d"}, "node_affinity": in_term(HOSTNAME, "gone")}, True),
        ({"local": {"path": "/d"}, "node_affinity": in_term(ZONE, "gone")}, False),
        ({"csi": True, "node_affinity": in_term(HOSTNAME, "gone")}, False),
        ({"local": {"path": "/d"}, "node_affinity": in_term(HOSTNAME, "gone"), "claim_ref": "other"}, False),
        ({"local": {"path": "/d"}, "node_affinity": in_term(HOSTNAME, "full")}, False),
    ],
)
def test_a_free_volume_on_a_node_that_does_not_exist_is_recreated(own: dict[str, Any], *, is_offered: bool) -> None:
    here, full = (node(name, labels={HOSTNAME: name}) for name in ("here", "full"))
    at(full, "status")["allocatable"] = {"cpu": "0", "pods": "0"}
    made = claim("data", storage_class=MANUAL), volume("v", storage_class=MANUAL, **own)
    snapshot = kschedx.Snapshot.from_objects([here, full, ME, storage_class(MANUAL), *made])
    found = [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes[:1]]
    assert (found == ["delete and recreate volume v on here: no node has host name gone"]) is is_offered


@pytest.mark.parametrize(
    ("other", "is_offered"),
    [
        ([storage_class(provisioner=DRIVER)], True),
        ([storage_class(provisioner="other.example.com")], False),
        ([], False),
    ],
)
def test_a_claim_that_was_bound_too_early_gets_a_class_with_late_binding(
    other: list[Manifest], *, is_offered: bool
) -> None:
    bound = claim("data", storage_class="now", volume="gone")
    disk = volume(
        "gone",
        storage_class="now",
        claim_ref="data",
        node_affinity=in_term(HOSTNAME, "elsewhere"),
        persistentVolumeReclaimPolicy="Delete",
    )
    fixes = titles(bound, disk, storage_class("now", provisioner=DRIVER, waits=False), *other)
    named = EMPTIED.replace(";", " with class waits, which waits for the pod;")
    assert [title for title in fixes if "recreate" in title] == ([named] if is_offered else [])


ALIKE = [{"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOSTNAME}]
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ALIKE}}


@pytest.mark.parametrize(
    ("waits", "affinity", "reach", "is_named"),
    [
        (False, APART, "a", True),
        (True, APART, "a", False),
        (False, APART, "b", False),
        (False, {}, "a", False),
    ],
)
def test_volumes_in_one_place_name_a_class_with_immediate_binding(
    waits: bool, affinity: Manifest, reach: str, is_named: bool
) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    metadata = {"labels": {"app": "db"}, "ownerReferences": [owner]}
    objects: list[Manifest] = [storage_class("now", provisioner=DRIVER, waits=waits)]
    for name, place in (("db-0", reach), ("db-1", "a")):
        used = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]
        objects += [
            claim(f"data-{name}", storage_class="now", volume=name),
            volume(name, storage_class="now", claim_ref=f"data-{name}", node_affinity=in_term(HOSTNAME, place)),
            pod(name, on=reach if name == "db-0" else None, metadata=metadata, affinity=affinity, volumes=used),
        ]
    full = node("a", allocatable={"cpu": "1", "memory": "1Gi", "pods": "0"})
    snapshot = kschedx.Snapshot.from_objects([full, node("b"), *objects])
    texts = roots(kschedx.explain(snapshot, "default/db-1").diagnosis)
    why = "class now binds claims before scheduling (Immediate): the volumes of all replicas are in one place"
    assert (why in texts) == is_named


def test_a_volume_beside_that_of_another_replica_is_given_up_last() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    metadata = {"labels": {"app": "db"}, "ownerReferences": [owner]}
    objects: list[Manifest] = [
        *(storage_class(name, provisioner=DRIVER, waits=name == "later") for name in ("now", "later")),
        *(node(name, labels={ZONE: name, HOSTNAME: name}) for name in ("a", "b", "c")),
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "db", "namespace": "default"},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "db"}},
                "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db"}]}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "now"}}],
            },
        },
    ]
    for name, zone, on in (("db-0", "a", "a"), ("db-1", "b", "b"), ("db-2", "a", None)):
        used = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]
        term, deleted = in_term(ZONE, zone), "Delete"
        objects += [
            claim(f"data-{name}", storage_class="now", volume=name),
            volume(
                name,
                storage_class="now",
                claim_ref=f"data-{name}",
                node_affinity=term,
                persistentVolumeReclaimPolicy=deleted,
            ),
            pod(name, on=on, metadata=metadata, affinity=APART, volumes=used),
        ]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/db-2")
    why = "class now binds claims before scheduling (Immediate): the volumes of several replicas are in one place"
    assert why in roots(result.diagnosis)
    *_, last = [fix.title for fix in result.fixes if "class later" in fix.title]
    assert last.endswith("; the data on volume db-2 is lost")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((ZONE, "a"), (ZONE, "b"), ["no node can access both volume v1 in a and volume v2 in b"]),
        ((ZONE, "b"), (ZONE, "a"), ["no node can access both volume v1 in b and volume v2 in a"]),
        ((ZONE, "a", "b"), (ZONE, "b"), []),
        ((ZONE, "a"), (HOSTNAME, "b"), []),
    ],
    ids=["apart", "the other way", "overlapping", "by other labels"],
)
def test_volumes_that_no_node_reaches_together(
    first: tuple[str, str], second: tuple[str, str], expected: list[str]
) -> None:
    reaches = {"v1": first, "v2": second}
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": f"data-{name}"}} for name in reaches]
    objects = [
        item
        for name, reach in reaches.items()
        for item in (
            claim(f"data-{name}", volume=name),
            volume(name, claim_ref=f"data-{name}", node_affinity=in_term(*reach)),
        )
    ]
    nodes = [node(name, labels={HOSTNAME: name, ZONE: name}) for name in ("a", "c")]
    snapshot = kschedx.Snapshot.from_objects([*nodes, storage_class(), pod("me", volumes=volumes), *objects])
    texts = roots(kschedx.explain(snapshot, "default/me").diagnosis)
    assert [text for text in texts if text.startswith("no node can access both")] == expected


@pytest.mark.parametrize(("waits", "is_chance"), [(True, False), (False, True)])
def test_a_class_that_does_not_wait_may_choose_a_wrong_place_again(waits: bool, is_chance: bool) -> None:
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in "ab"]
    objects = [
        item
        for name in "ab"
        for item in (
            claim(name, storage_class="own", volume=name),
            volume(name, storage_class="own", claim_ref=name, node_affinity=in_term(ZONE, name)),
        )
    ]
    nodes = [node(name, labels={HOSTNAME: name, ZONE: name}) for name in "ab"]
    own = storage_class("own", provisioner=DRIVER, waits=waits)
    answer = kschedx.explain(
        kschedx.Snapshot.from_objects([*nodes, own, pod("me", volumes=volumes), *objects]), "default/me"
    )
    why = "class own binds claims before scheduling (Immediate): the volumes of the pod are in several places"
    assert (why in roots(answer.diagnosis)) == is_chance
    assert ("class own may choose another place again" in answer.fixes[0].title) == is_chance


SCRATCH = {"accessModes": ["ReadWriteOnce"], "storageClassName": "waits", "resources": {"requests": {"storage": "7Gi"}}}
ON_SCRATCH = pod(
    "me",
    metadata={"uid": "u"},
    volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": SCRATCH}}}],
)


@pytest.mark.parametrize(
    ("policy", "host", "fate"),
    [
        ("Delete", "", "the data on volume v is lost"),
        ("Retain", "", "volume v keeps its data; the new volume is empty"),
        ("Retain", "a", "volume v keeps its data on the disk of its node; the new volume is empty"),
        ("Retain", "gone", "the data on volume v is lost"),
        ("", "", "the data on volume v is lost unless the reclaim policy is Retain"),
    ],
)
def test_the_data_of_a_claim_that_is_recreated(policy: str, host: str, fate: str) -> None:
    local: dict[str, Any] = {"local": {"path": "/v"}, "node_affinity": in_term(HOSTNAME, host)} if host else {}
    kept = volume("v", claim_ref="me-scratch", persistentVolumeReclaimPolicy=policy, **local)
    objects = [storage_class(provisioner=DRIVER), claim("me-scratch", volume="v"), kept]
    here = node("a", labels={HOSTNAME: "a"})
    [fix] = kschedx.explain(kschedx.Snapshot.from_objects([here, ON_SCRATCH, *objects]), "default/me").fixes
    assert (fix.title, fix.costs) == ("delete and recreate claim default/me-scratch", (fate,))
    going = claim("data", volume="v")
    at(going, "metadata")["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    user = pod("me", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    snapshot = kschedx.Snapshot.from_objects([here, user, storage_class(provisioner=DRIVER), going, kept])
    [fix] = kschedx.explain(snapshot, "default/me").fixes
    assert (fix.title, fix.costs) == ("delete and recreate claim default/data", (fate,))


@pytest.mark.parametrize(("policy", "is_kept"), [("Retain", True), ("Delete", False)])
def test_the_volume_of_a_claim_in_deletion_is_released_if_it_stays(policy: str, *, is_kept: bool) -> None:
    going = claim("data", volume="v", storage_class="now", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    bound = volume("v", claim_ref="data", storage_class="now", csi=True, persistentVolumeReclaimPolicy=policy)
    objects = [node("a"), ME, storage_class("now", waits=False, provisioner=DRIVER), going, bound]
    fixes = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes
    released = [fix for fix in fixes if "release volume v" in fix.title]
    assert [fix.costs for fix in released] == ([()] if is_kept else [])


@pytest.mark.parametrize(("phase", "is_free"), [("Released", True), ("Bound", False)])
def test_only_a_volume_whose_claim_is_gone_is_released(phase: str, *, is_free: bool) -> None:
    """A dump may lack the claim of a bound volume."""
    other = {**volume("v", claim_ref="theirs", storage_class="now", csi=True), "status": {"phase": phase}}
    at(at(other, "spec"), "claimRef")["namespace"] = "other"
    objects = [node("a"), ME, storage_class("now", waits=False, provisioner=DRIVER), claim("data", storage_class="now")]
    fixes = kschedx.explain(kschedx.Snapshot.from_objects([*objects, other]), "default/me").fixes
    assert any("release volume v" in fix.title for fix in fixes) is is_free


def test_a_claim_in_use_is_not_recreated_for_another_pod() -> None:
    used = [{"name": "data", "persistentVolumeClaim": {"claimName": "me-scratch"}}]
    objects = [storage_class(provisioner=DRIVER), claim("me-scratch", volume="v"), volume("v", claim_ref="me-scratch")]
    nodes_and_pods = [node("a"), ON_SCRATCH, pod("other", on="a", volumes=used)]
    snapshot = kschedx.Snapshot.from_objects([*nodes_and_pods, *objects])
    assert not kschedx.explain(snapshot, "default/me").fixes


def quota_of_claims(name: str, hard: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": {"persistentvolumeclaims": hard}},
        "status": {"hard": {"persistentvolumeclaims": hard}, "used": {"persistentvolumeclaims": "1"}},
    }


def test_a_quota_that_refuses_the_claim_of_an_ephemeral_volume_is_raised() -> None:
    objects = [storage_class(provisioner=DRIVER), quota_of_claims("few", "1"), quota_of_claims("many", "9")]
    snapshot = kschedx.Snapshot.from_objects([node("a"), ON_SCRATCH, *objects])
    result = kschedx.explain(snapshot, "default/me")
    [fix] = result.fixes
    assert (fix.title, fix.certainty) == (
        "raise persistentvolumeclaims from 1 to 2 in ResourceQuota few, for claim default/me-scratch",
        "verified",
    )
    [command] = fix.commands
    assert command.startswith("kubectl patch resourcequota few -n default")
    [refused] = [text for text in roots(result.diagnosis) if text.startswith("kube-controller-manager cannot create")]
    assert "exceeded quota: few, requested: persistentvolumeclaims=1" in refused


def test_an_ephemeral_volume_with_an_invalid_size_and_a_quota() -> None:
    questions: Manifest = {**SCRATCH, "resources": {"requests": {"storage": "abc"}}}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": questions}}}
    objects = [storage_class(provisioner=DRIVER), quota_of_claims("few", "1"), pod("me", volumes=[scratch])]
    result = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), *objects]), "default/me")
    assert not [text for text in roots(result.diagnosis) if text.startswith("kube-controller-manager cannot create")]


def test_an_event_of_the_pod_names_why_the_claim_of_its_ephemeral_volume_is_not_created() -> None:
    event: Manifest = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "me", "uid": "u"},
        "reason": "FailedBinding",
        "message": "ephemeral volume scratch: create PVC me-scratch: denied by policy",
        "type": "Warning",
    }
    snapshot = kschedx.Snapshot.from_objects([node("a"), ON_SCRATCH, storage_class(provisioner=DRIVER), event])
    texts = roots(kschedx.explain(snapshot, "default/me").diagnosis)
    assert "kube-controller-manager cannot create it: denied by policy" in texts


def test_a_volume_whose_deletion_failed_is_not_called_released() -> None:
    failed = volume("v", claim_ref="data", uid="before", phase="Failed")
    named = claim("data", volumeName="v")
    snapshot = kschedx.Snapshot.from_objects([node("a"), ME, storage_class(provisioner=DRIVER), named, failed])
    result = kschedx.explain(snapshot, "default/me")
    [cause] = [text for text in roots(result.diagnosis) if text.startswith("volume v")]
    assert "is Failed, because it could not be deleted: it still has the claimRef" in cause
    assert result.fixes[0].title.endswith("claim default/data is deleted, if its data still exists")


@pytest.mark.parametrize(
    ("other", "mode", "is_shared"),
    [("web", "ReadWriteOnce", True), ("old", "ReadWriteOnce", False), ("web", "ReadWriteMany", False)],
    ids=["replicas", "a pod of another ReplicaSet", "for several nodes"],
)
def test_replicas_that_share_a_claim_for_one_node_get_their_own(other: str, mode: str, *, is_shared: bool) -> None:
    def replica(name: str, of: str, on: str | None = None) -> Manifest:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": of, "uid": of, "controller": True}
        containers = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        status = {"phase": "Running"} if on else None
        owned = {"ownerReferences": [owner]}
        return pod(name, on=on, metadata=owned, status=status, containers=containers, volumes=volumes)

    objects = [
        node("a", allocatable={"cpu": "3", "pods": "9"}),
        storage_class(provisioner=DRIVER),
        claim("data", volume="v", modes=[mode]),
        volume("v", claim_ref="data", modes=[mode], csi=True, node_affinity=in_term(HOSTNAME, "a")),
    ]
    snapshot = kschedx.Snapshot.from_objects([*objects, replica("first", other, "a"), replica("me", "web")])
    titles = [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes]
    own = "give each replica a claim of its own with a StatefulSet, or share one with ReadWriteMany"
    assert (own in titles) == is_shared


def test_a_volume_in_several_zones_without_nodes() -> None:
    objects = [claim("data", volume="v"), volume("v", claim_ref="data", node_affinity=in_term(ZONE, "b", "c"))]
    snapshot = kschedx.Snapshot.from_objects([node("a", labels={ZONE: "a"}), ME, storage_class(), *objects])
    assert "no node is in zone b or c" in roots(kschedx.explain(snapshot, "default/me").diagnosis)


def test_a_volume_of_several_terms_is_in_all_their_zones() -> None:
    terms = [at(in_term(ZONE, zone), "required.nodeSelectorTerms")[0] for zone in ("a", "b")]
    affinity: Manifest = {"required": {"nodeSelectorTerms": terms}}
    objects = [ME, storage_class(), claim("data", volume="v"), volume("v", claim_ref="data", node_affinity=affinity)]
    full = {"cpu": "4", "memory": "8Gi", "pods": "0"}
    others = {"c": ["no node is in zone a or b"], "b": []}
    for zone, expected in others.items():
        nodes = [node("c", labels={ZONE: "c"}), node("n", labels={ZONE: zone}, allocatable=full)]
        diagnosis = kschedx.explain(kschedx.Snapshot.from_objects([*nodes, *objects]), "default/me").diagnosis
        assert [cause for cause in roots(diagnosis) if cause.startswith("no node")] == expected
        assert any("volume v (zone a, b) is not accessible" in text for text in because(diagnosis))


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize(
    ("nodes_there", "is_lasting"),
    [
        ([], True),
        ([node("b", labels={ZONE: "b"}, allocatable={"cpu": "500m", "memory": "9Gi", "pods": "9"})], True),
        ([node("b", labels={ZONE: "b"}, unschedulable=True)], False),
    ],
)
def test_a_class_that_binds_at_once_is_named_for_a_volume_where_no_node_can_run_the_pod(
    nodes_there: list[Manifest], *, is_lasting: bool, waits: bool
) -> None:
    asking = pod("me", volumes=at(ME, "spec")["volumes"], containers=[{"resources": {"requests": {"cpu": "1"}}}])
    objects = [
        *(claim("data", volume="v"), storage_class(provisioner=DRIVER, waits=waits)),
        volume("v", claim_ref="data", node_affinity=in_term(ZONE, "b")),
    ]
    snapshot = kschedx.Snapshot.from_objects([node("a", labels={ZONE: "a"}), *nodes_there, asking, *objects])
    causes = roots(kschedx.explain(snapshot, "default/me").diagnosis)
    assert ("without regard to pods" in " ".join(causes)) == (is_lasting and not waits)
