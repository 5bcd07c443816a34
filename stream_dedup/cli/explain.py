"""The command `explain`: compares two texts in files, or two articles of a service.

Knows arguments and what is printed; knows nothing of how texts are compared.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stream_dedup.cli.ask import JsonOption, ScopeOption, as_id
from stream_dedup.cli.terminal import (
    EXIT_USAGE,
    ConfigOption,
    SetOption,
    database_path,
    fail,
    file_path,
    out,
    run_reporting_errors,
    settings_of,
    telling_of_compiling,
    text_of,
)
from stream_dedup.settings import Settings

if TYPE_CHECKING:
    from stream_dedup.text.idf import Epoch
    from stream_dedup.text.normal import Normaliser


def explain_command(
    first: Annotated[
        Path | None, typer.Argument(help="Text file in UTF-8; - for standard input.", metavar="A.txt", parser=file_path)
    ] = None,
    second: Annotated[
        Path | None, typer.Argument(help="Text file to compare it with, or -.", metavar="B.txt", parser=file_path)
    ] = None,
    article: Annotated[
        str | None,
        typer.Option("--id", help="Id of an article of the service, instead of files.", metavar="ID", parser=as_id),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(
            "--other",
            help="Id of the article to compare it with; by default, the one that it was linked to.",
            metavar="ID",
            parser=as_id,
        ),
    ] = None,
    scope: ScopeOption = "",
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            help="Directory of a state whose document counts weight the words of the files.",
            metavar="DIR",
            parser=database_path,
        ),
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Explain why two texts are, or are not, duplicates.

    With --id they are articles of the service with these settings, running or not: the decisions are read from
    state.directory, and the texts from the topics that the articles came from.
    """
    settings = settings_of(config, flags)
    if article is not None and (first is not None or state is not None):
        fail("--id takes both articles from the service: do not give files or --state as well", EXIT_USAGE)
    if article is not None:
        run_reporting_errors(lambda: _explain_articles(settings, article, scope, other, as_json=as_json))
    elif first is None or second is None:
        fail("give two files, A.txt and B.txt, or --id ID", EXIT_USAGE)
    elif other is not None or scope:
        fail("--other and --scope refer to articles of the service: they require --id", EXIT_USAGE)
    else:
        run_reporting_errors(lambda: _explain_files(settings, first, second, state, as_json=as_json))


def _explain_files(settings: Settings, first: Path, second: Path, state: Path | None, *, as_json: bool) -> None:
    from stream_dedup.ask.measures import measures_of
    from stream_dedup.engine.explain import explain
    from stream_dedup.files.readers import check_regular
    from stream_dedup.rendering.reason import differences_shown, measures_shown

    if first == second:
        check_regular(first)  # anything else would be empty the second time
    most = settings.input.max_body_chars
    texts = text_of(first, most), text_of(second, most)
    with telling_of_compiling():
        measures = measures_of(explain(*texts, settings, _epoch_of(settings, state)))
    if as_json:
        out.print_json(measures.model_dump_json())
    else:
        out.print(measures_shown(measures, (first.name, second.name)))
        out.print(differences_shown(*texts, _normal(settings), marks=_without_colours()))


def _explain_articles(settings: Settings, article: str, scope: str, other: str | None, *, as_json: bool) -> None:
    from stream_dedup.ask.query_service import QueryService
    from stream_dedup.rendering.reason import reason_shown

    with telling_of_compiling(), QueryService(settings) as queries:
        reason = queries.reason(article, scope, other)
    if as_json:
        out.print_json(reason.model_dump_json())
    else:
        out.print(reason_shown(reason, _normal(settings), marks=_without_colours()))


def _normal(settings: Settings) -> "Normaliser":
    from stream_dedup.text.normal import Normaliser

    return Normaliser(simplify=settings.text.simplify, strip_html=False)  # of characters


def _without_colours() -> bool:
    return out.color_system is None or out.no_color


def _epoch_of(settings: Settings, state: Path | None) -> "Epoch | None":
    from stream_dedup.index.peek import epoch_of_state, is_state
    from stream_dedup.stream.state.states import digest_of, state_directory

    if state is None:
        return None
    # A service keeps its database in a subdirectory named after its settings.
    named = settings.model_copy(update={"state": settings.state.model_copy(update={"directory": state})})
    inner = state_directory(named, digest_of(settings))
    return epoch_of_state(inner if is_state(inner) else state)
