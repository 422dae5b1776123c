"""An initial value problem as an FMU."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..dae.projection import TracedProjection
from ..files import replacing
from ..problem import IVP
from ..stepping.projecting import MOST_CLOSINGS, SETTLED, TOO_LARGE
from ..tracing import Traced, traced, traced_rhs
from .description import UNITS, Variable, build_description, model_description
from .events import event_code, one_number

__all__ = ["export_fmu"]

#: Name of the folder of binaries for each machine and system.
MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
SYSTEMS = {
    "linux": ("linux", ".so"),
    "darwin": ("darwin", ".dylib"),
    "windows": ("windows", ".dll"),
}
#: A compiler gets this long (s).
PATIENCE = 300


def export_fmu(
    problem: IVP,
    path: str | os.PathLike[str],
    *,
    name: str = "",
    parameters: Sequence[str] = (),
    inputs: Sequence[str] = (),
    outputs: Mapping[str, Callable[..., Any]] | None = None,
    units: Mapping[str, str] | None = None,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    compiler: str | None = None,
) -> Path:
    """Write an IVP as an FMU for FMI 3.0: model exchange and co-simulation.

    Parameters
    ----------
    problem
        An IVP whose f is traced, or can be. Its projection (unit quaternions, closed loops) is
        carried along if it is traced. That of a family of models has the family's parameters.
        So are its events: g and reset must be traceable. Mass matrices and schedules are refused.
    path
        The file, ``….fmu``.
    name
        Of the model; that of the problem by default.
    parameters
        Names of the problem's parameters p, all of them; "p[0]", … by default. Of a family: names
        of what follows its own parameters, which have their names.
    inputs
        Those of the parameters that are inputs of the FMU, which may change at any time.
    outputs
        Further outputs: name → g(t, y) or g(t, y, p), a traceable function with one number.
    units
        Units of variables by name: rad, m, rad/s, m/s, N, N.m or J.
    rtol, atol
        Tolerances of co-simulation, which steps by DOPRI5.
    compiler
        A C compiler; by default $CC, or cc, gcc or clang on the PATH. Without one the FMU has its
        source only, and a warning says so; programs that take source FMUs build it.

    Returns
    -------
    Path
        Where it was written.

    Examples
    --------
    >>> import tempfile
    >>> from integrators import IVP
    >>> decay = IVP(lambda t, y, p: [-p[0] * y[0]], [1.0], (0.0, 2.0), [0.5], name="decay")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = export_fmu(decay, Path(folder) / "decay.fmu", parameters=["rate"])
    ...     "modelDescription.xml" in zipfile.ZipFile(file).namelist()
    True
    """
    target = Path(path)
    if target.suffix.lower() != ".fmu":
        raise ValueError(f"path: expected a name that ends in .fmu, received {target.name!r}")
    for what, value in (("rtol", rtol), ("atol", atol)):
        if not 0.0 < value < 1.0:
            raise ValueError(f"{what}: expected a number between 0 and 1, received {value!r}")
    _refuse(problem)
    if own := tuple(getattr(problem, "parameter_names", ())):
        member: Any = problem
        problem = member.by_names()
        forces = np.size(problem.params) - len(own)
        parameters = [*own, *(parameters or [f"p[{i}]" for i in range(forces)])]
    title = name or problem.name or "model"
    identifier = re.sub(r"\W", "_", title, flags=re.ASCII).strip("_") or "model"
    identifier = f"m_{identifier}" if identifier[0].isdigit() else identifier
    variables, given = _variables(problem, parameters, inputs, dict(outputs or {}), units or {})
    code = _code(problem, given, rtol, atol)
    token = "{" + hashlib.sha256((title + code).encode()).hexdigest()[:32] + "}"
    source = f'#define TOKEN "{token}"\n{code}'
    span = (float(problem.t_span[0]), float(problem.t_span[1]))
    text = model_description(
        title, identifier, token, f"{title}: exported by featherstep", span, rtol, variables
    )
    library = _compiled(source, identifier, compiler)
    with replacing(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("modelDescription.xml", text)
        archive.writestr(f"sources/{identifier}.c", source)
        archive.writestr("sources/buildDescription.xml", build_description(identifier))
        if library is not None:
            folder, ending = _platform()
            archive.writestr(f"binaries/{folder}/{identifier}{ending}", library)
    return target


def _refuse(problem: Any) -> None:
    if not isinstance(problem, IVP):
        raise TypeError(
            f"problem: expected an IVP, received {type(problem).__name__}; of a mechanism as_ivp "
            "makes one"
        )
    lacks = {
        "mass": "a mass matrix; solve for the derivatives in f",
        "schedule": "instants at which its equations change; leave out sampled elements",
    }
    for attribute, what in lacks.items():
        value = getattr(problem, attribute, None)
        if value is not None and np.size(value):
            raise ValueError(f"problem: an FMU is not written for {what}")
    if problem.t_span[1] < problem.t_span[0]:
        raise ValueError(
            "problem: an FMU runs forwards, received t_span = "
            f"({problem.t_span[0]:g}, {problem.t_span[1]:g}); write it with -t in place of t"
        )
    if np.iscomplexobj(problem.y0):
        raise ValueError("problem: an FMU has real states; write real and imaginary parts apart")
    project = problem.project
    if project is not None and not isinstance(project, Traced) and not _codes(project):
        raise ValueError(
            "problem: its projection cannot be traced; for closed loops take "
            'as_ivp(…, stabilise="baumgarte")'
        )


def _codes(project: Any) -> tuple[Traced, Traced] | None:
    """Both steps of a projection onto constraints, if they are traced."""
    return project.codes if isinstance(project, TracedProjection) else None


def _variables(
    problem: IVP,
    parameters: Sequence[str],
    inputs: Sequence[str],
    outputs: dict[str, Any],
    units: Mapping[str, str],
) -> tuple[list[Variable], dict[str, Any]]:
    n, p = len(problem.y0), np.asarray(problem.params, dtype=float)
    states = [str(s) for s in problem.state_names or [f"y[{i}]" for i in range(n)]]
    named = list(parameters) or [f"p[{i}]" for i in range(len(p))]
    if len(named) != len(p):
        raise ValueError(f"parameters: expected {len(p)} names, received {len(named)}")
    if unknown := [x for x in inputs if x not in named]:
        raise ValueError(f"inputs: {unknown[0]!r} is no parameter; there are {named}")
    for unit in units.values():
        if unit not in UNITS:
            raise ValueError(f"units: expected one of {', '.join(UNITS)}, received {unit!r}")
    found = []
    for i, (s, x) in enumerate(zip(states, problem.y0)):
        found.append(Variable(s, 1 + i, "output", float(x), unit=units.get(s, "")))
    for i, s in enumerate(states):
        found.append(Variable(f"der({s})", 1 + n + i, "local", derivative=1 + i))
    for i, (s, x) in enumerate(zip(named, p)):
        kind = "input" if s in inputs else "parameter"
        found.append(Variable(s, 1 + 2 * n + i, kind, float(x), unit=units.get(s, "")))
    for i, s in enumerate(outputs):
        found.append(Variable(s, 1 + 2 * n + len(p) + i, "output", unit=units.get(s, "")))
    first = 1 + 2 * n + len(p) + len(outputs)
    for i, event in enumerate(problem.events):
        called = event.name if event.name not in ("", "<lambda>") else f"events[{i}]"
        found.append(Variable(called, first + i, "local", indicates=True))
    names = [v.name for v in found] + ["time"]
    if len(set(names)) < len(names):
        twice = next(x for x in names if names.count(x) > 1)
        raise ValueError(f"two variables are called {twice!r}; give others by parameters= …")
    if lost := set(units) - set(names):
        raise ValueError(f"units: no variable is called {sorted(lost)[0]!r}")
    return found, outputs


def _code(problem: IVP, outputs: dict[str, Any], rtol: float, atol: float) -> str:
    """The model as C: numbers, functions, and the interface around them."""
    n, p = len(problem.y0), np.asarray(problem.params, dtype=float)
    f = traced_rhs(problem.f, n, len(p))
    functions = [f.to_c("model_f", "The right-hand side")]
    if outputs:
        laws = list(outputs.values())

        def together(t: Any, y: Any, p: Any = ()) -> Any:
            return [one_number("outputs", law, t, y, p) for law in laws]

        g = traced(together, n=n, params=p, outputs=len(laws))
        functions.append(g.to_c("model_g", "The outputs"))
    project: Any = problem.project
    if codes := _codes(project):
        functions.append(codes[0].to_c("model_close", "A step towards the constraints"))
        functions.append(codes[1].to_c("model_project", "What brings the rest of the state back"))
    elif project is not None:
        functions.append(project.to_c("model_project", "What brings the state back"))
    functions += event_code(problem)
    start = ", ".join(repr(float(x)) for x in (*problem.y0, *p)) or "0.0"
    numbers = [
        f"#define N {n}",
        f"#define K {len(p)}",
        f"#define M {len(outputs)}",
        f"#define E {len(problem.events)}",
        f"#define PROJECTS {int(project is not None)}",
        f"#define CLOSES {MOST_CLOSINGS if codes else 0}",
        f"#define SETTLED {SETTLED!r}",
        f"#define TOO_LARGE {TOO_LARGE!r}",
        "#include <math.h>",
        f"static const double START[] = {{{start}}};",
        f"static const double SPAN = {max(problem.t_span[1] - problem.t_span[0], 1e-300)!r};",
        f"static const double RTOL = {rtol!r};",
        f"static const double ATOL[] = {{{', '.join([repr(float(atol))] * max(n, 1))}}};",
    ]
    seen: set[str] = set()
    bodies = []
    for text in functions:
        lines = text.splitlines()
        kept = [x for x in lines if not (x.startswith("static double ") and x in seen)]
        seen |= {x for x in lines if x.startswith("static double ")}
        bodies.append("\n".join(kept))
    body = "\n".join(bodies)
    body = re.sub(r"^void (model_\w+)\(", r"static void \1(", body, flags=re.MULTILINE)
    parts = ["model.c", *(["events.c"] if problem.events else []), "steps.c", "interface.c"]
    around = [files(__package__).joinpath(part).read_text("utf-8") for part in parts]
    return "\n".join([*numbers, body, *around])


def _platform() -> tuple[str, str]:
    system, ending = SYSTEMS.get(platform.system().lower(), ("linux", ".so"))
    machine = MACHINES.get(platform.machine().lower(), platform.machine().lower())
    return f"{machine}-{system}", ending


def _compiled(source: str, identifier: str, compiler: str | None) -> bytes | None:
    """The library; None, with a warning, if there is no compiler."""
    wanted = [compiler] if compiler else [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    program = next((found for name in wanted if name and (found := shutil.which(name))), None)
    if program is None:
        if compiler is not None:
            raise ValueError(f"compiler: there is no program {compiler!r}")
        warnings.warn(
            "there is no C compiler (CC, cc, gcc, clang): the FMU has its source only, which not "
            "every program takes",
            stacklevel=3,
        )
        return None
    with tempfile.TemporaryDirectory() as folder:
        code, library = Path(folder) / f"{identifier}.c", Path(folder) / "library"
        code.write_text(source, encoding="utf-8")
        command = [program, "-std=c99", "-O2", "-shared", "-fPIC", "-fvisibility=hidden"]
        done = subprocess.run(
            [*command, str(code), "-o", str(library), "-lm"],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{program} could not build the FMU: {done.stderr.strip()[:500]}")
        return library.read_bytes()
