"""XXH3, the 64-bit hash by which Kafka compares the topics that a group is subscribed to; seed 0, the default secret.

https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
"""

from __future__ import annotations

from typing import Final

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_SHORT: Final = (0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D)
_LONG: Final = (
    0x9E37_79B1_85EB_CA87,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x27D4_EB2F_1656_67C5,
)
_STRIPE: Final = 64
_STRIPES_OF_BLOCK: Final = (len(_SECRET) - _STRIPE) // 8


def xxh3_64(data: bytes) -> int:
    """The hash of some bytes, unsigned."""
    length = len(data)
    if length > 240:
        return _long(data)
    if length > 128:
        return _medium(data)
    if length > 16:
        return _mixed_from_both_ends(data)
    return _tiny(data)


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _half(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _folded(one: int, other: int) -> int:
    product = one * other
    return (product & _MASK) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * 0x1656_6791_9E37_79F9 & _MASK
    return value ^ (value >> 32)


def _xxh64_avalanche(value: int) -> int:
    value = (value ^ (value >> 33)) * _LONG[1] & _MASK
    value = (value ^ (value >> 29)) * _LONG[2] & _MASK
    return value ^ (value >> 32)


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _mixed(data: bytes, at: int, secret_at: int) -> int:
    low = _word(data, at) ^ _word(_SECRET, secret_at)
    return _folded(low, _word(data, at + 8) ^ _word(_SECRET, secret_at + 8))


def _tiny(data: bytes) -> int:
    length = len(data)
    if length > 8:
        low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
        high = _word(data, length - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((length + swapped + high + _folded(low, high)) & _MASK)
    if length > 3:
        both = _half(data, length - 4) + (_half(data, 0) << 32)
        value = both ^ _word(_SECRET, 8) ^ _word(_SECRET, 16)
        value ^= _rotated(value, 49) ^ _rotated(value, 24)
        value = value * 0x9FB2_1C65_1E98_DF25 & _MASK
        value = (value ^ ((value >> 35) + length)) * 0x9FB2_1C65_1E98_DF25 & _MASK
        return value ^ (value >> 28)
    if length:
        combined = data[0] << 16 | data[length >> 1] << 24 | data[-1] | length << 8
        return _xxh64_avalanche(combined ^ _half(_SECRET, 0) ^ _half(_SECRET, 4))
    return _xxh64_avalanche(_word(_SECRET, 56) ^ _word(_SECRET, 64))


def _mixed_from_both_ends(data: bytes) -> int:
    length = len(data)
    total = length * _LONG[0]
    for pair in range((length - 1) // 32 + 1):
        total += _mixed(data, 16 * pair, 32 * pair) + _mixed(data, length - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(total & _MASK)


def _medium(data: bytes) -> int:
    length = len(data)
    total = length * _LONG[0] + sum(_mixed(data, 16 * each, 16 * each) for each in range(8))
    total = _avalanche(total & _MASK)
    total += sum(_mixed(data, 16 * each, 16 * (each - 8) + 3) for each in range(8, length // 16))
    return _avalanche((total + _mixed(data, length - 16, 119)) & _MASK)


def _long(data: bytes) -> int:
    length = len(data)
    lanes = [_SHORT[2], _LONG[0], _LONG[1], _LONG[2], _LONG[3], _SHORT[1], _LONG[4], _SHORT[0]]
    for number in range((length - 1) // _STRIPE):
        secret_at = 8 * (number % _STRIPES_OF_BLOCK)
        _accumulate(lanes, data, _STRIPE * number, secret_at)
        if number % _STRIPES_OF_BLOCK == _STRIPES_OF_BLOCK - 1:
            _scramble(lanes)
    _accumulate(lanes, data, length - _STRIPE, len(_SECRET) - _STRIPE - 7)
    total = length * _LONG[0]
    for pair in range(4):
        one = lanes[2 * pair] ^ _word(_SECRET, 11 + 16 * pair)
        total += _folded(one, lanes[2 * pair + 1] ^ _word(_SECRET, 19 + 16 * pair))
    return _avalanche(total & _MASK)


def _accumulate(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    for lane in range(8):
        value = _word(data, at + 8 * lane)
        keyed = value ^ _word(_SECRET, secret_at + 8 * lane)
        lanes[lane ^ 1] = (lanes[lane ^ 1] + value) & _MASK
        lanes[lane] = (lanes[lane] + (keyed & 0xFFFF_FFFF) * (keyed >> 32)) & _MASK


def _scramble(lanes: list[int]) -> None:
    for lane, value in enumerate(lanes):
        keyed = value ^ (value >> 47) ^ _word(_SECRET, len(_SECRET) - _STRIPE + 8 * lane)
        lanes[lane] = keyed * _SHORT[0] & _MASK
