"""A mechanism as a Functional Mock-up Unit (FMI 3.0), with forces in its joints as inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.fmi import export_fmu as export_problem

from ..checks import ArrayLike
from .ivp import as_ivp

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["export_fmu"]


def export_fmu(
    model: Model,
    path: str | PathLike[str],
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    t_span: Sequence[float] = (0.0, 10.0),
    *,
    inputs: str = "forces",
    outputs: Mapping[str, Any] | None = None,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    compiler: str | None = None,
    **options: Any,
) -> Path:
    """Write a mechanism as an FMU for model exchange and co-simulation.

    Parameters
    ----------
    model, q0, v0, t_span
        As in :func:`~multibody.as_ivp`; the start can be changed in the FMU.
    path
        The file, ``….fmu``.
    inputs
        "forces": the force or couple of every velocity variable is an input, ``tau(arm.angle)``;
        "none": only what the model has itself acts.
    outputs
        Beside positions, velocities and accelerations: name → g(t, y) or g(t, y, p), traceable,
        with y = (q, v) and p the inputs.
    rtol, atol, compiler
        As in :func:`integrators.fmi.export_fmu`.
    **options
        Of :func:`~multibody.as_ivp`, such as ``stabilise="baumgarte"``.

    Raises
    ------
    ValueError
        For models with contacts or sampled elements, whose equations change at instants.

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
    if model.rigid_contacts:
        raise ValueError(
            f"model: {model.name!r} has contacts, whose modes change at instants; an FMU is not "
            "written for them: dataclasses.replace(model, contacts=())"
        )
    names: list[str] = []
    if inputs == "forces":
        names = [f"tau({_inner(name)})" for name in model.v_names]
        options |= {"tau": _given, "params": np.zeros(model.nv)}
    problem = as_ivp(model, q0, v0, t_span, **options)
    return export_problem(
        problem, path, name=model.name, parameters=names, inputs=names, outputs=outputs,
        rtol=rtol, atol=atol, compiler=compiler,
    )  # fmt: skip


def _given(t: Any, q: Any, v: Any, p: Any) -> Any:
    return p


def _inner(name: str) -> str:
    """The variable of a rate: ``arm.angle`` of ``d(arm.angle)``."""
    return name[2:-1] if name.startswith("d(") else name
