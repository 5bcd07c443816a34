"""The commands that ask about a state: status, article, cluster, similar; and api, which answers over HTTP.

Knows arguments and what is printed; knows nothing of how an answer is found.
"""

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import RenderableType

from stream_dedup.article import Article
from stream_dedup.ask.bounds import (
    LONGEST_ID,
    MAX_SIMILARITY,
    MOST_MEMBERS,
    MOST_SKIPPED,
    UNNAMED,
    checked_id,
    checked_scope,
)
from stream_dedup.cli.terminal import (
    ConfigOption,
    SetOption,
    failure_reporter,
    file_path,
    json_line,
    option_parser,
    out,
    run_reporting_errors,
    settings_of,
    telling_of_compiling,
    text_of,
)
from stream_dedup.settings import Settings
from stream_dedup.settings.kinds import required_utf8
from stream_dedup.signals import handle_signals, leave

if TYPE_CHECKING:
    from stream_dedup.ask.answers import Answer, StatusAnswer
    from stream_dedup.ask.query_service import QueryService

_LOOK_SECONDS = 1.0
_DAY = 86_400
_Answered = TypeVar("_Answered", bound="Answer")


def _id(text: str) -> str:
    if not 1 <= len(text) <= LONGEST_ID:
        raise ValueError(f"it has {len(text)} characters: 1 to {LONGEST_ID} are allowed")
    return checked_id(required_utf8(text))


as_text = option_parser(required_utf8)
as_id = option_parser(_id)
as_scope = option_parser(lambda text: checked_scope(required_utf8(text)))

_DASH = "with -- before it, if it begins with a dash"
IdArgument = Annotated[str, typer.Argument(help=f"Id of the article, {_DASH}.", metavar="ID", parser=as_id)]
ScopeOption = Annotated[
    str,
    typer.Option("--scope", help="Scope of the article, if it has one.", metavar="SCOPE", parser=as_scope),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON with the fields of the HTTP API.")]


def api_command(config: ConfigOption = None, flags: SetOption = None) -> None:
    """Serve the HTTP API and its web page on the state of a service, in a process of its own."""
    settings = settings_of(config, flags)
    from stream_dedup.api.server import Server
    from stream_dedup.observe.log_hooks import install_log_hooks

    install_log_hooks()
    server = Server(settings)
    handle_signals(lambda *_: server.stop())
    run_reporting_errors(server.run, failure_reporter(settings))


def status_command(
    watch: Annotated[
        float,
        typer.Option(
            min=0, max=_DAY, help="Update every SECONDS, until Ctrl-C; 0: show the status once.", metavar="SECONDS"
        ),
    ] = 0.0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Show the progress of the service, and its rate, measured over a second.

    Reads the state in state.directory, whether the service is running or not. The numbers of decisions and of waiting
    messages come from the service's port (http.host, http.port), and are left out if it does not answer.
    """
    settings = settings_of(config, flags)
    from stream_dedup.rendering.answers import status_shown

    def work() -> None:
        with _queries(settings) as queries:
            queries.refresh()
            if watch:
                _watch(queries, max(watch, _LOOK_SECONDS), as_json=as_json)
            else:
                _print(_looked(queries, _LOOK_SECONDS), status_shown, as_json=as_json)

    run_reporting_errors(work)


def article_command(
    article: IdArgument,
    scope: ScopeOption = "",
    as_json: JsonOption = False,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Show the decision on an article.

    Reads the state in state.directory: of a service, running or not, or from `stream-dedup dedup --state`.
    """
    settings = settings_of(config, flags)
    from stream_dedup.rendering.answers import article_shown

    _ask(settings, lambda queries: queries.article(article, scope), article_shown, as_json=as_json)


def cluster_command(
    article: Annotated[
        str, typer.Argument(help=f"Id of any article in the cluster, {_DASH}.", metavar="ID", parser=as_id)
    ],
    scope: ScopeOption = "",
    limit: Annotated[int, typer.Option(min=0, max=MOST_MEMBERS, help="Maximum number of members shown.")] = 50,
    offset: Annotated[int, typer.Option(min=0, max=MOST_SKIPPED, help="Number of members skipped before them.")] = 0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Show an article with all its copies, why each is one, and when they arrived.

    Reads the state in state.directory: of a service, running or not, or from `stream-dedup dedup --state`.
    """
    settings = settings_of(config, flags)
    from stream_dedup.rendering.answers import cluster_shown

    _ask(
        settings,
        lambda queries: queries.cluster(article, scope, most=limit, skipped=offset),
        cluster_shown,
        as_json=as_json,
    )


def similar_command(
    file: Annotated[
        Path, typer.Argument(help="Text file in UTF-8; - for standard input.", metavar="FILE", parser=file_path)
    ],
    title: Annotated[str, typer.Option("--title", help="Title of the text.", metavar="TEXT", parser=as_text)] = "",
    source: Annotated[
        str,
        typer.Option(
            "--source",
            help="Publisher of the text: lines that this site puts around its articles are ignored.",
            metavar="NAME",
            parser=as_text,
        ),
    ] = "",
    url: Annotated[
        str,
        typer.Option(
            "--url", help="URL of the text; without --source, its host is the site.", metavar="URL", parser=as_text
        ),
    ] = "",
    scope: Annotated[
        str,
        typer.Option("--scope", help="Compare only with articles of this scope.", metavar="SCOPE", parser=as_scope),
    ] = "",
    limit: Annotated[int, typer.Option(min=1, max=MAX_SIMILARITY, help="Maximum number of articles shown.")] = 10,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Show which known articles a text resembles, and what would be decided on it; the text is not stored.

    Reads the state in state.directory: of a service, running or not, or from `stream-dedup dedup --state`.
    """
    settings = settings_of(config, flags)
    from stream_dedup.rendering.answers import similar_shown

    def work() -> None:
        asked = Article(UNNAMED, text_of(file, settings.input.max_body_chars), title, url, source, scope=scope)
        with telling_of_compiling(), _queries(settings) as queries:
            queries.catch_up()
            _print(queries.similar(asked, limit), similar_shown, as_json=as_json)

    run_reporting_errors(work)


def _ask(
    settings: Settings,
    question: "Callable[[QueryService], _Answered]",
    shown: Callable[[_Answered], RenderableType],
    *,
    as_json: bool,
) -> None:
    def work() -> None:
        with _queries(settings) as queries:
            _print(question(queries), shown, as_json=as_json)

    run_reporting_errors(work)


def _queries(settings: Settings) -> "QueryService":
    from stream_dedup.ask.query_service import QueryService

    return QueryService(settings)


def _print(answer: _Answered, shown: Callable[[_Answered], RenderableType], *, as_json: bool) -> None:
    if as_json:
        out.print_json(answer.model_dump_json())
    else:
        out.print(shown(answer))


def _looked(queries: "QueryService", seconds: float) -> "StatusAnswer":
    time.sleep(seconds)
    queries.refresh()
    return queries.status()


def _watch(queries: "QueryService", seconds: float, *, as_json: bool) -> None:
    """Show the status until Ctrl-C: updated in place on a terminal, else one after the other."""
    from rich.live import Live

    from stream_dedup.rendering.answers import status_shown

    handle_signals(lambda *_: leave(0), signal.SIGINT)
    if as_json or not out.is_terminal:
        while True:
            answer = _looked(queries, seconds)
            if as_json:
                json_line(answer.model_dump_json())
            else:
                out.print(status_shown(answer), "")
            sys.stdout.flush()
    with Live(console=out, auto_refresh=False) as live:
        while True:
            live.update(status_shown(_looked(queries, seconds)), refresh=True)
