"""A mechanism as a Functional Mock-up Unit (FMI 3.0), with forces in its joints as inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators import IVP
from integrators.fmi import export_fmu as export_problem

from ..checks import ArrayLike
from ..model import Model
from .ivp import as_ivp

if TYPE_CHECKING:
    from .families.family import ModelFamily

__all__ = ["export_fmu"]


def export_fmu(
    model: Model | ModelFamily,
    path: str | PathLike[str],
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    t_span: Sequence[float] = (0.0, 10.0),
    *,
    inputs: str = "forces",
    outputs: Mapping[str, Any] | None = None,
    events: Any = (),
    rtol: float = 1e-6,
    atol: float = 1e-9,
    compiler: str | None = None,
    **options: Any,
) -> Path:
    """Write a mechanism as an FMU for model exchange and co-simulation.

    Parameters
    ----------
    model
        A mechanism, or a family of them, whose parameters can then be set in the FMU.
    q0, v0, t_span
        As in :func:`~multibody.as_ivp`; the start can be changed in the FMU. Loops are closed again
        before it runs, from near where they are closed.
    path
        The file, ``….fmu``.
    inputs
        "forces": the force or couple of every velocity variable is an input, ``tau(arm.angle)``;
        "none": only what the model has itself acts.
    outputs
        Beside positions, velocities and accelerations: name → g(t, y) or g(t, y, p), traceable,
        with y = (q, v) and p the inputs.
    events
        As for :func:`integrators.solve`, with functions and resets that can be traced. Loops are
        closed again after a reset.
    rtol, atol, compiler
        As in :func:`integrators.fmi.export_fmu`.
    **options
        Of :func:`~multibody.as_ivp`, such as ``stabilise="baumgarte"``.

    Raises
    ------
    ValueError
        For models with rigid contacts or sampled elements, whose equations change at instants.

    Examples
    --------
    >>> import tempfile
    >>> from multibody import mechanisms
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_fmu(mechanisms.pendulum(), Path(folder) / "pendulum.fmu", [1.0]).name
    'pendulum.fmu'
    """
    if inputs not in ("forces", "none"):
        raise ValueError(f"inputs: expected 'forces' or 'none', received {inputs!r}")
    family = None if isinstance(model, Model) else model
    first = model if isinstance(model, Model) else model.base
    if first.rigid_contacts:
        raise ValueError(
            f"model: {first.name!r} has rigid contacts, whose modes change at instants; an FMU is "
            "written for contacts with a law of their surfaces (law=…), or without them: "
            "dataclasses.replace(model, contacts=())"
        )
    names = [f"tau({_inner(name)})" for name in first.v_names] if inputs == "forces" else []
    zeros = np.zeros(first.nv)
    acting: dict[str, Any] = {"tau": _given, "params": zeros} if names else {}
    if family is not None:
        make = partial(family.problem, tau=zeros if names else None)
    else:
        make = partial(as_ivp, first, **acting)
    problem = _problem(make, first, (q0, v0, t_span), options).with_(events=events)
    return export_problem(
        problem, path, name=first.name, parameters=names, inputs=names, outputs=outputs,
        rtol=rtol, atol=atol, compiler=compiler,
    )  # fmt: skip


def _problem(make: Any, model: Model, start: tuple[Any, ...], options: dict[str, Any]) -> IVP:
    """The problem, with loops that are closed after each step where that can be traced."""
    if model.bonds and "stabilise" not in options:
        projected = make(*start, **options, stabilise="projection")
        if getattr(projected.project, "codes", None):
            return projected
    return make(*start, **options)


def _given(t: Any, q: Any, v: Any, p: Any) -> Any:
    return p


def _inner(name: str) -> str:
    """The variable of a rate: ``arm.angle`` of ``d(arm.angle)``."""
    return name[2:-1] if name.startswith("d(") else name
