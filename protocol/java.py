"""The few habits of Java that leak into what Kafka answers: string hashes, map order, string order.

Kafka keeps members, topics and partitions in `java.util.HashMap` and `HashSet`. Where their iteration
order decides an answer (who keeps a surplus partition, who becomes the next leader), the order has to be
worked out the way Java does. Everything here is a pure function of its arguments.

Source: `java.lang.String`, `java.util.HashMap` (JDK 8 and later), Kafka's `TopicPartition.hashCode`.
"""

from __future__ import annotations

import base64
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

DEFAULT_CAPACITY = 16
_MIN_TREEIFY_CAPACITY = 64
_TREEIFY_THRESHOLD = 8

LONGEST_CACHED = 256
"""Texts of more characters are not kept in a cache: what a client sends must not fill the memory."""
_LONGEST_ORDER = 65_536
"""The most characters of all keys together for which an order is cached."""

_FEW_CHARACTERS = 64
_PIECE_BYTES = 8_192

_FIBONACCI = -7046029254386353131

_NATIVE_UTF16 = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"


def int32(number: int) -> int:
    """Wrap any integer around to Java's signed 32-bit `int`."""
    return ((number + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000


def string_hash(text: str) -> int:
    """Java's `String.hashCode`, signed 32 bit, over UTF-16 code units (a character beyond the BMP counts as two)."""
    return _hash_of_name(text) if len(text) <= LONGEST_CACHED else _hash(text)


def _hash(text: str) -> int:
    if len(text) > _FEW_CHARACTERS:
        return int32(_hash_of_long(text))
    units: Iterable[int]
    if text.isascii():
        units = text.encode("ascii")
    else:
        units = memoryview(text.encode(_NATIVE_UTF16, "surrogatepass")).cast("H")
    result = 0
    for unit in units:
        result = (31 * result + unit) & 0xFFFF_FFFF
    return int32(result)


def _hash_of_long(text: str) -> int:
    """The hash of a text, unsigned, a seventh as costly as unit by unit: a client may send thousands of long names.

    Units are the lanes of one large integer. Neighbours are added in lanes of twice the width, until eight bytes hold
    several units; that many are then hashed at a time. No lane runs over: seven bits grow to 42, and sixteen to 31.
    """
    if text.isascii():
        data, first_bits = text.encode("ascii"), 8
    else:
        data, first_bits = text.encode("utf-16-be", "surrogatepass"), 16
    data = bytes(-len(data) % 8) + data  # Leading zeros change nothing.
    result = 0
    for at in range(0, len(data), _PIECE_BYTES):
        piece = data[at : at + _PIECE_BYTES]
        lanes, bits, factor = int.from_bytes(piece, "big"), first_bits, 31
        while bits < 64:
            low = _low_lanes(bits)
            lanes = (lanes & low) + (lanes >> bits & low) * factor
            bits, factor = bits * 2, factor * factor
        factor &= 0xFFFF_FFFF
        for value in struct.unpack(f">{len(piece) // 8}Q", lanes.to_bytes(len(piece), "big")):
            result = (result * factor + value) & 0xFFFF_FFFF
    return result


@lru_cache(maxsize=3)
def _low_lanes(bits: int) -> int:
    """Every other lane of so many bits, in all of a piece."""
    width = bits // 8
    return int.from_bytes((bytes(width) + b"\xff" * width) * (_PIECE_BYTES // width // 2), "big")


_hash_of_name = lru_cache(maxsize=16_384)(_hash)


def topic_partition_hash(topic: str, partition: int) -> int:
    """Kafka's `TopicPartition.hashCode`, signed 32 bit."""
    return int32(31 * (31 + partition) + string_hash(topic))


@lru_cache(maxsize=16_384)
def uuid_bits(text: str) -> tuple[int, int]:
    """The two signed 64-bit halves of a `Uuid` in its form of 22 characters; ids compare as these do."""
    halves = struct.unpack(">qq", base64.urlsafe_b64decode(text + "=="))
    return halves[0], halves[1]


def random_uuid(new_id: Callable[[], str]) -> str:
    """A `Uuid` as Kafka draws one: 22 characters. ``new_id`` gives UUIDs as hexadecimal digits, or small numbers."""
    while (text := _base64_uuid(new_id().replace("-", "").zfill(32))).startswith("-"):
        pass  # Kafka: Uuid.randomUuid. A leading dash reads like an option.
    return text


def _base64_uuid(digits: str) -> str:
    return base64.urlsafe_b64encode(bytes.fromhex(digits)).decode()[:22]


def uuid_hash(text: str) -> int:
    """Kafka's `Uuid.hashCode`, signed 32 bit."""
    most, least = uuid_bits(text)
    mixed = (most ^ least) & 0xFFFF_FFFF_FFFF_FFFF
    return int32((mixed >> 32) ^ mixed)


def utf16_key(text: str) -> bytes:
    """A key that sorts strings as `String.compareTo` does: by UTF-16 code unit, shorter prefix first."""
    return text.encode("utf-16-be", "surrogatepass")


def utf16_sorted(texts: Iterable[str]) -> list[str]:
    """Strings in the order of `String.compareTo`, without building keys where code points already say the same."""
    listed = list(texts)
    if all(map(str.isascii, listed)):
        return sorted(listed)
    return sorted(listed, key=utf16_key)


def table_capacity(count: int, capacity: int = DEFAULT_CAPACITY) -> int:
    """The table size a `HashMap` has after holding `count` keys, when it had reached `capacity` before.

    A power of two; it doubles while more than three quarters are in use, and never shrinks.
    """
    while count * 4 > capacity * 3:
        capacity *= 2
    return capacity


def copied_capacity(count: int) -> int:
    """The table size of a `HashSet` that was made from a collection of `count` keys."""
    # JDK: HashSet(Collection) leaves room for one more than three quarters.
    capacity = DEFAULT_CAPACITY
    while capacity < count * 4 // 3 + 1:
        capacity *= 2
    return capacity


def hash_map_order(keys: Sequence[str], capacity: int = DEFAULT_CAPACITY) -> list[str]:
    """The order in which a `HashMap` that was given these distinct string keys, in this order, iterates them.

    `capacity` is the table size the map had already reached: a map that once held more keys keeps its table.
    """
    if sum(map(len, keys)) > _LONGEST_ORDER:
        return hashed_order(keys, string_hash, capacity)
    return list(_string_order(tuple(keys), capacity))


def concurrent_hash_map_order(keys: Sequence[str]) -> list[str]:
    """The order in which a `ConcurrentHashMap` that was given these distinct strings, in this order, iterates them."""
    capacity = DEFAULT_CAPACITY
    # JDK: ConcurrentHashMap.addCount. It doubles as soon as three quarters are in use, a HashMap with the next key.
    while len(keys) * 4 >= capacity * 3:
        capacity *= 2
    return hash_map_order(keys, capacity)


def copied_set_order(keys: Sequence[str]) -> list[str]:
    """The order of a `HashSet` that was made from a collection of these distinct strings, in this order."""
    return hash_map_order(keys, copied_capacity(len(keys)))


@lru_cache(maxsize=128)
def _string_order(keys: tuple[str, ...], capacity: int) -> tuple[str, ...]:
    """`hash_map_order`, remembered: a group asks for the order of the same members again and again."""
    return tuple(hashed_order(keys, string_hash, capacity))


def topic_partition_order(keys: Sequence[tuple[str, int]], capacity: int = DEFAULT_CAPACITY) -> list[tuple[str, int]]:
    """`hash_map_order` for (topic, partition) keys."""
    return hashed_order(keys, lambda key: topic_partition_hash(key[0], key[1]), capacity)


def put_first(table: dict[_Key, _Value], new: Mapping[_Key, _Value]) -> None:
    """Put new keys, the last one first, before those that a `HashMap` has, as `computeIfAbsent` does in each bucket.

    The order of its other keys means nothing: `hashed_order` says where they come.
    """
    if not new:
        return
    if not table:
        table.update([*new.items()][::-1])
        return
    before = dict(table)
    table.clear()
    table.update([*new.items()][::-1])
    table.update(before)


def computed_map_order(lookups: Sequence[str]) -> list[str]:
    """`computed_order` for strings."""
    return computed_order(lookups, string_hash)


def computed_order(
    lookups: Sequence[_Key], hash_of: Callable[[_Key], int], capacity: int = DEFAULT_CAPACITY
) -> list[_Key]:
    """The order of a new `HashMap` whose keys came by `computeIfAbsent`, not by `put`: each key once.

    `lookups` are all calls, also those for keys that were there already. `computeIfAbsent` puts a new key
    first in its bucket, and grows a table that has become too full only at the call after, whatever its key.
    `capacity` is the size of the table that the map was made with.
    """
    keys = list(dict.fromkeys(lookups))
    codes = [_spread(hash_of(key)) for key in keys]
    for count, code in enumerate(codes):
        capacity = table_capacity(count, capacity)
        if capacity < _MIN_TREEIFY_CAPACITY and _crowd(codes[:count], code, capacity) >= _TREEIFY_THRESHOLD - 1:
            capacity *= 2
    if keys and lookups.index(keys[-1]) < len(lookups) - 1:
        capacity = table_capacity(len(keys), capacity)
    return [keys[index] for index in sorted(range(len(keys)), key=lambda index: (codes[index] & capacity - 1, -index))]


def timeline_slot(text: str, capacity: int) -> int:
    """The slot of a string key in a table of this size of Kafka's own hash maps, which keep snapshots.

    Kafka: BaseHashTable.findSlot. They iterate by slot, and inside of a slot from the newest key to the oldest.
    """
    mixed = string_hash(text) * _FIBONACCI & 0xFFFF_FFFF_FFFF_FFFF
    return mixed >> 65 - capacity.bit_length()


def hash_position(text: str, capacity: int) -> int:
    """The bucket of a string key in a table of this size."""
    return _spread(string_hash(text)) & capacity - 1


def hashed_order(keys: Sequence[_Key], hash_of: Callable[[_Key], int], capacity: int = DEFAULT_CAPACITY) -> list[_Key]:
    """Keys in bucket order, and by insertion inside a bucket, for any Java hash code `hash_of`."""
    if len(keys) < 2:
        return list(keys)
    codes = [_spread(hash_of(key)) for key in keys]
    mask = _capacity_after(codes, capacity) - 1
    # Differs: in tables of 64 and more, Java turns a bucket of more than eight keys into a tree and no longer
    # iterates it by insertion alone. It takes keys chosen to collide; here insertion order holds for them too.
    return [keys[index] for index in sorted(range(len(keys)), key=lambda index: codes[index] & mask)]


def _spread(code: int) -> int:
    """The hash as the table uses it: the high half folded into the low one, unsigned."""
    code &= 0xFFFF_FFFF
    return code ^ (code >> 16)


def _capacity_after(codes: Sequence[int], capacity: int) -> int:
    """The table size once every key is in, counting the growth that an overfull bucket forces on a small table."""
    # Kafka: HashMap.treeifyBin. The ninth key of a bucket doubles a table below 64 instead of making a tree.
    if len(codes) > _TREEIFY_THRESHOLD:
        for count, code in enumerate(codes):
            if capacity >= _MIN_TREEIFY_CAPACITY:
                break
            if count >= _TREEIFY_THRESHOLD and _crowd(codes[:count], code, capacity) >= _TREEIFY_THRESHOLD:
                capacity *= 2
            capacity = table_capacity(count + 1, capacity)
    return table_capacity(len(codes), capacity)


def _crowd(codes: Sequence[int], code: int, capacity: int) -> int:
    """How many of `codes` are in the same bucket as `code`."""
    mask = capacity - 1
    return sum((other ^ code) & mask == 0 for other in codes)


def double_text(value: float) -> str:
    """Double.toString of a finite number, as of Java 19: the shortest digits, with an exponent from 10 million on."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "it is finite"
    text = "".join(map(str, digits))
    return f"{'-' * sign}{text[0]}.{text[1:] or 0}E{exponent + len(text) - 1}"
