"""URLs as Go reads them; the texts are those of kube-scheduler 1.36.2."""

from __future__ import annotations

import pytest

from kschedx.extenders.urls import URLError, joined, parsed

BASE = "http://me:secret@gpu.example:8080/a/filter?x=y"
LOCATIONS = [
    ("/done", "http://me:***@gpu.example:8080/done"),
    ("done", "http://me:***@gpu.example:8080/a/done"),
    ("../b/./done", "http://me:***@gpu.example:8080/b/done"),
    ("/done/.", "http://me:***@gpu.example:8080/done/"),
    ("/a//../b", "http://me:***@gpu.example:8080/a/b"),
    ("?q", "http://me:***@gpu.example:8080/a/filter?q"),
    ("#f", "http://me:***@gpu.example:8080/a/filter?x=y#f"),
    ("//other.example/done", "http://other.example/done"),
    ("HTTPS://other.example", "https://other.example"),
    ("http:///done", "http:///done"),
    ("http:/done", "http:/done"),
    ("mailto:x", "mailto:x"),
    ('/d "o<n>|e', "http://me:***@gpu.example:8080/d%20%22o%3Cn%3E%7Ce"),
    ("/%41/+;=", "http://me:***@gpu.example:8080/%41/+;="),
    ("/\udce9", "http://me:***@gpu.example:8080/%E9"),
]


@pytest.mark.parametrize(("location", "leads"), LOCATIONS)
def test_where_a_redirect_leads(location: str, leads: str) -> None:
    assert str(joined(parsed(BASE), location)) == leads


REFUSED = [
    ("http://[::1", "missing ']' in host"),
    ("http://x[::1]", "invalid IP-literal"),
    ("http://[1.2.3.4]", "invalid IP-literal"),
    ("http://127.0.0.1:abc/", 'invalid port ":abc" after host'),
    ("http://1:2:3/", 'invalid port ":2:3" after host'),
    ("http://a b/", 'invalid character " " in host name'),
    ("http://x/%zz", 'invalid URL escape "%zz"'),
    ("http://a b@x/", "net/url: invalid userinfo"),
    ("http://x/\x01", "net/url: invalid control character in URL"),
    (":x", "missing protocol scheme"),
    ("1http://x", "first path segment in URL cannot contain colon"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_what_is_no_url(text: str, words: str) -> None:
    with pytest.raises(URLError) as refused:
        parsed(text)
    assert str(refused.value).partition('": ')[2] == words
