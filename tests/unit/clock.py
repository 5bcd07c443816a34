"""A clock in place of the module `time`, which stands still unless a test moves it.

Knows seconds; knows nothing of who looks at it.
"""


class Clock:
    """The time as a module under test sees it.

    Attributes:
        now: seconds since some moment.
    """

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
