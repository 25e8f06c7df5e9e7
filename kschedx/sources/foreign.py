"""Files of other tools: what they look like, so that the error can say so."""

from __future__ import annotations

import re

_MAGIC = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "an image"),
    (b"SQLite format 3", "an SQLite database"),
    (b"k8s\x00", "Kubernetes protobuf"),
)
_TEXT = (
    (re.compile(rb"\A(?:\s*+#.*+\n)*+\s*+(?:FROM|ARG)\s+\S", re.ASCII), "a Dockerfile"),
    (re.compile(rb"\A#!"), "a script"),
    (re.compile(rb"\A\s*+<[!?a-zA-Z]"), "XML or HTML"),
    (re.compile(rb"\A-----BEGIN "), "a key or certificate"),
    (re.compile(rb"\A\s*+(?:(?:terraform|resource|provider|variable|module)\b[^\n:]*\{)"), "a Terraform file"),
    (re.compile(rb"\A(?:NAME|NAMESPACE|LAST SEEN) {2,}[A-Z]"), "a table printed by kubectl without -o yaml"),
    (
        re.compile(rb"\AName: {2,}+.*+\n"),
        "the output of `kubectl describe`, not of `get -o yaml`",
    ),
    (re.compile(rb"\A(?:error: |Error from server|Unable to connect to the server)"), "an error of kubectl"),
    (re.compile(rb"^services:[ \t\r]*+$", re.MULTILINE), "a Docker Compose file"),
    (re.compile(rb"\A(?:\s*+[#;].*+\n)*+\s*+\[[\w.\" -]++\][ \t\r]*+\n\s*+[\w.-]++ *="), "a TOML or INI file"),
)
_TEMPLATE = re.compile(rb"\{\{-?\s*(?:[.$(\"/]|(?:if|end|else|range|with|include|template|define|toYaml)\b)")

_OTHER_TEMPLATE = re.compile(rb"\{\{-?\s*\w|\{%-?\s*\w")
_VARIABLE = re.compile(r"\$\{\w")

_HEAD = 64 << 10
"""Bytes of a text that are looked at; the patterns take each of them once, whatever they are."""

TEMPLATE = "looks like a template"
HELM_TEMPLATE = "looks like a template of a Helm chart"
FILL_IN = "fill in its variables first, as with `envsubst`"
ALLOWED = "allowed are Kubernetes objects in YAML or JSON"


def binary(head: bytes) -> str:
    """What data looks like that cannot be YAML or JSON; empty if it may be. `head`: the first 512 bytes or more."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[257:262] == b"ustar":
        return "a tar archive"
    return "binary data" if b"\0" in head else ""


def text(content: bytes) -> str:
    """What a text looks like that is no manifest; empty if unknown."""
    head = content[:_HEAD]
    return next((name for pattern, name in _TEXT if pattern.search(head)), "")


def template(content: bytes) -> tuple[str, str, int] | None:
    """What to call a template, of a Helm chart or any other; what to do with it; the first line that makes it one."""
    for pattern, message, hint in (
        (_TEMPLATE, HELM_TEMPLATE, "render it first, with `helm template`"),
        (_OTHER_TEMPLATE, TEMPLATE, "render it first"),
    ):
        if match := pattern.search(content):
            return message, hint, content.count(b"\n", 0, match.start()) + 1
    return None


def variables_hint(found: str) -> str:
    """What to do about a value that cannot be, where a variable in it was not filled in."""
    return FILL_IN if _VARIABLE.search(found) and FILL_IN not in found else ""
