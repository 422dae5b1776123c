"""Problems as Functional Mock-up Units (FMI 3.0), for other simulation programs.

An FMU written here is C source of the traced right-hand side within one file, compiled if there is
a compiler, for model exchange and for co-simulation. It needs neither Python nor this package where
it runs. (Modelica Association: Functional Mock-up Interface Specification, version 3.0.)
"""

from .export import export_fmu

__all__ = ["export_fmu"]
