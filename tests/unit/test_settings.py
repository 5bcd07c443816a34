"""Settings: precedence of their sources, and faults reported with name, value and bound."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from stream_dedup.article import Relation
from stream_dedup.settings import REDACTED, Settings, SettingsError, load_settings
from stream_dedup.settings.reference import settings_markdown
from stream_dedup.stream.kafka.clients import check_properties, consumer_properties, producer_properties

_ROOT = Path(__file__).parents[2]


def _toml(directory: Path, text: str) -> Path:
    path = directory / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _faults(*flags: str, file: Path | None = None, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(SettingsError) as raised:
        load_settings(file, environment, flags)
    return str(raised.value)


def test_settings_file_may_be_named_by_a_string(tmp_path: Path) -> None:
    """As the directory of an engine may."""
    path = _toml(tmp_path, "window.days = 3")
    assert load_settings(str(path)).window.days == load_settings(path).window.days == 3


def _walk(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str | None]]:
    """Yield the name and the description of every setting."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _walk(kind, f"{prefix}{name}.")
        else:
            yield prefix + name, field.description


def test_precedence_is_defaults_file_environment_flags(tmp_path: Path) -> None:
    """Each source overrides those before it, setting by setting."""
    file = _toml(tmp_path, "[commit]\narticles = 11\ninterval_ms = 12\ndeadline_seconds = 13.5\n")
    environment = {"STREAM_DEDUP_COMMIT__INTERVAL_MS": "22", "STREAM_DEDUP_COMMIT__DEADLINE_SECONDS": "23.5"}
    settings = load_settings(file, environment, ["commit.deadline_seconds=33.5"])
    assert (settings.commit.articles, settings.commit.interval_ms, settings.commit.deadline_seconds) == (11, 22, 33.5)
    assert settings.commit.bytes == Settings().commit.bytes


def test_environment_reaches_nested_groups() -> None:
    """Two underscores lead into a group; other variables are ignored."""
    environment = {
        "STREAM_DEDUP_INPUT__FIELDS__BODY": "doc.text",
        "STREAM_DEDUP_VERIFY__NEAR_JACCARD": "0.7",
        "PATH": "/bin",
        "STREAM_DEDUPX": "1",
    }
    settings = load_settings(None, environment)
    assert (settings.input.fields.body, settings.verify.near_jaccard) == ("doc.text", 0.7)


def test_lists_may_be_written_with_commas() -> None:
    """In the environment and in flags, commas separate the items of a list."""
    settings = load_settings(flags=["input.topics=a, b", "verify.duplicates=exact,near"])
    assert settings.input.topics == ["a", "b"]
    assert settings.verify.duplicates == [Relation.EXACT, Relation.NEAR]


def test_kafka_properties_come_from_every_layer(tmp_path: Path) -> None:
    """Quoted or not in the file, with underscores in the environment, or as flags: all become dotted names."""
    file = _toml(
        tmp_path,
        '[kafka]\nsecurity.protocol = "ssl"\n"ssl.ca.location" = "ca.pem"\nconsumer.fetch.wait.max.ms = 50\n'
        "socket.keepalive.enable = true\n",
    )
    environment = {
        "STREAM_DEDUP_KAFKA__SASL_PASSWORD": "pw",
        "STREAM_DEDUP_KAFKA__SECURITY_PROTOCOL": "sasl_ssl",
        "STREAM_DEDUP_KAFKA__CONSUMER__FETCH_MIN_BYTES": "5",
    }
    kafka = load_settings(file, environment, ["kafka.bootstrap.servers=b:9092", "kafka.client.id=me"]).kafka
    assert kafka == {
        "bootstrap.servers": "b:9092",
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": "ca.pem",
        "consumer.fetch.wait.max.ms": "50",
        "consumer.fetch.min.bytes": "5",
        "socket.keepalive.enable": "true",
        "sasl.password": "pw",
        "client.id": "me",
    }


def test_lists_are_properties_with_commas(tmp_path: Path) -> None:
    """In the file, several brokers may be a list."""
    file = _toml(tmp_path, '[kafka]\n"bootstrap.servers" = ["a:1", "b:2"]\n')
    assert load_settings(file, {}).kafka["bootstrap.servers"] == "a:1,b:2"


