"""Settings that depend on each other: topics, ports, formats, fields and scopes.

Knows which go together; the bounds of each alone are tested elsewhere.
"""

from pathlib import Path

import pytest

from stream_dedup.settings import load_settings
from tests.unit.given_settings import faults_of, toml


def test_settings_that_contradict_each_other_are_refused() -> None:
    """Examples: more landmarks than the sketch holds or a long text may have, and two outputs on one topic."""
    assert "landmarks.keys = 20 is more than sketch.size = 16" in faults_of("landmarks.keys=20", "sketch.size=16")
    assert "landmarks.keys = 20 is more than landmarks.most_keys = 19" in faults_of(
        "landmarks.keys=20", "landmarks.most_keys=19"
    )
    assert "must all differ" in faults_of("output.dead=articles.unique")


@pytest.mark.parametrize("setting", ["output.unique", "output.clusters", "input.topics"])
@pytest.mark.parametrize("topic", ["news.owner", "news.changelog.c6ba7c9e"])
def test_topics_of_the_index_are_no_topics_of_articles(setting: str, topic: str) -> None:
    """Neither to read nor to write: whatever came there would damage the index."""
    told = faults_of(f"{setting}={topic}", "state.name=news")
    assert f"{setting} = '{topic}' is one of the index's own topics" in told
    assert load_settings(flags=[f"{setting}={topic}", "state.name=papers"]).state.name == "papers"


@pytest.mark.parametrize(
    ("flags", "refused"),
    [
        (("api.port=9108",), True),
        (("http.port=9109", "http.host=0.0.0.0"), True),
        (("http.port=9109", "http.host=::1"), False),
        (("http.port=9109", "http.host=::"), True),
        (("http.port=9109", "http.host=localhost"), True),
        (("http.port=0", "api.port=0"), False),
    ],
)
def test_two_servers_take_two_ports(flags: tuple[str, ...], refused: bool) -> None:  # noqa: FBT001  # a parameter
    """This holds for the same address, if both are enabled and the port is not 0."""
    if refused:
        assert "http.port and api.port are both" in faults_of(*flags, "api.enabled=true")
    else:
        assert load_settings(flags=[*flags, "api.enabled=true"]).api.enabled
    assert not load_settings(flags=[*flags]).api.enabled


@pytest.mark.parametrize("topic", ["articles.unique", "^articles", r"^.*\.dead$"])
def test_input_that_would_read_an_output_is_refused(topic: str) -> None:
    """A topic or pattern that matches an output topic would be a loop."""
    assert "would read its own output" in faults_of(f"input.topics={topic}")


@pytest.mark.parametrize("topic", [r"^articles\.in", "^news", "articles.unique2"])
def test_input_that_reads_no_output_is_taken(topic: str) -> None:
    """Patterns that match no output topic are accepted."""
    assert load_settings(flags=[f"input.topics={topic}"]).input.topics == [topic]


@pytest.mark.parametrize("flag", ["input.format=avro", "input.formats.articles.in=protobuf", "output.format=avro"])
def test_formats_with_schemas_want_a_registry(flag: str) -> None:
    """The format must be one of the four."""
    assert "registry.url" in faults_of(flag)
    assert load_settings(flags=[flag, "registry.url=http://r:8081"])
    assert "'json', 'avro', 'protobuf' or 'json-schema'" in faults_of(flag.split("=", maxsplit=1)[0] + "=xml")


def test_formats_of_topics_come_from_every_layer(tmp_path: Path) -> None:
    """In the file quoted or not, in the environment as a list of pairs, as flags; the later source wins."""
    file = toml(tmp_path, '[input]\ntopics = ["^a[.].*", "b.c"]\n[input.formats]\n"a.b" = "avro"\nb.c = "avro"\n')
    url, environment = "registry.url=http://r", {"STREAM_DEDUP_INPUT__FORMATS": "a.b = avro, b.c=protobuf"}
    assert load_settings(file, flags=[url]).input.formats == {"a.b": "avro", "b.c": "avro"}
    flags = [url, "input.formats.b.c=json"]
    assert load_settings(file, flags=flags).input.formats == {"a.b": "avro", "b.c": "json"}
    topics = {"STREAM_DEDUP_INPUT__TOPICS": "a.b, b.c"}
    settings = load_settings(environment={**topics, **environment}, flags=[url])
    assert settings.input.formats == {"a.b": "avro", "b.c": "protobuf"}


