"""Trees of files, in a folder or an archive: first their names, then the content of the wanted files."""

from __future__ import annotations

import io
import os
import stat
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Protocol, cast

from msgspec import Struct

from kschedx.errors import InputError, Place, nearest, system_reason
from kschedx.patterns import lazy_pattern
from kschedx.sources import compression as compressed
from kschedx.sources.compression import Readable, SizeBudget, Stream

if TYPE_CHECKING:
    import tarfile
    import zipfile

SUFFIXES = (".yaml", ".yml", ".json")


class _TreeMember(Struct, frozen=True, kw_only=True):
    name: str  # the path from the tree's root, with slashes
    source: str  # the name of the file in output
    file: Readable
    path: Path | None = None  # the file, to read it again; None for one in an archive


class Tree(Protocol):
    """A folder or an archive. Nothing outside of it is ever read, whatever its names and links are, and nothing is
    written."""

    what: str  # "a folder", "an archive"

    def names(self) -> Sequence[str]:
        """Return the files whose names are those of manifests, in order."""
        ...

    def open(self, wanted: Collection[str]) -> Iterator[_TreeMember]:
        """Yield the files with these names. Each must be read before the next one is requested."""
        ...


_OUTPUT = lazy_pattern(r"(?:kubectl|oc)_[^/]*-o_?(?:json|yaml)[^/]*\Z")
"""The output of a command, as sosreport names it: `kubectl_get_-o_json_--all-namespaces_pods`."""


def _may_be_manifest(name: str) -> bool:
    """Return whether the file is a *.yaml, *.yml, or *.json, also compressed, or a command's output in these formats.
    Hidden files are excluded."""
    for suffix in compressed.SUFFIXES:
        name = name.removesuffix(suffix)
    is_named = name.endswith(SUFFIXES) or is_output(name)
    return is_named and not any(part.startswith(".") for part in name.split("/"))


def is_output(name: str) -> bool:
    """Return whether the file is a command's output, which may be an error."""
    return _OUTPUT.match(name.rpartition("/")[2]) is not None


def unreadable(source: str, error: OSError) -> InputError:
    """Return the operating system's error as an InputError."""
    return InputError(f"cannot be read: {system_reason(error)}", source=source)


def nearest_beside(missing: Path) -> str:
    """Return the hint with the nearest name in the folder of a missing file."""
    beside = [entry.name for entry in missing.parent.iterdir()] if missing.parent.is_dir() else []
    return nearest(missing.name, beside)


class Folder:
    """A folder with its subfolders. Linked folders are skipped; linked files must be inside the folder."""

    what = "a folder"

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def names(self) -> Sequence[str]:
        return list(self._below(self._path, ""))

    def _below(self, folder: Path, prefix: str) -> Iterator[str]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            raise unreadable(str(folder), error) from None
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._below(folder / entry.name, f"{prefix}{entry.name}/")
            elif _may_be_manifest(entry.name) and _is_file(entry):
                yield prefix + entry.name

    def open(self, wanted: Collection[str]) -> Iterator[_TreeMember]:
        root = self._path.resolve()
        for name in wanted:
            path = self._path / name
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                place = Place(source=str(path))
                raise InputError("a link that leads out of the folder", place=place, hint="name what it leads to")
            try:
                with path.open("rb", buffering=0) as file:
                    yield _TreeMember(name=name, source=str(path), file=cast(Readable, file), path=path)
            except OSError as error:
                raise unreadable(str(path), error) from None


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # links in a circle
        return False


# The names in an archive, and their errors.

_MAX_MEMBERS = 200_000
_FOLDER = "a folder"
_LINK = "a link, not a file"
_DEVICE = "a device, not a file"