def test_broker_has_a_default() -> None:
    """Without any properties, the broker is on the local machine."""
    assert Settings().kafka == load_settings().kafka == {"bootstrap.servers": "127.0.0.1:9092"}


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("commit.articels=3", "commit.articels = '3': no such setting; did you mean commit.articles?"),
        ("inptu.group=x", "inptu.group = 'x': no such setting; did you mean input.group?"),
        ("inptu=x", "inptu = 'x': no such setting; did you mean input?"),
        ("kafak.client.id=x", "kafak.client.id = 'x': no such setting; did you mean kafka.client.id?"),
        ("batch.interval_ms=9", "batch.interval_ms = '9': no such setting; did you mean commit.interval_ms?"),
        ("window.near_jaccard=1", "did you mean verify.near_jaccard or shadow.verify.near_jaccard?"),
        ("window.format=x", "did you mean input.format or output.format or log.format?"),
        ("shadow.near_jaccard=1", "did you mean verify.near_jaccard or shadow.verify.near_jaccard?"),
        ("nope.x=1", "nope.x = '1': no such setting; available groups: text, weights, "),
        ("input.nope.x=1", "input.nope.x = '1': no such setting; available: topics, group, "),
        ("input.fields.titel=x", "did you mean input.fields.title?"),
        ("log.colour=x", "log.colour = 'x': no such setting; available: level, format"),
    ],
)
def test_unknown_setting_is_named_with_a_hint(flag: str, hint: str) -> None:
    """A misspelt name is refused with the nearest one or all existing ones."""
    assert hint in _faults(flag)


def test_unknown_settings_are_found_in_every_layer(tmp_path: Path) -> None:
    """Misspelt names in the file and the environment are refused as well."""
    assert "did you mean http.port?" in _faults(file=_toml(tmp_path, "[http]\nprot = 1\n"))
    assert "did you mean http.port?" in _faults(environment={"STREAM_DEDUP_HTTP__PROT": "1"})


@pytest.mark.parametrize("name", ["WINDOW_DAYS", "KAFKA_SASL_PASSWORD", "NOPE"])
def test_variable_without_two_underscores_is_told_how_settings_are_written(name: str) -> None:
    """It names no setting, whatever was meant: the message has the variable as it was written, and an example."""
    told = _faults(environment={f"STREAM_DEDUP_{name}": "hunter2"})
    assert told.startswith(f"STREAM_DEDUP_{name}: no such setting")
    assert "write two underscores between the parts, as in STREAM_DEDUP_WINDOW__DAYS" in told
    assert "hunter2" not in told


@pytest.mark.parametrize("name", ["HTTP_PORT", "API_PORT", "PORT"])
def test_port_with_one_underscore_is_told_apart_from_what_kubernetes_sets(name: str) -> None:
    """Kubernetes sets such a variable to a URL, along with others that are ignored as well; a number is a mistake."""
    assert f"STREAM_DEDUP_{name}: no such setting" in _faults(environment={f"STREAM_DEDUP_{name}": "9200"})
    of_kubernetes = {
        name: "tcp://10.0.0.7:9108",
        f"{name}_9108_TCP": "tcp://10.0.0.7:9108",
        f"{name}_9108_TCP_PORT": "9108",
        f"{name}_9108_TCP_ADDR": "10.0.0.7",
        "SERVICE_HOST": "10.0.0.7",
        "API_SERVICE_PORT": "9109",
        "API_SERVICE_PORT_METRICS": "9109",
    }
    environment = {f"STREAM_DEDUP_{variable}": value for variable, value in of_kubernetes.items()}
    assert load_settings(environment=environment) == load_settings()


def test_settings_of_an_unknown_group_are_all_named(tmp_path: Path) -> None:
    """Each is named with its value, unless its name suggests a secret; an empty group is one line."""
    file = _toml(
        tmp_path,
        '[nope]\nx = 1\ny = true\npasword = "hunter2"\n[nope.inner]\nz = ["a"]\n[[nope.list]]\nkey = 2\n'
        'tokn = "hunter2"\n[naught]\n',
    )
    lines = [line.partition("; ")[0] for line in _faults(file=file).splitlines()]
    assert lines == [
        "nope.x = 1: no such setting",
        "nope.y = true: no such setting",
        "nope.pasword = [redacted]: no such setting",
        "nope.inner.z = ['a']: no such setting",
        "nope.list.0.key = 2: no such setting",
        "nope.list.0.tokn = [redacted]: no such setting",
        "naught: no such group",
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[window]\ndays = true\n", "window.days"),
        ("[commit]\narticles = false\n", "commit.articles"),
        ("[weights]\nnoun = true\n", "weights.noun"),
        ("[shadow]\nenabled = true\nverify.near_jaccard = true\n", "shadow.verify.near_jaccard"),
    ],
)
def test_truths_are_no_numbers(text: str, name: str, tmp_path: Path) -> None:
    """Python accepts true as 1, but whoever writes it probably meant another setting."""
    fault = _faults(file=_toml(tmp_path, text))
    assert f"{name} = " in fault
    assert "it must be a number, not true or false" in fault


