"""The users of a node, from a YAML file or from the environment, with a password or SCRAM's keys for each.

What is wrong in it is said without showing any of it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any, Final

import yaml

from rejoin.coordinator.config import Settings
from rejoin.files import read_text
from rejoin.protocol.sasl.scram import HASHES, ITERATIONS, MECHANISM_NUMBERS, ScramCredential

_EXPECTED: Final = f"expected a password, or keys by mechanism ({', '.join(HASHES)}) as rejoin credentials makes them"
_SALT_BYTES: Final = 16
_MOST_KEPT: Final = 1_000


class Users:
    """Names with their credentials. A password serves every mechanism; keys serve their own, and PLAIN."""

    def __init__(self, given: dict[str, str | dict[str, ScramCredential]]) -> None:
        self._given = given
        self._made: dict[tuple[str, str], ScramCredential] = {}
        self._key = secrets.token_bytes(32)
        self._verified: dict[str, bytes] = {}

    def __bool__(self) -> bool:
        return bool(self._given)

    def credential(self, mechanism: str, name: str) -> ScramCredential | None:
        """A user's keys for a mechanism; those of a password are made when they are first needed."""
        found = self._given.get(name)
        if not isinstance(found, str):
            return None if found is None else found.get(mechanism)
        made = self._made.get((mechanism, name))
        if made is None:
            made = ScramCredential.of(mechanism, found, secrets.token_bytes(_SALT_BYTES))
            self._made[mechanism, name] = made
        return made

    def iterations(self) -> dict[str, dict[int, int]]:
        """The iterations of all keys, by user and by the number of the mechanism."""
        return {
            name: {
                number: ITERATIONS if isinstance(given, str) else given[mechanism].iterations
                for mechanism, number in MECHANISM_NUMBERS.items()
                if isinstance(given, str) or mechanism in given
            }
            for name, given in self._given.items()
        }

    def password(self, name: str) -> str:
        """A user's password; empty where only keys are known, or there is no such user."""
        found = self._given.get(name, "")
        return found if isinstance(found, str) else ""

    def verify(self, name: str, password: str) -> bool:
        """Whether a password is a user's."""
        found = self._given.get(name, "")
        if isinstance(found, str):
            return hmac.compare_digest(found.encode(), password.encode()) and found != ""
        # Keys take thousands of hashes to compare with, so a password that was right is remembered by one.
        digest = hmac.digest(self._key, f"{name}\0{password}".encode(), hashlib.sha256)
        if hmac.compare_digest(self._verified.get(name, b""), digest):
            return True
        is_right = any(keys.is_of(mechanism, password) for mechanism, keys in sorted(found.items())[:1])
        if is_right and len(self._verified) < _MOST_KEPT:
            self._verified[name] = digest
        return is_right


def users_from(settings: Settings) -> Users:
    """The users of the settings. Raises ``ValueError`` for a file that cannot be read, or with a mistake."""
    text, file = settings.emulator_users.get_secret_value(), settings.emulator_users_file
    if file and text:
        raise ValueError("REJOIN_EMULATOR_USERS in the environment: expected this variable or --users-file, not both")
    origin = f"--users-file {file}" if file else "REJOIN_EMULATOR_USERS in the environment"
    if file:
        try:
            text = read_text(file)
        except (OSError, UnicodeDecodeError) as problem:
            why = getattr(problem, "strerror", None) or "not text"
            raise ValueError(f"{origin}: {why}; expected a YAML file of users") from None
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as problem:
        # Its own text would show a line of the file.
        line = getattr(getattr(problem, "problem_mark", None), "line", None)
        where = "" if line is None else f":{line + 1}" if file else f", line {line + 1}"
        raise ValueError(f"{origin}{where}: not YAML; expected lines with NAME: and a password") from None
    if found is None:
        return Users({})
    if not isinstance(found, dict):
        raise ValueError(f"{origin}: expected lines with NAME: and a password")
    return Users({_name(origin, name): _user(f"{origin}: user {name}", given) for name, given in found.items()})


def _name(origin: str, name: object) -> str:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ValueError(f"{origin}: user {name!r}: expected a name of printable characters; numbers need quotes")
    return name


def _user(origin: str, given: Any) -> str | dict[str, ScramCredential]:
    if isinstance(given, str) and given:
        return given
    if not isinstance(given, dict) or not given or not given.keys() <= HASHES.keys():
        raise ValueError(f"{origin}: {_EXPECTED}; a password of digits needs quotes, and names are the outermost keys")
    found = {}
    for mechanism, text in given.items():
        try:
            found[str(mechanism)] = ScramCredential.parse(str(text))
        except ValueError as problem:
            raise ValueError(f"{origin}: {mechanism}: {problem}") from None
    return found
