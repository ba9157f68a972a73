"""The codec of each version of each API: readers and writers are made at their first use.

header = read_request_header(frame)
codec = codec_of(header.api_key, header.api_version)      # none: this version of it is not known
request = codec.read_request(frame, header.body_at)
transport.write(codec.response_frame(header.correlation_id, response))
"""

from __future__ import annotations

import struct
from functools import cache, cached_property
from typing import Final, NamedTuple

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.fields import fields_of
from rejoin.protocol.limits import MAX_ANSWER_BYTES, MAX_ENTRIES
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.api_versions import ApiVersion, ApiVersionsResponse
from rejoin.protocol.registry import API_VERSIONS, DEFINED, Api
from rejoin.protocol.types import WireType
from rejoin.protocol.wire.errors import ResponseTooLarge, SchemaError
from rejoin.protocol.wire.primitives import Malformed, skip_tagged_fields
from rejoin.protocol.wire.reader import Reader, compile_reader
from rejoin.protocol.wire.source import Layout
from rejoin.protocol.wire.writer import Part, PartsWriter, Writer, compile_parts_writer, compile_writer, joined

_REQUEST_HEAD: Final = struct.Struct(">hhih")
_FRAMED_REQUEST_HEAD: Final = struct.Struct(">ihhih")
_RESPONSE_HEAD: Final = struct.Struct(">ii")
_FLEXIBLE_RESPONSE_HEAD: Final = struct.Struct(">iix")
_CORRELATION_ID: Final = struct.Struct(">i")
_LENGTH_BYTES: Final = 4
_MAX_INT32: Final = 2**31 - 1