@pytest.mark.parametrize("value", ["maybe", "on_off", ""])
def test_truths_are_told_as_they_are_written(value: str) -> None:
    """As on the settings page: pydantic speaks of valid booleans and their interpretation."""
    assert _faults(f"api.enabled={value}").startswith(f"api.enabled = '{value}': it must be true or false (")


def test_file_of_windows_is_read(tmp_path: Path) -> None:
    """A byte order mark at the start is not valid TOML, but is skipped."""
    file = _toml(tmp_path, "\ufeff[window]\r\ndays = 3\r\n")
    assert load_settings(file).window.days == 3


def test_empty_path_in_a_file_is_refused(tmp_path: Path) -> None:
    """It must not be taken for the directory of the file."""
    assert "state.directory = ''" in _faults(file=_toml(tmp_path, '[state]\ndirectory = ""\n'))


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("state.directory", "STATE__DIRECTORY"),
        ("input.group", "INPUT__GROUP"),
        ("input.scope_header", "INPUT__SCOPE_HEADER"),
        ("kafka.client.id", "KAFKA__CLIENT_ID"),
    ],
)
def test_bytes_that_are_no_utf_8_are_refused(name: str, variable: str) -> None:
    """They would crash commands that show settings, and librdkafka's clients, with a traceback."""
    told = f"{name} = '\\udcff': it is not valid UTF-8"
    assert _faults(f"{name}=\udcff") == _faults(environment={f"STREAM_DEDUP_{variable}": "\udcff"}) == told


def test_name_of_a_property_that_is_no_utf_8_is_refused() -> None:
    """Librdkafka would crash with SIGSEGV."""
    assert "it is not valid UTF-8" in _faults("kafka.\udcff=1")


@pytest.mark.parametrize("name", ["state.directory", "text.boilerplate", "text.user_dictionary"])
def test_path_with_a_null_character_is_refused(name: str, tmp_path: Path) -> None:
    """The system takes no such path, so the service would fail at its start, without naming the setting."""
    group, _, setting = name.partition(".")
    fault = _faults(file=_toml(tmp_path, f'[{group}]\n{setting} = "a\\u0000b"\n'))
    assert fault.startswith(f"{name} = ")
    assert "a\\x00b': a path cannot contain the character U+0000" in fault


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 elsewhere")
def test_path_from_the_folder_of_a_file_is_utf_8(tmp_path: Path) -> None:
    """A relative path includes the folder's invalid bytes."""
    folder = tmp_path / "\udcff"
    folder.mkdir()
    assert "it is not valid UTF-8" in _faults(file=_toml(folder, '[state]\ndirectory = "state"\n'))


@pytest.mark.parametrize(
    ("flag", "parts"),
    [
        ("commit.articles=0", ("commit.articles = '0'", "it must be a whole number, at least 1 and at most 4096")),
        ("simhash.prefix_bits=29", ("simhash.prefix_bits = '29'", "at least 8 and at most 28")),
        ("commit.articles=many", ("commit.articles = 'many'", "it must be a whole number, at least 1")),
        ("log.level=loud", ("log.level = 'loud'", "'debug', 'info', 'warning' or 'error'")),
        ("input.utc_offset=8", ("input.utc_offset = '8'", "it must be a sign, two digits of hours")),
        ("input.group= ", ("input.group = ' '", "it must be not blank")),
        ("input.group=", ("input.group = ''", "it must have at least 1 character")),
        ("input.topics=^a{1,2}", ("'2}' is neither", "an expression with a comma belongs in the settings file")),
        ("weights.idf_floor=9.5", ("weights.idf_floor = 9.5 is not below idf_ceiling = 9.0",)),
        ("output.unique=.", ("output.unique = '.'", "neither . nor ..")),
        ("output.dead=..", ("output.dead = '..'", "neither . nor ..")),
        (f"output.dead={'a' * 250}", ("output.dead = 'aaa", "it must be 1 to 249 characters out of a-z")),
        (f"state.name={'a' * 201}", ("state.name = 'aaa", "it must be at most 200 characters out of a-z")),
        ("output.unique=no topic", ("output.unique = 'no topic'", "it must be 1 to 249 characters out of a-z")),
        ("shadow.topic=no topic", ("shadow.topic = 'no topic'", "it must be 1 to 249 characters out of a-z")),
        ("state.name=no name", ("state.name = 'no name'", "it must be at most 200 characters out of a-z")),
        ("state.directory=", ("state.directory = ''", "the path is empty")),
        ("text.stop_words=", ("text.stop_words = ''", "the path is empty")),
        ("input.fields.body=a..b", ("input.fields.body = 'a..b'", "a name is missing before or after a dot")),
        ("input.fields.scope=.a", ("input.fields.scope = '.a'", "a name is missing before or after a dot")),
        ("input.topics=no topic", ("input.topics = ", "no topic", "letters, digits")),
        ("input.topics=", ("input.topics", "at least 1 item")),
        ("verify.duplicates=similar", ("verify.duplicates", "'exact', 'near'")),
        ("landmarks.keys=20,sketch.size=16", ("landmarks.keys",)),
    ],
)
def test_value_out_of_bounds_is_named_with_its_bound(flag: str, parts: tuple[str, ...]) -> None:
    """The fault names the setting, the value, what is allowed and what the setting is for."""
    fault = _faults(flag)
    assert all(part in fault for part in parts), fault


