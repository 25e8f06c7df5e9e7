"""How Karpenter runs, as far as its answers depend on it. Upstream: pkg/operator/options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from msgspec import Struct

from kschedx.errors import ConfigError, InputError, nearest


class Settings(Struct, frozen=True, kw_only=True):
    prefers: bool = True
    """--preference-policy=Respect: preferences are demands until nothing else helps."""
    relaxes_min_values: bool = False
    """--min-values-policy=BestEffort."""
    ignores_devices: bool = True
    """--ignore-dra-requests."""

    @classmethod
    def read(cls, written: Sequence[str]) -> Settings:
        """`preference-policy=Ignore` and the like; names may be those of environment variables. The last of several
        counts. Raises `InputError`, and `ConfigError` for a value."""
        read: dict[str, bool] = {}
        for option in written:
            name, equals, value = option.lstrip("-").partition("=")
            if not equals:
                raise InputError(f"--karpenter-flag: {json.dumps(option)} is not NAME=VALUE")
            name = name.lower().replace("_", "-")
            if name not in _FLAGS:
                raise ConfigError(f"--{name} is not a flag of Karpenter that kschedx reads", hint=nearest(name, _FLAGS))
            field, values = _FLAGS[name]
            if value not in values:
                known = " or ".join(values)
                raise ConfigError(f"--{name} of Karpenter cannot be {json.dumps(value)}, but {known}")
            read[field] = values[value]
        return cls(**read)


_FLAGS: Mapping[str, tuple[str, Mapping[str, bool]]] = {
    "preference-policy": ("prefers", {"Respect": True, "Ignore": False}),
    "min-values-policy": ("relaxes_min_values", {"Strict": False, "BestEffort": True}),
    "ignore-dra-requests": ("ignores_devices", {"true": True, "false": False}),
}
"""Flag to the field that it sets, and its values."""
