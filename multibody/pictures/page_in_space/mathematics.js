// Vectors are arrays of three; 4×4 matrices are columns, as WebGL takes them.

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const times = (s, a) => [s * a[0], s * a[1], s * a[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                         a[0] * b[1] - a[1] * b[0]];
const norm = (a) => Math.hypot(a[0], a[1], a[2]);
const unit = (a) => times(1 / (norm(a) || 1), a);

// Some unit vector across a.
function across(a) {
  const k = Math.abs(a[0]) < 0.6 ? [1, 0, 0] : [0, 1, 0];
  return unit(cross(a, k));
}

function product(a, b) {
  const c = new Float64Array(16);
  for (let j = 0; j < 4; j++) for (let i = 0; i < 4; i++) {
    let sum = 0;
    for (let k = 0; k < 4; k++) sum += a[4 * k + i] * b[4 * j + k];
    c[4 * j + i] = sum;
  }
  return c;
}

// Matrix with columns x, y, z and origin p.
const frame = (x, y, z, p) => [...x, 0, ...y, 0, ...z, 0, ...p, 1];

function act(m, p) {
  return [m[0] * p[0] + m[4] * p[1] + m[8] * p[2] + m[12],
          m[1] * p[0] + m[5] * p[1] + m[9] * p[2] + m[13],
          m[2] * p[0] + m[6] * p[1] + m[10] * p[2] + m[14]];
}

// Matrix of a unit quaternion (w, x, y, z) and an origin.
function pose(w, x, y, z, p) {
  return [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y), 0,
          2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x), 0,
          2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y), 0,
          p[0], p[1], p[2], 1];
}

// Between two poses of seven numbers (origin, quaternion) at offsets i and j of an array.
function between(data, i, j, s) {
  const q = [], p = [];
  let sign = 0;
  for (let k = 3; k < 7; k++) sign += data[i + k] * data[j + k];
  sign = sign < 0 ? -1 : 1;
  for (let k = 0; k < 3; k++) p.push((1 - s) * data[i + k] + s * data[j + k]);
  for (let k = 3; k < 7; k++) q.push((1 - s) * data[i + k] + s * sign * data[j + k]);
  const length = Math.hypot(...q) || 1;
  return pose(q[0] / length, q[1] / length, q[2] / length, q[3] / length, p);
}

// Columns of a bar from a to b whose mesh lies along z from 0 to 1 and has radius 1.
function barMatrix(a, b, radius) {
  const along = sub(b, a), z = unit(along), x = across(z), y = cross(z, x);
  return frame(times(radius, x), times(radius, y), along, a);
}

// Camera: what maps points to the screen, with eye and the three directions of the screen.
function cameraOf(target, distance, azimuth, elevation, basis, fov, aspect) {
  const [e1, e2, up] = basis;
  const flat = add(times(Math.cos(azimuth), e1), times(Math.sin(azimuth), e2));
  const back = add(times(Math.cos(elevation), flat), times(Math.sin(elevation), up));
  const high = add(times(-Math.sin(elevation), flat), times(Math.cos(elevation), up));
  const right = cross(high, back);
  const eye = add(target, times(distance, back));
  const look = [right[0], high[0], back[0], 0, right[1], high[1], back[1], 0,
                right[2], high[2], back[2], 0,
                -dot(right, eye), -dot(high, eye), -dot(back, eye), 1];
  const f = 1 / Math.tan(fov / 2), near = distance / 50, far = distance * 60;
  const lens = [f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), -1,
                0, 0, 2 * far * near / (near - far), 0];
  return { matrix: product(lens, look), eye, right, high, back };
}

// Numbers from base 64.
function numbers(text, kind) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
  return new kind(bytes.buffer);
}