def test_fault_of_a_number_tells_all_that_is_allowed() -> None:
    """Whatever is wrong with it, both bounds of the page are in the fault, and whether it must be whole."""
    rows = re.findall(r"^\| `([\w.]+)` \|.*\| (at least `\S+` and at most `\S+`) \|", settings_markdown(), re.MULTILINE)
    assert len(rows) > 50
    for name, bounds in rows:
        for wrong in ("many", "-1e9", "1e99"):
            fault = _faults(f"{name}={wrong}")
            assert re.search(rf"it must be a (whole )?number, {bounds.replace('`', '')}", fault), fault
    assert "commit.articles = '1.5': it must be a whole number" in _faults("commit.articles=1.5")


def test_every_pattern_is_told_in_words() -> None:
    """Neither the fault nor the page requires a reader to understand a regular expression."""
    page = settings_markdown()
    assert "matches" not in page
    assert "[a-z" not in page
    flags = ("input.utc_offset=?", "output.dead=?", "output.clusters=?", "shadow.topic=?", "state.name=?")
    faults = _faults(*flags).splitlines()
    assert len(faults) == len(flags)
    assert all("it must be " in fault for fault in faults)


def test_fault_tells_what_the_setting_is_for() -> None:
    """The fault is followed by the setting's description."""
    assert "(Messages after which a commit is due)" in _faults("commit.articles=0")


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("window=3", "window = '3': it must be a table with any of window.days, window.late"),
        ("api=token:p4ss", "api = [redacted]: it must be a table with any of api.enabled"),
        ("shadow.verify=3", "shadow.verify = '3': it must be a table with any of shadow.verify.near_jaccard, "),
    ],
)
def test_value_in_the_place_of_a_group_is_told_in_words(flag: str, told: str) -> None:
    """The reader knows settings, not the classes that hold them."""
    assert told in _faults(flag)
    assert "dictionary" not in _faults(flag)


def test_several_faults_are_listed_at_once() -> None:
    """Each fault has a line of its own, whatever its kind."""
    flags = ("foo", "commit=1", "commit.articles=3", "bar", "window.days=-1", "text.segmenter=x", "nope.x=1")
    assert [line.split()[0].rstrip(":") for line in _faults(*flags).splitlines()] == [
        "'foo'",
        "commit.articles",
        "'bar'",
        "text.segmenter",
        "window.days",
        "commit",
        "nope.x",
    ]
    lines = _faults("commit.articles=0", "http.port=70000", "log.colour=x", "sketch.gram=1").splitlines()
    assert [line.split()[0].rstrip(":") for line in sorted(lines)] == [
        "commit.articles",
        "http.port",
        "log.colour",
        "sketch.gram",
    ]


def test_settings_that_contradict_each_other_are_refused() -> None:
    """Examples: more landmarks than the sketch holds or a long text may have, and two outputs on one topic."""
    assert "landmarks.keys = 20 is more than sketch.size = 16" in _faults("landmarks.keys=20", "sketch.size=16")
    assert "landmarks.keys = 20 is more than landmarks.most_keys = 19" in _faults(
        "landmarks.keys=20", "landmarks.most_keys=19"
    )
    assert "must all differ" in _faults("output.dead=articles.unique")


@pytest.mark.parametrize("setting", ["output.unique", "output.clusters", "input.topics"])
@pytest.mark.parametrize("topic", ["news.owner", "news.changelog.c6ba7c9e"])
def test_topics_of_the_index_are_no_topics_of_articles(setting: str, topic: str) -> None:
    """Neither to read nor to write: whatever came there would damage the index."""
    told = _faults(f"{setting}={topic}", "state.name=news")
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
        assert "http.port and api.port are both" in _faults(*flags, "api.enabled=true")
    else:
        assert load_settings(flags=[*flags, "api.enabled=true"]).api.enabled
    assert not load_settings(flags=[*flags]).api.enabled


@pytest.mark.parametrize("topic", ["articles.unique", "^articles", r"^.*\.dead$"])
def test_input_that_would_read_an_output_is_refused(topic: str) -> None:
    """A topic or pattern that matches an output topic would be a loop."""
    assert "would read its own output" in _faults(f"input.topics={topic}")


