"""Which values must not be shown.

Knows names that suggest a secret; knows nothing of where settings are shown.
"""

import re
from difflib import get_close_matches

REDACTED = "[redacted]"
_SECRET = re.compile(
    r"password|secret|token|private|assertion|\.pem$|oauthbearer\.config|jaas|credential|user\.info|^proxy$",
    re.IGNORECASE,
)
_WORDS = ("password", "passwd", "passphrase", "secret", "token", "private", "assertion", "credential", "jaas")
_ALIKE = 0.75  # similarity of a word to one of these: a typo or two


def is_secret(name: str) -> bool:
    """Tell whether the value of a setting or property must not be shown."""
    return _SECRET.search(name) is not None


def resembles_secret(name: str) -> bool:
    """Tell whether a name may be a misspelt name of a secret: for messages about unknown names."""
    words = re.split(r"[^a-z]+", name.lower())
    return is_secret(name) or any(get_close_matches(word, _WORDS, n=1, cutoff=_ALIKE) for word in words)
