// Two columns of numbers: the rows as points, over the class that is most probable where only these two are known.

import { el, inParts, section, short } from "./dom.js";

const SIZE = 420; // pixels of a side
const CELLS = 44; // of the regions, on each side
const EDGE = 34;

/** The section with the scatter plot. `choose(row)` loads the row whose point is clicked. */
export class Scatter {
  constructor(model, ranges, rows, labels, choose) {
    Object.assign(this, { model, ranges, rows, labels, choose });
    this.columns = model.columns.filter(
      ({ kind, name }) => kind === "continuous" && ranges[name] && ranges[name][0] < ranges[name][1],
    );
    this.work = inParts();
    const menu = (id, title, at) => {
      const select = el(
        "select",
        { id, onchange: () => this.draw() },
        this.columns.map(({ name }) => el("option", { value: name }, name)),
      );
      select.selectedIndex = at;
      return { select, label: el("label", { for: id }, `${title} `, select) };
    };
    const [x, y] = [menu("scatter-x", "Across", 0), menu("scatter-y", "up", 1)];
    [this.x, this.y] = [x.select, y.select];
    this.canvas = el("canvas", {
      width: SIZE,
      height: SIZE,
      role: "img",
      "aria-label": "Rows by two columns; the table of rows has the same rows",
      onclick: (event) => this.pick(event),
    });
    const legend = el(
      "p",
      { class: "legend" },
      model.classes.map((label, k) => el("span", {}, el("i", { class: `hue${k % 8}` }), String(label))),
    );
    this.node = section(
      "scatter",
      "Two columns",
      "A point is a row, in the colour of its label. The background is the class that is most probable where only these two columns are known. Click a point to load its row into what-if.",
      el("p", {}, x.label, " ", y.label),
      legend,
      el("div", { class: "scroll" }, this.canvas),
    );
    new IntersectionObserver((entries, observer) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return; // the first of several may be the oldest
      observer.disconnect();
      this.draw();
    }).observe(this.canvas);
  }

  /** Return whether there are two columns of numbers. */
  static suits(model, ranges) {
    return (
      model.columns.filter(
        ({ kind, name }) => kind === "continuous" && ranges[name] && ranges[name][0] < ranges[name][1],
      ).length > 1
    );
  }

  place(name, value) {
    const [low, high] = this.ranges[name];
    return EDGE + ((SIZE - 2 * EDGE) * (value - low)) / (high - low);
  }

  /** Return the place of a row in the picture, or null if one of its cells is unknown. */
  pointOf(row) {
    if (!row.has(this.x.value) || !row.has(this.y.value)) return null;
    return [this.place(this.x.value, row.get(this.x.value)), SIZE - this.place(this.y.value, row.get(this.y.value))];
  }

  draw() {
    const context = this.canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const hue = (k) => style.getPropertyValue(`--hue${k % 8}`).trim();
    const [nameX, nameY] = [this.x.value, this.y.value];
    const step = (SIZE - 2 * EDGE) / CELLS;
    const valueAt = (name, k) =>
      this.ranges[name][0] + ((k + 0.5) / CELLS) * (this.ranges[name][1] - this.ranges[name][0]);
    context.clearRect(0, 0, SIZE, SIZE);
    const steps =
      nameX === nameY
        ? []
        : Array.from({ length: CELLS }, (_, i) => () => {
            for (let k = 0; k < CELLS; k++) {
              const p = this.model.posterior(
                new Map([
                  [nameX, valueAt(nameX, i)],
                  [nameY, valueAt(nameY, k)],
                ]),
              );
              const best = p.indexOf(Math.max(...p));
              if (best < 0) continue;
              context.globalAlpha = 0.08 + 0.3 * Math.max(0, (p[best] - 1 / p.length) / (1 - 1 / p.length));
              context.fillStyle = hue(best);
              context.fillRect(EDGE + i * step, SIZE - EDGE - (k + 1) * step, step, step);
            }
          });
    this.work(steps, () => this.drawPoints(context, style, hue), [this.node]);
  }

  drawPoints(context, style, hue) {
    context.globalAlpha = 0.9;
    this.rows.forEach((row, i) => {
      const point = this.pointOf(row);
      if (!point) return;
      const label = this.labels ? this.labels[i] : -1;
      context.fillStyle = label >= 0 ? hue(label) : style.getPropertyValue("--soft");
      context.beginPath();
      context.arc(point[0], point[1], 2.6, 0, 2 * Math.PI);
      context.fill();
    });
    context.globalAlpha = 1;
    context.fillStyle = style.getPropertyValue("--ink");
    context.font = "12px system-ui, sans-serif";
    const [lowX, highX] = this.ranges[this.x.value];
    const [lowY, highY] = this.ranges[this.y.value];
    const write = (text, x, y, align) => {
      context.textAlign = align;
      context.fillText(text, x, y);
    };
    write(short(lowX), EDGE, SIZE - EDGE + 16, "left");
    write(short(highX), SIZE - EDGE, SIZE - EDGE + 16, "right");
    write(this.x.value, SIZE / 2, SIZE - EDGE + 16, "center");
    write(`${this.y.value}: ${short(lowY)} to ${short(highY)}`, EDGE, EDGE - 10, "left");
    this.canvas.dataset.drawn = `${this.x.value},${this.y.value}`;
  }

  pick(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) * SIZE) / box.width, ((event.clientY - box.top) * SIZE) / box.height];
    let [nearest, distance] = [null, 15];
    for (const row of this.rows) {
      const point = this.pointOf(row);
      const apart = point ? Math.hypot(point[0] - x, point[1] - y) : Infinity;
      if (apart < distance) [nearest, distance] = [row, apart];
    }
    if (nearest) this.choose(nearest);
  }
}
