"""TLS and SASL on a real broker: the service works through them, and says at once if it is not let in.

Certificates and passwords are made here; the broker's other listener, without either, is for the test itself.
"""

import ipaddress
import json
import re
import shutil
import threading
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, though its types do not say so
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from deploy.broker import KafkaBroker
from deploy.demo.samples.corpus import Form, base_texts
from tests.stream.messages import article, produce
from tests.stream.records import collect
from tests.stream.rights import enforce
from tests.stream.service import Service
from tests.stream.topics import ADMIN_SECONDS, Topics, fresh_topics

pytestmark = pytest.mark.usefixtures("compiled")

_TEXT = next(text.body for text in base_texts() if text.form is Form.NEWS)
_PASSWORD = "right-pass-phrase"  # noqa: S105  # used only for this broker
_WRONG = "wrong-pass-phrase"
_KAFKA = "org.apache.kafka.common.security"
_LOGINS = {
    "plain": f'{_KAFKA}.plain.PlainLoginModule required user_alice="{_PASSWORD}" user_bob="{_PASSWORD}";',
    "scram-sha-512": f"{_KAFKA}.scram.ScramLoginModule required;",
    "oauthbearer": f'{_KAFKA}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
}
_MECHANISMS: dict[str, dict[str, str]] = {
    "PLAIN": {"sasl.username": "alice"},
    "SCRAM-SHA-512": {"sasl.username": "alice"},
    # Unsigned tokens, which Kafka accepts unless another validator is set: enough to see that tokens arrive.
    "OAUTHBEARER": {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=alice"},
}


@dataclass(frozen=True, slots=True)
class _Secured:
    """A broker with TLS and SASL.

    Attributes:
        open: address without either.
        address: address with both.
        authority: file of the certificate that signed the broker's.
        stranger: file of an unrelated certificate.
    """

    open: str
    address: str
    authority: Path
    stranger: Path

    def flags(self, mechanism: str, **changes: str) -> list[str]:
        """Return the settings with which a service connects there."""
        properties = {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority),
            "sasl.mechanism": mechanism,
            **_MECHANISMS[mechanism],
            **changes,
        }
        return [f"kafka.{name}={value}" for name, value in properties.items()]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Secured]:
    """Run such a broker."""
    folder = tmp_path_factory.mktemp("certificates")
    authority, stranger = _Authority("broker's authority"), _Authority("a stranger")
    for one, name in ((authority, "authority"), (stranger, "stranger")):
        (folder / f"{name}.pem").write_bytes(one.certificate())
    (folder / "broker.pem").write_bytes(authority.signed("broker"))
    properties: Mapping[str, str | int] = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "sasl.enabled.mechanisms": ",".join(_MECHANISMS),
        **{f"{name}.sasl.jaas.config": login for name, login in _LOGINS.items()},
    }
    rights = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",  # everyone but bob
    }
    with KafkaBroker(rights, secured=properties) as broker:
        _add_alice(broker.bootstrap)
        yield _Secured(broker.bootstrap, broker.secured_address, folder / "authority.pem", folder / "stranger.pem")


def _add_alice(bootstrap: str) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion("alice", info, _PASSWORD.encode())]
    ).values():
        future.result(ADMIN_SECONDS)


class _Authority:
    """Signs certificates."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        builder = self._builder(self._name, self._key.public_key())
        self._certificate = builder.add_extension(constraints, critical=True).sign(self._key, hashes.SHA256())

    def certificate(self) -> bytes:
        """Return its own certificate."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def signed(self, name: str) -> bytes:
        """Return a key and a certificate for this machine, followed by the authority's."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        builder = self._builder(subject, key.public_key()).add_extension(names, critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        own = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        return private + own + self.certificate()

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return x509.CertificateBuilder(
            self._name, subject, key, x509.random_serial_number(), now - timedelta(1), now + timedelta(1)
        )


class _Provider(BaseHTTPRequestHandler):
    """Issues tokens to clients that know the secret, as an OpenID Connect provider does; unsigned, as above."""

    def do_POST(self) -> None:
        """Answer a token request with client credentials."""
        asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        known = self.headers["Authorization"] == "Basic " + b64encode(f"alice:{_PASSWORD}".encode()).decode()
        now = int(datetime.now(UTC).timestamp())
        parts = ({"alg": "none"}, {"sub": "alice", "iat": now, "exp": now + 600, "scope": asked.get("scope")})
        token = ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": 600} if known else {"error": "no"}
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def provider() -> Iterator[str]:
    """Return the address of a provider."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Provider) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()
        thread.join()