class _MemberNames:
    """The names of an archive's members, as they are shown."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._count = 0
        self._manifests: dict[str, str] = {}  # why a file cannot be read, by name; empty if it can

    def add(self, written: str, kind: str) -> None:
        """Add a member. `kind` is its type, empty for a file. Raises InputError for a name outside of the archive."""
        self._count += 1
        if self._count > _MAX_MEMBERS:
            raise InputError(f"holds more than {_MAX_MEMBERS:,} files", source=self._source)
        name = _tidy(written)
        if written.startswith(("/", "\\")) or ".." in name.split("/") or "\0" in written:
            place = Place(source=f"{self._source}: {written}")
            raise InputError("a name that leads out of the archive", place=place, hint="nothing in it is read")
        if kind != _FOLDER and _may_be_manifest(name):
            self._manifests[name] = "one of two files of this name" if name in self._manifests else kind

    def manifests(self) -> Sequence[str]:
        return sorted(self._manifests)

    def check(self, wanted: Collection[str]) -> None:
        """Raise InputError for a name that does not belong to exactly one file."""
        for name in wanted:
            if problem := self._manifests[name]:
                hint = "pack it with --dereference" if problem == _LINK else ""
                raise InputError(problem, source=f"{self._source}: {name}", hint=hint)


def _tidy(name: str) -> str:
    """Return a member's name without "./", and with slashes instead of backslashes."""
    return "/".join(part for part in name.replace("\\", "/").split("/") if part not in ("", "."))


# Tar archives in any dialect, read from the first byte to the last.

_BLOCK = 512
_LONGEST_TAR_READ = 1 << 20  # bytes; the limit for names and attributes before a member


def is_tar(head: bytes) -> bool:
    """Return whether it is a tar archive; `head` is at least the first block."""
    return head[257:262] == b"ustar" and b"\0" in head[:_BLOCK]


class Tar:
    """A tar archive, compressed or not. It is read twice: for the names, and for the content."""

    what = "an archive"

    def __init__(self, reopened: Callable[[], Readable], source: str) -> None:
        self._reopened = reopened  # returns a stream from the archive's first byte on
        self._source = source
        self._names = _MemberNames(source)

    def names(self) -> Sequence[str]:
        for info, _ in self._members():
            self._names.add(info.name, _tar_kind(info))
        return self._names.manifests()

    def open(self, wanted: Collection[str]) -> Iterator[_TreeMember]:
        self._names.check(wanted)
        for info, archive in self._members():
            name = _tidy(info.name)
            if name in wanted and not _tar_kind(info):
                content = archive.extractfile(info)
                assert content is not None
                yield _TreeMember(
                    name=name, source=f"{self._source}: {name}", file=_TarContent(content, self._converted_errors)
                )

    def _members(self) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
        import tarfile

        forward = _Forward(self._reopened())
        with self._converted_errors():
            file = cast(IO[bytes], forward)
            archive = tarfile.TarFile(fileobj=file, encoding="utf-8", errors="backslashreplace")
        while True:
            with self._converted_errors():
                info = archive.next()
                archive.members.clear()  # type: ignore[attr-defined] # it would keep them all
            if info is None:
                break
            if info.issparse():
                raise InputError("an archive with sparse files", source=self._source, hint="pack it without --sparse")
            yield info, archive
        if not forward.ends_with_zeros:
            raise InputError("damaged or cut short: a tar archive ends with empty blocks", source=self._source)
        while forward.read(_LONGEST_TAR_READ):  # so that a checksum at the end is checked
            pass

    @contextmanager
    def _converted_errors(self) -> Iterator[None]:
        """Raise every error of the standard library about a tar archive as an InputError."""
        import tarfile

        try:
            yield
        except (tarfile.TarError, ValueError, OverflowError, EOFError, RecursionError):
            raise InputError("a tar archive that is damaged or cut short", source=self._source) from None


def _tar_kind(info: tarfile.TarInfo) -> str:
    """Return the type of the member; empty for a file."""
    if info.isdir() or info.name.endswith("/"):
        return _FOLDER
    if info.issym() or info.islnk():
        return _LINK
    return "" if info.isreg() else _DEVICE


class _TarContent(Stream):
    def __init__(self, content: IO[bytes], reading: Callable[[], AbstractContextManager[None]]) -> None:
        self._content = content
        self._told = reading

    def _next(self, size: int) -> bytes:
        with self._told():
            return self._content.read(min(size, _LONGEST_TAR_READ))


