"""`python -m stream_dedup` and `stream-dedup`: the command line, which Ctrl-C ends from the very start.

Knows that loading the command line takes a while; knows none of its commands.
"""

from stream_dedup.signals import exit_at_once_on_signals


def main() -> None:
    """Run the command line; a signal meanwhile ends it without a traceback."""
    exit_at_once_on_signals()
    from stream_dedup.cli.main import main as run_command_line  # noqa: PLC0415  # this is what takes so long

    run_command_line()


if __name__ == "__main__":
    main()
