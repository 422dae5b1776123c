"""What a run returns: the solution, how it was found, and how it ended."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import IntegrationError
from ..manifold import kept, lost
from ..notebook_html import solution_table
from ..stepping.state import Status
from . import solution_file
from .exported import WRITERS, as_dataframe, as_xarray, export, known_names, names_of
from .hybrid.modes import ModeInterval, key_of, stays, totals, written, written_key
from .judging import Quality
from .phases import Phase, named, phases_of, written_phases
from .rejoined import rejoined
from .solution_file import COUNTERS, TEXTS

__all__ = ["DenseOutput", "Solution", "Status"]


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
        The same in words, with what the problem's review says, and what drifted out of proportion
        (:attr:`quality`).
    success : bool
        ``status >= 0``.
    error_estimate : str
        How local errors were estimated.
    linear_solver : str
        How the linear systems of an implicit method were solved, and where the Jacobian came from.
    method, problem
        What was solved, and how. A saved or pickled solution keeps only the problem's name, unless
        it is given again (:meth:`load`, :meth:`with_problem`).
    dense_order : int
        Order of the dense output that the method has: values between the steps (``t_eval``,
        ``sol``, events). It is that of the method, up to 9 for explicit methods; for implicit
        ones of order 9 and more one less, up to 12; the stage order for components of index 2
        and 3. SciPy's and Assimulo's solvers have their own.
    exception : BaseException or None
        What a user's function raised, with its traceback.
    reached : tuple
        Time and state at which the run ended, also where ``t_eval`` leaves them out.
    ended_by : int or None
        Number of the event that ended the run.
    zeno : tuple or None
        Where infinitely many events lead (time and state), if that has ended the run.
    modes : list of ModeInterval
        For a :class:`Hybrid` problem or a :class:`Switch`: which mode held from when to when, and
        what it took. :meth:`mode` asks for a time, :attr:`by_mode` sums. States of modes with
        fewer components end in NaN.
    event_names : list of tuple
        For the same: mode (None for all) and name of the events of ``t_events``.
    phases : tuple of Phase
        For ``method="auto"``: which method was used from when to when, and what it took.
    recorded : dict or None
        Named quantities that were read off along the run, if asked for (``multibody.simulate``);
        left out of files.
    parts : list of Solution
        For the same: the run in each interval, as it was; left out of files and pickles.
    """

    t: NDArray[np.float64]
    y: NDArray[Any]

    def __init__(
        self,
        t: NDArray[np.float64],
        y: NDArray[Any],
        *,
        sol: DenseOutput | None = None,
        t_events: list[NDArray[np.float64]] | None = None,
        y_events: list[NDArray[Any]] | None = None,
        status: Status = Status.FINISHED,
        message: str = "",
        h: NDArray[np.float64] | None = None,
        error_estimate: str = "",
        linear_solver: str = "",
        state_names: Sequence[str] = (),
        method: str = "",
        dense_order: int = 0,
        problem: Any = None,
        exception: BaseException | None = None,
        reached: tuple[float, NDArray[Any]] | None = None,
        ended_by: int | None = None,
        zeno: tuple[float, NDArray[Any]] | None = None,
        modes: list[ModeInterval] | None = None,
        event_names: list[tuple[Any, Any]] | None = None,
        parts: list[Solution] | None = None,
        phases: Iterable[Phase] = (),
        nfev: int = 0,
        njev: int = 0,
        nlu: int = 0,
        nnewton: int = 0,
        nsteps: int = 0,
        nrejected: int = 0,
    ) -> None:
        self.t, self.y, self.sol = t, y, sol
        self.t_events, self.y_events = t_events or [], y_events or []
        self.status = Status(status)
        self._message = message
        self._asked: tuple[float | None, Any, Any, Any] | None = None  # of `judge`
        self.nfev, self.njev, self.nlu, self.nnewton = nfev, njev, nlu, nnewton
        self.nsteps, self.nrejected = nsteps, nrejected
        self.h = np.zeros(0) if h is None else h
        self.error_estimate, self.method, self.dense_order = error_estimate, method, dense_order
        self.problem, self.exception = problem, exception
        self.linear_solver = linear_solver
        self.kept_names = tuple(state_names)  # of a solution whose problem is lost
        if reached is None and t.size:
            reached = float(t[-1]), y[:, -1]
        self.reached = reached
        self.ended_by, self.zeno = ended_by, zeno
        self.modes, self.event_names, self.parts = modes or [], event_names or [], parts or []
        self.phases = tuple(phases)
        self.recorded: Any = None

    #: dy/d(name) in the shape of y, of runs with ``sensitivities``; at the end of the run; and
    #: derivatives of the times of events, for each event.
    sensitivities: dict[str, NDArray[np.float64]] | None = None
    final_sensitivities: dict[str, NDArray[np.float64]] | None = None
    event_sensitivities: list[dict[str, NDArray[np.float64]]] | None = None

    @property
    def success(self) -> bool:
        """Whether the run reached its end, or an event that ends it."""
        return self.status >= 0

    def remark(self, text: str) -> None:
        """Add a remark to the message."""
        self._message = f"{self._message}; {text}" if self._message else text

    @property
    def message(self) -> str:
        """How the run ended, in words."""
        if self._asked is None or not self.success:  # a failure says enough
            return self._message
        try:
            doubts = self.quality.doubts
        except Exception as error:  # of an invariant of the user's: the run itself is there
            doubts = (f"its quality is not known, since looking at it raised {error!r}",)
        return "; but ".join([self._message, *doubts])

    @message.setter
    def message(self, text: str) -> None:
        self._message = text

    @property
    def ending(self) -> str:
        """The message without what was found by looking at the run's quality."""
        return self._message

    def judge(
        self, rtol: float | None, error: Any = None, again: Any = None, atol: Any = 0.0
    ) -> None:
        """Say what was asked for, so that the run can be judged, and how to repeat it."""
        self._asked = rtol, error, again, atol
        self.__dict__.pop("quality", None)

    @functools.cached_property
    def quality(self) -> Quality:
        """What the run is worth: drift of what should be kept, growth of errors.

        Computed when it, or the message, is first asked for.
        """
        if self._asked is None:
            raise ValueError(
                f"the quality of {self!r} is not known: expected a solution that solve returned, "
                "not one that was loaded from a file; its message tells what was found then"
            )
        return Quality(self, *self._asked)

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
                "or of integrators.dae; one from a file needs its problem, Solution.load(path, "
                "problem=...), and other problems need IVP(observe=...)"
            )
        return observe(self)

    def mode(self, t: ArrayLike) -> Any:
        """Mode at a time, or an array of them for several; at a transition the one after it."""
        if not self.modes:
            raise ValueError(f"{self!r} has no modes: expected the solution of a Hybrid problem")
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        starts = np.array([stay.start for stay in self.modes])
        if not np.all((times >= starts[0]) & (times <= self.modes[-1].end)):
            raise ValueError(
                f"t must lie in the integrated interval [{starts[0]:.9g}, "
                f"{self.modes[-1].end:.9g}], got {t!r}"
            )
        found = np.empty(len(times), dtype=object)
        for i, k in enumerate(np.searchsorted(starts, times, side="right") - 1):
            found[i] = self.modes[k].mode
        return found[0] if np.ndim(t) == 0 else found

    @property
    def by_mode(self) -> dict[Any, dict[str, float]]:
        """Visits, time and counters of each mode, in the order in which they were entered."""
        return totals(self.modes)

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
            f"<Solution of {name} by {named(self.method, self.phases)}: "
            f"{self.status.name} at {end}, "
            f"{self.nsteps} steps ({self.nrejected} rejected), {self.nfev} evaluations"
            + (f", {len(self.modes)} stays in {len(self.by_mode)} modes>" if self.modes else ">")
        )

    def _repr_html_(self) -> str:
        return solution_table(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what often cannot be pickled: the problem's functions and tracebacks."""
        name = getattr(self.problem, "name", self.problem)
        said = {"_message": self.message, "_asked": None, "problem": name, "exception": None}
        said["parts"], said["kept_names"] = [], known_names(self)
        state = {**self.__dict__, **said}
        for made in ("observed", "quality"):  # they hold on to the problem
            state.pop(made, None)
        return state

    # ------------------------------------------------------------ other containers

    def names(self) -> list[str]:
        """Names of the components: the problem's ``state_names``, else y0, y1, …"""
        return names_of(self)

    def plot(self, components: Any = None, ax: Any = None, *, steps: bool = False) -> Any:
        """Draw components over time; returns matplotlib's axes.

        Parameters
        ----------
        components
            Numbers or names of those to draw; the first ten by default.
        ax
            Axes to draw into; by default those of a new figure.
        steps
            Mark the steps, and draw their lengths.

        Examples
        --------
        >>> from integrators import solve
        >>> solve(lambda t, y: -y, (0, 1), [1.0]).plot().get_xlabel()
        't'
        """
        # Figures belong to the analysis, a layer above this one, and need matplotlib.
        from importlib import import_module

        pictures = import_module("integrators.analysis.plot.solution")
        return pictures.solution(self, components, ax, steps=steps)

    def to_dataframe(self) -> Any:
        """Return a pandas DataFrame indexed by t, a column for each state; attrs has units."""
        return as_dataframe(self)

    def to_xarray(self) -> Any:
        """Return an xarray DataArray with dimensions component and t, and units beside names."""
        return as_xarray(self)

    def export(self, path: str | Path) -> Path:
        """Write times and states as a table, with names and units: .parquet, .nc or .csv.

        Parquet needs pandas and pyarrow, NetCDF xarray (all in the extra ``study``).
        """
        return export(self, path)

    def save(self, path: str | Path) -> Path:
        """Write everything but the problem's functions to one ``.npz`` file, bit for bit."""
        if os.path.basename(path) in ("", ".", ".."):
            raise ValueError(f"{path} names a folder; expected the name of a file, such as run.npz")
        path = Path(path)
        if path.suffix.lower() in WRITERS:
            raise ValueError(f"{path} names no .npz file; export({path.name!r}) writes such tables")
        if path.suffix != ".npz":
            path = path.with_name(path.name + ".npz")
        arrays: dict[str, Any] = {"t": self.t, "y": self.y, "h": self.h}
        for k, (t, y) in enumerate(zip(self.t_events, self.y_events)):
            arrays[f"t_events_{k}"], arrays[f"y_events_{k}"] = t, y
        if self.sol is not None:
            if not isinstance(self.sol, DenseOutput):
                raise ValueError(
                    f"{self.sol!r} is made of pieces on manifolds, which no file holds; solve "
                    "without dense_output, with t_eval at the times of interest"
                )
            for name in ("t", "h", "y", "Q"):
                arrays[f"sol_{name}"] = getattr(self.sol, name)
            arrays["sol_end"] = np.array(self.sol.end)
        for single in ("reached", "zeno"):
            if (point := getattr(self, single)) is not None:
                arrays[f"{single}_t"], arrays[f"{single}_y"] = map(np.asarray, point)
        if self.y.dtype == object:
            raise ValueError(
                "states with many digits are Python objects, which no file holds; pickle the "
                "solution, or write solution.y.astype(str)"
            )
        header: dict[str, Any] = {"status": int(self.status)}
        header |= {name: getattr(self, name) for name in (*COUNTERS, *TEXTS)}
        header["problem"] = str(getattr(self.problem, "name", self.problem or ""))
        header["dense_order"] = self.dense_order
        header["events"] = len(self.t_events)
        if self.sol is not None and self.sol.move is not operator.add:
            header["manifold"] = True
        if self.ended_by is not None:
            header["ended_by"] = self.ended_by
        if self.modes:
            header["modes"], arrays["modes_t"] = written(self.modes)
            header["event_names"] = [list(map(written_key, name)) for name in self.event_names]
        if self.linear_solver:
            header["linear_solver"] = self.linear_solver
        if names := known_names(self):
            header["state_names"] = list(names)
        if self.phases:
            header["phases"] = written_phases(self.phases)
        solution_file.write(path, arrays, header)
        return path

    @classmethod
    def load(
        cls, path: str | Path, *, problem: Any = None, largest: int = solution_file.LARGEST
    ) -> Solution:
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        path
            The file. It is not trusted: nothing in it is executed, sizes are looked at before
            anything is expanded, and times, shapes and counters must be those of a solution.
        problem
            What was solved, made again; without it ``problem`` is just its name, and what only the
            problem knows (:attr:`observed`, forces, positions in other variables) is refused.
        largest
            Bytes that it may expand to.

        Raises
        ------
        FileError
            With the file's name and what is wrong with it.
        """
        arrays, header = solution_file.read(path, largest)
        events = range(header.pop("events"))
        del header["format"]
        sol = None
        move = lost if header.pop("manifold") else operator.add
        if "sol_t" in arrays:
            t, h, y, Q = (arrays[f"sol_{name}"] for name in ("t", "h", "y", "Q"))
            end = float(arrays["sol_end"])
            sol = DenseOutput(t, h, y, Q, header["dense_order"], end=end, move=move)
        for single in ("reached", "zeno"):
            if f"{single}_t" in arrays:
                header[single] = float(arrays[f"{single}_t"]), arrays[f"{single}_y"]
        try:
            if rows := header.pop("modes"):
                header["modes"] = stays(rows, arrays["modes_t"], len(arrays["y"]))
            header["phases"] = phases_of(header["phases"])
            names = header.pop("event_names")
            header["event_names"] = [tuple(map(key_of, name)) for name in names]
        except (ValueError, RecursionError) as error:
            raise solution_file.refusal(path, str(error)) from None
        found = cls(
            arrays["t"],
            arrays["y"],
            h=arrays["h"],
            sol=sol,
            t_events=[arrays[f"t_events_{k}"] for k in events],
            y_events=[arrays[f"y_events_{k}"] for k in events],
            **header,
        )
        return found if problem is None else found.with_problem(problem)

    def with_problem(self, problem: Any) -> Solution:
        """Return a solution from a pickle with its problem, as :meth:`load` does of a file."""
        joined: Solution = rejoined(self, problem)
        return joined
