"""What a kubeconfig's files and certificates may be, and what an error about them names."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import pytest

from kschedx.errors import InputError
from kschedx.sources.live.client import Impersonation
from kschedx.sources.live.credentials import client_of
from kschedx.sources.live.kubeconfig import Choice, Named

HERE = "https://127.0.0.1:1"


def choice(cluster: Mapping[str, object], user: Mapping[str, object] | None = None) -> Choice:
    return Choice(
        context="c",
        namespace="default",
        cluster=Named(name="here", fields=cluster, source="config"),
        user=None if user is None else Named(name="me", fields=user, source="config"),
    )


@pytest.mark.parametrize(
    ("cluster", "user", "says"),
    [
        ({"server": "here:6443"}, None, "config: cluster here: server: expected a URL with https://"),
        ({"server": HERE, "certificate-authority": "/no/ca.crt"}, None, "here: certificate-authority: no file"),
        ({"server": HERE, "certificate-authority-data": "%"}, None, "here: certificate-authority-data: not base64"),
        ({"server": HERE}, {"client-certificate": "/no/me.crt"}, 'user me: client-certificate: no file "/no/me.crt"'),
        ({"server": HERE}, {"tokenFile": "/no/token"}, 'config: user me: tokenFile: no file "/no/token"'),
        ({"server": HERE}, {"tokenFile": 7}, "config: user me: tokenFile: not a string"),
        ({"server": HERE}, {"exec": []}, "config: user me: exec: not a mapping"),
        ({"server": HERE}, {"exec": {}}, "config: user me: exec: "),
    ],
)
def test_what_cannot_be_used_is_named_with_file_and_entry(
    cluster: Mapping[str, object], user: Mapping[str, object] | None, says: str
) -> None:
    with pytest.raises(InputError) as caught:
        client_of(choice(cluster, user))
    assert says in str(caught.value)


def test_the_nearest_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    with pytest.raises(InputError) as caught:
        client_of(choice({"server": HERE, "certificate-authority": str(tmp_path / "ca.cert")}))
    assert 'did you mean "ca.crt"?' in str(caught.value)


def test_trusting_anybody_looks_at_no_authority() -> None:
    client = client_of(choice({"server": HERE, "certificate-authority": "/no/ca.crt"}), insecure=True)
    assert client.configuration.verify_ssl is False


def test_data_wins_over_a_file() -> None:
    data = base64.b64encode(b"text").decode()
    cluster = {"server": HERE, "certificate-authority": "/no/ca.crt", "certificate-authority-data": data}
    path = client_of(choice(cluster)).configuration.ssl_ca_cert
    assert Path(str(path)).read_bytes() == b"text"


def test_a_token_wins_over_a_file_and_a_plugin() -> None:
    user = {"token": "mine", "tokenFile": "/no/token", "exec": {"command": "nothing"}}
    settings = client_of(choice({"server": HERE}, user)).configuration.auth_settings()
    assert [setting["value"] for setting in settings.values()] == ["Bearer mine"]


def test_a_user_may_say_whom_to_impersonate() -> None:
    fields = {"as": "jane", "as-groups": ["dev"], "as-uid": "7", "as-user-extra": {"why": ["audit"]}}
    found = Impersonation.of(Named(name="me", fields=fields, source="config"))
    assert found == Impersonation(user="jane", groups=["dev"], uid="7", extra={"why": ["audit"]})
    with pytest.raises(InputError, match="config: user me: impersonation: "):
        Impersonation.of(Named(name="me", fields={"as": 7}, source="config"))
