"""Which values must not be shown.

Knows names that tell of a secret; knows nothing of where settings are shown.
"""

import re
from difflib import get_close_matches

REDACTED = "[redacted]"
_SECRET = re.compile(
    r"password|secret|token|private|assertion|\.pem$|oauthbearer\.config|jaas|credential|user\.info|^proxy$",
    re.IGNORECASE,
)
_WORDS = ("password", "passwd", "passphrase", "secret", "token", "private", "assertion", "credential", "jaas")
_ALIKE = 0.75  # of a word with one of these: a slip of the keyboard or two


def is_secret(name: str) -> bool:
    """Tell whether the value of a setting or property must not be shown."""
    return _SECRET.search(name) is not None


def resembles_secret(name: str) -> bool:
    """Tell whether a name may mean a secret though it is misspelt: for messages about names that nobody knows."""
    words = re.split(r"[^a-z]+", name.lower())
    return is_secret(name) or any(get_close_matches(word, _WORDS, n=1, cutoff=_ALIKE) for word in words)
