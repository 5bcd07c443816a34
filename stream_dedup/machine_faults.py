"""Errors of the machine: they would meet any item as well, so none is to blame for them.

Knows types of errors; knows nothing of items.
"""

MACHINE_FAULTS = (MemoryError, OSError)