@pytest.mark.parametrize("topic", [r"^articles\.in", "^news", "articles.unique2"])
def test_input_that_reads_no_output_is_taken(topic: str) -> None:
    """Patterns that match no output topic are accepted."""
    assert load_settings(flags=[f"input.topics={topic}"]).input.topics == [topic]


def test_topic_that_is_no_regular_expression_is_named() -> None:
    """A pattern that does not compile is a fault like any other, not a crash."""
    assert "^news(" in _faults("input.topics=^news(")


def test_topic_with_a_line_break_is_refused(tmp_path: Path) -> None:
    """A name that ends in a line break is not a valid topic name."""
    assert "is neither a topic name" in _faults(file=_toml(tmp_path, '[input]\ntopics = ["articles.in\\n"]\n'))


@pytest.mark.parametrize("offset", ["+25:00", "+08:75"])
def test_time_zone_that_cannot_be_is_refused(offset: str) -> None:
    """An offset of more than a day, or of 75 minutes, would make every naive time a dead letter."""
    assert "input.utc_offset" in _faults(f"input.utc_offset={offset}")


@pytest.mark.parametrize(
    "name",
    [
        *("sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem"),
        *("sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "sasl.jaas.config"),
    ],
)
def test_secrets_are_redacted(name: str) -> None:
    """Passwords, secrets and keys are hidden; other properties are shown."""
    settings = load_settings(flags=[f"kafka.{name}=hunter2", "kafka.sasl.username=me"])
    shown = settings.redacted()["kafka"]
    assert (shown[name], shown["sasl.username"]) == (REDACTED, "me")
    assert settings.kafka[name] == "hunter2"


def test_secrets_are_not_in_messages(tmp_path: Path) -> None:
    """They are hidden even if they are in the wrong place or next to a fault."""
    flags = ("sasl.password=hunter2", "kafka.sasl.password=hunter2", "commit.articles=0", "api.tokne=hunter2")
    assert "hunter2" not in _faults(
        *flags, "kafak.sasl.passwrod=hunter2", "sasl.password:hunter2", "api.token.x=hunter2"
    )
    assert "hunter2" not in _faults(*flags)
    assert "hunter2" not in _faults(file=_toml(tmp_path, '[input]\npassword = "hunter2"\n[http]\nport = -1\n'))


@pytest.mark.parametrize(
    "name", ["basic.auth.user.info", "ssl.key.password", "bearer.auth.token", "bearer.auth.client.secret", "proxy"]
)
def test_secrets_of_the_registry_are_redacted(name: str) -> None:
    """The registry's secrets are treated like Kafka's; they can come from the environment as well."""
    variable = "STREAM_DEDUP_REGISTRY__" + name.upper().replace(".", "_")
    settings = load_settings(environment={variable: "hunter2"}, flags=["registry.url=http://r:8081"])
    assert settings.registry == {"url": "http://r:8081", name: "hunter2"}
    assert settings.redacted()["registry"] == {"url": "http://r:8081", name: REDACTED}


@pytest.mark.parametrize("url", ["r:8081", "mock://", "http://me:hunter2@r", "http://r, https://me:hunter2@s", ""])
def test_url_of_the_registry_is_one_without_secrets(url: str) -> None:
    """Credentials in the URL would be shown with it, so they are refused, and not repeated in the message."""
    faults = _faults(f"registry.url={url}")
    assert "registry.url" in faults
    assert "hunter2" not in faults


def test_url_of_the_registry_may_have_a_path() -> None:
    """What is in it are no credentials."""
    url = "https://registry.example/teams/news@work"
    assert load_settings(flags=[f"registry.url={url}"]).registry == {"url": url}


@pytest.mark.parametrize("url", ["http://", "http://[::1", "http://host:port", "https://host:99999", "http://:80"])
@pytest.mark.parametrize("setting", ["registry.url", "tracing.endpoint"])
def test_url_without_a_host_or_a_valid_port_is_refused(setting: str, url: str) -> None:
    """The fault names the setting, whatever is wrong with the URL."""
    assert f"{setting} names no host, or no valid port" in _faults(f"{setting}={url}")


@pytest.mark.parametrize("flag", ["input.format=avro", "input.formats.articles.in=protobuf", "output.format=avro"])
def test_formats_with_schemas_want_a_registry(flag: str) -> None:
    """The format must be one of the four."""
    assert "registry.url" in _faults(flag)
    assert load_settings(flags=[flag, "registry.url=http://r:8081"])
    assert "'json', 'avro', 'protobuf' or 'json-schema'" in _faults(flag.split("=", maxsplit=1)[0] + "=xml")


def test_formats_of_topics_come_from_every_layer(tmp_path: Path) -> None:
    """In the file quoted or not, in the environment as a list of pairs, as flags; the later source wins."""
    file = _toml(tmp_path, '[input]\ntopics = ["^a[.].*", "b.c"]\n[input.formats]\n"a.b" = "avro"\nb.c = "avro"\n')
    url, environment = "registry.url=http://r", {"STREAM_DEDUP_INPUT__FORMATS": "a.b = avro, b.c=protobuf"}
    assert load_settings(file, flags=[url]).input.formats == {"a.b": "avro", "b.c": "avro"}
    flags = [url, "input.formats.b.c=json"]
    assert load_settings(file, flags=flags).input.formats == {"a.b": "avro", "b.c": "json"}
    topics = {"STREAM_DEDUP_INPUT__TOPICS": "a.b, b.c"}
    settings = load_settings(environment={**topics, **environment}, flags=[url])
    assert settings.input.formats == {"a.b": "avro", "b.c": "protobuf"}


def test_format_of_a_topic_that_is_not_read_is_refused() -> None:
    """Otherwise a misspelt name would leave its topic with another format."""
    faults = _faults("input.formats.articles.im=avro", "registry.url=http://r")
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
    assert _faults(flag).startswith(fault)


@pytest.mark.parametrize("host", ["", "a b", "[::]", "0.0.0.0:9108", "http://localhost", "localhost/", "a,b c"])
def test_address_in_another_form_is_refused(host: str) -> None:
    """It is told before anything starts, not when the port is opened."""
    told = "it must be a host's name or an IP address without brackets, and without a port"
    assert _faults(f"http.host={host}").startswith(f"http.host = {host!r}: {told}")


@pytest.mark.parametrize(
    "host", ["localhost", "my_host.internal", "10.0.0.1", "::", "::1", "fe80::1%eth0", "::ffff:10.0.0.1"]
)
def test_address_may_be_a_name_or_of_either_version(host: str) -> None:
    """As the system's resolver takes them."""
    assert load_settings(flags=[f"http.host={host}"]).http.host == host


@pytest.mark.parametrize("token", ["{}\n", " {}", "{} ", "a\nb{}", "\x00{}", "\x7f{}"])
def test_token_that_no_client_can_send_is_refused(token: str) -> None:
    """Such as that of a file that ends with a line break: HTTP trims headers, so it would never be the one sent."""
    told = _faults(environment={"STREAM_DEDUP_API__TOKEN": token.format("a-token-of-some-length")})
    assert told.startswith("api.token has a control character, or space around it: no client can send that")
    assert "a-token" not in told


def test_token_may_be_any_printable_text() -> None:
    """Spaces inside it and letters other than Latin are sent as they are."""
    for token in ("correct horse battery staple", "一个不短的令牌-0123456789"):
        assert load_settings(environment={"STREAM_DEDUP_API__TOKEN": token}).api.token == token


def test_properties_without_a_name_are_refused() -> None:
    """A value for the group itself is not a property; the message shows how one is set."""
    named = "kafka: a value is set without the name of its property: write it as in kafka.bootstrap.servers=kafka:9092"
    assert named in _faults("kafka=hunter2")
    assert named in _faults("kafka.consumer.=hunter2")
    assert named in _faults(environment={"STREAM_DEDUP_KAFKA": "x"})
    assert "write it as in registry.url=http://registry:8081" in _faults("registry=http://r")


@pytest.mark.parametrize("servers", ["", " "])
def test_broker_without_a_name_is_refused(servers: str) -> None:
    """An unset shell variable would otherwise mean one that librdkafka waits for in vain."""
    assert "bootstrap.servers is empty: name at least one broker" in _faults(f"kafka.bootstrap.servers={servers}")


def test_bounds_of_idf_are_those_of_the_profile() -> None:
    """The paper's has none: a floor above the other profile's ceiling contradicts nothing there."""
    weights = load_settings(flags=["weights.profile=paper2020", "weights.idf_floor=9.5"]).weights
    assert (weights.profile, weights.idf_floor) == ("paper2020", 9.5)
    assert "weights.idf_floor = 9.5 is not below" in _faults("weights.idf_floor=9.5")


def test_formats_of_topics_are_pairs() -> None:
    """A format for the group itself belongs to no topic."""
    assert "input.formats = 'json': 'json' is not a pair: write name=value, name=value" in _faults("input.formats=json")


def test_relative_paths_in_a_file_are_relative_to_it(tmp_path: Path) -> None:
    """Relative paths in the file start at its folder, absolute ones are unchanged, flags use the current directory."""
    inner = tmp_path / "inner"
    inner.mkdir()
    absolute = tmp_path / "stops.txt"
    file = _toml(
        inner,
        f'[state]\ndirectory = "../state"\n[text]\nmarker_words = "m.txt"\nstop_words = "{absolute}"\n',
    )
    settings = load_settings(file, {}, ["text.user_dictionary=words.txt"])
    assert settings.state.directory == inner / "../state"
    assert settings.text.marker_words == inner / "m.txt"
    assert settings.text.stop_words == absolute
    assert settings.text.user_dictionary == Path("words.txt")


@pytest.mark.parametrize(
    ("content", "part"), [(b"[batch\n", "is not valid TOML"), ("[a]\nb = '中'".encode("gbk"), "is not valid UTF-8")]
)
def test_file_that_is_no_toml_is_named(content: bytes, part: str, tmp_path: Path) -> None:
    """The error names the broken file."""
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    fault = _faults(file=path)
    assert str(path) in fault
    assert part in fault


def test_file_that_is_missing_is_named(tmp_path: Path) -> None:
    """The error names the missing file."""
    assert str(tmp_path / "none.toml") in _faults(file=tmp_path / "none.toml")


@pytest.mark.parametrize("flag", ["commit.articles", "x", ""])
def test_flag_without_a_value_is_refused(flag: str) -> None:
    """A flag must be group.name=value."""
    assert "group.name=value" in _faults(flag)


@pytest.mark.parametrize("flags", ["kafka.sasl.password=s3cret", b"kafka.sasl.password=s3cret"])
def test_flags_in_one_text_are_refused(flags: str | bytes) -> None:
    """A text is a sequence of letters, none of which is a setting; its value is not shown."""
    kind = type(flags).__name__
    said = "a sequence of settings is expected, each group.name=value; wrap a single one in a list"
    with pytest.raises(TypeError, match=f"^flags is of type {kind}: {said}$"):
        load_settings(flags=flags)  # type: ignore[arg-type]


@pytest.mark.parametrize("flag", ["commit=3", "x=1", "commit.articles.x=1"])
def test_flag_that_names_no_setting_is_refused(flag: str) -> None:
    """A value for a group, a name without a group, and a name below a setting are faults."""
    assert flag.partition("=")[0].partition(".")[0] in _faults(flag)


def test_group_and_setting_of_one_name_do_not_crash() -> None:
    """Setting both a group and a name inside it is a fault, in either order."""
    for flags in (("commit=1", "commit.articles=2"), ("commit.articles=2", "commit=1")):
        assert "commit" in _faults(*flags)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable.auto.commit", "true"),
        ("consumer.enable.auto.commit", "true"),
        ("enable.auto.offset.store", "true"),
        ("enable.partition.eof", "true"),
        ("group.id", "other"),
    ],
)
def test_consumer_properties_that_the_service_depends_on_are_refused(name: str, value: str) -> None:
    """Overriding one of these could lose or duplicate articles; the fault names it and its required value."""
    settings = load_settings(flags=[f"kafka.{name}={value}"])
    with pytest.raises(SettingsError, match=name.removeprefix("consumer.").replace(".", r"\.")):
        consumer_properties(settings)


