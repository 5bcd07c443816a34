"""The metrics that Prometheus' client for Python adds.

Knows how they are shown; creates none of them.
"""

from dataclasses import dataclass

from stream_dedup.observe.metric import Label


@dataclass(frozen=True, slots=True)
class ClientLibraryMetric:
    """A metric that Prometheus' client adds.

    Attributes:
        name: full name.
        kind: kind of metric.
        unit: unit of the values.
        meaning: what the values are.
        action: what to do when they change.
        labels: in order.
    """

    name: str
    kind: str
    unit: str
    meaning: str
    action: str
    labels: tuple[Label, ...] = ()


CLIENT_LIBRARY_METRICS = (
    ClientLibraryMetric(
        "process_resident_memory_bytes",
        "gauge",
        "bytes",
        "Memory in use, of all kinds.",
        "Near the limit of the machine or container: the process would be killed; see `memory_bytes`.",
    ),
    ClientLibraryMetric(
        "process_virtual_memory_bytes",
        "gauge",
        "bytes",
        "Address space, including mapped files.",
        "Nothing: it is not meaningful.",
    ),
    ClientLibraryMetric(
        "process_cpu_seconds_total",
        "counter",
        "seconds",
        "CPU time of all threads.",
        "Its rate is the number of cores in use. Near the machine's total: the lag grows next.",
    ),
    ClientLibraryMetric(
        "process_start_time_seconds",
        "gauge",
        "seconds",
        "Start time of the process, in seconds since 1970 in UTC.",
        "Changes: the process was restarted; the previous process's log has the reason.",
    ),
    ClientLibraryMetric("process_open_fds", "gauge", "files", "Open files.", "Near the limit: raise it (`ulimit -n`)."),
    ClientLibraryMetric("process_max_fds", "gauge", "files", "Limit of open files.", "Below 4,096: raise it."),
    ClientLibraryMetric(
        "python_info",
        "gauge",
        "",
        "Version of Python.",
        "As for `build_info`.",
        tuple(
            Label(name, bound="one per process")
            for name in ("implementation", "major", "minor", "patchlevel", "version")
        ),
    ),
)
