"""The scheduler's configuration in its usual places: a file of its own, a ConfigMap, or a scheduler's manifests."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import ConfigError, InputError, Place, SeveralConfigError
from kschedx.kube.decoding import list_at, map_at
from kschedx.sources import yaml as yaml_text
from kschedx.sources.files import STDIN, load_documents
from kschedx.sources.line_numbers import line_of

_KIND = "KubeSchedulerConfiguration"
_POLICY = "Policy"  # the kind of the configuration of schedulers before the framework

_Json = Mapping[str, object]


_MOST_BYTES = 4 << 20  # the maximum size in bytes of a file that is searched although it holds no objects


class _WrittenConfiguration(Struct, frozen=True, kw_only=True):
    document: _Json
    place: Place
    config_map: str = ""
    key: str = ""
    below: str = ""  # the field of its document that holds it; empty if it is the document


def read_configuration(path: str) -> dict[str, object]:
    """Return the only configuration in a file, a folder, or standard input. Raises `InputError`."""
    configuration = find_configuration(path)
    # kube-scheduler silently treats an explicit 0 as 1, which the author hardly intends
    hint = "omit it for 1; to ignore a plugin's score, disable the plugin"
    wrong = [
        _with_line(ConfigError("a weight of zero does not exist", place=Place(field=field), hint=hint), configuration)
        for field in zero_weights(configuration.document)
    ]
    if wrong:
        raise wrong[0] if len(wrong) == 1 else SeveralConfigError(wrong)
    return dict(configuration.document)


def find_configuration(path: str) -> _WrittenConfiguration:
    """Return the only configuration with its place; weights are not checked.

    Of several configurations, the one counts that a scheduler in the same manifests mounts and names with --config.
    """
    try:
        documents = load_documents(path)
    except InputError:
        documents = _without_kinds(path)
        if not any(
            True for document, place in documents for _ in (*_configurations(document, place), *_config_files(document))
        ):
            raise
    configurations = [item for document, place in documents for item in _configurations(document, place)]
    if len(configurations) > 1:
        named = set(_mounted_config_maps(document for document, _ in documents))
        configurations = [item for item in configurations if (item.config_map, item.key) in named] or configurations
    if not configurations:
        kinds = ", ".join(sorted({str(document.get("kind") or "nothing") for document, _ in documents})) or "nothing"
        elsewhere = next((file for document, _ in documents for file in _config_files(document)), "")
        hint = f"kube-scheduler is started with --config={elsewhere} there: pass that file" if elsewhere else ""
        raise ConfigError(f"expected one {_KIND}, found {kinds}", source=path, hint=hint)
    if len(configurations) > 1:
        where = "; ".join(str(configuration.place) for configuration in configurations)
        hint = "put the intended one in its own file"
        raise ConfigError(f"expected one {_KIND}, found {len(configurations)}: {where}", source=path, hint=hint)
    return configurations[0]


def placed_error(error: ConfigError, path: str) -> ConfigError:
    """Return an error about fields of the file's configuration, each with its line if that can be found."""
    written = _WrittenConfiguration(document={}, place=Place(source=path))
    if path != STDIN:
        with suppress(InputError):  # the file was read before, but may have been deleted since
            written = find_configuration(path)
    if isinstance(error, SeveralConfigError):
        return SeveralConfigError([_with_line(config_error, written) for config_error in error.errors])
    return _with_line(error, written)


def _with_line(error: ConfigError, written: _WrittenConfiguration) -> ConfigError:
    if not error.place.field:
        return error
    place = written.place
    line = line_of(error.place.field, place, below=written.below)
    return error.at(Place(line=line)).at(replace(place, document=None) if written.below else place)


def zero_weights(document: _Json) -> Iterator[str]:
    """Yield the field paths of weights that are explicitly 0. Values of an unexpected type are skipped."""
    for i, profile in enumerate(list_at(document, "profiles")):
        plugins = map_at(profile, "plugins")
        for point in ("score", "multiPoint"):
            for j, entry in enumerate(list_at(plugins, point, "enabled")):
                if "weight" in map_at(entry) and map_at(entry)["weight"] == 0:
                    yield f"profiles[{i}].plugins.{point}.enabled[{j}].weight"


# --- places of configurations


def _configurations(document: _Json, place: Place) -> Iterator[_WrittenConfiguration]:
    if _is_configuration(document):
        yield _WrittenConfiguration(document=document, place=place)
        return
    kind = document.get("kind")
    if kind not in ("ConfigMap", "Secret"):
        yield from _nested_configurations(document, "", place)
        return
    metadata = map_at(document, "metadata")
    name = str(metadata.get("name") or "")
    # the encoded data of a Secret is not read
    for key, text in map_at(document.get("data" if kind == "ConfigMap" else "stringData")).items():
        if not isinstance(text, str) or not (_KIND in text or f"kind: {_POLICY}" in text or f'"{_POLICY}"' in text):
            continue
        inside = replace(place, object=f"{kind} {name}[{key}]")
        below = f"{'data' if kind == 'ConfigMap' else 'stringData'}[{key}]"
        for value in _parse(text, inside):
            if _is_configuration(value):
                yield _WrittenConfiguration(document=value, place=inside, config_map=name, key=key, below=below)


