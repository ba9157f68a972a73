"""Random messages of any API and version: what a codec must be able to carry."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from pydantic import BaseModel

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.registry import DEFINED, Api
from rejoin.protocol.types import ZERO_UUID, WireType
from rejoin.protocol.wire.codec import Codec, codec_of

VERSIONS: Final = [
    (api, version) for api in DEFINED.values() for version in range(api.min_version, api.max_version + 1)
]
SIDES: Final = ("request", "response")

_BITS: Final[dict[object, int]] = {WireType.INT8: 8, WireType.INT16: 16, WireType.INT32: 32, WireType.INT64: 64}
_TEXTS: Final = ("", "g", "orders", "größe", "消費者", "x" * 127, "y" * 300)
NEWER_CODES: Final = (
    ErrorCode.GROUP_DELETION_FAILED,
    ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED,
    ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
)
"""Messages that kio does not know yet."""

_CODES: Final = tuple(code for code in ErrorCode if code not in NEWER_CODES)
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def codec(api: Api, version: int) -> Codec:
    found = codec_of(api.key, version)
    assert found is not None
    return found


def random_message(model: type[BaseModel], version: int, random: Random) -> Any:
    """A message whose fields are random where the version carries them, and have their defaults elsewhere."""
    values = {spec.name: _field(spec, version, random) for spec in fields_of(model) if spec.versions.carries(version)}
    return model(**values)


def _field(spec: FieldSpec, version: int, random: Random) -> Any:
    if spec.nullable is not None and spec.nullable <= version and random.random() < 0.2:
        return None
    if spec.versions.tag is not None and random.random() < 0.3:
        return spec.default
    if not spec.is_array:
        return _value(spec, version, random)
    count = random.choice((0, 1, 2, 3)) if spec.struct is not None else random.choice((0, 1, 2, 20, 130))
    return tuple(_value(spec, version, random) for _ in range(count))


def _value(spec: FieldSpec, version: int, random: Random) -> Any:
    if spec.struct is not None:
        return random_message(spec.struct, version, random)
    if spec.is_error_code:
        return random.choice(_CODES)
    match spec.value_type:
        case WireType.STRING:
            return random.choice(_TEXTS)
        case WireType.BYTES | WireType.RECORDS:
            return random.randbytes(random.choice((0, 1, 10, 200)))
        case WireType.UUID:
            # The last of 22 characters has two bits.
            return random.choice((ZERO_UUID, "".join(random.choices(_ALPHABET, k=21)) + random.choice("AQgw")))
        case WireType.BOOL:
            return random.random() < 0.5
        case WireType.UINT16:
            return random.choice((0, 1, 2**16 - 1))
        case WireType.FLOAT64:
            return random.random()
    return _number(spec, _BITS[spec.value_type], random)


def _number(spec: FieldSpec, bits: int, random: Random) -> int:
    if spec.name.endswith("_ms"):
        return random.choice((0, 1, 30_000, 2**31 - 1))
    limit = 2 ** (bits - 1)
    return random.choice((0, 1, -1, limit - 1, -limit, random.randrange(-limit, limit)))
