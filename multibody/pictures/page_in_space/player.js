// Time, camera and controls.

const byId = (id) => document.getElementById(id);
const canvas = byId("canvas");
const RUN_COLOURS = [[0, 0.45, 0.7], [0.84, 0.37, 0], [0, 0.62, 0.45], [0.8, 0.47, 0.65],
                     [0.9, 0.62, 0], [0.34, 0.71, 0.91]];

for (const run of scene.runs) {
  run.poses = numbers(run.poses, Float32Array);
  run.arrows = run.arrows === null ? null : numbers(run.arrows, Float32Array);
  run.trail = run.trail === null ? null : numbers(run.trail, Float32Array);
}
const bodies = scene.bodies.length;
const count = Math.max(...scene.runs.map((run) => run.t.length));
const longest = scene.runs.find((run) => run.t.length === count);
const up = scene.up, e1 = unit(sub([1, 0, 0], times(up[0], up)));
const basis = norm(sub([1, 0, 0], times(up[0], up))) > 0.1
  ? [e1, cross(up, e1), up] : [across(up), cross(up, across(up)), up];

// ---- what the user has chosen

const state = {
  frame: 0, playing: count > 1, azimuth: -1.0, elevation: 0.35, zoom: 1, fov: 0.6,
  shift: [0, 0, 0], follow: scene.follow, run: 0, layout: "ghosts", extent: [1, 1, 1],
  solids: true, frames: false, forces: scene.arrows.length > 0, ground: scene.ground !== null,
  enlarged: scene.enlarged,
};

// Screen right and up of the planes, and from where they are looked at.
const VIEWS = {
  "3d": null, xz: [[0, -1, 0], [0, 0, 1]], xy: [[0, 0, 1], [0, 1, 0]], yz: [[1, 0, 0], [0, 0, 1]],
};

function lookFrom(view) {
  state.shift = [0, 0, 0];
  state.zoom = 1;
  if (VIEWS[view] === null) {
    Object.assign(state, { azimuth: -1.0, elevation: 0.35, fov: 0.6 });
  } else {
    const [from, high] = VIEWS[view], height = dot(from, basis[2]);
    const level = Math.abs(height) > 0.999 ? times(-Math.sign(height), high) : from;
    state.azimuth = Math.atan2(dot(level, basis[1]), dot(level, basis[0]));
    state.elevation = Math.asin(Math.max(-1, Math.min(1, height)));
    state.fov = 0.08;
  }
  // Half of the width, height and depth of everything, seen from here.
  const camera = cameraOf([0, 0, 0], 1, state.azimuth, state.elevation, basis, 1, 1);
  const reach = (d) => d.reduce((sum, x, k) => sum + Math.abs(x) * scene.half[k], 0);
  state.extent = [camera.right, camera.high, camera.back].map(reach);
}

// ---- where things are

function matrices(run, moment) {
  const last = run.t.length - 1, i = Math.min(Math.floor(moment), last);
  const j = Math.min(i + 1, last), s = Math.min(moment - i, 1), found = [];
  for (let body = 0; body < bodies; body++) {
    found.push(between(run.poses, 7 * (i * bodies + body), 7 * (j * bodies + body), s));
  }
  return found;
}

function solidItems(at, tint) {
  return scene.solids.map((solid, k) => ({
    key: solid.shape === "mesh" ? `mesh ${solid.mesh}` : `${solid.shape} ${solid.size}`,
    make: () => SHAPES[solid.shape](solid.size, scene.meshes[solid.mesh]),
    model: product(at[solid.body], solid.at),
    colour: tint === null ? solid.colour : [...tint, solid.colour[3]],
  }));
}

function barItem(kind, a, b, radius, colour) {
  return { key: kind, make: SHAPES[kind], model: barMatrix(a, b, radius), colour };
}

function barItems(at, tint) {
  return scene.bars.map(({ kind, a, pa, b, pb, radius, colour }) =>
    [kind, act(at[a], pa), act(at[b], pb), radius, tint === null ? colour : [...tint, colour[3]]])
    .filter(([, a, b]) => norm(sub(a, b)) > 1e-9 * scene.size)
    .map((bar) => barItem(...bar));
}

function stickLines(at, tint) {
  return scene.sticks.map(([a, pa, b, pb, colour]) => ({
    a: act(at[a], pa), b: act(at[b], pb), colour: tint === null ? colour : [...tint, 1], width: 4,
  }));
}

function stickItems(at, tint) {
  return stickLines(at, tint).filter(({ a, b }) => norm(sub(a, b)) > 1e-9 * scene.size)
    .map(({ a, b, colour }) => barItem("bar", a, b, 0.006 * scene.size, colour));
}

function arrowItems(run, moment) {
  if (run.arrows === null || !state.forces) return [];
  const i = Math.min(Math.floor(moment), run.t.length - 1), n = scene.arrows.length, found = [];
  for (let k = 0; k < n; k++) {
    const v = run.arrows.subarray(6 * (i * n + k), 6 * (i * n + k) + 6);
    const a = [v[0], v[1], v[2]], force = times(state.enlarged, sub([v[3], v[4], v[5]], a));
    const b = add(a, force);
    if (norm(force) > 1e-3 * scene.size) {
      found.push(barItem("arrow", a, b, 0.007 * scene.size, scene.arrows[k].colour));
    }
  }
  return found;
}

