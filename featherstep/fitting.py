"""Which columns of a table fit a screen, and how wide each is: no cell loses a character.

A terminal that is too narrow tempts a program to cut cells, and 1e-09 without its last digit is
another number. Three things are done in its place, in this order: texts run over several lines,
between words; columns that matter least are left out as a whole; and where not even that is
enough, each row becomes a block of lines, ``heading  cell``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

__all__ = ["Layout", "fit"]

GAP = 2  # spaces between columns


@dataclass(frozen=True)
class Layout:
    """What is shown of a table.

    Attributes
    ----------
    columns
        Their places in the full table, in its order.
    widths
        One for each of them; empty if rows are to be stacked.
    left_out
        Places of the others.
    """

    columns: tuple[int, ...]
    widths: tuple[int, ...]
    left_out: tuple[int, ...] = ()

    @property
    def stacked(self) -> bool:
        """Whether not even the columns that matter most fit beside each other."""
        return not self.widths


def fit(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    folded: Mapping[str, int] | None = None,
    spare: Sequence[str] = (),
) -> Layout:
    """Lay out a table within a number of characters.

    Parameters
    ----------
    headings, rows
        The full table, as text.
    width
        Of the screen.
    folded
        Headings of the columns that may run over several lines, with the width below which they
        are no pleasure to read: before that a column is left out.
    spare
        Headings of the columns that may be left out, the least important one first.

    Examples
    --------
    >>> fit(["method", "rejected", "error"], [["RK4", "12", "1.5e-06"]], 40).widths
    (6, 8, 7)
    >>> fit(["method", "rejected", "error"], [["RK4", "12", "1.5e-06"]], 15, spare=["rejected"])
    Layout(columns=(0, 2), widths=(6, 7), left_out=(1,))
    """
    natural = [max(_lengths(column)) for column in _columns(headings, rows)]
    least = [
        max(
            _least(cells, (folded or {}).get(heading)),
            max(map(cell_len, heading.split()), default=0),
        )
        for heading, (_, *cells) in zip(headings, _columns(headings, rows))
    ]
    shown = list(range(len(headings)))
    for name in (None, *spare):
        if name is not None and name in headings:
            shown.remove(list(headings).index(name))
        room = width - GAP * (len(shown) - 1) - sum(least[k] for k in shown)
        if room >= 0:
            wishes = [natural[k] - least[k] for k in shown]
            widths = [least[k] + more for k, more in zip(shown, _shared(room, wishes))]
            left_out = tuple(k for k in range(len(headings)) if k not in shown)
            return Layout(tuple(shown), tuple(widths), left_out)
    return Layout(tuple(range(len(headings))), ())


def _columns(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[heading, *(row[k] for row in rows)] for k, heading in enumerate(headings)]


def _lengths(cells: Sequence[str]) -> list[int]:
    return [cell_len(cell) for cell in cells]


def _least(cells: Sequence[str], legible: int | None) -> int:
    """Width below which a cell would lose characters, or a text could hardly be read."""
    longest = max(_lengths(cells), default=0)
    if legible is None:
        return longest
    words = max((cell_len(word) for cell in cells for word in cell.split()), default=0)
    return max(words, min(longest, legible))


def _shared(room: int, wishes: Sequence[int]) -> list[int]:
    """Share what room there is in proportion to what columns would take."""
    wanted = sum(wishes)
    if wanted <= room:
        return list(wishes)
    shares = [room * wish // wanted for wish in wishes]
    for k in range(room - sum(shares)):
        shares[k % len(shares)] += shares[k % len(shares)] < wishes[k % len(shares)]
    return shares
