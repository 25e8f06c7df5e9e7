"""A page as one HTML file."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

import msgspec

from kschedx.kube.escaping import json_escaped
from kschedx.render.page.model import Page

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="kschedx">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#sections">Skip to the tables</a>
<header id="head"><h1 class="{tone}">{headline}</h1></header>
<main id="sections"></main>
<section aria-label="As text"><details id="screen" open><summary>As text</summary>
<pre tabindex="0">{screen}</pre></details></section>
<footer>{footer}</footer>
<script type="application/json" id="page">{data}</script>
<script>{script}</script>
</body>
</html>
"""

_POLICY = (
    "default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'; "
    "frame-src 'none'; connect-src 'none'"
)


def html(page: Page) -> str:
    """The file's text. Nothing on the page can become markup or script: its policy allows only the file's own."""
    style, script = _asset("page.css"), _asset("page.js")
    data = _embed_json(page)
    digest = sha256(data.encode()).hexdigest()[:16]
    cited = (*page.footer, ("page sha256", digest))
    footer = "".join(f"<span><b>{escape(label)}</b> {escape(phrase)}</span>" for label, phrase in cited)
    return _PAGE.format(
        policy=_POLICY.format(style=_hash(style), script=_hash(script)),
        title=escape(page.title),
        tone=page.head.tone.value,
        headline=escape(page.head.headline),
        footer=footer,
        screen=escape(page.screen),
        data=data,
        style=style,
        script=script,
    )


@cache
def _asset(name: str) -> str:
    return files("kschedx.render.page").joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


def _embed_json(page: Page) -> str:
    """Return JSON that cannot end the element that contains it, and has nothing that hides text or that a log
    interprets."""
    document = msgspec.to_builtins(page)
    for section in document["sections"]:
        if section["kind"] == "items":  # thousands of rows share facts: each is stored once, and no empty value
            places: dict[tuple[str, str], int] = {}
            for detail in section["details"]:
                detail["facts"] = [places.setdefault(tuple(fact), len(places)) for fact in detail["facts"]]
            section["details"] = [{key: value for key, value in it.items() if value} for it in section["details"]]
            section["facts"] = list(places)
    text = json_escaped(msgspec.json.encode(document).decode())
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
