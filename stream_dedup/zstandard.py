"""Zstandard: from the standard library, or before Python 3.14 from its backport.

Knows where the module comes from; knows nothing of what is compressed.
"""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["zstd"]
