"""The web page of an animation: one file with its own drawing code, which loads nothing else.

``$title`` and ``$scene`` are filled in by :func:`multibody.animate.html`; the fields of the scene
are listed there.
"""

from __future__ import annotations

import string

__all__ = ["PAGE"]

PAGE = string.Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
  :root { color-scheme: light; }
  html, body { height: 100%; margin: 0; background: white; color: #222;
               font: 15px/1.4 system-ui, sans-serif; }
  body { display: flex; flex-direction: column; }
  header { padding: 10px 16px 0; font-weight: 600; }
  canvas { flex: 1; min-height: 0; width: 100%; touch-action: none; }
  footer { display: flex; flex-wrap: wrap; gap: 12px; align-items: center; padding: 8px 16px 14px; }
  #slider { flex: 1; min-width: 160px; }
  #time { min-width: 6.5em; font-variant-numeric: tabular-nums; }
  button, select { font: inherit; padding: 3px 12px; }
</style>
</head>
<body>
<header id="name"></header>
<canvas id="canvas" aria-label="Animation of the mechanism"></canvas>
<footer>
  <button id="play" type="button" title="space">Pause</button>
  <input id="slider" type="range" min="0" value="0" step="1" aria-label="Time">
  <output id="time"></output>
  <label>speed <select id="speed">
    <option value="0.1">0.1</option><option value="0.25">0.25</option>
    <option value="0.5">0.5</option><option value="1" selected>1</option>
    <option value="2">2</option><option value="4">4</option>
  </select></label>
</footer>
<script>
"use strict";
const scene = $scene;

const canvas = document.getElementById("canvas"), pen = canvas.getContext("2d");
const play = document.getElementById("play"), slider = document.getElementById("slider");
const time = document.getElementById("time"), speed = document.getElementById("speed");
const count = scene.t.length, spatial = scene.view === "3d";
document.getElementById("name").textContent = scene.name;
slider.max = count - 1;

// Direction of view: turn by `azimuth` about z, then tilt by `elevation` (3-D only).
let azimuth = -1.0, elevation = 0.35, zoom = 1.0;
let playing = count > 1, frame = 0, last = null;

// Right and up on the screen of a point in space.
function project(p) {
  if (scene.view === "xz") return [p[0], p[2]];
  if (scene.view === "xy") return [p[0], p[1]];
  if (scene.view === "yz") return [p[1], p[2]];
  const c = Math.cos(azimuth), s = Math.sin(azimuth);
  const right = -s * p[0] + c * p[1], depth = c * p[0] + s * p[1];
  return [right, Math.cos(elevation) * p[2] - Math.sin(elevation) * depth];
}

// Middle and size of everything that is ever shown.
const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
for (const points of scene.points) for (const p of points) for (let k = 0; k < 3; k++) {
  low[k] = Math.min(low[k], p[k]);
  high[k] = Math.max(high[k], p[k]);
}
const middle = low.map((x, k) => (x + high[k]) / 2);

// Half of the width and of the height to show: in 3-D those of a sphere, the same from everywhere.
function extent() {
  const half = low.map((x, k) => (high[k] - x) / 2);
  const radius = Math.hypot(...half) || 1;
  if (spatial) return [radius, radius];
  const [a, b] = project(half);
  return [a || radius / 4, b || radius / 4];
}

let scale = 1, centre = [0, 0], width = 0, height = 0;
function fit() {
  const ratio = window.devicePixelRatio || 1;
  width = canvas.clientWidth;
  height = canvas.clientHeight;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
}

function place(p) {
  const [x, y] = project(p);
  return [width / 2 + scale * (x - centre[0]), height / 2 - scale * (y - centre[1])];
}

function line(points, colour, thickness, dashes) {
  pen.beginPath();
  points.forEach((p, k) => (k ? pen.lineTo(...place(p)) : pen.moveTo(...place(p))));
  pen.strokeStyle = colour;
  pen.lineWidth = thickness;
  pen.setLineDash(dashes);
  pen.stroke();
}

