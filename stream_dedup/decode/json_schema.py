"""JSON with a schema, validated against it.

Knows JSON Schema and how a fault is reported; knows nothing of where schemas come from.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urljoin

import orjson
from confluent_kafka.schema_registry import Schema
from jsonschema import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry as Documents
from referencing import Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7

from stream_dedup.decode.fields import Fields, Paths
from stream_dedup.decode.format import JsonFormat
from stream_dedup.decode.json_schema_rules import FORMATS, limited_time, with_our_rules
from stream_dedup.decode.reason import Reason, UndecodableError
from stream_dedup.decode.schemas import Schemas, frame_of, references
from stream_dedup.decode.scope import Header
from stream_dedup.machine_faults import MACHINE_FAULTS
from stream_dedup.registry.client import Registry

_LONGEST_FAULT = 200  # characters: it repeats the value that it is about


class JsonSchemaFormat:
    """JSON in Confluent's wire format.

    Args:
        registry: provides the schemas.
        paths: of the fields.
        validate: whether values are checked; otherwise schemas are ignored.
    """

    def __init__(self, registry: Registry, paths: Paths, *, validate: bool) -> None:
        self._registry = registry
        self._json = JsonFormat(paths)
        self._validate = validate
        self._schemas = Schemas(registry, "JSON", self._ready)

    def fields(self, value: bytes, headers: Sequence[Header]) -> Fields:
        """Return the object in a value; see `Format`."""
        frame = frame_of(value, headers)
        fields = self._json.fields(frame.payload, ())
        if self._validate:
            _check(fields, self._schemas.ready(frame.schema), f"schema {frame.schema}")
        return fields

    def _ready(self, schema: Schema) -> Validator:
        documents = {name: _document(one) for name, one in references(schema, self._registry).items()}
        document = _document(schema)
        base = str(document.get("$id", ""))
        # A reference is to a name, or to that name beside the address that the schema gives itself.
        addresses = [(address, one) for name, one in documents.items() for address in {name, urljoin(base, name)}]
        resources = [(address, Resource.from_contents(one, DRAFT7)) for address, one in addresses]
        kind = validator_for(document)
        try:
            kind.check_schema(document, format_checker=FORMATS)  # type: ignore[call-arg]  # its protocol lacks it
        except SchemaError as error:
            raise ValueError(f"not a JSON Schema: {error.message[:_LONGEST_FAULT]}") from None
        # With its own documents it fetches none from the addresses that a schema names.
        return with_our_rules(kind)(document, registry=Documents().with_resources(resources))


def _document(schema: Schema) -> dict[str, Any]:
    document = orjson.loads(schema.schema_str or "")
    if isinstance(document, bool):
        return {} if document else {"not": {}}
    if not isinstance(document, dict):
        raise TypeError("the schema is neither an object nor a boolean")
    return document


def _check(fields: Fields, validator: Validator, name: str) -> None:
    try:
        with limited_time():
            fault = next(iter(validator.iter_errors(fields)), None)
    except Unresolvable as error:
        raise UndecodableError(Reason.UNKNOWN_SCHEMA, f"{name} refers to something that is missing: {error}") from None
    except MACHINE_FAULTS:
        raise
    except Exception as error:  # noqa: BLE001  # values nested too deeply, patterns and numbers that Python refuses
        why = (str(error) or type(error).__name__)[:_LONGEST_FAULT]
        raise UndecodableError(Reason.INVALID_RECORD, f"the value cannot be checked against {name}: {why}") from None
    if fault is not None:
        told = f"{fault.json_path} violates {fault.validator!r} of {name}: {fault.message[:_LONGEST_FAULT]}"
        raise UndecodableError(Reason.INVALID_RECORD, told)
