"""Malicious and broken archives and folders."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import os
import random
import stat
import tarfile
import threading
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedx.errors import InputError
from kschedx.sources import compression as compressed
from kschedx.sources import files
from kschedx.sources import tree as names
from tests.sources.dumps import forms
from tests.sources.dumps.forms import COMPRESSIONS
from tests.sources.test_files import error, read

POD = b'{"kind": "Pod", "a": 1}'
SECRET = b'{"kind": "Pod", "secret": 1}'


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.json").write_bytes(SECRET)
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


def tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


GOOD = (member("good.json"), POD)


@pytest.mark.parametrize(
    ("info", "message"),
    [
        (member("../../a.json"), "x: ../../a.json: a name that leads out of the archive (nothing in it is read)"),
        (member("a/../b.log"), "x: a/../b.log: a name that leads out of the archive (nothing in it is read)"),
        (member("/etc/passwd"), "x: /etc/passwd: a name that leads out of the archive (nothing in it is read)"),
        (member("..\\a.json"), "x: ..\\a.json: a name that leads out of the archive (nothing in it is read)"),
        (
            member("a.json", tarfile.SYMTYPE, "../outside/secret.json"),
            "x: a.json: a link, not a file (pack it with --dereference)",
        ),
        (
            member("a.json", tarfile.SYMTYPE, "/etc/passwd"),
            "x: a.json: a link, not a file (pack it with --dereference)",
        ),
        (
            member("a.json", tarfile.LNKTYPE, "good.json"),
            "x: a.json: a link, not a file (pack it with --dereference)",
        ),
        (member("a.json", tarfile.CHRTYPE), "x: a.json: a device, not a file"),
        (member("a.json", tarfile.BLKTYPE), "x: a.json: a device, not a file"),
        (member("a.json", tarfile.FIFOTYPE), "x: a.json: a device, not a file"),
        (member("./good.json"), "x: good.json: one of two files of this name"),
        (member("a.json", tarfile.GNUTYPE_SPARSE), "x: an archive with sparse files (pack it without --sparse)"),
    ],
)
def test_a_tar_archive_that_is_refused(info: tarfile.TarInfo, message: str) -> None:
    Path("x").write_bytes(tar(GOOD, (info, b"")))
    assert error("x") == message


@pytest.mark.parametrize(
    "info",
    [
        member("logs/latest.log", tarfile.SYMTYPE, "/etc/passwd"),
        member("logs/latest", tarfile.SYMTYPE, "../../../etc"),
        member("logs", tarfile.SYMTYPE, "."),
        member("dev/null", tarfile.CHRTYPE),
        member("a.yaml", tarfile.DIRTYPE),
        member("copy.log", tarfile.LNKTYPE, "good.json"),
        member("two.log"),
    ],
)
def test_other_files_of_a_tar_archive_are_left_out(info: tarfile.TarInfo) -> None:
    Path("x").write_bytes(tar((info, b""), (member("two.log"), b"kind: Pod"), GOOD))
    assert read("x") == [{"kind": "Pod", "a": 1}]


def test_no_archive_writes_a_file() -> None:
    Path("x.tgz").write_bytes(gzip.compress(forms.tar(forms.must_gather()), mtime=0))
    Path("x.zip").write_bytes(forms.zipped(forms.must_gather()))
    before = sorted(str(path) for path in Path().rglob("*"))
    read("x.tgz")
    read("x.zip")
    assert sorted(str(path) for path in Path().rglob("*")) == before


def test_a_pax_header_names_the_member_and_its_size() -> None:
    for key, value, message in (
        ("path", "../a.json", "x: ../a.json: a name that leads out of the archive (nothing in it is read)"),
        ("path", "a\0b.json", "x: a\0b.json: a name that leads out of the archive (nothing in it is read)"),
        ("size", "-5", "x: damaged or cut short: a tar archive ends with empty blocks"),
        ("size", "9" * 14, "x: a tar archive that is damaged or cut short"),
        ("size", "9" * 99, "x: a tar archive that is damaged or cut short"),
        ("GNU.sparse.map", "0,1", "x: an archive with sparse files (pack it without --sparse)"),
    ):
        info, content = member("a.json"), POD
        info.pax_headers = {key: value}
        Path("x").write_bytes(tar((info, content)))
        assert error("x") == message


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE])
def test_a_huge_header_is_not_read(kind: bytes) -> None:
    info = member("a.json", kind, size=8 << 30)
    Path("x").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
    assert error("x") == "x: a tar archive that is damaged or cut short"


@pytest.mark.parametrize(
    "records", [b"1", b"99 path=a\n", b"0 a=b\n", b"x path=a\n", b"-8 path=a\n", b"9999999999 a=b\n"]
)
def test_a_damaged_pax_header(records: bytes) -> None:
    info = member("a.json", tarfile.XHDTYPE, size=len(records))
    Path("x").write_bytes(info.tobuf() + records.ljust(512, b"\0") + tar(GOOD))
    with contextlib.suppress(InputError):  # the library looks over some of it
        assert read("x") == [json.loads(POD)]


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
def test_a_truncated_tar_archive(compression: str, kept: float) -> None:
    whole = COMPRESSIONS[compression](tar(GOOD, (member("b.json"), random.Random(1).randbytes(50_000).hex().encode())))
    Path("x").write_bytes(whole[: int(len(whole) * kept)])
    assert "cut short" in error("x")


@pytest.mark.parametrize("compression", ["gzip", "xz", "bzip2"])
def test_a_wrong_checksum(compression: str) -> None:
    for content in (POD, tar(GOOD)):
        data = bytearray(COMPRESSIONS[compression](content))
        at = {"gzip": -7, "xz": -30, "bzip2": -3}[compression]
        data[at] ^= 0xFF
        Path("x").write_bytes(data)
        assert error("x").startswith(f"x: damaged {compression} data")


def test_an_archive_in_an_archive_is_not_opened() -> None:
    inner = forms.tar({"a.json": POD})
    Path("x").write_bytes(forms.tar({"a.tar": inner, "b.tgz": inner}))
    assert error("x") == "x: an archive without manifests (allowed are *.yaml, *.yml, *.json)"
    Path("x").write_bytes(forms.tar({"a.json": inner}))
    assert error("x") == "x: a.json: looks like a tar archive (allowed are Kubernetes objects in YAML or JSON)"
    Path("x").write_bytes(gzip.compress(forms.zipped({"a.json": POD})))
    assert error("x") == "x: looks like a zip archive (allowed are Kubernetes objects in YAML or JSON)"


def test_errors_name_the_member_and_the_line() -> None:
    for packed in (forms.tar({"ns/a.yaml": b"kind: Pod\n---\nkind: [\n"}), forms.zipped({"ns/a.yaml": b"a: 1\n"})):
        Path("x").write_bytes(packed)
        assert error("x").startswith("x: ns/a.yaml:")


def test_names_with_escapes_are_only_names() -> None:
    Path("x").write_bytes(forms.tar({"\x1b[2J\n.json": b"{"}))
    assert error("x").startswith("x: \x1b[2J\\n.json:1: ")  # the command line shows it, render/safe.py


# Zip


def zip_of(*members: tuple[str, bytes, int]) -> bytes:
    """Return a zip archive of names, contents, and Unix modes; names may repeat."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for name, content, mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "mode", "message"),
    [
        ("../a.json", 0, "x: ../a.json: a name that leads out of the archive (nothing in it is read)"),
        ("/a.json", 0, "x: /a.json: a name that leads out of the archive (nothing in it is read)"),
        ("..\\..\\a.log", 0, "x: ..\\..\\a.log: a name that leads out of the archive (nothing in it is read)"),
        ("good.json", 0, "x: good.json: one of two files of this name"),
        ("a.json", stat.S_IFLNK | 0o777, "x: a.json: a link, not a file (pack it with --dereference)"),
        ("a.json", stat.S_IFIFO, "x: a.json: a device, not a file"),
    ],
)
def test_a_zip_archive_that_is_refused(name: str, mode: int, message: str) -> None:
    Path("x").write_bytes(zip_of(("good.json", POD, 0o644), (name, b"../outside/secret.json", mode)))
    assert error("x") == message