function frameItems(at) {
  if (!state.frames) return [];
  const found = [], length = 0.16 * scene.size, colours = [[0.85, 0.1, 0.1, 1], [0.1, 0.6, 0.1, 1],
                                                          [0.1, 0.2, 0.85, 1]];
  for (const m of at) for (let k = 0; k < 3; k++) {
    const end = [0, 0, 0];
    end[k] = length;
    found.push(barItem("arrow", act(m, [0, 0, 0]), act(m, end), 0.008 * scene.size, colours[k]));
  }
  return found;
}

function trailItems(run, moment) {
  if (run.trail === null) return [];
  const found = [], last = Math.min(Math.floor(moment), run.t.length - 1);
  const step = Math.max(1, Math.ceil(last / 400)), v = run.trail;
  for (let i = 0; i < last; i += step) {
    const j = Math.min(i + step, last);
    const a = [v[3 * i], v[3 * i + 1], v[3 * i + 2]], b = [v[3 * j], v[3 * j + 1], v[3 * j + 2]];
    if (norm(sub(a, b)) > 1e-9 * scene.size) {
      found.push(barItem("bar", a, b, 0.003 * scene.size, [0.42, 0.42, 0.42, 1]));
    }
  }
  return found;
}

// ---- drawing

let stage = null, flat = null;
const gl = canvas.getContext("webgl2", { antialias: true, stencil: true, alpha: false,
                                          preserveDrawingBuffer: true });
if (gl) {
  stage = new Stage(gl, basis);
} else {
  flat = new FlatStage(canvas.getContext("2d"));
  byId("solids").parentElement.hidden = true;
}

function targetOf(run, moment) {
  if (state.follow === 0) return add(scene.centre, state.shift);
  return add(act(matrices(run, moment)[state.follow], scene.middles[state.follow]), state.shift);
}

function cameraFor(run, moment, aspect) {
  const [wide, high, deep] = state.follow === 0 ? state.extent : Array(3).fill(scene.size);
  const half = 1.12 * Math.max(wide / aspect, high, 0.1 * scene.size);
  const distance = (half / Math.tan(state.fov / 2) + deep) / state.zoom;
  return cameraOf(targetOf(run, moment), distance, state.azimuth, state.elevation, basis,
                  state.fov, aspect);
}

function drawRun(viewport, run, others) {
  const camera = cameraFor(run, state.frame, viewport[2] / viewport[3]);
  const at = matrices(run, state.frame);
  const tintOf = (one) => RUN_COLOURS[scene.runs.indexOf(one) % RUN_COLOURS.length];
  const colourOf = (one) => (others.length > 0 ? tintOf(one) : null);
  if (flat !== null) {
    flat.begin(viewport, camera);
    for (const other of others) {
      flat.lines(stickLines(matrices(other, state.frame), tintOf(other)), 0.3);
    }
    flat.lines(stickLines(at, null));
    return;
  }
  stage.begin(viewport, camera);
  const bare = state.solids ? [...solidItems(at, null), ...barItems(at, null)]
    : stickItems(at, null);
  const target = targetOf(run, state.frame), reach = 2.2 * (state.follow ? scene.size : scene.radius);
  if (state.ground) {
    for (const plane of scene.planes) stage.ground(plane, scene.cell, reach, target);
    for (const plane of scene.planes) stage.shadows(bare, plane, 1e-4 * scene.size);
  }
  stage.solids([...bare, ...trailItems(run, state.frame)]);
  for (const other of others) {
    const there = matrices(other, state.frame), tint = colourOf(other);
    stage.ghosts(state.solids ? [...solidItems(there, tint), ...barItems(there, tint)]
      : stickItems(there, tint), 0.3);
  }
  stage.over([...arrowItems(run, state.frame), ...frameItems(at)]);
}

function draw() {
  const width = canvas.width, height = canvas.height, runs = scene.runs;
  if (state.layout === "beside" && runs.length > 1) {
    const edge = (k) => Math.round((k * width) / runs.length);
    runs.forEach((run, k) => drawRun([edge(k), 0, edge(k + 1) - edge(k), height], run, []));
  } else {
    const chosen = runs[state.run];
    const others = state.layout === "ghosts" ? runs.filter((run) => run !== chosen) : [];
    drawRun([0, 0, width, height], chosen, others);
  }
  const i = Math.min(Math.floor(state.frame), count - 1);
  byId("slider").value = i;
  byId("time").textContent = "t = " + longest.t[i].toFixed(2) + " s";
}

// ---- names of runs

