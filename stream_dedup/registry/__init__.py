"""A schema registry: schemas by id, ids of schemas, and how values name their schema.

Knows Confluent's wire format and the registry's outages; knows nothing of articles, or of what a schema describes.
"""

from stream_dedup.registry.errors import RegistryError, RegistryUnreachableError, UnknownSchemaError

__all__ = ["RegistryError", "RegistryUnreachableError", "UnknownSchemaError"]
