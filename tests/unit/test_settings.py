"""Settings: precedence of their sources, and faults reported with name, value and bound."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from stream_dedup.article import Relation
from stream_dedup.settings import Settings, load_settings
from stream_dedup.settings.reference import settings_markdown
from tests.unit.given_settings import faults_of, toml

_ROOT = Path(__file__).parents[2]


def test_settings_file_may_be_named_by_a_string(tmp_path: Path) -> None:
    """As the directory of an engine may."""
    path = toml(tmp_path, "window.days = 3")
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
    file = toml(tmp_path, "[commit]\narticles = 11\ninterval_ms = 12\ndeadline_seconds = 13.5\n")
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
    assert hint in faults_of(flag)


def test_unknown_settings_are_found_in_every_layer(tmp_path: Path) -> None:
    """Misspelt names in the file and the environment are refused as well."""
    assert "did you mean http.port?" in faults_of(file=toml(tmp_path, "[http]\nprot = 1\n"))
    assert "did you mean http.port?" in faults_of(environment={"STREAM_DEDUP_HTTP__PROT": "1"})


@pytest.mark.parametrize("name", ["WINDOW_DAYS", "KAFKA_SASL_PASSWORD", "NOPE"])
def test_variable_without_two_underscores_is_told_how_settings_are_written(name: str) -> None:
    """It names no setting, whatever was meant: the message has the variable as it was written, and an example."""
    told = faults_of(environment={f"STREAM_DEDUP_{name}": "hunter2"})
    assert told.startswith(f"STREAM_DEDUP_{name}: no such setting")
    assert "write two underscores between the parts, as in STREAM_DEDUP_WINDOW__DAYS" in told
    assert "hunter2" not in told


@pytest.mark.parametrize("name", ["HTTP_PORT", "API_PORT", "PORT"])
def test_port_with_one_underscore_is_told_apart_from_what_kubernetes_sets(name: str) -> None:
    """Kubernetes sets such a variable to a URL, along with others that are ignored as well; a number is a mistake."""
    assert f"STREAM_DEDUP_{name}: no such setting" in faults_of(environment={f"STREAM_DEDUP_{name}": "9200"})
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
    file = toml(
        tmp_path,
        '[nope]\nx = 1\ny = true\npasword = "hunter2"\n[nope.inner]\nz = ["a"]\n[[nope.list]]\nkey = 2\n'
        'tokn = "hunter2"\n[naught]\n',
    )
    lines = [line.partition("; ")[0] for line in faults_of(file=file).splitlines()]
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
    fault = faults_of(file=toml(tmp_path, text))
    assert f"{name} = " in fault
    assert "it must be a number, not true or false" in fault


@pytest.mark.parametrize("value", ["maybe", "on_off", ""])
def test_truths_are_told_as_they_are_written(value: str) -> None:
    """As on the settings page: pydantic speaks of valid booleans and their interpretation."""
    assert faults_of(f"api.enabled={value}").startswith(f"api.enabled = '{value}': it must be true or false (")


def test_file_of_windows_is_read(tmp_path: Path) -> None:
    """A byte order mark at the start is not valid TOML, but is skipped."""
    file = toml(tmp_path, "\ufeff[window]\r\ndays = 3\r\n")
    assert load_settings(file).window.days == 3


def test_empty_path_in_a_file_is_refused(tmp_path: Path) -> None:
    """It must not be taken for the directory of the file."""
    assert "state.directory = ''" in faults_of(file=toml(tmp_path, '[state]\ndirectory = ""\n'))


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
    assert faults_of(f"{name}=\udcff") == faults_of(environment={f"STREAM_DEDUP_{variable}": "\udcff"}) == told


def test_name_of_a_property_that_is_no_utf_8_is_refused() -> None:
    """Librdkafka would crash with SIGSEGV."""
    assert "it is not valid UTF-8" in faults_of("kafka.\udcff=1")


@pytest.mark.parametrize("name", ["state.directory", "text.boilerplate", "text.user_dictionary"])
def test_path_with_a_null_character_is_refused(name: str, tmp_path: Path) -> None:
    """The system takes no such path, so the service would fail at its start, without naming the setting."""
    group, _, setting = name.partition(".")
    fault = faults_of(file=toml(tmp_path, f'[{group}]\n{setting} = "a\\u0000b"\n'))
    assert fault.startswith(f"{name} = ")
    assert "a\\x00b': a path cannot contain the character U+0000" in fault


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 elsewhere")
def test_path_from_the_folder_of_a_file_is_utf_8(tmp_path: Path) -> None:
    """A relative path includes the folder's invalid bytes."""
    folder = tmp_path / "\udcff"
    folder.mkdir()
    assert "it is not valid UTF-8" in faults_of(file=toml(folder, '[state]\ndirectory = "state"\n'))


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
    fault = faults_of(flag)
    assert all(part in fault for part in parts), fault


def test_fault_of_a_number_tells_all_that_is_allowed() -> None:
    """Whatever is wrong with it, both bounds of the page are in the fault, and whether it must be whole."""
    rows = re.findall(r"^\| `([\w.]+)` \|.*\| (at least `\S+` and at most `\S+`) \|", settings_markdown(), re.MULTILINE)
    assert len(rows) > 50
    for name, bounds in rows:
        for wrong in ("many", "-1e9", "1e99"):
            fault = faults_of(f"{name}={wrong}")
            assert re.search(rf"it must be a (whole )?number, {bounds.replace('`', '')}", fault), fault
    assert "commit.articles = '1.5': it must be a whole number" in faults_of("commit.articles=1.5")


