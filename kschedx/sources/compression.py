"""Compressed data as a stream of bounded memory, and files that are written as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from kschedx.errors import InputError, Place

# Bytes that are read once, from the first to the last.

_BLOCK = 1 << 20


class Readable(Protocol):
    """A binary file, or what stands for one."""

    def read(self, size: int = -1, /) -> bytes: ...


class Stream(ABC):
    """A Readable that is made of another one."""

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes, and none only at the end; everything if it is negative."""
        return self._next(size) if size >= 0 else b"".join(iter(lambda: self._next(_BLOCK), b""))

    @abstractmethod
    def _next(self, size: int) -> bytes: ...


class Joined(Stream):
    """What was read of a file already, then the rest of it."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head = head
        self._rest = rest

    def _next(self, size: int) -> bytes:
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        return self._rest.read(size) or b""


# Compressed data, recognized by its first bytes, as a stream of bounded memory.

FREE = 256 << 20
"""Bytes that compressed data may always unpack to."""
RATIO = 200
"""How many times its own size more than that may be. A cluster's JSON shrinks to a 20th, and to a 110th where every pod
is like the next, as their uids alone are a 200th; gzip can be made to unpack to 1,000 times its size, the others to
10,000 times and more."""

_FORMATS: Mapping[bytes, str] = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
}
SUFFIXES = (".gz", ".zst", ".xz", ".bz2")
_FEED = 1 << 10
"""Bytes that are unpacked at once where the result's size cannot be bounded: zstd makes at most 32 MB of them."""
_MEMORY = 256 << 20
"""Bytes that an xz stream may ask for."""


class SizeBudget:
    """What is unpacked of one input, however many streams it is in: the guard against decompression bombs."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.packed = 0
        """Bytes of the input that were looked at."""
        self._unpacked = 0

    def spend(self, size: int) -> None:
        """Count unpacked bytes. Raises InputError where they are too many."""
        self._unpacked += size
        if self._unpacked > FREE and self._unpacked > RATIO * self.packed:
            message = f"unpacks to more than {RATIO} times its size"
            raise InputError(message, place=Place(source=self._source), hint="unpack it yourself if that is right")


class CountedStream(Stream):
    """A file whose bytes count as the packed ones of a budget."""

    def __init__(self, file: Readable, budget: SizeBudget) -> None:
        self._file = file
        self._budget = budget

    def _next(self, size: int) -> bytes:
        block = self._file.read(size) or b""
        self._budget.packed += len(block)
        return block


def format_of(head: bytes) -> str:
    """The compression of data that begins with `head`; empty if there is none."""
    return next((name for magic, name in _FORMATS.items() if head.startswith(magic)), "")


def unpacked(file: Readable, compression: str, source: str, budget: SizeBudget) -> Readable:
    """The file's content. Reading it raises InputError for what is damaged, cut short or a bomb."""
    return _Unpacked(_OPEN[compression](file), compression, source, budget)


class _Unpacked(Stream):
    def __init__(self, stream: Readable, compression: str, source: str, budget: SizeBudget) -> None:
        self._stream = stream
        self._compression = compression
        self._source = source
        self._budget = budget

    def _next(self, size: int) -> bytes:
        try:
            block = self._stream.read(size)
        except EOFError:
            raise self._error(f"damaged {self._compression} data: it is cut short") from None
        except (OSError, ValueError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise self._error(f"damaged {self._compression} data") from None
        except _TooMuchMemoryError:
            raise self._error(
                f"{self._compression} data that needs too much memory to unpack",
                hint="compress it again with a smaller window",
            ) from None
        self._budget.spend(len(block))
        return block

    def _error(self, message: str, hint: str = "") -> InputError:
        return InputError(message, place=Place(source=self._source), hint=hint)


class _TooMuchMemoryError(Exception):
    """The data requires a window that is larger than is reasonable."""


class _Decoder(Protocol):
    """Of one compressed stream, as bz2 and lzma have it."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Frames(Stream):
    """Compressed streams, one after the other."""

    def __init__(self, file: Readable, new: Callable[[], _Decoder], feed: int) -> None:
        self._file = file
        self._new = new
        self._feed = feed
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
            block = self._decoder.decompress(data, size)
            if block:
                return block


class _Zstd:
    """A zstd frame. Its decoder unpacks all that it is given at once, so the rest is held back."""

    def __init__(self) -> None:
        import zstandard

        self._error = zstandard.ZstdError
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
            try:
                self._held = memoryview(self._frame.decompress(data))
            except self._error as error:
                if "memory" in str(error):
                    raise _TooMuchMemoryError from None
                raise ValueError from None
        block, self._held = self._held[:max_length], self._held[max_length:]
        return bytes(block)


class _Xz:
    """An xz stream that asks for no more memory than it may."""

    def __init__(self) -> None:
        import lzma

        self._error = lzma.LZMAError
        self._stream = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_MEMORY)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return self._stream.needs_input

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        try:
            return self._stream.decompress(data, max_length)
        except self._error as error:
            if "emory" in str(error):
                raise _TooMuchMemoryError from None
            raise ValueError from None


def _gzip(file: Readable) -> Readable:
    import gzip

    return cast(Readable, gzip.GzipFile(fileobj=cast(BinaryIO, file)))


def _bzip2(file: Readable) -> Readable:
    import bz2

    return _Frames(file, bz2.BZ2Decompressor, 1 << 16)


def _xz(file: Readable) -> Readable:
    return _Frames(file, _Xz, 1 << 16)


_OPEN: Mapping[str, Callable[[Readable], Readable]] = {
    "gzip": _gzip,
    "zstd": lambda file: _Frames(file, _Zstd, _FEED),
    "xz": _xz,
    "bzip2": _bzip2,
}


# A file that is there as a whole or not at all, compressed where its name says so.

STDOUT = "-"
_PACK_BLOCK = 1 << 20


class _Writable(Protocol):
    def write(self, data: bytes, /) -> int: ...


def compression_of(path: str) -> str:
    """`.gz`, `.zst`, or nothing."""
    return next((suffix for suffix in (".gz", ".zst") if path.endswith(suffix)), "")


def write(path: str, parts: Iterable[bytes], *, mode: int = 0o666) -> None:
    """Write the parts one after the other; `-` is standard output. The same parts make the same file.

    `mode` is that of a new file, as far as the umask allows; one that is there keeps its own.
    What was there under the name stays until all of it is written. Raises `InputError` where it cannot be written.
    """
    try:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(_opened(path, mode))
            packed = stack.enter_context(_packed(file, compression_of(path)))
            for block in _blocks(parts):
                packed.write(block)
    except (OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "loop" not in str(error).lower():
            raise  # only a path of links that lead to each other is meant
        reason = (getattr(error, "strerror", None) or str(error)).partition(" from ")[0].lower()
        raise InputError(f"cannot be written: {reason}", place=Place(source=path)) from None


@contextlib.contextmanager
def _opened(path: str, mode: int) -> Iterator[BinaryIO]:
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
def _packed(file: BinaryIO, compression: str) -> Iterator[_Writable]:
    """Without the file's name or the time in it."""
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
    """Few large writes in place of many small ones."""
    waiting, size = [], 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= _PACK_BLOCK:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)
