"""Reads files, folders, archives, and standard input."""

from __future__ import annotations

import io
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from kschedx.errors import InputError, Place
from kschedx.progress import Phase, report_progress
from kschedx.sources import compression as compressed
from kschedx.sources import manifests as foreign
from kschedx.sources.compression import JoinedStream, Readable, SizeBudget, Stream
from kschedx.sources.dumps import LeftOut, See, ignore
from kschedx.sources.lists import Batch, ItemError
from kschedx.sources.manifests import ALLOWED, HEAD, Refuse, UnpackedFile
from kschedx.sources.manifests import read as read_text
from kschedx.sources.tree import SUFFIXES, Folder, Tar, Tree, Zip, is_output, is_tar, is_zip, nearest_beside, unreadable

STDIN = "-"
_MOST_KEPT = 512 << 20  # bytes of an archive from a pipe, which is kept because it is read twice


def read(
    path: str, see: See = ignore, refuse: Refuse | None = None, budget: SizeBudget | None = None
) -> Iterator[Batch]:
    """Yield the Kubernetes objects of a file, a folder, an archive, or standard input ("-"). Any of it may be
    compressed.

    Of a folder or an archive, the *.yaml, *.yml, and *.json files are read, except hidden ones; of a recognized dump,
    the files that hold what scheduling reads. `see` is called with each dump, and with every other file that holds no
    Kubernetes objects.

    Raises InputError with the place for unreadable input, also midway. With `refuse`, which is called with the error of
    a file in a folder or an archive, the rest of that file is skipped, and the other files are read. `budget` counts
    the bytes of a file that are read.
    """
    budget = budget or SizeBudget(path)
    if path == STDIN:
        yield from _require_batches(_input(standard_input(), STDIN, None, see, refuse, budget), STDIN)
    elif Path(path).is_dir():
        yield from _tree(Folder(path), path, see, refuse, None)
    else:
        yield from _require_batches(_file(Path(path), see, refuse, budget), path)


def read_stream(file: BinaryIO, source: str) -> Iterator[Batch]:
    """Yield the Kubernetes objects of an open file, which errors call `source`."""
    yield from _require_batches(_input(file, source, None, ignore, None, SizeBudget(source)), source)


def standard_input() -> BinaryIO:
    """Return standard input. Raises `InputError` if it is closed. If it is a terminal, progress output stops while the
    user types."""
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("standard input is closed", source=STDIN)
    if sys.stdin.buffer.isatty():
        report_progress(Phase.NOTHING)
    return sys.stdin.buffer


def no_such_file(source: str) -> InputError:
    """Return the error with the nearest name beside the first part of the path that does not exist."""
    path = Path(source)
    missing = next((part for part in (path, *path.parents) if part.parent.exists()), path)
    return InputError("no such file or folder", source=source, hint=nearest_beside(missing))


def _file(path: Path, see: See, refuse: Refuse | None, budget: SizeBudget) -> Iterator[Batch]:
    source = str(path)
    try:
        with path.open("rb", buffering=0) as file:
            # a named pipe cannot be read twice
            again = path if path.is_file() else None
            yield from _input(cast(BinaryIO, file), source, again, see, refuse, budget)
    except FileNotFoundError:
        raise no_such_file(source) from None
    except OSError as error:
        raise unreadable(source, error) from None


def _holds_nothing(source: str) -> InputError:
    """Return the error of an input without objects."""
    return InputError("holds no objects", source=source, hint=ALLOWED)


def _require_batches(batches: Iterator[Batch], source: str) -> Iterator[Batch]:
    """Yield the batches. Raises InputError if there is none."""
    empty = True
    for batch in batches:
        empty = False
        yield batch
    if empty:
        raise _holds_nothing(source)


class _CountedStream(Stream):
    """A file whose bytes count as compressed bytes of a budget."""

    def __init__(self, file: Readable, budget: SizeBudget) -> None:
        self._file = file
        self._budget = budget

    def _next(self, size: int) -> bytes:
        block = self._file.read(size) or b""
        self._budget.packed += len(block)
        return block


def _input(
    file: BinaryIO, source: str, path: Path | None, see: See, refuse: Refuse | None, budget: SizeBudget
) -> Iterator[Batch]:
    """Yield the objects of a file, which may be an archive."""
    again = _Again(file, budget)
    head, content = _unpack(again, source, budget)
    packed = content is not again
    if not packed and is_zip(head):
        yield from _tree(Zip(again.from_start(source), source, budget), source, see, refuse, budget)
    elif is_tar(head):

        def reopened() -> Readable:
            start, whole = _unpack(_CountedStream(again.from_start(source), budget), source, budget)
            return JoinedStream(start, whole)

        yield from _tree(Tar(reopened, source), source, see, refuse, budget)
    else:
        again.forget()
        text = UnpackedFile(head=head, rest=content, source=source, path=None if packed else path)
        yield from read_text(text, see, refuse)


