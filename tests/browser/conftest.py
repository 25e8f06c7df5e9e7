from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.browser.chromium import Page, chromium
from tests.browser.test_page import generated, pod


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Placeholders of files in a question: a pod that fits on no node, and clusters."""
    folder = tmp_path_factory.mktemp("clusters")
    lists = {"POD": pod("web", "64"), "SMALL": generated(500), "CLUSTER": generated(5_000, pods=2)}
    for name, items in lists.items():
        content = {"apiVersion": "v1", "kind": "List", "items": items} if isinstance(items, list) else items
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return {name: str(folder / f"{name}.json") for name in lists}
