// Rows of a table: which are strange, wrong or close to the boundary; and decisions by prevalence and costs.

import { bar, el, nameOf, percent, section, short, shownCell, table } from "./dom.js";
import { priorWith, underPrior } from "./questions.js";

const LISTED = 15;

/** The sections about rows. `choose(row)` loads one into what-if; `onsettings()` follows prevalence and costs. */
export class Cases {
  constructor(model, rows, choose) {
    this.model = model;
    this.labels = rows.labels;
    this.first = rows.positive; // the class with which the decisions begin
    this.heldOut = rows.heldOut;
    this.seen = rows.seen;
    this.total = rows.total;
    this.numbers = rows.numbers;
    this.rows = rows.cells.map(
      (cells) => new Map(rows.names.flatMap((name, j) => (cells[j] === null ? [] : [[name, cells[j]]]))),
    );
    this.choose = choose;
    this.onsettings = () => {};
    this.posteriors = null;
    this.list = el("div");
    const orders = [
      ["strange", "strangest: lowest log p(x)"],
      ["wrong", "wrong and sure"],
      ["boundary", "near the boundary"],
    ];
    this.order = el(
      "select",
      { id: "order", onchange: () => this.showList() },
      orders
        .filter(([key]) => (key !== "wrong" || this.labels) && (key !== "strange" || model.hasDensity))
        .map(([key, title]) => el("option", { value: key }, title)),
    );
    const some =
      this.total > this.rows.length
        ? `${this.rows.length} of ${this.total} rows, drawn at random`
        : `${this.rows.length} rows`;
    this.node = section(
      "rows",
      "Rows",
      `This page contains the cells of ${some}. Choose one to load it into what-if.`,
      el("p", {}, el("label", { for: "order" }, "Show ", this.order)),
      this.list,
    );
    this.decisions = this.labels ? this.decisionSection() : null;
  }

  /** Return the work of evaluating all rows, in steps. */
  steps() {
    this.found = this.rows.map(() => null);
    return this.rows.map((row, i) => () => {
      this.found[i] = { posterior: this.model.posterior(row), density: this.model.logDensity(row) };
    });
  }

  /** Return the rows of a class with the fewest unknown cells; without labels, of any class. */
  ofClass(y) {
    const rows = this.rows.filter((_, i) => !this.labels || this.labels[i] === y);
    const most = Math.max(...rows.map(({ size }) => size));
    return rows.filter(({ size }) => size === most);
  }

  showList() {
    if (!this.posteriors) return;
    const score = {
      strange: (i) => this.found[i].density,
      wrong: (i) => (this.labels[i] < 0 ? 2 : this.posteriors[i][this.labels[i]]),
      boundary: (i) => {
        const [a, b] = [...this.posteriors[i]].sort((p, q) => q - p);
        return a - b;
      },
    }[this.order.value];
    const order = [...this.rows.keys()].sort((a, b) => score(a) - score(b)).slice(0, LISTED);
    const rows = order.map((i) => {
      const p = this.posteriors[i];
      const y = p.indexOf(Math.max(...p));
      const load = el("button", { type: "button", onclick: () => this.choose(this.rows[i]) }, `row ${this.numbers[i]}`);
      const label = this.labels && this.labels[i] >= 0 ? String(this.model.classes[this.labels[i]]) : "–";
      return [load, nameOf(String(this.model.classes[y] ?? "–")), percent(p[y]), nameOf(label), short(this.found[i].density)];
    });
    this.list.replaceChildren(table("Rows", ["row", "predicted", "probability", "label", "log p(x)"], rows, [0, 1, 3]));
  }

  /** Show the results when all rows are evaluated. */
  finished() {
    this.posteriors = this.found.map(({ posterior }) => posterior);
    this.showList();
    if (this.decisions) this.showDecisions();
  }

  decisionSection() {
    const prior = this.model.classLogPrior.map(Math.exp);
    this.positive = el(
      "select",
      { id: "positive", onchange: () => this.changed(true) },
      this.model.classes.map((label, y) => el("option", { value: String(y) }, String(label))),
    );
    this.positive.value = String(this.first);
    const slider = (id, title, attributes) => {
      const input = el("input", { type: "range", id, oninput: () => this.changed(), ...attributes });
      const output = el("output", { for: id });
      return { input, output, line: el("div", { class: "setting" }, el("label", { for: id }, title), input, output) };
    };
    this.prevalence = slider("prevalence", "Prevalence: p(class)", {
      min: 0.001,
      max: 0.999,
      step: 0.001,
      value: prior[this.first],
    });
    this.falsePositive = slider("false-positive", "Cost of a false positive", {
      min: 0.1,
      max: 20,
      step: 0.1,
      value: 1,
    });
    this.falseNegative = slider("false-negative", "Cost of a false negative", {
      min: 0.1,
      max: 20,
      step: 0.1,
      value: 1,
    });
    this.outcome = el("div", { "aria-live": "polite" });
    return section(
      "decisions",
      "Decisions",
      `The class is predicted where its probability is above the threshold that the costs imply: false positive / (false positive + false negative). ${this.provenance()}`,
      el("p", {}, el("label", { for: "positive" }, "Class ", this.positive)),
      [this.prevalence, this.falsePositive, this.falseNegative].map(({ line }) => line),
      this.outcome,
    );
  }