class _Forward(io.RawIOBase):
    """A stream as a file that can seek forward, and back by at most the last byte that was read.

    Reads are small, whatever sizes the archive states.
    """

    def __init__(self, stream: Readable) -> None:
        super().__init__()
        self._stream = stream
        self._at = 0
        self._last = b""  # the last block that was read, or its end
        self._again = 0  # the number of its bytes that are read again

    @property
    def ends_with_zeros(self) -> bool:
        """Whether the last read block is empty."""
        return len(self._last) == _BLOCK and not any(self._last)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if self._at - 1 == offset and self._last and not self._again:
            self._at, self._again = offset, 1
        while self._at < offset and self.read(min(offset - self._at, _LONGEST_TAR_READ)):
            pass
        if self._at > offset:
            raise ValueError("a tar archive is read from the first byte to the last")
        return self._at

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LONGEST_TAR_READ:
            raise ValueError("more than a name needs")
        blocks = []
        if self._again and size:
            blocks.append(self._last[-1:])
            size, self._again = size - 1, 0
        while size and (block := self._stream.read(size)):
            blocks.append(block)
            size -= len(block)
        text = b"".join(blocks)
        self._at += len(text)
        if text:
            self._last = text[-_BLOCK:]
        return text


# Zip archives in seekable files.

_LONGEST_ZIP_READ = 32 << 20  # bytes; the limit for the table of contents, which is read at once


def is_zip(head: bytes) -> bool:
    """Return whether it is a zip archive, also one without members."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


class Zip:
    """A zip archive in a seekable file."""

    what = "an archive"

    def __init__(self, file: BinaryIO, source: str, budget: SizeBudget) -> None:
        self._file = file
        self._source = source
        self._budget = budget
        self._names = _MemberNames(source)
        self._members: dict[str, zipfile.ZipInfo] = {}

    def names(self) -> Sequence[str]:
        for member in self._archive.infolist():
            self._names.add(member.orig_filename, _zip_kind(member))
            self._members[_tidy(member.orig_filename)] = member
        return self._names.manifests()

    def open(self, wanted: Collection[str]) -> Iterator[_TreeMember]:
        self._names.check(wanted)
        self._budget.packed = self._file.seek(0, io.SEEK_END)
        for name in wanted:
            member, source = self._members[name], f"{self._source}: {name}"
            if member.flag_bits & 1:
                raise InputError("is encrypted", source=source, hint="unpack the archive first")
            with _zip_errors(source):
                content = self._archive.open(member)
            yield _TreeMember(name=name, source=source, file=_ZipContent(content, source, self._budget))

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        import zipfile

        with _zip_errors(self._source):
            return zipfile.ZipFile(cast(IO[bytes], _Careful(self._file)))


@contextmanager
def _zip_errors(source: str) -> Iterator[None]:
    """Raise every error of the standard library about a zip archive as an InputError."""
    import struct
    import zipfile

    try:
        yield
    except NotImplementedError:
        raise InputError("compressed with an unknown method", source=source) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError, struct.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError("a damaged zip archive", source=source) from None


class _ZipContent(Stream):
    """A member of a zip archive. Its unpacked bytes are counted, and its checksum is verified at the end."""

    def __init__(self, content: IO[bytes], source: str, budget: SizeBudget) -> None:
        self._content = content
        self._source = source
        self._budget = budget

    def _next(self, size: int) -> bytes:
        with _zip_errors(self._source):
            block = self._content.read(size)
        self._budget.spend(len(block))
        return block


class _Careful(io.RawIOBase):
    """A file with small reads, whatever sizes it states."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        if size > _LONGEST_ZIP_READ:
            raise ValueError("a table of contents that is too long")
        return self._file.read(size)


def _zip_kind(member: zipfile.ZipInfo) -> str:
    if member.is_dir():
        return _FOLDER
    mode = member.external_attr >> 16
    if stat.S_ISLNK(mode):
        return _LINK
    return "" if stat.S_IFMT(mode) in (0, stat.S_IFREG) else _DEVICE
