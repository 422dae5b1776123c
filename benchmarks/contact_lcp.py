"""Contact forces by our LCP kernels and by daqp: 4, 24 and 96 contacts, and random instances.

    python benchmarks/contact_lcp.py            # times, in one process, the least of many
    python benchmarks/contact_lcp.py --random 10000   # against enumeration and clarabel

daqp and clarabel come with the extra `test`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from multibody.contact.lcp import LCPError, enumerate_lcp, solve_lcp


def instance(contacts: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """M = TᵀT and d of a heap: as many freedoms as contacts and a few more."""
    T = rng.standard_normal((contacts + 4, contacts))
    return T.T @ T, rng.standard_normal(contacts)


def least(run: object, repeats: int) -> float:
    """Least time of a call in µs."""
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        run()  # type: ignore[operator]
        best = min(best, time.perf_counter() - begin)
    return 1e6 * best


def times() -> None:
    """Print the times of both."""
    try:
        import daqp
    except ImportError:
        daqp = None
        print("daqp is missing: pip install 'featherstep[test]'")
    rng = np.random.default_rng(1)
    print(f"{'contacts':>8} {'ours':>9} {'warm':>9} {'daqp':>9} {'ratio':>7} {'residual':>9}  µs")
    for n in (4, 24, 96):
        M, d = instance(n, rng)
        found = solve_lcp(M, d)
        repeats = 3000 // n
        ours = least(lambda M=M, d=d: solve_lcp(M, d), repeats)
        warm = least(lambda M=M, d=d, a=found.active: solve_lcp(M, d, start=a), repeats)
        peer = np.nan
        if daqp is not None:
            upper, sense = np.full(n, 1e30), np.zeros(n, dtype=np.int32)
            given = (M, d, np.zeros((0, n)), upper, np.zeros(n), sense)
            z = daqp.solve(*given)[0]
            assert np.abs(z - found.z).max() < 1e-6 * np.abs(z).max()
            peer = least(lambda given=given: daqp.solve(*given), repeats)
        print(
            f"{n:>8} {ours:>9.1f} {warm:>9.1f} {peer:>9.1f} {peer / ours:>7.2f} "
            f"{found.residual:>9.1e}"
        )


def random_instances(count: int) -> int:
    """How many of `count` seeded instances, redundant and infeasible ones among them, are wrong."""
    rng = np.random.default_rng(2)
    wrong = 0
    for k in range(count):
        n = int(rng.integers(1, 8))
        T = rng.standard_normal((int(rng.integers(1, n + 3)), n))
        if k % 2:
            T = T.round(int(rng.integers(0, 3)))  # degenerate
        if k % 5 == 0 and n > 2:
            T[:, 1] = T[:, 0]  # one contact twice
        if k % 7 == 0 and n > 2:
            T[:, 2] = -T[:, 0]  # squeezed
        M = T.T @ T
        d = rng.standard_normal(n) if k % 3 else T.T @ rng.standard_normal(len(T))
        expected = enumerate_lcp(M, d)
        for method in ("auto", "active set", "lemke"):
            try:
                w = solve_lcp(M, d, method=method).w
            except LCPError:
                wrong += bool(expected)
                continue
            scale = max(1.0, float(np.abs(d).max()), float(np.abs(w).max()))
            agrees = bool(expected) and np.abs(M @ expected[0] + d - w).max() <= 1e-8 * scale
            wrong += not agrees
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    if arguments.random:
        print(f"{arguments.random} instances: {random_instances(arguments.random)} wrong")
    else:
        times()
