"""Who does the work: this thread, threads, processes, or Dask on any number of machines.

One small interface: :meth:`Executor.submit` hands over a task and returns a future of
``concurrent.futures`` kind, :meth:`Executor.lost` says whether an exception means that a worker
died rather than that the task failed, and :meth:`Executor.renew` makes it usable again.
"""

from __future__ import annotations

import concurrent.futures as futures
import contextlib
import logging
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from integrators.processors import available_processors

__all__ = ["DaskCluster", "Executor", "Here", "Processes", "Threads", "executor_of"]

log = logging.getLogger(__name__)

#: A task: parameters of some runs in, a part out. The bytes are those of the pickled plan.
Task = Callable[..., Any]


class Executor(Protocol):
    """Does tasks on some workers."""

    @property
    def workers(self) -> int:
        """How many there are."""
        ...

    def prepare(self, plan: Any) -> Any:
        """Bring what all tasks share to the workers; return what stands for it in tasks."""
        ...

    def submit(self, task: Task, *arguments: Any) -> Any:
        """Begin a task; return its future."""
        ...

    def first_done(self, pending: list[Any]) -> list[Any]:
        """Wait until some of the futures are done; return those."""
        ...

    def lost(self, error: BaseException) -> bool:
        """Whether an exception says that a worker died."""
        ...

    def renew(self) -> None:
        """Make new workers, where their death ended them all."""
        ...

    def close(self, wait: bool = True) -> None:
        """Release the workers."""
        ...


class _Waiting:
    """What executors of ``concurrent.futures`` share."""

    def first_done(self, pending: list[Any]) -> list[Any]:
        """Wait until some of the futures are done; look at the keyboard between."""
        while True:
            done, _ = futures.wait(pending, timeout=0.1, return_when=futures.FIRST_COMPLETED)
            if done:
                return [future for future in pending if future in done]

    def lost(self, error: BaseException) -> bool:
        """Whether an exception says that a worker died."""
        return isinstance(error, futures.BrokenExecutor)