def test_other_files_of_a_zip_archive_are_left_out() -> None:
    linked = ("logs/latest.log", b"/etc/passwd", stat.S_IFLNK | 0o777)
    Path("x").write_bytes(zip_of(linked, ("good.json", POD, stat.S_IFREG | 0o644), ("__MACOSX/._good.json", b"\0", 0)))
    assert read("x") == [{"kind": "Pod", "a": 1}]


def test_names_with_backslashes_of_windows() -> None:
    files = {name.replace("/", "\\"): content for name, content in forms.must_gather().items()}
    Path("x").write_bytes(forms.zipped(files))
    Path("y").write_bytes(forms.zipped(forms.must_gather()))
    assert read("x") == read("y")


def patched(data: bytes, signature: bytes, offset: int, value: bytes) -> bytes:
    """Return the archive with bytes replaced at an offset after each signature."""
    changed = bytearray(data)
    at = data.find(signature)
    while at >= 0:
        changed[at + offset : at + offset + len(value)] = value
        at = data.find(signature, at + 1)
    return bytes(changed)


LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda data: patched(data, CENTRAL, 8, b"\x01\0"), "x: a.json: is encrypted (unpack the archive first)"),
        (lambda data: patched(data, CENTRAL, 10, b"\x5d\0"), "x: a.json: compressed with an unknown method"),
        (lambda data: patched(data, CENTRAL, 16, b"abcd"), "x: a.json: a damaged zip archive"),  # the checksum
        (lambda data: patched(data, CENTRAL, 20, b"\x05\0\0\0"), "x: a.json: a damaged zip archive"),  # the size
        (lambda data: patched(data, LOCAL, 30, b"b"), "x: a.json: a damaged zip archive"),  # two names for one
        (lambda data: patched(data, CENTRAL, 42, b"\xff\xff\0\0"), "x: a.json: a damaged zip archive"),  # its place
        (lambda data: patched(data, END, 12, b"\xff\xff\xff\x7f"), "x: a damaged zip archive"),  # of the contents
        (lambda data: data[: len(data) // 2], "x: a damaged zip archive"),
        (lambda data: data[:-3], "x: a damaged zip archive"),
        (lambda _: zip_of(), "x: an archive without manifests (allowed are *.yaml, *.yml, *.json)"),
    ],
)
def test_a_broken_zip_archive(break_it: Callable[[bytes], bytes], message: str) -> None:
    Path("x").write_bytes(break_it(forms.zipped({"a.json": POD * 50})))
    assert error("x") == message


