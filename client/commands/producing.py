"""The work of `rejoin produce`: lines become records, and what became of them is counted and shown."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Final

from rejoin.client.commands.input_lines import InputLines
from rejoin.client.commands.produce import ProduceOptions
from rejoin.client.commands.setting_options import WrongOption, with_settings
from rejoin.client.commands.topic_lookup import TopicLookup
from rejoin.client.core.errors import KafkaError, KafkaTimeoutError
from rejoin.client.producer import Producer
from rejoin.client.producer_config import ProducerConfig, checked_producer_config
from rejoin.client.producer_driver import RecordMetadata
from rejoin.client.transports.addresses import check_servers
from rejoin.error_lines import print_error, refuse
from rejoin.output import print_aside, print_progress, print_text
from rejoin.posix import stop_signals

_PROGRESS_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 5.0
"""How long records may still be stored after a signal."""
_SHOWN_ERRORS: Final = 5
_SHOWN_PARTITIONS: Final = 12


def run(given: ProduceOptions) -> int:
    """Write the lines, and return the exit code."""
    try:
        if given.rate is not None and not given.rate > 0:
            raise WrongOption(f"--rate {given.rate:g}: expected more than 0 records a second")
        if given.partition is not None and given.partition < 0:
            raise WrongOption(f"--partition {given.partition}: expected 0 or more")
        form = LineForm.of(given)
        settings = _settings(given)
        if given.file is not None and given.file.is_dir():
            raise WrongOption(f"--file {given.file}: this is a directory; expected a file with lines")
        lines = InputLines(given.file)
    except (WrongOption, ValueError) as problem:
        return refuse(str(problem))
    except OSError as problem:
        return refuse(f"--file {given.file}: {problem.strerror or problem}; expected a file with lines")
    return asyncio.run(_produce(given, form, settings, lines))


def _settings(given: ProduceOptions) -> dict[str, Any]:
    """Checked settings. Raises WrongOption, and ValueError with one sentence."""
    options = {
        "bootstrap_servers": given.bootstrap,
        "acks": given.acks,
        "enable_idempotence": given.idempotent,
        "compression_type": given.compression,
    }
    found = with_settings(
        ProducerConfig, {name: value for name, value in options.items() if value is not None}, given.setting or ()
    )
    config = checked_producer_config(found)
    if config.transactional_id is not None:
        raise ValueError("transactional.id: this command has no transactions; rejoin.Producer has them")
    check_servers(config.bootstrap_servers, config)
    return found


# -- lines


@dataclass(frozen=True, slots=True)
class LineForm:
    """Format of a line: ``HEADERS separator KEY separator VALUE``, as far as there are separators."""

    key_separator: bytes | None
    header_separator: bytes | None
    null_marker: bytes | None
    headers: tuple[tuple[str, bytes], ...]

    @classmethod
    def of(cls, given: ProduceOptions) -> LineForm:
        """Raises WrongOption."""
        for name, text in (("--key-separator", given.key_separator), ("--header-separator", given.header_separator)):
            if text == "":
                raise WrongOption(f"{name}: expected a text")
        headers = []
        for text in given.header or ():
            name, equals, value = text.partition("=")
            if not equals:
                raise WrongOption(f"--header {text}: expected NAME=VALUE")
            headers.append((name, value.encode()))
        marker = None if given.null_marker is None else given.null_marker.encode()
        return cls(_separator(given.key_separator), _separator(given.header_separator), marker, tuple(headers))

    def read(self, line: bytes) -> dict[str, Any]:
        """Value, key and headers of a line. Raises ValueError for a line that lacks a separator."""
        headers = list(self.headers)
        if self.header_separator is not None:
            text, line = _split(line, self.header_separator, "headers")
            for part in filter(None, text.split(b",")):
                name, colon, content = part.partition(b":")
                if not colon:
                    raise ValueError(f"header {_shown(part)}: expected NAME:VALUE")
                headers.append((name.decode("utf-8", "replace"), content))
        key: bytes | None = None
        if self.key_separator is not None:
            key, line = _split(line, self.key_separator, "a key")
        marker = self.null_marker
        return {
            "value": None if line == marker and marker is not None else line,
            "key": None if key == marker and marker is not None else key,
            "headers": headers,
        }


def _separator(text: str | None) -> bytes | None:
    return None if text is None else text.replace("\\t", "\t").encode()


def _split(line: bytes, separator: bytes, what: str) -> tuple[bytes, bytes]:
    before, found, after = line.partition(separator)
    if not found:
        raise ValueError(f"{_shown(line)}: expected {what}, then {separator.decode()!r}")
    return before, after


def _shown(text: bytes) -> str:
    return repr(text[:60].decode("utf-8", "replace"))


# -- what became of the records


@dataclass(slots=True)
class Tally:
    """Counts of records by outcome, so far."""

    began: float = field(default_factory=monotonic)
    read: int = 0
    size: int = 0
    stored: int = 0
    failed: int = 0
    partitions: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    waited: float = 0.0
    longest: float = 0.0

    def done(self, sent_at: float, metadata: RecordMetadata | None, error: BaseException | None) -> None:
        """A record is stored, or has failed."""
        if metadata is None:
            self.refuse(str(error) or type(error).__name__)
            return
        waited = monotonic() - sent_at
        self.stored += 1
        self.partitions[metadata.partition] += 1
        self.waited += waited
        self.longest = max(self.longest, waited)

    def refuse(self, problem: str) -> None:
        """A line that makes no record, or a record that failed."""
        self.failed += 1
        self.errors[problem] += 1

    def progress(self) -> str:
        seconds = max(monotonic() - self.began, 0.001)
        rate = f"{self.stored / seconds:,.0f} a second"
        return f"{self.read:,} read, {self.stored:,} stored, {self.failed:,} failed; {rate}"

    def summary(self, topic: str) -> str:
        """The text at the end."""
        seconds = max(monotonic() - self.began, 0.001)
        lines = [
            f"{self.stored:,} of {self.read:,} records stored in {topic}, {self.size:,} bytes in {seconds:.1f} s: "
            f"{self.stored / seconds:,.0f} a second"
        ]
        if self.stored:
            most = sorted(self.partitions.items())
            shown = ", ".join(f"{partition}: {count:,}" for partition, count in most[:_SHOWN_PARTITIONS])
            rest = f", and {len(most) - _SHOWN_PARTITIONS} more" if len(most) > _SHOWN_PARTITIONS else ""
            lines.append(f"partitions {shown}{rest}")
            mean = 1_000 * self.waited / self.stored
            lines.append(f"stored {mean:.1f} ms after send on average, {1_000 * self.longest:.1f} ms at most")
        return "\n".join(lines)

    def failures(self) -> list[str]:
        """The most frequent errors."""
        shown = [f"{text} ({_records(count)})" for text, count in self.errors.most_common(_SHOWN_ERRORS)]
        more = len(self.errors) - len(shown)
        if more > 0:
            shown.append(f"and {more} other errors")
        if (unknown := self.read - self.stored - self.failed) > 0:
            shown.append(f"stopped before the answer came ({_records(unknown)})")
        return shown


def _records(count: int) -> str:
    return f"{count:,} {'record' if count == 1 else 'records'}"


async def _produce(given: ProduceOptions, form: LineForm, settings: Mapping[str, Any], lines: InputLines) -> int:
    tally = Tally()
    loop = asyncio.get_running_loop()
    shows = sys.stderr.isatty() if given.progress is None else given.progress
    progress = loop.create_task(_show_progress(tally)) if shows else None
    try:
        await _write(given, form, settings, lines, tally)
    except WrongOption as problem:
        return refuse(str(problem))
    except (KafkaError, OSError) as problem:
        tally.refuse(str(problem))
    finally:
        if progress is not None:
            progress.cancel()
            print_aside()
    for text in tally.failures():
        print_error(text)
    print_text(tally.summary(given.topic))
    return 0 if tally.stored == tally.read and not tally.failed else 1


async def _write(
    given: ProduceOptions, form: LineForm, settings: Mapping[str, Any], lines: InputLines, tally: Tally
) -> None:
    """Send the lines, and wait until they are stored.

    A signal ends reading and waiting; what is in batches then has some seconds to be stored. The next one ends that.
    """
    loop = asyncio.get_running_loop()
    producer = Producer(**settings)
    sending = loop.create_task(_send_lines(producer, given, form, lines, tally))
    ending = loop.create_task(_close_after(sending, producer))

    def stop() -> None:
        if lines.stopped:
            ending.cancel()
            return
        lines.stop()
        sending.cancel()
        loop.call_later(_GRACE_SECONDS, ending.cancel)

    with stop_signals(loop, stop):
        await asyncio.wait([ending])
    for task in (sending, ending):
        if not task.cancelled():
            task.result()


async def _close_after(sending: asyncio.Task[None], producer: Producer) -> None:
    try:
        await asyncio.wait([sending])
    finally:
        await producer.close()


async def _send_lines(
    producer: Producer, given: ProduceOptions, form: LineForm, lines: InputLines, tally: Tally
) -> None:
    """Raises KafkaError for what no line would survive, and WrongOption for a partition that does not exist."""
    is_found = False
    async for line in lines:
        if given.rate is not None:
            due = tally.began + tally.read / given.rate
            if (wait := due - monotonic()) > 0:
                await asyncio.sleep(wait)
        tally.read += 1
        tally.size += len(line)
        try:
            record = form.read(line)
        except ValueError as problem:
            tally.refuse(f"line {tally.read}: {problem}")
            continue
        if not is_found:
            await _find_topic(given, producer)
            await producer.start()
            is_found = True
        done = partial(tally.done, monotonic())
        future = await producer.send(given.topic, partition=given.partition, callback=done, **record)
        if future.done() and isinstance(future.exception(), KafkaTimeoutError):
            # It waited for max.block.ms, and each of the others would wait as long.
            print_error(f"line {tally.read} could not be sent; no more lines are read")
            return


async def _find_topic(given: ProduceOptions, producer: Producer) -> None:
    count = await TopicLookup(given.topic, producer.config, print_error).partitions()
    if given.partition is not None and given.partition >= count:
        has = "1 partition; expected 0" if count == 1 else f"{count} partitions; expected 0 to {count - 1}"
        raise WrongOption(f"--partition {given.partition}: topic {given.topic} has {has}")


async def _show_progress(tally: Tally) -> None:
    while True:
        await asyncio.sleep(_PROGRESS_SECONDS)
        print_progress(tally.progress())
