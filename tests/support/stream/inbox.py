"""A tenant's inbox, written to and read from as PROTOCOL.md says: by plain Redis commands."""

from __future__ import annotations

import json
from typing import Any

import redis
from cryptography.fernet import Fernet

from tests.support.stream.harness import Bench
from toolonce.store.model.keyring import Keyring


class Inbox:
    """A tenant's inbox on the bench."""

    def __init__(self, bench: Bench, tenant: str = "acme") -> None:
        self.bench, self.tenant = bench, tenant
        self.redis: Any = bench.store.redis
        self.key = f"{{{bench.namespace}}}:inbox:{tenant}"

    def add(self, **fields: Any) -> str:
        """Add one entry as PROTOCOL.md says; its id."""
        entry: str = self.redis.xadd(self.key, {name: as_text(value) for name, value in fields.items()})
        self.redis.sadd(f"{{{self.bench.namespace}}}:inboxes", self.tenant)
        return entry

    def answers(self, entry: str) -> list[dict[str, str]]:
        return [fields for _, fields in self.redis.xrange(f"{{{self.bench.namespace}}}:answers:{self.tenant}:{entry}")]

    def quarantined(self) -> list[tuple[str, str, str]]:
        """Inbox, entry and reason of what was quarantined; the rest of it need not be text."""
        with redis.Redis.from_url(self.bench.url) as raw:
            found = [fields for _, fields in raw.xrange(f"{{{self.bench.namespace}}}:quarantine")]
        return [(f[b"inbox"].decode(), f[b"entry"].decode(), f[b"reason"].decode()) for f in found]


def seal_entry(text: str, keyring: Keyring, tenant: str) -> str:
    """What a harness of this tenant puts into a sealed field: a Fernet token under the tenant's entry key."""
    return Fernet(keyring.entry_key(tenant)).encrypt(text.encode()).decode()


def as_text(value: Any) -> Any:
    return value if isinstance(value, (str, bytes)) else json.dumps(value)
