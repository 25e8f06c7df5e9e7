"""An anonymized cluster has the answers of the original: every verdict, score, victim, and text."""

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
from tests.admission.test_recorded_admission import admit
from tests.builders import Manifest
from tests.command import ROOT
from tests.conformance.decisions import Case, cases
from tests.golden.stories import STORIES, Story
from tests.laws.clusters import TARGET, Cluster, clusters

DECISION = ("outcome", "bestNodes", "message", "preEnqueue", "preFilter", "filter", "score", "postFilter")
KEPT_KEYS = {
    "reason",
    "creationTimestamp",
    "lastTransitionTime",
    "kubeletVersion",
    "node.kubernetes.io/instance-type",
    "karpenter.k8s.aws/instance-family",
    "karpenter.k8s.aws/instance-size",
}
"""Keys whose values are no names, even where they look like some."""


def objects_of(path: str) -> list[Manifest]:
    decoder = msgspec.json.Decoder(list[Manifest])
    return [item for batch in read(path) for item in batch.decode(decoder)]


def is_left_out(item: Mapping[str, object]) -> bool:
    """Tell whether an anonymized snapshot leaves the object out, as it does the templates of Cluster API providers."""
    kind = kind_of(str(item["kind"]), str(item["apiVersion"]).rpartition("/")[0])
    return kind is not None and kind.addon == "Cluster API"


def anonymized(anonymous: Anonymous, item: Mapping[str, object]) -> Manifest:
    result = anonymous.anonymize(item)
    assert result is not None
    return result


def new_text(anonymous: Anonymous, text: str) -> set[str]:
    """Return the possible replacements of a text: a number is replaced as a label's value, but not as a count."""
    result = {anonymous.text(text)}
    with suppress(KeyError):
        result.add(anonymous.name(text))
    return result


def differences(original: Any, other: Any, anonymous: Anonymous, path: str = "") -> Iterator[str]:
    """Yield where the anonymized document differs from the original with its names replaced."""
    match original:
        case dict():
            keys = list(original)
            if keys != list(other):
                keys = [anonymous.text(key) for key in original]
            if keys != list(other):
                keys = [key if key in other else anonymous.text(key) for key in original]
            if keys != list(other):
                yield f"{path}: {keys} != {list(other)}"
                return
            for key, new in zip(original, keys, strict=True):
                if key == "uid":  # a UID carries no information
                    continue
                if key not in KEPT_KEYS or original[key] != other[new]:
                    yield from differences(original[key], other[new], anonymous, f"{path}/{key}")
        case list():
            if len(original) != len(other):
                yield f"{path}: {len(original)} items, not {len(other)}"
                return
            for index, (item, other_item) in enumerate(zip(original, other, strict=True)):
                yield from differences(item, other_item, anonymous, f"{path}/{index}")
        case str():
            if "compilation failed" in original and "compilation failed" in other:
                return  # the message quotes the expression and the position of the error
            if "/shortages/" in path and original == other:
                return  # a kept selector keeps the values that it reads
            if original != "<none>" and other not in new_text(anonymous, original):
                yield f"{path}: {original!r} became {other!r}, not {anonymous.text(original)!r}"
        case _:
            if original != other:
                yield f"{path}: {original!r} became {other!r}"


