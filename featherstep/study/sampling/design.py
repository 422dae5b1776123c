"""Which values the parameters have in run k: random, Sobol's sequence, a grid, a table.

Any rows can be made without the others, and take the same values whatever block they are asked for
in: a study of a million runs needs no table of a million rows in memory, and a run can be made
again by its number. So random numbers come in pages, each with a seed of its own made from the
study's seed, the parameter's name and the page's number; and a Latin hypercube is shuffled by a
permutation that is computed, not stored.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from integrators.errors import suggest

from .distributions import Choice, Distribution, distribution_of

__all__ = ["SAMPLINGS", "Design", "design_of"]

Array = NDArray[np.float64]
log = logging.getLogger(__name__)

SAMPLINGS = ("random", "sobol", "latin_hypercube", "saltelli", "grid", "table")
PAGE = 4096  # random numbers that one seed makes
ROUNDS = 6  # of the network that shuffles a Latin hypercube
SOBOL_BITS = 32  # of each coordinate; SciPy cannot begin in the middle with more


@dataclass(frozen=True)
class Design:
    """Values of all parameters in all runs.

    Attributes
    ----------
    laws
        Of each parameter; none for a table.
    n
        How many runs.
    seed
        Of everything that is random.
    sampling
        "random", "sobol", "latin_hypercube", "saltelli", "grid" or "table".
    table
        Columns, for a table.

    Examples
    --------
    >>> from featherstep.study import Uniform
    >>> design = Design({"a": Uniform(0, 1)}, n=10_000, seed=1)
    >>> bool(design.rows(5000, 5002)["a"][1] == design.rows(5001, 5002)["a"][0])
    True
    """

    laws: Mapping[str, Distribution]
    n: int
    seed: int = 0
    sampling: str = "random"
    table: Mapping[str, Array] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(self.table if self.sampling == "table" else self.laws)

    def rows(self, first: int, stop: int) -> dict[str, Array]:
        """Values of the parameters in the runs first, …, stop − 1."""
        if not 0 <= first <= stop <= self.n:
            raise IndexError(f"runs are numbered 0 … {self.n - 1}, received {first} … {stop - 1}")
        if self.sampling == "table":
            return {name: column[first:stop] for name, column in self.table.items()}
        if self.sampling == "grid":
            return self._grid(first, stop)
        fill = {
            "random": self._random,
            "sobol": self._sobol,
            "latin_hypercube": self._latin,
            "saltelli": self._saltelli,
        }
        even = fill[self.sampling](first, stop)
        return {name: law.quantile(even[name]) for name, law in self.laws.items()}

    def run(self, number: int) -> dict[str, float]:
        """Values of the parameters in one run."""
        rows = self.rows(number, number + 1)
        return {name: float(column[0]) for name, column in rows.items()}

    def middle(self) -> dict[str, float]:
        """A run in the middle: medians, or the middle row of a table."""
        if self.sampling == "table":
            sound = {name: c[np.isfinite(c)] for name, c in self.table.items()}
            return {name: float(np.median(c)) if c.size else 0.0 for name, c in sound.items()}
        return {name: law.middle for name, law in self.laws.items()}

    def plain(self) -> dict[str, Any]:
        """What defines the design, without the numbers of a table: these go by their hash."""
        plain: dict[str, Any] = {"sampling": self.sampling, "n": self.n}
        if self.sampling == "table":
            digest = hashlib.sha256()
            for name, column in self.table.items():
                digest.update(name.encode() + b"\0" + column.astype("<f8").tobytes())
            return {**plain, "names": list(self.table), "sha256": digest.hexdigest()}
        if self.sampling != "grid":
            plain["seed"] = self.seed
        return {**plain, "vary": {name: law.plain() for name, law in self.laws.items()}}

    # ------------------------------------------------------------ even numbers in (0, 1)

    def _random(self, first: int, stop: int) -> dict[str, Array]:
        return {name: self._pages(name, first, stop) for name in self.laws}

    def _pages(self, name: str, first: int, stop: int) -> Array:
        """Random numbers of one parameter: midpoints of 2⁵³ intervals, so neither 0 nor 1."""
        key = _key(self.seed, name)
        pages = []
        for page in range(first // PAGE, -(-stop // PAGE)):
            whole = np.random.Generator(np.random.PCG64([*key, page])).integers(0, 2**53, PAGE)
            pages.append(whole[max(first - page * PAGE, 0) : stop - page * PAGE])
        drawn = np.concatenate(pages) if pages else np.zeros(0, dtype=np.int64)
        return _midpoints(drawn, 2.0**53)

    def _sobol(self, first: int, stop: int) -> dict[str, Array]:
        return dict(zip(self.laws, self._sobol_points(len(self.laws), first, stop).T))

    def _saltelli(self, first: int, stop: int) -> dict[str, Array]:
        """For Sobol's indices (Saltelli et al. 2010, Comput. Phys. Commun. 181, Eq. b, f).

        For each pair of points a, b: a run at a, d runs at a with one coordinate of b, one at b.
        """
        d = len(self.laws)
        pair, place = np.divmod(np.arange(first, stop), d + 2)
        points = self._sobol_points(2 * d, int(pair[0]), int(pair[-1]) + 1)[pair - pair[0]]
        of_b = (place[:, None] == d + 1) | (place[:, None] == np.arange(1, d + 1))
        return dict(zip(self.laws, np.where(of_b, points[:, d:], points[:, :d]).T))

    def _sobol_points(self, d: int, first: int, stop: int) -> Array:
        from scipy.stats import qmc

        seed = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"
        sequence = qmc.Sobol(d, scramble=True, bits=SOBOL_BITS, **{seed: self.seed})
        if first:
            sequence.fast_forward(first)
        with warnings.catch_warnings():  # that balance needs 2ᵏ points is said of the whole study
            warnings.simplefilter("ignore", UserWarning)
            points = sequence.random(stop - first)
        # Points are whole multiples of 2⁻ᵇ, 0 among them; the middle of their cell is inside.
        return _midpoints(np.floor(points * 2.0**SOBOL_BITS), 2.0**SOBOL_BITS)

    def _latin(self, first: int, stop: int) -> dict[str, Array]:
        """One run in each n-th of every parameter, at a random place there."""
        runs = np.arange(first, stop, dtype=np.uint64)
        return {
            name: _below_one(
                (_shuffled(runs, self.n, _key(self.seed, f"strata of {name}")) + u) / self.n
            )
            for name, u in self._random(first, stop).items()
        }

    def _grid(self, first: int, stop: int) -> dict[str, Array]:
        """All combinations; the last parameter changes fastest."""
        runs, rows = np.arange(first, stop), {}
        for name, law in reversed(list(self.laws.items())):
            assert isinstance(law, Choice)
            runs, place = np.divmod(runs, len(law.values))
            rows[name] = np.array(law.values)[place]
        return {name: rows[name] for name in self.laws}


def _midpoints(drawn: NDArray[Any], cells: float) -> Array:
    return _below_one((drawn + 0.5) / cells)


def _below_one(u: Array) -> Array:
    """The same where rounding has made the last cell's number 1, whose quantile may be ∞."""
    return np.minimum(u, np.nextafter(1.0, 0.0))


