"""The files of an FMU besides its code: what variables it has, and how to build it elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

__all__ = ["Variable", "build_description", "model_description"]


@dataclass(frozen=True)
class Variable:
    """A variable: name, value reference, what it is for, and its start.

    `causality` is "output", "local", "parameter" or "input"; `derivative` the reference of the
    state of which this is the rate; `indicates` says that its changes of sign are events.
    """

    name: str
    reference: int
    causality: str
    start: float | None = None
    derivative: int | None = None
    unit: str = ""
    indicates: bool = False

    def text(self) -> str:
        """As an element."""
        variability = "tunable" if self.causality == "parameter" else "continuous"
        given = {
            "name": self.name,
            "valueReference": str(self.reference),
            "causality": self.causality,
            "variability": variability,
        }
        if self.start is None:
            given["initial"] = "calculated"
        elif self.causality != "input":
            given["initial"] = "exact"
        if self.start is not None:
            given["start"] = repr(self.start)
        if self.derivative is not None:
            given["derivative"] = str(self.derivative)
        if self.unit:
            given["unit"] = self.unit
        return f"    <Float64{_attributes(given)}/>"


def _attributes(given: dict[str, str]) -> str:
    return "".join(f" {key}={quoteattr(value)}" for key, value in given.items())


#: Exponents of SI units.
UNITS = {
    "rad": 'rad="1"', "m": 'm="1"', "rad/s": 'rad="1" s="-1"', "m/s": 'm="1" s="-1"',
    "N": 'kg="1" m="1" s="-2"', "N.m": 'kg="1" m="2" s="-2"', "J": 'kg="1" m="2" s="-2"',
}  # fmt: skip


def model_description(
    name: str,
    identifier: str,
    token: str,
    description: str,
    span: tuple[float, float],
    rtol: float,
    variables: Sequence[Variable],
) -> str:
    """Text of modelDescription.xml."""
    used = sorted({v.unit for v in variables if v.unit})
    top = {
        "fmiVersion": "3.0",
        "modelName": name,
        "instantiationToken": token,
        "description": description,
        "generationTool": "featherstep",
        "variableNamingConvention": "structured" if _structured(variables) else "flat",
    }
    able = 'canGetAndSetFMUState="true" canSerializeFMUState="true"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<fmiModelDescription{_attributes(top)}>"]
    projects = ' needsCompletedIntegratorStep="true"'
    lines.append(f"  <ModelExchange modelIdentifier={quoteattr(identifier)} {able}{projects}/>")
    steps = 'canHandleVariableCommunicationStepSize="true"'
    if any(v.indicates for v in variables):
        steps += ' hasEventMode="true" mightReturnEarlyFromDoStep="true"'
    lines.append(f"  <CoSimulation modelIdentifier={quoteattr(identifier)} {able} {steps}/>")
    if used:
        lines.append("  <UnitDefinitions>")
        lines += [f'    <Unit name="{u}"><BaseUnit {UNITS[u]}/></Unit>' for u in used]
        lines.append("  </UnitDefinitions>")
    start, stop = span
    lines.append(
        f'  <DefaultExperiment startTime="{start!r}" stopTime="{stop!r}" tolerance="{rtol!r}"/>'
    )
    lines += ["  <ModelVariables>"]
    lines.append(
        '    <Float64 name="time" valueReference="0" causality="independent" '
        'variability="continuous"/>'
    )
    lines += [variable.text() for variable in variables]
    lines += ["  </ModelVariables>", "  <ModelStructure>"]
    for variable in variables:
        if variable.causality == "output":
            lines.append(f'    <Output valueReference="{variable.reference}"/>')
    rates = [v for v in variables if v.derivative is not None]
    lines += [f'    <ContinuousStateDerivative valueReference="{v.reference}"/>' for v in rates]
    calculated = [v for v in variables if v.start is None and not v.indicates]
    lines += [f'    <InitialUnknown valueReference="{v.reference}"/>' for v in calculated]
    indicators = [v for v in variables if v.indicates]
    lines += [f'    <EventIndicator valueReference="{v.reference}"/>' for v in indicators]
    lines += ["  </ModelStructure>", "</fmiModelDescription>", ""]
    return "\n".join(lines)


def _structured(variables: Sequence[Variable]) -> bool:
    """Whether all names follow the structured convention: identifiers with dots, der(…)."""
    import re

    part = r"[A-Za-z_]\w*(\[\d+(,\d+)*\])?"
    name = rf"(der\()?{part}(\.{part})*(,\d+)?\)?"
    return all(re.fullmatch(name, v.name, re.ASCII) for v in variables)


def build_description(identifier: str) -> str:
    """Text of sources/buildDescription.xml: one file of C99, and the mathematics library."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiBuildDescription fmiVersion="3.0">
  <BuildConfiguration modelIdentifier={quoteattr(identifier)}>
    <SourceFileSet language="C99">
      <SourceFile name="{identifier}.c"/>
    </SourceFileSet>
    <Library name="m" external="true"/>
  </BuildConfiguration>
</fmiBuildDescription>
"""
