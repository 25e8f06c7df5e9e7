"""Dumps and archives of other tools are read as they are."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.command import kschedx
from tests.sources.dumps import forms


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(forms.tar(forms.must_gather()), mtime=0),
        forms.zipped(forms.support_bundle()),
        forms.cluster_info_stdout("yaml"),
        forms.as_json(forms.simulator_export()),
    ],
    ids=["must-gather", "support-bundle", "cluster-info", "simulator"],
)
def test_why_explains_a_pod_of_a_dump(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "dump").write_bytes(content)
    result = kschedx("why", "pod/web-2", "-n", "shop", "--snapshot", str(tmp_path / "dump"), "-o", "name")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("node/node-")


def test_the_error_about_an_archive_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "dump").write_bytes(forms.tar({"../\x1b[2J[bold]\n.yaml": b""}, prefix=""))
    result = kschedx("why", "pod/web-2", "--snapshot", str(tmp_path / "dump"))
    assert (result.code, result.out) == (2, "")
    assert result.err.removeprefix(f"error: {tmp_path}/") == (
        "dump: ../\\x1b[2J[bold]\\n.yaml: a name that leads out of the archive (nothing in it is read)\n"
    )


def test_doctor_accepts_a_dump_as_argument_and_as_option(tmp_path: Path) -> None:
    (tmp_path / "dump").write_bytes(forms.tar(forms.must_gather()))
    with_option, without = kschedx("doctor", "-s", tmp_path / "dump"), kschedx("doctor", tmp_path / "dump")
    assert without == with_option
    assert without.out
    assert kschedx("doctor", tmp_path / "dump", "--context", "x").code == 2
