"""The stacks of all threads as text: lines of code, no values.

Knows frames; knows nothing of why they are needed.
"""

import sys
import threading
import traceback


def stacks() -> str:
    """Return the stacks, the main thread first, the innermost call of each last."""
    frames = sys._current_frames()  # noqa: SLF001  # the only public way is faulthandler's, which writes to a file
    main = threading.main_thread()
    threads = sorted(threading.enumerate(), key=lambda thread: (thread is not main, thread.name))
    return "\n".join(
        f"thread {thread.name} ({thread.native_id}):\n{''.join(traceback.format_stack(frames[thread.ident]))}".rstrip()
        for thread in threads
        if thread.ident in frames
    )
