"""Rights on a broker that checks them: who may do what, in force once the broker knows it.

Knows access rules; knows nothing of what a test expects of them.
"""

from collections.abc import Sequence

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, though its types do not say so
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from tests.stream.topics import ADMIN_SECONDS, admin_of
from tests.stream.waiting import wait_until

_ANY = AclBindingFilter(
    ResourceType.ANY,
    None,  # type: ignore[arg-type]  # any name; the stub does not know of it
    ResourcePatternType.ANY,
    None,  # type: ignore[arg-type]  # any user
    None,  # type: ignore[arg-type]  # any host
    AclOperation.ANY,
    AclPermissionType.ANY,
)


def enforce(bootstrap: str, rules: Sequence[AclBinding]) -> None:
    """Create rules, and wait until the broker goes by them: at first only the controller knows them."""
    admin = admin_of(bootstrap)
    for created in admin.create_acls([*rules]).values():
        created.result(ADMIN_SECONDS)

    def known() -> bool:
        found = admin.describe_acls(_ANY).result(ADMIN_SECONDS)
        return all(rule in found for rule in rules)

    wait_until(known, "the rules are in force")
