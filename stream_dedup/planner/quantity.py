"""Large numbers as people write them: `50M`, `2.5e6`, `4G`, `1_000_000`.

Knows decimal prefixes; knows nothing of what is counted.
"""

import re

_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}
_QUANTITY = re.compile(r"(\d[\d_,]*(?:\.\d+)?(?:e\+?\d+)?|\.\d+)\s*([kmgbt]?)", re.IGNORECASE)


def quantity(text: str) -> float:
    """Return the number that a text stands for.

    Args:
        text: digits, `_` or `,` between them allowed, an exponent or one of the prefixes k, M, G (or B) and T.

    Raises:
        ValueError: it is no positive number.
    """
    match = _QUANTITY.fullmatch(text.strip())
    value = float(re.sub(r"[_,]", "", match[1])) * _PREFIXES[match[2].lower()] if match else 0.0
    if value <= 0:
        raise ValueError(f"{text!r} is no positive number: write 50M, 2.5e6, 4G or 1_000_000")
    return value
