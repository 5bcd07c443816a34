"""The example settings in config/README.md."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from stream_dedup.settings import load_settings
from stream_dedup.stream.formats import Formats
from stream_dedup.stream.kafka.clients import check_properties
from tests.settings_page import BEGIN, PAGE

_FOLDER, _FAR = "/etc/stream-dedup", "https://login.example"
_EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8").partition(BEGIN)[0], re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the certificates that the examples refer to."""
    path, now = tmp_path_factory.mktemp("certificates"), datetime.now(UTC)
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(1))
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for name_of_file, content in (("ca.pem", certificate), ("client.pem", certificate), ("client.key", private)):
        (path / name_of_file).write_bytes(content)
    return path


@pytest.mark.parametrize("example", _EXAMPLES)
def test_examples_are_settings_that_the_clients_take(example: str, folder: Path, tmp_path: Path) -> None:
    """Each example is a valid settings file by itself, with secrets from the environment."""
    file = tmp_path / "example.toml"
    file.write_text(example.replace(_FOLDER, str(folder)).replace(_FAR, "http://127.0.0.1:1"), encoding="utf-8")
    secrets = {
        "STREAM_DEDUP_KAFKA__SASL_PASSWORD": "hunter2",
        "STREAM_DEDUP_KAFKA__SASL_OAUTHBEARER_CLIENT_SECRET": "hunter2",
        "STREAM_DEDUP_REGISTRY__BASIC_AUTH_USER_INFO": "me:hunter2",
    }
    settings = load_settings(file, secrets)
    check_properties(settings)
    assert Formats(settings).decoder()
    assert "hunter2" not in str(settings.redacted())


def test_examples_are_found() -> None:
    """They include TLS and SASL in all forms, formats and events."""
    whole = "".join(_EXAMPLES)
    for part in ("SCRAM-SHA-512", "PLAIN", "OAUTHBEARER", "ssl.key.location", "[registry]", "cloudevents"):
        assert part in whole