def test_format_of_a_topic_that_is_not_read_is_refused() -> None:
    """Otherwise a misspelt name would leave its topic with another format."""
    faults = faults_of("input.formats.articles.im=avro", "registry.url=http://r")
    assert "'articles.im' is not one of input.topics (articles.in)" in faults


@pytest.mark.parametrize(
    ("flag", "fault"),
    [
        ("weights.idf_floor=9", "weights.idf_floor = 9.0 is not below idf_ceiling = 9.0"),
        ("input.format=avro", "input: the format avro requires registry.url"),
        ("output.unique=articles.in", "input.topics: 'articles.in' matches output.unique = 'articles.in': the service"),
        ("api.host=0.0.0.0", "api.host = '0.0.0.0' can be reached from other machines: set an api.token"),
    ],
)
def test_settings_that_do_not_go_together_are_named_once(flag: str, fault: str) -> None:
    """The message names them, so that their group need not be named before it."""
    assert faults_of(flag).startswith(fault)


def test_bounds_of_idf_are_those_of_the_profile() -> None:
    """The paper's has none: a floor above the other profile's ceiling contradicts nothing there."""
    weights = load_settings(flags=["weights.profile=paper2020", "weights.idf_floor=9.5"]).weights
    assert (weights.profile, weights.idf_floor) == ("paper2020", 9.5)
    assert "weights.idf_floor = 9.5 is not below" in faults_of("weights.idf_floor=9.5")


def test_formats_of_topics_are_pairs() -> None:
    """A format for the group itself belongs to no topic."""
    assert "input.formats = 'json': 'json' is not a pair: write name=value, name=value" in faults_of(
        "input.formats=json"
    )


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("input.scope_header=stream_dedup.scope", "headers that begin with stream_dedup. are the service's own"),
        ("input.scope_missing=dead", "input.scope_missing = dead requires input.scope_header or input.fields.scope"),
        ("input.scope_missing=default", "'unscoped' or 'dead'"),
    ],
)
def test_scopes_are_looked_for_where_they_can_be(flag: str, said: str) -> None:
    """A header that is never read, or a required scope without a source, is refused."""
    assert said in faults_of(flag)


@pytest.mark.parametrize(
    ("flags", "inner", "outer"),
    [
        (
            ("input.fields.body=content", "input.fields.title=content.title"),
            "title = 'content.title'",
            "body = 'content'",
        ),
        (("input.fields.body=source.text.plain",), "body = 'source.text.plain'", "source = 'source'"),
        (("input.fields.scope=id.tenant",), "scope = 'id.tenant'", "id = 'id'"),
    ],
)
def test_field_within_another_is_refused(flags: tuple[str, ...], inner: str, outer: str) -> None:
    """No article can have both: where one is an object, the other is of the wrong type."""
    assert faults_of(*flags).startswith(f"input.fields.{inner} is within input.fields.{outer}, ")


def test_fields_may_be_beside_each_other_or_the_same() -> None:
    """Only whole names count, and one value can serve two fields, such as a URL that is the id as well."""
    flags = ["input.fields.body=doc.text", "input.fields.title=doc.text_title", "input.fields.source=doc.from"]
    fields = load_settings(flags=[*flags, "input.fields.id=url"]).input.fields
    assert (fields.body, fields.title, fields.id, fields.url) == ("doc.text", "doc.text_title", "url", "url")


@pytest.mark.parametrize("place", ["input.scope_header=tenant", "input.fields.scope=meta.tenant"])
def test_scope_may_be_demanded_where_it_is_looked_for(place: str) -> None:
    """A header or a field is enough."""
    assert load_settings(flags=["input.scope_missing=dead", place]).input.scope_missing == "dead"
