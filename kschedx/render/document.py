"""The Explanation document as JSON and YAML."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


def to_json(document: Mapping[str, object]) -> str:
    """Indented by four, as kubectl prints it; characters that a terminal would obey are escaped."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=4).decode()
    return "".join(_escaped(c) for c in text) if any(_is_control(c) for c in text) else text


def to_yaml(document: Mapping[str, object]) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(document, Dumper=dumper, sort_keys=False, default_flow_style=False, allow_unicode=False)
    return text


def _is_control(character: str) -> bool:
    return character == "\x7f" or "\x80" <= character <= "\x9f"


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04x}" if _is_control(character) else character
