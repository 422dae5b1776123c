"""Events of a problem as C: their functions, the rates of these, and what happens at them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import IVP, accepts_params
from ..tracing import TracingError, traced

__all__ = ["event_code", "one_number"]


def event_code(problem: IVP) -> list[str]:
    """Functions and tables that ``events.c`` works on; none without events."""
    events = problem.events
    if not events:
        return []
    n, p = len(problem.y0), np.asarray(problem.params, dtype=float)

    def together(t: Any, y: Any, p: Any = ()) -> Any:
        return [one_number(f"events[{k}]", e.function, t, y, p) for k, e in enumerate(events)]

    try:
        g = traced(together, n=n, params=p, outputs=len(events))
        code = [
            g.to_c("model_events", "Functions of events"),
            g.jvp().to_c("model_events_along", "Their derivative in a direction"),
            g.time_derivative().to_c("model_events_drift", "Their derivative by time"),
        ]
        code += [
            traced(_reset_of(event.reset), n=n, params=p).to_c(f"model_reset_{k}", "A reset")
            for k, event in enumerate(events)
            if event.reset is not None
        ]
    except TracingError as error:
        raise TracingError(
            f"events: g and reset become C, but one of them cannot be traced: {error}"
        ) from error
    cases = "".join(
        f"    if (k == {k}) {{ model_reset_{k}(t, y, p, out); return; }}\n"
        for k, event in enumerate(events)
        if event.reset is not None
    )
    numbers = {
        "int DIRECTION": [int(np.sign(event.direction)) for event in events],
        "long TERMINAL": [int(event.terminal) for event in events],
        "bool RESETS": [int(event.reset is not None) for event in events],
    }
    tables = [
        f"static const {name}[] = {{{', '.join(map(str, values))}}};"
        for name, values in numbers.items()
    ]
    signature = "int k, double t, const double *y, const double *p, double *out"
    reset = f"static void model_reset({signature})\n{{\n{cases}    (void)k; (void)t; (void)p;\n"
    reset += "    for (int i = 0; i < N; i++) out[i] = y[i];\n}\n"
    return [*code, "\n".join(["#include <stdbool.h>", *tables, reset])]


def one_number(what: str, law: Any, t: Any, y: Any, p: Any) -> Any:
    """One number of g(t, y) or g(t, y, p)."""
    value = _called(law, t, y, p)
    if np.size(value) != 1:
        raise ValueError(f"{what}: expected one number of each, received shape {np.shape(value)}")
    return np.reshape(value, -1)[0]


def _called(law: Any, t: Any, y: Any, p: Any) -> Any:
    return law(t, y, p) if np.size(p) and accepts_params(law) else law(t, y)


def _reset_of(reset: Any) -> Any:
    def after(t: Any, y: Any, p: Any = ()) -> Any:
        return _called(reset, t, y, p)

    return after
