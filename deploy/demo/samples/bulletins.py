"""Bulletins made from templates: alike in wording, never copies, since numbers, names and dates differ.

Knows how the placeholders of a template are filled; nothing of which templates there are.
"""

from random import Random
from typing import Any

from deploy.demo.samples.corpus import BaseText, Template, templates


def bulletins(rng: Random) -> list[BaseText]:
    """Return the bulletins of every template, in the order of the templates."""
    return [text for template in templates() for text in _fill(template, rng)]


def _fill(template: Template, rng: Random) -> list[BaseText]:
    picks = {hole: rule["pick"] for hole, rule in template.fields.items() if "pick" in rule}
    names = {hole: rng.sample(every, template.copies) for hole, every in picks.items()}
    return [_bulletin(template, number, names, rng) for number in range(template.copies)]


def _bulletin(template: Template, number: int, names: dict[str, list[str]], rng: Random) -> BaseText:
    values: dict[str, Any] = {hole: chosen[number] for hole, chosen in names.items()}
    for hole, rule in template.fields.items():
        if "pick" not in rule and "sum" not in rule:
            values[hole] = _value(rule, rng)
    for hole, rule in template.fields.items():
        if "sum" in rule:
            values[hole] = sum(values[part] for part in rule["sum"])
    return BaseText(
        id=f"{template.id}-{number + 1}",
        form=template.form,
        title=template.title.format(**values),
        body=template.body.format(**values),
    )


def _value(rule: dict[str, Any], rng: Random) -> int | str:
    """Draw one value: `range` includes both ends, `draw` gives the balls of a lottery in ascending order."""
    if "choose" in rule:
        return str(rng.choice(rule["choose"]))
    if "range" in rule:
        low, high = rule["range"]
        return rng.randint(low, high) * int(rule.get("scale", 1))
    if "decimal" in rule:
        low, high, digits = rule["decimal"]
        return f"{rng.uniform(low, high):.{digits}f}"
    balls, highest = rule["draw"]
    return " ".join(f"{ball:02d}" for ball in sorted(rng.sample(range(1, highest + 1), balls)))
