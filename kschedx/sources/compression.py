"""Compressed data as streams that need bounded memory, and atomic writes of files."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from kschedx.errors import InputError, system_reason

# Bytes that are read once, from first to last.

_BLOCK = 1 << 20


class Readable(Protocol):
    """A binary file, or an object that reads like one."""

    def read(self, size: int = -1, /) -> bytes: ...


class Stream(ABC):
    """A Readable that is based on another one."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, or everything if it is negative. Empty only at the end."""
        return self._next(size) if size >= 0 else b"".join(iter(lambda: self._next(_BLOCK), b""))

    @abstractmethod
    def _next(self, size: int) -> bytes: ...


class JoinedStream(Stream):
    """A file of which some bytes were read already: these bytes, then the rest."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head = head
        self._rest = rest

    def _next(self, size: int) -> bytes:
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        return self._rest.read(size) or b""


# Compressed data, recognized by its first bytes, as a stream that needs bounded memory.

_FREE = 256 << 20  # bytes that compressed data may always unpack to
_RATIO = 200
"""Above _FREE, the maximum ratio of unpacked to compressed size.

A cluster's JSON compresses to a 20th, and to a 110th if pods differ only in names and uids, since their uids alone are
a 200th. gzip can unpack to 1,000 times its size, the other formats to 10,000 times and more.
"""

_FORMATS: Mapping[bytes, str] = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
}
SUFFIXES = (".gz", ".zst", ".xz", ".bz2")
_FEED = 1 << 10
"""Bytes that are unpacked at once if the size of the result cannot be limited: zstd turns them into at most 32 MB."""
_MEMORY = 256 << 20  # bytes of an xz stream


class SizeBudget:
    """The guard against decompression bombs: it counts the unpacked bytes of one input over all its streams."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.packed = 0  # bytes of the input that were read
        self._unpacked = 0

    def spend(self, size: int) -> None:
        """Count unpacked bytes. Raises InputError if they exceed the budget."""
        self._unpacked += size
        if self._unpacked > _FREE and self._unpacked > _RATIO * self.packed:
            message = f"unpacks to more than {_RATIO} times its size"
            raise InputError(message, source=self._source, hint="unpack it yourself if that is right")


def format_of(head: bytes) -> str:
    """Return the compression of data that begins with `head`; empty if there is none."""
    return next((name for magic, name in _FORMATS.items() if head.startswith(magic)), "")


def unpack(file: Readable, compression: str, source: str, budget: SizeBudget) -> Readable:
    """The file's content. Reading it raises InputError for damaged or truncated data, and for a decompression bomb."""
    return _UnpackedFile(_OPEN[compression](file), compression, source, budget)


