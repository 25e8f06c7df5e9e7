"""The profiles that come with kschedx, by name: `profiles/` in a checkout, `kschedx/_profiles` when installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from kschedx.cli.streams import print_note_if_file
from kschedx.errors import ConfigError, InputError, nearest
from kschedx.sources.configurations import find_configuration, placed_error, read_configuration, zero_weights

DEFAULT = "default"
"""The default profile of the emulated version."""

POLICIES = {"policy-1.13": "1.13", "policy-1.0": "1.5"}
"""Policy files to their versions; 1.5 evaluates them as 1.0 did."""

PACKAGE = Path(__file__).resolve().parent.parent

INSTALLED = "_profiles"
"""The folder of the profiles in the installed package."""


class NamedProfile(Struct, frozen=True, kw_only=True):
    name: str
    purpose: str
    """The first sentence of the comment at the start of the file."""
    path: Path


def folder() -> Path:
    installed = PACKAGE / INSTALLED
    return installed if installed.is_dir() else PACKAGE.parent / "profiles"


def names() -> list[str]:
    """Return every name that `find` accepts."""
    return [DEFAULT, *sorted(path.stem for path in folder().glob("*.yaml"))]


def named_profiles() -> list[NamedProfile]:
    """Return the profiles by name; the defaults of versions are last, the newest first."""
    profiles = [
        NamedProfile(name=path.stem, purpose=_purpose(path), path=path) for path in sorted(folder().glob("*.yaml"))
    ]
    return sorted(profiles, key=lambda profile: _order(profile.name))


def find(name: str) -> Path | None:
    """Return the file of a profile by its name, or the given file; None for the version's default. A file with the name
    of a profile gets a note.

    Raises `InputError` with the nearest name.
    """
    if name in names():
        print_note_if_file(name)
        return None if name == DEFAULT else folder() / f"{name}.yaml"
    if name == "-" or Path(name).exists() or name.endswith((".yaml", ".yml", ".json")):
        return Path(name)
    known = names()
    raise InputError(
        f'no profile "{name}", and no file of that name', hint=nearest(name, known) or f"known: {', '.join(known)}"
    )


def configuration(name: str) -> Mapping[str, object] | None:
    """Return the KubeSchedulerConfiguration of a name or file; None for the version's default."""
    path = find(name)
    return None if path is None else read_configuration(str(path))


def with_zero_weights(name: str) -> tuple[Mapping[str, object] | None, list[str]]:
    """Return the configuration, and the field paths of weights that are 0, which `configuration` refuses."""
    path = find(name)
    if path is None:
        return None, []
    document = find_configuration(str(path)).document
    return document, list(zero_weights(document))


def version_of(name: str) -> str | None:
    """Return the version of a profile: `default-1.30` is the default of 1.30, and old versions read a Policy."""
    if name in POLICIES:
        return POLICIES[name]
    version = name.removeprefix(f"{DEFAULT}-")
    return version if version != name and name in names() else None


@contextmanager
def placed(name: str) -> Iterator[None]:
    """Add the file and the line to errors about a field of the configuration."""
    try:
        yield
    except ConfigError as error:
        path = find(name)
        raise (placed_error(error, str(path)) if path is not None and error.place.field else error) from None


def _purpose(path: Path) -> str:
    words: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        words.append(line.removeprefix("#").strip())
    return " ".join(words).partition(". ")[0].rstrip(".")


def _order(name: str) -> tuple[bool, list[int], str]:
    version = name.removeprefix("default-")
    is_default = version != name
    return is_default, [-int(part) for part in version.split(".")] if is_default else [], name
