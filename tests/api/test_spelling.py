"""Suggestions for misspelled names."""

from __future__ import annotations

import pytest

from kschedx.kube.typos import nearest_name, nearest_product


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("generall", ["general", "gpu"], "general"),
        ("General", ["general"], "general"),
        ("sds", ["ssd"], "ssd"),
        ("standart", ["standard", "standard-rwo"], "standard"),
        ("disk-type", ["disktype"], "disktype"),
        ("us_east", ["us-east"], "us-east"),
        ("on-demand", ["ondemand"], "ondemand"),
        ("hi-mem", ["highmem", "standard"], "highmem"),
        # prefixes
        ("node-role.kubernetes.io/workers", ["node-role.kubernetes.io/worker"], "node-role.kubernetes.io/worker"),
        ("zone", ["topology.kubernetes.io/zone", "x"], "topology.kubernetes.io/zone"),
        ("topology.k8s.io/zone", ["topology.kubernetes.io/zone"], "topology.kubernetes.io/zone"),
        ("instance_type", ["node.kubernetes.io/instance-type"], "node.kubernetes.io/instance-type"),
        ("nvidia/gpu", ["nvidia.com/gpu"], "nvidia.com/gpu"),
        ("nvdia.com/gpu", ["nvidia.com/gpu"], "nvidia.com/gpu"),
        # words in another order
        ("nvidia-gpu", ["gpu.nvidia.com", "mig.nvidia.com"], "gpu.nvidia.com"),
    ],
)
def test_a_misspelling_has_the_nearest_name(text: str, names: list[str], expected: str) -> None:
    assert nearest_name(text, names) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu", ["cpu"]),
        ("east", ["west"]),
        ("ssd", ["hdd"]),
        ("arm64", ["amd64"]),
        ("worker-17", ["worker-1"]),
        ("eu-1d", ["eu-1a"]),
        ("us-central1-f", ["us-central1-a"]),
        ("m5.large", ["m5.xlarge"]),
        ("premium-rwx", ["premium-rwo"]),
        ("redis", ["redis-cache"]),
        ("standard", ["standard-rw"]),
        ("amd.com/gpu", ["nvidia.com/gpu"]),
        ("node-role.kubernetes.io/master", ["node-role.kubernetes.io/worker"]),
        ("hostname", ["kubernetes.io/hostname", "example.com/hostname"]),
        ("a" * 100_000, ["a" * 99_999]),
    ],
)
def test_a_different_name_is_no_misspelling(text: str, names: list[str]) -> None:
    assert nearest_name(text, names) == ""


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("A100", ["NVIDIA-A100-SXM4-40GB", "Tesla-T4"], "NVIDIA-A100-SXM4-40GB"),
        ("A100", ["NVIDIA A100 40GB", "NVIDIA A100 80GB"], ""),
        ("A10", ["NVIDIA-A100-SXM4-40GB"], ""),
        ("", ["NVIDIA-A100-SXM4-40GB"], ""),
    ],
)
def test_a_product_matches_a_part_of_its_name(text: str, names: list[str], expected: str) -> None:
    assert nearest_product(text, names) == expected
