"""A body that came as gzip, unpacked piece by piece, with Go's words for what is wrong.

Upstream: compress/gzip and compress/flate.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from kschedx.extenders.http1 import PIECE, CutOffError

_EXTRA, _NAME, _COMMENT, _CHECKED = 4, 8, 16, 2
_LONGEST_TEXT = 512


def unpacked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """One member of the file after another. Raises `CutOffError`, and whatever `pieces` raises."""
    packed = _Packed(pieces)
    while _begins(packed):
        check, size = 0, 0
        for piece in _inflated(packed):
            yield piece
            check, size = zlib.crc32(piece, check), size + len(piece)
        if struct.unpack("<II", packed.take(8)) != (check, size & 0xFFFFFFFF):
            raise CutOffError("gzip: invalid checksum")


class _Packed:
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""

    def piece(self) -> bytes:
        """Whatever comes next; nothing at the end."""
        held, self._held = self._held, b""
        return held or next(self._pieces, b"")

    def back(self, rest: bytes) -> None:
        self._held = rest + self._held

    def take(self, size: int, *, may_end: bool = False) -> bytes:
        """So many bytes; none only at the end, where that is allowed."""
        parts = b""
        while len(parts) < size:
            piece = self.piece()
            if not piece:
                if may_end and not parts:
                    return b""
                raise CutOffError("unexpected EOF")
            parts += piece
        self.back(parts[size:])
        return parts[:size]


def _begins(packed: _Packed) -> bool:
    """A member's header is read; False at the end of the file."""
    fixed = packed.take(10, may_end=True)
    if not fixed:
        return False
    if fixed[:3] != b"\x1f\x8b\x08":
        raise CutOffError("gzip: invalid header")
    flags, read = fixed[3], fixed
    if flags & _EXTRA:
        size = packed.take(2)
        read += size + packed.take(struct.unpack("<H", size)[0])
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            read += _text(packed)
    if flags & _CHECKED and struct.unpack("<H", packed.take(2))[0] != zlib.crc32(read) & 0xFFFF:
        raise CutOffError("gzip: invalid header")
    return True


def _text(packed: _Packed) -> bytes:
    """Up to its zero, which is a part of it."""
    text = b""
    while not text.endswith(b"\0"):
        if len(text) >= _LONGEST_TEXT:
            raise CutOffError("gzip: invalid header")
        text += packed.take(1)
    return text


def _inflated(packed: _Packed) -> Iterator[bytes]:
    inflater, read = zlib.decompressobj(-zlib.MAX_WBITS), 0
    while True:
        piece = packed.piece()
        if not piece:
            raise CutOffError("unexpected EOF")
        out = b""
        while piece or len(out) == PIECE:
            before = inflater.copy()
            try:
                out = inflater.decompress(piece, PIECE)
            except zlib.error:
                good, taken = _up_to_the_fault(before, piece)
                yield good
                raise CutOffError(f"flate: corrupt input before offset {read + taken}") from None
            yield out
            rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            read += len(piece) - len(rest)
            if inflater.eof:
                packed.back(rest)
                return
            piece = rest


def _up_to_the_fault(inflater: zlib._Decompress, piece: bytes) -> tuple[bytes, int]:
    """What comes out of it, and how many bytes go in."""
    out = b""
    for taken in range(len(piece)):
        try:
            out += inflater.decompress(piece[taken : taken + 1])
        except zlib.error:
            return out, taken + 1
    return out, len(piece)