  /** Return what the reader should know about the predictions behind the decisions. */
  provenance() {
    if (this.heldOut) {
      return "These are the training rows. Each was predicted by models that were not trained on it (cross-validation), so that the figures are those of new rows.";
    }
    if (this.seen > 0) {
      const many = this.seen > 0.99 ? "these rows" : `about ${percent(this.seen)} of these rows`;
      return `The model learned from ${many}, so that the figures are too good; give rows that it has not seen.`;
    }
    return "If the model learned from these rows, the figures are too good; give rows that it has not seen.";
  }

  changed(reset = false) {
    this.showDecisions(reset);
    this.onsettings();
  }

  /** Return what the sliders of the decisions say: the class, its prevalence, and the costs of both errors. */
  settings() {
    const prior = Array.from(this.model.classLogPrior, Math.exp);
    const y = Number(this.positive.value);
    const of = ({ input }) => Number(input.value);
    const [prevalence, fp, fn] = [this.prevalence, this.falsePositive, this.falseNegative].map(of);
    return { prior, y, prevalence, fp, fn, other: priorWith(prior, y, prevalence) };
  }

  /** Return the least expected cost of deciding with given probabilities, and how the prevalence moves the prior. */
  costs() {
    const { prior, y, fp, fn, other } = this.settings();
    return {
      loss: (p) => Math.min(fp * (1 - p[y]), fn * p[y]),
      ratio: prior.map((p, k) => (p > 0 ? other[k] / p : 0)),
    };
  }

  showDecisions(reset = false) {
    if (reset) this.prevalence.input.value = Math.exp(this.model.classLogPrior[Number(this.positive.value)]);
    if (!this.posteriors) return;
    const posteriors = this.heldOut ?? this.posteriors;
    const { prior, y, prevalence, fp, fn, other } = this.settings();
    const settings = [this.prevalence, this.falsePositive, this.falseNegative];
    settings.forEach(({ output }, k) => {
      output.textContent = k ? short(Number(settings[k].input.value)) : percent(prevalence);
    });
    const threshold = fp / (fp + fn);
    const rows = [...this.rows.keys()].filter((i) => this.labels[i] >= 0 && posteriors[i] && !Number.isNaN(posteriors[i][0]));
    const counts = [
      [0, 0],
      [0, 0],
    ]; // [label is the class][predicted as the class], rows reweighted to the prevalence
    const bins = Array.from({ length: 10 }, () => ({ rows: 0, n: 0, p: 0, hits: 0 }));
    const share = rows.filter((i) => this.labels[i] === y).length / rows.length;
    for (const i of rows) {
      const p = underPrior(Array.from(posteriors[i]), prior, other)[y];
      const hit = Number(this.labels[i] === y);
      const weight = hit ? (share > 0 ? prevalence / share : 0) : share < 1 ? (1 - prevalence) / (1 - share) : 0;
      counts[hit][Number(p > threshold)] += weight / rows.length;
      const bin = bins[Math.min(Math.floor(10 * p), 9)];
      bin.rows++;
      bin.n += weight; // of rows at this prevalence
      bin.p += weight * p;
      bin.hits += weight * hit;
    }
    const cost = counts[0][1] * fp + counts[1][0] * fn;
    const label = String(this.model.classes[y]);
    const line = (title, hit) => [title, percent(counts[hit][1]), percent(counts[hit][0])];
    this.outcome.replaceChildren(
      el(
        "p",
        {},
        `Threshold ${percent(threshold)}; expected cost per row ${short(cost)}, against ${short(Math.min(fp * (1 - prevalence), fn * prevalence))} without the model.`,
      ),
      table(
        "Confusion matrix, shares of all rows at this prevalence",
        ["label", `predicted ${label}`, "predicted another"],
        [line(label, 1), line("another", 0)],
      ),
      table(
        "Calibration: predicted and observed share",
        ["p(class)", "observed", "", "rows"],
        bins
          .filter(({ n }) => n > 0)
          .map(({ rows, n, p, hits }) => [percent(p / n), percent(hits / n), bar(hits / n), String(rows)]),
      ),
    );
  }
}
