"""Secrets in the settings: printed and reported settings have none.

Knows where secrets are given; knows nothing of whom they are for.
"""

from pathlib import Path

import pytest

from stream_dedup.settings import REDACTED, SettingsError, load_settings
from stream_dedup.stream.kafka.clients import check_properties
from tests.unit.given_settings import faults_of, toml


@pytest.mark.parametrize(
    "name",
    [
        *("sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem"),
        *("sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "sasl.jaas.config"),
    ],
)
def test_secrets_are_redacted(name: str) -> None:
    """Passwords, secrets and keys are hidden; other properties are shown."""
    settings = load_settings(flags=[f"kafka.{name}=hunter2", "kafka.sasl.username=me"])
    shown = settings.redacted()["kafka"]
    assert (shown[name], shown["sasl.username"]) == (REDACTED, "me")
    assert settings.kafka[name] == "hunter2"


def test_secrets_are_not_in_messages(tmp_path: Path) -> None:
    """They are hidden even if they are in the wrong place or next to a fault."""
    flags = ("sasl.password=hunter2", "kafka.sasl.password=hunter2", "commit.articles=0", "api.tokne=hunter2")
    assert "hunter2" not in faults_of(
        *flags, "kafak.sasl.passwrod=hunter2", "sasl.password:hunter2", "api.token.x=hunter2"
    )
    assert "hunter2" not in faults_of(*flags)
    assert "hunter2" not in faults_of(file=toml(tmp_path, '[input]\npassword = "hunter2"\n[http]\nport = -1\n'))


@pytest.mark.parametrize(
    "name", ["basic.auth.user.info", "ssl.key.password", "bearer.auth.token", "bearer.auth.client.secret", "proxy"]
)
def test_secrets_of_the_registry_are_redacted(name: str) -> None:
    """The registry's secrets are treated like Kafka's; they can come from the environment as well."""
    variable = "STREAM_DEDUP_REGISTRY__" + name.upper().replace(".", "_")
    settings = load_settings(environment={variable: "hunter2"}, flags=["registry.url=http://r:8081"])
    assert settings.registry == {"url": "http://r:8081", name: "hunter2"}
    assert settings.redacted()["registry"] == {"url": "http://r:8081", name: REDACTED}


@pytest.mark.parametrize("url", ["r:8081", "mock://", "http://me:hunter2@r", "http://r, https://me:hunter2@s", ""])
def test_url_of_the_registry_is_one_without_secrets(url: str) -> None:
    """Credentials in the URL would be shown with it, so they are refused, and not repeated in the message."""
    faults = faults_of(f"registry.url={url}")
    assert "registry.url" in faults
    assert "hunter2" not in faults


@pytest.mark.parametrize("token", ["{}\n", " {}", "{} ", "a\nb{}", "\x00{}", "\x7f{}"])
def test_token_that_no_client_can_send_is_refused(token: str) -> None:
    """Such as that of a file that ends with a line break: HTTP trims headers, so it would never be the one sent."""
    told = faults_of(environment={"STREAM_DEDUP_API__TOKEN": token.format("a-token-of-some-length")})
    assert told.startswith("api.token has a control character, or space around it: no client can send that")
    assert "a-token" not in told


def test_token_may_be_any_printable_text() -> None:
    """Spaces inside it and letters other than Latin are sent as they are."""
    for token in ("correct horse battery staple", "一个不短的令牌-0123456789"):
        assert load_settings(environment={"STREAM_DEDUP_API__TOKEN": token}).api.token == token


def test_secrets_are_not_in_what_is_refused() -> None:
    """Neither for misspelt properties nor in librdkafka's own messages."""
    flags = ["sasl.pasword=hunter2", "ssl.key.pem=hunter2", "security.protocol=ssl"]
    with pytest.raises(SettingsError) as told:
        check_properties(load_settings(flags=[f"kafka.{flag}" for flag in flags]))
    assert "kafka.sasl.pasword = [redacted]: " in str(told.value)
    assert "hunter2" not in str(told.value)
