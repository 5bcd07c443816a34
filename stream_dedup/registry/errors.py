"""What a schema registry may give instead of an answer.

Knows kinds of faults; knows nothing of HTTP.
"""


class RegistryError(Exception):
    """The registry refuses something for good, or was closed. The message says what to do."""


class RegistryUnreachableError(RegistryError):
    """The registry gives no answer, or none that makes sense: this is temporary, so it is asked again."""


class UnknownSchemaError(Exception):
    """The registry has no such schema."""
