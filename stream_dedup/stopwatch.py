"""Time by stage. Knows a clock; knows nothing of what is timed."""

import time


class Stopwatch:
    """Adds up the seconds between laps under the stages' names."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Add the time since the last lap to a stage."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now
