"""A file that is there as a whole or not at all, compressed where its name says so."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from kschedx.errors import InputError, Place

STDOUT = "-"
_BLOCK = 1 << 20


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
        if size >= _BLOCK:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)
