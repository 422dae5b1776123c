"""Where the energy of a run comes from and goes to: powers, work, and whether the books balance.

With kinetic energy T and potential V (gravity, springs, stops) the mechanism obeys

    d(T + V)/dt = Σ powers:   actuators τᵀv, dampers −d v², drives, external forces, loops.

A drive is a joint that time moves. It forces the velocity σ on its body; its power is fᵀσ with the
force f that the joint passes on, and λᵀν where it closes a loop. Constraint forces of other loops
do no work: λᵀ(Kv − ν) is what remains of that where loops are not quite closed. Friction at
contacts takes fᵀ(slip) all the time, and impacts take what their law says, at instants; drives work
against the impulses there.

Powers are evaluated at states of the run and integrated; the balance E(t) − E(0) − W(t) then shows
the error of the integration, of the quadrature, and anything that is missing in the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array
from ...dynamics.loops.constraints.joints import LoopElement
from ..contact.loads import exchanged_at_instants, stays_of
from .acted import acted_along
from .books import ENTRIES, PARTS, Account, Books
from .states import is_plain, states_of

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["EnergyLedger", "energy_ledger"]

#: Lobatto's rule with five points on (0, 1), exact for polynomials of degree 7; the ends are shared
#: by neighbouring intervals.
INSIDE = np.array([0.5 - np.sqrt(21.0) / 14.0, 0.5, 0.5 + np.sqrt(21.0) / 14.0])
LOBATTO = np.array([1.0 / 20.0, 49.0 / 180.0, 16.0 / 45.0, 49.0 / 180.0, 1.0 / 20.0])

#: Simpson's rule on three of these points, and how far it may be from Lobatto's, in parts of the
#: range of the power: further apart, the power has a kink or a jump in the interval (a stop that is
#: touched, a motor that is switched), and their distance is what the work may be wrong by.
SIMPSON = np.array([1.0, 0.0, 4.0, 0.0, 1.0]) / 6.0
ROUGH = 1e-3

#: Between states without dense output cubic polynomials are used: errors fall with this power.
ORDER = 4


@dataclass(frozen=True)
class EnergyLedger:
    """Energies, powers and work along a run; arrays have an entry for each time.

    Attributes
    ----------
    t : (m,)
        Times of the solution, in s.
    kinetic : (m,)
        In J.
    potential
        In J, by "gravity", "joint springs" (stops included), "point springs", "loop springs".
    power, work
        In W, and in J since the start, by "actuators" (τ, that of prescribed motions
        included), "loop actuators", "dampers" (of joints, stops and point springs), "loop
        dampers", "drives" (in the tree and in loops), "external", "friction" (of contacts),
        "impacts" (what their law says, summed; no power) and "elements" (what they do to the
        bodies) and "constraints" (of loops; zero where they are closed). Positive: energy comes in.
    drives
        Power of each drive, by the name of its body or loop, in W.
    elements, stored
        Power of each element, by its name, in W, and the energy that it says it stores, in J
        (not a part of `potential`).
    quadrature_error
        Estimated error of the work, in J: from twice as long intervals, by Richardson, and where
        powers have kinks or jumps between two times, from two rules. NaN for fewer than three
        times.
    """

    t: Array
    kinetic: Array
    potential: dict[str, Array]
    power: dict[str, Array]
    work: dict[str, Array]
    drives: dict[str, Array]
    quadrature_error: float
    elements: dict[str, Array] = field(default_factory=dict)
    stored: dict[str, Array] = field(default_factory=dict)

    @property
    def energy(self) -> Array:
        """T + V."""
        return np.asarray(self.kinetic + sum(self.potential.values()))

    @property
    def balance(self) -> Array:
        """E(t) − E(0) − work: zero if nothing is missing and nothing is wrong."""
        energy = self.energy
        return np.asarray(energy - energy[0] - sum(self.work.values()))

    def summary(self) -> str:
        """Entries that are not zero at the end, one in each line.

        Examples
        --------
        >>> from multibody import mechanisms, simulate
        >>> model = mechanisms.pendulum()
        >>> print(energy_ledger(model, simulate(model, [0.0], [1.0], T=1.0)).summary())
        energy at the start       -9.31 J
        energy at the end         -9.31 J
        balance                       0 J
        """
        change = {name: x[-1] for name, x in self.work.items() if np.abs(x).max() > 0.0}
        rows = {"energy at the start": self.energy[0]}
        rows |= {f"work of {name}": value for name, value in change.items()}
        rows |= {"energy at the end": self.energy[-1], "balance": self.balance[-1]}
        size = max(float(np.abs(self.kinetic).max()), *(abs(x) for x in rows.values()))
        return "\n".join(
            f"{name:<22} {0.0 if abs(x) < 1e-6 * size else x:>8.4g} J" for name, x in rows.items()
        )


def energy_ledger(
    model: Model,
    solution: Any,
    tau: Any = None,
    f_ext: Any = None,
    elements: Sequence[LoopElement] = (),
) -> EnergyLedger:
    """Energies, powers and work along a solution, and their balance.

    Parameters
    ----------
    model
        With or without loops.
    solution
        Of :func:`~multibody.as_ivp`, :func:`~multibody.as_dae` or :func:`~multibody.runs.simulate`.
    tau, f_ext
        The joint forces and external forces that acted, as in :func:`~multibody.as_ivp`; without
        them those that the run knows of. With `elements`, `tau` is what acts besides these.
    elements
        Springs, dampers and actuators in loop joints whose law was a part of the joint forces, see
        :func:`~multibody.dynamics.loops.constraints.joints.loop_elements`.

    Returns
    -------
    EnergyLedger

    Notes
    -----
    Work is integrated by Lobatto's rule with five points between neighbouring times. With
    ``dense_output=True`` the states there are those of the method's own interpolant; otherwise
    they are cubic polynomials through states and derivatives, whose error is of the fourth order
    in the distance of the times: ask for closer times if `quadrature_error` is too large. (The work
    of constraints is then integrated by the trapezoidal rule, from the states themselves.) Forces
    that stabilise a loop (Baumgarte) are not in the books; their work is as small as the drift.

    Examples
    --------
    A motor turns a pendulum upwards against gravity, at a constant speed:

    >>> from multibody import Driven, ModelBuilder, Revolute, point_mass, simulate
    >>> b = ModelBuilder(name="crane")
    >>> motor = Driven(Revolute("y"), lambda t: [0.5 * t])
    >>> _ = b.add_body("arm", 0, motor, inertia=point_mass(2.0, (0, 0, -1)))
    >>> _ = b.add_body("fly", "arm", Revolute("y"), inertia=point_mass(0.1, (0.1, 0, 0)))
    >>> crane = b.build()
    >>> ledger = energy_ledger(crane, simulate(crane, T=2.0, dense_output=True))
    >>> bool(np.abs(ledger.balance).max() < 1e-6 < ledger.work["drives"][-1])
    True
    """
    besides, given = tau, model
    model, tau, f_ext = acted_along(model, solution, tau, f_ext)
    tau = besides if elements else tau
    books = Books(model, tau, f_ext, elements)
    if model is not given:  # what its elements do jumps between two stays
        earlier = Books(acted_along(given, solution, before=True)[0], tau, f_ext, elements)
        books.jumps = {stay.start: earlier for stay in solution.modes[1:]}
    if model.rigid_contacts:
        stays = stays_of(model, solution)
        parts = [
            _ledger(Books(model, tau, f_ext, elements, stay.load), stay.t, stay.y, stay.sol)
            for stay in stays
        ]
        return _joined(parts, exchanged_at_instants(model, solution, stays))
    return _ledger(books, *_run(model, solution))


def _ledger(
    books: Books, t: Array, states: Array, dense: Callable[..., Array] | None
) -> EnergyLedger:
    """Books of a run without instants."""
    breaks, at = _breaks(t, dense)
    if dense is not None:
        states = dense(breaks)
    account = [books.account(float(s), x) for s, x in zip(breaks, states.T)]
    work, rough = _work(books, breaks, states, account, dense)
    coarse, _ = _work(books, breaks[::2], states[:, ::2], account[::2], dense)
    error = float("nan")
    if len(breaks) > 2:
        error = float(np.abs(work[::2] - coarse).max()) / (2**ORDER - 1) + rough
    here = [account[k] for k in at]
    return EnergyLedger(
        t=t,
        kinetic=np.array([a.energies["kinetic"] for a in here]),
        potential={
            name: np.array([a.energies[name] for a in here]) for name in (*PARTS, "loop springs")
        },
        power={name: np.array([a.powers[k] for a in here]) for k, name in enumerate(ENTRIES)},
        work={name: work[at, k] for k, name in enumerate(ENTRIES)},
        drives={name: np.array([a.drives[name] for a in here]) for name in books.driven},
        quadrature_error=error,
        elements={name: np.array([a.elements[name][0] for a in here]) for name in books.named},
        stored={name: np.array([a.elements[name][1] for a in here]) for name in books.named},
    )


def _joined(parts: list[EnergyLedger], jumps: list[dict[str, float]]) -> EnergyLedger:
    """Books of stays in modes one after the other; `jumps` has the work at the end of each."""
    work: dict[str, list[Array]] = {name: [] for name in ENTRIES}
    so_far = dict.fromkeys(ENTRIES, 0.0)
    for part, jump in zip(parts, jumps):
        for name in ENTRIES:
            work[name].append(so_far[name] + part.work[name])
            so_far[name] = float(work[name][-1][-1])
        for name, work_at_once in jump.items():
            so_far[name] += work_at_once

    def along(entry: str) -> Array:
        return np.concatenate([getattr(part, entry) for part in parts])

    def each(entry: str) -> dict[str, Array]:
        given = [getattr(part, entry) for part in parts]
        return {name: np.concatenate([part[name] for part in given]) for name in given[0]}

    return EnergyLedger(
        t=along("t"),
        kinetic=along("kinetic"),
        potential=each("potential"),
        power=each("power"),
        work={name: np.concatenate(pieces) for name, pieces in work.items()},
        drives=each("drives"),
        quadrature_error=float(np.nansum([part.quadrature_error for part in parts])),
        elements=each("elements"),
        stored=each("stored"),
    )


# ---------------------------------------------------------------------- states and quadrature


def _run(model: Model, solution: Any) -> tuple[Array, Array, Callable[..., Array] | None]:
    """Times, states [q; v] in columns, and the dense output if there is one of such states."""
    t, states = states_of(model, solution)
    return t, states, getattr(solution, "sol", None) if is_plain(model, solution) else None


def _breaks(t: Array, dense: Any) -> tuple[Array, Array]:
    """Ends of the intervals, and where among them the times of the solution are.

    With dense output the steps are ends, too, because polynomials change there.
    """
    if dense is None or not hasattr(dense, "t") or len(t) < 2:
        return t, np.arange(len(t))
    low, high = min(t[0], t[-1]), max(t[0], t[-1])
    inner = dense.t[(dense.t > low) & (dense.t < high)]
    breaks = np.unique(np.concatenate([t, inner]))
    if t[-1] < t[0]:
        breaks = breaks[::-1]
    place = {float(s): k for k, s in enumerate(breaks)}
    return breaks, np.array([place[float(s)] for s in t])


def _work(
    books: Books, t: Array, x: Array, account: list[Account], dense: Callable[..., Array] | None
) -> tuple[Array, float]:
    """Work of every entry up to each time, in rows, and its error where powers are not smooth."""
    total, rough = np.zeros((len(t), len(ENTRIES))), 0.0
    for k, h in enumerate(np.diff(t)):
        powers, end = [account[k].powers], account[k + 1]
        if (earlier := books.jumps.get(float(t[k + 1]))) is not None:
            end = earlier.account(float(t[k + 1]), x[:, k + 1])
        for theta in INSIDE:
            time = float(t[k] + theta * h)
            if dense is not None:
                state = dense(time)
            else:
                slopes = (account[k].slope, end.slope)
                state = _hermite(theta, h, x[:, k], x[:, k + 1], *slopes)
            powers.append(books.account(time, state).powers)
        along = np.array([*powers, end.powers])
        gain = LOBATTO @ along
        apart = np.abs(gain - SIMPSON @ along)
        if dense is None:  # polynomials between closed states leave the loops a little open
            gain[-1], apart[-1] = 0.5 * (along[0, -1] + along[-1, -1]), 0.0
        rough += abs(h) * float(apart[apart > ROUGH * np.ptp(along, axis=0)].sum())
        total[k + 1] = total[k] + h * gain
    return total, rough


def _hermite(s: float, h: float, x0: Array, x1: Array, d0: Array, d1: Array) -> Array:
    """Cubic polynomial through both states with both slopes."""
    r = 1.0 - s
    ends = r * r * (1.0 + 2.0 * s) * x0 + s * s * (3.0 - 2.0 * s) * x1
    return np.asarray(ends + h * s * r * (r * d0 - s * d1))