@pytest.mark.parametrize(("name", "value"), [("acks", "1"), ("producer.enable.idempotence", "false")])
def test_producer_properties_that_the_service_depends_on_are_refused(name: str, value: str) -> None:
    """The same holds for the producer."""
    with pytest.raises(SettingsError, match="the service requires"):
        producer_properties(load_settings(flags=[f"kafka.{name}={value}"]))


def test_properties_go_to_the_client_that_they_name() -> None:
    """A prefix selects a client and overrides the common value; the service's defaults can be overridden."""
    flags = ["linger.ms=7", "consumer.auto.offset.reset=latest", "producer.linger.ms=9", "client.id=me"]
    settings = load_settings(flags=[f"kafka.{flag}" for flag in flags])
    consumer, producer = consumer_properties(settings), producer_properties(settings)
    assert (consumer["auto.offset.reset"], consumer["linger.ms"], consumer["client.id"]) == ("latest", "7", "me")
    assert (producer["linger.ms"], producer["acks"], producer["client.id"]) == ("9", "all", "me")
    assert "auto.offset.reset" not in producer
    assert consumer["group.id"] == settings.input.group


@pytest.mark.parametrize("flag", ["kafka.no.such.property=1", "kafka.security.protocol=carrier-pigeon"])
def test_properties_that_librdkafka_refuses_are_found_without_a_broker(flag: str) -> None:
    """A misspelt property or value is reported before anything starts."""
    with pytest.raises(SettingsError, match="librdkafka"):
        check_properties(load_settings(flags=[flag]))


