"""`kschedx reason` knows every text of a plugin."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import kschedx.plugins
from kschedx.explain.events import parse
from kschedx.framework import preemption
from kschedx.releases import EMULATED, resolve

ROOT = Path(kschedx.plugins.__file__).parent
STATUS_FUNCTIONS = {"error", "unschedulable", "RefusalError", "unresolvable"}
"""Functions that turn a text into a status; a module may prefix them with `_`."""
CODES = {"ERROR", "UNSCHEDULABLE", "UNSCHEDULABLE_AND_UNRESOLVABLE"}


def texts_in(module: ModuleType, node: ast.expr) -> Iterator[str]:
    """Yield the text of an expression, with `x` for each inserted value."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            parts = [next(texts_in(module, value), "x") for value in values]
            yield "".join(parts)
        case ast.FormattedValue(value=ast.Name(id=name)) if name.lstrip("_").isupper():
            yield str(getattr(module, name))
        case ast.Name(id=name) if name.lstrip("_").isupper() and isinstance(getattr(module, name, None), str):
            yield getattr(module, name)


def texts_of(module: ModuleType) -> Iterator[str]:
    yield from (
        text for name, text in vars(module).items() if name.lstrip("_").startswith("REASON") and isinstance(text, str)
    )
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[text, *_]) if name.lstrip("_") in {
                *STATUS_FUNCTIONS,
                "rejected",
                "rejection",
            }:
                yield from texts_in(module, text)
            case ast.Call(func=ast.Name(id="Status"), keywords=keywords):
                for keyword in keywords:
                    if keyword.arg == "reasons" and isinstance(keyword.value, ast.Tuple):
                        for text in keyword.value.elts:
                            yield from texts_in(module, text)
            case ast.Tuple(elts=[*_, ast.Attribute(attr=code), text]) if code in CODES:
                yield from texts_in(module, text)


def modules() -> Iterator[ModuleType]:
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT.parent.parent).with_suffix("").parts)
        yield import_module(name.removesuffix(".__init__"))


@pytest.mark.parametrize("module", [*modules(), preemption], ids=lambda item: item.__name__.partition("plugins.")[2])
def test_reason_knows_every_text_of_a_plugin(module: ModuleType) -> None:
    # a text that begins with an inserted value comes from elsewhere
    texts = [text for text in texts_of(module) if not text.startswith("x")]
    assert not [text for text in texts if any(not part.is_known for part in parse(text).parts)]


def test_reason_knows_every_text_of_every_version() -> None:
    texts = {str(text) for version in EMULATED for _, text in resolve(version).messages if text}
    assert not [text for text in texts if not all(part.is_known for part in parse(text).parts)]


def test_texts_of_plugins_are_collected() -> None:
    result = {text for module in modules() for text in texts_of(module)}
    assert {"cannot align container", "Too many pods", "node(s) were unschedulable", "plugin disabled"} <= result
    assert len(result) > 55
