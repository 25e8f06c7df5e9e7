"""Flags of the autoscaler: from its Deployment, from options, and invalid ones."""

from __future__ import annotations

import json

import pytest

from kschedx.autoscaler.flags import Flags, check_known, deployment_flags, parse_flag_options
from kschedx.autoscaler.templates import read_groups
from kschedx.errors import ConfigError, InputError
from kschedx.kube.autoscalers import parse_flags
from kschedx.kube.scalars import Duration
from kschedx.releases.autoscaler import autoscaler_behavior

NEW, OLD = autoscaler_behavior("1.36"), autoscaler_behavior("1.32")


def test_forms_of_a_flag() -> None:
    arguments = [
        "./cluster-autoscaler",
        "--v=4",
        "--expander",
        "priority,least-waste",
        "-max-nodes-total=9",
        "--force-ds",
    ]
    assert parse_flags([*arguments, "--nodes=1:9:a", "--nodes=1:9:b"]) == {
        "v": ["4"],
        "expander": ["priority,least-waste"],
        "max-nodes-total": ["9"],
        "force-ds": ["true"],
        "nodes": ["1:9:a", "1:9:b"],
    }


def test_flags_of_the_deployment() -> None:
    command = ["./cluster-autoscaler", "--cloud-config=/secret", "--expander=random", "--cores-total=0:64"]
    containers = [{"name": "it", "image": "registry.example/cluster-autoscaler:v1.36.0", "command": command}]
    manifest = {"kind": "Deployment", "spec": {"template": {"spec": {"containers": containers}}}}
    raw = json.dumps(manifest).encode()
    assert deployment_flags({("Deployment", "kube-system", "ca"): raw}) == {
        "expander": ["random"],
        "cores-total": ["0:64"],
    }
    assert deployment_flags({("Deployment", "shop", "web"): b'{"spec": {}}'}) is None


def test_defaults_follow_the_version() -> None:
    assert Flags.read({}, NEW).expanders == ("least-waste",)
    assert Flags.read({}, OLD).expanders == ("random",)
    assert Flags.read({"startup-taint-prefix": "x/"}, OLD).startup_taint_prefixes == ()


def test_values_of_flags() -> None:
    flags = Flags.read(
        {
            "startup-taint": ["a"],
            "ignore-taint": "b",
            "new-pod-scale-up-delay": "1m30s",
            "memory-total": "0:2",
            "gpu-total": ["nvidia-t4:0:4"],
            "balance-similar-node-groups": True,
        },
        NEW,
    )
    assert flags.startup_taints == ("a", "b")
    assert flags.new_pod_scale_up_delay == Duration.seconds(90)
    assert [(limit.resource, limit.maximum) for limit in flags.limits[1:]] == [
        ("memory", 2 * 1024**3),
        ("nvidia-t4", 4),
    ]
    assert flags.balance_similar_node_groups


@pytest.mark.parametrize(
    "flags",
    [{"max-nodes-total": "many"}, {"cores-total": "5"}, {"gpu-total": "t4:1"}, {"force-ds": "maybe"}],
    ids=str,
)
def test_an_error_names_the_flag_of_an_invalid_value(flags: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(flags))):
        Flags.read(dict(flags), NEW)


def test_an_unknown_flag_has_a_suggestion() -> None:
    with pytest.raises(ConfigError) as error:
        check_known(list(parse_flag_options(["max-node-total=3"])))
    assert "max-nodes-total" in (error.value.hint or "")


def test_groups_have_the_tags_of_an_auto_scaling_group() -> None:
    prefix = "k8s.io/cluster-autoscaler/node-template"
    entry = {
        "nodes": ["n1"],
        "capacity": {"cpu": "8", "memory": "32Gi"},
        "tags": {
            f"{prefix}/label/disk": "nvme",
            f"{prefix}/taint/dedicated": "gpu:NoSchedule",
            f"{prefix}/taint/ignored": "NoSchedule",
            "Name": "x",
        },
    }
    result = read_groups({"groups": {"spot": entry}}, "groups.yaml")
    assert result.nodes == {"n1": "spot"}
    template = json.loads(json.dumps(result.templates["spot"]))["Node"]
    assert template["metadata"]["labels"]["disk"] == "nvme"
    assert template["spec"]["taints"] == [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]


LARGE = {"capacity": {"cpu": "8", "memory": "32Gi"}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"nodes": []}, "neither a map with `groups` nor"),
        ({"groups": {"a": 3}}, "a group is a map"),
        ({"groups": {"a": {"templat": {}}}}, "not a key of a group"),
        ({"groups": {"a": {"labels": {"x": "y"}}}}, "capacity with cpu and memory"),
        ({"groups": {"a": {**LARGE, "taints": "gpu:NoSchedule"}}}, "taints is a list"),
        ({"groups": {"a": {**LARGE, "taints": ["gpu"]}}}, '"gpu" is not a taint: KEY=VALUE:EFFECT'),
        ({"groups": {"a": {**LARGE, "taints": ["gpu:NoSchedul"]}}}, '"NoSchedul" is not a taint effect'),
        ({"groups": {"a": {**LARGE, "taints": [{"key": "gpu"}]}}}, "null is not a taint effect"),
    ],
)
def test_an_invalid_file_of_groups(document: object, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        read_groups(document, "groups.yaml")


def test_the_output_of_snapshotz_is_a_file_of_groups() -> None:
    assert read_groups({"TemplateNodes": {"a": {"Node": {}}}}, "z.json").templates == {"a": {"Node": {}}}
