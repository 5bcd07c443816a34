"""Rules of JSON Schema that jsonschema checks in quadratic time, with floats, or that may never end.

Knows one rule at a time, in the form in which jsonschema calls it; knows nothing of schemas or where they come from.
"""

import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, cast

import attrs
import regex
from jsonschema import FormatChecker, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for

_PATTERN_SECONDS = 1.0  # for one text: some patterns take twice as long for each character more
_COMPILED = 1_024  # patterns that are kept
# For one value, of a thread's own time: if two alternatives refer to the same rule, each level takes twice as long.
_VALUE_SECONDS = 5.0
_ends: ContextVar[float] = ContextVar("_ends", default=math.inf)  # by `time.thread_time`
_Rule = Callable[[Any, Any, Any, Any], Iterator[ValidationError]]

FORMATS = FormatChecker(formats=())  # of a schema itself


@FORMATS.checks("regex", raises=regex.error)
def is_pattern(value: object) -> bool:
    """Return whether a value is a regular expression, as ECMA-262 has them: Python's have no classes of letters."""
    return not isinstance(value, str) or _compiled(value) is not None


def pattern(validator: Validator, wanted: str, value: Any, _schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401  # as jsonschema calls it
    """Check that a pattern occurs in a text."""
    if validator.is_type(value, "string") and not _occurs(wanted, value):
        yield ValidationError(f"{value!r} does not match {wanted!r}")


def pattern_properties(
    validator: Any,  # noqa: ANN401  # jsonschema's protocol lacks what its own rules use
    wanted: Mapping[str, Any],
    value: Any,  # noqa: ANN401  # the same
    _schema: Any,  # noqa: ANN401  # the same
) -> Iterator[ValidationError]:
    """Check the properties in whose names a pattern occurs."""
    if validator.is_type(value, "object"):
        for one, rule in wanted.items():
            for name, inner in value.items():
                if _occurs(one, name):
                    yield from validator.descend(inner, rule, path=name, schema_path=one)


def additional_properties(
    validator: Any,  # noqa: ANN401  # the same
    rule: Any,  # noqa: ANN401  # the same
    value: Any,  # noqa: ANN401  # the same
    schema: Mapping[str, Any],
) -> Iterator[ValidationError]:
    """Check the properties that neither `properties` nor `patternProperties` are about."""
    if not validator.is_type(value, "object"):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in value:
        if name not in named and not any(_occurs(one, name) for one in patterns):
            yield from validator.descend(value[name], rule, path=name)


def unique_items(validator: Validator, wanted: bool, value: Any, _schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401, FBT001  # the same
    """Check that no items are equal, in linear time: jsonschema compares each object with each."""
    if wanted and validator.is_type(value, "array") and len({_identity_of(item) for item in value}) < len(value):
        yield ValidationError("two items are equal")


def multiple_of(validator: Validator, factor: float, value: Any, _schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401  # the same
    """Check that a number is a multiple of another, both as they are written: for jsonschema 19.99 is none of 0.01."""
    if validator.is_type(value, "number") and _as_written(value) % _as_written(factor):
        yield ValidationError(f"{value!r} is not a multiple of {factor}")


@cache
def with_our_rules(kind: type[Validator]) -> type[Validator]:
    """Return a version of JSON Schema with these rules, which also hold wherever references lead to.

    A document may name its version: there jsonschema would go on with that one, as it has it.
    """
    own: Mapping[str, _Rule] = kind.VALIDATORS
    references = {name: _while_there_is_time(own[name]) for name in _REFERENCES if name in own}
    ours: Any = extend(kind, _RULES | references)  # type: ignore[no-untyped-call]  # jsonschema's
    fields = [field for field in attrs.fields(ours) if field.init]

    def evolve(validator: Validator, **changes: Any) -> Validator:  # noqa: ANN401  # as jsonschema calls it
        given = {field.alias: getattr(validator, field.name) for field in fields} | changes
        return with_our_rules(validator_for(given["schema"], default=kind))(**given)

    ours.evolve = evolve
    return cast("type[Validator]", ours)


def _while_there_is_time(follow: _Rule) -> _Rule:
    """Return a rule that follows references as the given one does, unless time is over: only these repeat rules."""

    def followed(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401  # the same
        _check_time()
        yield from follow(validator, wanted, value, schema) or ()

    return followed


@contextmanager
def limited_time() -> Iterator[None]:
    """Limit the time in which one value is checked.

    Raises:
        ValueError: it is over.
    """
    token = _ends.set(time.thread_time() + _VALUE_SECONDS)
    try:
        yield
    finally:
        _ends.reset(token)


_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_RULES: dict[str, _Rule] = {
    "pattern": pattern,
    "patternProperties": pattern_properties,
    "additionalProperties": additional_properties,
    "uniqueItems": unique_items,
    "multipleOf": multiple_of,
}


@lru_cache(_COMPILED)
def _compiled(wanted: str) -> "regex.Pattern[str]":
    return regex.compile(wanted)


def _check_time() -> None:
    if time.thread_time() > _ends.get():
        raise ValueError(f"it takes more than {_VALUE_SECONDS:.0f} s")


def _occurs(wanted: str, text: str) -> bool:
    _check_time()
    try:
        return _compiled(wanted).search(text, concurrent=True, timeout=_PATTERN_SECONDS) is not None
    except TimeoutError:
        told = f"it cannot be told within {_PATTERN_SECONDS:.0f} s whether {text!r} matches {wanted!r}"
        raise ValueError(told) from None


def _identity_of(value: Any) -> Hashable:  # noqa: ANN401  # any JSON
    """Return what is equal for equal values only: true is not 1, but 1.0 is."""
    if isinstance(value, dict):
        return dict, frozenset((name, _identity_of(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return list, tuple(map(_identity_of, value))
    return isinstance(value, bool), value


def _as_written(number: float) -> Fraction:
    return Fraction(str(number) if isinstance(number, float) else number)
