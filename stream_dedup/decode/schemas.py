"""Schemas of a registry, prepared for reading values: by id, the most recently used ones are kept.

Knows which schemas are kept and for how long; knows no format.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from cachetools import LRUCache, TTLCache
from confluent_kafka.schema_registry import Schema

from stream_dedup.decode.reason import Reason, UndecodableError
from stream_dedup.decode.scope import Header
from stream_dedup.machine_faults import MACHINE_FAULTS
from stream_dedup.registry.client import Key, Registry
from stream_dedup.registry.errors import RegistryError
from stream_dedup.registry.frame import Frame, FrameError, framed

_KEPT = 1_000  # schemas
_LONGEST_CHAIN = 100  # references, each in the schema that the one before it leads to
_LONGEST_TOLD = 200  # characters of such a chain
_USELESS_SECONDS = 10.0  # until the registry is asked again for a schema that could not be used

_Ready = TypeVar("_Ready")


class Schemas(Generic[_Ready]):
    """Schemas by id; thread-safe: while one thread asks the registry, the others wait.

    Args:
        registry: provides them.
        kind: of the schemas, in the registry's terms: `AVRO`, `PROTOBUF` or `JSON`.
        ready: prepares a schema; whatever it raises, except faults of the machine, means that it cannot be used.
        form: in which the registry is asked for them.
    """

    def __init__(
        self, registry: Registry, kind: str, ready: Callable[[Schema], _Ready], form: str | None = None
    ) -> None:
        self._registry = registry
        self._kind = kind
        self._make_ready = ready
        self._form = form
        self._lock = threading.Lock()
        self._known: LRUCache[Key, _Ready] = LRUCache(_KEPT)
        self._useless: TTLCache[Key, str] = TTLCache(_KEPT, _USELESS_SECONDS)

    def ready(self, key: Key) -> _Ready:
        """Return a prepared schema.

        Raises:
            UndecodableError: there is none with that id and kind, or it cannot be used.
            RegistryError: the registry refuses, or was closed.
        """
        with self._lock:
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = self._fetched(key)
            return known

    def _fetched(self, key: Key) -> _Ready:
        why = self._useless.get(key)
        if why is None:
            try:
                return self._make_ready(self._of_kind(self._registry.schema(key, self._form)))
            except (RegistryError, *MACHINE_FAULTS):
                raise  # it says nothing about the schema
            except Exception as error:  # noqa: BLE001  # whatever an invalid schema makes a library raise
                why = self._useless[key] = f"schema {key}: {error or type(error).__name__}"
        raise UndecodableError(Reason.UNKNOWN_SCHEMA, why)

    def _of_kind(self, schema: Schema) -> Schema:
        kind = schema.schema_type or "AVRO"
        if kind != self._kind:
            raise ValueError(f"it is {kind}, but this topic's values are {self._kind}")
        return schema


def frame_of(value: bytes, headers: Sequence[Header], *, indexed: bool = False) -> Frame:
    """Return the value of a message and its schema; see `framed`.

    Raises:
        UndecodableError: it does not name its schema.
    """
    try:
        return framed(value, headers, indexed=indexed)
    except FrameError as error:
        raise UndecodableError(Reason.INVALID_FRAME, str(error)) from None


def references(schema: Schema, registry: Registry, form: str | None = None) -> dict[str, Schema]:
    """Return the schemas that a schema refers to, directly or indirectly, by the names of the references.

    Each comes after those that it refers to. Each name is asked for once, by however many routes it is reached.

    Raises:
        ValueError: one refers to itself, or the chain of references is too long.
        UnknownSchemaError: one does not exist.
        RegistryError: the registry refuses, or was closed.
    """
    found: dict[str, Schema] = {}

    def follow(referring: Schema, above: tuple[str, ...]) -> None:
        for reference in referring.references or ():
            if reference.name is None or reference.subject is None or reference.version is None:
                raise ValueError("a reference lacks a name, a subject or a version")
            if reference.name in above or len(above) == _LONGEST_CHAIN:
                raise ValueError(f"its references never end: {' -> '.join((*above, reference.name))[:_LONGEST_TOLD]}")
            if reference.name not in found:
                referred = registry.version(reference.subject, reference.version, form)
                follow(referred, (*above, reference.name))
                found[reference.name] = referred

    follow(schema, ())
    return found