class RequestHeader(NamedTuple):
    """The header of a request. ``body_at`` is where the request itself begins."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    body_at: int


def is_flexible(api: Api, version: int) -> bool:
    """True for versions with compact lengths and tagged fields."""
    return api.flexible_from is not None and version >= api.flexible_from


def read_request_header(frame: bytes, at: int = 0) -> RequestHeader:
    """Read the header of a request of any API and version, from ``at`` on. Raises :class:`SchemaError`.

    It is version 2 of the header where the request is flexible, else version 1.
    """
    try:
        key, version, correlation_id, length = _REQUEST_HEAD.unpack_from(frame, at)
    except struct.error:
        raise SchemaError("header", f"{len(frame) - at} bytes", "a request header") from None
    at += _REQUEST_HEAD.size
    client_id = ""
    # Kafka: the client id keeps its two-byte length in flexible versions; a null one counts as empty.
    if length != -1:
        stop = at + length
        if not at <= stop <= len(frame):
            raise SchemaError("clientId", f"length {length:,}, but {len(frame) - at:,} left", "a string")
        try:
            client_id = frame[at:stop].decode()
        except UnicodeDecodeError as problem:
            raise SchemaError("clientId", f"invalid UTF-8 at byte {problem.start:,}", "a string") from None
        at = stop
    api = DEFINED.get(key)
    if api is not None and is_flexible(api, version):
        try:
            at = at + 1 if frame[at] == 0 else skip_tagged_fields(frame, at)
        except (IndexError, Malformed) as problem:
            raise SchemaError("header", str(problem), "tagged fields") from None
    return RequestHeader(key, version, correlation_id, client_id, at)


@cache
def _has_records(model: type) -> bool:
    """True where a message holds record batches, which are large."""
    return any(
        spec.value_type is WireType.RECORDS or (spec.struct is not None and _has_records(spec.struct))
        for spec in fields_of(model)
    )


class Codec:
    """One version of one API. Readers and writers raise :class:`SchemaError`."""

    def __init__(self, api: Api, version: int) -> None:
        self.api = api
        self.version = version
        self.is_flexible = is_flexible(api, version)
        self._layout = Layout(version, self.is_flexible)
        # Kafka: ApiVersions is answered with the old header in every version, as the client may know no other.
        has_tags = self.is_flexible and api is not API_VERSIONS
        head = _FLEXIBLE_RESPONSE_HEAD if has_tags else _RESPONSE_HEAD
        self._response_head = head.pack
        self._response_head_size = head.size - _LENGTH_BYTES
        self._has_records = _has_records(api.response)

    @cached_property
    def read_request(self) -> Reader:
        """Reads a request from a position of a frame to its end."""
        return compile_reader(self.api.request, self._layout, MAX_ENTRIES)

    @cached_property
    def write_request(self) -> Writer:
        return compile_writer(self.api.request, self._layout)

    @cached_property
    def read_response(self) -> Reader:
        """Reads a response from a position of a frame to its end."""
        return compile_reader(self.api.response, self._layout, None)

    @cached_property
    def write_response(self) -> Writer:
        """Writes a response. One of more than ``MAX_ANSWER_BYTES`` raises :class:`ResponseTooLarge`."""
        return compile_writer(self.api.response, self._layout, MAX_ANSWER_BYTES)

    @cached_property
    def write_response_parts(self) -> PartsWriter:
        """Writes a response as parts that follow each other; record batches are not copied."""
        return compile_parts_writer(self.api.response, self._layout)

    def response_frame(self, correlation_id: int, response: Response) -> bytes:
        """A response with its length and header in front."""
        if self._has_records:
            return joined(self.response_parts(correlation_id, response))
        body = self.write_response(response)
        return self._response_head(len(body) + self._response_head_size, correlation_id) + body

    def response_parts(self, correlation_id: int, response: Response) -> list[Part]:
        """The response as parts in order; record batches are not copied."""
        parts = self.write_response_parts(response)
        size = sum(map(len, parts)) + self._response_head_size
        if size > _MAX_INT32:
            raise ResponseTooLarge(_MAX_INT32)
        first = parts[0]
        assert isinstance(first, bytes), "a response begins with fields of fixed size"
        parts[0] = self._response_head(size, correlation_id) + first
        return parts

    def request_frame(self, correlation_id: int, client_id: str, request: Request) -> bytes:
        """A request with its length and header in front."""
        name = client_id.encode()
        tags = b"\0" if self.is_flexible else b""
        body = self.write_request(request)
        size = _REQUEST_HEAD.size + len(name) + len(tags) + len(body)
        head = _FRAMED_REQUEST_HEAD.pack(size, self.api.key, self.version, correlation_id, len(name))
        return b"".join((head, name, tags, body))

    def read_response_frame(self, frame: bytes) -> tuple[int, Response]:
        """The correlation id and the response of a frame, which has no length in front."""
        try:
            (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
            at = _CORRELATION_ID.size
            if self._response_head_size > at:
                at = skip_tagged_fields(frame, at)
        except (struct.error, IndexError, Malformed) as problem:
            raise SchemaError("header", str(problem), "a response header") from None
        return correlation_id, self.read_response(frame, at)


_codecs: Final[dict[tuple[int, int], Codec]] = {}


def codec_of(api_key: int, version: int) -> Codec | None:
    """The codec of one version of an API; none where its messages are not known."""
    codec = _codecs.get((api_key, version))
    if codec is None:
        api = DEFINED.get(api_key)
        if api is None or not api.supports(version):
            return None
        codec = _codecs[api_key, version] = Codec(api, version)
    return codec


def unsupported_api_versions_frame(correlation_id: int, oldest: int, newest: int) -> bytes:
    """The response to ApiVersions in a version that is not served: its range, in version 0.

    Kafka: ApiVersionsRequest.getErrorResponse. It is the one response whose version is not the request's.
    """
    codec = codec_of(API_VERSIONS.key, 0)
    assert codec is not None
    served = ApiVersion(api_key=API_VERSIONS.key, min_version=oldest, max_version=newest)
    refused = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(served,))
    return codec.response_frame(correlation_id, refused)
