"""What a run returns: the solution, how it was found, and how it ended."""

from __future__ import annotations

import functools
import json
import operator
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import IntegrationError
from .manifold import kept, lost
from .methods.state import Status
from .notebook_html import solution_table

__all__ = ["DenseOutput", "Solution", "Status"]

FILE_FORMAT = 1


class DenseOutput:
    """The solution as a function of time, a polynomial on each step.

    On step k, y(t) = y_k + Σⱼ Q[k, j] θʲ⁺¹ with θ = (t − t_k)/h_k. At a jump the value after it
    is returned. Outside the integrated interval the first or last polynomial is continued, which
    is rarely what you want: values there are refused.

    Parameters
    ----------
    t, h
        Start and signed length of each step.
    y
        State at the start of each step, shape (steps, n).
    Q
        Coefficients, shape (steps, degree, n).
    order
        Order of the interpolant.
    end
        Where the solution ends, if that is before the end of the last step (an event).
    move
        ``move(y, z)`` takes the place of the sum y + z for a solution on a manifold, where the
        polynomials are those of the tangent vector z.
    """

    def __init__(
        self,
        t: NDArray[np.float64],
        h: NDArray[np.float64],
        y: NDArray[Any],
        Q: NDArray[Any],
        order: int,
        end: float | None = None,
        move: Callable[..., NDArray[Any]] = operator.add,
    ) -> None:
        self.t, self.h, self.y, self.Q, self.order = t, h, y, Q, order
        self.move = move
        self.end = float(t[-1] + h[-1]) if end is None else end
        self.t_min = min(float(t[0]), self.end)
        self.t_max = max(float(t[0]), self.end)

    def __call__(self, t: ArrayLike) -> NDArray[Any]:
        """Return y(t), shape (n,) for a scalar t and (n, m) for m times, as SciPy does."""
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        slack = 1e-12 * max(abs(self.t_min), abs(self.t_max), 1e-300)
        outside = (times < self.t_min - slack) | (times > self.t_max + slack)
        if np.any(outside):
            raise ValueError(
                f"t = {times[outside][0]:.9g} is outside the integrated interval "
                f"[{self.t_min:.9g}, {self.t_max:.9g}]"
            )
        values = self._evaluate(times)
        return values[0] if np.ndim(t) == 0 else values.T

    def _evaluate(self, times: NDArray[np.float64]) -> NDArray[Any]:
        direction = 1.0 if self.h[-1] >= 0 else -1.0
        step = np.searchsorted(direction * self.t, direction * times, side="right") - 1
        step = np.clip(step, 0, len(self.t) - 1)
        return polynomials(self.t, self.h, self.y, self.Q, step, times, self.move)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the functions of a manifold, which often cannot be pickled."""
        return {**self.__dict__, "move": kept(self.move)}

    def __repr__(self) -> str:
        return (
            f"<DenseOutput: {len(self.t)} steps on [{self.t_min:g}, {self.t_max:g}], "
            f"order {self.order}>"
        )


def polynomials(
    t: NDArray[np.float64],
    h: NDArray[np.float64],
    y: NDArray[Any],
    Q: NDArray[Any],
    step: NDArray[np.int64],
    times: NDArray[np.float64],
    move: Callable[..., NDArray[Any]] = operator.add,
) -> NDArray[Any]:
    """Evaluate the polynomials of the given steps at the given times, shape (m, n)."""
    theta = ((times - t[step]) / h[step])[:, None]
    value = np.zeros((len(times), Q.shape[2]), dtype=Q.dtype)
    for j in range(Q.shape[1] - 1, -1, -1):
        value = (value + Q[step, j]) * theta
    return move(y[step], value)


class Solution:
    """The result of ``solve``, with SciPy's field names and a few more.

    Attributes
    ----------
    t : ndarray, shape (m,)
        Times: every accepted step, or ``t_eval``.
    y : ndarray, shape (n, m)
        States at these times.
    sol : DenseOutput or None
        The solution as a function of time, if ``dense_output=True``.
    t_events, y_events : list of ndarray
        Times and states of each event's occurrences.
    nfev, njev, nlu, nnewton : int
        Evaluations of f (those for finite differences included) and of the Jacobian, LU
        decompositions, Newton iterations.
    nsteps, nrejected : int
        Accepted and rejected steps.
    h : ndarray
        Lengths of the accepted steps (signed).
    status : Status
        How the run ended; negative means failure.
    message : str
        The same in words.
    success : bool
        ``status >= 0``.
    error_estimate : str
        How local errors were estimated.
    method, problem
        What was solved, and how. A saved or pickled solution keeps only the problem's name.
    dense_order : int
        Order of the dense output that the method has; values between the steps (``t_eval``,
        ``sol``, events) are no more accurate than that, even where the steps are.
    exception : BaseException or None
        What a user's function raised, with its traceback.
    """

    t: NDArray[np.float64]
    y: NDArray[Any]

    def __init__(self, t: NDArray[np.float64], y: NDArray[Any], **fields: Any) -> None:
        self.t = t
        self.y = y
        self.sol: DenseOutput | None = fields.pop("sol", None)
        self.t_events: list[NDArray[np.float64]] = fields.pop("t_events", [])
        self.y_events: list[NDArray[Any]] = fields.pop("y_events", [])
        self.status = Status(fields.pop("status", 0))
        self.message: str = fields.pop("message", "")
        for name in _COUNTERS:
            setattr(self, name, int(fields.pop(name, 0)))
        self.h: NDArray[np.float64] = fields.pop("h", np.zeros(0))
        self.error_estimate: str = fields.pop("error_estimate", "")
        self.method: str = fields.pop("method", "")
        self.dense_order: int = int(fields.pop("dense_order", 0))
        self.problem: Any = fields.pop("problem", None)
        self.exception: BaseException | None = fields.pop("exception", None)
        if fields:
            raise TypeError(f"unknown field {sorted(fields)[0]!r}")

    nfev: int
    njev: int
    nlu: int
    nnewton: int
    nsteps: int
    nrejected: int

    @property
    def success(self) -> bool:
        """Whether the run reached its end, or an event that ends it."""
        return self.status >= 0

    @functools.cached_property
    def observed(self) -> Any:
        """What the problem has to show along the run, computed when first asked for.

        For mechanisms (``multibody``, :mod:`integrators.dae`) an
        :class:`~integrators.dae.Observables`: drift of the constraints, multipliers, rank and
        invariants at every time of the solution.
        """
        observe = getattr(self.problem, "observe", None)
        if observe is None:
            raise ValueError(
                f"there is nothing to observe along {self!r}: expected a solution of a mechanism "
                "or of integrators.dae that was not loaded from a file; for other problems give "
                "IVP(observe=...)"
            )
        return observe(self)

    def raise_for_status(self) -> Solution:
        """Raise :class:`IntegrationError` if the run failed, else return the solution itself."""
        if self.success:
            return self
        t = float(self.t[-1]) if self.t.size else float("nan")
        h = float(self.h[-1]) if self.h.size else float("nan")
        y = self.y[:, -1] if self.t.size else None
        raise IntegrationError(self.message, t=t, h=h, y=y, solution=self) from self.exception

    def __repr__(self) -> str:
        name = getattr(self.problem, "name", "") or "problem"
        end = f"t = {self.t[-1]:.6g}" if self.t.size else "nothing"
        return (
            f"<Solution of {name} by {self.method}: {self.status.name} at {end}, "
            f"{self.nsteps} steps ({self.nrejected} rejected), {self.nfev} evaluations>"
        )

    def _repr_html_(self) -> str:
        return solution_table(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what often cannot be pickled: the problem's functions and tracebacks."""
        name = getattr(self.problem, "name", self.problem)
        return {**self.__dict__, "problem": name, "exception": None}

    # ------------------------------------------------------------ other containers

    def names(self) -> list[str]:
        """Names of the components, y0, y1, …"""
        return [f"y{i}" for i in range(self.y.shape[0])]

    def to_dataframe(self) -> Any:
        """Return a pandas DataFrame indexed by t, a column for each component."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_dataframe needs pandas: pip install pandas") from None
        return pd.DataFrame(self.y.T, index=pd.Index(self.t, name="t"), columns=self.names())

    def to_xarray(self) -> Any:
        """Return an xarray DataArray with dimensions component and t."""
        try:
            import xarray as xr
        except ImportError:
            raise ImportError("to_xarray needs xarray: pip install xarray") from None
        attributes = {"method": self.method, "status": self.status.name, "message": self.message}
        return xr.DataArray(
            self.y,
            dims=("component", "t"),
            coords={"component": self.names(), "t": self.t},
            name=getattr(self.problem, "name", "") or "y",
            attrs=attributes,
        )

    def save(self, path: str | Path) -> Path:
        """Write everything but the problem's functions to one ``.npz`` file, bit for bit."""
        path = Path(path)
        if path.suffix != ".npz":
            path = path.with_name(path.name + ".npz")
        arrays: dict[str, Any] = {"t": self.t, "y": self.y, "h": self.h}
        for k, (t, y) in enumerate(zip(self.t_events, self.y_events)):
            arrays[f"t_events_{k}"], arrays[f"y_events_{k}"] = t, y
        if self.sol is not None:
            for name in ("t", "h", "y", "Q"):
                arrays[f"sol_{name}"] = getattr(self.sol, name)
            arrays["sol_end"] = np.array(self.sol.end)
        header: dict[str, Any] = {"format": FILE_FORMAT, "status": int(self.status)}
        header |= {name: getattr(self, name) for name in (*_COUNTERS, *_TEXTS)}
        header["problem"] = getattr(self.problem, "name", self.problem or "")
        header["dense_order"] = self.dense_order
        header["events"] = len(self.t_events)
        if self.sol is not None and self.sol.move is not operator.add:
            header["manifold"] = True
        arrays["header"] = np.array(json.dumps(header))
        np.savez_compressed(path, **arrays)
        return path

    @classmethod
    def load(cls, path: str | Path) -> Solution:
        """Read what :meth:`save` wrote; ``problem`` is then just its name."""
        arrays, header = _read(path)
        if header.pop("format") != FILE_FORMAT:
            raise ValueError(f"{path} was written by a newer version; update featherstep")
        events = range(header.pop("events"))
        sol = None
        move = lost if header.pop("manifold", False) else operator.add
        if "sol_t" in arrays:
            t, h, y, Q = (arrays[f"sol_{name}"] for name in ("t", "h", "y", "Q"))
            end = float(arrays["sol_end"])
            sol = DenseOutput(t, h, y, Q, header["dense_order"], end=end, move=move)
        return cls(
            arrays["t"],
            arrays["y"],
            h=arrays["h"],
            sol=sol,
            t_events=[arrays[f"t_events_{k}"] for k in events],
            y_events=[arrays[f"y_events_{k}"] for k in events],
            **header,
        )


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays and header of a file that :meth:`Solution.save` wrote; refuse any other file."""
    received = "another kind of file"
    # NumPy would take a file that is no archive for a pickle and advise to trust it.
    with open(path, "rb") as stream:
        if zipfile.is_zipfile(stream):
            stream.seek(0)
            try:
                with np.load(stream, allow_pickle=False) as file:
                    arrays = dict(file)
                header = json.loads(str(arrays["header"]))
                if isinstance(header, dict) and "format" in header:
                    return arrays, header
                received = "an archive of other data"
            except (KeyError, ValueError):
                received = "an archive of other data"
            except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
                received = f"a damaged archive ({error})"
    raise ValueError(
        f"{path} is not a saved Solution: expected a .npz file that Solution.save wrote, "
        f"received {received}"
    )


_COUNTERS: Sequence[str] = ("nfev", "njev", "nlu", "nnewton", "nsteps", "nrejected")
_TEXTS: Sequence[str] = ("message", "error_estimate", "method")
