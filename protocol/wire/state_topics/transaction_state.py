"""The records of ``__transaction_state`` as bytes: the version first, then the fields that it carries.

Kafka: TransactionLog, MessageUtil.toVersionPrefixedBytes.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Final

from rejoin.protocol.java import LONGEST_CACHED
from rejoin.protocol.records.transaction_state import TransactionLogKey, TransactionLogValue
from rejoin.protocol.unvalidated import unvalidated
from rejoin.protocol.wire.errors import RecordsError, SchemaError
from rejoin.protocol.wire.reader import Reader, compile_reader
from rejoin.protocol.wire.source import Layout
from rejoin.protocol.wire.writer import Writer, compile_writer

KEY_VERSION: Final = 0
NEWEST_VALUE_VERSION: Final = 1
_FIRST_FLEXIBLE: Final = {TransactionLogKey: NEWEST_VALUE_VERSION + 1, TransactionLogValue: 1}
_VERSION_BYTES: Final = 2


def key_bytes(transactional_id: str) -> bytes:
    """The key of a transactional id."""
    key = _kept_key_bytes if len(transactional_id) <= LONGEST_CACHED else _key_bytes
    return key(transactional_id)


def _key_bytes(transactional_id: str) -> bytes:
    key = unvalidated(TransactionLogKey, transactional_id=transactional_id)
    return _prefix(KEY_VERSION) + _writer(TransactionLogKey, KEY_VERSION)(key)


_kept_key_bytes = lru_cache(maxsize=1_024)(_key_bytes)


def value_bytes(value: TransactionLogValue, version: int) -> bytes:
    """A value in one version."""
    return _prefix(version) + _writer(TransactionLogValue, version)(value)


def read_key(data: bytes) -> str | None:
    """The transactional id of a record, or none where the key is of a type that is not known."""
    version = _version(data)
    if version != KEY_VERSION:
        return None
    key: TransactionLogKey = _read(TransactionLogKey, version, data)
    return key.transactional_id


def read_value(data: bytes) -> TransactionLogValue:
    """A value in any version. Raises :class:`RecordsError` for what is not one."""
    version = _version(data)
    if not 0 <= version <= NEWEST_VALUE_VERSION:
        raise RecordsError(f"a value of version {version}: expected 0 to {NEWEST_VALUE_VERSION}")
    value: TransactionLogValue = _read(TransactionLogValue, version, data)
    return value


def _read(model: type[TransactionLogKey | TransactionLogValue], version: int, data: bytes) -> Any:
    try:
        return _reader(model, version)(data, _VERSION_BYTES)
    except SchemaError as problem:
        raise RecordsError(f"no {model.__name__}: {problem}") from None


def _version(data: bytes) -> int:
    if len(data) < _VERSION_BYTES:
        raise RecordsError(f"{len(data)} bytes: a key or a value begins with its version")
    return int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)


def _prefix(version: int) -> bytes:
    return version.to_bytes(_VERSION_BYTES, "big")


@cache
def _writer(model: type[TransactionLogKey | TransactionLogValue], version: int) -> Writer:
    return compile_writer(model, Layout(version, version >= _FIRST_FLEXIBLE[model]))


@cache
def _reader(model: type[TransactionLogKey | TransactionLogValue], version: int) -> Reader:
    return compile_reader(model, Layout(version, version >= _FIRST_FLEXIBLE[model]), None)