@pytest.mark.parametrize("name", ["error_cb", "consumer.stats_cb", "producer.logger", "default.topic.config"])
def test_objects_of_the_python_client_are_no_properties(name: str) -> None:
    """Text in the place of a function is a fault with a name, not a crash of the client."""
    with pytest.raises(SettingsError) as told:
        check_properties(load_settings(flags=[f"kafka.{name}=x"]))
    assert str(told.value) == f"kafka.{name} = 'x': it is not a property of librdkafka"


def test_all_properties_that_are_refused_are_told() -> None:
    """Each has a line with its name as set and its value, whichever client it is for and whatever refuses it."""
    given = {
        "acks": "1",
        "nonsense": "7",
        "consumer.session.timeout.ms": "0",
        "producer.linger.ms": "soon",
        "enable.auto.commit": "true",
        "transactional.id": "mine",
        "client.id": "me",
    }
    with pytest.raises(SettingsError) as told:
        check_properties(load_settings(flags=[f"kafka.{name}={value}" for name, value in given.items()]))
    lines = str(told.value).splitlines()
    del given["client.id"]
    assert sorted(line.partition(": ")[0] for line in lines) == sorted(f"kafka.{n} = {v!r}" for n, v in given.items())


@pytest.mark.parametrize("given", [(), ("sasl.username=me",)], ids=["neither", "username"])
def test_missing_password_is_one_fault(given: tuple[str, ...]) -> None:
    """It is told once, not again for each client, nor because the user name was left out to find other faults."""
    flags = ["security.protocol=sasl_ssl", "sasl.mechanism=PLAIN", *given]
    with pytest.raises(SettingsError, match=r"sasl\.password must be set") as told:
        check_properties(load_settings(flags=[f"kafka.{flag}" for flag in flags]))
    assert len(str(told.value).splitlines()) == 1


