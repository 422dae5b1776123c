"""Connectivity: the book's figures, sets and their identities, trees counted two ways, building."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multibody import (
    FD,
    Fixed,
    Free,
    Inertia,
    ModelBuilder,
    Planar,
    Pose,
    Prismatic,
    RackPinion,
    Revolute,
    Spherical,
    Universal,
    body_jacobian,
    crba,
    energy,
    kinematics,
    rod,
)
from multibody.algebra.orientation.rotations import exp
from multibody.model.graph import Graph, Topology, count_numberings, regular_order

# Poses and forces below are of order one and pass through a dozen operations.
ROUNDING = 1e-12

CRANK_SLIDER = {
    "crank pin": ("base", "crank"),
    "big end": ("crank", "rod"),
    "small end": ("rod", "slider"),
    "guide": ("base", "slider"),
}

# Book, Fig 4.6; λ(7) is lost in the source and does not enter what is asserted of it.
FIG_4_6 = Topology.from_parents([0, 1, 1, 0, 3, 4, 4, 4], reverse={4})


def random_parents(rng, n):
    return [int(rng.integers(0, i)) for i in range(1, n + 1)]


parent_arrays = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*[st.integers(0, i - 1) for i in range(1, n + 1)])
)


@st.composite
def graphs(draw):
    """Connected graphs of up to five bodies with up to three loops, joints in any direction."""
    parents = draw(
        st.integers(1, 5).flatmap(
            lambda n: st.tuples(*[st.integers(0, i - 1) for i in range(1, n + 1)])
        )
    )
    n = len(parents)
    ends = [(p, i) for i, p in enumerate(parents, 1)]
    for _ in range(draw(st.integers(0, 3))):
        p = draw(st.integers(0, n))
        ends.append((p, draw(st.integers(0, n).filter(lambda s, p=p: s != p))))
    ends = draw(st.permutations(ends))
    names = ["base", *"abcde"]
    flips = draw(st.lists(st.booleans(), min_size=len(ends), max_size=len(ends)))
    return Graph(
        {
            f"j{k}": (names[s], names[p]) if flip else (names[p], names[s])
            for k, ((p, s), flip) in enumerate(zip(ends, flips))
        }
    )


# ---------------------------------------------------------------------- the book's figures


def test_crank_slider_has_four_trees_and_eight_numberings():
    graph = Graph(CRANK_SLIDER)
    assert graph.n_loops == 1
    trees = list(graph.spanning_trees())
    assert len(trees) == len(set(trees)) == graph.count_spanning_trees() == 4
    numberings = list(graph.numberings())
    assert len(set(numberings)) == 8
    by_tree = Counter(n.joints[3] for n in numberings)  # by the joint that closes the loop
    assert by_tree == {"crank pin": 1, "guide": 1, "big end": 3, "small end": 3}
    assert {n.parents for n in numberings} == {(0, 1, 2), (0, 0, 1), (0, 0, 2), (0, 1, 0)}


def test_figure_4_5():
    """Two numberings of the crank-slider: the chain, and the one of least depth."""
    graph = Graph(CRANK_SLIDER)
    assert graph.spanning_tree(loops=["guide"]).parents == (0, 1, 2)
    short = graph.spanning_tree(order=["crank", "slider", "rod"])
    assert short.parents == (0, 0, 1)
    assert short.joints[-1] == "small end"
    assert short.depth == 2


def test_figure_4_6():
    t = FIG_4_6
    assert [set(t.kappa(i)) for i in (1, 2, 3, 8)] == [{1}, {1, 2}, {1, 3}, {4, 8}]
    assert t.mu(0) == (1, 4)
    assert t.mu(1) == (2, 3)
    assert t.nu(1) == (1, 2, 3, 5)
    assert t.nu(0) == tuple(range(9))
    assert [i for i in range(1, 9) if t.is_reversed(i)] == [4]
    assert (t.predecessors[3], t.successors[3], t.parent(4)) == (4, 0, 0)


def test_clusters_of_figure_8_1():
    """§8.9: loops 1 and 2 share joints among 3–7; loops 3 and 4 are on their own."""
    parents = [0, 1, 2, 3, 4, 3, 6, 2, 8, 9, 10, 9, 1, 13, 13, 15, 0, 17, 18, 18]
    loops = [(5, 2), (5, 7), (11, 12), (19, 20)]
    t = Topology.from_parents(parents, loops)
    assert [t.loop_root(k) for k in (1, 2, 3, 4)] == [2, 3, 9, 18]
    assert [(c.loops, c.joints) for c in t.loop_clusters()] == [
        ((1, 2), (3, 4, 5, 6, 7)),
        ((3,), (10, 11, 12)),
        ((4,), (19, 20)),
    ]


def test_a_joint_without_freedom_couples_no_loops():
    t = Topology.from_parents([0, 1, 2, 1], [(3, 0), (4, 0)])
    assert [c.loops for c in t.loop_clusters()] == [(1, 2)]
    assert [c.loops for c in t.loop_clusters([0, 1, 1, 1])] == [(1,), (2,)]


# ---------------------------------------------------------------------- identities of the sets


@given(parent_arrays)
def test_sets(parents):
    t = Topology.from_parents(parents)
    n = t.n_bodies
    everybody = range(1, n + 1)
    for i in everybody:
        assert set(t.mu(i)) <= set(t.nu(i))
        assert t.kappa(i) == (*t.kappa(t.parent(i)), i)
        assert t.depths[i - 1] == len(t.kappa(i))
        for j in everybody:
            assert (j in t.kappa(i)) == (i in t.nu(j)) == bool(t.epsilon()[i - 1, j - 1])
    # Eq 4.3: the order of summation over paths can be swapped.
    x = np.random.default_rng(n).integers(-9, 9, (n, n))
    outer = sum(x[i - 1, j - 1] for i in everybody for j in t.kappa(i))
    inner = sum(x[i - 1, j - 1] for j in everybody for i in t.nu(j))
    assert outer == inner == np.sum(x * t.epsilon())
    # §10.3 and Table 6.4 for joints of one freedom
    assert n - t.D0 == parents.count(0)
    assert t.epsilon().sum() - n == t.D1 <= n * (t.depth - 1)
    assert t.expanded_parents([1] * n).tolist() == list(parents)
    assert Graph.of(_Model(parents)).spanning_tree(order=t.bodies).parents == tuple(parents)


class _Body:
    def __init__(self, name, parent):
        self.name, self.parent, self.reverse = name, parent, False


class _Model:
    loops = ()

    def __init__(self, parents):
        self.bodies = [_Body(str(i), p) for i, p in enumerate(parents, 1)]


def test_expanded_parents_with_several_freedoms_and_none():
    t = Topology.from_parents([0, 1, 1, 2, 2, 3])  # Table 6.4's example
    assert t.expanded_parents([1, 3, 1, 1, 1, 1]).tolist() == [0, 1, 2, 3, 1, 4, 4, 5]
    # The printed algorithm gives variable 3 the parent 2 here.
    assert Topology.from_parents([0, 0, 1, 3, 2]).expanded_parents([1, 1, 0, 1, 1]).tolist() == [
        0,
        0,
        1,
        2,
    ]
    with pytest.raises(ValueError, match="one number for each of 6 tree joints"):
        t.expanded_parents([1, 2])


def test_jacobian_has_the_columns_of_kappa():
    rng = np.random.default_rng(3)
    b = ModelBuilder()
    parents = random_parents(rng, 8)
    for i, p in enumerate(parents, 1):
        b.add_body(
            f"b{i}", p, Revolute(rng.normal(size=3)), rng.normal(size=3), Inertia(1, I_com=1)
        )
    model = b.build()
    t = Topology.of(model)
    q = model.random(rng)
    for i in range(1, 9):
        J = body_jacobian(model, q, i)
        assert tuple(np.flatnonzero(np.abs(J).max(axis=0)) + 1) == t.kappa(i)


# ---------------------------------------------------------------------- spanning trees


@given(graphs())
def test_all_trees_and_numberings(graph):
    trees = [frozenset(t) for t in graph.spanning_trees()]
    assert len(trees) == len(set(trees)) == graph.count_spanning_trees()
    numberings = list(graph.numberings())
    assert len(numberings) == len(set(numberings))
    expected = 0
    for tree in trees:
        t = graph.spanning_tree(tree=tree)
        assert set(t.joints[: t.n_bodies]) == tree
        names = ("base", *t.bodies)
        expected += count_numberings({b: names[p] for b, p in zip(t.bodies, t.parents)})
    assert len(numberings) == expected


@given(graphs())
def test_tree_of_least_depth(graph):
    """No other spanning tree brings any body closer to the base."""

    def depths(topology):
        return dict(zip(topology.bodies, topology.depths))

    chosen = depths(graph.spanning_tree())
    for tree in graph.spanning_trees():
        other = depths(graph.spanning_tree(tree=tree))
        assert all(chosen[body] <= other[body] for body in graph.bodies)


@given(graphs(), st.data())
def test_prescribed_joints(graph, data):
    tree = data.draw(st.sampled_from(list(graph.spanning_trees())))
    kept = data.draw(st.sets(st.sampled_from(tree)))
    cut = data.draw(st.sets(st.sampled_from(list(graph.joints)))) - set(tree)
    t = graph.spanning_tree(tree=kept, loops=cut)
    assert kept <= set(t.joints[: t.n_bodies])
    assert cut <= set(t.joints[t.n_bodies :])
    names = ("base", *t.bodies)
    for name, p, s in zip(t.joints, t.predecessors, t.successors):
        assert graph.joints[name] == (names[p], names[s])
    for loop in range(1, t.n_loops + 1):
        one, other = t.loop_sides(loop)
        assert not set(one) & set(other)
        p, s = t.predecessors[t.n_bodies + loop - 1], t.successors[t.n_bodies + loop - 1]
        root = t.kappa(t.loop_root(loop))
        assert (t.kappa(p), t.kappa(s)) == ((*root, *one), (*root, *other))


def test_order_is_kept_where_it_is_regular():
    parents = {"c": "base", "a": "c", "d": "base", "b": "a"}
    assert regular_order(parents) == ["c", "a", "d", "b"]
    assert regular_order({"b": "a", "d": "base", "a": "base"}) == ["d", "a", "b"]
    rng = np.random.default_rng(5)
    for n in (1, 7, 40):
        above = random_parents(rng, n)
        names = rng.permutation(n + 1)
        tree = {str(names[i]): str(names[p]) for i, p in enumerate(above, 1)}
        tree = {b: "base" if p == str(names[0]) else p for b, p in tree.items()}
        shuffled = {name: tree[name] for name in rng.permutation(list(tree))}
        order = regular_order(shuffled)
        assert sorted(order) == sorted(tree)
        assert all(p == "base" or order.index(p) < order.index(name) for name, p in tree.items())


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("joints", "bodies", "message"),
    [
        ({"j": ("base", "a"), "k": ("b", "c")}, None, "'b', 'c' hang in the air.*Free joint"),
        ({"j": ("base", "a")}, ["a", "b"], "'b' hangs in the air"),
        ({"j": ("base", "arn")}, ["arm"], "joint 'j': no body is named 'arn'; did you mean 'arm'"),
        ({"j": ("a", "a")}, None, "two different bodies, received 'a' twice"),
        ({}, None, "at least one body"),
    ],
)
def test_bad_graphs(joints, bodies, message):
    with pytest.raises(ValueError, match=message):
        Graph(joints, bodies)


def test_bad_trees():
    graph = Graph(CRANK_SLIDER)
    with pytest.raises(ValueError, match="form a ring"):
        graph.spanning_tree(tree=list(CRANK_SLIDER))
    with pytest.raises(ValueError, match="no tree reaches"):
        graph.spanning_tree(loops=["crank pin", "guide"])
    with pytest.raises(ValueError, match="did you mean 'guide'"):
        graph.spanning_tree(tree=["gide"])
    with pytest.raises(ValueError, match="in the tree and close a loop"):
        graph.spanning_tree(tree=["guide"], loops=["guide"])
    with pytest.raises(ValueError, match=r"each of .* once"):
        graph.spanning_tree(order=["rod"])
    with pytest.raises(ValueError, match="lower number"):
        graph.spanning_tree(order=["rod", "slider", "crank"])


def test_bad_topologies():
    with pytest.raises(ValueError, match=r"joint 2 .*connects bodies 3 and 2.*lower number"):
        Topology.from_parents([0, 3, 1])
    with pytest.raises(ValueError, match="two different numbers between 0 and 1"):
        Topology.from_parents([0], [(1, 1)])
    with pytest.raises(ValueError, match="at least one body"):
        Topology((), (), (), ())
    with pytest.raises(ValueError, match="no body has number 9"):
        FIG_4_6.kappa(9)
    with pytest.raises(ValueError, match="no loop has number 1; there are 0"):
        FIG_4_6.loop_root(1)


def test_bad_parents():
    with pytest.raises(
        ValueError, match="hand: its parent 'amr' does not exist; did you mean 'arm'"
    ):
        regular_order({"arm": "base", "hand": "amr"})
    with pytest.raises(ValueError, match="a → c → b → a; hang one of them on the base"):
        regular_order({"a": "c", "b": "a", "c": "b", "d": "base", "e": "a"})


# ---------------------------------------------------------------------- building from a graph


def random_pose(rng):
    return Pose(exp(rng.normal(size=3)), rng.normal(size=3))


def some_inertia(rng):
    second = rng.uniform(0.1, 1.0, 3)
    return Inertia(rng.uniform(0.5, 2.0), rng.normal(size=3), second.sum() - second)


def test_frames_and_directions_are_found():
    """Joints anywhere on their bodies, met from either side: closure, frames and energy agree.

    Each joint, wherever the tree runs, must hold its frames in the relation that its law says.
    """
    rng = np.random.default_rng(11)
    joints = {
        "j1": ("base", "a", Revolute("x")),
        "j2": ("b", "a", RackPinion(0.3)),  # met from its successor
        "j3": ("b", "c", Spherical()),
        "j4": ("d", "base", Planar("y")),  # met from its successor
        "j5": ("d", "e", Universal()),
        "j6": ("e", "c", Fixed()),
    }
    frames = {name: (random_pose(rng), random_pose(rng)) for name in joints}
    inertias = {name: some_inertia(rng) for name in "abcde"}
    b = ModelBuilder()
    for name in "cabde":  # an order that no tree can keep
        b.declare_body(name, inertias[name])
    for name, (p, s, joint) in joints.items():
        b.add_joint(name, p, s, joint, *frames[name], tree=False if name == "j6" else None)
    model = b.build()
    assert [x.name for x in model.bodies] == ["a", "b", "c", "d", "e"]
    assert [x.reverse for x in model.bodies] == [False, True, False, True, False]
    assert [loop.name for loop in model.loops] == ["j6"]

    q = model.random(rng)
    poses = kinematics(model, q).poses
    declared = {"base": Pose.identity()}
    for name in "abcde":
        declared[name] = poses[model.number(name)].compose(b.frame_shift(name))
    for i, body in enumerate(model.bodies):
        name = f"j{i + 1}"
        p, s, joint = joints[name]
        X_P, X_S = frames[name]
        between = declared[p].compose(X_P).inverse_compose(declared[s].compose(X_S))
        law = joint.motion(q[model.q_index[i]]).X
        assert between.isclose(Pose.from_featherstone(law.E, law.r), ROUNDING), body.name

    # The loop joint's frames have moved with their bodies.
    loop = model.loops[0]
    for number, X, k in (
        (loop.predecessor, loop.placement_predecessor, 0),
        (loop.successor, loop.placement_successor, 1),
    ):
        body = joints["j6"][k]
        seen = poses[number].compose(Pose.from_featherstone(X.E, X.r))
        assert seen.isclose(declared[body].compose(frames["j6"][k]), ROUNDING)

    # Kinetic energy from the inertias as they were given.
    v = rng.normal(size=model.nv)
    velocities = kinematics(model, q, v).velocities
    total = 0.0
    for name in "abcde":
        X = b.frame_shift(name).to_plucker().matrix()  # model to declared coordinates
        w = X @ velocities[model.number(name)]
        total += 0.5 * w @ inertias[name].matrix() @ w
    assert energy(model, q, v).kinetic == pytest.approx(total, rel=ROUNDING)


def test_springs_move_with_the_frames():
    def built(shift):
        b = ModelBuilder(gravity=(0, 0, 0))
        b.declare_body("a", Inertia(1.0, np.add((0.1, 0, 0), shift), 1.0))
        b.add_joint("j", 0, "a", Revolute(), None, shift)
        b.add_spring("s", "a", np.add((1.0, 0, 0), shift), 0, (0, 2.0, 0), 3.0)
        return b.build()

    plain, shifted = built((0, 0, 0)), built((0.4, -0.2, 0.7))
    assert FD(shifted, [0.3], [0.0]) == pytest.approx(FD(plain, [0.3], [0.0]), rel=ROUNDING)
    assert abs(FD(plain, [0.3], [0.0])[0]) > 0.1


def test_direct_and_reversed_trees_agree():
    """A chain built from its far end, with joints given backwards, is the same mechanism."""
    bar = rod((0, 0, 0), (1, 0, 0), mass=2.0)
    direct = ModelBuilder()
    direct.add_body("a", 0, Revolute("y"), inertia=bar)
    direct.add_body("b", "a", Prismatic("x"), (1, 0, 0), bar)
    graph = ModelBuilder()
    graph.declare_body("a", bar)
    graph.declare_body("b", bar)
    graph.add_joint("j", "b", "a", Prismatic("-x"), None, (1, 0, 0))
    graph.add_joint("i", "base", "a", Revolute("y"))
    one, other = direct.build(), graph.build()
    assert other.bodies[1].reverse
    q = [0.4, 0.2]
    np.testing.assert_allclose(crba(one, q), crba(other, q), atol=ROUNDING)
    np.testing.assert_allclose(FD(one, q, [1, 2]), FD(other, q, [1, 2]), atol=ROUNDING)


def test_bodies_with_and_without_parents_mix():
    b = ModelBuilder()
    b.add_body("arm", "column", Revolute("y"), (0, 0, 1), Inertia(1, (0.5, 0, 0), 0.1))
    b.declare_body("column", Inertia(2, I_com=1.0))
    b.add_joint("turn", 0, "column", Revolute(), armature=0.5, limits=(-1, 1))
    model = b.build()
    assert [x.name for x in model.bodies] == ["column", "arm"]
    assert model.bodies[0].armature == 0.5
    assert model.bodies[0].limits[0, 1] == 1.0
    assert b.frame_shift("arm").isclose(Pose.identity())


def test_bad_graph_models():
    def builder():
        b = ModelBuilder()
        b.declare_body("a", Inertia(1, I_com=1))
        b.declare_body("b", Inertia(1, I_com=1))
        b.add_joint("i", 0, "a", Revolute())
        return b

    with pytest.raises(ValueError, match="'b' hangs in the air"):
        builder().build()
    b = builder()
    b.add_joint("k", 0, "b", Free())
    b.add_joint("l", "a", "b", Revolute(), damping=1.0)
    with pytest.raises(ValueError, match=r"'l' closes a loop.*tree=True"):
        b.build()
    with pytest.raises(ValueError, match="a joint 'l' exists already"):
        b.add_joint("l", "a", "b", Revolute())
    with pytest.raises(ValueError, match="a loop or joint 'l' exists already"):
        b.add_loop("l", "a", "b", Revolute())
    with pytest.raises(TypeError, match=r"write Revolute\(\)"):
        b.add_joint("m", "a", "b", "revolute")
    with pytest.raises(ValueError, match="body 'a' exists already"):
        b.declare_body("a")
    c = builder()
    c.add_joint("k", 0, "b", Free())
    with pytest.raises(ValueError, match="frame_shift: no body is named 'c'"):
        c.frame_shift("c")
    c = builder()
    c.add_body("c", "b", Revolute(), inertia=Inertia(1, I_com=1))
    c.add_joint("c", 0, "b", Revolute())
    with pytest.raises(ValueError, match="joint 'c': a body added with its joint has this name"):
        c.build()
