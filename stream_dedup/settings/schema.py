"""All settings of the service, and which of them must be consistent with each other.

Knows groups of settings; knows nothing of where values come from or who uses them.
"""

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from stream_dedup.settings.engine import EngineSettings, VerifySettings
from stream_dedup.settings.kinds import NestedSettingsError, as_text, check_property_names, check_url
from stream_dedup.settings.redaction import REDACTED, is_secret
from stream_dedup.settings.serving import ApiSettings, HttpSettings, LogSettings, ShadowSettings, TracingSettings
from stream_dedup.settings.stream import CommitSettings, InputSettings, OutputSettings, StateSettings, topic_matches

_LONGEST_NAME = 180  # of a topic's 249 characters: the changelog's name continues after it
_LOCALHOST = frozenset({"localhost", "127.0.0.1"})  # names of one address
_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104  # nothing is bound here


class Settings(EngineSettings):
    """All settings of the service."""

    input: InputSettings = InputSettings()
    output: OutputSettings = OutputSettings()
    commit: CommitSettings = CommitSettings()
    state: StateSettings = StateSettings()
    http: HttpSettings = HttpSettings()
    api: ApiSettings = ApiSettings()
    shadow: ShadowSettings = ShadowSettings()
    tracing: TracingSettings = TracingSettings()
    log: LogSettings = LogSettings()
    kafka: dict[str, str] = Field(
        default={},
        description="Properties passed to librdkafka unchanged. Those that begin with `consumer.` or `producer.` go "
        "only to that client.",
    )
    registry: dict[str, str] = Field(
        default={},
        description="Properties passed to confluent-kafka's schema registry client unchanged. `url` is required if "
        "any format is not `json`.",
    )

    @field_validator("registry", mode="before")
    @classmethod
    def _registry_as_text(cls, value: object) -> object:
        given = as_text(value)
        if isinstance(given, Mapping):
            check_property_names(given, "registry.url=http://registry:8081")
            for url in str(given["url"]).split(",") if "url" in given else ():
                check_url("registry.url", url.strip(), "registry.basic.auth.user.info")
        return given

    @field_validator("kafka", mode="before")
    @classmethod
    def _kafka_as_text(cls, value: object) -> object:
        given = as_text(value)
        if not isinstance(given, dict):
            return given
        names = (name.removeprefix("consumer.").removeprefix("producer.") for name in given)
        check_property_names(names, "kafka.bootstrap.servers=kafka:9092")
        if not given.get("bootstrap.servers", "-").strip():
            raise ValueError("bootstrap.servers is empty: name at least one broker, as host:port")
        return {"bootstrap.servers": "127.0.0.1:9092", **given}

    @model_validator(mode="after")
    def _registry_named(self) -> Self:
        wanting = {"input": self.input.wire_formats, "output": {self.output.format} - {"json"}}
        for group, formats in wanting.items():
            if formats and not self.registry.get("url"):
                raise ValueError(f"{group}: the format {', '.join(sorted(formats))} requires registry.url")
        return self

    @model_validator(mode="after")
    def _no_loop(self) -> Self:
        outputs = {
            f"output.{name}": getattr(self.output, name) for name in ("unique", "duplicates", "dead", "clusters")
        }
        outputs |= {"shadow.topic": self.shadow.topic} if self.shadow.enabled else {}
        for name, topic in [*outputs.items(), *(("input.topics", topic) for topic in self.input.topics)]:
            if topic == self.owner_topic or topic.startswith(self.changelog_prefix):
                raise ValueError(
                    f"{name} = {topic!r} is one of the index's own topics: choose another, or a state.name"
                )
        for topic in self.input.topics:
            for name, output in outputs.items():
                if topic_matches(topic, output):
                    raise ValueError(
                        f"input.topics: {topic!r} matches {name} = {output!r}: the service would read its own output"
                    )
        if len(set(outputs.values())) < len(outputs):
            told = ", ".join(f"{name} = {topic}" for name, topic in outputs.items())
            raise ValueError(f"the topics written to must all differ, but they are {told}")
        return self

    @model_validator(mode="after")
    def _ports_differ(self) -> Self:
        http, api = self.http, self.api
        hosts = {http.host, api.host}
        one_address = len(hosts) == 1 or hosts <= _LOCALHOST or hosts & _EVERY_ADDRESS
        if api.enabled and http.port == api.port != 0 and one_address:
            raise ValueError(f"http.port and api.port are both {api.port}: on the same address they must differ")
        return self

    @model_validator(mode="after")
    def _shadow_differs(self) -> Self:
        try:
            verify = self.shadow_verify()
        except ValidationError as error:
            raise NestedSettingsError(("shadow", "verify"), error) from None
        if verify == self.verify and self.shadow.enabled:
            raise ValueError("shadow.enabled = true, but no threshold in shadow.verify differs from the one in force")
        return self

    def shadow_verify(self) -> VerifySettings:
        """Return the thresholds of the shadow."""
        return VerifySettings.model_validate({**self.verify.model_dump(), **self.shadow.verify})

    @property
    def owner_topic(self) -> str:
        """Name of the topic whose partition decides which process owns the index."""
        return f"{self._index_name}.owner"

    @property
    def changelog_prefix(self) -> str:
        """How the names of the index's changelogs begin; the digest of settings follows."""
        return f"{self._index_name}.changelog."

    @property
    def _index_name(self) -> str:
        name = self.state.name or self.input.group
        legal = re.sub(r"[^a-zA-Z0-9._-]", "_", name)[:_LONGEST_NAME]
        # Any text can name a group: two that differ only in what no topic name allows must not share an index.
        return legal if legal == name else f"{legal}-{blake2b(name.encode(), digest_size=4).hexdigest()}"

    def secrets(self) -> list[str]:
        """Return the values that must not be shown."""
        properties = [*self.kafka.items(), *self.registry.items()]
        return [self.api.token, *(value for name, value in properties if is_secret(name))]

    def redacted(self) -> dict[str, Any]:
        """Return the settings as plain data, with secrets replaced."""
        plain = self.model_dump(mode="json")
        plain["api"]["token"] = REDACTED if self.api.token else ""
        for name, properties in (("kafka", self.kafka), ("registry", self.registry)):
            plain[name] = {one: REDACTED if is_secret(one) else value for one, value in properties.items()}
        return plain
