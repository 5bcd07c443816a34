"""The command `config`: the effective settings, their reference, and the schemas of the outputs.

Knows arguments and what is printed; knows nothing of where settings come from.
"""

import sys
from enum import StrEnum
from typing import Annotated

import orjson
import typer

from stream_dedup.cli.terminal import EXIT_USAGE, ConfigOption, SetOption, errors, fail, out, settings_of
from stream_dedup.settings import FormatName


class Shapes(StrEnum):
    """The outputs that have a schema of their own."""

    LINK = "link"
    CLUSTER = "cluster"


def config_command(
    config: ConfigOption = None,
    flags: SetOption = None,
    show: Annotated[bool, typer.Option("--print", help="Show the effective settings, without secrets.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only check them: exit code 2 if any is invalid.")] = False,
    reference: Annotated[bool, typer.Option("--reference", help="Print the reference of all settings.")] = False,
    schema: Annotated[
        Shapes | None,
        typer.Option("--schema", help="Print the request body that registers an output's schema in output.format."),
    ] = None,
) -> None:
    """Show or check the effective settings: defaults < file < environment < flags."""
    if reference:
        from stream_dedup.settings.reference import settings_markdown

        sys.stdout.write(settings_markdown())
        return
    settings = settings_of(config, flags)
    if schema is not None:
        out.print_json(orjson.dumps(_registration(schema, settings.output.format)).decode())
        return
    if show or not check:
        out.print_json(orjson.dumps(settings.redacted()).decode())
    if check:
        errors.print("the settings are valid")


def _registration(shape: Shapes, name: FormatName) -> dict[str, str]:
    if name == "json":
        fail("output.format = json has no schema to register: set it to avro, protobuf or json-schema", EXIT_USAGE)
    from stream_dedup.encode.registered import registration
    from stream_dedup.output_shapes import CLUSTER, LINK

    return registration({Shapes.LINK: LINK, Shapes.CLUSTER: CLUSTER}[shape], name)
