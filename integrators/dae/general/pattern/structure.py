"""What the pattern of a DAE says: index, freedoms, blocks, what may be given at the start.

A :class:`Structure` prints itself as a table, in a notebook as HTML, and as LaTeX. For a system
without a transversal it names the equations and unknowns that are too many.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..converting.conversion import Conversion
from ..equations import Equations, Key, derivative_name
from ..jacobian import Singularity
from .blocks import Block, Parts, blocks_in_order, parts
from .signature import Offsets, Signature

__all__ = ["Choice", "Structure", "StructureError"]

LARGEST_TABLE = 16  # unknowns of a system whose matrix is printed
LARGEST_LATEX = 60
MOST_NAMES = 12


class StructureError(ValueError):
    """A system of equations that determines too much, too little, or both."""


@dataclass(frozen=True)
class Choice:
    """Derivatives of which so many may be given at the start; the equations give the others."""

    count: int
    keys: tuple[Key, ...]


@dataclass(frozen=True, eq=False)
class Structure:
    """The structure of a DAE; see :meth:`integrators.DAE.structure`.

    Attributes
    ----------
    equations
        The traced equations, after conversions.
    sigma
        The signature matrix, as triplets; ``sigma.dense()`` is the matrix with −1 for −∞.
    offsets
        Transversal and offsets, None if the system is structurally singular.
    conversions
        What was done where the structure of the equations as given was misleading.
    """

    equations: Equations
    sigma: Signature
    offsets: Offsets | None
    conversions: tuple[Conversion, ...] = ()
    name: str = ""
    highest: int | None = None
    singularity: Singularity | None = None

    # ------------------------------------------------------------ numbers

    @property
    def regular(self) -> bool:
        """Whether every equation finds an unknown of its own."""
        return self.offsets is not None

    @property
    def known(self) -> Offsets:
        """The offsets; raises where there are none."""
        if self.offsets is None:
            raise StructureError(self.trouble)
        return self.offsets

    @property
    def index(self) -> int:
        """The structural index, of the equations as they were given."""
        return self.known.index if self.highest is None else self.highest

    @property
    def freedoms(self) -> int:
        """How many values may be given at the start."""
        return self.known.value

    @property
    def c(self) -> NDArray[np.int64]:
        """How often each equation is differentiated."""
        return self.known.c

    @property
    def d(self) -> NDArray[np.int64]:
        """Order of the leading derivative of each unknown."""
        return self.known.d

    @cached_property
    def parts(self) -> Parts:
        """Over- and underdetermined parts (Dulmage–Mendelsohn)."""
        return parts(self.sigma.rows, self.sigma.columns, self.sigma.shape)

    @cached_property
    def coarse_blocks(self) -> list[Block]:
        """Blocks by which unknowns occur in which equations, in an order of solution."""
        return blocks_in_order(self.sigma.rows, self.sigma.columns, self.known.partner)

    @cached_property
    def blocks(self) -> list[Block]:
        """Blocks of the system Jacobian, in an order of solution."""
        mask = self.known.leading(self.sigma)
        return blocks_in_order(self.sigma.rows[mask], self.sigma.columns[mask], self.known.partner)

    @cached_property
    def constraints(self) -> list[tuple[int, int]]:
        """(equation, how often differentiated) of all constraints on a state, open and hidden."""
        return [(i, q) for i, times in enumerate(self.c.tolist()) for q in range(times)]

    @cached_property
    def choices(self) -> list[Choice]:
        """What may be given at the start, in groups: so many of these derivatives."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components

        known, found = self.known, []
        mask = known.leading(self.sigma)
        rows, columns = self.sigma.rows[mask], self.sigma.columns[mask]
        n = self.equations.n
        for k in range(-int(known.d.max(initial=0)), 0):
            active, unknown = known.c + k >= 0, known.d + k >= 0
            both = active[rows] & unknown[columns]
            pattern = csr_matrix(
                (np.ones(int(both.sum())), (columns[both], n + rows[both])), (2 * n, 2 * n)
            )
            count, label = connected_components(pattern, directed=False)
            size = np.bincount(label[:n][unknown], minlength=count)
            size -= np.bincount(label[n:][active], minlength=count)
            members: dict[int, list[Key]] = {}
            for j in np.flatnonzero(unknown).tolist():
                if size[label[j]] > 0:
                    members.setdefault(int(label[j]), []).append((j, int(known.d[j]) + k))
            found += [Choice(int(size[g]), tuple(keys)) for g, keys in members.items()]
        return sorted(found, key=lambda choice: (choice.keys[0][1], choice.keys[0][0]))

    # ------------------------------------------------------------ words

    def equation_names(self, numbers: Sequence[int]) -> str:
        """Return names of equations, for messages."""
        return _listed([self.equations.names[i] for i in numbers])

    def unknown_names(self, numbers: Sequence[int]) -> str:
        """Return names of unknowns, for messages."""
        return _listed([self.equations.unknowns[j] for j in numbers])

    def constraint_name(self, i: int, q: int) -> str:
        """Return f2'' for the second derivative of equation f2."""
        return derivative_name(self.equations.names[i], q)

    @property
    def trouble(self) -> str:
        """Why a system is structurally singular, by name; empty if it is not."""
        if self.regular:
            return ""
        m, n = self.sigma.shape
        text = [f"the system is structurally singular ({m} equations for {n} unknowns)"]
        nowhere = sorted(set(range(n)) - set(self.sigma.columns.tolist()))
        empty = sorted(set(range(m)) - set(self.sigma.rows.tolist()))
        if nowhere:
            text.append(f"{self.unknown_names(nowhere)} appears in no equation")
        if empty:
            text.append(f"{self.equation_names(empty)} contains no unknown")
        found = self.parts
        if found.over_equations:
            text.append(
                f"overdetermined: the {len(found.over_equations)} equations "
                f"{self.equation_names(found.over_equations)} contain only "
                f"{len(found.over_unknowns)} unknowns"
                + (f" ({self.unknown_names(found.over_unknowns)})" if found.over_unknowns else "")
            )
        if found.under_unknowns:
            equations = (
                f"only {len(found.under_equations)} equations "
                f"({self.equation_names(found.under_equations)}) determine"
                if found.under_equations
                else "no equations determine"
            )
            text.append(
                f"underdetermined: {equations} the {len(found.under_unknowns)} unknowns "
                f"{self.unknown_names(found.under_unknowns)}"
            )
        text += [conversion.text for conversion in self.conversions]
        return "; ".join(text)

    @property
    def doubt(self) -> str:
        """Why a regular structure is not to be trusted; empty if it is."""
        if self.singularity is None:
            return ""
        return (
            "the structure misleads: the system Jacobian is singular at random points (equations "
            f"{self.equation_names(self.singularity.equations)}, unknowns "
            f"{self.unknown_names(self.singularity.unknowns)}), and no conversion was found; there "
            "are fewer freedoms than the pattern says, or the equations depend on each other"
        )

    def facts(self) -> list[str]:
        """Return what follows from the matrix, one line each."""
        if not self.regular:
            return [self.trouble]
        lines = [conversion.text for conversion in self.conversions]
        if self.singularity is not None:
            lines.append(self.doubt)
        lines.append(f"structural index {self.index}, {_counted(self.freedoms, 'freedom')}")
        often = [(int(c), i) for i, c in enumerate(self.c) if c > 0]
        if often:
            times = sorted({c for c, _ in often})
            shown = "; ".join(
                f"{self.equation_names([i for c, i in often if c == k])} {_times(k)}" for k in times
            )
            lines.append(f"to be differentiated: {shown}")
        if self.freedoms:
            lines.append(f"to give at the start: {self._given()}")
        sizes = [len(block) for block in self.blocks]
        coarse = [len(block) for block in self.coarse_blocks]
        lines.append(
            f"blocks: {_sizes(coarse)} by occurrence, {_sizes(sizes)} by leading derivatives"
        )
        return lines

    def _given(self) -> str:
        texts = []
        for choice in self.choices[:MOST_NAMES]:
            names = [self.equations.symbol_name(key) for key in choice.keys]
            if choice.count == len(names):
                texts.append(", ".join(names[:MOST_NAMES]) + (", …" * (len(names) > MOST_NAMES)))
            else:
                texts.append(f"{choice.count} of {_listed(names)}")
        left = len(self.choices) - MOST_NAMES
        return "; ".join(texts) + (f"; and {left} more" if left > 0 else "")

    def cells(self) -> list[list[str]]:
        """Return the signature matrix as text, with names, c and d; * marks the transversal."""
        matrix = self.sigma.dense()
        partner = None if self.offsets is None else self.offsets.partner
        head = ["", *self.equations.unknowns] + (["c"] if self.regular else [])
        rows = [head]
        for i, row in enumerate(matrix.tolist()):
            cells = [
                ("·" if s < 0 else str(s))
                + ("*" if partner is not None and partner[i] == j else "")
                for j, s in enumerate(row)
            ]
            last = [str(int(self.c[i]))] if self.regular else []
            rows.append([self.equations.names[i], *cells, *last])
        if self.regular:
            rows.append(["d", *(str(int(x)) for x in self.d), ""])
        return rows

    @property
    def _shows_table(self) -> bool:
        return max(self.sigma.shape) <= LARGEST_TABLE

    def __str__(self) -> str:
        m, n = self.sigma.shape
        title = f"{self.name or 'DAE'}: {_counted(m, 'equation')}, {_counted(n, 'unknown')}"
        lines = [title]
        if self._shows_table:
            rows = self.cells()
            widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
            for row in rows:
                cells = [row[0].ljust(widths[0])]
                cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
                lines.append("  " + "  ".join(cells).rstrip())
        else:
            lines.append(f"  {len(self.sigma.rows):,} entries in the signature matrix")
        return "\n".join([*lines, *self.facts()])

    def __repr__(self) -> str:
        state = f"index {self.index}" if self.regular else "structurally singular"
        return f"<Structure of {self.name or 'a DAE'}: {self.equations.n} unknowns, {state}>"

    def _repr_html_(self) -> str:
        facts = "".join(f"<li>{html.escape(line)}</li>" for line in self.facts())
        table = ""
        if self._shows_table:
            rows = []
            for r, row in enumerate(self.cells()):
                cells = []
                for k, cell in enumerate(row):
                    text = html.escape(cell.rstrip("*"))
                    if cell.endswith("*") and r and k:
                        text = f"<b>{text}</b>"
                    tag = "th" if r == 0 or k == 0 else "td"
                    cells.append(f'<{tag} style="text-align:right">{text}</{tag}>')
                rows.append(f"<tr>{''.join(cells)}</tr>")
            table = f"<table>{''.join(rows)}</table>"
        return f"<div>{table}<ul>{facts}</ul></div>"

    def to_latex(self) -> str:
        r"""Return the signature matrix with its offsets as a LaTeX ``array``, for small systems.

        Entries of the transversal are marked by a dot.
        """
        if max(self.sigma.shape) > LARGEST_LATEX:
            raise ValueError(
                f"a matrix of {self.sigma.shape[0]:,} × {self.sigma.shape[1]:,} entries is too "
                f"large for LaTeX (at most {LARGEST_LATEX}); integrators.analysis.plot"
                ".dae_structure draws it"
            )
        rows = self.cells()
        last = int(self.regular)
        n = len(rows[0]) - 1 - last
        lines = [rf"\begin{{array}}{{c|{'c' * n}{'|c' if last else ''}}}"]
        for k, row in enumerate(rows):
            cells = [_latex(cell, name=k == 0 or c == 0) for c, cell in enumerate(row)]
            lines.append(" & ".join(cells) + r" \\")
            if k == 0 or (last and k == len(rows) - 2):
                lines.append(r"\hline")
        return "\n".join([*lines, r"\end{array}"])


#: Characters that mean something to TeX; those without a form for mathematics become words.
_ESCAPED = str.maketrans(
    {**{c: "\\" + c for c in "_%&#${}"}, "~": r"\sim ", "^": r"\hat{\ }", "\\": r"\backslash "}
)


def _latex(cell: str, name: bool) -> str:
    if cell == "":
        return ""
    if name and cell not in ("c", "d"):
        return rf"\mathrm{{{cell.translate(_ESCAPED)}}}"
    marked, text = cell.endswith("*"), cell.rstrip("*")
    text = r"-\infty" if text == "·" else text
    return text + (r"^{\bullet}" if marked else "")


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(map(str, names[:MOST_NAMES]))
    return shown + (f", … ({len(names):,} in all)" if len(names) > MOST_NAMES else "")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _times(k: int) -> str:
    return {1: "once", 2: "twice"}.get(k, f"{k} times")


def _sizes(sizes: Sequence[int]) -> str:
    """E.g. 3 (sizes 1, 1, 4), or a summary of many."""
    if len(sizes) <= 6:
        return f"{len(sizes)} (of {', '.join(map(str, sizes))})"
    return f"{len(sizes):,} (the largest of {max(sizes)})"