def test_service_signs_in_by_an_openid_provider(secured: _Secured, tmp_path: Path, provider: str) -> None:
    """It fetches tokens with its secret; with a wrong one it is refused, and says so at once."""
    topics = fresh_topics(secured.open)
    produce(secured.open, topics.input, [article("story", _TEXT)])
    flags = secured.flags(
        "OAUTHBEARER",
        **{
            "enable.sasl.oauthbearer.unsecure.jwt": "false",
            "sasl.oauthbearer.config": "",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": provider,
            "sasl.oauthbearer.client.id": "alice",
            "sasl.oauthbearer.scope": "kafka",
        },
    )
    variable = "STREAM_DEDUP_KAFKA__SASL_OAUTHBEARER_CLIENT_SECRET"
    with Service(tmp_path, secured.open, topics, *flags, environment={variable: _WRONG}) as service:
        assert service.wait_end(120) == 1
        assert ("refuses the connection" in service.log(), _WRONG in service.log()) == (True, False)
    with Service(tmp_path, secured.open, topics, *flags, environment={variable: _PASSWORD}) as service:
        assert collect(secured.open, topics, 1, service).unique[0].key == b"story"
        service.stop()
        assert _PASSWORD not in service.log()


def _secret(mechanism: str, password: str) -> dict[str, str]:
    return {} if mechanism == "OAUTHBEARER" else {"STREAM_DEDUP_KAFKA__SASL_PASSWORD": password}


@pytest.mark.parametrize("mechanism", _MECHANISMS)
def test_service_works_through_tls_and_sasl(secured: _Secured, tmp_path: Path, mechanism: str) -> None:
    """Topics are created, articles read, decisions committed and the state kept, all encrypted and authenticated.

    No password is written to the log, even with librdkafka's full debug output.
    """
    topics = fresh_topics(secured.open)
    produce(secured.open, topics.input, [article("story", _TEXT), article("copy", f"本报讯 {_TEXT}")])
    flags = [
        *secured.flags(mechanism),
        "kafka.producer.compression.type=zstd",
        "kafka.debug=security,broker",
        "log.level=debug",
    ]
    with Service(tmp_path, secured.open, topics, *flags, environment=_secret(mechanism, _PASSWORD)) as service:
        outputs = collect(secured.open, topics, 2, service)
        service.wait_ready()
        service.stop()
    assert outputs.links()["copy"]["duplicate_of"] == "story"
    assert _PASSWORD not in service.log()


@pytest.mark.parametrize(
    ("mechanism", "changes", "told"),
    [
        ("PLAIN", {}, "kafka.sasl.mechanism and its credentials"),
        ("SCRAM-SHA-512", {}, "kafka.sasl.mechanism and its credentials"),
        ("SCRAM-SHA-512", {"sasl.mechanism": "SCRAM-SHA-256"}, "kafka.sasl.mechanism and its credentials"),
        ("PLAIN", {"ssl.ca.location": "stranger"}, "kafka.ssl.ca.location"),
    ],
    ids=["password of PLAIN", "password of SCRAM", "mechanism", "authority"],
)
def test_service_that_is_not_let_in_says_so_at_once(
    secured: _Secured, tmp_path: Path, mechanism: str, changes: dict[str, str], told: str
) -> None:
    """With the broker's own message and the setting to check, instead of waiting in vain for an answer.

    The password is not in it.
    """
    topics = fresh_topics(secured.open)
    changes = {name: str(secured.stranger) if value == "stranger" else value for name, value in changes.items()}
    flags, secret = secured.flags(mechanism, **changes), _secret(mechanism, _WRONG)
    with Service(tmp_path, secured.open, topics, *flags, environment=secret) as service:
        assert service.wait_end(120) == 1
    assert told in service.log()
    assert "no broker answered" not in service.log()
    assert _WRONG not in service.log()


