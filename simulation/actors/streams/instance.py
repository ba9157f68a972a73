"""One instance of an application: a process with its threads, its process id and its state directory."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import NAMESPACE_OID, uuid5

from rejoin.client.core.group.streams.state import StreamsApplication
from rejoin.simulation.actors.streams.application import Application
from rejoin.simulation.actors.streams.state_directory import StateDirectory

if TYPE_CHECKING:
    from rejoin.simulation.actors.streams.thread import StreamsThread


class Instance:
    """The process that threads are part of. They start, stop and die together."""

    def __init__(self, application: Application, name: str) -> None:
        self.application = application
        self.name = name
        self.directory = StateDirectory()
        self.threads: list[StreamsThread] = []
        self.starts = 0
        self._is_ending = False

    @property
    def process_id(self) -> str:
        """An id that stays as long as the state directory does."""
        start = "" if self.application.code.keeps_state else f"/{self.starts}"
        return str(uuid5(NAMESPACE_OID, self.name + start))

    def as_member(self) -> StreamsApplication:
        """The instance as its threads describe it when they join."""
        return StreamsApplication(self.process_id, self.application.code.topology())

    def begin(self, thread: StreamsThread) -> None:
        """A thread starts. The first one brings the others."""
        if thread is not self.threads[0]:
            return
        self.starts += 1
        if not self.application.code.keeps_state:
            self.directory.clear()

    def crash(self, thread: StreamsThread) -> None:
        """A thread has died, and with it the process."""
        if self._is_ending:
            return
        self._is_ending = True
        active = [task for each in self.threads for task in each.tasks.active()]
        for each in self.threads:
            each.tasks.crash()
            if each is not thread:
                each.crash()
        self.directory.crash(active, wipes=self.application.code.exactly_once)
        self._is_ending = False
