"""Array kernels of the spatial algebra: no objects, no allocation, outputs passed in.

They are what the dynamics algorithms call. Each runs interpreted, compiled by numba, and on
object arrays of symbols; so none tests a value that could be a symbol, and none reads an output
before writing it. Vector and inertia outputs may be the array of the input of the same kind.

Storage
-------
E, r            coordinate transform A → B (3×3) and origin of B in A (3): book, Table A.3, plx
motion, force   6 numbers, angular first
rigid inertia   10 numbers: m, h = m c (3), lower triangle of the rotational inertia at the origin
articulated     21 numbers: lower triangle of M (6), H row by row (9), lower triangle of I (6)
lower triangle  (0,0) (1,0) (1,1) (2,0) (2,1) (2,2)

`vectors` has the 3-D products and the efficiency tricks of the book's §A.5, `spatial` the vector
operations of Table A.4, `inertia` those on inertias, `axial` the axial screw transforms of §A.4,
`planar` the planar algebra, `screw` the linear-first forms of the screw notes.
"""
