// Meshes of shapes: positions and normals of triangles, one after the other (no indices).

class Mesh {
  constructor() { this.data = []; }
  corner(p, n) { this.data.push(p[0], p[1], p[2], n[0], n[1], n[2]); }
  // A grid of points with normals, closed by two triangles for each cell.
  surface(rows, columns, at) {
    for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) {
      const a = at(i, j), b = at(i + 1, j), c = at(i + 1, j + 1), d = at(i, j + 1);
      for (const [p, n] of [a, b, c, a, c, d]) this.corner(p, n);
    }
    return this;
  }
  disc(radius, z, normal, sides) {
    for (let k = 0; k < sides; k++) {
      const a = 2 * Math.PI * k / sides, b = 2 * Math.PI * (k + 1) / sides, n = [0, 0, normal];
      this.corner([0, 0, z], n);
      this.corner([radius * Math.cos(a), radius * Math.sin(a), z], n);
      this.corner([radius * Math.cos(b), radius * Math.sin(b), z], n);
    }
    return this;
  }
  done() { return new Float32Array(this.data); }
}

const ROUND = 32;

// A profile (radius, height, normal outwards, normal upwards) turned about z.
function turned(profile, sides = ROUND) {
  return new Mesh().surface(profile.length - 1, sides, (i, j) => {
    const [r, z, n, m] = profile[i], a = 2 * Math.PI * j / sides;
    return [[r * Math.cos(a), r * Math.sin(a), z], [n * Math.cos(a), n * Math.sin(a), m]];
  });
}

function arc(radius, from, to, middle, steps) {
  return Array.from({ length: steps + 1 }, (_, k) => {
    const a = from + (to - from) * k / steps;
    return [radius * Math.cos(a), middle + radius * Math.sin(a), Math.cos(a), Math.sin(a)];
  });
}

const SHAPES = {
  box([x, y, z]) {
    const mesh = new Mesh();
    for (let k = 0; k < 3; k++) for (const s of [-1, 1]) {
      const n = [0, 0, 0];
      n[k] = s;
      const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([a, b]) => {
        const p = [0, 0, 0];
        p[k] = s; p[(k + 1) % 3] = a; p[(k + 2) % 3] = b;
        return [p[0] * x / 2, p[1] * y / 2, p[2] * z / 2];
      });
      for (const i of [0, 1, 2, 0, 2, 3]) mesh.corner(corners[i], n);
    }
    return mesh.done();
  },
  sphere: ([r]) => turned(arc(r, -Math.PI / 2, Math.PI / 2, 0, ROUND / 2)).done(),
  ellipsoid([a, b, c]) {
    return turned(arc(1, -Math.PI / 2, Math.PI / 2, 0, ROUND / 2)).done().map((value, k) => {
      const axis = k % 3, size = [a, b, c][axis];
      return k % 6 < 3 ? value * size : value / size;
    });
  },
  cylinder: ([r, l]) => turned([[r, -l / 2, 1, 0], [r, l / 2, 1, 0]])
    .disc(r, -l / 2, -1, ROUND).disc(r, l / 2, 1, ROUND).done(),
  capsule: ([r, l]) => turned([...arc(r, -Math.PI / 2, 0, -l / 2, 8),
                               ...arc(r, 0, Math.PI / 2, l / 2, 8)]).done(),
  ring: ([r, t]) => new Mesh().surface(48, 16, (i, j) => {
    const a = 2 * Math.PI * i / 48, b = 2 * Math.PI * j / 16, d = r + t * Math.cos(b);
    return [[d * Math.cos(a), d * Math.sin(a), t * Math.sin(b)],
            [Math.cos(a) * Math.cos(b), Math.sin(a) * Math.cos(b), Math.sin(b)]];
  }).done(),
  bar: () => turned([[1, 0, 1, 0], [1, 1, 1, 0]], 16).disc(1, 0, -1, 16).disc(1, 1, 1, 16).done(),
  // Shaft and head of an arrow along z from 0 to 1, to be made as wide as a bar.
  arrow: () => turned([[1, 0, 1, 0], [1, 0.8, 1, 0]], 16).disc(1, 0, -1, 16)
    .surface(1, 16, (i, j) => {
      const a = 2 * Math.PI * j / 16, r = i ? 0 : 2.6;
      return [[r * Math.cos(a), r * Math.sin(a), i ? 1 : 0.8],
              [Math.cos(a), Math.sin(a), 0.3]];
    }).disc(2.6, 0.8, -1, 16).done(),
  coil: () => new Mesh().surface(160, 8, (i, j) => {
    const s = i / 160, turns = 10 * 2 * Math.PI * s, b = 2 * Math.PI * j / 8;
    const r = 1 + 0.22 * Math.cos(b);
    return [[r * Math.cos(turns), r * Math.sin(turns), s + 0.012 * Math.sin(b)],
            [Math.cos(b) * Math.cos(turns), Math.cos(b) * Math.sin(turns), Math.sin(b)]];
  }).done(),
  // A square in the xy plane, from −1 to 1.
  square: () => new Mesh().surface(1, 1, (i, j) => [[2 * i - 1, 2 * j - 1, 0], [0, 0, 1]]).done(),
  mesh(size, mesh) {
    const v = numbers(mesh.vertices, Float32Array), f = numbers(mesh.faces, Uint32Array);
    const out = new Mesh(), at = (k) => [v[3 * k], v[3 * k + 1], v[3 * k + 2]];
    for (let k = 0; k < f.length; k += 3) {
      const [a, b, c] = [at(f[k]), at(f[k + 1]), at(f[k + 2])];
      const n = unit(cross(sub(b, a), sub(c, a)));
      for (const p of [a, b, c]) out.corner(p, n);
    }
    return out.done();
  },
};
