"""Secrets of a URL are masked."""

from __future__ import annotations

import pytest

from kschedx.kube.escaping import Url


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("http://h:1/a/b/", "http://h:1/a/b/"),
        ("http://h:1/a@b", "http://h:1/a@b"),
        ("https://sesame@h", "https://***@h"),
        ("https://me:sesame@[::1]:2/x", "https://***@[::1]:2/x"),
        ("https://h/x?key=sesame&sesame#sesame", "https://h/x?key=***&***#***"),
        ("https://h/x?timeout=10s&timeout=sesame&limit=500", "https://h/x?timeout=10s&timeout=***&limit=500"),
        ("https://me:sesame/1@h", "https://***@h"),
        ("me:sesame@h", "***@h"),
    ],
)
def test_a_url_never_shows_secrets(text: str, masked: str) -> None:
    url = Url(text)
    assert (str(url), repr(url)) == (masked, f"Url({masked!r})")


def test_a_request_has_no_credentials_in_its_url() -> None:
    url = Url("https://me:a%40b@h/x?key=1") / "filter"
    assert (url.without_credentials, url.credentials) == ("https://h/x?key=1/filter", "me:a@b")
