// The page of a regressor: the density of the target as columns become known.

import { rangeSentences } from "./compared.js";
import { DensityDrawing } from "./density.js";
import { el, pageParts, percent, section, short, shownCell, signed, table, writeAddress } from "./dom.js";
import { valuesOf } from "./questions.js";
import { WhatIf } from "./what_if.js";
import { Waterfall, largestFirst } from "./waterfall.js";

const COLOURS = ["var(--hue0, #0072b2)", "var(--hue1, #d55e00)"]; // of what adds, and what takes away

/** Return an amount with its sign, in thousandths of a unit that is typical, or finer. */
function amountOf(x, unit) {
  const decimals = Math.max(3 - Math.floor(Math.log10(unit)), 0);
  const written = Math.abs(x) >= 1e6 || decimals > 6 ? short(Math.abs(x)) : Math.abs(x).toFixed(decimals);
  return `${x < 0 ? "−" : "+"}${written}`;
}

/** How amounts on the scale of the target are written: in its units, as factors, or as normal scores of ranks. */
function wordsOf({ name, centre, unit, shift }, target) {
  if (name === "rank") {
    return {
      lead: `Each bar is what one column adds to the normal score of the rank of ${target}: 0 is the median of the training rows, and 1 one standard deviation above it.`,
      amount: signed,
      number: (t) => short(t),
    };
  }
  if (name === "log") {
    const shifted = shift ? `${target} + ${short(shift)}` : target;
    return {
      lead: `Each bar is the factor by which one column multiplies ${shifted}: the columns add up on the scale of its logarithm.`,
      amount: (t) => `× ${short(Math.exp(unit * t), 3)}`,
      number: (t) => short(Math.exp(centre + unit * t) - shift),
    };
  }
  return {
    lead: `Each bar is what one column adds to ${target}, in its units.`,
    amount: (t) => amountOf(unit * t, unit),
    number: (t) => short(centre + unit * t),
  };
}

/** What the controls show: the function of each column, all on one axis. */
class Effects {
  constructor(model, ranges, words) {
    Object.assign(this, { model, ranges, words });
    this.points = 121; // of a curve, so that steps are steep
  }

  /** The least and the greatest amount that a column adds anywhere. */
  get ends() {
    if (!this.known) {
      const all = this.model.columns.flatMap((column) => this.amounts(column, valuesOf(column, this.ranges[column.name], 41)));
      this.known = [Math.min(...all, 0), Math.max(...all, 1e-9)];
    }
    return this.known;
  }

  amounts({ name }, values) {
    return values.map((value) => this.model.effect(name, value));
  }

  curves(column, values) {
    const line = this.amounts(column, values);
    const [low, high] = this.ends;
    return { lines: [line], low: Math.min(low, ...line), high: Math.max(high, ...line) };
  }

  notes(column) {
    return this.amounts(column, column.categories).map(this.words.amount);
  }
}

/** The page: a row of known cells, and the density of the target given it. */
export class NumberPage extends WhatIf {
  constructor(model, { title, ranges, axis }) {
    const words = wordsOf(model.scale, model.target);
    super(model, title, ranges, new Effects(model, ranges, words));
    this.words = words;
    this.all = model.predictDensity(new Map());
    this.drawing = new DensityDrawing(axis, model.cells, model.atoms, this.all);
    this.sum = new Waterfall("sum");
    this.between = ["low", "high"].map((end) =>
      el("input", { type: "number", step: "any", id: `range-${end}`, "aria-label": `${end} end`, oninput: () => this.showRange() }),
    );
    this.inRange = el("output", { id: "in-range" });
    this.node = this.build();
    this.follow();
    this.update();
  }

  /** Compute p(y | x); an error if the model cannot read a cell. */
  answerTo(row) {
    return this.model.predictDensity(row);
  }

