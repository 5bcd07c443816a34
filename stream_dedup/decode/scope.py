"""The scope of a message: from a header, or else from a field.

Knows where a scope may be; knows nothing of what is compared within it.
"""

from collections.abc import Sequence

from stream_dedup.decode.fields import Fields, NameRule, Paths, checked_name
from stream_dedup.decode.reason import Reason, UndecodableError
from stream_dedup.scope import MAX_SCOPE_BYTES
from stream_dedup.settings import InputSettings

Header = tuple[str, bytes | None]  # of a message
_RULE = NameRule("scope", Reason.INVALID_SCOPE, MAX_SCOPE_BYTES)


class ScopeReader:
    """Finds the scopes of messages.

    Args:
        settings: where they are, and what becomes of a message without one.
        paths: of the fields.
    """

    def __init__(self, settings: InputSettings, paths: Paths) -> None:
        self._header = settings.scope_header
        self._used = settings.scoped
        self._required = settings.scope_missing == "dead"
        self._paths = paths

    def scope(self, fields: Fields, headers: Sequence[Header]) -> str:
        """Return the scope in the header, or else in the field; empty if there is none.

        Args:
            fields: of the message; empty if it has no value.
            headers: of the message; if a name occurs several times, the last counts.

        Raises:
            UndecodableError: the scope is invalid, or it is missing but required.
        """
        if not self._used:
            return ""
        scope = self._of_header(headers) or self._paths.name(fields, _RULE)
        if not scope and self._required:
            raise UndecodableError(Reason.MISSING_SCOPE, f"no scope in {self._places()}")
        return scope

    def _of_header(self, headers: Sequence[Header]) -> str:
        values = [value for name, value in headers if name == self._header] if self._header else []
        try:
            scope = values[-1].decode() if values and values[-1] is not None else ""
        except UnicodeDecodeError:
            raise UndecodableError(Reason.INVALID_SCOPE, f"the header {self._header} is not valid UTF-8") from None
        return checked_name(scope, _RULE)

    def _places(self) -> str:
        places = {"the header": self._header, "the field": self._paths.path("scope")}
        return " or ".join(f"{kind} {place}" for kind, place in places.items() if place)
