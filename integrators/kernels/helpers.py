"""How kernels that are called by other kernels are compiled: once, with whoever calls them.

numba makes machine code of every function on its way, so that Python could call it, and optimises
it anew wherever it is linked in: half of the time that a C function of thirty helpers takes. Here
helpers stay what they are, and the optimiser and the code generator see them once.

Imported when a kernel must be compiled, never before, because it needs numba.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import NativeLowering

__all__ = ["HelperCompiler"]


class HelperLibrary(JITCodeLibrary):
    """Code of a helper, to be linked into that of a C function."""

    def _optimize_final_module(self) -> None:
        """Leave it to who links this in."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=False)
class Announce(LoweringPass):
    """Tell other functions where the helper's code is."""

    _name = "announce_helper"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Enter the helper under something that numba takes for a function of Python's."""
        key: Any = [].append
        state.targetctx.insert_user_function(key, state.cr.fndesc, [state.library])
        state["cr"] = state.cr._replace(cfunc=key)
        return True


class HelperCompiler(Compiler):
    """numba's compiler without its last steps."""

    def __init__(
        self,
        typingctx: Any,
        targetctx: Any,
        library: Any,
        args: Any,
        return_type: Any,
        flags: Any,
        locals: Any,
    ) -> None:
        library = HelperLibrary(targetctx.codegen(), "helper")
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)
        self.state.flags.no_compile = True
        self.state.flags.no_cpython_wrapper = True
        self.state.flags.no_cfunc_wrapper = True

    def define_pipelines(self) -> Any:
        """Return numba's passes, and one more."""
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.add_pass_after(Announce, NativeLowering)
            pipeline.finalize()
        return pipelines
