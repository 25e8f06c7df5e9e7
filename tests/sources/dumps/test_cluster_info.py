"""`kubectl cluster-info dump` in one file: whatever is in the logs, no object comes from them, and none is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedx.errors import InputError
from kschedx.loading import load
from kschedx.sources.dumps.layouts import WithoutLogs
from tests.sources.dumps import forms
from tests.sources.dumps.forms import Manifest
from tests.sources.dumps.test_forms import EXPECTED, summary


class Little:
    """A file that hands out a few bytes at a time."""

    def __init__(self, content: bytes, block: int) -> None:
        self._content = content
        self._block = block
        self._at = 0

    def read(self, size: int = -1, /) -> bytes:
        block = self._content[self._at : self._at + self._block]
        self._at += len(block)
        return block


def loaded(tmp_path: Path, content: bytes) -> object:
    (tmp_path / "dump").write_bytes(content)
    return summary(load([str(tmp_path / "dump")]))


def refused(tmp_path: Path, content: bytes) -> str:
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, content)
    return str(caught.value).removeprefix(f"{tmp_path}/")


FAKE = forms.as_json(forms.pod("fake", "shop", "node-a"))
LOGS = [
    b"",
    b"\n",
    b"no line end",
    b'{"kind": "Pod", "metadata": {"name": "fake"}}\n',
    b"kind: Pod\nmetadata:\n  name: fake\n",
    b"---\nkind: Pod\nmetadata:\n  name: fake\n",
    b"---\napiVersion: v1\nitems: []\nkind: EventList\n",
    FAKE,
    b"}\n" + FAKE + b"{\n",
    b"\x00\xff\xfe\x1b[2J\r\n",
    b"==== START logs for container main of pod shop/web-1 ====\n",
    b"==== START logs for container other of pod shop/other ====\n" + FAKE,
    b"==== END logs for container other of pod shop/other ====\n" + FAKE,
    b"==== END logs for container main of pod shop/web-1 ====\n" + b"and it goes on\n",
    b"==== END logs for container main of pod shop/web-1 ====",
    b"==== END logs for container main of pod\n",
    b"====" * 100_000,
]


@pytest.mark.parametrize("suffix", ["json", "yaml"])
@pytest.mark.parametrize("number", range(len(LOGS)))
def test_any_log(number: int, suffix: str, tmp_path: Path) -> None:
    log = LOGS[number]
    assert loaded(tmp_path, forms.cluster_info_stdout(suffix, log=lambda *_: log)) == EXPECTED


@pytest.mark.parametrize("suffix", ["json", "yaml"])
@pytest.mark.parametrize(
    "more",
    [
        b"==== START logs for container x of pod shop/web-1 ====\n",
        b'{\n    "kind": "EventList", "items": []}\n' + FAKE,
        b"---\napiVersion: v1\nitems: []\nkind: EventList\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: fake}\n",
        forms.cluster_info_stdout(),
    ],
)
def test_a_log_that_holds_what_may_be_its_end(more: bytes, suffix: str, tmp_path: Path) -> None:
    def log(container: str, manifest: Manifest) -> bytes:
        if (container, manifest["metadata"]["name"]) != ("main", "web-1"):
            return b""
        return b"==== END logs for container main of pod shop/web-1 ====\n" + more

    message = refused(tmp_path, forms.cluster_info_stdout(suffix, log=log))
    assert message.startswith("dump: the log of container ")
    assert message.endswith(
        " ends in two places, and one of them was written by a pod (dump it with --output-directory)"
    )


def test_a_log_that_repeats_the_end_of_one_before_it(tmp_path: Path) -> None:
    earlier = b"==== END logs for container main of pod default/job ====\n---\napiVersion: v1\n"
    message = refused(tmp_path, forms.cluster_info_stdout(log=lambda *_: earlier))
    assert message.startswith("dump: the log of container main of pod default/job ends in two places")


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_dump_that_is_cut_short_in_a_log(suffix: str, tmp_path: Path) -> None:
    whole = forms.cluster_info_stdout(suffix)
    end = whole.rindex(b"==== END")
    assert refused(tmp_path, whole[: end + 5]) == (
        "dump: ends within the log of container main of pod shop/web-2 (the dump was cut short)"
    )


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_errors_name_the_line_that_an_editor_shows(suffix: str, tmp_path: Path) -> None:
    whole = forms.cluster_info_stdout(suffix, log=lambda *_: b"x\n\nkind: Pod\r\n\n")
    at = whole.rindex(b'"name": "web-2"' if suffix == "json" else b"name: web-2")
    item = whole.rindex(b"\n        {\n" if suffix == "json" else b"\n- ", 0, at) + 1
    broken = whole[:at] + whole[at:].replace(b"web-2", b"web-1", 1)
    line = broken.count(b"\n", 0, item) + 1
    assert refused(tmp_path, broken).startswith(f"dump:{line}: Pod shop/web-1: an object of this name already exists")


@settings(max_examples=settings().max_examples * 2)
@given(st.data())
def test_blocks_of_any_size_and_logs_of_any_kind(data: st.DataObject) -> None:
    pieces = [b"==== ", b"END", b"START", b" logs for container main of pod shop/web-1 ====", b"\n", b"{", b"---", b"x"]
    log = b"".join(data.draw(st.lists(st.sampled_from(pieces), max_size=30)))
    suffix = data.draw(st.sampled_from(["json", "yaml"]))
    whole = forms.cluster_info_stdout(suffix, namespaces=["shop"], log=lambda *_: log)
    without = forms.cluster_info_stdout(suffix, namespaces=["shop"], log=lambda *_: b"")
    file = WithoutLogs(Little(whole, data.draw(st.integers(50, 4000))), "x")
    try:
        text = file.read()
    except InputError as error:
        assert "ends in two places" in error.message  # noqa: PT017 - whether it is raised is the random draw's
    else:
        assert text.split() == WithoutLogs(Little(without, 5000), "x").read().split()
        assert text.count(b"\n") == whole.count(b"\n")
