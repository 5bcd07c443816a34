"""Which values must not be shown.

Knows names that tell of a secret; knows nothing of where settings are shown.
"""

import re

REDACTED = "[redacted]"
_SECRET = re.compile(
    r"password|secret|token|private|assertion|\.pem$|oauthbearer\.config|jaas|credential|user\.info|^proxy$",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """Tell whether the value of a setting or property must not be shown."""
    return _SECRET.search(name) is not None
