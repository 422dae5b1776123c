"""A study on a cluster with Slurm: dask-jobqueue submits the workers, the desk stays here.

Workers and this process see one file system, so that code which one of them has compiled is found
by all: the cache lies in the home directory, or where FEATHERSTEP_CACHE says. If this process is
killed or its session ends, run the script again: it goes on.
"""

import signal
import sys

from dask_jobqueue import SLURMCluster
from distributed import Client

from featherstep import Final, Normal, Study

# The import of dask_jobqueue lets Ctrl-C end the process at once; a study stops cleanly instead.
signal.signal(signal.SIGINT, signal.default_int_handler)


def make_cluster():
    """Jobs of four workers with one thread each; Slurm starts them as there is room."""
    return SLURMCluster(
        cores=4,
        processes=4,
        memory="8GB",
        walltime="02:00:00",
        job_extra_directives=["--partition=compute"],
        scheduler_options={"dashboard_address": None},
    )


def run(client, folder):
    """The study; the same call resumes it."""
    study = Study(
        "pendulum",
        vary={"length": Normal(1.0, 0.05)},
        n=200,
        seed=1,
        start={"bob": 1.0},
        t_span=(0, 2),
        record={"end": Final("bob")},
    )
    return study.run(folder, executor=client)


if __name__ == "__main__":
    with make_cluster() as cluster, Client(cluster) as client:
        cluster.adapt(maximum_jobs=20)
        run(client, sys.argv[1])