def test_secrets_are_not_in_what_is_refused() -> None:
    """Neither for misspelt properties nor in librdkafka's own messages."""
    flags = ["sasl.pasword=hunter2", "ssl.key.pem=hunter2", "security.protocol=ssl"]
    with pytest.raises(SettingsError) as told:
        check_properties(load_settings(flags=[f"kafka.{flag}" for flag in flags]))
    assert "kafka.sasl.pasword = [redacted]: " in str(told.value)
    assert "hunter2" not in str(told.value)


def test_librdkafka_takes_what_the_largest_commits_need() -> None:
    """Sizes that follow from settings are no larger than it allows."""
    check_properties(load_settings(flags=[f"{name}={1 << 30}" for name in ("commit.bytes", "input.max_message_bytes")]))


@pytest.mark.parametrize("acks", ["all", "-1", "ALL"])
def test_property_may_be_written_as_librdkafka_has_it(acks: str) -> None:
    """That of all replicas has two names; whichever is set, it is what the service requires."""
    assert producer_properties(load_settings(flags=[f"kafka.acks={acks}"]))["acks"] == "all"


def test_every_setting_has_a_description() -> None:
    """Every setting has a sentence that says what it is for."""
    described = dict(_walk(Settings))
    assert len(described) > 60
    assert [name for name, text in described.items() if not text or not text.endswith(".")] == []


def test_reference_page_names_every_setting() -> None:
    """The page has a row for each setting, with its description."""
    page = settings_markdown()
    for name, description in _walk(Settings):
        assert any(line.startswith(f"| `{name}` |") and str(description) in line for line in page.splitlines())


def test_shipped_file_is_valid() -> None:
    """The shipped settings file loads and refers to no other file, so it can be copied anywhere."""
    settings = load_settings(_ROOT / "config" / "stream-dedup.toml")
    assert settings == load_settings()


def test_settings_cannot_be_changed() -> None:
    """Settings are frozen, so no threshold changes while the service runs."""
    with pytest.raises(ValueError, match="frozen"):
        setattr(Settings().commit, "articles", 3)  # noqa: B010  # the type checker forbids it too


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
    assert said in _faults(flag)


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
    assert _faults(*flags).startswith(f"input.fields.{inner} is within input.fields.{outer}, ")


def test_fields_may_be_beside_each_other_or_the_same() -> None:
    """Only whole names count, and one value can serve two fields, such as a URL that is the id as well."""
    flags = ["input.fields.body=doc.text", "input.fields.title=doc.text_title", "input.fields.source=doc.from"]
    fields = load_settings(flags=[*flags, "input.fields.id=url"]).input.fields
    assert (fields.body, fields.title, fields.id, fields.url) == ("doc.text", "doc.text_title", "url", "url")


@pytest.mark.parametrize("place", ["input.scope_header=tenant", "input.fields.scope=meta.tenant"])
def test_scope_may_be_demanded_where_it_is_looked_for(place: str) -> None:
    """A header or a field is enough."""
    assert load_settings(flags=["input.scope_missing=dead", place]).input.scope_missing == "dead"
