"""Forward dynamics by one sparse system: six unknowns a body, for trees and loops (book, §8.13).

    [ I     P T ] [  a ]   [ P T_a τ + f − v ×* I v ]
    [ TᵀPᵀ  −ε  ] [ −λ ] = [ Tᵀ c ]                        (Eq 8.64)

P is the incidence matrix of all joints, those of the tree and those of the loops: each joint has
at most four blocks, so the matrix has O(N) entries, whatever the loops do. Where the graph has a
narrow ordering, as a tree or a ladder has, the factors are O(N), too; the inertia matrix H of any
spanning tree of a ladder has O(N²) entries.

Accelerations of bodies are in their own coordinates, with that of the base standing for gravity,
so that neither a distant origin nor a large weight costs digits. ε makes the matrix quasi-definite,
redundant constraints or not; steps of iterative refinement take its effect away from the
accelerations. What the pattern is, and in which order elimination fills in least, is found once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.inertia import RigidInertia
from ...checks import Array, ArrayLike
from ..functions import _run_elements
from ..loops.closed_loop import _run_closure, check_stabilisation
from ..storage.loading import ForcesLike, load_forces, load_given, load_vector
from ..storage.workspace import HAVE_FORCES, TreeWorkspace

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["SparseDynamics", "SparseMotion"]

#: ε relative to the inverse of the mean entry of the inertias.
REGULARISATION = 1e-10
#: Steps of iterative refinement; each reduces what ε does by several digits.
REFINEMENTS = 5


@dataclass(frozen=True)
class SparseMotion:
    """Solution of the sparse system.

    Attributes
    ----------
    accelerations
        v̇, as :func:`~multibody.FD` and ``constrained_accelerations`` return it.
    multipliers
        λ of the loop constraints; zero for those that can never act.
    """

    accelerations: Array
    multipliers: Array


class SparseDynamics:
    """Sparse forward dynamics of one model; keeps pattern and ordering between calls.

    Parameters
    ----------
    model
        A tree, with or without loops.

    Attributes
    ----------
    size
        Number of unknowns, 6 N_B + Σ (6 − n_i) + n^c.
    nonzeros, factor_nonzeros
        Entries of the matrix, and of its factors after the last call.

    Examples
    --------
    >>> from multibody import constrained_accelerations, mechanisms
    >>> entry = mechanisms.entry("ladder")
    >>> model = entry.model()
    >>> q, v = entry.start(model)
    >>> a = SparseDynamics(model)(q, v).accelerations
    >>> np.allclose(a, constrained_accelerations(model, q, v).accelerations, atol=1e-11)
    True
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        tree = model.tree
        n = model.n_bodies
        self.parent = tree.arrays["parent"]
        self.inertia = np.array(
            [RigidInertia._of(row).matrix() for row in tree.arrays["inertia"]]
        ).reshape(n, 6, 6)
        self.armature = [body.armature for body in model.bodies]
        self.fixed_S = [
            bool(body.joint.units) and not (body.reverse and not body.joint.is_axial)
            for body in model.bodies
        ]
        self.acting = tree.acting_rows if model.bonds else np.zeros(0, dtype=int)
        at = tree.arrays["loop_at"]
        bond = np.repeat(np.arange(len(model.bonds)), np.diff(at))[self.acting]
        self.loop_of = bond[bond < len(model.loops)]
        # Constraints by functions come last: for each row the bodies whose joints it takes.
        self.stated = [
            [i for i, place in enumerate(model.v_index) if tree.reach[r, place].any()]
            for r in self.acting[len(self.loop_of) :]
        ]
        sizes = [6 - body.joint.nv for body in model.bodies]
        self.joint_at = 6 * n + np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self.loop_at = int(self.joint_at[-1])
        self.size = self.loop_at + len(self.acting)
        self._order: Array | None = None  # elimination order, found at the first call
        self.factor_nonzeros = 0
        mean = float(np.abs(self.inertia).sum() / max(np.count_nonzero(self.inertia), 1))
        self.epsilon = REGULARISATION / mean
        self._analyse()

    # ------------------------------------------------------------------ pattern

    def _analyse(self) -> None:
        """Places of all entries in compressed columns, in the order in which they are made."""
        rows, columns = [], []

        def block(i: int, j: int, height: int, width: int) -> None:
            a, b = np.meshgrid(np.arange(i, i + height), np.arange(j, j + width), indexing="ij")
            rows.append(a.ravel())
            columns.append(b.ravel())

        for i, p in enumerate(self.parent):
            block(6 * i, 6 * i, 6, 6)
            m = self.joint_at[i + 1] - self.joint_at[i]
            block(6 * i, self.joint_at[i], 6, m)
            block(self.joint_at[i], 6 * i, m, 6)
            if p >= 0:
                block(6 * p, self.joint_at[i], 6, m)
                block(self.joint_at[i], 6 * p, m, 6)
                if self.armature[i].any():
                    block(6 * i, 6 * p, 6, 6)
                    block(6 * p, 6 * i, 6, 6)
                    block(6 * p, 6 * p, 6, 6)
        arrays = self.model.tree.arrays
        for r, l in enumerate(self.loop_of):
            for body in (arrays["loop_s"][l], arrays["loop_p"][l]):
                if body >= 0:
                    block(6 * body, self.loop_at + r, 6, 1)
                    block(self.loop_at + r, 6 * body, 1, 6)
        for r, bodies in enumerate(self.stated, len(self.loop_of)):
            for body in self._with_parents(bodies):
                block(6 * body, self.loop_at + r, 6, 1)
                block(self.loop_at + r, 6 * body, 1, 6)
        diagonal = np.arange(6 * self.model.n_bodies, self.size)  # of −ε
        rows.append(diagonal)
        columns.append(diagonal)
        key = np.concatenate(columns) * self.size + np.concatenate(rows)
        unique, self._place = np.unique(key, return_inverse=True)
        self._rows = unique % self.size
        self._starts = np.searchsorted(unique // self.size, np.arange(self.size + 1))
        self.nonzeros = len(unique)

    def _with_parents(self, bodies: list[int]) -> list[int]:
        found = [j for i in bodies for j in (i, int(self.parent[i])) if j >= 0]
        return sorted(set(found))

    def _matrix(self, values: list[Array]) -> Any:
        from scipy.sparse import csc_matrix

        flat = np.concatenate([x.ravel() for x in values])
        data = np.bincount(self._place, weights=flat, minlength=self.nonzeros)
        return csc_matrix((data, self._rows, self._starts), shape=(self.size, self.size))

    # ------------------------------------------------------------------ one evaluation

    def system(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike | None = None,
        f_ext: ForcesLike = None,
        *,
        t: float = 0.0,
        alpha: float = 0.0,
        beta: float | None = None,
    ) -> tuple[Any, Array, list[Array], list[Array]]:
        """Matrix (with −ε) and right-hand side; transforms from parents and T_a of the joints."""
        model = self.model
        alpha, beta = check_stabilisation(alpha, beta)
        w = load_given(model, q, v, t)
        load_vector(model, "tau", tau, w.tau)
        joint_force = w.tau.copy()
        load_forces(model, w, f_ext)
        if model.tree.has_elements:
            _run_elements(w)
            joint_force += w.u
        _run_closure(w)
        values: list[Array] = []
        right = np.zeros(self.size)
        X, T_active = _transforms(w), []
        self._bodies(w, right)
        base = np.array(w.gravity)
        for i, p in enumerate(self.parent):
            at = slice(int(w.v_at[i]), int(w.v_at[i + 1]))
            S = w.S[at].T
            T, T_a = self._bases(i, S)
            T_active.append(T_a)
            c, A = w.c[i], np.diag(self.armature[i])
            rows = slice(self.joint_at[i], self.joint_at[i + 1])
            right[rows] = T.T @ c
            # Armature A v̇ is taken from the active force, v̇ = T_aᵀ(a − X a_λ − c).
            heavy = T_a @ A @ T_a.T
            active = T_a @ joint_force[at] + heavy @ c
            right[6 * i : 6 * i + 6] += active
            values += [self.inertia[i] + heavy, T, T.T]
            if p >= 0:
                carried = X[i].T @ T
                values += [-carried, -carried.T]
                right[6 * p : 6 * p + 6] -= X[i].T @ active
                if self.armature[i].any():
                    values += [-heavy @ X[i], -X[i].T @ heavy, X[i].T @ heavy @ X[i]]
            else:
                right[rows] += T.T @ (X[i] @ base)
                right[6 * i : 6 * i + 6] += heavy @ (X[i] @ base)
        values += self._loops(w, right, alpha, beta)
        values += self._stated(w, right, X, T_active)
        values.append(np.full(self.size - 6 * model.n_bodies, -self.epsilon))
        return self._matrix(values), right, X, T_active

    def _bases(self, i: int, S: Array) -> tuple[Array, Array]:
        """T with TᵀS = 0, and T_a with T_aᵀS = 1."""
        if self.fixed_S[i]:
            units = list(self.model.bodies[i].joint.units)
            rest = [k for k in range(6) if k not in units]
            return np.eye(6)[:, rest], np.eye(6)[:, units]
        full = np.linalg.qr(S, mode="complete")[0] if S.shape[1] else np.eye(6)
        return full[:, S.shape[1] :], np.linalg.pinv(S).T if S.shape[1] else S

    def _bodies(self, w: TreeWorkspace, right: Array) -> None:
        """f − v ×* I v of all bodies."""
        n = self.model.n_bodies
        momentum = np.einsum("iab,ib->ia", self.inertia, w.vel)
        force = np.empty((n, 6))
        omega, u = w.vel[:, :3], w.vel[:, 3:]
        force[:, :3] = -np.cross(omega, momentum[:, :3]) - np.cross(u, momentum[:, 3:])
        force[:, 3:] = -np.cross(omega, momentum[:, 3:])
        if w.switches[HAVE_FORCES]:
            force += _to_bodies(w, np.arange(n), w.f_ext)
            if len(w.springs):
                force[:, :3] += np.einsum("iab,ib->ia", w.E_0, w.spring_force[:, :3])
                force[:, 3:] += np.einsum("iab,ib->ia", w.E_0, w.spring_force[:, 3:])
        right[: 6 * n] = force.ravel()

    def _loops(self, w: TreeWorkspace, right: Array, alpha: float, beta: float) -> list[Array]:
        """Entries of the loop constraints: T on the successor, −T on the predecessor."""
        values: list[Array] = []
        if not len(self.acting):
            return values
        rate = w.K[self.acting] @ w.v - w.nu[self.acting]
        target = w.gamma[self.acting] - 2.0 * alpha * rate - beta**2 * w.delta[self.acting]
        right[self.loop_at :] = target
        T = w.T_0[self.acting[: len(self.loop_of)]]
        sides, here_at = [], slice(self.loop_at, self.loop_at + len(T))
        for name, sign in (("loop_s", 1.0), ("loop_p", -1.0)):
            bodies = getattr(w, name)[self.loop_of]
            here = np.zeros_like(T)
            real = bodies >= 0
            here[real] = sign * _to_bodies(w, bodies[real], T[real])
            # What the constraint sees of accelerations at v̇ = 0 is in γ already. The base's
            # acceleration, which stands for gravity, is seen by both sides alike.
            right[here_at][real] += np.einsum("ra,ra->r", here[real], w.acc[bodies[real]])
            right[here_at] += np.where(real, sign * (T @ np.array(w.gravity)), 0.0)
            sides.append((bodies, here))
        for r in range(len(T)):
            for bodies, here in sides:
                if bodies[r] >= 0:
                    values += [here[r], here[r]]
        return values

    def _stated(
        self, w: TreeWorkspace, right: Array, X: list[Array], T_active: list[Array]
    ) -> list[Array]:
        """Entries of constraints on joints: K v̇ with v̇ = T_aᵀ(a − X a_λ − c)."""
        values: list[Array] = []
        base, model = np.array(w.gravity), self.model
        for r, bodies in enumerate(self.stated, len(self.loop_of)):
            entries = {i: np.zeros(6) for i in self._with_parents(bodies)}
            for i in bodies:
                row = T_active[i] @ w.K[self.acting[r], model.v_index[i]]
                entries[i] += row
                right[self.loop_at + r] += row @ w.c[i]
                if self.parent[i] >= 0:
                    entries[int(self.parent[i])] -= X[i].T @ row
                else:
                    right[self.loop_at + r] += row @ (X[i] @ base)
            for i in entries:
                values += [entries[i], entries[i]]
        return values

    def __call__(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike | None = None,
        f_ext: ForcesLike = None,
        *,
        t: float = 0.0,
        alpha: float = 0.0,
        beta: float | None = None,
    ) -> SparseMotion:
        """Accelerations and multipliers; parameters as in ``constrained_accelerations``."""
        matrix, right, X, T_active = self.system(q, v, tau, f_ext, t=t, alpha=alpha, beta=beta)
        x = self._solve(matrix, right)
        model, n = self.model, self.model.n_bodies
        a = x[: 6 * n].reshape(n, 6)
        w = model.tree.workspace
        v_dot = np.empty(model.nv)
        base = np.array(w.gravity)
        for i, p in enumerate(self.parent):
            above = X[i] @ (a[p] if p >= 0 else base)
            v_dot[model.v_index[i]] = T_active[i].T @ (a[i] - above - w.c[i])
        lam = np.zeros(int(model.tree.arrays["loop_at"][-1]))
        lam[self.acting] = -x[self.loop_at :]
        return SparseMotion(v_dot, lam)

    def _solve(self, matrix: Any, right: Array) -> Array:
        """Factorise in the order found at the first call, and refine."""
        from scipy.sparse.linalg import splu

        if self._order is None:
            first = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
                         options={"SymmetricMode": True})  # fmt: skip
            self._order = np.argsort(first.perm_c)
        order = self._order
        turned = matrix[order][:, order]
        factors = splu(turned.tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0.0,
                       options={"SymmetricMode": True})  # fmt: skip
        self.factor_nonzeros = int(factors.L.nnz + factors.U.nnz)
        x, rest = np.zeros(self.size), right.copy()
        lower = slice(6 * self.model.n_bodies, None)
        for _ in range(REFINEMENTS):
            step = np.empty(self.size)
            step[order] = factors.solve(rest[order])
            x += step
            rest = right - matrix @ x
            rest[lower] -= self.epsilon * x[lower]  # of the system without ε
        return x


def _transforms(w: TreeWorkspace) -> list[Array]:
    """ⁱX_λ(i) as 6×6 matrices."""
    found = []
    for E, r in zip(w.E, w.r):
        X = np.zeros((6, 6))
        X[:3, :3] = X[3:, 3:] = E
        # −E r×
        X[3:, :3] = -E @ np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])
        found.append(X)
    return found


def _to_bodies(w: TreeWorkspace, bodies: Array, forces: Array) -> Array:
    """Forces in base coordinates, a row each, in coordinates of bodies."""
    E, r = w.E_0[bodies], w.r_0[bodies]
    out = np.empty_like(forces)
    out[:, :3] = np.einsum("iab,ib->ia", E, forces[:, :3] - np.cross(r, forces[:, 3:]))
    out[:, 3:] = np.einsum("iab,ib->ia", E, forces[:, 3:])
    return out
