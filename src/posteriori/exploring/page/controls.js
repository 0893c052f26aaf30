// Controls of the columns: a slider over curves of its numbers, a menu with a note on each category, a text, a date.

import { el, percent, shownCell, svg } from "./dom.js";
import { valuesOf } from "./questions.js";
import { axisNumbers, scaleOf } from "./scale.js";

const WIDE = 240; // of a drawing, in its own units
const HIGH = 34;
const DIGITS = 7; // of the ends of a range, which are numbers of the table

/** What the controls of a classifier show: p(x | y) of each class, and how frequent a category is. */
class ClassDensities {
  constructor(model) {
    this.model = model;
    this.points = 41;
  }

  /** Return the curves over the values of a column, and the ends of their axis. */
  curves(column, values, scale) {
    if (!this.model.hasDensity) return null;
    const each = values.map((value) =>
      this.model.logConditional(new Map([[column.name, value]])).map((log) => scale.perUnit(value, Math.exp(log))),
    );
    const lines = this.model.classes.map((_, y) => each.map((densities) => densities[y]));
    return { lines, low: 0, high: Math.max(...lines.flat()) };
  }

  /** Return a note on each category of a column, or null. */
  notes(column) {
    if (!this.model.hasDensity) return null;
    const logPrior = this.model.classLogPrior;
    return column.categories.map((category) => {
      const given = this.model.logConditional(new Map([[column.name, category]]));
      return percent(given.reduce((sum, log, y) => sum + Math.exp(log + logPrior[y]), 0));
    });
  }
}

/** The controls of all columns of a model. `changed(name, cell)` is called with null for unknown. */
export class Controls {
  constructor(model, ranges, changed, shown = new ClassDensities(model)) {
    this.model = model;
    this.ranges = ranges;
    this.changed = changed;
    this.shown = shown;
    this.byName = new Map();
    this.filter = el("input", { type: "search", id: "find-column", oninput: () => this.find() });
    const search = el("p", { class: "find" }, el("label", { for: "find-column" }, "Find a column "), this.filter);
    const columns = model.columns;
    this.list = el(
      "div",
      { class: "controls" },
      columns.map((column, at) => this.controlOf(column, at)),
    );
    this.node = el("div", {}, columns.length > 12 ? search : null, this.dates(columns), this.list);
    this.drawWhenVisible();
  }

  /** Show only the columns whose names hold what was typed. */
  find() {
    const wanted = this.filter.value.toLowerCase();
    for (const [name, { node }] of this.byName) node.hidden = !name.toLowerCase().includes(wanted);
  }

  controlOf(column, at) {
    const id = `column-${at}`;
    const made =
      column.kind === "continuous"
        ? this.slider(column, id)
        : column.kind === "categorical"
          ? this.menu(column, id)
          : this.words(column, id);
    const unknown = el(
      "button",
      {
        type: "button",
        class: "unknown",
        "aria-pressed": "true",
        "aria-label": `${column.name}: unknown`,
        onclick: () => this.changed(column.name, null),
      },
      "unknown",
    );
    const node = el(
      "div",
      { class: "control" },
      el("div", { class: "name" }, el("label", { for: id, title: column.name }, column.name), unknown),
      made.content,
    );
    this.byName.set(column.name, { ...made, node, unknown, column });
    return node;
  }

  /** Show the cells of a row. */
  show(row) {
    for (const [name, { node, unknown, set }] of this.byName) {
      const cell = row.get(name) ?? null;
      node.classList.toggle("open", cell === null);
      unknown.setAttribute("aria-pressed", String(cell === null));
      set(cell);
    }
  }

