"""The keys of an installation: fingerprints are keyed and secret fields encrypted with the newest; the older ones are
still understood, so that a rotation causes no false conflict and loses nothing.

`TOOLONCE_KEYS=new,old`: each a text of at least 16 characters, the newest first. Each text gives keys by HKDF-like
derivation: one for HMAC, one for Fernet, and for each tenant one more for Fernet, which seals its inbox entries and
opens nothing else. Pure; reads the environment only in `from_environment`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from .errors import KeyringMissing, StoreMisuse
from .identity import fingerprint, raw_fingerprint

VARIABLE = "TOOLONCE_KEYS"
SHORTEST = 16


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """One key; its text is never shown."""

    secret: bytes

    def _derive(self, purpose: str) -> bytes:
        return hmac.new(self.secret, f"toolonce/1/{purpose}".encode(), hashlib.sha256).digest()

    @property
    def id(self) -> str:
        """An id of the key, from which the key cannot be guessed; stored with each record."""
        return self._derive("id").hex()[:8]

    @property
    def for_fingerprints(self) -> bytes:
        """The part of the key that fingerprints are made with."""
        return self._derive("fingerprint")

    @property
    def for_encryption(self) -> Fernet:
        """The part of the key that secrets are encrypted with."""
        return Fernet(base64.urlsafe_b64encode(self._derive("encryption")))

    def for_entries(self, tenant: str) -> str:
        """The Fernet key of a tenant's inbox entries, as its harnesses are given it."""
        derived = hmac.new(self.secret, f"toolonce/2/entry/{tenant}".encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(derived).decode()


@dataclass(frozen=True, slots=True)
class Keyring:
    """All keys, the newest first; may be empty."""

    keys: tuple[Key, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Keyring:
        """Read ``new,old``.

        Raises:
            StoreMisuse: a key is shorter than 16 characters.
        """
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if any(len(part) < SHORTEST for part in parts):
            raise StoreMisuse(f"{VARIABLE}: each key needs at least {SHORTEST} characters; try `openssl rand -hex 32`")
        return cls(tuple(Key(part.encode()) for part in parts))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Keyring:
        """The keys of ``TOOLONCE_KEYS``; an empty keyring where it is not set."""
        return cls.parse(environment.get(VARIABLE, ""))

    @property
    def newest_id(self) -> str:
        """The id of the key that new records are made with; "" where there is none."""
        return self.keys[0].id if self.keys else ""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all keys, the newest first."""
        return tuple(key.id for key in self.keys)

    def fingerprints(self, tool: str, arguments: Any) -> tuple[str, ...]:
        """The fingerprint under every key, the newest first; then the unkeyed one, which records hold that were
        admitted before there was a keyring. Only the first is ever stored."""
        keyed = [fingerprint(tool, arguments, key.for_fingerprints) for key in self.keys]
        return (*keyed, fingerprint(tool, arguments))

    def raw_fingerprints(self, tool: str, text: str) -> tuple[str, ...]:
        """The same for an argument text that is not a JSON object."""
        keyed = [raw_fingerprint(tool, text, key.for_fingerprints) for key in self.keys]
        return (*keyed, raw_fingerprint(tool, text))

    def encrypt(self, text: str) -> str:
        """Raises KeyringMissing where there are no keys."""
        return self._fernet().encrypt(text.encode()).decode()

    def decrypt(self, token: str) -> str:
        """Raises KeyringMissing where there are no keys, or none that fits."""
        try:
            return self._fernet().decrypt(token.encode()).decode()
        except InvalidToken as error:
            raise KeyringMissing(f"a secret field was sealed with a key that {VARIABLE} no longer lists") from error

    def entry_key(self, tenant: str) -> str:
        """What a harness of this tenant seals its inbox entries with: 32 bytes in base64url, by the newest key.

        Raises:
            KeyringMissing: there are no keys.
        """
        self._require_keys()
        return self.keys[0].for_entries(tenant)

    def open_entry(self, token: str, tenant: str) -> bytes:
        """The bytes of an inbox entry that was sealed for this tenant, under any of the keys.

        Raises:
            KeyringMissing: there are no keys, or the token was sealed with none of them, or for another tenant.
        """
        self._require_keys()
        keys = MultiFernet([Fernet(key.for_entries(tenant)) for key in self.keys])
        try:
            return keys.decrypt(token.encode())
        except InvalidToken as error:
            raise KeyringMissing(
                f"the entry was not sealed with the entry key of tenant {tenant} under any key of {VARIABLE}; "
                f"see `toolonce keys seal --tenant {tenant}`"
            ) from error

    def _fernet(self) -> MultiFernet:
        self._require_keys()
        return MultiFernet([key.for_encryption for key in self.keys])

    def _require_keys(self) -> None:
        if not self.keys:
            raise KeyringMissing(f"secret fields need keys: set {VARIABLE}, for example to `openssl rand -hex 32`")
