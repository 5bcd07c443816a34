"""The service's client of the registry: it keeps asking while the registry is unreachable.

Knows confluent-kafka's client and which of its errors are temporary; knows no format and no schema.
"""

import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, Generic, TypeVar

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from stream_dedup.background import begun
from stream_dedup.paths import is_there
from stream_dedup.registry.errors import RegistryError, RegistryUnreachableError, UnknownSchemaError
from stream_dedup.settings import SettingsError

_TIMEOUT_SECONDS = 3.0  # for each piece of an answer; the client has no default
_ANSWER_SECONDS = 5.0  # for a whole one, which a stop has to wait for
_MOST_BYTES = 16 << 20  # of an answer, unpacked: a registry keeps its schemas in messages of a megabyte
_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 15.0
_SLICE_SECONDS = 1.0  # of a pause
_NOT_FOUND = 404  # the registry's own codes for it are 40401, 40402, ...: any other 404 is not from the registry
_NUMBERS = frozenset({"timeout", "cache.capacity", "cache.latest.ttl.sec"})
# The client would sleep between retries and ignore a stop, so the service does its own.
_OWN = ("max.retries", "retries.wait.ms", "retries.max.wait.ms")

Key = int | str  # of a schema: its id, or its GUID in hexadecimal digits
_Answer = TypeVar("_Answer")


def make_client(properties: Mapping[str, str]) -> SchemaRegistryClient:
    """Return a client of the registry; nothing is sent yet.

    Without `ssl.ca.location` the system's certificate authorities are trusted, as librdkafka does for brokers.

    Args:
        properties: of confluent-kafka's client, including `url`.

    Raises:
        SettingsError: the client does not accept them.
    """
    for name in _OWN:
        if name in properties:
            raise SettingsError(f"registry.{name}: remove it, since the service itself retries for as long as it takes")
    for name, value in properties.items():
        if name.endswith(".location"):
            _check_there(name, value)
    given = {name: _number(name, value) if name in _NUMBERS else value for name, value in properties.items()}
    ours = {"timeout": _TIMEOUT_SECONDS, "max.retries": 0, **_authorities(properties)}
    try:
        client = SchemaRegistryClient.new_client(ours | given)
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(f"registry: {error} (a property of confluent-kafka's SchemaRegistryClient)") from None
    client._rest_client.session.event_hooks["response"].append(_bound)  # noqa: SLF001  # no property bounds an answer
    return client


def _bound(answer: Any) -> None:  # noqa: ANN401  # the client's HTTP library may be another one day
    """Bound an answer that is about to be read: what stands at the URL may be anything."""
    whole = answer.iter_bytes

    def bounded() -> Iterator[bytes]:
        size = 0
        for part in whole():
            size += len(part)
            if size > _MOST_BYTES:
                raise RegistryUnreachableError(
                    f"what answers instead of the schema registry sends more than {_MOST_BYTES >> 20} MiB: check "
                    "registry.url"
                )
            yield part

    answer.iter_bytes = bounded


def _check_there(name: str, value: str) -> None:
    """Check that a file exists: the client's own error does not say which one.

    Raises:
        SettingsError: it does not, or cannot be looked up.
    """
    try:
        there = is_there(Path(value))
    except OSError as error:
        raise SettingsError(f"registry.{name} = {value!r}: {error.strerror}") from None
    if not there:
        raise SettingsError(f"registry.{name} = {value!r}: there is no such file")


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise SettingsError(f"registry.{name} = {value!r} is not a number") from None


def _authorities(properties: Mapping[str, str]) -> dict[str, str]:
    """Return where the system's certificate authorities are, as a property of the client."""
    paths = ssl.get_default_verify_paths()
    known = paths.cafile or paths.capath
    if known is not None:
        return {"ssl.ca.location": known}
    if "https://" in properties["url"] and "ssl.ca.location" not in properties:
        raise SettingsError(
            f"registry.ssl.ca.location: set it to a file of CA certificates, there is none at {paths.openssl_cafile}"
        )
    return {}


