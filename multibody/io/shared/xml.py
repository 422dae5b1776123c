"""XML of model files: elements with lines, read by rules that no file can abuse.

The parser is the standard library's expat; text is decoded already, so an encoding that it
declares no longer counts. Document type declarations are refused, and with them
entities of one's own: no file is fetched and nothing is expanded. Depth and number of elements are
bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from xml.parsers import expat

from .source import ModelFileError

__all__ = ["Element", "parse_xml", "root_tag"]

MOST_ELEMENTS = 1_000_000
DEEPEST = 200


@dataclass
class Element:
    """An element, its attributes, children and text, and the line where it begins."""

    tag: str
    attributes: dict[str, str]
    line: int
    file: str
    children: list[Element] = field(default_factory=list)
    content: str = ""

    def all(self, tag: str) -> Iterator[Element]:
        """Children with a tag."""
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> Element | None:
        """The only child with a tag; None if there is none."""
        found = list(self.all(tag))
        if len(found) > 1:
            raise found[1].error(f"a second <{tag}>; <{self.tag}> has one")
        return found[0] if found else None

    def error(self, message: str) -> ModelFileError:
        """Error at this element."""
        name = self.attributes.get("name")
        key = f"<{self.tag}>" if name is None else f"<{self.tag} name={name!r}>"
        return ModelFileError(message, self.file, self.line, key)

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Errors raised inside are errors at this element, unless they say where they are."""
        try:
            yield
        except ModelFileError:
            raise
        except (TypeError, ValueError) as error:
            raise self.error(str(error)) from error

    def text(self, name: str, default: str | None = None) -> str:
        """An attribute; without a default it must be there."""
        value = self.attributes.get(name, default)
        if value is None:
            raise self.error(f"expected an attribute {name}")
        return value

    def numbers(self, name: str, count: int, default: tuple[float, ...] | None) -> list[float]:
        """An attribute of so many finite numbers."""
        if name not in self.attributes:
            if default is None:
                raise self.error(f"expected an attribute {name} with {count} numbers")
            return list(default)
        return self._finite(self.attributes[name], count, f"{name}: ")

    def number(self, name: str, default: float | None = None) -> float:
        """An attribute that is a finite number."""
        return self.numbers(name, 1, None if default is None else (default,))[0]

    def inside(self, count: int) -> list[float]:
        """The text between the tags: so many finite numbers."""
        return self._finite(self.content, count, "")

    def _finite(self, text: str, count: int, where: str) -> list[float]:
        try:
            values = [float(word) for word in text.split()]
        except ValueError:
            values = []
        if (
            len(values) != count
            or not all(map(math.isfinite, values))
            or "_" in text
            or not text.isascii()
        ):
            expected = "a finite number" if count == 1 else f"{count} finite numbers"
            raise self.error(f"{where}expected {expected}, received {text.strip()[:60]!r}")
        return values


def parse_xml(text: str, file: str, deepest: int = DEEPEST) -> Element:
    """Return the root element of a document, nested no deeper than given."""
    shown = text.lstrip("\ufeff \t\r\n")  # blanks before a declaration are common, if wrong
    before = text[: len(text) - len(shown)].count("\n")
    parser = expat.ParserCreate("utf-8")
    stack: list[Element] = []
    texts: list[list[str]] = []
    roots: list[Element] = []
    total = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal total
        total += 1
        element = Element(tag, attributes, before + parser.CurrentLineNumber, file)
        if total > MOST_ELEMENTS:
            raise element.error(f"more than {MOST_ELEMENTS:,} elements; is it a model?")
        if len(stack) >= deepest:
            raise element.error(f"elements are nested deeper than {deepest}; no model is")
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)
        texts.append([])

    def end(tag: str) -> None:
        stack.pop().content = "".join(texts.pop()).strip()

    def characters(text: str) -> None:
        texts[-1].append(text)

    def doctype(*arguments: object) -> None:
        raise ModelFileError(
            "a document type declaration; model files have none, and its entities are not read",
            file,
            before + parser.CurrentLineNumber,
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = characters, doctype
    try:
        parser.Parse(shown.encode(), True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise ModelFileError(f"not valid XML: {reason}", file, before + error.lineno) from None
    return roots[0]


class _Found(Exception):
    pass


def root_tag(text: str) -> str:
    """Tag of the root element; empty if the text does not get that far.

    Examples
    --------
    >>> root_tag("<!-- a robot --> <sdf version='1.6'>")
    'sdf'
    """
    parser = expat.ParserCreate("utf-8")

    def start(tag: str, attributes: dict[str, str]) -> None:
        raise _Found(tag)

    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = lambda *_: start("", {})  # refused by the reader, whichever
    try:
        parser.Parse(text.lstrip("\ufeff \t\r\n").encode(), True)
    except _Found as found:
        return str(found)
    except (expat.ExpatError, UnicodeError):
        pass
    return ""
