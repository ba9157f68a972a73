"""Frames come out whole and in order, however the bytes arrive."""

from __future__ import annotations

import struct
from random import Random

import pytest

from rejoin.protocol.wire.errors import InvalidReceiveError
from rejoin.protocol.wire.framing import FrameSplitter


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def taken(splitter: FrameSplitter) -> list[bytes]:
    frames = []
    while (frame := splitter.next_frame()) is not None:
        frames.append(frame)
    return frames


@pytest.mark.parametrize("seed", range(50))
def test_any_chunks_give_the_same_frames(seed: int) -> None:
    random = Random(seed)
    frames = [random.randbytes(random.choice((0, 1, 5, 40, 300))) for _ in range(12)]
    stream = b"".join(map(framed, frames))
    splitter = FrameSplitter()
    found: list[bytes] = []
    at = 0
    while at < len(stream):
        size = random.choice((1, 1, 2, 3, 10, 100, 1_000))
        splitter.feed(stream[at : at + size])
        at += size
        if random.random() < 0.7:
            found += taken(splitter)
    found += taken(splitter)
    assert found == frames
    assert splitter.buffered_bytes == 0


def test_frames_can_be_left_for_later() -> None:
    splitter = FrameSplitter()
    splitter.feed(framed(b"one") + framed(b"two") + framed(b"three")[:5])
    assert splitter.next_frame() == b"one"
    splitter.feed(framed(b"three")[5:] + framed(b"four"))
    assert splitter.buffered_bytes == len(framed(b"two") + framed(b"three") + framed(b"four"))
    assert taken(splitter) == [b"two", b"three", b"four"]


@pytest.mark.parametrize(
    ("length", "text"), [(-1, "not -1"), (1_001, "0 to 1,000 bytes in front of a request, not 1,001")]
)
def test_a_length_beyond_the_limit_is_refused_as_soon_as_it_is_there(length: int, text: str) -> None:
    splitter = FrameSplitter(max_frame_bytes=1_000)
    splitter.feed(framed(b"good") + struct.pack(">i", length)[:3])
    assert taken(splitter) == [b"good"]
    splitter.feed(struct.pack(">i", length)[3:])
    with pytest.raises(InvalidReceiveError, match=text):
        splitter.next_frame()


def test_a_frame_of_the_greatest_length_is_taken() -> None:
    splitter = FrameSplitter(max_frame_bytes=1_000)
    splitter.feed(framed(bytes(1_000)))
    assert taken(splitter) == [bytes(1_000)]
