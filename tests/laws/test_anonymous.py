"""An anonymized cluster is decided as the cluster itself: in every verdict, score, victim and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kschedx
from kschedx.errors import InputError
from kschedx.export.anonymous import Anonymous, anonymize
from kschedx.kube.kinds import kind_of
from kschedx.kube.types import Pod
from kschedx.kube.workloads import MAKING_PODS, pod_from_workload
from kschedx.sources.files import read
from tests.admission.test_recorded_admission import CASES as ADMISSION_CASES
from tests.admission.test_recorded_admission import admitted
from tests.builders import Manifest
from tests.command import ROOT
from tests.conformance.decisions import Case, cases
from tests.golden.stories import STORIES, Story
from tests.laws.clusters import TARGET, Cluster, clusters

DECISION = ("outcome", "bestNodes", "message", "preEnqueue", "preFilter", "filter", "score", "postFilter")
AS_WRITTEN = {
    "reason",
    "creationTimestamp",
    "lastTransitionTime",
    "kubeletVersion",
    "node.kubernetes.io/instance-type",
    "karpenter.k8s.aws/instance-family",
    "karpenter.k8s.aws/instance-size",
}
"""Keys of values that are no names, though they may read like some."""


def objects_of(path: str) -> list[Manifest]:
    decoder = msgspec.json.Decoder(list[Manifest])
    return [item for batch in read(path) for item in batch.decode(decoder)]


def is_of_others(item: Mapping[str, object]) -> bool:
    """Templates of Cluster API, a provider's own, are left out of an anonymized snapshot."""
    kind = kind_of(str(item["kind"]), str(item["apiVersion"]).rpartition("/")[0])
    return kind is not None and kind.addon == "Cluster API"


def replaced(anonymous: Anonymous, item: Mapping[str, object]) -> Manifest:
    result = anonymous.anonymize(item)
    assert result is not None
    return result


def new_text(anonymous: Anonymous, text: str) -> set[str]:
    """What may stand for a text: a number is replaced where it is the value of a label, and counts where it is not."""
    result = {anonymous.text(text)}
    with suppress(KeyError):
        result.add(anonymous.name(text))
    return result


def differences(ours: Any, theirs: Any, anonymous: Anonymous, path: str = "") -> Iterator[str]:
    """Where the document about the anonymized cluster is not the other one with its names replaced."""
    match ours:
        case dict():
            keys = list(ours)
            if keys != list(theirs):
                keys = [anonymous.text(key) for key in ours]
            if keys != list(theirs):
                keys = [key if key in theirs else anonymous.text(key) for key in ours]
            if keys != list(theirs):
                yield f"{path}: {keys} != {list(theirs)}"
                return
            for key, new in zip(ours, keys, strict=True):
                if key == "uid":  # which tells nothing
                    continue
                if key not in AS_WRITTEN or ours[key] != theirs[new]:
                    yield from differences(ours[key], theirs[new], anonymous, f"{path}/{key}")
        case list():
            if len(ours) != len(theirs):
                yield f"{path}: {len(ours)} items, not {len(theirs)}"
                return
            for index, (item, other) in enumerate(zip(ours, theirs, strict=True)):
                yield from differences(item, other, anonymous, f"{path}/{index}")
        case str():
            if "compilation failed" in ours and "compilation failed" in theirs:
                return  # it quotes the expression, and marks a place in it
            if "/shortages/" in path and ours == theirs:
                return  # values that a kept selector reads are kept with it
            if ours != "<none>" and theirs not in new_text(anonymous, ours):
                yield f"{path}: {ours!r} became {theirs!r}, not {anonymous.text(ours)!r}"
        case _:
            if ours != theirs:
                yield f"{path}: {ours!r} became {theirs!r}"


