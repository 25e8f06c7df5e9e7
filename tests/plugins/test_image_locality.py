"""ImageLocality: names, sizes, spread and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from kschedx.errors import InputError
from kschedx.framework.interface import CycleState
from kschedx.plugins.image_locality import ImageLocality, normalized_image_name
from tests.builders import Manifest, framework, node, only, pod

MIB = 1024 * 1024
Images = Mapping[str, int]
"""Names, separated by spaces, to size in MiB."""


def holding(name: str, images: object) -> Manifest:
    result = node(name)
    cast(Manifest, result["status"])["images"] = images
    return result


def reported(images: Images) -> list[Manifest]:
    return [{"names": names.split(), "sizeBytes": size * MIB} for names, size in images.items()]


def scores(nodes: Sequence[Images], containers: Sequence[str], spec: Manifest | None = None) -> list[int]:
    objects = [holding(f"n{i}", reported(images)) for i, images in enumerate(nodes)]
    wanted = [{"name": f"c{i}", "image": image} for i, image in enumerate(containers)]
    work = framework([*objects, pod("new", containers=wanted, spec=spec)], only("ImageLocality"))
    plugin = work.plugins("score", ImageLocality)[0]
    return cast(list[int], plugin.score(CycleState(), work.snapshot.pods[0], work.nodes).tolist())


def scaled(mib: float, containers: int = 1) -> int:
    return int(100 * (mib - 23) / (1000 * containers - 23))


@pytest.mark.parametrize(
    ("nodes", "containers", "expected"),
    [
        # held by one node of two: half of its size counts
        ([{"web:1": 500}, {}], ["web:1"], [scaled(250), 0]),
        ([{"web:1": 500}, {"web:1": 500}], ["web:1"], [scaled(500)] * 2),
        # bounds: 23 MiB and 1000 MiB per container
        ([{"web:1": 23}], ["web:1"], [0]),
        ([{"web:1": 1000}], ["web:1"], [100]),
        ([{"web:1": 5000}], ["web:1"], [100]),
        ([{"web:1": 1000}], ["web:1", "db:1"], [scaled(1000, 2)]),
        # an image that is wanted twice counts twice
        ([{"web:1": 400}], ["web:1", "web:1"], [scaled(800, 2)]),
        # no tag is the tag latest; a registry's port is no tag, a digest is as good as one
        ([{"web:latest": 500}], ["web"], [scaled(500)]),
        ([{"host:5000/web:latest": 500}], ["host:5000/web"], [scaled(500)]),
        ([{"web@sha256:ab web:1": 500}], ["web@sha256:ab"], [scaled(500)]),
        ([{"docker.io/library/web:1": 500}], ["web:1"], [0]),
        # the first node that reports an image, and its first entry, say how large it is
        ([{"web:1": 500}, {"web:1": 900}], ["web:1"], [scaled(500)] * 2),
        ([{"web:1": 500, "web:1 web:2": 900}], ["web:1"], [scaled(500)]),
    ],
)
def test_score(nodes: Sequence[Images], containers: Sequence[str], expected: list[int]) -> None:
    assert scores(nodes, containers) == expected


def test_init_containers_count_and_raise_the_bound() -> None:
    init = [{"name": "init", "image": "init:1"}]
    assert scores([{"web:1": 300, "init:1": 200}], ["web:1"], {"initContainers": init}) == [scaled(500, 2)]


def test_image_volumes_count_and_do_not_raise_the_bound() -> None:
    volumes = [{"name": "data", "image": {"reference": "data"}}, {"name": "tmp", "emptyDir": {}}]
    assert scores([{"web:1": 300, "data:latest": 200}], ["web:1"], {"volumes": volumes}) == [scaled(500)]


def test_spread_is_that_of_the_whole_cluster() -> None:
    objects = [holding(f"n{i}", reported({"web:1": 800} if i < 2 else {})) for i in range(4)]
    work = framework([*objects, pod("new", containers=[{"name": "main", "image": "web:1"}])], only("ImageLocality"))
    feasible = work.nodes.only([work.nodes.names[1], work.nodes.names[2]])
    scores = work.plugins("score", ImageLocality)[0].score(CycleState(), work.snapshot.pods[0], feasible)
    assert scores.tolist() == [scaled(400), 0]


@pytest.mark.parametrize(
    ("name", "normalized"),
    [("web", "web:latest"), ("a:5000/web", "a:5000/web:latest"), ("a/web:1", "a/web:1"), ("", ":latest")],
)
def test_names(name: str, normalized: str) -> None:
    assert normalized_image_name(name) == normalized


def test_images_that_are_none_are_refused_with_their_place() -> None:
    with pytest.raises(InputError, match=r"Node n: status\.images\[0\]\.sizeBytes: expected int"):
        framework([holding("n", [{"names": ["web:1"], "sizeBytes": "big"}])])
