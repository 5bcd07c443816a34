"""Large numbers as people write them: `50M`, `2.5e6`, `4G`, `1_000_000`.

Knows decimal prefixes, and how many articles or bytes are plausible; knows nothing of what the numbers are for.
"""

import re

_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}
_QUANTITY = re.compile(r"(\d[\d_,]*(?:\.\d+)?(?:e\+?\d+)?|\.\d+)\s*([kmgbt]?)", re.IGNORECASE)
MOST = 1e18  # an exabyte: more bytes than any machine has
MOST_ARTICLES = 1e12  # more than the whole world publishes in a century


def quantity(text: str, most: float = MOST) -> float:
    """Return the number that a text stands for.

    Args:
        text: digits, `_` or `,` between them allowed, an exponent or one of the prefixes k, M, G (or B) and T.
        most: the largest number that is accepted.

    Raises:
        ValueError: it is not a positive number, or too large.
    """
    match = _QUANTITY.fullmatch(text.strip())
    value = float(re.sub(r"[_,]", "", match[1])) * _PREFIXES[match[2].lower()] if match else 0.0
    if value <= 0:
        raise ValueError(f"{text!r} is not a positive number: write 50M, 2.5e6, 4G or 1_000_000")
    if value > most:
        raise ValueError(f"{text!r} is more than {most:,.0f}: write a smaller number")
    return value


def article_count(text: str) -> float:
    """Return the number of articles that a text stands for.

    Args:
        text: see `quantity`.

    Raises:
        ValueError: it is not a number, less than 1, or larger than `MOST_ARTICLES`.
    """
    count = quantity(text, MOST_ARTICLES)
    if count < 1:
        raise ValueError(f"{text!r} is less than one article: write 50M, 2.5e6 or 1_000_000")
    return count