def check(anonymous: Anonymous, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    items = [line for part in DECISION for line in differences(ours[part], theirs[part], anonymous, part)]
    assert not items, "\n".join(items)


def changes(document: Mapping[str, Any]) -> list[Any]:
    """What each fix changes; titles are prose."""
    return [fix["changes"] for fix in document["fixes"]]


def wordless(held: Any) -> Any:
    """Who holds a pod, without the sentences that others wrote; what says nothing else is gone."""
    match held:
        case dict():
            return {key: wordless(item) for key, item in held.items() if key not in ("message", "lookAt")}
        case list():
            return [wordless(item) for item in held]
        case _:
            return held


# --- stories


def as_pod(manifest: Manifest) -> Manifest:
    return pod_from_workload(manifest) if manifest["kind"] in MAKING_PODS else manifest


@pytest.mark.sample(3)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_story_stays_the_same(story: Story) -> None:
    cluster = objects_of(str(ROOT / story.cluster))
    config = story.configuration
    anonymous = Anonymous.of([*cluster, story.manifest], config=config)
    new_cluster = [replaced(anonymous, item) for item in cluster if not is_of_others(item)]
    new_manifest = replaced(anonymous, story.manifest)

    new_config = None if config is None else anonymous.configuration(config)

    def explained(objects: Sequence[Manifest], manifest: Manifest, config: Any) -> dict[str, Any]:
        snapshot = kschedx.Snapshot.from_objects(objects)
        return kschedx.explain(snapshot, as_pod(manifest), config=config).to_dict()

    ours, theirs = explained(cluster, story.manifest, config), explained(new_cluster, new_manifest, new_config)
    check(anonymous, ours, theirs)
    holding = differences(wordless(ours.get("holding")), wordless(theirs.get("holding")), anonymous, "holding")
    assert not list(holding)
    assert ours["kubernetesVersion"] == theirs["kubernetesVersion"]
    assert [note["id"] for note in ours["notes"]] == [note["id"] for note in theirs["notes"]]
    if story.name != "label-typo":  # whether a label looks like a misspelling of another is lost with its letters
        assert not list(differences(changes(ours), changes(theirs), anonymous))


# --- recorded decisions


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", cases()[::10], ids=lambda case: case.name)
def test_a_recorded_decision_stays_the_same(case: Case) -> None:
    objects, name = case.record["objects"], case.record["pod"]
    config, gates = case.record["config"], case.record.get("featureGates")
    anonymous = Anonymous.of(objects, config=config, keep_selectors=True)
    new_objects = [replaced(anonymous, item) for item in objects]
    new_config = None if config is None else anonymous.configuration(config)

    before, after = kschedx.Snapshot.from_objects(objects), kschedx.Snapshot.from_objects(new_objects)
    ours = kschedx.explain(before, name, config=config, feature_gates=gates).to_dict()
    theirs = kschedx.explain(after, anonymous.name(name), config=new_config, feature_gates=gates).to_dict()
    check(anonymous, ours, theirs)


# --- admission


@pytest.mark.parametrize("case", ADMISSION_CASES, ids=lambda case: case["name"])
def test_what_admission_makes_of_a_manifest_stays_the_same(case: dict[str, Any]) -> None:
    def outcome(context: Sequence[Manifest], manifest: Manifest) -> Manifest | None:
        """The pod as it is stored; None where it is refused."""
        try:
            admission = admitted({"context": context, "manifest": manifest})
        except InputError:
            return None
        result: Manifest = msgspec.json.decode(msgspec.json.encode(admission))
        return {"apiVersion": "v1", "kind": "Pod", **result}

    context, manifest = case["context"], case["manifest"]
    ours = outcome(context, manifest)
    anonymous = Anonymous.of([*context, manifest, *([ours] if ours else [])])
    theirs = outcome([replaced(anonymous, item) for item in context], replaced(anonymous, manifest))
    assert (ours is None) == (theirs is None)
    if ours and theirs:
        assert msgspec.convert(theirs, Pod).spec == msgspec.convert(replaced(anonymous, ours), Pod).spec


# --- clusters by chance


@settings(max_examples=settings().max_examples * 3 // 5)
@given(clusters(), st.sampled_from(["1.5", "1.13", "1.26", "1.30", "1.36"]))
def test_every_release_decides_the_same(cluster: Cluster, version: str) -> None:
    anonymous = Anonymous.of(cluster.objects)
    new_objects = [replaced(anonymous, item) for item in cluster.objects]

    before, after = kschedx.Snapshot.from_objects(cluster.objects), kschedx.Snapshot.from_objects(new_objects)
    ours = kschedx.explain(before, TARGET, kube_version=version).to_dict()
    theirs = kschedx.explain(after, anonymous.name(TARGET), kube_version=version).to_dict()
    check(anonymous, ours, theirs)
    assert not list(differences(changes(ours), changes(theirs), anonymous))


@given(clusters(), st.data())
def test_the_order_of_the_objects_does_not_matter(cluster: Cluster, data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(cluster.objects))
    result = {msgspec.json.encode(item) for item in anonymize(cluster.objects)}
    assert {msgspec.json.encode(item) for item in anonymize(shuffled)} == result


@given(clusters())
def test_lines_are_changed_as_objects_are(cluster: Cluster) -> None:
    lines = [msgspec.json.encode(item) for item in cluster.objects]
    anonymous, of_lines = Anonymous.of(cluster.objects), Anonymous.of_lines(lines)
    assert of_lines.mapping() == anonymous.mapping()
    items = [anonymous.anonymize(item) for item in cluster.objects]
    assert [msgspec.json.decode(line) for line in map(of_lines.line, lines) if line] == items