def _key(seed: int, name: str) -> list[int]:
    """Numbers that stand for a seed and a name."""
    digest = hashlib.sha256(f"{seed}\0{name}".encode()).digest()
    return [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 32, 4)]


def _shuffled(runs: NDArray[np.uint64], n: int, key: Sequence[int]) -> Array:
    """Place of each run in a random permutation of 0, …, n − 1.

    A Feistel network permutes the numbers of 2b bits; what falls outside 0 … n − 1 goes through
    it again until it falls inside.
    """
    bits = max(1, math.ceil(math.log2(max(n, 2)) / 2))
    mask, shift = np.uint64(2**bits - 1), np.uint64(bits)
    place = runs.copy()
    pending = np.ones(len(runs), dtype=bool)
    while pending.any():
        left, right = place[pending] >> shift, place[pending] & mask
        for k in range(ROUNDS):
            left, right = right, left ^ (_mixed(right, key[k], k) & mask)
        place[pending] = (left << shift) | right
        pending[pending] = place[pending] >= n
    return place.astype(np.float64)


def _mixed(x: NDArray[np.uint64], key: int, k: int) -> NDArray[np.uint64]:
    """Hash 64-bit numbers: the finaliser of SplitMix64 (Steele, Lea, Flood 2014)."""
    with np.errstate(over="ignore"):
        z = x + np.uint64(key) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(k)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


# ---------------------------------------------------------------------- from what users give


