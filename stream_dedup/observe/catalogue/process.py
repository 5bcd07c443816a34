"""Metrics of the process.

Knows its role and its memory; knows nothing of where values come from.
"""

from stream_dedup.observe.metric import Label, gauge, info


class Process:
    """Process: the role, health and resource use of the process."""

    build = info(
        "Version of the service.",
        "Differs between replicas: a new version is being rolled out.",
        Label("version", bound="one per process"),
    )
    role = gauge(
        "0 or 1",
        "1 for the process's current role.",
        "No process is active: look at the logs of all. Restoring for long (replaying the changelog, or silently "
        "judging what the group has decided): `/readyz` says how much is left.",
        Label("role", ("restoring", "standby", "active")),
    )
    ready = gauge(
        "0 or 1", "1 while the process reads its input.", "0 on the active process: `/readyz` says what it waits for."
    )
    assigned_partitions = gauge(
        "partitions",
        "Input partitions that the process reads.",
        "On the active process, fewer than exist: another member has joined `input.group`.",
    )
    unread_topics = gauge(
        "topics",
        "Topics named in `input.topics` of which the active process has no partition, while it has some of others.",
        "More than 0: a topic was deleted or its name is wrong, or another member of `input.group` reads it; see "
        "`input_waits` and `partitions_elsewhere` in the log.",
    )
    memory_bytes = gauge(
        "bytes",
        "Memory in use, by kind: anonymous is the process's own, file is mapped files, which the system can reclaim.",
        "Anonymous memory grows for days: report it, with the other memory figures. File memory grows with "
        "`index_run_bytes` and is harmless.",
        Label("kind", ("anonymous", "file")),
    )
    memory_limit_bytes = gauge(
        "bytes",
        "Memory limit of the process's cgroup, such as a container's; 0 if there is none.",
        "See `memory_limited_bytes`.",
    )
    memory_limited_bytes = gauge(
        "bytes",
        "Anonymous memory of all processes under `memory_limit_bytes`, the API's included; 0 if there is no limit. The "
        "process's own if the system does not tell.",
        "When it reaches the limit, a process is killed. Near the limit: raise it, or use smaller caches "
        "(`state.cache_bytes`, `state.write_buffer_bytes`).",
    )
