"""The lines of a file or of the standard input, read by a thread of their own, so that nothing waits for them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Semaphore, Thread
from typing import Final

_PIECE: Final = 65_536
_PIECES_AHEAD: Final = 4
_STANDARD_INPUT: Final = 0


class InputLines:
    """Lines without their ends, as soon as they are there. ``stop`` ends them early."""

    def __init__(self, file: Path | None) -> None:
        self._descriptor = _STANDARD_INPUT if file is None else os.open(file, os.O_RDONLY)
        self._owns_descriptor = file is not None
        self._pieces: asyncio.Queue[bytes | OSError] = asyncio.Queue()
        self._ahead = Semaphore(_PIECES_AHEAD)
        self._stopped = False

    @property
    def stopped(self) -> bool:
        return self._stopped

    def stop(self) -> None:
        """Give no more lines."""
        self._stopped = True
        self._pieces.put_nowait(b"")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises OSError when the input cannot be read."""
        loop = asyncio.get_running_loop()
        # A thread that waits for a terminal must not hold up the end of the process.
        Thread(target=self._read, args=(loop,), daemon=True).start()
        rest = b""
        while piece := await self._pieces.get():
            if isinstance(piece, OSError):
                raise piece
            self._ahead.release()
            lines = (rest + piece).split(b"\n")
            rest = lines.pop()
            for line in lines:
                if self._stopped:
                    return
                yield line.removesuffix(b"\r")
        if rest and not self._stopped:
            yield rest.removesuffix(b"\r")

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while True:
                self._ahead.acquire()
                try:
                    piece: bytes | OSError = os.read(self._descriptor, _PIECE)
                except OSError as problem:
                    piece = problem
                loop.call_soon_threadsafe(self._pieces.put_nowait, piece)
                if not piece or isinstance(piece, OSError):
                    break
        except RuntimeError:
            pass  # The event loop has ended before the input.
        finally:
            if self._owns_descriptor:
                os.close(self._descriptor)