def design_of(vary: Any, n: int | None, seed: Any, sampling: str | None) -> Design:
    """Design from laws by name, columns of numbers by name, or a DataFrame.

    Examples
    --------
    >>> design_of({"a": [1, 2], "b": [5, 6, 7]}, None, 0, "grid").n
    6
    >>> design_of({"a": [1, 2], "b": [5, 6]}, None, 0, None).sampling
    'table'
    """
    if hasattr(vary, "columns") and hasattr(vary, "to_dict"):  # a DataFrame
        vary = {name: np.asarray(vary[name]) for name in vary.columns}
    if not isinstance(vary, Mapping) or not vary:
        raise ValueError(
            "vary: expected laws by name, such as {'crank': Normal(1, 0.05)}, columns of numbers "
            f"by name, or a DataFrame; received {vary!r:.80}"
        )
    if sampling is not None and sampling not in SAMPLINGS:
        raise ValueError(
            f"sampling: expected one of {', '.join(SAMPLINGS)}, received {sampling!r}"
            f"{suggest(str(sampling), SAMPLINGS)}"
        )
    for name in vary:
        if not isinstance(name, str) or not name:
            raise ValueError(f"vary: expected names of parameters, received {name!r}")
    seed = _whole(seed, "seed", least=0)
    laws = {name: _law(name, value) for name, value in vary.items()}
    columns = [name for name, law in laws.items() if not isinstance(law, Distribution)]
    if sampling in (None, "table") and len(columns) == len(laws):
        return _table(laws, n, seed)
    if sampling == "grid":
        axes = {name: _axis(name, law) for name, law in laws.items()}
        total = math.prod(len(axis.values) for axis in axes.values())
        if n is not None and n != total:
            raise ValueError(f"n: the grid has {total} runs, received n = {n}; leave it out")
        return Design(axes, total, seed, "grid")
    if columns:
        raise ValueError(
            f"vary: {columns[0]!r} is a column of numbers, and others are laws; give columns for "
            "all, sampling='grid' for all combinations, or Choice([...]) to draw from the numbers"
        )
    if sampling == "table":
        raise ValueError("vary: expected columns of numbers for sampling='table', received laws")
    if n is None:
        raise ValueError("n: expected how many runs, such as n=1000; the laws do not tell")
    n = _whole(n, "n", least=1)
    if sampling == "saltelli" and n % (len(laws) + 2):
        pairs = max(1, round(n / (len(laws) + 2)))
        raise ValueError(
            f"n: expected a multiple of the number of parameters + 2, {len(laws) + 2}, received "
            f"{n}; take {pairs * (len(laws) + 2)}"
        )
    if sampling == "sobol" and n & (n - 1):
        log.info("Sobol's points are balanced for n = %d or %d, not for %d", *_powers(n), n)
    return Design(laws, n, seed, sampling or "random")


def _whole(value: Any, name: str, least: int) -> int:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(f"{name}: expected a whole number ≥ {least}, received {value!r}")
    return int(value)


def _powers(n: int) -> tuple[int, int]:
    """Powers of two below and above a number."""
    return 1 << (n.bit_length() - 1), 1 << n.bit_length()


def _law(name: str, value: Any) -> Any:
    """A distribution, or a column as an array."""
    if isinstance(value, Distribution):
        return value
    if isinstance(value, Mapping):
        try:
            return distribution_of(value)
        except ValueError as error:
            raise ValueError(f"vary.{name}: {error}") from None
    try:
        column = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        column = np.zeros(0)
    if column.ndim == 0:
        raise ValueError(
            f"vary.{name}: expected a law or a column of numbers, received {value!r}; what has the "
            "same value in all runs goes to fixed={...}"
        )
    if column.ndim != 1 or not column.size:
        raise ValueError(
            f"vary.{name}: expected a law, such as Uniform(1, 2), or a column of numbers, received "
            f"{value!r:.60}"
        )
    return column


def _axis(name: str, law: Any) -> Choice:
    if isinstance(law, Choice) and law.weights is None:
        return law
    if isinstance(law, Distribution):
        raise ValueError(
            f"vary.{name}: expected the numbers of an axis for sampling='grid', received {law!r}"
        )
    return Choice(law)


def _table(columns: Mapping[str, Array], n: int | None, seed: int) -> Design:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"vary: expected columns of one length, received {lengths}")
    rows = next(iter(lengths.values()))
    if n is not None and n != rows:
        raise ValueError(f"n: the table has {rows} rows, received n = {n}; leave it out")
    return Design({}, rows, seed, "table", dict(columns))