  slider(column, id) {
    const range = this.ranges[column.name];
    const scale = scaleOf(range);
    const { low, high, logarithmic } = scale;
    const [min, max] = [low, high].map(scale.position);
    const slide = el("input", { type: "range", id, min, max, step: range?.[2] && !logarithmic ? 1 : "any" });
    const field = el("input", { type: "number", step: "any", "aria-label": `${column.name}, as a number` });
    const take = () => this.changed(column.name, scale.numberAt(Number(slide.value)));
    slide.addEventListener("input", take);
    slide.addEventListener("click", () => field.value === "" && take()); // in the middle, where the slider stood already
    slide.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 20, PageDown: -20 };
      if (!(event.key in moves)) return;
      event.preventDefault();
      const now = field.value === "" ? scale.numberAt(Number(slide.value)) : Number(field.value);
      this.changed(column.name, scale.moved(now, moves[event.key]));
    });
    field.addEventListener("change", () => this.changed(column.name, field.value === "" ? null : Number(field.value)));
    const drawing = svg("svg", {
      class: "densities",
      viewBox: `0 0 ${WIDE} ${HIGH}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    });
    const set = (cell) => {
      slide.value = cell === null ? (min + max) / 2 : scale.position(cell); // without a handle while it is unknown
      slide.setAttribute("aria-valuetext", shownCell(cell));
      field.value = cell ?? "";
    };
    const numbers = axisNumbers(scale, (end) => shownCell(end, DIGITS));
    const content = [el("div", { class: "slide" }, drawing, slide, numbers), field];
    return { content, set, drawing, draw: () => this.drawCurves(column, drawing) };
  }

  /** Draw the curves of a column over its range. */
  drawCurves(column, drawing) {
    const values = valuesOf(column, this.ranges[column.name], this.shown.points);
    const scale = scaleOf(this.ranges[column.name]);
    const curves = values.length < 2 ? null : this.shown.curves(column, values, scale);
    if (!curves) return;
    const [from, to] = [scale.low, scale.high].map(scale.position);
    const { lines, low, high } = curves;
    lines.forEach((line, y) => {
      const points = line.map(
        (value, k) =>
          `${((WIDE * (scale.position(values[k]) - from)) / (to - from)).toFixed(1)},${(HIGH - 1 - ((HIGH - 2) * (value - low)) / (high - low)).toFixed(1)}`,
      );
      drawing.append(svg("polyline", { class: `curve hue${y % 8}`, points: points.join(" "), hidden: !this.inSight(y) }));
    });
  }

  inSight(y) {
    return this.classesInSight?.includes(y) ?? true;
  }

  /** Show the curves of some classes, and hide those of the others. */
  showCurvesOf(classes) {
    this.classesInSight = classes;
    for (const { drawing } of this.byName.values()) {
      drawing?.querySelectorAll(".curve").forEach((curve, y) => curve.toggleAttribute("hidden", !this.inSight(y)));
    }
  }

  /** Draw curves and notes when they come into view, and all of them before the page is printed. */
  drawWhenVisible() {
    const waiting = new Map(
      [...this.byName.values()].filter(({ draw }) => draw).map((made) => [made.drawing, made.draw]),
    );
    const draw = (drawing) => {
      observer.unobserve(drawing);
      waiting.get(drawing)?.();
      waiting.delete(drawing);
    };
    const observer = new IntersectionObserver(
      (entries) => entries.filter(({ isIntersecting }) => isIntersecting).forEach(({ target }) => draw(target)),
      { rootMargin: "300px" },
    );
    for (const drawing of waiting.keys()) observer.observe(drawing);
    window.addEventListener("beforeprint", () => [...waiting.keys()].forEach(draw));
  }

  menu(column, id) {
    const select = el(
      "select",
      { id },
      el("option", { value: "" }, "unknown"),
      column.categories.map((category, k) => el("option", { value: String(k) }, String(category))),
    );
    select.addEventListener("change", () => {
      this.changed(column.name, select.value === "" ? null : column.categories[Number(select.value)]);
    });
    const note = () => {
      if (column.categories.length > 200) return;
      this.shown.notes(column)?.forEach((text, k) => (select.options[k + 1].textContent = `${column.categories[k]} (${text})`));
    };
    const set = (cell) => {
      select.value = cell === null ? "" : String(column.categories.indexOf(cell));
    };
    return { content: select, set, drawing: select, draw: note };
  }

  words(column, id) {
    const hint = column.text ? "a text" : "words and counts: spam 2, ham 1";
    const field = el("textarea", { id, rows: 3, placeholder: hint });
    field.addEventListener("input", () => {
      this.changed(
        column.name,
        field.value.trim() === "" ? null : column.text ? field.value : countsOf(field.value, column),
      );
    });
    const set = (cell) => {
      if (document.activeElement === field) return;
      const words = cell !== null && typeof cell === "object";
      field.value =
        cell === null
          ? ""
          : words
            ? Object.entries(cell)
                .map(([word, n]) => `${word} ${n}`)
                .join(", ")
            : cell;
    };
    return { content: field, set };
  }

  /** Return a control for each column of dates of the table, which sets all its parts. */
  dates(columns) {
    const sources = [...new Set(columns.filter(({ part }) => part).map(({ part }) => part.of))];
    return sources.map((source, at) => {
      const field = el("input", { type: "datetime-local", id: `date-${at}` });
      field.addEventListener("change", () => {
        if (field.value === "") return;
        const cells = this.model.schema.readRow({ [source]: field.value });
        for (const column of columns.filter(({ part }) => part?.of === source)) {
          const { position, kind, categories, name } = column;
          this.changed(
            name,
            kind === "continuous" ? cells.numbers[position] : (categories[cells.codes[position] - 1] ?? null),
          );
        }
      });
      return el("p", {}, el("label", { for: `date-${at}` }, `${source}, as a date `), field);
    });
  }
}

function countsOf(text, column) {
  const known = (word) => (column.lookup ? column.lookup.has(word) : /^x\d+$/.test(word));
  const pairs = text
    .split(",")
    .map((part) => /^\s*(.+?)(?:\s+(\d+(?:\.\d+)?))?\s*$/.exec(part))
    .filter(Boolean);
  return Object.fromEntries(pairs.filter(([, word]) => known(word)).map(([, word, n]) => [word, Number(n ?? 1)]));
}