def _nested_configurations(value: object, path: str, place: Place) -> Iterator[_WrittenConfiguration]:
    """Yield configurations in documents that are no Kubernetes objects, such as a chart's values or a tool's
    description of a cluster."""
    inside = replace(place, object=path)
    if isinstance(value, dict):
        if path and _is_configuration(value):
            yield _WrittenConfiguration(document=value, place=inside, below=path)
            return
        for key, item in value.items():
            yield from _nested_configurations(item, f"{path}.{key}" if path else str(key), place)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nested_configurations(item, f"{path}[{index}]", place)
    elif isinstance(value, str) and f"kind: {_KIND}" in value:
        held = (item for item in _parse(value, inside) if _is_configuration(item))
        yield from (_WrittenConfiguration(document=item, place=inside, below=path) for item in held)


def _without_kinds(path: str) -> list[tuple[dict[str, object], Place]]:
    """Return the documents of a file without Kubernetes objects; empty if it is no YAML either."""
    documents: list[tuple[dict[str, object], Place]] = []
    with suppress(InputError, OSError):
        if path != STDIN and Path(path).is_file() and Path(path).stat().st_size <= _MOST_BYTES:
            documents.extend(
                (dict(document.value), Place(source=path, document=document.number))
                for document in yaml_text.load_all(Path(path).read_bytes(), source=path)
                if isinstance(document.value, dict)
            )
    return documents


def _config_files(value: object) -> Iterator[str]:
    """Yield the files that a scheduler gets with --config: in a container's arguments, and in those of kubeadm and k3s.
    Strings that hold YAML are searched too, as kind and Cluster API use them."""
    if isinstance(value, str) and "scheduler" in value and "\n" in value:
        with suppress(InputError):
            for document in _parse(value, Place()):
                yield from _config_files(document)
    if isinstance(value, list):
        for item in value:
            yield from _config_files(item)
    if not isinstance(value, dict):
        return
    words = [*list_at(value, "command"), *list_at(value, "args")]
    if any("kube-scheduler" in str(word) for word in words) and (file := config_flag(words)):
        yield file
    extra = map_at(value, "scheduler").get("extraArgs")
    named = {str(map_at(item).get("name")): map_at(item).get("value") for item in list_at(extra)}
    named.update(map_at(extra))
    of_k3s = [str(word) for word in list_at(value, "kube-scheduler-arg")]
    of_k3s = [word.removeprefix("config=") for word in of_k3s if word.startswith("config=")]
    yield from (str(file) for file in (named.get("config"), *of_k3s) if file)
    for item in value.values():
        yield from _config_files(item)


def _parse(text: str, place: Place) -> Iterator[_Json]:
    """Yield the documents in a ConfigMap's value. Lines are those of the value."""
    try:
        for document in yaml_text.load_all(text.encode(), source=""):
            if isinstance(document.value, dict):
                yield document.value
    except InputError as error:
        raise ConfigError(error.message, place=error.place, hint=error.hint).at(place) from None


def _is_configuration(document: _Json) -> bool:
    """Whether the document is a scheduler's configuration. A Policy with an API group belongs to another project."""
    version = str(document.get("apiVersion") or "")
    kind = document.get("kind")
    return kind == _KIND or (kind == _POLICY and "/" not in version)


def _mounted_config_maps(documents: Iterable[_Json]) -> Iterator[tuple[str, str]]:
    """Yield ConfigMap and key of the files that containers get with --config."""
    for document in documents:
        for spec in _pod_specs(document):
            volumes = {str(map_at(volume).get("name")): map_at(volume) for volume in list_at(spec, "volumes")}
            for container in map(map_at, list_at(spec, "containers")):
                path = config_flag([*list_at(container, "command"), *list_at(container, "args")])
                for mount in map(map_at, list_at(container, "volumeMounts")):
                    volume = volumes.get(str(mount.get("name")), {})
                    source = map_at(volume.get("configMap") or volume.get("secret"))
                    key = _key(path, mount, source)
                    if key:
                        yield str(source.get("name") or source.get("secretName")), key


def _pod_specs(document: _Json) -> Iterator[_Json]:
    spec = map_at(document, "spec")
    if document.get("kind") == "Pod":
        yield spec
    elif "template" in spec:
        yield map_at(spec, "template", "spec")


def config_flag(arguments: Sequence[object]) -> str:
    """Return the value of `--config=value` or `--config value`, also within the single argument of a shell."""
    words = [word.strip("\"'") for argument in arguments for word in str(argument).split()]
    for word, after in pairwise([*words, ""]):
        if word == "--config":
            return after
        if word.startswith("--config="):
            return word.removeprefix("--config=").strip("\"'")
    return ""


def _key(path: str, mount: _Json, source: _Json) -> str:
    """Return the key of a ConfigMap to which a path leads through a mount; empty if it leads elsewhere."""
    if not path or not source:
        return ""
    root, sub = str(mount.get("mountPath") or ""), str(mount.get("subPath") or "")
    inside = (
        sub if sub and posixpath.normpath(path) == posixpath.normpath(root) else posixpath.relpath(path, root or "/")
    )
    items = {str(map_at(item).get("path")): str(map_at(item).get("key")) for item in list_at(source, "items")}
    return "" if inside.startswith("..") else items.get(inside, inside if not items else "")