function dot(p, radius, fill) {
  const [x, y] = place(p);
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  outline(fill);
}

function diamond(p, radius, fill) {
  const [x, y] = place(p);
  pen.beginPath();
  pen.moveTo(x - radius, y);
  pen.lineTo(x, y - radius);
  pen.lineTo(x + radius, y);
  pen.lineTo(x, y + radius);
  pen.closePath();
  outline(fill);
}

function outline(fill) {
  pen.fillStyle = fill;
  pen.fill();
  pen.strokeStyle = scene.ink;
  pen.lineWidth = 1.2;
  pen.setLineDash([]);
  pen.stroke();
}

function draw() {
  const points = scene.points[Math.floor(frame)], [a, b] = extent();
  scale = 0.44 * zoom * Math.min(width / a, height / b);
  centre = project(middle);
  pen.clearRect(0, 0, width, height);
  pen.lineCap = "round";
  pen.lineJoin = "round";
  if (spatial) axes();
  if (scene.trail) line(scene.trail.slice(0, Math.floor(frame) + 1), scene.quiet, 1, []);
  for (const [i, j] of scene.slides) line([points[i], points[j]], scene.quiet, 1.2, [5, 4]);
  for (const [i, j] of scene.springs) line([points[i], points[j]], scene.ink, 1.2, [2, 4]);
  for (const [i, j] of scene.surfaces) line([points[i], points[j]], scene.quiet, 1.6);
  for (const [i, j] of scene.forces) line([points[i], points[j]], scene.force, 2);
  for (const [i, j, colour] of scene.links) line([points[i], points[j]], colour, 5, []);
  for (const i of scene.centres) dot(points[i], 5, "white");
  for (const i of scene.joints) dot(points[i], 3, scene.ink);
  for (const [i, j] of scene.loops) {
    line([points[i], points[j]], scene.quiet, 1.2, [5, 4]);
    diamond(points[i], 5, scene.loop);
    diamond(points[j], 5, scene.loop);
  }
  slider.value = Math.floor(frame);
  time.textContent = "t = " + scene.t[Math.floor(frame)].toFixed(2) + " s";
}

// The base's axes, to see how the view is turned.
function axes() {
  const length = 0.25 * extent()[0];
  for (const [k, name] of [[0, "x"], [1, "y"], [2, "z"]]) {
    const end = [0, 0, 0];
    end[k] = length;
    line([[0, 0, 0], end], scene.quiet, 1, []);
    pen.fillStyle = scene.quiet;
    pen.fillText(name, ...place(end.map((x) => 1.12 * x)));
  }
}

function tick(now) {
  if (playing && last !== null) {
    frame += ((now - last) / 1000) * scene.fps * Number(speed.value);
    if (frame >= count) frame %= count;
    draw();
  }
  last = now;
  window.requestAnimationFrame(tick);
}

function toggle() {
  playing = !playing;
  play.textContent = playing ? "Pause" : "Play";
}
play.addEventListener("click", toggle);
slider.addEventListener("input", () => {
  if (playing) toggle();
  frame = Number(slider.value);
  draw();
});
window.addEventListener("keydown", (event) => {
  if (event.code === "Space" && event.target !== play) {
    event.preventDefault();
    toggle();
  }
});

let grip = null;
canvas.addEventListener("pointerdown", (event) => {
  grip = [event.clientX, event.clientY];
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (grip === null || !spatial) return;
  azimuth -= (event.clientX - grip[0]) * 0.01;
  elevation = Math.max(-1.57, Math.min(1.57, elevation + (event.clientY - grip[1]) * 0.01));
  grip = [event.clientX, event.clientY];
  draw();
});
canvas.addEventListener("pointerup", () => (grip = null));
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom *= Math.exp(-event.deltaY * 0.001);
  draw();
}, { passive: false });
window.addEventListener("resize", () => { fit(); draw(); });

play.textContent = playing ? "Pause" : "Play";
fit();
draw();
window.requestAnimationFrame(tick);
</script>
</body>
</html>
""")
