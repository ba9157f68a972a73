"""Takes off what is around lines, again and again, until nothing known is left around them.

A peeler knows one wrapper. The order of peelers does not matter for what they combine to: a line is peeled from the
outside to the inside, and each peeler sees what the ones before it left.
"""

from __future__ import annotations

import html
import re
import string
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from rejoin.pipeline.reading.peeling.peeled import Peeled, Peeler
from rejoin.pipeline.reading.peeling.prefixes import collected, container, name_of_file, number_of_line, pod, quote
from rejoin.pipeline.reading.peeling.structured import CsvRows, fields_behind, json_object, logfmt

MOST_LAYERS: Final = 8
_ESCAPES: Final = re.compile(r"(?:\x1b|#033|\^\[)\[[0-9;?]*[A-Za-z]|(?<![\w\]])\[\d{1,2}(?:;\d{1,3})*m")
_MARKS: Final = ("\ufeff", "\u200b", "\u200e", "\u00a0")
_ENTITIES: Final = re.compile(r"&(?:quot|amp|lt|gt|#3[49]|#x27);")
_CELLS: Final = ('{"', '"')
_MOST_ESCAPED: Final = 2
_SHAPE: Final = 48
_LONG: Final = 80
"""A shorter line is no evidence for its shape: a wrapper around an empty line looks bare."""
_MOST_SHAPES: Final = 5_000
_SHAPES: Final = str.maketrans(
    string.digits + string.ascii_letters, "0" * len(string.digits) + "a" * len(string.ascii_letters)
)
_FIELDS: Final = "msg="
_MAY_END_OTHERWISE: Final = ("{", '"', ">")
"""First characters of lines whose layouts differ only at the end."""

JSON: Final = "json"
PEELERS: Final[tuple[tuple[str, Peeler], ...]] = (
    ("quote", quote),
    (JSON, json_object),
    ("number", number_of_line),
    ("file", name_of_file),
    ("container", container),
    ("pod", pod),
    ("collected", collected),
    ("logfmt", logfmt),
    ("fields behind", fields_behind),
)
"""By the names that reports give them; rows of CSV, whose header belongs to a file, come before these."""
CSV: Final = "csv"


class Peels:
    """Peels the lines of one file. ``without``: names of peelers that are left out."""

    def __init__(self, without: Iterable[str] = ()) -> None:
        left_out = set(without)
        rows: tuple[tuple[str, Peeler], ...] = ((CSV, CsvRows()),)
        self._peelers = tuple(each for each in rows + PEELERS if each[0] not in left_out)
        self._bare: set[str] = set()
        """Shapes of beginnings around which there was nothing. Lines of one logger have few."""

    def peel(self, text: str) -> Peeled:
        """The line without what is around it."""
        text = cleaned(text)
        line = Peeled(text)
        shape = text[:_SHAPE].translate(_SHAPES)
        if shape in self._bare and _FIELDS not in text and not text.endswith(("}", "ms")):
            return line
        for _ in range(MOST_LAYERS):
            for name, peeler in self._peelers:
                found = peeler(line)
                if found is not None:
                    line = replace(found, text=cleaned(found.text), peelers=(*found.peelers, name))
                    break
            else:
                break
        if not line.peelers and len(text) > _LONG and text[:1] not in _MAY_END_OTHERWISE:
            if len(self._bare) > _MOST_SHAPES:
                self._bare.clear()
            self._bare.add(shape)
        return line


def cleaned(text: str) -> str:
    """A line without colours, byte order marks and HTML's entities."""
    if "\x1b" in text or "[0m" in text:
        text = _ESCAPES.sub("", text)
    if not text.isascii():
        for mark in _MARKS:
            text = text.replace(mark, " " if mark == "\u00a0" else "")
    # Within JSON and CSV an entity belongs to the text of a cell.
    for _ in range(_MOST_ESCAPED):
        if "&" not in text or text.startswith(_CELLS) or _ENTITIES.search(text) is None:
            break
        text = html.unescape(text)
    return text.rstrip("\r\n")
