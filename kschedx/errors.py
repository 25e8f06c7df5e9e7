"""The exceptions of kschedx. An answer ("this pod does not fit") is never an exception."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from msgspec import Struct

from kschedx.patterns import lazy_pattern

_LINE_END = lazy_pattern(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def _one_line(text: str) -> str:
    """Return the text with its line ends escaped as `\\n`."""
    return _LINE_END.sub(lambda match: ascii(match[0])[1:-1], text)


class KschedxError(Exception):
    """The base of all exceptions that kschedx raises on purpose; `str()` is one line that a user can act on."""

    def __str__(self) -> str:
        return _one_line(super().__str__())


class Place(Struct, frozen=True, kw_only=True):
    """A place in the input; every part may be unknown. As a context, it completes the place of an error."""

    source: str = ""  # a file, a folder member, or "-" for standard input
    document: int | None = None  # in the source, counted from 1
    line: int | None = None
    object: str = ""  # "Kind namespace/name"
    field: str = ""  # in the API server's form: `spec.containers[0].resources.requests[cpu]`

    def __str__(self) -> str:
        where = "standard input" if self.source == "-" else self.source
        if self.line is not None:
            where += f":{self.line}" if where else f"line {self.line}"
        if self.document is not None and self.line is None:
            where += f" (document {self.document})" if where else f"document {self.document}"
        return ": ".join(part for part in (where, self.object, self.field) if part)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(error, InputError):
            raise error.at(self) from None


class InputError(KschedxError):
    """Input that cannot be used: exit code 2. The message names the place, what was found, and what is allowed."""

    others: tuple[InputError, ...] = ()  # in the same input, one line each
    parts: tuple[InputError, ...] = ()  # the errors that a message in brackets combines

    def __init__(self, message: str, *, place: Place | None = None, source: str = "", hint: str = "") -> None:
        """`source` is short for a place of which only that is known."""
        self.message = message
        self.place = place or Place(source=source)
        self.hint = hint
        super().__init__(message)

    def at(self, place: Place) -> Self:
        """Return the same error, with the unknown parts of its place taken from `place`."""
        mine = self.place
        merged = Place(
            source=mine.source or place.source,
            document=mine.document if mine.document is not None else place.document,
            line=mine.line if mine.line is not None else place.line,
            object=mine.object or place.object,
            field=join_fields(place.field, mine.field),
        )
        error = type(self)(self.message, place=merged, hint=self.hint)
        error.others = tuple(other.at(place) for other in self.others)
        error.parts = tuple(part.at(place) for part in self.parts)
        return error

    @property
    def each(self) -> tuple[InputError, ...]:
        """Each error by itself."""
        return (*(self.parts or (self,)), *(error for other in self.others for error in other.each))

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if str(self.place) else self.message
        return _one_line(f"{text} ({self.hint})" if self.hint else text)


class ConfigError(InputError):
    """A KubeSchedulerConfiguration that kube-scheduler would refuse, or that names something that does not exist."""


class SeveralConfigError(ConfigError):
    """All errors of a configuration, each on its own line."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        super().__init__("; ".join(map(str, errors)), place=errors[0].place)
        self.errors = tuple(errors)

    def at(self, place: Place) -> Self:
        return type(self)([error.at(place) for error in self.errors])

    def __str__(self) -> str:
        return _one_line(self.message)


class NotAdmittedError(InputError):
    """An object that the API server would refuse because of the cluster's objects, in its words: exit code 1."""


class NotChangedError(NotAdmittedError):
    """An update that the API server would refuse; the object stays as it is."""


class UndecidableError(KschedxError):
    """kschedx cannot decide without guessing: exit code 3. The message names what it would need."""


class NotReadError(UndecidableError):
    """A kind was not read, and a pod depends on its objects."""

    def __init__(self, pod: str, unknown: str, because: str, command: str = "") -> None:
        """`unknown` is what the kind would tell: `the priority of high`. `command` makes it known."""
        self.unknown, self.because, self.command = unknown, because, command
        about = f"pod {pod}: " if pod else ""
        super().__init__(f"{about}{unknown} is not known: {because}" + (f" ({command})" if command else ""))


FIELD_PART = lazy_pattern(r"\.?([^.\[\]]+)|\[([^\]]*)\]")  # a part of a field's path: a name, or what is in brackets


def join_fields(parent: str, child: str) -> str:
    """Return the joined field path: `spec` and `containers[0]` become `spec.containers[0]`. An index or key is joined
    without a dot."""
    if not parent or not child:
        return parent or child
    return parent + child if child.startswith("[") else f"{parent}.{child}"


def system_reason(error: OSError) -> str:
    """Return the operating system's reason in lower case: `no such file or directory`."""
    return (error.strerror or "").lower() or str(error)


def closest(name: str, candidates: Iterable[str], least_similarity: float = 0.6) -> str:
    """Return the closest of `candidates`, or an empty string if none is close. The similarity is between 0 and 1; names
    that differ by case alone are the closest."""
    import difflib

    candidates, folded = sorted(set(candidates)), name.casefold()
    if same := next((other for other in candidates if other.casefold() == folded), ""):
        return same
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=least_similarity)
    return close[0] if close else ""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Return a hint `did you mean "x"?` for the closest of `candidates`, or an empty string."""
    close = closest(name, candidates)
    return f'did you mean "{close}"?' if close else ""


def require_one_of(what: str, value: str, allowed: Iterable[str]) -> None:
    """Raise `InputError` if a value is not allowed."""
    values = tuple(map(str, allowed))
    if value not in values:
        raise InputError(f'{what}: found "{value}", allowed are {", ".join(values)}', hint=nearest(value, values))


def differs_by_one_letter(name: str, other: str) -> bool:
    """Return whether the names differ by one missing, added, or mistaken letter, or only by case."""
    if name.casefold() == other.casefold():
        return True
    shorter, longer = sorted((name, other), key=len)
    if len(longer) - len(shorter) > 1:
        return False
    same = next((i for i, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    rest = shorter[same + 1 :] if len(shorter) == len(longer) else shorter[same:]
    return rest == longer[same + 1 :]
