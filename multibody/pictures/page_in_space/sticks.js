// The same on a flat canvas, as sticks, for browsers without WebGL.

class FlatStage {
  constructor(pen) { this.pen = pen; }

  begin(viewport, camera) {
    const [x, y, width, height] = viewport;
    this.pen.setTransform(1, 0, 0, 1, 0, 0);
    this.pen.clearRect(x, y, width, height);
    this.viewport = viewport;
    this.camera = camera;
    this.pen.lineCap = "round";
  }

  place(p) {
    const m = this.camera.matrix, [x, y, width, height] = this.viewport;
    const w = m[3] * p[0] + m[7] * p[1] + m[11] * p[2] + m[15];
    const [a, b] = act(m, p);
    return [x + width * (0.5 + 0.5 * a / w), y + height * (0.5 - 0.5 * b / w)];
  }

  lines(sticks, alpha = 1) {
    this.pen.globalAlpha = alpha;
    for (const { a, b, colour, width } of sticks) {
      this.pen.beginPath();
      this.pen.moveTo(...this.place(a));
      this.pen.lineTo(...this.place(b));
      this.pen.strokeStyle = `rgb(${colour.slice(0, 3).map((c) => Math.round(255 * c))})`;
      this.pen.lineWidth = width;
      this.pen.stroke();
    }
    this.pen.globalAlpha = 1;
  }
}
