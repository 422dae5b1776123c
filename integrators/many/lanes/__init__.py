"""Runs side by side in the lanes of SIMD registers: their loop, their code, what follows."""