function label() {
  const beside = state.layout === "beside", columns = [], dots = (name, k, text) => {
    const line = document.createElement("span"), mark = document.createElement("i");
    mark.style.background = `rgb(${RUN_COLOURS[k % RUN_COLOURS.length].map((c) => 255 * c)})`;
    line.append(...(beside || k === state.run ? [] : [mark]), text);
    return line;
  };
  if (scene.runs.length < 2) return;
  scene.runs.forEach((run, k) => {
    if (!beside && state.layout === "none" && k !== state.run) return;
    const end = run.t.length < count ? ` (until t = ${run.t[run.t.length - 1].toFixed(2)} s)` : "";
    const line = dots(run.name, k, run.name + end);
    if (beside || columns.length === 0) columns.push(document.createElement("div"));
    columns[columns.length - 1].append(line);
  });
  byId("labels").replaceChildren(...columns);
}

// ---- controls

function options(id, entries, chosen) {
  for (const [value, text] of entries) {
    const option = document.createElement("option");
    option.value = value;
    option.textContent = text;
    byId(id).append(option);
  }
  byId(id).value = String(chosen);
}

function listen(id, name, change) {
  byId(id).addEventListener(name, (event) => {
    change(event.target);
    label();
    draw();
  });
}

function toggle() {
  state.playing = !state.playing;
  byId("play").textContent = state.playing ? "Pause" : "Play";
}

byId("name").textContent = scene.name;
byId("slider").max = count - 1;
byId("play").textContent = state.playing ? "Pause" : "Play";
options("view", Object.keys(VIEWS).map((name) => [name, name === "3d" ? "in space" : name]),
        scene.view);
options("follow", scene.bodies.map((name, k) => [k, k === 0 ? "nothing" : name]), state.follow);
options("run", scene.runs.map((run, k) => [k, run.name]), 0);
for (const id of ["run-label", "layout-label"]) byId(id).hidden = scene.runs.length < 2;
for (const id of ["forces", "enlarged"]) byId(`${id}-label`).hidden = scene.arrows.length === 0;
options("enlarged", [1, 3, 10, 30, 100].map((k) =>
  [k, `${Number((scene.longest / k).toPrecision(3))} N`]), scene.enlarged);
byId("ground").parentElement.hidden = scene.planes.length === 0;
for (const id of ["solids", "frames", "forces", "ground"]) {
  byId(id).checked = state[id];
  listen(id, "change", (box) => { state[id] = box.checked; });
}
listen("view", "change", (box) => lookFrom(box.value));
listen("follow", "change", (box) => { state.follow = Number(box.value); state.shift = [0, 0, 0]; });
listen("run", "change", (box) => { state.run = Number(box.value); });
listen("layout", "change", (box) => { state.layout = box.value; });
listen("enlarged", "change", (box) => { state.enlarged = Number(box.value); });
byId("play").addEventListener("click", toggle);
listen("slider", "input", (slider) => {
  if (state.playing) toggle();
  state.frame = Number(slider.value);
});

window.addEventListener("keydown", (event) => {
  if (["SELECT", "INPUT"].includes(event.target.tagName) && event.target.id !== "slider") return;
  if (event.code === "Space" && event.target.id !== "play") {
    event.preventDefault();
    toggle();
  }
});

const fingers = new Map();

function turn(dx, dy) {
  state.azimuth -= 0.008 * dx;
  state.elevation = Math.max(-1.57, Math.min(1.57, state.elevation + 0.008 * dy));
}

function pan(dx, dy) {
  const camera = cameraFor(scene.runs[state.run], state.frame, canvas.width / canvas.height);
  const target = targetOf(scene.runs[state.run], state.frame);
  const metres = 2 * norm(sub(camera.eye, target)) * Math.tan(state.fov / 2) / canvas.clientHeight;
  state.shift = add(state.shift, add(times(-dx * metres, camera.right),
                                     times(dy * metres, camera.high)));
}

canvas.addEventListener("pointerdown", (event) => {
  fingers.set(event.pointerId, [event.clientX, event.clientY]);
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  const before = fingers.get(event.pointerId);
  if (before === undefined) return;
  const now = [event.clientX, event.clientY], dx = now[0] - before[0], dy = now[1] - before[1];
  if (fingers.size === 2) {
    const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    const far = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
    state.zoom *= far(now) / far(before);
    pan(dx / 2, dy / 2);
  } else if (event.shiftKey || event.buttons === 2) {
    pan(dx, dy);
  } else {
    turn(dx, dy);
  }
  fingers.set(event.pointerId, now);
  draw();
});
for (const name of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(name, (event) => fingers.delete(event.pointerId));
}
canvas.addEventListener("contextmenu", (event) => event.preventDefault());
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  state.zoom = Math.max(0.02, Math.min(200, state.zoom * Math.exp(-event.deltaY * 0.001)));
  draw();
}, { passive: false });
canvas.addEventListener("dblclick", () => { lookFrom(byId("view").value); draw(); });

function fit() {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
  canvas.height = Math.max(1, Math.round(canvas.clientHeight * ratio));
}
window.addEventListener("resize", () => { fit(); draw(); });

let last = null;
function tick(now) {
  if (state.playing && last !== null) {
    state.frame += ((now - last) / 1000) * scene.fps * Number(byId("speed").value);
    if (state.frame >= count) state.frame %= count;
    draw();
  }
  last = now;
  window.requestAnimationFrame(tick);
}

lookFrom(scene.view);
fit();
label();
draw();
window.requestAnimationFrame(tick);
