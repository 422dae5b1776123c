"""``featherstep warmup``: everything that runs compile later is compiled ahead."""

import random

import numpy as np
import pytest

from featherstep import warmup
from featherstep.cli import main
from integrators import Taylor, catalogue, solve, traced
from integrators.kernels import OnWorkspace
from integrators.kernels.c_functions import CFunction
from integrators.kernels.tiers.tiers import gathered
from multibody import as_dae, as_ivp, assemble, mechanisms


@pytest.fixture(scope="module")
def kernels():
    return set(warmup.all_kernels())


def pendulum(t, y):
    return np.array([y[1], -np.sin(y[0])])


METHODS = [*random.Random(7).sample(catalogue.names(), 12), Taylor(5), Taylor(30)]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_no_method_needs_more(method, kernels):
    with gathered() as needed:
        for f in (pendulum, traced(pendulum, n=2)):
            options = {} if isinstance(method, Taylor) else {"step": 0.05}
            solve(f, (0, 0.1), [1.0, 0.0], method=method, dense_output=True, **options)
    assert set(needed) <= kernels


def test_no_mechanism_needs_more(kernels):
    model = mechanisms.four_bar()
    q, v = assemble(model, [0.5, 0.3, 0.2]).q, np.zeros(3)
    with gathered() as needed:
        solve(as_ivp(model, q, v, (0, 0.05), stabilise="projection"))
        solve(as_dae(model, q, v, (0, 0.05)), method="RADAU5")
        solve(as_ivp(mechanisms.spinning_top(), t_span=(0, 0.05)), method="RKMK5")
    assert set(needed) <= kernels


def test_kernels_on_their_own_are_there(kernels):
    ours = ("integrators.", "multibody.")
    alone = {k.c_function for k in OnWorkspace.instances if k.function.__module__.startswith(ours)}
    assert alone <= kernels
    assert len(alone) > 15


@pytest.fixture
def pretended(monkeypatch):
    """Nothing is compiled; the names of what would be are noted."""
    some = [CFunction(f, None, "") for f in (pendulum, solve)]
    built = []
    monkeypatch.setattr(warmup, "all_kernels", lambda: some)
    monkeypatch.setattr(CFunction, "build", lambda self: built.append(self.function.__name__))
    monkeypatch.setattr(CFunction, "is_kept", property(lambda s: s.function.__name__ in built))
    return built


def test_what_lacks_is_compiled(pretended, capsys):
    pretended.append("solve")
    assert main(["warmup"]) == 0
    assert pretended == ["solve", "pendulum"]
    assert capsys.readouterr().out.startswith("2 kernels, 1 of them new, in ")


def test_several_processes_compile(kernels, monkeypatch):
    monkeypatch.setattr(warmup, "FEW", 1)
    some = sorted(kernels, key=repr)[:2]
    assert list(warmup._compiled(some, 2)) == [kernel.function.__name__ for kernel in some]
    assert all(kernel.is_kept for kernel in some)


def test_what_cannot_be_kept_is_told(pretended, monkeypatch, capsys):
    monkeypatch.setattr(CFunction, "is_kept", property(lambda s: False))
    monkeypatch.setattr(CFunction, "__repr__", lambda s: s.function.__name__)
    assert main(["warmup"]) == 1
    assert "does not hold the code of pendulum, solve" in capsys.readouterr().err


def test_it_says_why_it_cannot(monkeypatch, capsys):
    monkeypatch.setenv("FEATHERSTEP_INTERPRET", "1")
    assert main(["warmup"]) == 1
    assert "nothing can be compiled" in capsys.readouterr().err