def _tree(tree: Tree, source: str, see: See, refuse: Refuse | None, budget: SizeBudget | None) -> Iterator[Batch]:
    """Yield the objects of a folder or an archive; `budget` is the archive's."""
    from kschedx.sources.dumps.layouts import plan as plan_of

    plan = plan_of(tree.names(), source)
    if not plan.wanted:
        allowed = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
        raise InputError(f"{tree.what} without manifests", source=source, hint=f"allowed are {allowed}")
    empty: list[str] = []
    left_out: list[tuple[str, InputError]] = []
    twins = _twins(source, plan.wanted) if isinstance(tree, Folder) else {}
    for name, other in twins.items():
        see(LeftOut(source=name, why=f"the same objects as {other}", is_twin=True))
    for member in tree.open([name for name in plan.wanted if name not in twins]):
        own = budget or SizeBudget(member.source)
        file: Readable = member.file if budget else _CountedStream(member.file, own)
        batch = None
        try:
            head, content = _unpack(file, member.source, own)
            text = UnpackedFile(
                head=head,
                rest=content,
                source=member.source,
                path=member.path if content is file else None,
                kind=plan.wanted[member.name],
            )
            for batch in read_text(text, see, refuse):
                yield batch
        except InputError as error:
            is_other = batch is None and (
                isinstance(error, ItemError) or plan.is_beside(member.name) or is_output(member.name)
            )
            if is_other and (not isinstance(error, ItemError) or error.index is None):
                left_out.append((member.name, error))
            elif refuse is None:
                raise
            else:
                refuse(error)
        except OSError as error:
            if refuse is None:
                raise unreadable(member.source, error) from None
            refuse(unreadable(member.source, error))
        else:
            if batch is None:
                empty.append(member.name)
    if left_out and len(empty) + len(left_out) == len(plan.wanted):
        raise left_out[0][1]
    if len(empty) == len(plan.wanted):
        raise _holds_nothing(source)
    for name, why in left_out:
        see(LeftOut(source=name, why=why.message))
    for dump in plan.dumps(empty):
        see(dump)


_MOST_COMPARED = 64 << 20  # bytes of a file that is compared with another


def _twins(folder: str, names: Collection[str]) -> dict[str, str]:
    """Return files with the same name and the same objects as another file in the other format, JSON or YAML, and that
    file."""
    first: dict[str, str] = {}
    twins: dict[str, str] = {}
    for name in names:
        stem, _, form = name.rpartition(".")
        other = first.setdefault(stem, name)
        if other == name or form.removeprefix("y") == other.rpartition(".")[2].removeprefix("y"):
            continue
        try:
            if _objects(Path(folder, name)) == _objects(Path(folder, other)):
                twins[name] = other
        except (InputError, OSError):  # the file's reader reports what is wrong
            continue
    return twins


def _objects(path: Path) -> list[bytes]:
    """Return the objects of a file, sorted. A file that is too large to compare equals no other."""
    if path.stat().st_size > _MOST_COMPARED:
        return [str(path).encode()]
    decoder = msgspec.json.Decoder(list[object])
    objects = (item for batch in read(str(path)) for item in batch.decode(decoder))
    return sorted(msgspec.json.encode(item, order="sorted") for item in objects)


def _unpack(file: Readable, source: str, budget: SizeBudget) -> tuple[bytes, Readable]:
    """The first bytes of a file's content, and a reader of the rest: the file itself, if it is not compressed."""
    head = _head(file)
    compression = compressed.format_of(head)
    if not compression:
        return head, file
    content = compressed.unpack(JoinedStream(head, file), compression, source, budget)
    head = _head(content)
    if compressed.format_of(head):
        raise InputError("looks like data compressed twice", source=source, hint=foreign.ALLOWED)
    return head, content


def _head(file: Readable) -> bytes:
    """Return the first bytes, fewer only at the end of the file. A pipe may return little per read."""
    head = b""
    while len(head) < HEAD and (block := file.read(HEAD - len(head))):
        head += block
    return head


class _Again(_CountedStream):
    """A file that can be read again from its beginning. Data from a pipe is kept in memory until `forget`."""

    def __init__(self, file: BinaryIO, budget: SizeBudget) -> None:
        super().__init__(file, budget)
        self._raw = file
        self._start = file.tell() if file.seekable() else None
        self._kept: list[bytes] | None = [] if self._start is None else None
        self._whole: BinaryIO | None = None

    def _next(self, size: int) -> bytes:
        block = super()._next(size)
        if self._kept is not None:
            self._kept.append(block)
        return block

    def forget(self) -> None:
        """Drop the kept data: the file is not read again."""
        self._kept = None

    def from_start(self, source: str) -> BinaryIO:
        """Return the file at its first byte. Raises InputError for a pipe with more data than fits into memory."""
        if self._start is not None:
            self._raw.seek(self._start)
            return self._raw
        if self._whole is None:
            kept = self._kept or []
            size = sum(map(len, kept))
            while block := self.read(1 << 20):
                size += len(block)
                if size > _MOST_KEPT:
                    message = f"an archive of more than {_MOST_KEPT >> 20} MiB through a pipe"
                    raise InputError(message, source=source, hint="save it to a file first")
            self._whole = io.BytesIO(b"".join(kept))
            self._kept = None
        self._whole.seek(0)
        return self._whole


# Small inputs as plain dicts: the pod to explain, or a scheduler's configuration.

_DECODER = msgspec.json.Decoder(list[dict[str, object]])


def load_documents(path: str) -> list[tuple[dict[str, object], Place]]:
    """Return the objects of a file, a folder, or standard input ("-"), with their places. Raises InputError."""
    documents: list[tuple[dict[str, object], Place]] = []
    for batch in read(path):
        try:
            objects = batch.decode(_DECODER)
        except msgspec.ValidationError as error:
            raise batch.invalid(error) from None
        documents += zip(objects, batch.places(len(objects)), strict=True)
    return documents
