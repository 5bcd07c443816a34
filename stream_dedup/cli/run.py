"""The command `run`: the service, until a signal ends it.

Knows signals and exit codes; knows nothing of how the service works.
"""

import os
import signal

from stream_dedup.cli.terminal import ConfigOption, SetOption, failure_reporter, run_reporting_errors, settings_of
from stream_dedup.signals import handle_signals


def run_command(config: ConfigOption = None, flags: SetOption = None) -> None:
    """Run the service: read articles from Kafka, write unique articles and links."""
    settings = settings_of(config, flags)
    from stream_dedup.api.process import ApiProcess
    from stream_dedup.observe.log_hooks import install_log_hooks
    from stream_dedup.stream.service import Service

    install_log_hooks()
    service = Service(settings)

    def on_signal(*_: object) -> None:
        service.stop()
        if service.starting:
            # There is no batch to finish, and opening, compiling or connecting may take long. An exception that
            # interrupts a finalizer would be lost; the state survives any end, and the API ends when its input does.
            os._exit(0)

    handle_signals(on_signal)
    # Until the watchdog handles it: asking for the stacks must not end the process.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    with ApiProcess(settings):
        run_reporting_errors(service.run, failure_reporter(settings))
