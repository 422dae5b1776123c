"""Text of a model file: its data, and where each key is written.

The standard parsers say where a syntax error is, but not where a key was that turns out wrong
later. So the text, once known to be valid, is walked a second time only to note lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from integrators.errors import FileError
from integrators.files import refuse_long_keys

__all__ = ["FORMATS", "MAX_BYTES", "KeyPath", "ModelFileError", "Source", "read_text"]

FORMATS = ("toml", "json")

#: Larger files are refused: a model of ten thousand bodies has about five megabytes.
MAX_BYTES = 50_000_000

#: Place in the data: keys and indices from the root.
KeyPath = tuple[str | int, ...]


#: Characters of a key that a message shows.
LONGEST_KEY = 200


class ModelFileError(FileError):
    r"""What is wrong with a model file, and where.

    Attributes
    ----------
    file, line, key
        Name of the file, line (None if unknown) and key (empty for the file as a whole).

    Examples
    --------
    >>> from multibody.io import loads
    >>> loads('name = "arm"\nbody = []')
    Traceback (most recent call last):
        ...
    multibody.io.shared.source.ModelFileError: <text>:2: body: unknown key; did you mean 'bodies'?
    """

    def __init__(self, message: str, file: str, line: int | None = None, key: str = "") -> None:
        place = file if line is None else f"{file}:{line}"
        shown = key if len(key) <= LONGEST_KEY else f"{key[:LONGEST_KEY]}…"
        super().__init__(place, ": ".join(part for part in (shown, message) if part))
        self.message, self.file, self.line, self.key = message, file, line, key

    def __reduce__(self) -> Any:
        return ModelFileError, (self.message, self.file, self.line, self.key)


def read_text(path: Path) -> str:
    """Text of a file, or a reason why there is none."""
    name = str(path)
    try:
        if not path.is_file():
            what = "is a directory" if path.is_dir() else "does not exist"
            raise ModelFileError(f"the file {what}; give the path of a model file", name)
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ModelFileError(
                f"expected at most {MAX_BYTES // 10**6} MB, the file has {size / 1e6:.0f} MB; "
                "is it a model?",
                name,
            )
        raw = path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"the file cannot be read: {error.strerror or error}", name) from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ModelFileError(
            f"expected UTF-8 text, received the byte 0x{raw[error.start]:02x}; save the file as "
            "UTF-8",
            name,
            line,
        ) from None


class Source:
    """Data of a model file, with the line of every key.

    Parameters
    ----------
    text
        The file's text.
    format
        "toml" or "json".
    file
        Name for messages.
    """

    def __init__(self, text: str, format: str, file: str) -> None:
        self.file = file
        if not text.strip():
            raise ModelFileError("the file is empty; expected a model with [[bodies]]", file)
        try:
            self.data = self._parse(text, format)
            self.lines = _Scanner(text, format == "toml", file).lines
        except RecursionError:
            raise ModelFileError("brackets are nested too deep for a model", file) from None

    def _parse(self, text: str, format: str) -> Any:
        if format == "toml":
            import tomllib

            try:
                refuse_long_keys(text)
                return tomllib.loads(text)
            except tomllib.TOMLDecodeError as error:
                message = str(error)
                found = re.search(r" \(at line (\d+), column \d+\)", message)
                line = int(found[1]) if found else None
                message = message[: found.start()] if found else message
                raise ModelFileError(f"not valid TOML: {message}", self.file, line) from None
            except ValueError as error:  # a number of thousands of digits
                raise ModelFileError(f"not valid TOML: {error}", self.file) from None
        import json

        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise ModelFileError(f"not valid JSON: {error.msg}", self.file, error.lineno) from None
        except ValueError as error:
            raise ModelFileError(f"not valid JSON: {error}", self.file) from None

    def line(self, path: KeyPath) -> int | None:
        """Line of a key, or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def key(self, path: KeyPath) -> str:
        """Key as it is called in messages: ``bodies['arm'].inertia.mass``."""
        text, at = "", self.data
        for part in path:
            try:
                at = at[part]
            except (LookupError, TypeError):
                at = None
            if isinstance(part, str):
                text += f".{part}" if text else part
            else:
                name = at.get("name") if isinstance(at, dict) else None
                text += f"[{name!r}]" if isinstance(name, str) else f"[{part}]"
        return text

    def error(self, path: KeyPath, message: str) -> ModelFileError:
        """Error at a key."""
        return ModelFileError(message, self.file, self.line(path), self.key(path))

    @contextmanager
    def at(self, path: KeyPath) -> Iterator[None]:
        """Give errors raised inside the file, line and key."""
        try:
            yield
        except ModelFileError:
            raise
        except (TypeError, ValueError) as error:
            raise self.error(path, str(error)) from error


