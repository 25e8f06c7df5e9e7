"""`-o junit` and `-o sarif`, which CI systems read."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kschedx.cli import output
from kschedx.cli.output import Format, Report
from kschedx.errors import InputError, Place
from kschedx.render.checks import RULES, Check, Result, junit, sarif
from tests.cli.manifests import BIG_POD, NODE, POD, changed, write
from tests.command import kschedx


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return write(tmp_path, NODE)


def test_a_manifest_that_fits_on_no_node_fails_at_its_line(cluster: Path, tmp_path: Path) -> None:
    manifests = write(tmp_path, POD, BIG_POD, name="pods.yaml")
    result = kschedx("why", "-f", manifests, "-s", cluster, "-o", "junit")
    suite = ElementTree.fromstring(result.out)
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    fits, fails = suite
    assert list(fits) == []
    assert (fails.get("classname"), fails.get("name")) == (str(manifests), "shop/big-0")
    assert int(fails.get("line") or 0) > 1
    failure = fails.find("failure")
    assert failure is not None
    assert "insufficient cpu" in (failure.text or "")
    assert result.code == 1


def test_an_annotation_has_a_file_and_a_line(cluster: Path, tmp_path: Path) -> None:
    manifests = write(tmp_path, POD, BIG_POD, name="pods of shop.yaml")
    run = json.loads(kschedx("why", "-f", manifests, "-s", cluster, "-o", "sarif").out)["runs"][0]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("unschedulable", "error")
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["id"] == "unschedulable"
    assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))  # of code scanning
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"].endswith("pods%20of%20shop.yaml")
    assert location["region"]["startLine"] > 1


def test_a_manifest_that_fits_passes(cluster: Path, tmp_path: Path) -> None:
    manifest = write(tmp_path, POD, name="pod.yaml")
    assert json.loads(kschedx("why", manifest, "-s", cluster, "-o", "sarif").out)["runs"][0]["results"] == []
    assert "failure" not in kschedx("why", manifest, "-s", cluster, "-o", "junit").out.replace("failures", "")


def test_pods_that_a_profile_moves_are_failures(tmp_path: Path) -> None:
    snapshot = "fixtures/volume-local-cordoned/cluster.yaml"
    result = kschedx("diff-profiles", "default", "hard-zone-spread", "-s", snapshot, "--all", "-o", "junit")
    suite = ElementTree.fromstring(result.out)
    assert [case.get("name") for case in suite if len(case)] == ["streaming/kafka-0", "streaming/kafka-2"]
    assert [case.get("name") for case in suite if not len(case)] == ["5 pods are the same"]


def test_texts_of_a_cluster_are_escaped() -> None:
    check = Check(
        name="a\x1b[31m<b>", result=Result.FAILED, rule="unschedulable", text='<x>&"\x00', place=Place(source="-")
    )
    case = ElementTree.fromstring(junit([check]))[0]
    assert case.get("name") == "a\\x1b[31m<b>"
    assert case[0].text == '<x>&"\\x00'
    result = json.loads(sarif([check], "1.0"))["runs"][0]["results"][0]
    assert "locations" not in result
    assert "\x1b" not in result["message"]["text"]


def test_undecided_is_an_error_and_a_warning() -> None:
    check = Check(name="a", result=Result.UNDECIDED, rule="undecided")
    suite = ElementTree.fromstring(junit([check]))
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
    assert suite[0][0].get("message") == RULES["undecided"]
    assert json.loads(sarif([check], "1.0"))["runs"][0]["results"][0]["level"] == "warning"


def test_an_input_error_is_an_annotation_on_its_line(cluster: Path, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: a\n  plugin: {}\n- schedulerName: b\n  pluginConfigs: []\n"
    )
    outcome = kschedx("profiles", "check", config, "-o", "sarif")
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {config}:5: ")
    results = json.loads(outcome.out)["runs"][0]["results"]
    lines = [result["locations"][0]["physicalLocation"]["region"]["startLine"] for result in results]
    assert lines == [5, 7]
    assert results[0]["message"]["text"] == 'profiles[0].plugin: unknown field "plugin" (did you mean "plugins"?)'
    typed = POD | {"metadata": {"name": "web-0", "namespace": "shop"}}
    pods = write(tmp_path, changed(typed, "spec.nodeselector", {}), name="pods.yaml")
    outcome = kschedx("why", "-f", pods, "-s", cluster, "-o", "junit")
    assert outcome.code == 2
    (case,) = ElementTree.fromstring(outcome.out)
    assert case.get("name") == "spec.nodeselector"
    assert int(case.get("line") or 0) > 1


def test_a_list_of_pods_has_a_page(cluster: Path, tmp_path: Path) -> None:
    manifests = write(tmp_path, POD, BIG_POD, name="pods.yaml")
    result = kschedx("why", "-f", manifests, "-s", cluster, "-o", "markdown")
    assert result.out.startswith("## ✗ 2 pods: ")
    assert "| shop/web-0 → node-01 |" in result.out
    assert "insufficient cpu" in result.out


@pytest.mark.parametrize("form", [Format.NAME, Format.PATCH, Format.MARKDOWN, Format.JUNIT, Format.SARIF])
def test_a_missing_output_form_is_an_error(form: Format) -> None:
    bare = Report(screen=lambda *_: (), document=dict)
    with pytest.raises(InputError, match=f"^-o {form} is not available for this answer"):
        output.write(bare, form)


def test_advice_on_a_configuration_is_a_finding(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- plugins:\n    multiPoint:\n      enabled: [{name: NodeAffinity, weight: 0}]\n"
    )
    result, *_ = json.loads(kschedx("profiles", "check", config, "-o", "sarif").out)["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("configuration", "warning")
    assert "a weight of 0 counts as 1" in result["message"]["text"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 6
    assert kschedx("profiles", "check", "default", "-o", "junit").out.count("<failure") == 0


def test_a_baseline_lets_only_new_findings_fail(cluster: Path, tmp_path: Path) -> None:
    old = write(tmp_path, BIG_POD, name="old.yaml")
    known = tmp_path / "known.json"
    outcome = kschedx("why", "-f", old, "-s", cluster, "-o", "sarif")
    known.write_text(outcome.out)
    assert outcome.code == 1

    again = kschedx("why", "-f", old, "-s", cluster, "-o", "sarif", "--baseline", known)
    assert (again.code, again.err) == (0, f"note: 1 finding of {known} ignored, 0 new\n")
    assert [result["baselineState"] for result in json.loads(again.out)["runs"][0]["results"]] == ["unchanged"]

    newer = changed(BIG_POD, "metadata.name", "another")
    both = write(tmp_path, BIG_POD, newer, name="both.yaml")
    outcome = kschedx("why", "-f", both, "-s", cluster, "-o", "junit", "--baseline", known)
    assert outcome.code == 1
    suite = ElementTree.fromstring(outcome.out)
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "1")


@pytest.mark.parametrize("text", ["", "[]", '{"kind": "Explanation"}'])
def test_a_baseline_must_be_sarif(text: str, cluster: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    known.write_text(text)
    result = kschedx("why", "-f", write(tmp_path, POD), "-s", cluster, "--baseline", known)
    assert result.code == 2
    assert "--baseline: this is not a SARIF file (write one with -o sarif)" in result.err