def _rights(topics: Topics) -> list[tuple[ResourceType, str, ResourcePatternType, list[AclOperation]]]:
    """Return the rights that deploy/README.md lists."""
    literal, prefixed, of = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED, AclOperation
    outputs = [topics.unique, topics.duplicates, topics.dead, topics.clusters]
    return [
        (ResourceType.TOPIC, topics.input, literal, [of.READ]),
        (ResourceType.GROUP, topics.group, literal, [of.READ]),
        (ResourceType.GROUP, f"{topics.group}.owner", literal, [of.READ]),
        *((ResourceType.TOPIC, name, literal, [of.WRITE, of.CREATE, of.DESCRIBE_CONFIGS]) for name in outputs),
        (ResourceType.TOPIC, f"{topics.group}.owner", literal, [of.READ, of.CREATE]),
        (
            ResourceType.TOPIC,
            f"{topics.group}.changelog.",
            prefixed,
            [of.READ, of.WRITE, of.CREATE, of.DESCRIBE_CONFIGS, of.DELETE],
        ),
        (ResourceType.TRANSACTIONAL_ID, f"{topics.group}.changelog.", prefixed, [of.WRITE]),
    ]


def test_documented_rights_are_enough(secured: _Secured, tmp_path: Path) -> None:
    """A user with the rights that deploy/README.md lists, and no others, runs the service and restores its state."""
    topics = fresh_topics(secured.open)
    produce(secured.open, topics.input, [article("story", _TEXT), article("copy", f"本报讯 {_TEXT}")])
    _allow(secured.open, *_rights(topics))
    flags, secret = secured.flags("PLAIN", **{"sasl.username": "bob"}), _secret("PLAIN", _PASSWORD)
    with Service(tmp_path, secured.open, topics, *flags, environment=secret) as service:
        published = collect(secured.open, topics, 2, service)
        service.stop()
    assert published.links()["copy"]["duplicate_of"] == "story"
    shutil.rmtree(service.state)
    with Service(tmp_path, secured.open, topics, *flags, environment=secret) as service:
        service.wait_ready()
        service.stop()
        assert [event["articles"] for event in service.events("restored")] == [2]
        assert "uthorization" not in service.log()


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (ResourceType.TOPIC, r"cannot read \S+\.in: .*: grant the right Read on the topic$"),
        (ResourceType.GROUP, r"cannot read .*: grant the right Read on the group that input\.group names$"),
    ],
)
def test_right_to_read_that_is_missing_is_named(
    secured: _Secured, tmp_path: Path, kind: ResourceType, told: str
) -> None:
    """The service ends with what to grant: the broker's words do not even say which group they are about."""
    topics = fresh_topics(secured.open)
    produce(secured.open, topics.input, [article("story", _TEXT)])
    of_input = {ResourceType.TOPIC: topics.input, ResourceType.GROUP: topics.group}[kind]
    _allow(secured.open, *(right for right in _rights(topics) if right[:2] != (kind, of_input)))
    flags, secret = secured.flags("PLAIN", **{"sasl.username": "bob"}), _secret("PLAIN", _PASSWORD)
    with Service(tmp_path, secured.open, topics, *flags, environment=secret) as service:
        assert service.wait_end(120) == 1
    (failed,) = service.events("failed")
    assert re.match(told, str(failed["error"]))


def _allow(bootstrap: str, *rights: tuple[ResourceType, str, ResourcePatternType, list[AclOperation]]) -> None:
    bindings = [
        AclBinding(kind, name, pattern, "User:bob", "*", operation, AclPermissionType.ALLOW)
        for kind, name, pattern, operations in rights
        for operation in operations
    ]
    enforce(bootstrap, bindings)
