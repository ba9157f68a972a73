"""Frames: cut from bytes that come in pieces of any size, and handed on whole or as they come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rejoin.proxy.frames import FrameSplitter, Pass


class Owner:
    """Holds small frames, and streams those of more than ten bytes."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.refused: list[int] = []
        self.is_blocked = False

    def whole(self, frame: bytes) -> None:
        self.seen.append(frame)

    def begin(self, beginning: bytes, size: int) -> Pass:
        if size <= 14:
            return Pass.HELD
        if len(beginning) < 6:
            return Pass.UNDECIDED
        self.seen.append(beginning)
        return Pass.STREAMED

    def more(self, piece: bytes, *, is_last: bool) -> None:
        self.seen[-1] += piece

    def refuse(self, size: int, beginning: bytes) -> None:
        self.refused.append(size)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@given(bodies=st.lists(st.binary(max_size=40), max_size=6), cuts=st.lists(st.integers(0, 300), max_size=8))
def test_frames_come_out_as_they_went_in(bodies: list[bytes], cuts: list[int]) -> None:
    frames = [framed(body) for body in bodies]
    stream = b"".join(frames)
    owner = Owner()
    splitter = FrameSplitter(owner)
    at = 0
    for cut in [*sorted(cuts), len(stream)]:
        splitter.feed(stream[at : max(at, cut)])
        at = max(at, cut)
    assert owner.seen == frames
    assert not splitter.has_part


def test_what_follows_waits_while_the_owner_is_blocked() -> None:
    owner = Owner()
    splitter = FrameSplitter(owner)
    owner.is_blocked = True
    splitter.feed(framed(b"one"))
    splitter.feed(framed(b"two"))
    assert owner.seen == []
    assert splitter.has_part
    owner.is_blocked = False
    splitter.feed()
    assert owner.seen == [framed(b"one"), framed(b"two")]


def test_a_negative_length_is_refused() -> None:
    owner = Owner()
    FrameSplitter(owner).feed(b"\xff\xff\xff\xff1234")
    assert owner.refused == [-1]
