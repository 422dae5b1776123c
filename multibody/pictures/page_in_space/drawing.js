// Solids with light, shadows and ground, by WebGL 2.

const LIT = 0, GROUND = 1, FLAT = 2;

const VERTEX = `#version 300 es
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
uniform mat4 camera, model;
out vec3 place, direction;
void main() {
  vec4 p = model * vec4(position, 1.0);
  place = p.xyz;
  // Columns of the model are orthogonal: dividing twice by their lengths turns normals right.
  vec3 size = vec3(dot(model[0], model[0]), dot(model[1], model[1]), dot(model[2], model[2]));
  direction = mat3(model) * (normal / max(size, vec3(1e-30)));
  gl_Position = camera * p;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec3 place, direction;
uniform vec3 eye, light, up, origin, axis;
uniform vec4 colour;
uniform float cell, reach;
uniform int mode;
out vec4 shown;
void main() {
  if (mode == 2) { shown = colour; return; }
  if (mode == 1) {
    vec3 far = place - origin;
    vec2 at = vec2(dot(far, axis), dot(far, cross(up, axis))) / cell;
    vec2 line = abs(fract(at - 0.5) - 0.5) / fwidth(at);
    float ink = 1.0 - min(min(line.x, line.y), 1.0);
    float fade = clamp(1.4 - length(far) / reach, 0.0, 1.0);
    shown = vec4(mix(colour.rgb, vec3(0.55), 0.5 * ink), colour.a * fade);
    return;
  }
  vec3 n = normalize(direction), v = normalize(eye - place);
  if (dot(n, v) < 0.0) n = -n;
  float sky = 0.62 + 0.18 * dot(n, up);
  float sun = max(dot(n, light), 0.0);
  float shine = pow(max(dot(n, normalize(light + v)), 0.0), 40.0);
  vec3 seen = colour.rgb * (sky + 0.42 * sun) + 0.18 * shine;
  shown = vec4(seen, colour.a);
}`;

class Stage {
  constructor(gl, basis) {
    this.gl = gl;
    this.basis = basis;
    const [e1, e2, up] = basis;
    this.light = unit(add(up, add(times(0.45, e1), times(-0.3, e2))));
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
      throw new Error(gl.getProgramInfoLog(program) || "the shaders cannot be compiled");
    }
    gl.useProgram(program);
    this.at = {};
    for (const name of ["camera", "model", "eye", "light", "up", "origin", "axis", "colour",
                        "cell", "reach", "mode"]) {
      this.at[name] = gl.getUniformLocation(program, name);
    }
    this.meshes = new Map();
    gl.enable(gl.DEPTH_TEST);
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  // A mesh on the graphics card, made when it is first used.
  mesh(key, make) {
    if (!this.meshes.has(key)) {
      const gl = this.gl, data = make(), array = gl.createVertexArray();
      gl.bindVertexArray(array);
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
      for (const k of [0, 1]) {
        gl.enableVertexAttribArray(k);
        gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 24, 12 * k);
      }
      this.meshes.set(key, { array, count: data.length / 6 });
    }
    return this.meshes.get(key);
  }

  begin(viewport, camera) {
    const gl = this.gl;
    gl.viewport(...viewport);
    gl.scissor(...viewport);
    gl.enable(gl.SCISSOR_TEST);
    gl.clearColor(1, 1, 1, 1);
    gl.depthMask(true);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    gl.uniformMatrix4fv(this.at.camera, false, new Float32Array(camera.matrix));
    gl.uniform3fv(this.at.eye, camera.eye);
    gl.uniform3fv(this.at.light, this.light);
  }

  draw(item, mode = LIT, before = null, colour = item.colour) {
    const gl = this.gl, mesh = this.mesh(item.key, item.make);
    const model = before === null ? item.model : product(before, item.model);
    gl.uniform1i(this.at.mode, mode);
    gl.uniform4fv(this.at.colour, colour);
    gl.uniform3fv(this.at.up, this.basis[2]);
    gl.uniformMatrix4fv(this.at.model, false, new Float32Array(model));
    gl.bindVertexArray(mesh.array);
    gl.drawArrays(gl.TRIANGLES, 0, mesh.count);
  }

  // A plane through a point, with lines at distances `cell`, which fades out at `reach`.
  ground(plane, cell, reach, centre) {
    const gl = this.gl, z = unit(plane.normal), x = across(z), y = cross(z, x);
    const height = dot(sub(centre, plane.point), z);
    const middle = sub(centre, times(height, z));
    const wide = 1.5 * reach;
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    gl.uniform1f(this.at.cell, cell);
    gl.uniform1f(this.at.reach, reach);
    gl.uniform3fv(this.at.axis, x);
    // Lines stay where they are when the middle of the picture moves.
    const steps = [x, y].map((d) => Math.round(dot(sub(middle, plane.point), d) / cell) * cell);
    const origin = add(plane.point, add(times(steps[0], x), times(steps[1], y)));
    gl.uniform3fv(this.at.origin, origin);
    const saved = this.basis[2];
    this.basis[2] = z;
    this.draw({ key: "square", make: SHAPES.square, colour: [0.93, 0.935, 0.94, 1],
                model: frame(times(wide, x), times(wide, y), z, middle) }, GROUND);
    this.basis[2] = saved;
    gl.depthMask(true);
    gl.disable(gl.BLEND);
  }

  // Shadows: everything flattened onto a plane along the light, each pixel darkened once.
  shadows(items, plane, lift) {
    const gl = this.gl, n = unit(plane.normal), l = this.light, d = dot(n, l);
    if (d < 0.1) return;
    const offset = dot(n, plane.point) + lift, m = new Float64Array(16);
    for (let j = 0; j < 3; j++) for (let i = 0; i < 3; i++) {
      m[4 * j + i] = (i === j ? 1 : 0) - l[i] * n[j] / d;
    }
    for (let i = 0; i < 3; i++) m[12 + i] = l[i] * offset / d;
    m[15] = 1;
    gl.enable(gl.BLEND);
    gl.enable(gl.STENCIL_TEST);
    gl.stencilFunc(gl.EQUAL, 0, 0xff);
    gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
    gl.depthMask(false);
    for (const item of items) this.draw(item, FLAT, m, [0.1, 0.12, 0.16, 0.2]);
    gl.depthMask(true);
    gl.disable(gl.STENCIL_TEST);
    gl.disable(gl.BLEND);
  }

  solids(items) {
    const gl = this.gl;
    for (const item of items) if (item.colour[3] >= 1) this.draw(item);
    gl.enable(gl.BLEND);
    for (const item of items) if (item.colour[3] < 1) this.draw(item);
    gl.disable(gl.BLEND);
  }

  // Runs that are only compared with: pale, and each of their pixels once.
  ghosts(items, alpha) {
    const gl = this.gl;
    gl.colorMask(false, false, false, false);
    for (const item of items) this.draw(item);
    gl.colorMask(true, true, true, true);
    gl.enable(gl.BLEND);
    gl.depthFunc(gl.LEQUAL);
    for (const item of items) this.draw(item, LIT, null, [...item.colour.slice(0, 3), alpha]);
    gl.depthFunc(gl.LESS);
    gl.disable(gl.BLEND);
  }

  // What is to be seen through everything.
  over(items) {
    this.gl.clear(this.gl.DEPTH_BUFFER_BIT);
    this.solids(items);
  }
}
