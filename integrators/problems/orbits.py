"""Celestial mechanics: Kepler's ellipse, Arenstorf's orbits, the seven stars of the Pleiades."""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.problem import IVP
from integrators.problems.registry import register

__all__ = ["arenstorf", "eccentric_anomaly", "kepler", "pleiades"]


def eccentric_anomaly(mean: Any, e: float) -> Any:
    """Solve Kepler's equation E − e sin E = M by Newton's method.

    Parameters
    ----------
    mean
        Mean anomaly M (rad).
    e
        Eccentricity, 0 ≤ e < 1.

    Examples
    --------
    >>> E = eccentric_anomaly(1.0, 0.5)
    >>> abs(float(E - 0.5 * np.sin(E) - 1.0)) < 1e-15
    True
    """
    turns = np.round(mean / (2 * np.pi))
    M = mean - 2 * np.pi * turns
    E = M + e * np.sign(M)  # on the side from which Newton's iteration is monotone
    for _ in range(50):
        step = (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
        E = E - step
        if np.all(np.abs(step) <= 4e-16 * (1 + np.abs(E))):
            break
    return E + 2 * np.pi * turns


@register("two_body")
def kepler(e: float = 0.5, t_end: float = 20.0) -> IVP:
    """Kepler's problem: an ellipse of eccentricity e and half-axis 1, period 2π.

    Notes
    -----
    State (x, y, x', y') from pericentre (1 − e, 0); q'' = −q/|q|³.
    """
    if not 0 <= e < 1:
        raise ValueError(f"e must satisfy 0 ≤ e < 1 for an ellipse, got {e}")
    b = np.sqrt(1 - e * e)

    def f(t: Any, y: Any) -> Any:
        r2 = y[0] * y[0] + y[1] * y[1]
        r3 = r2 * np.sqrt(r2)
        return np.array([y[2], y[3], -y[0] / r3, -y[1] / r3])

    def jac(t: Any, y: Any) -> Any:
        x, z = y[0], y[1]
        r2 = x * x + z * z
        r5 = r2 * r2 * np.sqrt(r2)
        return np.array(
            [
                [0.0, 0.0, 1.0, 0.0],
                [0.0, 0.0, 0.0, 1.0],
                [(3 * x * x - r2) / r5, 3 * x * z / r5, 0.0, 0.0],
                [3 * x * z / r5, (3 * z * z - r2) / r5, 0.0, 0.0],
            ]
        )

    def exact(t: Any) -> Any:
        E = eccentric_anomaly(t, e)
        c, s = np.cos(E), np.sin(E)
        return np.array([c - e, b * s, -s / (1 - e * c), b * c / (1 - e * c)])

    def energy(t: Any, y: Any) -> Any:
        return (y[2] ** 2 + y[3] ** 2) / 2 - 1 / np.sqrt(y[0] ** 2 + y[1] ** 2)

    def momentum(t: Any, y: Any) -> Any:
        return y[0] * y[3] - y[1] * y[2]

    return IVP(
        f,
        [1 - e, 0.0, 0.0, np.sqrt((1 + e) / (1 - e))],
        (0.0, t_end),
        jac=jac,
        exact=exact,
        invariants={"energy": energy, "angular momentum": momentum},
        source="J. Kepler, 1609",
    )


_ARENSTORF = {  # loops: (x'₂ at the start, period)
    4: (-2.00158510637908252240537862224, 17.0652165601579625588917206249),
    3: (-2.0317326295573368357302057924, 11.124340337266085134999734047),
}


@register("restricted_three_body", "arenstorf_4", digits=27, variants={"arenstorf_3": {"loops": 3}})
def arenstorf(loops: int = 4, t_end: float | None = None) -> IVP:
    """Arenstorf's periodic orbit of a satellite around Earth and Moon.

    Notes
    -----
    Planar restricted three-body problem in the rotating frame with μ = 0.012277471; state
    (x, y, x', y'). It returns to its start after one period, the default end. An error grows by
    a factor of 100 to 1000 a period.

    Parameters
    ----------
    loops
        4 or 3 loops a period.
    t_end
        End of the integration.
    """
    if loops not in _ARENSTORF:
        raise ValueError(f"loops must be 3 or 4, got {loops}")
    speed, period = _ARENSTORF[loops]
    m = 0.012277471
    m1 = 1 - m

    def f(t: Any, s: Any) -> Any:
        x, y, u, v = s
        r1 = (x + m) * (x + m) + y * y
        r2 = (x - m1) * (x - m1) + y * y
        a, b = m1 / (r1 * np.sqrt(r1)), m / (r2 * np.sqrt(r2))
        return np.array([u, v, x + 2 * v - a * (x + m) - b * (x - m1), y - 2 * u - a * y - b * y])

    def jac(t: Any, s: Any) -> Any:
        x, y = s[0], s[1]
        r1 = (x + m) * (x + m) + y * y
        r2 = (x - m1) * (x - m1) + y * y
        a, b = m1 / (r1 * np.sqrt(r1)), m / (r2 * np.sqrt(r2))
        a3, b3 = 3 * a / r1, 3 * b / r2
        xx = 1 - a - b + a3 * (x + m) ** 2 + b3 * (x - m1) ** 2
        xy = a3 * (x + m) * y + b3 * (x - m1) * y
        yy = 1 - a - b + (a3 + b3) * y * y
        return np.array(
            [
                [0.0, 0.0, 1.0, 0.0],
                [0.0, 0.0, 0.0, 1.0],
                [xx, xy, 0.0, 2.0],
                [xy, yy, -2.0, 0.0],
            ]
        )

    def jacobi(t: Any, s: Any) -> Any:
        x, y, u, v = s
        potential = (
            (x * x + y * y) / 2
            + m1 / np.sqrt((x + m) ** 2 + y * y)
            + m / np.sqrt((x - m1) ** 2 + y * y)
        )
        return 2 * potential - u * u - v * v

    start = [0.994, 0.0, 0.0, speed]
    return IVP(
        f,
        start,
        (0.0, period if t_end is None else t_end),
        jac=jac,
        invariants={"Jacobi constant": jacobi},
        references={period: start},
        source="R. F. Arenstorf, Amer. J. Math. 85 (1963) 27-35; start and period refined in "
        "113-bit arithmetic",
    )


_FIRST, _SECOND = np.triu_indices(7, 1)  # the 21 pairs of stars
_MASS = np.arange(1.0, 8.0)
_PULL = np.zeros((7, 21))  # acceleration of each star by each pair
_PULL[_FIRST, np.arange(21)] = _MASS[_SECOND]
_PULL[_SECOND, np.arange(21)] = -_MASS[_FIRST]

# Positions x and y, velocities x' and y' at t = 3.
_PLEIADES_END = """
 0.370613914397051290093950917728 3.23728409205723309280333039050
-3.22255903241832334710013146734 0.659709145577530835934995555763
 0.342558170715657979037735981093 1.56217210140063101604570821175
-0.700309292221249538514732670819
-3.94343758551739205527788317158 -3.27138097397254992802067685147
 5.22508184345654419243873813721 -2.59061243497746951081119135705
 1.19821369339227463751400241058 -0.242968234493582340916111633444
 1.09144924042897974788206366269
 3.41700380631431475229189259751 1.35458450162550122147698199398
-2.59006559781077541961863144135 2.02505373471424110648501305990
-1.15581510016044909271194591505 -0.807298817022302172565972072698
 0.595239635420871876660792501487
-3.74124496123400847120474539618 0.377345968575062903655827116093
 0.938685886955107888694681526166 0.366792222720056986669641068628
-0.347404635380849436600716532806 2.34491544818093692314231717888
-1.94702043426329190067426258547
"""


@register(digits=30)
def pleiades(t_end: float = 3.0) -> IVP:
    """Pleiades: seven stars in the plane, with close encounters.

    Notes
    -----
    Masses 1 to 7, xᵢ'' = Σⱼ mⱼ (xⱼ − xᵢ)/rᵢⱼ³ and the same for y; state (x, y, x', y').
    """

    def f(t: Any, s: Any) -> Any:
        x, y = s[0:7], s[7:14]
        dx, dy = x[_SECOND] - x[_FIRST], y[_SECOND] - y[_FIRST]
        r2 = dx * dx + dy * dy
        r3 = r2 * np.sqrt(r2)
        return np.concatenate([s[14:28], _PULL @ (dx / r3), _PULL @ (dy / r3)])

    def jac(t: Any, s: Any) -> Any:
        x, y = s[0:7], s[7:14]
        dx, dy = x[_SECOND] - x[_FIRST], y[_SECOND] - y[_FIRST]
        r2 = dx * dx + dy * dy
        r3 = r2 * np.sqrt(r2)
        xx, xy, yy = (
            np.stack([c] * 7)
            for c in (
                (1 - 3 * dx * dx / r2) / r3,
                -3 * dx * dy / (r2 * r3),
                (1 - 3 * dy * dy / r2) / r3,
            )
        )
        difference = np.sign(_PULL)  # d(x_second − x_first)/dx, up to sign
        block_xx, block_xy, block_yy = (-(_PULL * c) @ difference.T for c in (xx, xy, yy))
        zero, one = np.zeros((14, 14)), np.eye(14)
        return np.block(
            [[zero, one], [np.block([[block_xx, block_xy], [block_xy, block_yy]]), zero]]
        )

    def energy(t: Any, s: Any) -> Any:
        x, y, u, v = s[0:7], s[7:14], s[14:21], s[21:28]
        r = np.sqrt((x[_SECOND] - x[_FIRST]) ** 2 + (y[_SECOND] - y[_FIRST]) ** 2)
        return _MASS @ (u * u + v * v) / 2 - (_MASS[_FIRST] * _MASS[_SECOND]) @ (1 / r)

    def momentum(t: Any, s: Any) -> Any:
        return _MASS @ s[14:21]

    def angular(t: Any, s: Any) -> Any:
        return _MASS @ (s[0:7] * s[21:28] - s[7:14] * s[14:21])

    position = [3, 3, -1, -3, 2, -2, 2, 3, -3, 2, 0, 0, -4, 4]
    velocity = [0, 0, 0, 0, 0, 1.75, -1.5, 0, 0, 0, -1.25, 1, 0, 0]
    return IVP(
        f,
        np.array(position + velocity, dtype=float),
        (0.0, t_end),
        jac=jac,
        invariants={"energy": energy, "momentum": momentum, "angular momentum": angular},
        references={3.0: [float(v) for v in _PLEIADES_END.split()]},
        source="IVP Test Set, release 2.4; reference by a Taylor method of order 40 in 113-bit "
        "arithmetic",
    )
