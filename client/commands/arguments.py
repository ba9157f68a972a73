"""What the command lines of `rejoin groups` and `rejoin topics` share."""

from __future__ import annotations

import argparse
from typing import Final, NoReturn

DEFAULT_SERVER: Final = "http://127.0.0.1:9095"
BOOTSTRAP_HELP: Final = "HOST:PORT speaks Kafka's protocol, http://HOST:PORT HTTP; several with commas."


class UsageError(Exception):
    """The command line makes no sense."""


class ArgumentParser(argparse.ArgumentParser):
    """A parser that raises UsageError."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)
