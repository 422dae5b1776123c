"""A whole run with many digits: equal or adaptive steps of a tableau, or Taylor series."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...runs.solution import Solution
from ...stepping.limits import attempts
from ...stepping.state import Status
from ...tableau import Tableau
from ...tableau.exact import to_decimal
from ..taylor import Taylor
from .decimals import NotAvailable, with_digits
from .events import Watch
from .system import ManyDigits, State, combined, horner, reach

__all__ = ["exact_numbers", "solve_precisely"]

GUARD = 6  # digits of the arithmetic beyond those that were asked for
LOST = 4  # digits that a run may lose to its own errors: the default tolerance
FEWEST, MOST = 17, 50
SAFETY, LEAST, LARGEST = Decimal("0.9"), Decimal("0.2"), Decimal(5)
AFTER_FAILURE = Decimal("0.25")


def exact_numbers(values: Any) -> list[Decimal]:
    """Numbers as Decimals that lose nothing: integers, fractions, doubles, longer ones, text.

    Examples
    --------
    >>> exact_numbers(["0.1", Fraction(1, 4)])
    [Decimal('0.1'), Decimal('0.25')]
    """
    return [_exact(x) for x in np.atleast_1d(np.asarray(values, dtype=object)).ravel()]


def _exact(x: Any) -> Decimal:
    if isinstance(x, Decimal):
        return x
    if isinstance(x, Fraction):
        return to_decimal(x)
    if isinstance(x, str):
        return _exact(Fraction(x)) if "/" in x else Decimal(x)
    if isinstance(x, np.longdouble):
        high = float(x)
        return Decimal(high) + Decimal(float(x - np.longdouble(high)))
    if hasattr(x, "_mpf_"):  # mpmath's numbers: sign, mantissa, exponent
        sign, mantissa, exponent, _ = x._mpf_
        return (-1) ** sign * Decimal(int(mantissa)) * Decimal(2) ** int(exponent)
    return Decimal(float(x)) if not isinstance(x, int) else Decimal(x)


class _Rule:
    """How one step is made: the new state and the norm of its error in tolerances."""

    def __init__(self, system: ManyDigits, rtol: Decimal, atol: State) -> None:
        self.system, self.rtol, self.atol = system, rtol, atol
        self.exponent = Decimal(1)

    def norm(self, y: State, new: State, error: State) -> Decimal:
        """Root mean square of an error, in tolerances."""
        total = Decimal(0)
        for a, b, e, atol in zip(y, new, error, self.atol):
            total += (e / (atol + self.rtol * max(abs(a), abs(b)))) ** 2
        return (total / len(y)).sqrt()


class _ByTableau(_Rule):
    """Embedded pairs; step doubling for tableaux without one."""

    def __init__(self, system: ManyDigits, rtol: Decimal, atol: State, tableau: Tableau) -> None:
        super().__init__(system, rtol, atol)
        self.tableau = tableau
        self.weights: State | None = None
        self.low: State | None = None
        order = tableau.order
        if tableau.b_hat is not None:
            pairs = zip(tableau.b, tableau.b_hat)
            self.weights = [to_decimal(b) - to_decimal(low) for b, low in pairs]
            order = min(order, tableau.embedded_order or order)
            if tableau.b_low is not None:
                self.low = [to_decimal(b) - to_decimal(x) for b, x in zip(tableau.b, tableau.b_low)]
                order = tableau.order - 1
        self.exponent = Decimal(1) / (order + 1)
        self.name = "embedded method" if self.weights is not None else "step doubling"

    def step(self, t: Decimal, y: State, h: Decimal) -> tuple[State, Decimal]:
        """The new state, and the norm of its error."""
        system, tableau = self.system, self.tableau
        new, slopes = system.step(tableau, t, y, h)
        if self.weights is not None:
            nothing = [Decimal(0)] * len(y)
            high = self.norm(y, new, combined(nothing, [h * w for w in self.weights], slopes))
            if self.low is None or not high:
                return new, high
            low = self.norm(y, new, combined(nothing, [h * w for w in self.low], slopes))
            return new, high * high / (high * high + low * low / 100).sqrt()  # as in DOP853
        middle, _ = system.step(tableau, t, y, h / 2)
        finer, _ = system.step(tableau, t + h / 2, middle, h / 2)
        error = [(a - b) / (2**tableau.order - 1) for a, b in zip(finer, new)]
        return finer, self.norm(y, finer, error)


def solve_precisely(
    problem: IVP,
    method: Any,
    digits: Any,
    *,
    y0: Any = None,
    t_span: Any = None,
    step: Any = None,
    rtol: float | None = None,
    atol: Any = None,
    t_eval: Any = None,
    tstops: Any = (),
    max_steps: int | None = None,
    callback: Callable[..., Any] | None = None,
) -> Solution:
    """Solve with so many digits; see ``precision`` of :func:`integrators.solve`.

    States and times of events are Decimals (arrays of objects), times of steps are doubles.
    """
    if isinstance(digits, bool) or not isinstance(digits, int) or not FEWEST <= digits <= MOST:
        raise ValueError(f"precision is a number of digits from {FEWEST} to {MOST}, got {digits!r}")
    start = None if y0 is None else exact_numbers(y0)
    span = None if t_span is None else tuple(exact_numbers(t_span))
    try:
        system = ManyDigits(problem, start, span, digits + GUARD)  # type: ignore[arg-type]
        watch = Watch(problem, system.parameters)
    except NotAvailable as error:
        raise ValueError(f"precision={digits}: {error}") from None
    least = Decimal(10) ** (LOST - digits)
    relative = least if rtol is None else Decimal(rtol)
    absolute = [relative] * problem.n
    if atol is not None:
        given = exact_numbers(atol)
        absolute = given * problem.n if len(given) == 1 else given
    if len(absolute) != problem.n or min(absolute) < 0 or relative < least / 100:
        raise ValueError(
            f"precision={digits} gives errors down to rtol = {float(least):.0e}; got rtol = "
            f"{float(relative):g} and {len(absolute)} of {problem.n} absolute tolerances"
        )
    outputs = _sorted_times("t_eval", t_eval, system.t_span)
    ways = sorted(exact_numbers(tstops), reverse=system.t_span[1] < system.t_span[0])
    ways = _sorted_times("tstops", ways, system.t_span)
    with with_digits(digits + GUARD):
        run = _Run(system, method, relative, absolute, step, max_steps, callback, watch)
        return run.to(outputs, ways, t_eval is not None)


def _sorted_times(name: str, given: Any, span: tuple[Decimal, ...]) -> list[Decimal]:
    """Times that steps end on."""
    times = [] if given is None else exact_numbers(given)
    low, high = min(span), max(span)
    ahead = span[1] >= span[0]
    if any(not low <= t <= high for t in times) or times != sorted(times, reverse=not ahead):
        raise ValueError(f"{name} must lie within t_span, sorted in the direction of integration")
    return times


class _Run:
    def __init__(
        self,
        system: ManyDigits,
        method: Any,
        rtol: Decimal,
        atol: State,
        step: Any,
        max_steps: int | None,
        callback: Callable[..., Any] | None,
        watch: Watch,
    ) -> None:
        self.system, self.callback, self.watch = system, callback, watch
        self.most = attempts(max_steps, fixed=False)
        self.fixed = None if step is None else abs(_exact(step))
        if self.fixed is not None and not self.fixed > 0:
            raise ValueError(f"step must be positive, got {step!r}")
        self.rule: Any = None
        self.order = 0
        if isinstance(method, Taylor):
            if system.branches:
                raise ValueError(
                    f"f has branches ({', '.join(system.branches)}), which no Taylor series "
                    "crosses; name a tableau as method"
                )
            self.rtol = rtol
            wanted = int(-1.15 * float(rtol.log10())) + 4
            self.order = method.fixed_order or max(8, wanted)
            self.estimate, self.name = "last terms of the Taylor series", f"Taylor({self.order})"
        elif isinstance(method, Tableau):
            self.rule = _ByTableau(system, rtol, atol, method)
            self.estimate, self.name = self.rule.name, method.name or "tableau"
        else:
            raise ValueError(
                f"precision= is for tableaux and Taylor methods, got {method!r}; 'auto' takes "
                "Taylor series"
            )
        if self.fixed is not None:
            self.estimate = "none (fixed step)"
        self.rejected = 0
        self.t, self.y = system.t_span[0], system.y0
        self.direction = 1 if system.t_span[1] >= system.t_span[0] else -1
        self.h = self.fixed

    def to(self, times: list[Decimal], ways: list[Decimal], only_these: bool) -> Solution:
        """Run to the end by way of output times and others."""
        ts: list[float] = []
        ys: list[State] = []
        lengths: list[float] = []

        def keep() -> None:
            ts.append(float(self.t))
            ys.append(self.y)

        if not only_these or (times and times[0] == self.t):
            keep()
        status = Status.FINISHED
        exception: BaseException | None = None
        end = self.system.t_span[1]
        stops = sorted({*times, *ways, end} - {self.t}, reverse=self.direction < 0)
        wanted = set(times)
        try:
            if self.watch.events:
                self.watch.begin(self.t, self.y)
            for stop in stops:
                while self.t != stop:
                    if len(lengths) + self.rejected >= self.most:
                        status = Status.TOO_MANY_STEPS
                        break
                    before = self.t, self.y
                    if not self._advance(stop):
                        status = Status.STEP_TOO_SMALL
                        break
                    if self.watch.events and self._ends_by_event(*before):
                        status = Status.EVENT
                    lengths.append(float(self.t - before[0]))
                    if not only_these or self.t in wanted:
                        keep()
                    if status == Status.EVENT:
                        break
                    if self.callback is not None and self.callback(
                        float(self.t), np.array(self.y, dtype=object)
                    ):
                        status = Status.STOPPED
                        break
                if status != Status.FINISHED:
                    break
        except (NotAvailable, ArithmeticError) as error:
            status, exception = Status.STEP_TOO_SMALL, error
        except KeyboardInterrupt as error:
            status, exception = Status.INTERRUPTED, error
        where = f"t = {float(self.t):.9g}"
        message = {
            Status.FINISHED: f"reached {where} with {self.system.digits - GUARD} digits",
            Status.EVENT: f"a terminal event ended the run at {where}",
            Status.TOO_MANY_STEPS: f"max_steps = {self.most} attempts do not lead past {where}",
            Status.INTERRUPTED: f"interrupted at {where}",
        }.get(status, f"ended at {where}: no step is short enough" if status < 0 else "stopped")
        states: NDArray[Any] = np.empty((len(self.y), len(ys)), dtype=object)
        for k, y in enumerate(ys):
            states[:, k] = y
        return Solution(
            np.array(ts),
            states,
            h=np.array(lengths),
            status=status,
            message=message,
            error_estimate=self.estimate,
            exception=exception,
            method=self.name,
            reached=(float(self.t), np.array(self.y, dtype=object)),
            nfev=self.system.nfev,
            nsteps=len(lengths),
            nrejected=self.rejected,
            t_events=[np.array(found, dtype=object) for found in self.watch.times],
            y_events=[np.array(found, dtype=object) for found in self.watch.states],
        )

    def _ends_by_event(self, t: Decimal, y: State) -> bool:
        """Look for events in the last step, from (t, y); a terminal one becomes its end."""

        def state(h: Decimal) -> State:
            if t + h == self.t:
                return self.y
            if self.order:
                return horner(self.rows, h)
            if self.fixed is not None:
                return self.system.step(self.rule.tableau, t, y, h)[0]
            new: State = self.rule.step(t, y, h)[0]
            return new

        ending = self.watch.look(t, self.t - t, state)
        if ending is not None:
            self.t, self.y = ending
        return ending is not None

    def _advance(self, stop: Decimal) -> bool:
        """One accepted step towards a stop; False if none is short enough."""
        left = abs(stop - self.t)
        if self.order:
            return self._by_series(stop, left)
        if self.h is None:
            self.h = self._first_step(left)
        while True:
            h = min(self.h, left)
            last = h == left or left - h < h / 10**9
            h = left if last else h
            if h <= abs(self.t) * Decimal(10) ** (3 - getcontext().prec):
                return last and h > 0 and self.fixed is not None
            try:
                if self.fixed is not None:
                    new, _ = self.system.step(self.rule.tableau, self.t, self.y, self.direction * h)
                    error = Decimal(0)
                else:
                    new, error = self.rule.step(self.t, self.y, self.direction * h)
            except (NotAvailable, ArithmeticError):
                if self.fixed is not None:
                    return False
                self.h, self.rejected = h * AFTER_FAILURE, self.rejected + 1
                continue
            if self.fixed is None:
                ideal = SAFETY * error**-self.rule.exponent if error else LARGEST
                factor = min(LARGEST, max(LEAST, ideal))
                if error > 1:
                    self.h, self.rejected = h * factor, self.rejected + 1
                    continue
                self.h = max(h * factor, self.h if last else Decimal(0))
            self.t, self.y = (stop if last else self.t + self.direction * h), new
            return True

    def _by_series(self, stop: Decimal, left: Decimal) -> bool:
        self.rows = rows = self.system.series(self.t, self.y, self.order)
        self.system.nfev += 1
        h = self.fixed if self.fixed is not None else reach(rows, float(self.rtol) / 100)
        if not h > abs(self.t) * Decimal(10) ** (3 - getcontext().prec):
            return False
        last = h >= left or left - h < h / 10**9
        new = horner(rows, self.direction * (left if last else h))
        self.t, self.y = (stop if last else self.t + self.direction * h), new
        return True

    def _first_step(self, left: Decimal) -> Decimal:
        """By the sizes of state and slope, much too short rather than too long."""
        slope = self.system.f(self.t, self.y)
        rule = self.rule
        fast = rule.norm(self.y, self.y, slope)
        return min(left, (1 / fast) ** rule.exponent / 100) if fast else left / 100
