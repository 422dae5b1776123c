"""The recipes of the documentation run, where what they need is installed."""

import runpy
import signal
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[3] / "docs" / "recipes"
NEEDS = {
    "optuna_search": ["optuna"],
    "salib_indices": ["SALib"],
    "scipy_optimize": [],
    "slurm_cluster": ["dask_jobqueue", "distributed"],
}


def test_all_recipes_are_here_and_in_the_docs():
    assert sorted(file.stem for file in RECIPES.glob("*.py")) == sorted(NEEDS)
    page = (RECIPES.parent / "studies.md").read_text(encoding="utf-8")
    assert all(f"recipes/{name}.py" in page for name in NEEDS)


@pytest.mark.parametrize("name", ["optuna_search", "salib_indices", "scipy_optimize"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_recipe(name):
    for package in NEEDS[name]:
        pytest.importorskip(package)
    runpy.run_path(str(RECIPES / f"{name}.py"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_slurm(tmp_path):
    """There is no Slurm here: the job is looked at, and the study runs on this machine."""
    for package in NEEDS["slurm_cluster"]:
        pytest.importorskip(package)
    from distributed import Client, LocalCluster

    recipe = runpy.run_path(str(RECIPES / "slurm_cluster.py"))
    # Which dask_jobqueue replaces when it is imported.
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with recipe["make_cluster"]() as cluster:
        script = cluster.job_script()
    assert "#SBATCH --partition=compute" in script
    assert "distributed" in script
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster, Client(cluster) as client:  # fmt: skip
        study = recipe["run"](client, tmp_path / "a.study")
    assert study.status().failed == 0
