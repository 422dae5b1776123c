"""Steps of fully implicit methods in lanes, as machine code: Newton's iteration and the estimate.

What ``runge_kutta.implicit`` and ``.coupled`` do for one run is here straight-line code, traced for
one problem and one tableau with its constants; ``newton`` calls it. The Jacobian is evaluated at
every step, since some lane wants it almost always; the others go on with the one that they have,
as ``keep_jacobian`` has it, so that a run takes the steps that it takes alone. Each matrix I − hλJ
is inverted instead of factorised. Newton's increments need no more digits than an inverse gives,
and a product waits for nothing, where substitutions wait for each other and for divisions.

All pieces are functions of (t, x, q): x are the rows of :class:`.NewtonBlock`, q those of
``judge.Block``, which begin with the parameters of f.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...methods.runge_kutta.implicit.coupled import MAGNIFIED, NOTICED, ROUNDING_SAFETY, UNIT
from ...methods.runge_kutta.implicit.engine import ImplicitEngine
from ...methods.runge_kutta.implicit.extra_stages import HOPELESS, SLOW
from ...methods.runge_kutta.implicit.inside import is_sudden
from ...methods.runge_kutta.implicit.predictor import through_last_stages
from ...methods.runge_kutta.implicit.step import CREDIT, MAX_RATE, OLDEST_JACOBIAN, REUSE_RATE
from ...stepping.state import COUPLING_TRANSFORMED, ESTIMATE_EMBEDDED, NEWTON_FAILED, STEP_TOO_SMALL
from ...tableau.extension import Extension, in_powers
from ...tableau.implicit_extension import implicit_extension, implicit_order
from .judge import LARGEST as HUGE
from .judge import ROWS, Block
from .rows import NEWTON_NAMES as NAMES
from .rows import PLACES, WORN_JACOBIAN, NewtonBlock
from .small_inverse import inverse

__all__ = ["KINDS", "NewtonCode", "combined", "newton_code", "why_not"]

LARGEST_STATES = 20  # beyond, a step of one run fills the processor as well
LARGEST_INLINED = 1500  # operations of f, or of its Jacobian, that are repeated where it is needed
LARGEST_UNROLLED = 6  # states of matrices whose inversion is straight-line code

KINDS = "explicit tableaux, fully implicit ones such as RADAU5, and Rosenbrock methods"

CONVERGED, GOES_ON, HOPELESSLY = 1.0, 0.0, -1.0  # verdicts

Array = NDArray[np.float64]


@dataclass
class NewtonCode:
    """Machine code in lanes of the pieces of a step, and the tables of dense output.

    ``prepare`` finds f(t, y), first guesses and (for few states) the inverses; ``iterate`` makes
    one iteration of all stages; ``rounding`` tells what increments rounding errors cause;
    ``finish`` and ``again`` give new states and estimates; ``further`` makes one iteration of a
    further stage for dense output, and ``dense`` the step's polynomial.
    """

    engine: ImplicitEngine
    rows: NewtonBlock
    unrolled: bool
    jac: Any
    pieces: dict[str, Any]
    extension: Extension | None
    dense_block: int

    @property
    def max_newton(self) -> int:
        """Most iterations of a step."""
        return int(self.engine.state.max_newton)


def _rows(n: int, engine: ImplicitEngine) -> NewtonBlock:
    return NewtonBlock(n, engine.tableau.stages, len(engine.real_shift), len(engine.complex_shift))


def why_not(engine: Any, n: int) -> str:
    """Why steps of a bound method have no place in lanes; empty if they have one."""
    if not isinstance(engine, ImplicitEngine) or engine.state.coupling != COUPLING_TRANSFORMED:
        return f"lanes are for {KINDS}"
    if n > LARGEST_STATES:
        return f"implicit steps of more than {LARGEST_STATES} states have no place in lanes"
    if engine.options.fixed:
        return "fixed steps of implicit methods have no place in lanes"
    if engine.state.estimate_kind != ESTIMATE_EMBEDDED:
        return f"{engine.tableau.name} has no error estimate of its own"
    if engine.state.end_block >= 0:
        return f"f is looked at where steps of {engine.tableau.name} end"
    return ""


def newton_code(
    f: Any, engine: ImplicitEngine, k: int, max_norm: bool, inside: bool, lanes: int
) -> NewtonCode:
    """Trace and compile the pieces of a step; `inside` says whether dense output is wanted."""
    tableau = engine.tableau
    key = ("newton", tableau, id(tableau.dense), k, max_norm, inside, lanes)
    return f._derive(key, lambda: _compiled_pieces(f, engine, k, max_norm, inside, lanes))


def _compiled_pieces(
    f: Any, engine: ImplicitEngine, k: int, max_norm: bool, inside: bool, lanes: int
) -> NewtonCode:
    make = _Pieces(f, engine, k, max_norm)
    always = ("prepare", "iterate", "rounding", "finish", "again")
    traced_pieces = {name: getattr(make, name)() for name in always}
    extension = None
    if inside:
        gamma = float(engine.real_shift[make.dense_block])
        wanted = implicit_order(engine.tableau)
        extension = implicit_extension(engine.tableau, wanted, gamma, False)
        plain = implicit_extension(engine.tableau, wanted, gamma, False, further=False)
        traced_pieces["further"] = make.further(gamma)
        traced_pieces["dense"] = make.dense(extension, plain)
    compiled = {name: piece.machine_code(lanes) for name, piece in traced_pieces.items()}
    jac = f.jacobian().machine_code(lanes)
    return NewtonCode(engine, make.rows, make.unrolled, jac, compiled, extension, make.dense_block)


class _Pieces:
    """The pieces as traced functions; what they share."""

    def __init__(self, f: Any, engine: ImplicitEngine, k: int, max_norm: bool) -> None:
        self.f, self.engine, self.k, self.n, self.max_norm = f, engine, k, f.n, max_norm
        self.A, self.b, self.c = engine.tableau.arrays
        self.s = engine.tableau.stages
        self.block, self.rows = Block(f.n, k), _rows(f.n, engine)
        self.inlined = f.operations()["total"] <= LARGEST_INLINED
        size = f.jacobian().operations()["total"]
        self.unrolled = f.n <= LARGEST_UNROLLED and size <= LARGEST_INLINED
        usable = np.flatnonzero(engine.real_shift > 1e-12)
        self.dense_block = int(usable[0]) if usable.size else 0

    # ------------------------------------------------------------ shared expressions

    def _traced(self, function: Any, outputs: int, x: int | None = None) -> Any:
        from ...tracing import traced

        size = self.rows.size if x is None else x
        return traced(function, n=size, params=self.block.size, outputs=outputs)

    def _slope(self, t: Any, x: Any, q: Any) -> Any:
        from ...tracing.outside import call_outside

        if not self.inlined:
            return np.array(call_outside(self.k + 1, t, x))
        p = q[: self.k]
        return np.asarray(self.f(t, np.array(x), p) if self.k else self.f(t, np.array(x)))

    def _given(self, x: Any, q: Any) -> tuple[Any, Any, Any]:
        """Increments, state and length of the step."""
        return np.asarray(x[self.rows.W]).reshape(self.s, self.n), q[self.block.y], q[self.block.h]

    def _row(self, q: Any, name: str) -> Any:
        return q[self.block.lane.start + ROWS[name]]

    def _weights(self, q: Any, others: Any) -> Any:
        """Weights of components between two states."""
        sizes = np.maximum(np.abs(q[self.block.y]), np.abs(others))
        return 1.0 / (q[self.block.atol] + q[self.block.rtol] * sizes)

    def _norm(self, vectors: Any, weights: Any) -> Any:
        """Root of the mean square of the norms of vectors, as ``coupled_norm``."""
        total: Any = 0.0
        for vector in vectors:
            squares = [scaled * scaled for scaled in vector * weights]
            if self.max_norm:
                largest = squares[0]
                for square in squares[1:]:
                    largest = np.maximum(largest, square)
                total = total + largest
            else:
                total = total + sum(squares) * (1.0 / self.n)
        return np.sqrt(total * (1.0 / len(vectors)))

    def _increments(self, x: Any, residual: Any) -> Any:
        """(I ⊗ I − h A ⊗ J)⁻¹ residual, by the inverses of the blocks."""
        engine = self.engine
        found = np.zeros((self.s, self.n), dtype=object)
        real, pairs = self.rows.matrices(x)
        for j in range(engine.T_real.shape[1]):
            z = real[j] @ combined(engine.T_real_inverse[j], residual)
            found = found + engine.T_real[:, j, None] * z
        for j, (re, im) in enumerate(pairs):
            row = engine.T_complex_inverse[j]
            u, v = combined(row.real, residual), combined(row.imag, residual)
            a, b = re @ u - im @ v, re @ v + im @ u
            column = 2.0 * engine.T_complex[:, j, None]
            found = found + (column.real * a - column.imag * b)
        return found

    def _estimate(self, x: Any, q: Any, slope: Any) -> Any:
        """Error = (I − hγJ)⁻¹ (γ₀ h slope + Σ eᵢ W[i]), as ``implicit.estimate_error``."""
        W, _, h = self._given(x, q)
        state = self.engine.state
        error = combined(self.engine.e, W)
        if state.estimate_block < 0:
            return error
        if state.estimate_weight != 0.0:
            error = error + state.estimate_weight * h * slope
        return self.rows.matrices(x)[0][state.estimate_block] @ error

    def _judged(
        self, t: Any, x: Any, q: Any, norm: Any, weights: Any, doubt: bool
    ) -> tuple[Any, Any]:
        """Norm of an estimate or, if larger, of the defect inside; and the defect.

        As ``inside.look_inside``; with `doubt`, the defect may be found to be rounding errors, as
        in ``inside.is_rounding``.
        """
        from ...tracing import where

        W, y, h = self._given(x, q)
        state, inner = self.engine.state, self.engine.inner
        if inner is None:
            return norm, 0.0 * norm
        node, value = t + inner.node * h, y + combined(inner.value, W)
        slope = self._slope(node, value, q)
        R = self.rows.matrices(x)[0][state.inside_block]
        gamma = float(self.engine.real_shift[state.inside_block])
        defect = R @ (gamma * (h * slope - combined(inner.slope, W)))
        size = self._norm([defect - R @ defect], weights)
        strict, before = self._row(q, "INSIDE_STRICT"), self._row(q, "INSIDE_BEFORE")
        growth = growth_of_defect(h, self._row(q, "H_LAST"), inner.order)
        sudden = is_sudden(size, strict, before, growth)
        weight = where(sudden, strict, self._row(q, "INSIDE_WEIGHT"))
        inside = weight * size
        counts: Any = (norm < 1.0) & (inside > norm)
        if doubt:
            moved = self._slope(node, value * (1.0 + _units(self.n, 2)), q)
            limit = weight * self._norm([R @ (h * gamma * (moved - slope))], weights)
            doubtful = (inside >= 1.0) & (self._row(q, "REJECTED") != 0.0)
            counts = counts & ~(doubtful & (inside <= ROUNDING_SAFETY * limit))
        return where(counts, inside, norm), size

    def _continued(self, ratio: Any) -> Any:
        """Weights of the last stages in first guesses of the next: ``coupled.starting_values``."""
        from ...tracing import where

        def weights(used: int, theta: Any) -> Any:
            found: Any = np.zeros(self.s)
            for power in range(used - 1, -1, -1):
                found = found * theta + tables[used - 1, :, power]
            return found

        tables = through_last_stages(self.engine.lagrange, self.c)
        nodes = [1.0 + c * ratio for c in self.c]
        chosen = np.array([weights(1, theta) + 0.0 * ratio for theta in nodes])
        for used in range(2, self.s + 1):
            far = np.abs(weights(used, 1.0 + ratio)).sum() > MAGNIFIED
            more = np.array([weights(used, theta) for theta in nodes])
            chosen = where((ratio > 1.0) & far, chosen, more)
        return chosen

    # ------------------------------------------------------------ pieces

    def prepare(self) -> Any:
        """First guesses of W, Newton's rows, f(t, y), and the inverses if they are small."""
        rows, engine, s, n = self.rows, self.engine, self.s, self.n

        def pieces(t: Any, x: Any, q: Any) -> Any:
            from ...tracing import where

            _, y, h = self._given(x, q)
            # W is that of the last attempt; what it was before it, is needed if that was refused.
            age, before = x[rows.lane.start + PLACES["AGE"]], self._row(q, "H_LAST")
            refused = (self._row(q, "REJECTED") != 0.0) | (age == WORN_JACOBIAN)
            last = where(refused, x[rows.W_last], x[rows.W]).reshape(s, n)
            ratio = where(before == 0.0, 0.0, h / where(before == 0.0, 1.0, before))
            W = (ratio * self._continued(ratio)) @ last
            memory = np.maximum(x[rows.lane.start + PLACES["MEMORY"]], 1e-16)
            theta_last = x[rows.lane.start + PLACES["THETA"]]
            lane = dict.fromkeys(NAMES, 0.0 * h)
            busy = self._row(q, "IDLE") == 0.0
            lane["ACTIVE"], lane["VERDICT"] = where(busy, 1.0, 0.0), where(busy, GOES_ON, CONVERGED)
            lane["MEMORY"] = np.exp(0.8 * np.log(memory))
            worn = (age >= OLDEST_JACOBIAN - 1.0) | (theta_last > REUSE_RATE)
            fresh = refused | (age < 0.0) | worn
            lane["AGE"] = where(fresh, 0.0, age + 1.0)
            weights = 1.0 / (q[self.block.atol] + q[self.block.rtol] * np.abs(y))
            slope = self._slope(t, y, q)
            if not self.unrolled:
                return np.array([*W.ravel(), *lane.values(), *slope, *last.ravel(), *weights])
            p = q[: self.k]
            jacobian = self.f.jacobian()
            J = np.asarray(jacobian(t, np.array(y), p) if self.k else jacobian(t, np.array(y)))
            J = where(fresh, J.reshape(n, n), np.asarray(x[rows.J]).reshape(n, n))
            identity = np.eye(n)
            found, good = [], h == h
            for shift in engine.real_shift:
                re, _, sound = inverse(identity - (h * shift) * J, None)
                found.append(re)
                good = good & sound
            for pair in engine.complex_shift:
                re, im, sound = inverse(identity - (h * pair.real) * J, -(h * pair.imag) * J)
                found += [re, im]
                good = good & sound
            lane["ACTIVE"] = where(good, lane["ACTIVE"], 0.0)
            inverses = (entry for matrix in found for entry in matrix.ravel())
            known = [*W.ravel(), *lane.values(), *slope, *last.ravel(), *weights]
            return np.array([*known, where(good, 0.0, 1.0), *inverses, *J.ravel()])

        return self._traced(pieces, rows.size if self.unrolled else rows.singular)

    def iterate(self) -> Any:
        """One iteration of all stages, and what ``implicit.converged`` says of it."""
        rows, most = self.rows, int(self.engine.state.max_newton)

        def pieces(t: Any, x: Any, q: Any) -> Any:
            from ...tracing import where

            W, y, h = self._given(x, q)
            lane = {name: x[rows.lane.start + place] for name, place in PLACES.items()}
            stages = [
                self._slope(t + self.c[i] * h, y + combined(self.A[i], W), q) for i in range(self.s)
            ]
            residual = np.array([h * slope - w for slope, w in zip(stages, W)])
            change = self._increments(x, residual)
            norm = self._norm([combined(row, change) for row in self.A], x[rows.weights])
            tolerance = self._row(q, "NEWTON_TOLERANCE")
            first = lane["COUNT"] == 0.0
            rate = norm / where(first, 1.0, lane["NORM"])
            theta = where(lane["COUNT"] <= 1.0, rate, np.sqrt(rate * lane["RATE"]))
            memory = where(first, lane["MEMORY"], theta / (1.0 - theta))
            left = (most - 1.0) - lane["COUNT"]
            power: Any = 1.0
            for j in range(most - 1):
                power = where(left > j + 0.5, power * theta, power)
            expected = where(first, 0.0, memory * norm * power)
            diverges = ~first & ~(theta < MAX_RATE)
            slow = ~diverges & (expected >= tolerance)
            small = memory * norm <= tolerance
            outweighs: Any = False  # as coupled.outweighs has it
            last = np.abs(combined(self.A[-1], change))
            for size, own, weight in zip(last, np.abs(y), x[rows.weights]):
                outweighs = outweighs | ((size > own) & (size * weight > NOTICED))
            again = (first & (norm > CREDIT)) | (outweighs & (left > 0.5))
            verdict: Any = where(small & ~again, CONVERGED, GOES_ON)
            verdict = where(diverges | slow, HOPELESSLY, verdict)
            verdict = where(norm == 0.0, CONVERGED, verdict)
            verdict = where((verdict == GOES_ON) & (left < 0.5), HOPELESSLY, verdict)
            verdict = where(norm <= HUGE, verdict, HOPELESSLY)
            on = lane["ACTIVE"] != 0.0
            learnt = on & ~first & ~diverges & (norm > 0.0)
            new = {
                "ACTIVE": where(verdict == GOES_ON, lane["ACTIVE"], 0.0),
                "VERDICT": where(on, verdict, lane["VERDICT"]),
                "COUNT": where(on, lane["COUNT"] + 1.0, lane["COUNT"]),
                "NORM": where(on, norm, lane["NORM"]),
                "RATE": where(on, rate, lane["RATE"]),
                "THETA": where(
                    on, where(first | (norm == 0.0), lane["THETA"], theta), lane["THETA"]
                ),
                "MEMORY": where(learnt, memory, lane["MEMORY"]),
                "EXPECTED": where(on, where(slow, expected, 0.0), lane["EXPECTED"]),
                "AGE": lane["AGE"],
            }
            W = where(on, W + change, W)
            return np.array([*np.ravel(W), *(new[name] for name in NAMES)])

        return self._traced(pieces, rows.lane.stop)

    def rounding(self) -> Any:
        """Verdict on iterations that stopped converging: a status, as ``coupled.stagnated``."""

        def pieces(t: Any, x: Any, q: Any) -> Any:
            from ...tracing import where

            W, y, h = self._given(x, q)
            end, at = t + self.c[-1] * h, y + combined(self.A[-1], W)
            slope = self._slope(end, at, q)
            limit: Any = 0.0
            for period in (2, 3):
                moved = self._slope(end, at * (1.0 + _units(self.n, period)), q)
                effect = h * (moved - slope)
                residual = np.array([effect if i % 2 == 0 else -effect for i in range(self.s)])
                change = self._increments(x, residual)
                moves = [combined(row, change) for row in self.A]
                limit = np.maximum(limit, self._norm(moves, x[self.rows.weights]))
            norm = x[self.rows.lane.start + PLACES["NORM"]]
            within = norm <= ROUNDING_SAFETY * limit
            status = where(norm <= 1.0, 0.0, float(STEP_TOO_SMALL))
            return np.array([where(within & (norm <= HUGE), status, float(NEWTON_FAILED))])

        return self._traced(pieces, 1)

    def finish(self) -> Any:
        """Norm of the error estimate, the new state, and the defect inside."""

        def pieces(t: Any, x: Any, q: Any) -> Any:
            W, y, _ = self._given(x, q)
            y_new = y + combined(self.b, W)
            weights = self._weights(q, y_new)
            norm = self._norm([self._estimate(x, q, x[self.rows.f0])], weights)
            norm, defect = self._judged(t, x, q, norm, weights, doubt=False)
            return np.array([norm, *y_new, defect])

        return self._traced(pieces, 2 + self.n)

    def again(self) -> Any:
        """Norm and defect as ``implicit_refine`` has them, where the first look found too much.

        On a first step, or after a rejection, RADAU5 makes a second estimate, which f(t, y + error)
        takes part in.
        """

        def pieces(t: Any, x: Any, q: Any) -> Any:
            from ...tracing import where

            W, y, _ = self._given(x, q)
            weights = self._weights(q, y + combined(self.b, W))
            error = self._estimate(x, q, x[self.rows.f0])
            norm = self._norm([error], weights)
            if self.engine.state.estimate_weight != 0.0:
                due = (self._row(q, "NSTEPS") == 0.0) | (self._row(q, "REJECTED") != 0.0)
                error = self._estimate(x, q, self._slope(t, y + error, q))
                norm = where(due & (norm >= 1.0), self._norm([error], weights), norm)
            return np.array(self._judged(t, x, q, norm, weights, doubt=True))

        return self._traced(pieces, 2)

    # ------------------------------------------------------------ dense output

    def further(self, gamma: float) -> Any:
        """One iteration of a further stage, as ``extra_stages.further_stage``.

        x are W, ACTIVE, COUNT, last norm, what is left of an increment, then the state without γW,
        the inverse, and the state after the step.
        """
        n = self.n

        def pieces(t: Any, x: Any, q: Any) -> Any:
            from ...tracing import where

            W, (active, count, last, left) = x[:n], x[n : n + 4]
            base, y_new = x[n + 4 : 2 * n + 4], x[2 * n + 4 + n * n :]
            R = np.asarray(x[2 * n + 4 : 2 * n + 4 + n * n]).reshape(n, n)
            h, tolerance = q[self.block.h], self._row(q, "NEWTON_TOLERANCE")
            change = R @ (h * self._slope(t, base + gamma * W, q) - W)
            weights = 1.0 / (q[self.block.atol] + q[self.block.rtol] * np.abs(y_new))
            norm = self._norm([gamma * change], weights)
            rate = norm / where(last > 0.0, last, 1.0)
            known = (count > 0.0) & (last > 0.0)
            left = where(known, rate / (1.0 - rate), left)
            at_rounding = known & (rate > SLOW) & (norm <= tolerance)
            lost = known & (rate > HOPELESS) & ~at_rounding
            done = at_rounding | (~lost & (left * norm <= tolerance))
            going: Any = where(done, 0.0, 1.0)
            going = where(lost | ~(norm <= HUGE), -1.0, going)
            on = active > 0.0
            W = where(on, W + change, W)
            return np.array([*W, where(on, going, active), count + 1.0, norm, left])

        return self._traced(pieces, n + 4, 3 * n + 4 + n * n)

    def dense(self, extension: Extension, plain: Extension) -> Any:
        """Polynomial of the step from its rows; a plain one where a further stage failed.

        x are a number for each lane, 0 where further stages were found, then the rows. Behind the
        coefficients stands their sum, as in ``fused_dense_function``.
        """
        n = self.n

        def pieces(t: Any, x: Any, q: Any) -> Any:
            from ...tracing import where

            K = np.asarray(x[1:]).reshape(-1, n)
            full, less = (
                _in_powers(e.weights.T, K[: len(e.weights)], extension.weights.shape[1])
                for e in (extension, plain)
            )
            Q = where(x[0] == 0.0, full, less)
            return np.append(np.ravel(Q), Q.sum())

        size = len(extension.weights)
        return self._traced(pieces, extension.weights.shape[1] * n + 1, 1 + size * n)


