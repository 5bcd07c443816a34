"""The stacks of all threads, as text: what each of them is at.

Knows frames; knows nothing of why they are wanted. It shows lines of code and no values.
"""

import sys
import threading
import traceback


def stacks() -> str:
    """Return them, the main thread first, the innermost call of each last."""
    frames = sys._current_frames()  # noqa: SLF001  # there is no public way but faulthandler's, which writes to a file
    main = threading.main_thread()
    threads = sorted(threading.enumerate(), key=lambda thread: (thread is not main, thread.name))
    return "\n".join(
        f"thread {thread.name} ({thread.native_id}):\n{''.join(traceback.format_stack(frames[thread.ident]))}".rstrip()
        for thread in threads
        if thread.ident in frames
    )
