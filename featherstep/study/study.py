"""``Study``: many runs of one thing, varied, kept on disk, and looked at."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multibody.runs.observing.quantities import state_units

from .keeping.part import OK
from .keeping.store import FORMAT, Store, hash_of, versions
from .keeping.trajectories import dataset
from .plan import Plan, split_options
from .recording.reductions import reductions_of
from .rerun import Rerun
from .sampling.design import Design, design_of
from .span import is_problem, output_times, span_of
from .starts import start_of
from .subjects import subject_of
from .working.executors import executor_of
from .working.running import Progress, StudyInterrupted, do_runs, in_flight, offer, retry_runs, work
from .working.sources import Source, source_of

__all__ = ["Study"]

Array = NDArray[np.float64]
log = logging.getLogger(__name__)

MISSING = "missing"  # status of a run that is not done yet
CHUNK_BYTES = 16_000_000  # most of one file of trajectories
MOST_IN_CHUNK = 64  # runs
RESERVED = ("run", "status", "message", "nsteps", "t_end", "time", "state")


class Study:
    """Many runs of one mechanism or problem, with varied parameters.

    Parameters
    ----------
    what
        A mechanism's or a problem's name; a model file, whose numbers are parameters by the names
        of their keys (``bodies.crank.inertia.mass``); a function of keyword parameters that
        returns a Model or an IVP; a Model; or an IVP, whose params have the names `parameters`.
    vary
        Laws by the names of parameters, such as ``{"crank": Normal(1, 0.05)}``; or columns of
        numbers by name, or a DataFrame, with a row for each run.
    n
        How many runs, where laws are given.
    seed
        Of everything that is random.
    sampling
        How laws are sampled: "random", "sobol" (for n a power of 2), "latin_hypercube", "saltelli"
        (for Sobol's indices; n a multiple of the number of parameters + 2); or "grid" for all
        combinations of columns of numbers.
    start
        Where runs start: :class:`Assembled`; a state, or values of some states by name; (q0, v0);
        a function ``start(model, **parameters)`` that returns q and v. Numbers may be names of
        varied parameters. By default as the mechanism or problem says.
    t_span, method
        As in :func:`integrators.solve`.
    record
        What goes into the table: by name :class:`Final`, :class:`Max`, :class:`Min`,
        :class:`Mean`, :class:`Integral`, :class:`At` or :class:`EventTime` of a state, an
        :func:`energy`, a :func:`loop_force`, a function of (t, y), …
    outputs
        How many states of each run are kept, evenly from start to end; or the times.
    fixed
        Parameters of the mechanism that are the same in all runs.
    parameters
        Names of the params of an IVP.
    options
        Any other of ``solve`` (rtol, atol, step, max_steps, …) and, for mechanisms, of
        :func:`multibody.as_ivp` (tau, f_ext, stabilise, …) or :func:`multibody.as_dae`
        (formulation).

    Examples
    --------
    >>> import tempfile
    >>> from integrators import IVP
    >>> from featherstep import Final, Study, Uniform
    >>> decay = IVP(lambda t, y, p: -p[0] * y, [1.0], (0.0, 1.0), params=[1.0])
    >>> study = Study(decay, parameters=["rate"], vary={"rate": Uniform(1, 2)}, n=8, seed=1,
    ...               record={"end": Final(0)}, rtol=1e-10, atol=1e-12)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     columns = study.run(f"{folder}/decay.study", workers=1).columns()
    >>> bool(np.allclose(columns["end"], np.exp(-columns["rate"])))
    True
    """

    def __init__(
        self,
        what: Any,
        vary: Any,
        *,
        n: int | None = None,
        seed: int = 0,
        sampling: str | None = None,
        start: Any = None,
        t_span: Any = None,
        method: Any = "DOP853",
        record: Mapping[str, Any] | None = None,
        outputs: Any = 0,
        fixed: Mapping[str, Any] | None = None,
        parameters: Any = (),
        **options: Any,
    ) -> None:
        subject = subject_of(what, tuple(parameters))
        design = design_of(vary, n, seed, sampling)
        solving, making = split_options(options, not is_problem(subject))
        recorded = reductions_of(record or {})
        for name in (*recorded, *design.names):
            if name in RESERVED or (name in recorded and name in design.names):
                raise ValueError(f"{name!r} is the name of another column; choose another one")
        span = span_of(subject, t_span, fixed or {})
        plan = Plan(
            subject, design, start_of(start), span, method, dict(fixed or {}), solving,
            making, recorded, output_times(outputs, span),
        )  # fmt: skip
        self._prepare(plan)

    def _prepare(self, plan: Plan) -> None:
        self.plan = plan
        self._seen = plan.check()
        self._store: Store | None = None
        self._plain = plan.plain()
        self.hash = hash_of(self._plain)

    @classmethod
    def from_file(cls, path: str | Path, *, allow_code: bool = False) -> Study:
        """Read a study from a TOML file (``docs/studies.md``); nothing in it is run.

        Parameters
        ----------
        path
            The file.
        allow_code
            Whether a model ``module:function`` that it names may be imported.
        """
        from .study_file import read_study

        given = read_study(path, allow_code=allow_code)
        return cls(given.pop("model"), given.pop("vary"), **given)

    @classmethod
    def open(cls, path: str | Path, what: Any = None, *, allow_code: bool = False) -> Study:
        """Open a study that was kept, to look at it or to go on with it.

        Parameters
        ----------
        path
            Its folder.
        what
            The function or the IVP of a study that was made from one: needed only to run it, or
            to run one of its runs again.
        allow_code
            Whether that function may be imported by its name instead.
        """
        from .study_file import plan_from

        store = Store.open(path)
        study = cls.__new__(cls)
        plan = plan_from(store, what, allow_code)
        study._store, study._plain, study.hash = store, store.header["plan"], store.header["hash"]
        if plan is not None:
            study._prepare(plan)
            study._check_same(store)
            study._store = store
        return study

    # ------------------------------------------------------------ running

    @cached_property
    def _source(self) -> Source:
        return source_of(self._runnable)

    @property
    def _runnable(self) -> Plan:
        if "plan" not in self.__dict__:
            subject, others = self._plain["subject"], self._plain.get("functions", {})
            what = subject.get("factory") or subject.get("ivp") or ", ".join(others) or "an option"
            given = "" if others else "give it: Study.open(path, function), or "
            raise ValueError(
                f"the study was made with code ({what}) that its folder does not hold; {given}say "
                "again Study(...).run(path), which does nothing twice"
            )
        return self.plan

    @property
    def engine(self) -> str:
        """How runs are done, in words."""
        return self._source.engine

    @property
    def n(self) -> int:
        """How many runs."""
        return int(self._plain["design"]["n"])

    def run(
        self,
        path: str | Path | None = None,
        *,
        workers: int | None = None,
        executor: Any = None,
        block: int | None = None,
        progress: bool | Callable[[Progress], Any] = False,
    ) -> Study:
        """Do the runs that are not done yet, and keep them in a folder.

        The same call goes on where another one was interrupted or killed.

        Parameters
        ----------
        path
            The folder.
        workers
            How many threads or processes; by default one for each processor.
        executor
            "threads", "processes" or a client of Dask distributed. By default threads for runs in
            machine code, else processes.
        block
            Most runs that are lost where the computer goes down, and done again.
        progress
            True: show a bar. Or a function that is told a :class:`Progress` after each part.
        """
        plan = self._runnable
        source = self._source
        if block is not None and (isinstance(block, bool) or block != int(block) or block < 1):
            raise ValueError(f"block: expected a number of runs ≥ 1, received {block!r}")
        with executor_of(executor, workers, source.python, plan) as doing:
            size = int(block or source.runs_at_once * in_flight(doing))
            store = self._open_or_create(path, source, size // in_flight(doing))
            with store.locked(), _reporting(progress, plan.subject.title) as report:
                offer(self.hash, source)
                if doing.workers > 1:  # what is compiled now, workers find in the cache
                    middle = {k: np.array([x]) for k, x in plan.middle_parameters.items()}
                    work(plan, self.hash, 0, middle)
                try:
                    do_runs(plan, self.hash, store, doing, size, report)
                except KeyboardInterrupt as stop:
                    raise self._interrupted(store) from stop
                self._finish(store)
        self._store = store
        return self

    def retry(
        self,
        path: str | Path | None = None,
        *,
        workers: int | None = None,
        executor: Any = None,
        progress: bool | Callable[[Progress], Any] = False,
    ) -> int:
        """Do the runs that failed again: of help where a worker or its memory failed.

        Returns how many succeed now. Arguments as in :meth:`run`.
        """
        plan, store = self._runnable, self._kept(path)
        self._check_same(store)
        python = self._source.python
        with store.locked(), executor_of(executor, workers, python, plan) as doing:
            offer(self.hash, self._source)
            with _reporting(progress, plan.subject.title) as report:
                try:
                    mended = retry_runs(plan, self.hash, store, doing, report)
                except KeyboardInterrupt as stop:
                    raise self._interrupted(store) from stop
            self._finish(store)
        return mended

    def _interrupted(self, store: Store) -> StudyInterrupted:
        done = sum(stop - first for first, stop in store.done())
        return StudyInterrupted(
            f"interrupted: {done:,} of {store.n:,} runs are kept in {store.path}; the same call "
            f"goes on from there (or: featherstep study resume {store.path})"
        )

    def _open_or_create(self, path: str | Path | None, source: Source, part: int) -> Store:
        if path is None and self._store is None:
            raise ValueError(
                'path: expected a folder to keep the runs in, received none; study.run("my.study")'
            )
        if path is None:
            return self._kept(None)
        if Store.exists(path):
            store = Store.open(path)
            self._check_same(store)
            return store
        plan, seen = self._runnable, self._seen
        names, units = list(seen.state_names), state_units(seen)
        chunk = 1
        if plan.times.size:
            bytes_of_run = 8 * len(names) * plan.times.size
            chunk = max(1, min(part, MOST_IN_CHUNK, CHUNK_BYTES // bytes_of_run))
        header = {
            "format": FORMAT,
            "title": plan.subject.title,
            "hash": self.hash,
            "n": plan.design.n,
            "chunk": chunk,
            "states": names,
            "units": units,
            "value_units": {name: r.unit(seen) for name, r in plan.record.items()},
            "mechanism": seen.model is not None,
            "engine": source.engine,
            "versions": versions(),
            "plan": self._plain,
        }
        return Store.create(path, header, plan.design.table)

    def _check_same(self, store: Store) -> None:
        """Refuse to go on with another study than the one that is kept."""
        kept = store.header["plan"]
        if store.header["hash"] != self.hash:
            differ = [key for key in kept if kept.get(key) != self._plain.get(key)]
            first = differ[0] if differ else "plan"
            raise ValueError(
                f"{store.path} holds another study: {', '.join(differ)} differ; there {first} is "
                f"{kept.get(first)!s:.200}, here {self._plain.get(first)!s:.200}. Choose "
                "another folder, or say what it says"
            )
        now, then = versions(), store.header["versions"]
        other = [f"{k} {then.get(k)}, now {now[k]}" for k in now if then.get(k) != now[k]]
        if other:
            log.warning(
                "%s was begun with other versions: %s; rows may differ in their last digits",
                store.path,
                "; ".join(other),
            )

    @staticmethod
    def _finish(store: Store) -> None:
        """Write the whole table, once all runs are done."""
        from .keeping.tables import write_table

        if sum(stop - first for first, stop in store.done()) == store.n:
            write_table(store)

    # ------------------------------------------------------------ results

    def _kept(self, path: str | Path | None) -> Store:
        if path is not None:
            return Store.open(path)
        if self._store is None:
            raise ValueError("the study has not been run yet: study.run(path), or Study.open(path)")
        return self._store

    @property
    def path(self) -> Path:
        """The folder in which it is kept."""
        return self._kept(None).path

    def status(self) -> Progress:
        """How many runs are done, and how many failed."""
        store = self._kept(None)
        done, failed, _ = store.counts()
        return Progress(done, store.n, failed, 0.0, np.nan)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The table as arrays by name: parameters, recorded values, status, message, nsteps, t_end.

        Runs that are not done have the status "missing".
        """
        from .keeping.tables import whole_table

        return whole_table(self._kept(None), self.design)

    def table(self) -> Any:
        """The table as a pandas DataFrame, a row for each run in order."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "table() needs pandas: pip install pandas; columns() has the same as arrays"
            ) from None
        frame = pd.DataFrame(self.columns())
        frame.index.name = "run"
        frame.attrs["units"] = dict(self._kept(None).header["value_units"])
        return frame

    def export(self, path: str | Path) -> Path:
        """Write the table to one file: .csv, .parquet or .npz."""
        from .keeping.tables import write_table

        return write_table(self._kept(None), path)

    def trajectories(self) -> Any:
        """States of all runs at output times: an xarray Dataset that reads when it is asked.

        A variable for each state, with its unit; dimensions run and time; the parameters are
        coordinates along run. Runs that failed are NaN from there on.
        """
        store = self._kept(None)
        if store.trajectories is None:
            raise ValueError("no trajectories were kept: expected Study(..., outputs=200)")
        return dataset(store.trajectories, self.design.rows(0, store.n))

    @cached_property
    def design(self) -> Design:
        """Parameters of all runs."""
        if "plan" in self.__dict__:
            return self.plan.design
        from .study_file import design_from

        return design_from(self._kept(None))

    def rerun(self, number: int) -> Rerun:
        """Do one run again, alone: the same numbers, bit for bit, and all its steps.

        Examples
        --------
        ``study.rerun(4711).animate("run.html")``
        """
        plan = self._runnable
        if not 0 <= number < self.n:
            raise IndexError(f"runs are numbered 0 … {self.n - 1}, received {number!r}")
        part = self._source.run(number, plan.design.rows(number, number + 1))
        return Rerun(plan, self._source, part)

    def evaluate(self, parameters: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Do other runs than those of the study, and keep nothing: for optimisers.

        Parameters
        ----------
        parameters
            Numbers or columns of all parameters that the study varies.

        Returns
        -------
        dict
            The columns of the table for these runs.
        """
        from .keeping.tables import table_of_part

        names = self._runnable.design.names
        if set(parameters) != set(names):
            raise ValueError(
                f"expected values of {', '.join(names)}, received {', '.join(parameters)}"
            )
        given = [np.atleast_1d(np.asarray(parameters[name], dtype=np.float64)) for name in names]
        columns = {n: c.ravel() for n, c in zip(names, np.broadcast_arrays(*given))}
        return table_of_part(self._source.run(0, columns))

    def failures(self) -> dict[int, str]:
        """Messages of the runs that failed, by their numbers."""
        return {
            part.first + int(k): f"{part.status[k]}: {part.message[k]}"
            for part in self._kept(None).rows()
            for k in part.failed
        }

    def worst(self, name: str, count: int = 10) -> list[int]:
        """Numbers of the runs with the largest values of a column, the largest first."""
        columns = self.columns()
        if name not in columns or columns[name].dtype == object:
            raise ValueError(f"there is no column of numbers {name!r}")
        good = np.flatnonzero((columns["status"] == OK) & np.isfinite(columns[name]))
        order = good[np.argsort(-columns[name][good], kind="stable")]
        return [int(k) for k in order[:count]]

    def sobol(self, name: str) -> Any:
        """Sobol's indices of a recorded value: how much of its variance each parameter brings.

        See :func:`featherstep.study.sampling.indices.sobol_indices`; for ``sampling="saltelli"``.
        """
        from .sampling.indices import sobol_indices

        return sobol_indices(self, name)

    def plot(self, kind: str = "overview", **options: Any) -> Any:
        """Draw the study; see :func:`featherstep.study.showing.pictures.study_figure`.

        Parameters
        ----------
        kind
            "overview", "marginals", "scatter", "sobol", "bands" or "worst".
        """
        from .showing.pictures import study_figure

        return study_figure(self, kind, **options)

    def report(self, path: str | Path, *, animations: int = 3) -> Path:
        """Write the study as one HTML file, with animations of its worst runs beside it."""
        from .showing.page import write_report

        return write_report(self, path, animations)

    def __repr__(self) -> str:
        title = self.plan.subject.title if "plan" in self.__dict__ else self._store_title()
        kept = f", kept in {self._store.path}" if self._store is not None else ""
        return f"<Study of {title}: {self.n:,} runs{kept}>"

    def _store_title(self) -> str:
        return str(self._kept(None).header["title"])


def _reporting(progress: Any, title: str) -> Any:
    """Context that yields what is told of progress."""
    from contextlib import nullcontext

    if callable(progress):
        return nullcontext(progress)
    if not progress:
        return nullcontext(None)
    from .showing.bar import shown

    return shown(title)
