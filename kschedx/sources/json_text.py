"""A window on a long JSON text: what was read of a file and not yet handed out."""

from __future__ import annotations

import re
from pathlib import Path

from kschedx.sources.json_lines import count_lines
from kschedx.sources.streams import Readable

_SPACE = re.compile(rb"\s*")


class JsonText:
    """What comes next is `text` from `at` on; `text` begins at offset `start` of the file."""

    def __init__(self, file: Readable, *, path: Path | None, small: int) -> None:
        """`path` is where the file can be read again; of white space `small` bytes are read at a time."""
        self._file = file
        self._path = path
        self._small = small
        self.text = b""
        self.at = 0
        self.start = 0
        self.ended = False
        self._known_line = (0, 1)
        """An offset and its line, from where lines are counted on."""

    @property
    def rest(self) -> memoryview:
        """All that is at hand."""
        return memoryview(self.text)[self.at :]

    @property
    def held(self) -> int:
        """Bytes at hand."""
        return len(self.text) - self.at

    def fill(self, size: int) -> None:
        """Reads until `size` bytes are at hand or the file ends."""
        more = self.read(size - self.held)
        if more:
            self.replace(b"".join((self.rest, more)), at=self.offset)

    def read(self, size: int) -> bytes:
        """The next `size` bytes, less only at the end of the file."""
        blocks = []
        while size > 0 and not self.ended:
            block = self._file.read(size)
            if block:
                blocks.append(block)
                size -= len(block)
            else:
                self.ended = True
        return blocks[0] if len(blocks) == 1 else b"".join(blocks)

    def replace(self, text: bytes, *, at: int) -> None:
        """`text`, which begins at offset `at` of the file, is what comes next."""
        self.text, self.at, self.start = text, 0, at

    @property
    def offset(self) -> int:
        return self.start + self.at

    def skip_space(self) -> bool:
        """Whether anything but white space is left."""
        while True:
            match = _SPACE.match(self.text, self.at)
            assert match is not None
            self.at = match.end()
            if self.at < len(self.text):
                return True
            if self.ended:
                return False
            self.fill(self._small)

    def grow(self, limit: int) -> bool:
        """Reads at least as much as is at hand, so that trying again costs no more than twice the work.

        Not so where that is more than `limit` bytes.
        """
        held = self.held
        self.fill(min(max(2 * held, self._small), limit + 1))
        return held <= limit

    def line(self, offset: int) -> int | None:
        """The line that `offset` is in; None in a long stream, which cannot be read again."""
        known, line = self._known_line
        if known >= self.start:
            line += self.text.count(b"\n", known - self.start, offset - self.start)
        elif self._path is None:
            return None
        else:
            line = count_lines(self._path, offset) + 1
        self._known_line = (offset, line)
        return line
