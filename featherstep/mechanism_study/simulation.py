"""The command ``simulate``: let a mechanism move; an animation, a picture or a table of it."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path
from typing import Any

from ..options import FAILURE, INTERRUPTED, PICTURES, complain, parameter, text_block, write
from .command import named_mechanism

__all__ = ["add_simulate"]

MOVIES = (".html", ".gif", ".mp4")
STABILISERS = ("T_stab", "alpha", "beta", "rank")


def _simulate(arguments: argparse.Namespace) -> int:
    _check_outputs(arguments)
    from integrators.analysis.study.runs import resolve
    from multibody import file_events, simulate
    from multibody.pictures import animate
    from multibody.runs.observing.observe import observe
    from multibody.runs.observing.states import states_of

    from .compare import formulation_options

    what = named_mechanism(arguments, arguments.mechanism)
    record = dict(map(_recorded, arguments.record or ()))
    if arguments.q0 is not None or arguments.v0 is not None:
        from .mechanism import started

        q, v = (_typed(what.model, key, getattr(arguments, f"{key}0")) for key in "qv")
        what = started(what, q, v)
    model, t_end = what.model, what.t_end if arguments.t_end is None else arguments.t_end
    if not t_end > 0.0:
        raise ValueError(f"--t-end must be positive, got {t_end:g}")
    if arguments.method == "MoreauJean":  # known to models with contacts only
        label = method = arguments.method
    else:
        label, method = resolve(arguments.method)
    options: dict[str, Any] = {"rtol": arguments.rtol, "atol": 1e-2 * arguments.rtol}
    if arguments.step is not None:
        options["step"] = arguments.step
    if arguments.stabilise is not None:
        name, more = formulation_options(arguments.stabilise)
        for key in more:
            if key not in STABILISERS:
                raise ValueError(
                    f"--stabilise takes the options {', '.join(STABILISERS)}, as in "
                    f"baumgarte:T_stab=0.01; got {key!r}"
                )
        options |= {"stabilise": name, **more}
    if what.events:
        options["events"] = file_events(model, what.events, what.tau)

    def run(method: Any, record: Any = None) -> Any:
        return simulate(
            model, what.q0, what.v0, t_end, tau=what.tau, method=method, fps=arguments.fps,
            on_interrupt="return", record=record, **options,
        )  # fmt: skip

    solution = run(method, record or None)
    states = states_of(model, solution)[1]
    q, v = states[: model.nq], states[model.nq :]
    seen = observe(model, solution.t, q, v, what.tau)
    if arguments.csv != "-":
        from ..terminal import Screen

        screen = Screen()
        screen.say(f"{model.name}: {what.description}" if what.description else model.name, "bold")
        for line in _summary(solution, seen, label, model):
            screen.say(line)
        for event, times in zip(what.events, solution.t_events):
            listed = ", ".join(f"{t:.6g}" for t in times[:8]) + (", …" if len(times) > 8 else "")
            screen.say(f"{event.name}: {f't = {listed}' if listed else 'never'}")
    write(arguments.csv, lambda: _states_csv(model, solution))
    if arguments.plot is not None:
        from ..problem_study.figure import save
        from .figure import simulation_figure

        save(simulation_figure(model, solution), arguments.plot)
        sys.stderr.write(f"wrote {arguments.plot}\n")
    if arguments.out is not None:
        shown = {label: solution} | {
            other: run(method) for other, method in map(resolve, arguments.against or ())
        }
        animate.save(
            model, shown, arguments.out, fps=min(arguments.fps, 30.0), reactions=arguments.reactions
        )
        sys.stderr.write(f"wrote {arguments.out}\n")
    if not solution.success:
        code = INTERRUPTED if solution.status.name == "INTERRUPTED" else FAILURE
        return complain(f"{label}: {solution.message}", code, False)
    return 0


def _summary(solution: Any, seen: Any, label: str, model: Any) -> list[str]:
    end, state = solution.t[-1], solution.y[:, -1]
    if solution.status.name == "EVENT":  # which need not happen at the time of a picture
        ends = zip(solution.t_events, solution.y_events)
        end, state = max(((t[-1], y[-1]) for t, y in ends if len(t)), key=lambda last: last[0])
    lines = [f"{label} to t = {end:g}: {solution.nsteps:,} steps, {solution.nfev:,} evaluations"]
    if seen.energy is not None:
        lines.append(f"energy changed by {seen.energy:.1e} of what moves")
    if seen.gap is not None:
        lines.append(f"loops opened by at most {seen.gap:.1e}, at {seen.speed:.1e} a second")
    if seen.passages:
        times = ", ".join(f"{t:.3g}" for t in seen.passages)
        lines.append(f"passed singular positions at t = {times}: the branch taken is not certain")
    values = ", ".join(f"{name} = {x:.8g}" for name, x in zip(model.q_names, state))
    return [*lines, f"at the end {values}"]


def _states_csv(model: Any, solution: Any) -> str:
    from multibody.runs.observing.states import states_of

    columns = dict(zip((*model.q_names, *model.v_names), states_of(model, solution)[1]))
    for name, values in (solution.recorded or {}).items():
        if values.ndim == 1:
            columns[name] = values
            continue
        parts = "x y z" if len(values) == 3 else "mx my mz fx fy fz"
        columns |= {f"{name}.{part}": row for part, row in zip(parts.split(), values)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["t", *columns])
    writer.writerows(
        [float(t), *map(float, row)] for t, row in zip(solution.t, zip(*columns.values()))
    )
    return text.getvalue()


def _typed(model: Any, kind: str, text: str | None) -> Any:
    """Positions or velocities as typed: numbers, or names with numbers, between commas."""
    from multibody.io import named_values

    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        if not any("=" in part for part in parts):
            return named_values(model, kind, [float(part) for part in parts])
        pairs = [part.partition("=") for part in parts]
        return named_values(model, kind, {name.strip(): float(x) for name, _, x in pairs})
    except ValueError as error:
        raise ValueError(f"--{kind}0 {text}: {error}") from None


def _recorded(text: str) -> tuple[str, Any]:
    """What is recorded as typed: NAME=KIND:ARGUMENT:…, or NAME=STATE, or a state alone."""
    from multibody.runs.observing.recorded import quantity_of

    name, equals, what = text.partition("=")
    kind, *given = (what if equals else name).split(":")
    if not given:
        return name, kind
    try:
        return name, quantity_of({kind: [_number(x) for x in given]})
    except (TypeError, ValueError) as error:
        raise ValueError(f"--record {text}: {error}") from None


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _check_outputs(arguments: argparse.Namespace) -> None:
    if arguments.out is not None and Path(arguments.out).suffix.lower() not in MOVIES:
        raise ValueError(f"--out needs a name ending in {', '.join(MOVIES)}, got {arguments.out}")
    page = arguments.out is not None and Path(arguments.out).suffix.lower() == ".html"
    if (arguments.against or arguments.reactions) and not page:
        raise ValueError("--against and --reactions are shown in a page; add --out NAME.html")
    if arguments.plot is not None and Path(arguments.plot).suffix.lower() not in PICTURES:
        raise ValueError(
            f"--plot needs a name ending in {', '.join(PICTURES)}, got {arguments.plot}"
        )
    for name in (arguments.out, arguments.plot, arguments.csv):
        if name not in (None, "-") and not Path(name).absolute().parent.is_dir():
            raise ValueError(f"cannot write {name}: there is no folder {Path(name).parent}")


def add_simulate(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command ``simulate``."""
    parser = commands.add_parser(
        "simulate",
        parents=[shared],
        help="let a mechanism move; write an animation, a picture or a table",
        description=text_block("""
            Simulate a mechanism of the catalogue, or one in a model file, from its start; say what
            became of its energy and its loops; write an animation, curves, or all states.
        """),
        epilog=text_block("""
            examples:
              featherstep simulate double_pendulum --out double.html
              featherstep simulate pendulum --method RK4 --step 0.1 --against Euler --out both.html
              featherstep simulate four_bar --t-end 3 --out four_bar.gif
              featherstep simulate bricard --method RADAU5 --rtol 1e-10
              featherstep simulate four_bar --stabilise baumgarte:T_stab=0.01 --plot curves.png
              featherstep simulate n_pendulum --param n=5 --csv -
              featherstep simulate arm.toml --step 0.001 --method RK4
              featherstep simulate arm.toml --q0 arm=0.3 --record tip=point:arm:0:0:-1 --csv -
        """),
    )
    parser.add_argument(
        "mechanism", metavar="MECHANISM", help="a name, see `featherstep mechanisms`, or a file"
    )
    parser.add_argument("--t-end", metavar="T", type=float, help="until when, in seconds")
    parser.add_argument(
        "--q0", metavar="Q", help="start: numbers, or names with numbers: arm=0.3,cart=1"
    )
    parser.add_argument("--v0", metavar="V", help="velocities at the start, likewise")
    parser.add_argument(
        "--record", metavar="NAME=WHAT", action="append",
        help="a quantity for --csv: tip=point:arm:0:0:-1, pin=reaction:arm:force, "
        "u=output:motor:torque, E=energy:total; may be repeated",
    )  # fmt: skip
    parser.add_argument("--method", metavar="M", default="DOP853", help="default DOP853")
    parser.add_argument(
        "--rtol", metavar="R", type=float, default=1e-8, help="relative tolerance (default 1e-8)"
    )
    parser.add_argument("--step", metavar="H", type=float, help="a fixed step, in its place")
    parser.add_argument(
        "--param", metavar="NAME=VALUE", type=parameter, action="append",
        help="a parameter of the mechanism, such as n=3; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--fps", metavar="N", type=float, default=60.0, help="states a second (default 60)"
    )
    parser.add_argument(
        "--stabilise", metavar="S",
        help="how loops are kept closed: a formulation for explicit methods, baumgarte:T_stab=0.01",
    )  # fmt: skip
    parser.add_argument(
        "--out", metavar="FILE", help="an animation: .html (in three dimensions), .gif or .mp4"
    )
    parser.add_argument(
        "--against", metavar="M", action="append",
        help="another method, whose run is shown as a ghost in the page; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--reactions", action="store_true", help="show the forces in all joints in the page"
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="positions, velocities and energy (.png, .pdf, .svg)"
    )
    parser.add_argument("--csv", metavar="FILE", help="all states; - for standard output")
    parser.set_defaults(run=_simulate, debug=False)
