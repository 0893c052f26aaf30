// The nomogram (Lubsen et al. 1978; Možina et al. 2004) of a model that is a sum of one-column factors: the points of
// each value of a column, and the probability of their sum. Its dots can be dragged.

import { el, percent, section, shownCell, svg } from "./dom.js";

const LEFT = 150;
const SPAN = 440; // of the longest axis
const AXIS = 40;
const MOST_COLUMNS = 30;
const MOST_LABELS = 12;
const TICKS = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/** Return whether the log-odds of a model are a bias and one term per column, none of which depends on other columns. */
export function isSum(model) {
  const [only] = model.models;
  return !model.pool && !only.ofClass && only.blocks.every(({ density }) => density.ofOneColumn);
}

/** The section with the nomogram. `set(name, cell)` is called when a dot moves. */
export class Nomogram {
  constructor(model, valuesOf, set) {
    this.model = model;
    this.valuesOf = valuesOf;
    this.set = set;
    this.figure = el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Nomogram" });
    this.note = el("p", { class: "note" });
    this.details = el(
      "details",
      { ontoggle: () => this.draw() },
      el("summary", {}, "Show the nomogram"),
      this.figure,
      this.note,
    );
    this.node = section(
      "nomogram",
      "Nomogram",
      "Every value of a column has points: 100 are the range of the widest column. The sum of the points determines the probability of the first of the two classes of the sum. Drag a dot to change a column.",
      this.details,
    );
  }

  /** Remember the row and the two classes, and draw them if the nomogram is open. */
  show(row, y, other) {
    this.shown = { row, y, other };
    this.draw();
  }

  /** Return log p(v | y) of each value of each column, (C,) each, computed once. */
  terms() {
    this.columns ??= this.model.columns
      .map((column) => {
        const values = this.valuesOf(column);
        const logs = values.map((value) => this.termOf(column, value));
        return { column, values, logs };
      })
      .filter(({ values }) => values.length);
    return this.columns;
  }

  termOf(column, cell) {
    return this.model.explain(new Map([[column.name, cell]])).factors[column.position].log;
  }

  draw() {
    if (!this.details.open || !this.shown) return;
    const { row, y, other } = this.shown;
    const odds = (log) => clamp(log[y] - log[other]);
    const axes = this.terms()
      .map(({ column, values, logs }) => {
        const points = logs.map(odds);
        const cell = row.has(column.name) ? row.get(column.name) : null;
        const low = Math.min(...points, 0);
        const now =
          cell === null
            ? odds(this.model.explain(new Map()).factors[column.position].log)
            : odds(this.termOf(column, cell));
        return { column, values, points, low, range: Math.max(...points, 0) - low, cell, now };
      })
      .sort((a, b) => b.range - a.range);
    const kept = axes.slice(0, MOST_COLUMNS);
    const unit = SPAN / Math.max(...kept.map(({ range }) => range), 1e-9);
    const height = AXIS * (kept.length + 2) + 60;
    const drawing = svg("svg", {
      class: "chart nomogram",
      width: LEFT + SPAN + 60,
      height,
      viewBox: `0 0 ${LEFT + SPAN + 60} ${height}`,
    });
    drawing.append(
      text(LEFT - 12, 22, "points", "end"),
      ...this.scale(0, 100, 10, 22, (point) => LEFT + (SPAN * point) / 100, String),
    );
    kept.forEach((axis, k) => drawing.append(this.axis(axis, AXIS * (k + 1) + 26, unit)));
    drawing.append(...this.total(axes, AXIS * (kept.length + 1) + 40));
    const focused = this.figure.contains(document.activeElement) ? document.activeElement.dataset.column : null;
    this.figure.replaceChildren(drawing);
    if (focused !== null)
      [...this.figure.querySelectorAll("[data-column]")].find((dot) => dot.dataset.column === focused)?.focus();
    this.note.textContent =
      axes.length > kept.length ? `The ${kept.length} widest of ${axes.length} columns are drawn.` : "";
  }

