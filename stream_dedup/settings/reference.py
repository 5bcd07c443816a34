"""The settings as a page: every name with its default, its bounds and its meaning.

Knows how to write settings down; knows no individual setting.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from stream_dedup.settings.kinds import bounds_of, choices_of, is_path, settings_in, told_of
from stream_dedup.settings.schema import Settings


def settings_markdown() -> str:
    """Return a table of settings for each group, as Markdown."""
    return "\n".join(_group("", Settings))


def chosen_markdown(names: Sequence[str]) -> str:
    """Return a table of some settings, as Markdown.

    Raises:
        KeyError: a name is not that of a setting.
    """
    fields = dict(settings_in(Settings))
    rows = (f"| `{name}` | {_shown(fields[name].get_default())} | {fields[name].description} |" for name in names)
    return "\n".join(("| setting | default | meaning |\n| --- | --- | --- |", *rows, ""))


def _group(prefix: str, model: type[BaseModel]) -> Iterator[str]:
    rows = []
    inner: list[tuple[str, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            inner.append((f"{prefix}{name}.", field.annotation))
        else:
            rows.append(
                f"| `{prefix}{name}` | {_shown(field.get_default())} | {told_of(field, 'unit')} | {_allowed(field)} "
                f"| {field.description} |"
            )
    if rows:
        title = prefix.rstrip(".") or "kafka and registry"
        yield f"### {title}\n"
        if prefix:
            yield f"{(model.__doc__ or '').splitlines()[0]}\n"
        yield "| setting | default | unit | allowed | meaning |\n| --- | --- | --- | --- | --- |"
        yield from rows
        yield ""
    for group, kind in inner:
        yield from _group(group, kind)


def _shown(value: Any) -> str:  # noqa: ANN401  # whatever a default may be
    if isinstance(value, list):
        return ", ".join(f"`{item}`" for item in value)
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "" if value in (None, "", {}) else f"`{value}`"


def _allowed(field: FieldInfo) -> str:
    choices = choices_of(field.annotation)
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    if is_path(field):
        return "a path"
    if words := told_of(field, "form"):
        return words
    return " and ".join(f"{words} `{bound}`" for words, bound in bounds_of(field))
