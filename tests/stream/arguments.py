"""What a command of the service is started with: a settings file, flags and a clean environment.

Knows no process and no broker.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.stream.topics import Topics

REPOSITORY = Path(__file__).resolve().parents[2]


def write_settings(directory: Path, bootstrap: str, topics: Topics) -> Path:
    """Write a settings file and return its path; the state is beside it."""
    file = directory / "stream-dedup.toml"
    quoted = {name: json.dumps(getattr(topics, name)) for name in ("input", "unique", "duplicates", "dead", "clusters")}
    file.write_text(
        f"""
[input]
topics = [{quoted["input"]}]
group = {json.dumps(topics.group)}
[output]
unique = {quoted["unique"]}
duplicates = {quoted["duplicates"]}
dead = {quoted["dead"]}
clusters = {quoted["clusters"]}
[state]
directory = "state"
[http]
port = 0
[log]
format = "json"
[kafka]
bootstrap.servers = {json.dumps(bootstrap)}
""",
        encoding="utf-8",
    )
    return file


def set_flags(flags: Sequence[str]) -> list[str]:
    """Return settings as arguments."""
    return [argument for flag in flags for argument in ("--set", flag)]


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without any settings of the service."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_DEDUP_")}
    return {**kept, **(more or {})}