# Bombs


@pytest.fixture
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "_FREE", 1 << 20)
    monkeypatch.setattr(names, "_MAX_MEMBERS", 100)


BLANKS = b" " * (8 << 20)
BOMB = "x: unpacks to more than 200 times its size (unpack it yourself if that is right)"


@pytest.mark.usefixtures("_small_limits")
@pytest.mark.parametrize(
    "bomb",
    [
        *(partial(pack, BLANKS) for name, pack in COMPRESSIONS.items() if name != "plain"),
        *(partial(pack, b"{" + BLANKS) for name, pack in COMPRESSIONS.items() if name != "plain"),
        lambda: gzip.compress(forms.tar({"a.log": BLANKS}), mtime=0),
        lambda: gzip.compress(forms.tar({"a.yaml": BLANKS}), mtime=0),
        lambda: gzip.compress(forms.tar({"a.yaml": gzip.compress(BLANKS, mtime=0)}), mtime=0),
        lambda: forms.tar({"a.yaml": gzip.compress(BLANKS, mtime=0)}),
        lambda: forms.zipped({"a.yaml": BLANKS}),
        lambda: forms.zipped({f"{number}.yaml": b"#" + BLANKS[: 1 << 18] for number in range(30)}),
        lambda: forms.zipped({"a.yaml": gzip.compress(BLANKS, mtime=0)}),
    ],
    ids=lambda _: "",
)
def test_a_decompression_bomb_is_refused(bomb: Callable[[], bytes]) -> None:
    Path("x").write_bytes(bomb())
    assert error("x") == BOMB