class _UnpackedFile(Stream):
    def __init__(self, stream: Readable, compression: str, source: str, budget: SizeBudget) -> None:
        self._stream = stream
        self._compression = compression
        self._source = source
        self._budget = budget

    def _next(self, size: int) -> bytes:
        try:
            block = self._stream.read(size)
        except EOFError:
            raise InputError(f"damaged {self._compression} data: it is cut short", source=self._source) from None
        except (OSError, ValueError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise InputError(f"damaged {self._compression} data", source=self._source) from None
        except _TooMuchMemoryError:
            raise InputError(
                f"{self._compression} data that needs too much memory to unpack",
                source=self._source,
                hint="compress it again with a smaller window",
            ) from None
        self._budget.spend(len(block))
        return block


class _TooMuchMemoryError(Exception):
    """The data requires an unreasonably large window."""


class _Decoder(Protocol):
    """A decoder of one compressed stream, with the interface of bz2 and lzma."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Frames(Stream):
    """Compressed streams in sequence."""

    def __init__(self, file: Readable, new: Callable[[], _Decoder], feed: int, error: type[Exception]) -> None:
        self._file = file
        self._new = new
        self._feed = feed
        self._error = error
        self._decoder = new()

    def _next(self, size: int) -> bytes:
        while True:
            data = b""
            if self._decoder.eof:
                data = self._decoder.unused_data.lstrip(b"\0")
                while not data and (block := self._file.read(self._feed)):
                    data = block.lstrip(b"\0")  # the padding of xz
                if not data:
                    return b""
                self._decoder = self._new()
            elif self._decoder.needs_input:
                data = self._file.read(self._feed)
                if not data:
                    raise EOFError
            try:
                block = self._decoder.decompress(data, size)
            except self._error as error:
                raise (_TooMuchMemoryError if "memory" in str(error).lower() else ValueError) from None
            if block:
                return block


class _Zstd:
    """A zstd frame. Its decoder unpacks all its input at once, so the rest of the input is held back."""

    def __init__(self) -> None:
        import zstandard

        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._held = memoryview(b"")

    @property
    def eof(self) -> bool:
        return self._frame.eof and not self._held

    @property
    def needs_input(self) -> bool:
        return not self._held

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if data:
            self._held = memoryview(self._frame.decompress(data))
        block, self._held = self._held[:max_length], self._held[max_length:]
        return bytes(block)


def _gzip(file: Readable) -> Readable:
    import gzip

    return cast(Readable, gzip.GzipFile(fileobj=cast(BinaryIO, file)))


def _bzip2(file: Readable) -> Readable:
    import bz2

    return _Frames(file, bz2.BZ2Decompressor, 1 << 16, OSError)


def _zstd(file: Readable) -> Readable:
    import zstandard

    return _Frames(file, _Zstd, _FEED, zstandard.ZstdError)


def _xz(file: Readable) -> Readable:
    import lzma

    new = partial(lzma.LZMADecompressor, format=lzma.FORMAT_XZ, memlimit=_MEMORY)
    return _Frames(file, new, 1 << 16, lzma.LZMAError)


_OPEN: Mapping[str, Callable[[Readable], Readable]] = {
    "gzip": _gzip,
    "zstd": _zstd,
    "xz": _xz,
    "bzip2": _bzip2,
}


# Files that are written as a whole or not at all, compressed according to their names.

STDOUT = "-"
_PACK_BLOCK = 1 << 20


class _Writable(Protocol):
    def write(self, data: bytes, /) -> int: ...


_LARGEST_WHOLE = 1 << 30  # bytes of a file that is read as a whole; a device has no end


def read_file(path: str | Path) -> bytes:
    """Return the content of a file that is no cluster. Raises `OSError`, for a file of more than 1 GiB as well."""
    with Path(path).open("rb") as file:
        content = file.read(_LARGEST_WHOLE + 1)
    if len(content) > _LARGEST_WHOLE:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content


def read_content(path: str) -> bytes:
    """Return the content of a file that is no cluster. Raises `InputError`, also for one of more than 1 GiB."""
    try:
        return read_file(path)
    except OSError as error:
        raise InputError(system_reason(error), source=path) from None


def compression_of(path: str) -> str:
    """Return `.gz`, `.zst`, or an empty string."""
    return next((suffix for suffix in (".gz", ".zst") if path.endswith(suffix)), "")


def write(path: str, parts: Iterable[bytes], *, mode: int = 0o666) -> None:
    """Write the parts in order; `-` is standard output. Equal parts make equal files.

    `mode` is that of a new file, limited by the umask; an existing file keeps its own. An existing file stays until all
    parts are written. Raises `InputError` if the file cannot be written.
    """
    try:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(_open_output(path, mode))
            packed = stack.enter_context(_pack(file, compression_of(path)))
            for block in _blocks(parts):
                packed.write(block)
    except (OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "loop" not in str(error).lower():
            raise  # only the error of links in a circle is handled here
        reason = (getattr(error, "strerror", None) or str(error)).partition(" from ")[0].lower()
        raise InputError(f"cannot be written: {reason}", source=path) from None


@contextlib.contextmanager
def _open_output(path: str, mode: int) -> Iterator[BinaryIO]:
    if path == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as file:  # a device or a pipe; a folder is an error
            yield cast(BinaryIO, file)
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    kept = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    try:
        with open(
            beside, "xb", opener=lambda name, flags: os.open(name, flags, mode if kept is None else 0o600)
        ) as file:
            if kept is not None:
                os.fchmod(file.fileno(), kept)
            yield cast(BinaryIO, file)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _pack(file: BinaryIO, compression: str) -> Iterator[_Writable]:
    """Yield a writer that compresses without the file's name and time, so that equal content makes equal files."""
    match compression:
        case ".gz":
            import gzip

            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed:
                yield cast(_Writable, packed)
        case ".zst":
            import zstandard

            with zstandard.ZstdCompressor(level=6, write_checksum=True).stream_writer(file, closefd=False) as packed:
                yield cast(_Writable, packed)
        case _:
            yield file


def _blocks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join many small writes to few large ones."""
    waiting, size = [], 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= _PACK_BLOCK:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)
