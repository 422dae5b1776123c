"""Linear multistep methods as data: two rows of rational numbers.

    α_k y_{n+k} + … + α_0 y_n = h (β_k f_{n+k} + … + β_0 f_n)

With ρ(ζ) = Σ αⱼ ζʲ and σ(ζ) = Σ βⱼ ζʲ (:cite:`hairer1993`, III.2), the method has order p if

    C_q = (1/q!) Σ αⱼ j^q − (1/(q−1)!) Σ βⱼ j^(q−1) = 0     for q = 0, …, p,

and C_{p+1} h^(p+1) y^(p+1) is what the solution leaves in the equation. Everything here is
exact; the numbers become doubles in the engine.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...tableau.exact import parse
from .root_condition import root_condition

if TYPE_CHECKING:
    from ...problem import IVP
    from ...stepping.engine import Options
    from .engine import MultistepEngine

__all__ = ["Multistep"]

MOST_STEPS = 30
ITERATIONS = ("newton", "fixed-point")
DYADIC = 2**20  # a float with a larger denominator is taken for a rounded number


class Multistep:
    """A linear multistep method Σ αⱼ y_{n+j} = h Σ βⱼ f_{n+j}, for fixed steps.

    Parameters
    ----------
    alpha, beta
        α₀ … α_k and β₀ … β_k, the oldest value first: integers, fractions, strings such as
        "4/3", or one string with all of them. They are divided by α_k. β_k = 0 makes the method
        explicit.
    name
        A name for tables.
    predictor
        An explicit method: y_{n+k} is predicted by it and corrected by this one, P(EC)ᵐE, and no
        equation is solved.
    corrections
        m, how often the prediction is corrected.
    starter
        The one-step method of the first k − 1 steps, and of a last step that is shorter than the
        others: a :class:`Tableau`, a name of the catalogue, or Taylor(p). By default a
        Runge–Kutta method of at least the same order, implicit if this one is.
    iteration
        How the equation of an implicit method is solved: "newton" or "fixed-point".

    Examples
    --------
    >>> bdf2 = Multistep(alpha=["1/3", "-4/3", 1], beta=[0, 0, "2/3"], name="BDF2")
    >>> print(bdf2)
    BDF2: 2 steps, implicit, order 2, C₃ = -2/9, zero-stable
    y[n+2] - 4/3 y[n+1] + 1/3 y[n] = h (2/3 f[n+2])
    >>> from integrators import solve
    >>> run = solve(lambda t, y: -y, (0, 1), [1.0], method=bdf2, step=0.01)
    >>> print(f"{run.y[0, -1]:.4f}")
    0.3679
    """

    def __init__(
        self,
        alpha: Sequence[Any] | str,
        beta: Sequence[Any] | str,
        name: str = "",
        *,
        predictor: Multistep | None = None,
        corrections: int = 1,
        starter: Any = None,
        iteration: str = "newton",
    ) -> None:
        given = _rationals(alpha, "alpha"), _rationals(beta, "beta")
        self._check_lengths(*given)
        #: Coefficients, divided by α_k.
        self.alpha, self.beta = (tuple(x / given[0][-1] for x in row) for row in given)
        self.name = name
        if predictor is not None:
            _check_predictor(predictor, self.beta[-1] == 0)
        if isinstance(corrections, bool) or corrections != int(corrections) or corrections < 1:
            raise ValueError(f"corrections must be a whole number ≥ 1, got {corrections!r}")
        if iteration not in ITERATIONS:
            raise ValueError(f"iteration must be 'newton' or 'fixed-point', got {iteration!r}")
        self.predictor = predictor
        self.corrections = int(corrections)
        self.starter = starter
        self.iteration = iteration

    @staticmethod
    def _check_lengths(alpha: tuple[Fraction, ...], beta: tuple[Fraction, ...]) -> None:
        if len(alpha) != len(beta):
            raise ValueError(
                f"alpha and beta need the same length, k + 1 for k steps; got {len(alpha)} and "
                f"{len(beta)} (an explicit method has the last beta 0)"
            )
        if not 2 <= len(alpha) <= MOST_STEPS + 1:
            raise ValueError(f"expected 1 to {MOST_STEPS} steps, got {len(alpha) - 1}")
        if alpha[-1] == 0:
            raise ValueError("the last alpha belongs to the new value and must not be 0")
        if alpha[0] == beta[0] == 0:
            raise ValueError(
                "the first alpha and beta are both 0: the method has fewer steps; leave them out"
            )

    def with_(self, **changes: Any) -> Multistep:
        """Return the method with another name, predictor, starter, …

        Examples
        --------
        >>> euler = Multistep([-1, 1], [1, 0], name="Euler")
        >>> Multistep([-1, 1], ["1/2", "1/2"]).with_(predictor=euler, name="Heun").is_explicit
        True
        """
        fields = ("alpha", "beta", "name", "predictor", "corrections", "starter", "iteration")
        return Multistep(**({key: getattr(self, key) for key in fields} | changes))

    # ------------------------------------------------------------ what it is

    @property
    def steps(self) -> int:
        """How many values of the past it uses: k, or the predictor's if that uses more."""
        own = len(self.alpha) - 1
        return own if self.predictor is None else max(own, self.predictor.steps)

    @property
    def is_explicit(self) -> bool:
        """Whether no equation is solved."""
        return self.beta[-1] == 0 or self.predictor is not None

    @property
    def uses_slopes(self) -> bool:
        """Whether it uses slopes of the past; the BDF do not."""
        return any(self.beta[:-1]) or self.predictor is not None

    def defect(self, q: int) -> Fraction:
        """C_q, which is 0 up to the order (of the corrector, where there is a predictor).

        Examples
        --------
        >>> Multistep([-1, 1], [1, 0]).defect(2)  # Euler's method
        Fraction(1, 2)
        """
        moment = sum((a * j**q for j, a in enumerate(self.alpha)), Fraction(0))
        if q == 0:
            return moment
        slopes = sum((b * j ** (q - 1) for j, b in enumerate(self.beta)), Fraction(0))
        return moment / math.factorial(q) - slopes / math.factorial(q - 1)

    @cached_property
    def own_order(self) -> int:
        """Order of the formula by itself; 0 if it is not consistent."""
        q = 0
        while q <= 2 * len(self.alpha) and self.defect(q) == 0:  # 2k is the highest there is
            q += 1
        return max(q - 1, 0)

    @property
    def order(self) -> int:
        """Order p; with a predictor of order p* and m corrections at most p* + m."""
        if self.predictor is None:
            return self.own_order
        return min(self.own_order, self.predictor.order + self.corrections)

    @property
    def is_consistent(self) -> bool:
        """Whether ρ(1) = 0 and ρ′(1) = σ(1): order 1 at least."""
        return self.own_order >= 1

    @property
    def is_zero_stable(self) -> bool:
        """Whether the roots of ρ satisfy the root condition, decided exactly."""
        return root_condition(self.alpha)

    @property
    def is_convergent(self) -> bool:
        """Whether it is consistent and zero-stable, which by Dahlquist is the same."""
        return self.is_consistent and self.is_zero_stable

    @property
    def error_constant(self) -> Fraction | None:
        """C_{p+1}, with α_k = 1; None where a predictor's error is of the same order.

        Examples
        --------
        >>> Multistep([0, -1, 1], ["-1/2", "3/2", 0]).error_constant  # Adams–Bashforth
        Fraction(5, 12)
        """
        if self.predictor is not None and self.order == self.predictor.order + self.corrections:
            return None
        return self.defect(self.order + 1)

    @property
    def global_error_constant(self) -> Fraction | None:
        """C_{p+1}/σ(1), which measures the global error and does not depend on a factor."""
        total = sum(self.beta, Fraction(0))
        own = self.error_constant
        return None if own is None or total == 0 else own / total

    @property
    def stability_polynomials(self) -> tuple[tuple[Fraction, ...], ...]:
        """π_0, π_1, … of the characteristic equation Σᵢ zⁱ πᵢ(ζ) = 0 on y' = λy, z = hλ.

        Without a predictor these are ρ and −σ. With one, the last value of m corrections is
        (1 + w + … + w^(m−1)) c + wᵐ y*, where w = zβ_k and c and y* belong to the corrector's
        past and the prediction.
        """
        if self.predictor is None:
            return self.alpha, tuple(-b for b in self.beta)
        k = self.steps
        zero = [Fraction(0)] * (k + 1)
        rows = [list(zero) for _ in range(self.corrections + 2)]
        rows[0][k] = Fraction(1)

        def subtract(method: Multistep, power: int, factor: Fraction) -> None:
            """Take factor·z^power times the method's past off."""
            shift = k - (len(method.alpha) - 1)
            for j, (a, b) in enumerate(zip(method.alpha[:-1], method.beta[:-1])):
                rows[power][shift + j] += factor * a
                rows[power + 1][shift + j] -= factor * b

        for i in range(self.corrections):
            subtract(self, i, self.beta[-1] ** i)
        subtract(self.predictor, self.corrections, self.beta[-1] ** self.corrections)
        return tuple(map(tuple, rows))

    # ------------------------------------------------------------ running

    def bind(self, problem: IVP, options: Options) -> MultistepEngine:
        """Bind the method to a problem."""
        from .engine import MultistepEngine

        return MultistepEngine(self, problem, options)

    # ------------------------------------------------------------ equality, text

    def _key(self) -> tuple[Any, ...]:
        return self.alpha, self.beta, self.predictor, self.corrections, self.iteration

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Multistep) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        kind = "explicit" if self.is_explicit else "implicit"
        if self.predictor is not None:
            kind = "P" + ("EC" if self.corrections == 1 else f"(EC)^{self.corrections}") + "E"
        steps = "1 step" if self.steps == 1 else f"{self.steps} steps"
        return f"<Multistep {self.name or 'unnamed'}: {steps}, {kind}, order {self.order}>"

    def __str__(self) -> str:
        facts = repr(self).removeprefix("<Multistep ").removesuffix(">")
        if self.error_constant is not None:
            index = str(self.order + 1).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
            facts += f", C{index} = {self.error_constant}"
        facts += ", zero-stable" if self.is_zero_stable else ", not zero-stable"
        lines = [facts]
        if self.predictor is not None:
            lines.append(f"P: {self.predictor._formula()}")
        mark = "C: " if self.predictor is not None else ""
        return "\n".join([*lines, mark + self._formula()])

    def _formula(self) -> str:
        return f"{_combination(self.alpha, 'y')} = h ({_combination(self.beta, 'f') or '0'})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _rationals(values: Sequence[Any] | str, label: str) -> tuple[Fraction, ...]:
    listed = values.split() if isinstance(values, str) else list(values)
    numbers = []
    for i, value in enumerate(listed):
        try:
            number = parse(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{label}[{i}]: {error}") from None
        if isinstance(number, float) and math.isfinite(number):
            exactly = Fraction(number)
            number = exactly if exactly.denominator <= DYADIC else number
        if not isinstance(number, Fraction):
            raise ValueError(
                f"{label}[{i}] = {value!r} is no exact fraction, and orders are found exactly; "
                "write it as a string such as '1/3', or as a Fraction"
            )
        numbers.append(number)
    return tuple(numbers)


def _check_predictor(predictor: Any, corrector_is_explicit: bool) -> None:
    if not isinstance(predictor, Multistep):
        raise TypeError(f"the predictor must be an explicit Multistep, got {predictor!r}")
    if not predictor.is_explicit or predictor.predictor is not None:
        raise ValueError(f"the predictor must be explicit, and {predictor!r} is not")
    if corrector_is_explicit:
        raise ValueError("an explicit method (last beta 0) needs no predictor; leave it out")


def _combination(coefficients: Sequence[Fraction], letter: str) -> str:
    """Write Σ cⱼ letter[n+j], the newest first."""
    text = ""
    for j in range(len(coefficients) - 1, -1, -1):
        c = coefficients[j]
        if c == 0:
            continue
        sign = ("- " if c < 0 else "+ ") if text else ("-" if c < 0 else "")
        size = "" if abs(c) == 1 else f"{abs(c)} "
        place = f"{letter}[n+{j}]" if j else f"{letter}[n]"
        text += f"{' ' if text else ''}{sign}{size}{place}"
    return text