class _Scanner:
    """Walk valid text and note the line of every key and of every element of an array.

    TOML values and JSON values differ only in strings, comments, and the sign after a key.
    """

    BLANK: ClassVar[dict[bool, re.Pattern[str]]] = {
        True: re.compile(r"(?:[ \t\r\n]|#[^\n]*)*"),
        False: re.compile(r"[ \t\r\n]*"),
    }
    STRING = re.compile(
        r'"""(?:\\.|[^\\])*?"""(?:"{1,2}(?!"))?'
        r"|'''.*?'''(?:'{1,2}(?!'))?"
        r'|"(?:\\.|[^"\\\n])*"'
        r"|'[^'\n]*'",
        re.DOTALL,
    )
    SCALAR = re.compile(r"[^,\]}#\n]+")
    BARE = re.compile(r"[A-Za-z0-9_-]+")

    def __init__(self, text: str, toml: bool, file: str) -> None:
        self.text, self.toml, self.file = text, toml, file
        self.at = 0
        self.lines: dict[KeyPath, int] = {(): 1}
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        if toml:
            self._document()
        else:
            self._value(())

    def _note(self, path: KeyPath) -> None:
        self.lines.setdefault(path, bisect_right(self.starts, self.at))

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        assert found is not None, f"unexpected text at {self.text[self.at : self.at + 20]!r}"
        self.at = found.end()
        return found[0]

    def _blank(self) -> str:
        """Skip blanks and comments; return the next character, or nothing at the end."""
        self._take(self.BLANK[self.toml])
        return self.text[self.at : self.at + 1]

    # ------------------------------------------------------------------ values

    def _value(self, path: KeyPath) -> None:
        first = self._blank()
        self._note(path)
        if first == "[":
            self.at += 1
            index = 0
            while self._blank() != "]":
                self._value((*path, index))
                index += 1
                if self._blank() == ",":
                    self.at += 1
            self.at += 1
        elif first == "{":
            self.at += 1
            seen: set[str] = set()
            while self._blank() != "}":
                self._member(path, seen)
                if self._blank() == ",":
                    self.at += 1
            self.at += 1
        elif first in "\"'":
            self._take(self.STRING)
        else:
            self._take(self.SCALAR)

    def _member(self, path: KeyPath, seen: set[str] | None = None) -> None:
        """Key and value; only JSON's parser lets a key come twice."""
        line = bisect_right(self.starts, self.at)
        keys = self._keys()
        if not self.toml and seen is not None:
            if keys[0] in seen:
                raise ModelFileError(
                    "the key is there twice; remove one", self.file, line, str(keys[0])
                )
            seen.add(keys[0])
        inner = path
        for key in keys:
            inner = (*inner, key)
            self.lines.setdefault(inner, line)
        self._blank()
        self.at += 1  # = or :
        self._value(inner)

    def _keys(self) -> list[str]:
        """A key, or in TOML several with dots between them."""
        keys = []
        while True:
            if self._blank() in "\"'":
                keys.append(self._unquoted(self._take(self.STRING)))
            else:
                keys.append(self._take(self.BARE))
            if not self.toml or self._blank() != ".":
                return keys
            self.at += 1

    def _unquoted(self, token: str) -> str:
        if self.toml:
            import tomllib

            return str(tomllib.loads(f"key = {token}")["key"])
        import json

        return str(json.loads(token))

    # ------------------------------------------------------------------ lines of TOML

    def _document(self) -> None:
        table: KeyPath = ()
        counts: dict[KeyPath, int] = {}  # of arrays of tables

        def place(keys: list[str]) -> KeyPath:
            path: KeyPath = ()
            for key in keys:
                path = (*path, key)
                if path in counts:
                    path = (*path, counts[path] - 1)
            return path

        while first := self._blank():
            if first != "[":
                self._member(table)
                continue
            line = bisect_right(self.starts, self.at)
            several = self.text.startswith("[[", self.at)
            self.at += 2 if several else 1
            keys = self._keys()
            self._blank()
            self.at += 2 if several else 1
            if several:
                array = (*place(keys[:-1]), keys[-1])
                counts[array] = counts.get(array, 0) + 1
                self.lines.setdefault(array, line)
            table = place(keys)
            self.lines.setdefault(table, line)
