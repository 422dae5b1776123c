"""Machine code: LLVM's language as text, the compiler, vector functions, objects kept on disk.

Imports the graph and what it is made of, nothing above.
"""
