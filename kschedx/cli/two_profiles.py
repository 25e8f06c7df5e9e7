"""The two profiles that `kschedx diff-profiles` compares: how they are named, and under which releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kschedx.cli.question import Question

if TYPE_CHECKING:
    from kschedx.explain.setup import Setup
    from kschedx.snapshot.snapshot import Snapshot


def profiles_and_target(
    arguments: Sequence[str], *, is_range: bool, names_cluster: bool, may_have_target: bool
) -> tuple[list[str], str]:
    """A range of releases needs no second profile. A target comes last.

    Beside a range, a single argument is the profile, unless it reads as a target, or a cluster is named for it.
    """
    from kschedx.cli.target import referred_kind
    from kschedx.errors import InputError

    names = list(arguments)
    most = 1 if is_range else 2
    is_alone = is_range and len(names) == 1 and (names_cluster or referred_kind(names[0]) is not None)
    target = names.pop() if may_have_target and (len(names) > most or is_alone) else ""
    allowed = "--kube-version OLD..NEW goes with one profile or none" if is_range else "A and B are two profiles"
    if len(names) > most or (not is_range and len(names) < most):
        hint = "--all, --all-pending, -l or TARGET say which pods; one profile goes with --kube-version OLD..NEW"
        raise InputError(f"{allowed}, found {len(names)}: {' '.join(names) or 'nothing'}", hint=hint)
    return names, target


class Named(NamedTuple):
    """One of the two profiles, before it is known for which release."""

    name: str
    config: Mapping[str, object] | None
    version: str | None
    """The release that is asked for, else the one that the profile is made for."""


def named(profiles: Sequence[str], kube_version: str | None) -> tuple[Named, Named]:
    """Both with the release of `--kube-version`, which may be a range, else with that which each is made for."""
    from kschedx.cli.named_profiles import DEFAULT, configuration, version_of
    from kschedx.errors import ConfigError

    old, dots, new = (kube_version or "").partition("..")
    if dots and not (old and new):
        raise ConfigError(f'--kube-version: found "{kube_version}", allowed is VERSION or OLD..NEW')
    names = [*profiles, DEFAULT] if not profiles else list(profiles)
    if dots:
        names = [names[0], names[0]]
    versions = (old or None, new or None) if dots else (kube_version, kube_version)
    first, second = (
        Named(name, configuration(name), version or version_of(name))
        for name, version in zip(names, versions, strict=True)
    )
    return first, second


def setups(both: tuple[Named, Named], question: Question, cluster: Snapshot | None) -> tuple[Setup, Setup]:
    """Under the releases that are asked for, else those that the profiles are made for, else the cluster's."""
    from kschedx.cli.named_profiles import placed
    from kschedx.explain.setup import Setup
    from kschedx.explain.which_release import release_to_emulate
    from kschedx.releases import resolve

    own = None if cluster is None else release_to_emulate(cluster, None)

    def setup(one: Named) -> Setup:
        with placed(one.name):
            return Setup.of(
                one.name,
                one.config,
                resolve(one.version or own, question.gates),
                question.ask,
                without_unknown_plugins=question.without_unknown_plugins,
            )

    first, second = map(setup, both)
    return first, second
