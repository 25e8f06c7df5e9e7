"""Fuzz targets as functions of bytes: any input gives an answer or a deliberate error.

One process fuzzes a family: the first byte of an input selects the target of the other bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from msgspec import Struct

from tests.fuzz import expressions, files, names, network


class Target(Struct, frozen=True):
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]


FAMILIES: Mapping[str, tuple[Target, ...]] = {
    "files": (
        Target(files.answers, files.answer_seeds),
        Target(files.json_pieces, files.texts),
        Target(files.yaml_readers, files.texts),
        Target(files.configurations, files.configuration_seeds),
        Target(files.archives, files.archive_seeds),
        Target(files.documents, files.document_seeds),
        Target(files.anonymizing, files.answer_seeds),
        Target(files.commands, files.command_seeds),
        Target(files.library, files.library_seeds),
        Target(files.config_maps, files.config_map_seeds),
    ),
    "network": (
        Target(network.kubeconfigs, network.kubeconfig_seeds),
        Target(network.plugin_answers, network.plugin_seeds),
        Target(network.provider_answers, network.provider_seeds),
        Target(network.server_answers, network.server_seeds),
        Target(network.whole_clusters, network.cluster_seeds),
    ),
    "expressions": (
        Target(expressions.selectors, expressions.selector_seeds),
        Target(expressions.anonymous_selectors, expressions.selector_seeds),
        Target(expressions.scalars, expressions.scalar_seeds),
    ),
    "names": (
        Target(names.printed_commands, names.printed_command_seeds),
        *(Target(names.views(form), partial(names.view_seeds, form)) for form in names.FORMS),
        Target(names.requests, names.request_seeds),
    ),
}
TARGETS: Mapping[str, Target] = {target.run.__name__: target for family in FAMILIES.values() for target in family}
ALL = "all"
"""The name of the family of all targets."""


def family_of(name: str) -> tuple[Target, ...]:
    """Return the targets of a family, or none if the name is that of a single target."""
    return tuple(TARGETS.values()) if name == ALL else FAMILIES.get(name, ())


def target_of(name: str) -> Target:
    """Return a target, or a family as one target."""
    family = family_of(name)
    if not family:
        return TARGETS[name]

    def run(data: bytes) -> None:
        family[data[0] % len(family) if data else 0].run(data[1:])

    def seeds() -> Iterator[bytes]:
        for number, target in enumerate(family):
            yield from (bytes([number]) + seed for seed in target.seeds())

    return Target(run, seeds)
