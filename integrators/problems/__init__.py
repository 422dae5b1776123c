"""Reference problems with exact or many-digit solutions.

Each problem is a function of keyword parameters that returns an
:class:`~integrators.problem.IVP`; :func:`get` finds it by name. Right-hand sides are pure
functions of (t, y) or (t, y, p) without branches on the state, so that they can be traced.

To add a problem, write one function in the file of its family and decorate it with
:func:`~integrators.problems.registry.register`; the tests and the command line then know it.

Examples
--------
>>> from integrators import problems
>>> vdp = problems.get("vdp", mu=1000)
>>> vdp.t_span
(0.0, 2000.0)
>>> print(vdp.reference(2000.0))
[ 1.70616773e+00 -8.92809701e-04]
"""

from integrators.problems.andrews import andrews
from integrators.problems.chaos import double_pendulum, lorenz
from integrators.problems.chemistry import (
    brusselator,
    hires,
    oregonator,
    robertson,
    robertson_dae,
)
from integrators.problems.constrained import jay, pendulum_dae, slider_crank
from integrators.problems.lines import brusselator_1d
from integrators.problems.nonsmooth import friction_oscillator, impact_oscillator
from integrators.problems.orbits import arenstorf, kepler, pleiades
from integrators.problems.oscillators import (
    harmonic_oscillator,
    lotka_volterra,
    pendulum,
    van_der_pol,
    van_der_pol_scaled,
)
from integrators.problems.registry import Entry, entries, entry, get, names, register
from integrators.problems.rigid import bouncing_ball, rigid_body
from integrators.problems.scalar import (
    blow_up,
    curtiss_hirschfelder,
    dahlquist,
    decay,
    linear_growth,
    logistic,
    minus_2ty2,
    prothero_robinson,
    square_root,
)
from integrators.problems.smooth import (
    order_exponential,
    order_mechanical,
    order_rational,
    order_separable,
    order_trigonometric,
)

__all__ = [
    "Entry",
    "andrews",
    "arenstorf",
    "blow_up",
    "bouncing_ball",
    "brusselator",
    "brusselator_1d",
    "curtiss_hirschfelder",
    "dahlquist",
    "decay",
    "double_pendulum",
    "entries",
    "entry",
    "friction_oscillator",
    "get",
    "harmonic_oscillator",
    "hires",
    "impact_oscillator",
    "jay",
    "kepler",
    "linear_growth",
    "logistic",
    "lorenz",
    "lotka_volterra",
    "minus_2ty2",
    "names",
    "order_exponential",
    "order_mechanical",
    "order_rational",
    "order_separable",
    "order_trigonometric",
    "oregonator",
    "pendulum",
    "pendulum_dae",
    "pleiades",
    "prothero_robinson",
    "register",
    "rigid_body",
    "robertson",
    "robertson_dae",
    "slider_crank",
    "square_root",
    "van_der_pol",
    "van_der_pol_scaled",
]
