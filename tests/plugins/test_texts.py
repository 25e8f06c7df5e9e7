"""Every text that a plugin can say of a pod is known to `kschedx reason`."""

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
SAYING = {"error", "unschedulable", "RefusalError", "unresolvable"}
"""Functions that make a status, or what becomes one, of a text; those of a module are `_error` and the like."""
CODES = {"ERROR", "UNSCHEDULABLE", "UNSCHEDULABLE_AND_UNRESOLVABLE"}


def said(module: ModuleType, node: ast.expr) -> Iterator[str]:
    """The text of an expression, with `x` for what it fills in."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            parts = [next(said(module, value), "x") for value in values]
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
                *SAYING,
                "rejected",
                "rejection",
            }:
                yield from said(module, text)
            case ast.Call(func=ast.Name(id="Status"), keywords=keywords):
                for keyword in keywords:
                    if keyword.arg == "reasons" and isinstance(keyword.value, ast.Tuple):
                        for text in keyword.value.elts:
                            yield from said(module, text)
            case ast.Tuple(elts=[*_, ast.Attribute(attr=code), text]) if code in CODES:
                yield from said(module, text)


def modules() -> Iterator[ModuleType]:
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT.parent.parent).with_suffix("").parts)
        yield import_module(name.removesuffix(".__init__"))


@pytest.mark.parametrize("module", [*modules(), preemption], ids=lambda item: item.__name__.partition("plugins.")[2])
def test_every_text_of_a_plugin_is_known(module: ModuleType) -> None:
    # what begins with something that is filled in was made elsewhere
    texts = [text for text in texts_of(module) if not text.startswith("x")]
    assert not [text for text in texts if any(not part.is_known for part in parse(text).parts)]


def test_every_text_that_differs_between_releases_is_known() -> None:
    texts = {str(text) for version in EMULATED for _, text in resolve(version).messages if text}
    assert not [text for text in texts if not all(part.is_known for part in parse(text).parts)]


def test_the_texts_are_found() -> None:
    result = {text for module in modules() for text in texts_of(module)}
    assert {"cannot align container", "Too many pods", "node(s) were unschedulable", "plugin disabled"} <= result
    assert len(result) > 55
