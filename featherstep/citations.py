"""The list of sources, ``integrators/references.bib``, as readable citations."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files

__all__ = ["authors_and_year", "citation"]

_COMBINING = {
    '"': "\u0308",
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    "~": "\u0303",
    "v": "\u030c",
}
_LETTERS = {r"\o": "ø", r"\O": "Ø", r"\l": "ł", r"\ae": "æ", r"\aa": "å", r"\ss": "ß", r"\&": "&"}


def citation(key: str) -> str:
    """Return the source with this key, as one line; the key itself if it is not in the list.

    Examples
    --------
    >>> citation("dormand1980")
    'Dormand, Prince, 1980: A family of embedded Runge–Kutta formulae. Journal of Computational \
and Applied Mathematics 6'
    """
    fields = _sources().get(key)
    if fields is None:
        return key
    where = next(
        (
            fields[k]
            for k in ("journal", "booktitle", "publisher", "institution", "school")
            if k in fields
        ),
        "",
    )
    place = f"{where} {fields.get('volume', '')}".strip()
    return f"{authors_and_year(key, ', ')}: {fields['title']}. {place}".rstrip()


def authors_and_year(key: str, separator: str = " ") -> str:
    """Return surnames and year, short enough for a table.

    Examples
    --------
    >>> authors_and_year("bogacki1989")
    'Bogacki, Shampine 1989'
    """
    fields = _sources().get(key)
    if fields is None:
        return key
    surnames = [name.split(",")[0].strip() for name in fields["author"].split(" and ")]
    shown = ", ".join(surnames) if len(surnames) <= 3 else f"{surnames[0]} et al."
    return f"{shown}{separator}{fields.get('year', '')}".strip()


@cache
def _sources() -> dict[str, dict[str, str]]:
    text = (files("integrators") / "references.bib").read_text(encoding="utf-8")
    sources = {}
    for entry in re.split(r"^@\w+\{", text, flags=re.MULTILINE)[1:]:
        key, _, body = entry.partition(",")
        pairs = re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?\s*$", body, flags=re.MULTILINE)
        sources[key.strip()] = {name: _unicode(value) for name, value in pairs}
    return sources


def _unicode(text: str) -> str:
    """Turn TeX's accents into letters and drop its braces."""
    text = re.sub(r"\\([\"'`^~])\{?(\w)\}?", lambda m: m[2] + _COMBINING[m[1]], text)
    text = re.sub(r"\\v[ {]+(\w)\}?", lambda m: m[1] + _COMBINING["v"], text)
    for command, letter in _LETTERS.items():
        text = re.sub(re.escape(command) + r"(?![a-zA-Z])\s*", letter, text)
    return unicodedata.normalize("NFC", text.replace("{", "").replace("}", "").replace("--", "–"))
