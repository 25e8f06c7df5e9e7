"""Configurations with plugins that kschedx lacks, and --without-unknown-plugins, in every command that decides pods."""

from __future__ import annotations

import json

import pytest

from tests.command import kschedx

STORY = "fixtures/unknown-plugin"
POD = f"{STORY}/pod.yaml"
CLUSTER = ("--snapshot", f"{STORY}/cluster.yaml")
CONFIG = ("--config", f"{STORY}/scheduler.yaml")
TAKEN = "--without-unknown-plugins"
TWO = ("-f", POD, "-f", "fixtures/tie/pod.yaml")
OTHER = ("diff-profiles", "default", f"{STORY}/scheduler.yaml", *CLUSTER)

COMMANDS = {
    "why": (("why", POD, *CLUSTER, *CONFIG), 3, 0),
    "several": (("why", *TWO, *CLUSTER, *CONFIG), 3, 0),
    "simulate": (("simulate", "-f", POD, *CLUSTER, *CONFIG), 3, 0),
    "fit": (("fit", POD, *CLUSTER, *CONFIG), 3, 0),
    "diff": ((*OTHER, POD), 1, 0),
}


@pytest.mark.parametrize(("command", "open_code", "taken_code"), COMMANDS.values(), ids=COMMANDS)
def test_unknown_plugins_make_the_answer_undecided_without_the_option(
    command: tuple[str, ...], open_code: int, taken_code: int
) -> None:
    result, taken = kschedx(*command), kschedx(*command, TAKEN)
    assert (result.code, taken.code) == (open_code, taken_code)
    for text in (result.out + result.err, taken.out + taken.err):
        assert "LicenseSeats" in text
        assert "CarbonAware" in text
    assert "as you asked" in taken.out + taken.err


def test_a_rejection_by_known_plugins_is_decided() -> None:
    asking = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1000"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [asking]}}
    result = kschedx("why", "-f", "-", *CLUSTER, *CONFIG, stdin=json.dumps(pod))
    assert result.code == 1
    assert "the answer does not depend on them" in " ".join(result.out.split())


def test_fit_names_the_unknown_plugins() -> None:
    result = kschedx("fit", POD, *CLUSTER, *CONFIG, "-o", "json")
    document = json.loads(result.out)
    assert (result.code, document["fits"]) == (3, 0)
    assert [item["plugin"] for item in document["undecided"]] == ["LicenseSeats"]
    assert [item["plugin"] for item in document["unknownPlugins"]] == ["LicenseSeats", "CarbonAware"]


@pytest.mark.parametrize("taken", [(), (TAKEN,)])
def test_documents_name_unknown_plugins(taken: tuple[str, ...]) -> None:
    simulated = json.loads(kschedx("simulate", "-f", POD, *CLUSTER, *CONFIG, "-o", "json", *taken).out)
    compared = json.loads(kschedx(*OTHER, POD, "-o", "json", *taken).out)
    for unknownplugin in (simulated["unknownPlugins"], compared["after"]["unknownPlugins"]):
        assert [(item["plugin"], item.get("waived", False)) for item in unknownplugin] == [
            ("LicenseSeats", bool(taken)),
            ("CarbonAware", bool(taken)),
        ]
    assert compared["before"]["unknownPlugins"] == []
