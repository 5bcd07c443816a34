"""Threads in which questions are answered, so that one that waits holds up neither others nor the probes.

Knows threads; knows nothing of what is asked.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

MOST_AT_ONCE = 64  # requests: more would only wait for each other, and hold memory meanwhile

_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer")
_threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="question")


def in_thread(answer: Callable[_Parameters, _Answer]) -> Callable[_Parameters, Coroutine[Any, Any, _Answer]]:
    """Return a coroutine function that calls a function in a thread.

    FastAPI would call it in one of anyio's threads, for which a request is suspended four times instead of once, and
    each time it goes on, it goes through all guards again.
    """

    @wraps(answer)
    async def answered(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Answer:
        return await asyncio.get_running_loop().run_in_executor(_threads, partial(answer, *arguments, **named))

    return answered
