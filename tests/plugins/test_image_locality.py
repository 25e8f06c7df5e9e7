"""ImageLocality: names, sizes, spread, and bounds."""

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
"""Size in MiB by names that are separated by spaces."""


def node_with_images(name: str, images: object) -> Manifest:
    result = node(name)
    cast(Manifest, result["status"])["images"] = images
    return result


def image_list(images: Images) -> list[Manifest]:
    return [{"names": names.split(), "sizeBytes": size * MIB} for names, size in images.items()]


def scores(nodes: Sequence[Images], containers: Sequence[str], spec: Manifest | None = None) -> list[int]:
    objects = [node_with_images(f"n{i}", image_list(images)) for i, images in enumerate(nodes)]
    container_list = [{"name": f"c{i}", "image": image} for i, image in enumerate(containers)]
    work = framework([*objects, pod("new", containers=container_list, spec=spec)], only("ImageLocality"))
    plugin = work.plugins("score", ImageLocality)[0]
    return cast(list[int], plugin.score(CycleState(), work.snapshot.pods[0], work.nodes).tolist())


def score_of(mib: float, containers: int = 1) -> int:
    return int(100 * (mib - 23) / (1000 * containers - 23))


@pytest.mark.parametrize(
    ("nodes", "containers", "expected"),
    [
        # on one of two nodes: half of the size counts
        ([{"web:1": 500}, {}], ["web:1"], [score_of(250), 0]),
        ([{"web:1": 500}, {"web:1": 500}], ["web:1"], [score_of(500)] * 2),
        # bounds: 23 MiB and 1000 MiB per container
        ([{"web:1": 23}], ["web:1"], [0]),
        ([{"web:1": 1000}], ["web:1"], [100]),
        ([{"web:1": 5000}], ["web:1"], [100]),
        ([{"web:1": 1000}], ["web:1", "db:1"], [score_of(1000, 2)]),
        # an image of two containers counts twice
        ([{"web:1": 400}], ["web:1", "web:1"], [score_of(800, 2)]),
        # the default tag is latest; a registry's port is no tag; a digest replaces a tag
        ([{"web:latest": 500}], ["web"], [score_of(500)]),
        ([{"host:5000/web:latest": 500}], ["host:5000/web"], [score_of(500)]),
        ([{"web@sha256:ab web:1": 500}], ["web@sha256:ab"], [score_of(500)]),
        ([{"docker.io/library/web:1": 500}], ["web:1"], [0]),
        # the size is that of the first entry on the first node with the image
        ([{"web:1": 500}, {"web:1": 900}], ["web:1"], [score_of(500)] * 2),
        ([{"web:1": 500, "web:1 web:2": 900}], ["web:1"], [score_of(500)]),
    ],
)
def test_scores(nodes: Sequence[Images], containers: Sequence[str], expected: list[int]) -> None:
    assert scores(nodes, containers) == expected


def test_init_containers_count_and_raise_the_maximum() -> None:
    init = [{"name": "init", "image": "init:1"}]
    assert scores([{"web:1": 300, "init:1": 200}], ["web:1"], {"initContainers": init}) == [score_of(500, 2)]


def test_image_volumes_count_and_keep_the_maximum() -> None:
    volumes = [{"name": "data", "image": {"reference": "data"}}, {"name": "tmp", "emptyDir": {}}]
    assert scores([{"web:1": 300, "data:latest": 200}], ["web:1"], {"volumes": volumes}) == [score_of(500)]


def test_spread_counts_all_nodes() -> None:
    objects = [node_with_images(f"n{i}", image_list({"web:1": 800} if i < 2 else {})) for i in range(4)]
    work = framework([*objects, pod("new", containers=[{"name": "main", "image": "web:1"}])], only("ImageLocality"))
    feasible = work.nodes.only([work.nodes.names[1], work.nodes.names[2]])
    scores = work.plugins("score", ImageLocality)[0].score(CycleState(), work.snapshot.pods[0], feasible)
    assert scores.tolist() == [score_of(400), 0]


@pytest.mark.parametrize(
    ("name", "normalized"),
    [("web", "web:latest"), ("a:5000/web", "a:5000/web:latest"), ("a/web:1", "a/web:1"), ("", ":latest")],
)
def test_normalized_image_names(name: str, normalized: str) -> None:
    assert normalized_image_name(name) == normalized


def test_an_error_names_the_field_of_an_invalid_image() -> None:
    with pytest.raises(InputError, match=r"Node n: status\.images\[0\]\.sizeBytes: expected a whole number"):
        framework([node_with_images("n", [{"names": ["web:1"], "sizeBytes": "big"}])])
