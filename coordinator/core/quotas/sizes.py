"""Sizes of messages in Kafka's protocol, in bytes, on whichever way they came: quotas count those.

Kafka: RequestChannel.Request.sizeInBytes, FetchResponse.sizeOf.
"""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.inputs import Context
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_REQUEST
from rejoin.protocol.wire.codec import Codec, codec_of

_LENGTH_BYTES: Final = 4
"""The length in front of a frame. Of a request it does not count, of a response alone it does."""


def size_of_request(request: Request, context: Context) -> int:
    """Size of a request with its header."""
    return len(_codec(request, context).request_frame(0, context.client_id, request)) - _LENGTH_BYTES


def size_of_response(request: Request, response: Response, context: Context) -> int:
    """Size of a response to a request, with the length but without the header."""
    return _LENGTH_BYTES + sum(map(len, _codec(request, context).write_response_parts(response)))


def _codec(request: Request, context: Context) -> Codec:
    codec = codec_of(BY_REQUEST[type(request)].key, context.api_version)
    assert codec is not None, "what a node serves has a codec"
    return codec
