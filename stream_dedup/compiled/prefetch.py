"""Prefetches memory, so that the processor waits for many locations at once instead of one after another.

Knows the instruction; knows nothing of what is read.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from stream_dedup.compiled.kernel import kernel

AHEAD = 16  # locations prefetched before the first is read: about as many as a core can wait for at once
_READ, _KEEP, _DATA = 0, 3, 1  # for llvm.prefetch: to be read, kept in all caches, data


@kernel
def prefetch(words: NDArray[Any], place: int) -> None:
    """Prefetch the cache line of a word of an array; `place` may be outside the array."""
    _prefetch(words, place)


def _typed(_context: Any, words: Any, place: Any) -> Any:  # noqa: ANN401  # types of numba
    return types.void(words, place), _generate


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401  # types of numba
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
    instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]  # numba has no types
    address = builder.bitcast(builder.gep(array.data, [arguments[1]]), pointer)
    builder.call(instruction, [address, *(ir.Constant(number, value) for value in (_READ, _KEEP, _DATA))])
    return context.get_dummy_value()


_prefetch: Any = intrinsic(_typed)