  axis({ column, values, points, low, range, cell, now }, top, unit) {
    const at = (point) => LEFT + (point - low) * unit;
    const group = svg(
      "g",
      { class: "axis-of-column" },
      text(LEFT - 12, top + 4, clip(column.name), "end"),
      svg("line", { class: "axis", x1: at(low), x2: at(low + range), y1: top, y2: top }),
    );
    const taken = [];
    const order = [...values.keys()].sort((a, b) => points[b] - points[a]);
    const labelled = new Set(
      order.filter((_, k) => k % Math.ceil(order.length / MOST_LABELS) === 0 || k === order.length - 1),
    );
    values.forEach((value, k) => {
      const x = at(points[k]);
      group.append(svg("line", { class: "axis", x1: x, x2: x, y1: top - 3, y2: top + 3 }));
      const label = clip(shownCell(value), 12);
      const width = 6.2 * label.length + 6;
      const side = [14, -7].find(
        (dy) => !taken.some((one) => one.dy === dy && Math.abs(one.x - x) < (one.width + width) / 2),
      );
      if (!labelled.has(k) || side === undefined) return;
      taken.push({ x, width, dy: side });
      group.append(text(x, top + side, label, "middle", 10));
    });
    const pick = (event) => {
      const box = event.currentTarget.ownerSVGElement.getBoundingClientRect();
      const x = event.clientX - box.left;
      const nearest = points.reduce(
        (best, point, k) => (Math.abs(at(point) - x) < Math.abs(at(points[best]) - x) ? k : best),
        0,
      );
      if (values[nearest] !== this.shown.row.get(column.name)) this.set(column.name, values[nearest]);
    };
    const touch = svg("rect", { x: LEFT, y: top - 14, width: SPAN + 40, height: 28, fill: "transparent" });
    touch.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.dragged = column.name;
      pick(event);
    });
    touch.addEventListener("pointermove", (event) => {
      if (event.buttons && this.dragged === column.name) pick(event);
    });
    const dot = svg("circle", {
      class: cell === null ? "dot open" : "dot",
      cx: at(now),
      cy: top,
      r: 6,
      tabindex: 0,
      role: "slider",
      "data-column": column.name,
      "aria-label": column.name,
      "aria-valuenow": now.toFixed(3),
      "aria-valuetext": `${shownCell(cell)}: ${now.toFixed(2)} nats`,
    });
    dot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!step && event.key !== "Delete") return;
      event.preventDefault();
      const ranked = [...values.keys()].sort((a, b) => points[a] - points[b]);
      const place = ranked.findIndex((k) => values[k] === cell);
      const start = place >= 0 ? place : ranked.findIndex((k) => points[k] > now) - (step > 0 ? 1 : 0);
      const next = Math.min(Math.max(start + (step ?? 0), 0), ranked.length - 1);
      this.set(column.name, step ? values[ranked[next]] : null);
    });
    group.append(touch, dot);
    return group;
  }

  /** Return the axis of the sum: the probability of the class at each sum of log-odds. */
  total(axes, top) {
    const { y, other, row } = this.shown;
    const { bias } = this.model.explain(row);
    const base = clamp(bias[y] - bias[other]);
    const [low, high] = axes.reduce(([a, b], axis) => [a + axis.low, b + axis.low + axis.range], [base, base]);
    const now = axes.reduce((sum, axis) => sum + axis.now, base);
    const [from, to] = [Math.max(low, -8), Math.min(high, 8)];
    const at = (log) => LEFT + (SPAN * (Math.min(Math.max(log, from), to) - from)) / (to - from || 1);
    const shown = TICKS.filter((p) => Math.log(p / (1 - p)) >= from && Math.log(p / (1 - p)) <= to);
    const p = 1 / (1 + Math.exp(-now));
    const name = clip(`p(${this.model.classes[y]})`);
    const pair =
      this.model.classes.length > 2
        ? `, of the two classes ${this.model.classes[y]} and ${this.model.classes[other]}`
        : "";
    return [
      text(LEFT - 12, top + 4, name, "end", 12, 600),
      svg("line", { class: "axis", x1: LEFT, x2: LEFT + SPAN, y1: top, y2: top }),
      shown.map((one) => [
        svg("line", {
          class: "axis",
          x1: at(Math.log(one / (1 - one))),
          x2: at(Math.log(one / (1 - one))),
          y1: top - 3,
          y2: top + 3,
        }),
        text(at(Math.log(one / (1 - one))), top + 15, String(one), "middle", 10),
      ]),
      svg("circle", { class: "dot total", cx: at(now), cy: top, r: 6, "data-value": p }),
      text(LEFT, top + 34, `${percent(p)}${pair}`, "start", 12),
    ].flat(2);
  }

  scale(low, high, step, top, at, write) {
    const marks = [svg("line", { class: "axis", x1: at(low), x2: at(high), y1: top, y2: top })];
    for (let mark = low; mark <= high; mark += step) {
      marks.push(
        svg("line", { class: "axis", x1: at(mark), x2: at(mark), y1: top - 3, y2: top + 3 }),
        text(at(mark), top - 7, write(mark), "middle", 10),
      );
    }
    return marks;
  }
}

function text(x, y, content, anchor, size = 12, weight = null) {
  return svg("text", { x, y, "text-anchor": anchor, "font-size": size, "font-weight": weight }, content);
}

function clip(name, length = 22) {
  return name.length > length ? `${name.slice(0, length - 1)}…` : name;
}

function clamp(log) {
  return Math.min(Math.max(Number.isNaN(log) ? 0 : log, -30), 30); // a probability of 0 has no place on an axis
}
