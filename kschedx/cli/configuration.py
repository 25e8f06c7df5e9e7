"""The file named with --config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kschedx.errors import ConfigError, Place
from kschedx.sources.text import load_documents

KIND = "KubeSchedulerConfiguration"
POLICY = "Policy"
"""What schedulers before the framework are configured with."""


def read_configuration(path: str) -> dict[str, object]:
    """The one KubeSchedulerConfiguration of a file. Raises `InputError`."""
    document, place = read_document(path)
    for field in zero_weights(document):
        # kube-scheduler takes an explicit 0 for 1 without a word, which is hardly what the author means
        hint = "leave it out for 1; to take a plugin's score out, disable it"
        raise ConfigError("a weight of zero does not exist", place=Place(field=field), hint=hint).at(place)
    return document


def read_document(path: str) -> tuple[dict[str, object], Place]:
    """The same with its place, whatever its weights are."""
    documents = load_documents(path)
    found = [(document, place) for document, place in documents if document.get("kind") in (KIND, POLICY)]
    if len(found) != 1:
        kinds = ", ".join(sorted({str(document.get("kind") or "nothing") for document, _ in documents})) or "nothing"
        raise ConfigError(f"expected one {KIND}, found {kinds}", place=Place(source=path))
    return found[0]


def zero_weights(document: Mapping[str, object]) -> Iterator[str]:
    """Field paths of the weights that are written as 0; what does not have the expected shape is left to others."""
    for i, profile in enumerate(_list(document.get("profiles"))):
        plugins = _map(_map(profile).get("plugins"))
        for point in ("score", "multiPoint"):
            for j, entry in enumerate(_list(_map(plugins.get(point)).get("enabled"))):
                if "weight" in _map(entry) and _map(entry)["weight"] == 0:
                    yield f"profiles[{i}].plugins.{point}.enabled[{j}].weight"


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
