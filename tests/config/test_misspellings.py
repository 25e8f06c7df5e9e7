"""A misspelled field at any depth is an error with a line and a suggestion, and the schemas reject it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kschedx.errors import ConfigError, SeveralConfigError
from kschedx.releases import resolve
from kschedx.schedulers import scheduler_of
from kschedx.schemas import schema
from kschedx.sources.configurations import placed_error, read_configuration
from tests.command import ROOT

Json = dict[str, Any]
Steps = tuple[str | int, ...]

EXPRESSION = {"key": "zone", "operator": "In", "values": ["a"]}
TERM = {"matchExpressions": [EXPRESSION], "matchFields": [{**EXPRESSION, "key": "metadata.name"}]}
AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]},
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": TERM}],
}
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
RESOURCES = [{"name": "cpu", "weight": 1}]
CONSTRAINT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": "Honor"}
TLS = dict.fromkeys(("serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"), "")
EXTENDER = {
    "urlPrefix": "http://a", "filterVerb": "f", "preemptVerb": "p", "prioritizeVerb": "s", "weight": 1, "bindVerb": "b",
    "tlsConfig": {"insecure": True, **TLS}, "nodeCacheCapable": True, "ignorable": True,
    "managedResources": [{"name": "a.com/b", "ignoredByScheduler": True}],
}  # fmt: skip
ARGS: Json = {
    "DefaultPreemption": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100},
    "DynamicResources": {"filterTimeout": "10s", "bindingTimeout": "10m"},
    "InterPodAffinity": {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": True},
    "NodeAffinity": {"addedAffinity": AFFINITY},
    "NodeResourcesBalancedAllocation": {"resources": RESOURCES},
    "NodeResourcesFit": {
        "ignoredResources": ["a.com/b"],
        "ignoredResourceGroups": ["a.com"],
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "resources": RESOURCES,
            "requestedToCapacityRatio": {"shape": SHAPE},
        },
    },
    "PodTopologySpread": {"defaultingType": "List", "defaultConstraints": [CONSTRAINT]},
    "VolumeBinding": {"bindTimeoutSeconds": 600, "shape": None},
}
POINTS = ("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit",
          "preBind", "bind", "postBind", "multiPoint")  # fmt: skip


def without_aliases(document: Json) -> Json:
    """Return a copy that shares no values."""
    result: Json = json.loads(json.dumps(document))
    return result


def configuration(version: str) -> Json:
    """Return a configuration with every field of a version."""
    plugins: Json = {point: {"enabled": [], "disabled": []} for point in POINTS}
    plugins["score"] = {"enabled": [{"name": "ImageLocality", "weight": 2}], "disabled": [{"name": "ImageLocality"}]}
    profile: Json = {"schedulerName": "default-scheduler", "percentageOfNodesToScore": 10, "plugins": plugins}
    document_of_version: Json = {
        "apiVersion": f"kubescheduler.config.k8s.io/{version}",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 16,
        "leaderElection": {
            "leaderElect": False,
            **dict.fromkeys(("leaseDuration", "renewDeadline", "retryPeriod"), "15s"),
            **dict.fromkeys(("resourceLock", "resourceName", "resourceNamespace"), "a"),
        },
        "clientConnection": {"kubeconfig": "", "acceptContentTypes": "", "contentType": "", "qps": 50.5, "burst": 100},
        "enableProfiling": True,
        "enableContentionProfiling": True,
        "percentageOfNodesToScore": 50,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
        "profiles": [profile],
        "extenders": [{**EXTENDER, "enableHTTPS": True, "httpTimeout": "5s"}],
    }
    profile["pluginConfig"] = [
        {"name": name, "args": {"apiVersion": document_of_version["apiVersion"], "kind": f"{name}Args", **args}}
        for name, args in ARGS.items()
        if version == "v1" or name != "DynamicResources"  # it has no arguments in older versions
    ]
    if version == "v1beta2":
        del plugins["multiPoint"]
    if version != "v1":
        del profile["percentageOfNodesToScore"]
    return without_aliases(document_of_version)


def policy() -> Json:
    arguments: Json = {
        "labelsPresence": {"labels": ["rack"], "presence": True},
        "serviceAffinity": {"labels": ["region"]},
    }
    priorities: Json = {
        "serviceAntiAffinity": {"label": "rack"},
        "labelPreference": {"label": "rack", "presence": True},
        "requestedToCapacityRatioArguments": {"shape": SHAPE},
    }
    return without_aliases({
        "apiVersion": "v1",
        "kind": "Policy",
        "predicates": [{"name": name, "order": 1, "argument": {name: item}} for name, item in arguments.items()],
        "priorities": [{"name": name, "weight": 1, "argument": {name: item}} for name, item in priorities.items()],
        "extenders": [{**EXTENDER, "enableHttps": True, "httpTimeout": 5_000_000}],
        "hardPodAffinitySymmetricWeight": 10,
        "alwaysCheckAllPredicates": True,
    })  # fmt: skip


def fields(value: object, steps: Steps = ()) -> Iterator[Steps]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*steps, key)
            yield from fields(item, (*steps, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from fields(item, (*steps, index))


def holder(document: Json, steps: Steps) -> Json:
    container: Any = document
    for step in steps[:-1]:
        container = container[step]
    assert isinstance(container, dict)
    return container


def refusals(document: Json, release: str, path: Path) -> list[ConfigError]:
    path.write_text(json.dumps(document, indent=1))
    try:
        scheduler_of(read_configuration(str(path)), resolve(release, None))
    except ConfigError as error:
        placed_error_of_file = placed_error(error, str(path))
        return (
            list(placed_error_of_file.errors)
            if isinstance(placed_error_of_file, SeveralConfigError)
            else [placed_error_of_file]
        )
    return []


NEWEST = [pytest.param(configuration("v1"), "1.36", id="v1"), pytest.param(policy(), "1.13", id="Policy")]
OLDEST = pytest.param(configuration("v1beta2"), "1.27", marks=pytest.mark.long, id="v1beta2")


@pytest.mark.parametrize(("document", "release"), [*NEWEST, OLDEST])
def test_a_misspelled_field_has_a_line_and_a_suggestion(document: Json, release: str, tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(schema(document["kind"]))
    path = tmp_path / "scheduler.json"
    assert not refusals(document, release, path)
    validator.validate(document)
    for steps in list(fields(document)):
        *_, name = steps
        if not isinstance(name, str) or name in ("apiVersion", "kind") or steps[-2:] == ("argument", name):
            continue
        invalid = copy.deepcopy(document)
        parent = holder(invalid, steps)
        misspelled = f"{name[:-1]}{name[-1] * 2}"
        parent[misspelled] = parent.pop(name)
        texts = [refusal for refusal in refusals(invalid, release, path) if misspelled in refusal.place.field]
        assert [(bool(refusal.place.line), refusal.hint) for refusal in texts] == [(True, f'did you mean "{name}"?')], (
            steps
        )
        assert not validator.is_valid(invalid), steps


@pytest.mark.parametrize(("document", "release"), NEWEST)
def test_a_field_rejects_a_value_of_another_type(document: Json, release: str, tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(schema(document["kind"]))
    for steps in list(fields(document)):
        invalid = copy.deepcopy(document)
        name = str(steps[-1])
        if name in ("apiVersion", "kind") or not isinstance(steps[-1], str):
            continue
        parent = holder(invalid, steps)
        parent[name] = [[True]] if not isinstance(parent[name], list) else "a text"
        assert refusals(invalid, release, tmp_path / "scheduler.json"), steps
        assert not validator.is_valid(invalid), steps


def test_a_version_has_only_its_own_fields() -> None:
    validator = jsonschema.Draft202012Validator(schema("KubeSchedulerConfiguration"))
    newest = configuration("v1")
    assert not validator.is_valid({**newest, "healthzBindAddress": ":10251"})
    assert validator.is_valid({**configuration("v1beta2"), "healthzBindAddress": ":10251"})
    for version in ("v1beta3", "v1beta2"):
        assert not validator.is_valid({**newest, "apiVersion": f"kubescheduler.config.k8s.io/{version}"})


CONFIGURATION_FILES = sorted([*(ROOT / "profiles").glob("*.yaml"), *(ROOT / "fixtures").glob("*/scheduler.yaml")])


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in CONFIGURATION_FILES]
)
def test_the_configurations_of_the_repository_match_the_schemas(path: Path) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema(document["kind"])).validate(document)


def test_plugins_of_other_projects_may_have_unknown_fields(tmp_path: Path) -> None:
    def errors_of(args: Json) -> list[str]:
        queue = {"disabled": [{"name": "*"}], "enabled": [{"name": "Coscheduling"}]}
        profile = {"plugins": {"queueSort": queue}, "pluginConfig": [{"name": "Coscheduling", "args": args}]}
        head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        result = refusals({**head, "profiles": [profile]}, "1.36", tmp_path / "scheduler.json")
        return [str(item).partition("args.")[2] for item in result]

    assert errors_of({"kind": "CoschedulingArgs", "permitWaitingTimeSeconds": 5, "somethingNew": 1}) == []
    assert errors_of({"permitWaitingTimeSecond": 5, "podGroupRejectPercentage": "many"}) == [
        'permitWaitingTimeSecond: unknown field "permitWaitingTimeSecond" (did you mean "permitWaitingTimeSeconds"?)',
        'podGroupRejectPercentage: expected a whole number, found "many"',
    ]
