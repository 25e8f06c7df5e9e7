"""A loaded configuration: what the runtime reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct

from kschedx.errors import ConfigError, is_a_letter_away
from kschedx.framework.args import InTreeArgs, PluginArgs
from kschedx.framework.config.document import Extender
from kschedx.framework.config.refusals import shown

A = TypeVar("A", bound=InTreeArgs)


class Profile(Struct, frozen=True, kw_only=True):
    """How pods of one `spec.schedulerName` are scheduled."""

    scheduler_name: str
    percentage_of_nodes_to_score: int
    """The profile's own value, else the configuration's; 0 lets the size of the cluster decide."""
    points: Mapping[str, tuple[str, ...]]
    """Every extension point of `releases.POINTS` to its plugins in the order in which they run."""
    enabled: Mapping[str, tuple[str, ...]]
    """The same with the plugins that kschedx does not have, and `multiPoint` with those of which it does not even know
    the points."""
    weights: Mapping[str, int]
    """Every score plugin that is enabled anywhere to its weight, never 0; `points["score"]` says which of them run."""
    args: Mapping[str, PluginArgs]
    """Plugin to its arguments, defaulted and validated; a plugin that has none is left out."""
    unknown: Mapping[str, tuple[str, ...]] = {}
    """Plugins that are enabled and that kschedx does not have, to where they are: extension points, or `multiPoint`,
    which may be any of them. They are not in `points`."""

    def args_of(self, kind: type[A]) -> A:
        """The arguments of the in-tree plugin that takes `kind`; a KeyError where the profile lacks the plugin."""
        args = self.args[kind.__name__.removesuffix("Args")]
        assert isinstance(args, kind)
        return args


class SchedulerConfig(Struct, frozen=True, kw_only=True):
    profiles: tuple[Profile, ...]
    percentage_of_nodes_to_score: int
    parallelism: int
    extenders: tuple[Extender, ...]
    """As configured; `framework.extended_by` says in which order they are called."""
    without_unknown_plugins: bool = False
    """Whoever asks answers for it that no plugin which kschedx does not have would decide otherwise."""

    def profile_for(self, scheduler_name: str) -> Profile:
        """The profile for a pod's `spec.schedulerName`; ConfigError where none has the name."""
        for profile in self.profiles:
            if profile.scheduler_name == scheduler_name:
                return profile
        known = [profile.scheduler_name for profile in self.profiles]
        ways = (
            f"another scheduler decides about such pods: --profile {known[0]} answers as if it were that profile's, "
            "--config gives a configuration that has the profile"
        )
        near = next((name for name in known if is_a_letter_away(scheduler_name, name)), None)
        hint = f'did you mean "{near}"?' if near else ways
        raise ConfigError(f"profile not found for scheduler name {shown(scheduler_name)}", hint=hint)
