"""The server's key, with which secrets that it has to read again are encrypted in the database.

Encryption is that of Fernet (AES and HMAC), which also notices a wrong key.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.private import make_private, open_private

VARIABLE = "CROWDTREE_SECRET_KEY"
MIN_CHARACTERS = 32
SEALED = "sealed:"
"""How a secret that is encrypted begins."""


class SecretKey:
    """A key from the environment, or from a file that is made when it is first used.

    Parameters
    ----------
    file
        Where the key is kept if the environment has none; without a file and a variable, secrets
        are stored as they are.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     key = SecretKey(Path(folder) / "crowdtree.key")
    ...     sealed = key.seal("a secret")
    ...     sealed.startswith("sealed:"), key.open(sealed), key.open("stored as it is")
    (True, 'a secret', 'stored as it is')
    """

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self._key = _checked(os.environ.get(VARIABLE, "").strip(), VARIABLE)

    def seal(self, secret: str) -> str:
        """Encrypt a secret."""
        key = self._read() or self._make()
        return secret if key is None else SEALED + key.encrypt(secret.encode()).decode()

    def open(self, stored: str) -> str:
        """Decrypt a secret; one that was stored as it is stays."""
        if not stored.startswith(SEALED):
            return stored
        key = self._read()
        try:
            if key is not None:
                return key.decrypt(stored.removeprefix(SEALED)).decode()
        except InvalidToken:
            pass
        raise CrowdtreeError(
            "its secret was stored with another key: start the server with that key "
            f"({VARIABLE}{f' or {self.file}' if self.file else ''}), or add the webhook again"
        )

    def _read(self) -> Fernet | None:
        """Read the key; none if there is none yet."""
        if self._key is None and self.file is not None and self.file.exists():
            make_private(self.file)
            try:
                text = self.file.read_text("utf-8").strip()
            except (OSError, UnicodeError) as error:
                raise CrowdtreeError(f"{self.file}: the key cannot be read ({error})") from None
            self._key = _checked(text, str(self.file), empty=False)
        return self._key

    def _make(self) -> Fernet | None:
        if self.file is None:
            return None
        try:
            with open_private(self.file) as file:
                file.write(secrets.token_hex(MIN_CHARACTERS).encode() + b"\n")
        except FileExistsError:
            pass  # another process was faster
        except OSError as error:
            raise CrowdtreeError(
                f"{self.file}: the key cannot be written ({error.strerror}); set {VARIABLE}"
            ) from None
        return self._read()


def _checked(text: str, where: str, empty: bool = True) -> Fernet | None:
    if not text and empty:
        return None
    if len(text) < MIN_CHARACTERS:
        raise CrowdtreeError(
            f"{where}: expected at least {MIN_CHARACTERS} characters, such as what "
            f"openssl rand -hex 32 prints, got {len(text)}"
        )
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()))