  build() {
    const { model } = this;
    this.picture = el("div");
    this.moments = el("div", { id: "moments" });
    this.note = el("p", { class: "note", id: "density" });
    this.located = el("output", { class: "note", id: "located" });
    const answer = el(
      "div",
      { class: "answers" },
      this.summary,
      this.picture,
      this.moments,
      el("p", { class: "range" }, el("span", {}, "Probability from"), this.between[0], "to", this.between[1], this.inRange),
      this.note,
      this.problem,
      this.buttons(),
    );
    const sum = section(
      "sum",
      "The sum of the columns",
      `${this.words.lead} The bars begin at the mean of the training rows. An unknown column has the amount that the known ones make expect.`,
      this.sum.figure,
      this.located,
      this.sum.rows,
      this.sum.buttons,
    );
    const whatIf = section(
      "what-if",
      "What if",
      `Set what you know about a row and leave the rest unknown: the density is that given the known columns alone. The dashed density is that where nothing is known. The curve over a slider is what the column adds to ${model.target}, all on one axis.`,
      el("div", { class: "what-if" }, this.controls.node, el("div", { class: "beside" }, answer, sum)),
    );
    const known = model.columns.length === 1 ? "1 column" : `${model.columns.length} columns`;
    return pageParts(this.title, `${model.name} of ${known}: ${model.target} is a sum of their functions.`, [whatIf]);
  }

  /** Compute and show everything. */
  update() {
    this.controls.show(this.row);
    const density = this.answer();
    if (!density) return;
    this.density = density;
    const [low, high] = density.interval(0.9).map((y) => short(y));
    this.summary.textContent = `${this.model.target}: ${short(density.mean)} (90 %: ${low} to ${high})`;
    this.picture.replaceChildren(this.drawing.drawing(density));
    this.showMoments(density);
    this.showRange();
    this.showSum();
    const sentences = rangeSentences(this.row, this.ranges, true);
    if (!this.row.size) sentences.unshift("Nothing is known yet: this is the density before any column.");
    this.note.textContent = sentences.join(" ");
    writeAddress({ row: Object.fromEntries(this.row) });
  }

  showMoments(density) {
    const of = (one) => [one.mean, one.median, one.sd, ...one.interval(0.9)];
    const [own, all] = [of(density), of(this.all)];
    const names = ["mean (line)", "median (dots)", "standard deviation", "5 % are below", "5 % are above"];
    const rows = names.map((name, k) => [name, el("span", { "data-value": own[k] }, short(own[k])), short(all[k])]);
    const shown = table(`${this.model.target}, given what is known`, ["", "now", "all unknown"], rows);
    shown.querySelector("table").classList.add("moments");
    this.moments.replaceChildren(shown);
  }

  /** Show the probability of the range between both fields; an empty one has no end. */
  showRange() {
    const [low, high] = this.between.map(({ value }) => (value === "" ? null : Number(value)));
    const p = this.density.probability(low ?? -Infinity, high ?? Infinity);
    this.inRange.textContent = low === null && high === null ? "" : percent(p);
    this.inRange.dataset.value = String(p);
  }

  showSum() {
    const { base, location, parts } = this.model.explain(this.row);
    const terms = parts
      .map(({ column, value, part }) => ({
        name: value === null ? `${column} unknown` : `${column} = ${shownCell(value)}`,
        value: part,
        known: value !== null,
      }))
      .filter(({ value, known }) => known || Math.abs(value) > 1e-12);
    const { amount, number } = this.words;
    const total = location - base;
    const sum = {
      terms: largestFirst(terms, "columns"),
      total,
      last: "sum",
      shown: amount,
      caption: `What each column adds to ${this.model.target}`,
      label: `Sum of what the columns add to ${this.model.target}`,
    };
    this.sum.show(sum, ["more", "less"], COLOURS);
    this.located.dataset.value = String(location);
    this.located.textContent =
      this.model.scale.name === "rank"
        ? `Mean score of the training rows ${number(base)}, with the sum ${number(location)}.`
        : `From ${number(base)} to ${number(location)}, the centre of the density.`;
  }
}