@pytest.mark.usefixtures("_small_limits")
def test_a_decompression_bomb_in_a_pipe_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(BLANKS, mtime=0))))
    assert error("-").startswith("standard input: unpacks to more than 200 times its size")


@pytest.mark.usefixtures("_small_limits")
def test_a_compressed_cluster_is_not_a_bomb() -> None:
    pods = [forms.pod(f"web-{number}", "shop", "node-a", hash=f"{hash((number, 7)):x}") for number in range(5000)]
    Path("x").write_bytes(zstandard.ZstdCompressor().compress(forms.as_json(forms.of("List", "", items=pods))))
    assert len(read("x")) == 5000


@pytest.mark.usefixtures("_small_limits")
@pytest.mark.parametrize("pack", [forms.tar, forms.zipped])
def test_too_many_files(pack: Callable[[dict[str, bytes]], bytes]) -> None:
    Path("x").write_bytes(pack({f"{number}.log": b"" for number in range(101)}))
    assert error("x") == "x: holds more than 100 files"


@pytest.mark.usefixtures("_small_limits")
def test_headers_without_members() -> None:
    for headers in (301, 5000):
        Path("x").write_bytes(member("a", tarfile.XHDTYPE).tobuf() * headers)
        assert error("x") == "x: a tar archive that is damaged or cut short"


def test_a_huge_window_is_not_allocated() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=30)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    Path("x").write_bytes(stream.compress(POD) + stream.flush())
    message = "data that needs too much memory to unpack (compress it again with a smaller window)"
    assert error("x") == f"x: zstd {message}"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
    Path("x").write_bytes(lzma.compress(POD, filters=filters))
    assert error("x") == f"x: xz {message}"


def test_several_frames_and_padding() -> None:
    for name, pack in COMPRESSIONS.items():
        Path("x").write_bytes(pack(POD[:10]) + pack(POD[10:]) + (bytes(8) if name == "xz" else b""))
        assert read("x") == [{"kind": "Pod", "a": 1}]


def test_an_archive_that_does_not_fit_through_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST_KEPT", 10_000)
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(forms.tar(forms.must_gather())), daemon=True)
    writer.start()
    assert error("pipe") == "pipe: an archive of more than 0 MiB through a pipe (save it to a file first)"


# Folders


def test_links_in_a_folder_stay_inside() -> None:
    Path("inside/..data").mkdir()
    Path("inside/..data/a.json").write_bytes(POD)
    Path("inside/a.json").symlink_to("..data/a.json")  # as in a mounted ConfigMap
    Path("inside/loop").symlink_to(".")
    Path("inside/loop.json").symlink_to("loop.json")
    Path("inside/gone.json").symlink_to("nowhere")
    Path("inside/elsewhere").symlink_to("../outside")
    assert read("inside") == [{"kind": "Pod", "a": 1}]
    Path("linked").symlink_to("inside")
    assert read("linked") == [{"kind": "Pod", "a": 1}]


@pytest.mark.parametrize("target", ["../outside/secret.json", "/etc/hostname", "elsewhere/secret.json"])
def test_a_link_that_leads_out_of_a_folder(target: str) -> None:
    Path("inside/elsewhere").symlink_to("../outside")
    Path("inside/a.json").symlink_to(target)
    assert error("inside") == "inside/a.json: a link that leads out of the folder (name what it leads to)"


def test_special_files_in_a_folder() -> None:
    os.mkfifo("inside/a.json")
    Path("inside/b.json").write_bytes(POD)
    assert read("inside") == [{"kind": "Pod", "a": 1}]


# Any bytes


@settings(max_examples=settings().max_examples * 5)
@given(st.data())
def test_an_archive_with_changed_bytes_is_read_or_refused(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["tar", "zip", *COMPRESSIONS]))
    small = {"ns/a.json": POD, "b.log": b"x", "c.yaml": b"kind: Pod\n"}
    whole = forms.zipped(small) if kind == "zip" else forms.tar(small)
    changed = bytearray(COMPRESSIONS.get(kind, COMPRESSIONS["plain"])(whole))
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    Path("x").write_bytes(changed[: data.draw(st.integers(1, len(changed)))])
    with contextlib.suppress(InputError):
        read("x")
