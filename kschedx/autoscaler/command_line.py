"""The autoscaler's flags as its Deployment has them, and as somebody types them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from kschedx.api.autoscaler_command import PROGRAM, Written, flags_of_containers
from kschedx.errors import InputError


def typed(options: Sequence[str]) -> Written:
    """`NAME=VALUE` of `--autoscaler-flag`. Raises `InputError`."""
    found: Written = {}
    for option in options:
        name, equals, value = option.lstrip("-").partition("=")
        if not name:
            raise InputError(f"--autoscaler-flag: {json.dumps(option)} is not NAME=VALUE")
        found.setdefault(name, []).append(value if equals else "true")
    return found


def of_deployments(workloads: Mapping[tuple[str, str, str], bytes]) -> Written | None:
    """The flags of the one Deployment that runs cluster-autoscaler; None where there is none, or several."""
    found = [
        flags
        for (kind, _, _), raw in workloads.items()
        if kind == "Deployment" and PROGRAM.encode() in raw
        for _, flags in flags_of_containers(json.loads(raw))
    ]
    return found[0] if len(found) == 1 else None
