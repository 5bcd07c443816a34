"""Reads and writes eight-byte numbers at any byte of an array, each with one instruction.

Knows the instruction; knows nothing of what the numbers mean.
"""

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from stream_dedup.arrays import Bytes
from stream_dedup.compiled.kernel import kernel

WORD = 8  # bytes


@kernel
def word_at(data: Bytes, at: int) -> np.uint64:
    """Return the eight bytes from byte `at` on as a little-endian number; bounds are not checked."""
    return _word_at(data, at)  # type: ignore[no-any-return]  # compiled


@kernel
def put_word(data: Bytes, at: int, value: np.uint64) -> None:
    """Write a number as eight little-endian bytes from byte `at` on; bounds are not checked."""
    _put_word(data, at, value)


def _typed_word_at(_context: Any, data: Any, at: Any) -> Any:  # noqa: ANN401  # types of numba
    return types.uint64(data, at), _load


def _typed_put_word(_context: Any, data: Any, at: Any, value: Any) -> Any:  # noqa: ANN401  # types of numba
    return types.void(data, at, value), _store


def _load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401  # types of numba
    return _in_order(builder, builder.load(_pointer(context, builder, signature, arguments), align=1))


def _store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401  # types of numba
    builder.store(_in_order(builder, arguments[2]), _pointer(context, builder, signature, arguments), align=1)
    return context.get_dummy_value()


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401  # types of numba
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(8 * WORD).as_pointer())


def _in_order(builder: Any, word: Any) -> Any:  # noqa: ANN401  # types of numba
    return word if sys.byteorder == "little" else builder.bswap(word)


_word_at: Any = intrinsic(_typed_word_at)
_put_word: Any = intrinsic(_typed_put_word)
