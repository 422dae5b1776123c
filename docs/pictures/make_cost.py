"""Write docs/cost.md's tables and its two pictures: ``python docs/pictures/make_cost.py``."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import multibody as mb

HERE = Path(__file__).parent
PAGE = HERE.parent / "cost.md"
CHAINS = (2, 3, 6, 7, 8, 9, 12)


def general_chain(n: int) -> mb.Model:
    """Unbranched chain of revolute joints with general parameters, in frames after Denavit."""
    rng = np.random.default_rng(n)
    b = mb.ModelBuilder()
    for i in range(n):
        alpha, a, d = rng.uniform(0.3, 1.2, 3)
        E = mb.rotx(alpha).E
        X = mb.Plucker(E, np.array([a, 0, 0]) + E.T @ [0, 0, d]) if i else mb.Plucker.identity()
        points = rng.standard_normal((5, 3))
        points -= points.mean(axis=0)
        I = np.trace(points.T @ points) * np.eye(3) - points.T @ points
        b.add_body(f"link{i}", i, mb.Revolute(), X, mb.Inertia(1.0, rng.standard_normal(3), I))
    return b.build()


def published_table() -> str:
    """Table 10.1 at some sizes."""
    from multibody.dynamics.numerics.cost import PUBLISHED

    lines = ["| algorithm | source | " + " | ".join(f"n = {n}" for n in CHAINS) + " |"]
    lines.append("|---" * (2 + len(CHAINS)) + "|")
    for name, rows in PUBLISHED.items():
        for k, (_, _, source) in enumerate(rows):
            totals = [str(mb.published_cost(name, n, k).total) for n in CHAINS]
            lines.append(f"| `{name}` | {source} | " + " | ".join(totals) + " |")
    return "\n".join(lines)


def counted_table() -> str:
    """What the traced kernels take, before and after `simplify`, beside the best published."""
    lines = ["| n | algorithm | published | counted | simplified model |", "|---|---|---|---|---|"]
    for n in (2, 6, 7, 9, 12):
        model = general_chain(n)
        less = mb.simplify(model)
        for name in ("rnea", "crba", "factorisation", "factored", "aba"):
            best = mb.published_cost(name, n)
            found = [mb.cost(m, name) for m in (model, less)]
            texts = [f"{c.multiplications}m + {c.additions}a = {c.total}" for c in (best, *found)]
            lines.append(f"| {n} | `{name}` | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def pictures() -> None:
    """Figures 10.4 and 10.5: cost over the number of joints, of chains and of binary trees."""
    n = np.arange(2, 31)
    fig, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    labels = {
        "rnea": "RNEA",
        "crba": "CRBA",
        "factorisation": "factors and solution",
        "factored": "their sum",
        "aba": "ABA",
    }
    for name, label in labels.items():
        width = 2.2 if name in ("factored", "aba") else 1.2
        ax.plot(n, [mb.published_cost(name, int(k)).total for k in n], label=label, lw=width)
    ax.set(xlabel="joints of a chain", ylabel="multiplications and additions", ylim=(0, 33000))
    ax.set_title("Published cost of forward dynamics and its parts")
    ax.legend()
    ax.grid(alpha=0.3)
    fig.savefig(HERE / "cost_chains.png", dpi=100)
    plt.close(fig)
    fig, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    sizes = (3, 7, 15, 31, 63)
    for title, parents in (
        ("chain", lambda k: [i - 1 for i in range(1, k + 1)]),
        ("binary tree", lambda k: [i // 2 for i in range(1, k + 1)]),
    ):
        ax.loglog(
            sizes, [_through_factors(parents(k)) for k in sizes], "o-", label=f"factors, {title}"
        )
    ax.loglog(
        sizes, [mb.published_cost("aba", k).total for k in sizes], "s--", label="ABA, any tree"
    )
    ax.set(xlabel="joints", ylabel="multiplications and additions")
    ax.set_xticks(sizes, [str(k) for k in sizes])
    ax.minorticks_off()
    ax.set_title("What branches save")
    ax.legend()
    ax.grid(alpha=0.3, which="both")
    fig.savefig(HERE / "cost_trees.png", dpi=100)
    plt.close(fig)


def _through_factors(parents: list[int]) -> int:
    depth = [0]
    for parent in parents:
        depth.append(depth[parent] + 1)
    D1 = sum(d - 1 for d in depth[1:])
    D2 = sum(d * (d - 1) // 2 for d in depth[1:])
    rnea = mb.published_cost("rnea", len(parents)).total
    return rnea + mb.branched_cost(parents).total + 5 * D1 + 2 * D2 + len(parents)


def page(text: str) -> str:
    """The page with its tables made anew."""
    for name, table in (("published", published_table()), ("counted", counted_table())):
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)", rf"\g<1>{table}\n\g<2>", text, flags=re.DOTALL
        )
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    pictures()