def growth_of_defect(h: Any, before: Any, order: int) -> Any:
    """What a step of another length makes of a defect: (h/before)^(order + 1)."""
    from ...tracing import where

    ratio = np.abs(h / where(before == 0.0, 1.0, before))
    growth = ratio
    for _ in range(order):
        growth = growth * ratio
    return growth


def _units(n: int, period: int) -> Array:
    """Units in the last place, every `period`-th one negative: as ``coupled.perturbed_norm``."""
    return np.array([-UNIT if m % period == period - 1 else UNIT for m in range(n)])


def combined(weights: Any, rows: Any) -> Any:
    """Σ weights[j]·rows[j]; zero weights cost nothing."""
    found: Any = 0.0
    for weight, row in zip(weights, rows):
        if weight != 0.0:
            found = found + float(weight) * row
    return found + np.zeros(len(rows[0])) if np.ndim(found) == 0 else found


def _in_powers(weights: Array, rows: Any, degree: int) -> Any:
    """Coefficients of powers of θ, from weights of rows for each of Legendre's polynomials."""
    found = np.array([combined(row, rows) for row in weights])
    basis = in_powers(len(weights))
    powers = np.array([combined(row, found) for row in basis])
    more = np.zeros((degree - len(powers), powers.shape[1]))
    return np.concatenate([powers, more + 0.0 * powers[:1]]) if len(more) else powers