def check(anonymous: Anonymous, original: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    items = [line for part in DECISION for line in differences(original[part], other[part], anonymous, part)]
    assert not items, "\n".join(items)


def changes(document: Mapping[str, Any]) -> list[Any]:
    """Return the changes of each fix; titles are prose."""
    return [fix["changes"] for fix in document["fixes"]]


def without_sentences(item_of_holding: Any) -> Any:
    """Return the holders of a pod without their free text."""
    match item_of_holding:
        case dict():
            return {
                key: without_sentences(item)
                for key, item in item_of_holding.items()
                if key not in ("message", "lookAt")
            }
        case list():
            return [without_sentences(item) for item in item_of_holding]
        case _:
            return item_of_holding


# --- stories


def as_pod(manifest: Manifest) -> Manifest:
    return pod_from_workload(manifest) if manifest["kind"] in MAKING_PODS else manifest


@pytest.mark.sample(9)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_anonymizing_keeps_the_answer_of_a_story(story: Story) -> None:
    cluster = objects_of(str(ROOT / story.cluster))
    config = story.configuration
    anonymous = Anonymous.of([*cluster, story.manifest], config=config)
    new_cluster = [anonymized(anonymous, item) for item in cluster if not is_left_out(item)]
    new_manifest = anonymized(anonymous, story.manifest)

    new_config = None if config is None else anonymous.configuration(config)

    def explain(objects: Sequence[Manifest], manifest: Manifest, config: Any) -> dict[str, Any]:
        snapshot = kschedx.Snapshot.from_objects(objects)
        return kschedx.explain(snapshot, as_pod(manifest), config=config).to_dict()

    original, other = explain(cluster, story.manifest, config), explain(new_cluster, new_manifest, new_config)
    check(anonymous, original, other)
    holding = differences(
        without_sentences(original.get("holding")), without_sentences(other.get("holding")), anonymous, "holding"
    )
    assert not list(holding)
    assert original["kubernetesVersion"] == other["kubernetesVersion"]
    assert [note["id"] for note in original["notes"]] == [note["id"] for note in other["notes"]]
    if story.name != "label-typo":  # an anonymized label is no misspelling of another
        assert not list(differences(changes(original), changes(other), anonymous))


# --- recorded decisions


@pytest.mark.sample(9)
@pytest.mark.parametrize("case", cases()[::10], ids=lambda case: case.name)
def test_anonymizing_keeps_a_recorded_decision(case: Case) -> None:
    objects, name = case.record["objects"], case.record["pod"]
    config, gates = case.record["config"], case.record.get("featureGates")
    anonymous = Anonymous.of(objects, config=config, keep_selectors=True)
    new_objects = [anonymized(anonymous, item) for item in objects]
    new_config = None if config is None else anonymous.configuration(config)

    before, after = kschedx.Snapshot.from_objects(objects), kschedx.Snapshot.from_objects(new_objects)
    original = kschedx.explain(before, name, config=config, feature_gates=gates).to_dict()
    other = kschedx.explain(after, anonymous.name(name), config=new_config, feature_gates=gates).to_dict()
    check(anonymous, original, other)


# --- admission


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", ADMISSION_CASES, ids=lambda case: case["name"])
def test_anonymizing_keeps_the_admitted_pod(case: dict[str, Any]) -> None:
    def admit_or_none(context: Sequence[Manifest], manifest: Manifest) -> Manifest | None:
        """Return the stored pod, or None if it is refused."""
        try:
            admission = admit({"context": context, "manifest": manifest})
        except InputError:
            return None
        result: Manifest = msgspec.json.decode(msgspec.json.encode(admission))
        return {"apiVersion": "v1", "kind": "Pod", **result}

    context, manifest = case["context"], case["manifest"]
    original = admit_or_none(context, manifest)
    anonymous = Anonymous.of([*context, manifest, *([original] if original else [])])
    other = admit_or_none([anonymized(anonymous, item) for item in context], anonymized(anonymous, manifest))
    assert (original is None) == (other is None)
    if original and other:
        assert msgspec.convert(other, Pod).spec == msgspec.convert(anonymized(anonymous, original), Pod).spec


# --- random clusters


@settings(max_examples=settings().max_examples * 3 // 5)
@given(clusters(), st.sampled_from(["1.5", "1.13", "1.26", "1.30", "1.36"]))
def test_anonymizing_keeps_the_decision_of_every_version(cluster: Cluster, version: str) -> None:
    anonymous = Anonymous.of(cluster.objects)
    new_objects = [anonymized(anonymous, item) for item in cluster.objects]

    before, after = kschedx.Snapshot.from_objects(cluster.objects), kschedx.Snapshot.from_objects(new_objects)
    original = kschedx.explain(before, TARGET, kube_version=version).to_dict()
    other = kschedx.explain(after, anonymous.name(TARGET), kube_version=version).to_dict()
    check(anonymous, original, other)
    assert not list(differences(changes(original), changes(other), anonymous))


@given(clusters(), st.data())
def test_the_order_of_the_objects_does_not_matter(cluster: Cluster, data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(cluster.objects))
    result = {msgspec.json.encode(item) for item in anonymize(cluster.objects)}
    assert {msgspec.json.encode(item) for item in anonymize(shuffled)} == result


@given(clusters())
def test_lines_are_anonymized_as_objects(cluster: Cluster) -> None:
    lines = [msgspec.json.encode(item) for item in cluster.objects]
    anonymous, of_lines = Anonymous.of(cluster.objects), Anonymous.of_lines(lines)
    assert of_lines.mapping() == anonymous.mapping()
    items = [anonymous.anonymize(item) for item in cluster.objects]
    assert [msgspec.json.decode(line) for line in map(of_lines.line, lines) if line] == items