class Here(_Waiting):
    """The calling thread."""

    workers = 1

    def prepare(self, plan: Any) -> Any:
        """Return the plan itself."""
        return plan

    def submit(self, task: Task, *arguments: Any) -> Any:
        """Do a task at once."""
        future: futures.Future[Any] = futures.Future()
        try:
            future.set_result(task(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def renew(self) -> None:
        """Nothing to renew."""

    def close(self, wait: bool = True) -> None:
        """Nothing to release."""


class Threads(_Waiting):
    """Threads of this process: for machine code, which lets others run."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.pool = futures.ThreadPoolExecutor(workers, thread_name_prefix="study")

    def prepare(self, plan: Any) -> Any:
        """Return the plan itself."""
        return plan

    def submit(self, task: Task, *arguments: Any) -> Any:
        """Begin a task."""
        return self.pool.submit(task, *arguments)

    def renew(self) -> None:
        """Threads do not die."""

    def close(self, wait: bool = True) -> None:
        """Let what has begun come to its end."""
        self.pool.shutdown(wait=wait, cancel_futures=True)


class Processes(_Waiting):
    """Processes of this machine: for models that are built and functions called in Python."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.pool = self._new()

    def _new(self) -> futures.ProcessPoolExecutor:
        # A fork of a process with threads of its own may hang; one of a server that has loaded
        # what is needed, and has none, is quick and safe.
        server = "forkserver" in multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if server else "spawn")
        if server:
            context.set_forkserver_preload(["featherstep.study.working.running"])
        return futures.ProcessPoolExecutor(
            self.workers, mp_context=context, initializer=_ignore_ctrl_c
        )

    def prepare(self, plan: Any) -> Any:
        """Return the plan as bytes, pickled once; raise if processes cannot begin with it."""
        data = pickled(plan)
        try:
            self.pool.submit(_begin, data).result()
        except futures.BrokenExecutor as error:
            raise ValueError(
                "processes cannot be started from here: a script begins its study under if "
                "__name__ == '__main__':, or with executor='threads'"
            ) from error
        except Exception as error:
            raise ValueError(_cannot_be_sent(error)) from error
        return data

    def submit(self, task: Task, *arguments: Any) -> Any:
        """Begin a task."""
        return self.pool.submit(task, *arguments)

    def renew(self) -> None:
        """Start other processes: the death of one ends the pool."""
        self.close(wait=False)
        self.pool = self._new()

    def close(self, wait: bool = True) -> None:
        """End the processes."""
        self.pool.shutdown(wait=wait, cancel_futures=True)


def _begin(data: bytes) -> None:
    """Read what was sent, to see that it can be read."""
    pickle.loads(data)


def _ignore_ctrl_c() -> None:
    """Ctrl-C goes to all processes of a terminal; the one that began the study deals with it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def pickled(plan: Any) -> bytes:
    """Bytes of a plan; functions that were typed in are sent as code, by cloudpickle."""
    with contextlib.suppress(ImportError):
        import cloudpickle

        return bytes(cloudpickle.dumps(plan))
    try:
        return pickle.dumps(plan)
    except Exception as error:
        raise ValueError(_cannot_be_sent(error)) from error


def _cannot_be_sent(error: BaseException) -> str:
    return (
        f"the study cannot be sent to other processes: {error}; define its functions at the top of "
        "a module (no lambdas), install cloudpickle, or use executor='threads'"
    )


class DaskCluster:
    """A cluster of Dask distributed, by its client."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._shared: Any = None

    @property
    def workers(self) -> int:
        """Threads of all workers that there are now."""
        threads = self.client.nthreads()
        return max(1, sum(threads.values()))

    def prepare(self, plan: Any) -> Any:
        """Bring the plan to every worker once."""
        return self.client.scatter(pickled(plan), broadcast=True, hash=False)

    def submit(self, task: Task, *arguments: Any) -> Any:
        """Begin a task; its worker's death is dealt with here, so that no run is tried forever."""
        return self.client.submit(task, *arguments, pure=False)

    def first_done(self, pending: list[Any]) -> list[Any]:
        """Wait until some of the futures are done."""
        from distributed import wait

        while True:
            with contextlib.suppress(TimeoutError, futures.TimeoutError):
                done = wait(pending, timeout=0.5, return_when="FIRST_COMPLETED").done
                if done:
                    return [future for future in pending if future in done]

    def lost(self, error: BaseException) -> bool:
        """Whether an exception says that a worker died, or what was sent to it."""
        from distributed import CancelledError, KilledWorker

        return isinstance(error, KilledWorker | CancelledError)

    def renew(self) -> None:
        """Dask starts workers itself."""

    def close(self, wait: bool = True) -> None:
        """The client belongs to the user."""


def _processes_or_threads(count: int, plan: Any) -> Executor:
    """Processes, if the plan can be sent to them."""
    made = Processes(count)
    try:
        made.prepare(plan)
    except ValueError as error:
        made.close(wait=False)
        log.warning("threads in place of processes: %s", error)
        return Threads(count)
    return made


@contextlib.contextmanager
def executor_of(
    executor: Any, workers: int | None, python: bool, plan: Any = None
) -> Iterator[Executor]:
    """Executor from what users give; ends it, if it was made here.

    Parameters
    ----------
    executor
        None, "threads", "processes", a client of Dask, or anything with the methods of
        :class:`Executor`.
    workers
        How many; one on each processor if not given.
    python
        Whether runs spend their time in Python, so that threads would wait for each other.
    plan
        What workers are to do. If processes cannot begin with it, and nobody asked for them,
        threads take their place, and the log says so.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(
            "this process was started by a study and runs its script again; the script begins the "
            "study under if __name__ == '__main__':"
        )
    count = available_processors() if workers is None else workers
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"workers: expected a whole number ≥ 1, received {workers!r}")
    made: Executor
    if executor is None and count == 1:
        made = Here()
    elif executor == "threads" or (executor is None and not python):
        made = Threads(count)
    elif executor == "processes":
        made = Processes(count)
    elif executor is None:
        made = _processes_or_threads(count, plan)
    elif hasattr(executor, "scatter") and hasattr(executor, "submit"):
        made = DaskCluster(executor)
    elif all(hasattr(executor, name) for name in ("prepare", "submit", "first_done", "lost")):
        yield executor
        return
    else:
        raise ValueError(
            "executor: expected 'threads', 'processes', a client of Dask distributed, or nothing; "
            f"received {executor!r:.80}"
        )
    try:
        yield made
    except BaseException:
        made.close(wait=not isinstance(made, Processes))
        raise
    made.close()
