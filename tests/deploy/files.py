"""The files of `deploy/` as data, and the schemas to check them against.

Knows where they are; knows nothing of what they should say.
"""

import json
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

REPOSITORY = Path(__file__).parents[2]
DEPLOY = REPOSITORY / "deploy"
_SCHEMAS = Path(__file__).parent / "schemas"


def load_yaml(path: Path) -> Any:  # noqa: ANN401  # whatever the file contains
    """Return the contents of a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def schema(name: str) -> dict[str, Any]:
    """Return one of the schemas."""
    found: dict[str, Any] = json.loads((_SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def faults(instance: object, rules: dict[str, Any]) -> list[str]:
    """Return a line for each fault that a schema finds."""
    found = Draft202012Validator(rules).iter_errors(instance)
    return [f"{error.json_path}: {error.message}" for error in found]


def closed(rules: Any) -> Any:  # noqa: ANN401  # a schema, or a part of one
    """Return a schema that refuses fields it does not name: a cluster would silently drop them."""
    if isinstance(rules, list):
        return [closed(part) for part in rules]
    if not isinstance(rules, dict):
        return rules
    inner = {name: closed(part) for name, part in rules.items()}
    if isinstance(rules.get("properties"), dict) and not rules.get("x-kubernetes-preserve-unknown-fields"):
        inner.setdefault("additionalProperties", False)
    return inner