class Registry:
    """Schemas and their ids.

    Args:
        client: sends the requests.
        while_waiting: called with the reason about every second while the registry is unreachable; may raise.
        then: called once that is over, because of an answer or because the wait was given up.
    """

    def __init__(
        self,
        client: SchemaRegistryClient,
        while_waiting: Callable[[RegistryUnreachableError], None] = lambda _: None,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._while_waiting = while_waiting
        self._then = then
        self._closed = threading.Event()

    def close(self) -> None:
        """Stop asking and disconnect: whoever waits for an answer gives up. May be called from another thread."""
        self._closed.set()
        self._client.close()

    def schema(self, key: Key, form: str | None = None) -> Schema:
        """Return a schema.

        Args:
            key: of the schema.
            form: in which it is written, if there are several.

        Raises:
            UnknownSchemaError: there is none.
            RegistryError: the registry refuses, or was closed.
        """
        if isinstance(key, int):
            return self._answer(lambda: self._client.get_schema(key, fmt=form))
        return self._answer(lambda: self._client.get_schema_by_guid(key, fmt=form))

    def version(self, subject: str, version: int, form: str | None = None) -> Schema:
        """Return a schema that another one refers to; see `schema`."""
        return self._answer(lambda: self._client.get_version(subject, version, deleted=True, fmt=form)).schema

    def identify(self, subject: str, schema: Schema, *, register: bool) -> int:
        """Return the id of a schema.

        Args:
            subject: that it belongs to.
            schema: the schema.
            register: whether it is registered if it is not there.

        Raises:
            UnknownSchemaError: it is not there and is not to be registered.
            RegistryError: the registry refuses, or was closed.
        """
        if register:
            return self._answer(lambda: self._client.register_schema(subject, schema))
        found = self._answer(lambda: self._client.lookup_schema(subject, schema))
        if found.schema_id is None:
            raise UnknownSchemaError(f"the registry gave no id for the schema of {subject}")
        return found.schema_id

    def _answer(self, ask: Callable[[], _Answer]) -> _Answer:
        question, presence = _Question(ask), _Question(self._client.get_schema_types)
        answer: _Answer | RegistryUnreachableError = self._try(question, presence)
        if not isinstance(answer, RegistryUnreachableError):
            return answer
        if self._closed.is_set():
            raise RegistryError(f"closed: {answer}")  # its connection was taken from under it: that is no outage
        pause = _FIRST_PAUSE_SECONDS
        try:
            while isinstance(answer, RegistryUnreachableError):
                self._wait(pause, answer)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                answer = self._try(question, presence)
            return answer
        finally:
            self._then()

    def _try(
        self, question: "_Question[_Answer]", presence: "_Question[list[str]]", *, is_there: bool = False
    ) -> _Answer | RegistryUnreachableError:
        """Ask once.

        Args:
            question: to ask.
            presence: one that every registry answers.
            is_there: whether the registry was just found at its URL.
        """
        try:
            return question.answer()
        except SchemaRegistryError as error:
            if not _is_bare(error):
                return _outage(error)
            if is_there:
                raise UnknownSchemaError(f"the registry has no such path ({error.error_message})") from None
            if not _is_answered(presence):
                return _outage(error)
            # Once more, since it may have come up in the meantime.
            again: _Answer | RegistryUnreachableError = self._try(question, presence, is_there=True)
            return again
        except RegistryUnreachableError as error:
            return error
        except Exception as error:  # noqa: BLE001  # whatever the network, TLS or a proxy in between may do
            return RegistryUnreachableError(f"no answer from the schema registry: {type(error).__name__}: {error}")
        finally:
            # What is kept is up to the callers: the client would keep every schema forever.
            self._client.clear_caches()  # type: ignore[no-untyped-call]  # the library's

    def _wait(self, seconds: float, outage: RegistryUnreachableError) -> None:
        end = time.monotonic() + seconds
        while True:
            self._while_waiting(outage)
            left = end - time.monotonic()
            if self._closed.wait(max(0.0, min(left, _SLICE_SECONDS))):
                raise RegistryError(f"given up: {outage}")
            if left <= _SLICE_SECONDS:
                return


class _Question(Generic[_Answer]):
    """A question to the registry, asked again only once there was an answer, good or bad.

    The client's timeout is for each piece of an answer: one that drips in may take for ever.

    Args:
        ask: sends it.
    """

    def __init__(self, ask: Callable[[], _Answer]) -> None:
        self._ask = ask
        self._coming: Future[_Answer] | None = None

    def answer(self) -> _Answer:
        """Return the answer.

        Raises:
            TimeoutError: it has not come to its end.
            Exception: whatever the client raises.
        """
        self._coming = self._coming or begun(self._ask, "registry")
        if not wait([self._coming], _ANSWER_SECONDS).done:
            raise TimeoutError("the answer does not come to its end")
        coming, self._coming = self._coming, None
        return coming.result()


def _is_answered(presence: _Question[list[str]]) -> bool:
    """Return whether there is a registry at the URL."""
    try:
        return isinstance(presence.answer(), list)
    except Exception:  # noqa: BLE001  # as in `_try`: what answers is not a registry, or not a working one
        return False


def _is_bare(error: SchemaRegistryError) -> bool:
    """Return whether it is a 404 that says nothing about a schema: wrong path, or not from a registry."""
    return error.http_status_code == _NOT_FOUND and not _is_unknown(error)


def _is_unknown(error: SchemaRegistryError) -> bool:
    """Return whether the registry itself says that there is no such schema."""
    # A gateway's error may have a code of another type.
    return isinstance(error.error_code, int) and error.error_code // 100 == _NOT_FOUND


def _outage(error: SchemaRegistryError) -> RegistryUnreachableError:
    """Return the error to wait out.

    Raises:
        UnknownSchemaError: there is no such schema.
        RegistryError: asking again is pointless.
    """
    status, code = error.http_status_code, error.error_code
    if _is_unknown(error):
        raise UnknownSchemaError(error.error_message)
    if status in {401, 403}:
        raise RegistryError(
            f"the schema registry refuses with HTTP status {status} ({error.error_message}): check "
            "registry.basic.auth.user.info, or grant the right to read the schema"
        )
    if status in {409, 422}:
        raise RegistryError(f"the schema registry refuses the schema: {error.error_message} ({code})")
    return RegistryUnreachableError(f"the schema registry answers with HTTP status {status} ({error.error_message})")