def test_every_pattern_is_told_in_words() -> None:
    """Neither the fault nor the page requires a reader to understand a regular expression."""
    page = settings_markdown()
    assert "matches" not in page
    assert "[a-z" not in page
    flags = ("input.utc_offset=?", "output.dead=?", "output.clusters=?", "shadow.topic=?", "state.name=?")
    faults = faults_of(*flags).splitlines()
    assert len(faults) == len(flags)
    assert all("it must be " in fault for fault in faults)


def test_fault_tells_what_the_setting_is_for() -> None:
    """The fault is followed by the setting's description."""
    assert "(Messages after which a commit is due)" in faults_of("commit.articles=0")


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
    assert told in faults_of(flag)
    assert "dictionary" not in faults_of(flag)


def test_several_faults_are_listed_at_once() -> None:
    """Each fault has a line of its own, whatever its kind."""
    flags = ("foo", "commit=1", "commit.articles=3", "bar", "window.days=-1", "text.segmenter=x", "nope.x=1")
    assert [line.split()[0].rstrip(":") for line in faults_of(*flags).splitlines()] == [
        "'foo'",
        "commit.articles",
        "'bar'",
        "text.segmenter",
        "window.days",
        "commit",
        "nope.x",
    ]
    lines = faults_of("commit.articles=0", "http.port=70000", "log.colour=x", "sketch.gram=1").splitlines()
    assert [line.split()[0].rstrip(":") for line in sorted(lines)] == [
        "commit.articles",
        "http.port",
        "log.colour",
        "sketch.gram",
    ]


def test_topic_that_is_no_regular_expression_is_named() -> None:
    """A pattern that does not compile is a fault like any other, not a crash."""
    assert "^news(" in faults_of("input.topics=^news(")


def test_topic_with_a_line_break_is_refused(tmp_path: Path) -> None:
    """A name that ends in a line break is not a valid topic name."""
    assert "is neither a topic name" in faults_of(file=toml(tmp_path, '[input]\ntopics = ["articles.in\\n"]\n'))


@pytest.mark.parametrize("offset", ["+25:00", "+08:75"])
def test_time_zone_that_cannot_be_is_refused(offset: str) -> None:
    """An offset of more than a day, or of 75 minutes, would make every naive time a dead letter."""
    assert "input.utc_offset" in faults_of(f"input.utc_offset={offset}")


def test_url_of_the_registry_may_have_a_path() -> None:
    """What is in it are no credentials."""
    url = "https://registry.example/teams/news@work"
    assert load_settings(flags=[f"registry.url={url}"]).registry == {"url": url}


@pytest.mark.parametrize("url", ["http://", "http://[::1", "http://host:port", "https://host:99999", "http://:80"])
@pytest.mark.parametrize("setting", ["registry.url", "tracing.endpoint"])
def test_url_without_a_host_or_a_valid_port_is_refused(setting: str, url: str) -> None:
    """The fault names the setting, whatever is wrong with the URL."""
    assert f"{setting} names no host, or no valid port" in faults_of(f"{setting}={url}")


@pytest.mark.parametrize("host", ["", "a b", "[::]", "0.0.0.0:9108", "http://localhost", "localhost/", "a,b c"])
def test_address_in_another_form_is_refused(host: str) -> None:
    """It is told before anything starts, not when the port is opened."""
    told = "it must be a host's name or an IP address without brackets, and without a port"
    assert faults_of(f"http.host={host}").startswith(f"http.host = {host!r}: {told}")


@pytest.mark.parametrize(
    "host", ["localhost", "my_host.internal", "10.0.0.1", "::", "::1", "fe80::1%eth0", "::ffff:10.0.0.1"]
)
def test_address_may_be_a_name_or_of_either_version(host: str) -> None:
    """As the system's resolver takes them."""
    assert load_settings(flags=[f"http.host={host}"]).http.host == host


def test_relative_paths_in_a_file_are_relative_to_it(tmp_path: Path) -> None:
    """Relative paths in the file start at its folder, absolute ones are unchanged, flags use the current directory."""
    inner = tmp_path / "inner"
    inner.mkdir()
    absolute = tmp_path / "stops.txt"
    file = toml(
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
    fault = faults_of(file=path)
    assert str(path) in fault
    assert part in fault


def test_file_that_is_missing_is_named(tmp_path: Path) -> None:
    """The error names the missing file."""
    assert str(tmp_path / "none.toml") in faults_of(file=tmp_path / "none.toml")


@pytest.mark.parametrize("flag", ["commit.articles", "x", ""])
def test_flag_without_a_value_is_refused(flag: str) -> None:
    """A flag must be group.name=value."""
    assert "group.name=value" in faults_of(flag)


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
    assert flag.partition("=")[0].partition(".")[0] in faults_of(flag)


def test_group_and_setting_of_one_name_do_not_crash() -> None:
    """Setting both a group and a name inside it is a fault, in either order."""
    for flags in (("commit=1", "commit.articles=2"), ("commit.articles=2", "commit=1")):
        assert "commit" in faults_of(*flags)


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


def test_type_checkers_see_which_settings_have_a_default() -> None:
    """They know pydantic's fields by the standard for dataclasses, in which a default that is not named is none."""
    for path in sorted((_ROOT / "stream_dedup" / "settings").glob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        fields = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Field"]
        assert not [f"{path.name}:{field.lineno}" for field in fields if field.args]
