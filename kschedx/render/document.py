"""The Explanation document as JSON and YAML."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kschedx.api.hidden import json_escaped


def to_json(document: Mapping[str, object]) -> str:
    """Indented by four, as kubectl prints it; characters that a terminal would obey or hide are escaped."""
    return json_escaped(msgspec.json.format(msgspec.json.encode(document), indent=4).decode())


def to_yaml(document: Mapping[str, object]) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(document, Dumper=dumper, sort_keys=False, default_flow_style=False, allow_unicode=False)
    return text
