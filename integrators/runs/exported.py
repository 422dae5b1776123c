"""Solutions as tables of other libraries, and as files that these read: Parquet, NetCDF, CSV."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files import replacing

if TYPE_CHECKING:
    from .solution import Solution

__all__ = ["WRITERS", "as_dataframe", "as_xarray", "export", "known_names", "names_of", "units_of"]


def names_of(solution: Solution) -> list[str]:
    """Names of the components: those of the problem's states, else y0, y1, …"""
    return list(known_names(solution) or (f"y{i}" for i in range(len(solution.y))))


def known_names(solution: Solution) -> tuple[str, ...]:
    """Names of the components, those that a file has kept among them; empty where none are."""
    named = tuple(getattr(solution.problem, "state_names", ()) or solution.kept_names)
    return named if len(named) == len(solution.y) else ()


def units_of(solution: Solution) -> list[str]:
    """Units of the components, empty where none is known."""
    units = getattr(solution.problem, "units", None) or {}
    return [units.get(name, "") for name in names_of(solution)]


def _facts(solution: Solution) -> dict[str, str]:
    problem = str(getattr(solution.problem, "name", solution.problem or ""))
    facts = {"method": solution.method, "status": solution.status.name, "message": solution.message}
    return {"problem": problem, **facts}


def as_dataframe(solution: Solution) -> Any:
    """A pandas DataFrame indexed by t; units are in its ``attrs``."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_dataframe needs pandas: pip install pandas") from None
    names = names_of(solution)
    frame = pd.DataFrame(solution.y.T, index=pd.Index(solution.t, name="t"), columns=names)
    frame.attrs = {**_facts(solution), "units": dict(zip(names, units_of(solution)))}
    return frame


def as_xarray(solution: Solution) -> Any:
    """An xarray DataArray with dimensions component and t; units are a coordinate of component."""
    try:
        import xarray as xr
    except ImportError:
        raise ImportError("to_xarray needs xarray: pip install xarray") from None
    return xr.DataArray(
        solution.y,
        dims=("component", "t"),
        coords={
            "component": names_of(solution),
            "t": solution.t,
            "unit": ("component", units_of(solution)),
        },
        name=getattr(solution.problem, "name", "") or "y",
        attrs=_facts(solution),
    )


def _parquet(solution: Solution, file: Path) -> None:
    frame = as_dataframe(solution)
    try:
        frame.to_parquet(file, engine="pyarrow")
    except ImportError:
        raise ImportError("Parquet needs pyarrow: pip install pyarrow") from None


def _spelled(letter: str) -> str:
    """A letter of Latin-1, or the name of another: "lamda" for λ."""
    if ord(letter) < 256:
        return letter
    return unicodedata.name(letter, "").rpartition(" ")[2].lower() or "_"


def _netcdf(solution: Solution, file: Path) -> None:
    """A variable for each state, with its unit; real numbers only.

    SciPy writes names in Latin-1: letters beyond it are spelled, and ``long_name`` has the name.
    """
    import xarray as xr

    if solution.y.dtype.kind == "c":
        raise ValueError("NetCDF has real numbers only; write real and imaginary parts apart")
    variables = {}
    for name, row, unit in zip(names_of(solution), solution.y, units_of(solution)):
        plain = "".join(map(_spelled, name))
        while plain in variables:
            plain += "_"
        told = {"long_name": name} if plain != name else {}
        variables[plain] = "t", row, {"units": unit, **told} if unit else told
    data = xr.Dataset(variables, coords={"t": solution.t}, attrs=_facts(solution))
    file.write_bytes(bytes(data.to_netcdf(engine="scipy")))


def _csv(solution: Solution, file: Path) -> None:
    as_dataframe(solution).to_csv(file, float_format="%.17g")


WRITERS: dict[str, Callable[[Solution, Path], None]] = {
    ".parquet": _parquet,
    ".nc": _netcdf,
    ".csv": _csv,
}


def export(solution: Solution, path: str | Path) -> Path:
    """Write a table of times and states for other programs, by the ending of the name."""
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in WRITERS:
        raise ValueError(
            f"path: expected a name that ends in {', '.join(WRITERS)}, received {target.name!r}; "
            "to read a solution again here use save"
        )
    names = names_of(solution)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two states are called {twice!r}: columns need names of their own")
    with replacing(target) as file:
        WRITERS[kind](solution, Path(file))
    return target
