"""The command `tail`: decisions as they are published.

Knows arguments, filters and the stream of lines; knows nothing of topics.
"""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from stream_dedup.article import Announcement, Relation
from stream_dedup.cli.ask import as_id, as_text
from stream_dedup.cli.terminal import (
    EXIT_USAGE,
    ConfigOption,
    SetOption,
    fail,
    json_line,
    out,
    run_reporting_errors,
    settings_of,
    tell,
)
from stream_dedup.settings import Settings
from stream_dedup.signals import handle_signals, leave

if TYPE_CHECKING:
    from confluent_kafka import Message

    from stream_dedup.ask.decisions import DecisionAnswer
    from stream_dedup.ask.disagreements import DisagreementAnswer

    _Told = DecisionAnswer | DisagreementAnswer

_DECISIONS = ["unique", "duplicate", "announcement", "dead"]
_RELATIONS = [str(relation) for relation in (*Relation, *Announcement)]
# A shadow judges articles; it sees neither dead letters nor what is announced.
_SHADOWED = ["unique", "duplicate"], [str(relation) for relation in Relation]


def _or(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def tail_command(
    last: Annotated[
        int,
        typer.Option(
            "--last", "-n", min=0, metavar="N", help="Start with the newest N decisions; filters may leave fewer."
        ),
    ] = 0,
    beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start with the oldest decision in the topics.")
    ] = False,
    follow: Annotated[bool, typer.Option(help="Wait for more at the end of the topics.")] = True,
    decisions: Annotated[
        list[str] | None,
        typer.Option(
            "--decision",
            "-d",
            metavar="DECISION",
            help=f"Show only {_or(_DECISIONS)}.",
            autocompletion=lambda: _DECISIONS,
        ),
    ] = None,
    relations: Annotated[
        list[str] | None,
        typer.Option(
            "--relation",
            "-r",
            metavar="RELATION",
            help=f"Show only {_or(_RELATIONS)}.",
            autocompletion=lambda: _RELATIONS,
        ),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option("--source", help="Show only articles from this source.", metavar="NAME", parser=as_text),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", help="Show only this article and its copies.", metavar="ID", parser=as_id),
    ] = None,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Show instead where the shadow disagrees (shadow.enabled).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each decision as a line of JSON.")] = False,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Show decisions as they are published, one per line, until Ctrl-C.

    They are read from the output topics without joining a consumer group. Filters may be repeated: a decision must
    match at least one of each kind given. With --shadow, both decisions on an article are shown, and it is enough if
    either matches.
    """
    settings = settings_of(config, flags)
    if last and beginning:
        fail("--last and --from-beginning cannot be used together", EXIT_USAGE)
    known_decisions, known_relations = _SHADOWED if shadow else (_DECISIONS, _RELATIONS)
    _check("--decision", decisions, known_decisions)
    _check("--relation", relations, known_relations)
    wanted = _wanted(decisions, relations, sources, ids)
    from stream_dedup.stream.kafka.clients import BrokerError
    from stream_dedup.stream.kafka.tail import Tail
    from stream_dedup.stream.state.states import is_of_files

    def follow_topics() -> None:
        with _reading(settings, shadow=shadow) as (topics, read), Tail(settings, topics) as tail:
            for message in tail.messages(None if beginning else last, endless=follow):
                try:
                    told = read(message)
                except ValueError as error:
                    tell("skipped", str(error))
                    continue
                if told is not None and wanted(told):
                    _print(told, as_json=as_json)

    def work() -> None:
        handle_signals(lambda *_: leave(0), signal.SIGINT)
        try:
            follow_topics()
        except BrokerError as error:
            # Not refused at first: what is read is on the broker, whatever the directory holds.
            if not is_of_files(settings):
                raise
            raise BrokerError(
                f"{error}; {settings.state.directory} is a state that `stream-dedup dedup --state` made: its decisions "
                "are in the files of its results"
            ) from None

    run_reporting_errors(work)


@contextmanager
def _reading(
    settings: Settings, *, shadow: bool
) -> "Iterator[tuple[Sequence[str], Callable[[Message], _Told | None]]]":
    """Provide the topics to follow, and the function that reads their messages."""
    from stream_dedup.ask.decisions import Decisions
    from stream_dedup.ask.disagreements import disagreement

    if shadow:
        yield [settings.shadow.topic], disagreement
        return
    with Decisions(settings) as decisions:
        yield decisions.topics, decisions.decision


def _print(told: "_Told", *, as_json: bool) -> None:
    from stream_dedup.ask.decisions import DecisionAnswer
    from stream_dedup.rendering.decision import decision_line, disagreement_line

    if as_json:
        json_line(told.model_dump_json())
    else:
        line = decision_line(told) if isinstance(told, DecisionAnswer) else disagreement_line(told)
        # Only on a terminal are long lines cut.
        out.print(line, no_wrap=True, overflow="ellipsis" if out.is_terminal else "ignore", crop=out.is_terminal)
    sys.stdout.flush()


def _check(option: str, given: Sequence[str] | None, known: Sequence[str]) -> None:
    for name in given or ():
        if name not in known:
            fail(f"{option} {name}: choose from {', '.join(known)}", EXIT_USAGE)


def _wanted(
    decisions: list[str] | None, relations: list[str] | None, sources: list[str] | None, ids: list[str] | None
) -> "Callable[[_Told], bool]":
    from stream_dedup.ask.decisions import DecisionAnswer

    def wanted(one: "_Told") -> bool:
        sides = [one] if isinstance(one, DecisionAnswer) else [one.live, one.shadow]
        named = {one.id, *(name for side in sides for name in (side.duplicate_of, side.matched))}
        return (
            (not decisions or any(side.decision in decisions for side in sides))
            and (not relations or any(side.relation in relations for side in sides))
            and (not sources or one.source in sources)
            and (not ids or not named.isdisjoint(ids))
        )

    return wanted
