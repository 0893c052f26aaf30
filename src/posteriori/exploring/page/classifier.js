// The page of a classifier or a mixture.

import { Cases } from "./cases.js";
import { Changes } from "./changes.js";
import { ClassShares, DrawnRows, rangeSentences } from "./compared.js";
import {
  bar,
  el,
  inParts,
  nameOf,
  nats,
  pageParts,
  percent,
  section,
  setShare,
  shownCell,
  table,
  writeAddress,
} from "./dom.js";
import { Nomogram, isSum } from "./nomogram.js";
import { entropy, expectedDrop, smallestChange, valuesOf } from "./questions.js";
import { Scatter } from "./scatter.js";
import { Structure } from "./structure.js";
import { BayesSum } from "./sum.js";
import { nearestRow, typicalSteps } from "./typical.js";
import { WhatIf } from "./what_if.js";

const MOST_CLASSES_OF_MEMBERS = 6;
const MOST_IN_ORDER = 6; // classes that keep their places: two that change them at each step of a slider are hard to read
const MOST_SHOWN = 10; // classes; a button shows the others
const MOST_CURVES = 8; // of more classes, the curves of the most probable ones are shown
const CURVES_OF_MANY = 3;

/** Return whether the prediction is a sum over the columns: the arithmetic mean of a forest is not. */
function isExplained(model) {
  try {
    return Boolean(model.explain(new Map()));
  } catch {
    return false;
  }
}

/** The page: a row of known cells, and everything that follows from it. */
export class ClassifierPage extends WhatIf {
  constructor(model, { title, ranges, trained, rows, dependences, verdict, counts, drawn }) {
    super(model, title, ranges);
    this.verdict = verdict;
    this.showsAll = false;
    this.prior = model.classLogPrior.map(Math.exp);
    this.sum = model.classes.length > 1 && isExplained(model) ? new BayesSum(model) : null;
    if (this.sum) this.sum.onchoice = () => this.update();
    this.nomogram =
      this.sum && isSum(model)
        ? new Nomogram(
            model,
            (column) => valuesOf(column, ranges[column.name], 13),
            (name, cell) => this.set(name, cell),
          )
        : null;
    const choose = (row) => {
      this.load(row);
      document.getElementById("what-if").scrollIntoView();
    };
    this.cases = rows ? new Cases(model, rows, choose) : null;
    this.scatter =
      this.cases && Scatter.suits(model, ranges)
        ? new Scatter(model, ranges, this.cases.rows, rows.labels, choose)
        : null;
    this.structure = dependences.length ? new Structure(dependences) : null;
    this.evaluateQuestions = inParts();
    this.questions = el("div");
    this.measure = this.cases?.decisions && model.hasDensity ? this.measureMenu() : null;
    this.trained = trained;
    this.shares = new ClassShares(model, counts ?? { cuts: [], scopes: [] }, ranges, this.cases ?? {});
    this.drawn = drawn ? new DrawnRows(model, drawn) : null;
    this.changes = new Changes(model, ranges, this.drawn);
    this.searchTypical = inParts();
    this.members = el("div");
    this.node = this.build();
    const state = this.follow();
    if (this.sum && Array.isArray(state?.classes)) this.sum.chosen = state.classes;
    this.update();
    if (this.cases) inParts()(this.cases.steps(), () => this.cases.finished(), [this.cases.node, this.cases.decisions]);
  }

  /** Compute p(y | x); an error if the model cannot read a cell. */
  answerTo(row) {
    return this.model.posterior(row);
  }

  /** Set one cell, null for unknown. */
  set(name, cell) {
    this.searchTypical([], () => {}); // what it would find is no longer wanted
    super.set(name, cell);
  }

  /** Compute and show everything; what takes long comes later, in parts. */
  update() {
    this.controls.show(this.row);
    const posterior = this.answer();
    if (!posterior) return;
    if (Number.isNaN(posterior[0])) this.problem.textContent = "No class can produce this row.";
    this.posterior = posterior;
    this.showPosterior(posterior);
    this.sum?.show(this.row, posterior);
    this.nomogram?.show(this.row, ...this.sum.pair);
    const classes = this.sum?.chosen;
    writeAddress({ row: Object.fromEntries(this.row), ...(classes?.some(Boolean) ? { classes } : {}) });
    this.askLater();
  }

  /** Return a menu of what a question should lower: the entropy, or the cost by the sliders of the decisions. */
  measureMenu() {
    const menu = el(
      "select",
      { id: "measure", onchange: () => this.askLater() },
      el("option", { value: "entropy" }, "entropy of the class"),
      el("option", { value: "cost" }, "expected cost, as set under Decisions"),
    );
    this.cases.onsettings = () => this.byCost && this.askLater();
    return menu;
  }

  get byCost() {
    return this.measure?.value === "cost";
  }

  build() {
    const { model } = this;
    const target = model.target === null ? "the class" : model.target;
    const rows = (this.bars = model.classes.map((label, y) => {
      const fill = el("i", { class: `hue${y % 8}` });
      const share = el("td", { class: "rows" });
      const line = { fill, shown: el("td", { "data-class": y }), share, change: el("td", { class: "prior" }), mark: el("b") };
      line.mark.style.left = `${100 * this.prior[y]}%`;
      line.node = el(
        "tr",
        {},
        el(
          "th",
          { scope: "row", title: String(label) },
          el("span", { class: `swatch hue${y % 8}`, "aria-hidden": "true" }),
          String(label),
        ),
        el("td", {}, el("span", { class: "bar", "aria-hidden": "true" }, fill, line.mark)),
        line.shown,
        line.share,
        line.change,
      );
      return line;
    }));
    this.counted = el("p", { class: "note", id: "counted" });
    this.density = el("p", { class: "note", id: "density" });
    this.others = el("button", {
      type: "button",
      id: "others",
      hidden: model.classes.length <= MOST_SHOWN,
      onclick: () => {
        this.showsAll = !this.showsAll;
        this.showPosterior(this.posterior);
      },
    });
    this.lines = el(
      "tbody",
      {},
      rows.map(({ node }) => node),
    );
    const typical = model.hasDensity
      ? el(
          "select",
          {
            "aria-label": "Typical row of a class",
            id: "typical",
            onchange: (event) => {
              const y = event.target.value;
              if (y !== "") this.loadTypical(Number(y));
              event.target.value = "";
            },
          },
          el("option", { value: "" }, "Typical row of a class"),
          model.classes.map((label, y) => el("option", { value: String(y) }, String(label))),
        )
      : null;
    const buttons = this.buttons(typical);
    const answer = el(
      "div",
      { class: "answers" },
      this.summary,
      el(
        "table",
        {},
        el("caption", {}, `p(${target} | what is known)`),
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            [
              ["class", "text"],
              ["", null],
              ["probability", null],
              ["rows", "rows"],
              ["prior", "prior"],
            ].map(([head, kind]) => el("th", { scope: "col", class: kind }, head)),
          ),
        ),
        this.lines,
      ),
      this.others,
      this.counted,
      this.density,
      this.problem,
      buttons,
    );
    const known = model.columns.length === 1 ? "1 column" : `${model.columns.length} columns`;
    this.whatIf = section(
      "what-if",
      "What if",
      `Set what you know about a row and leave the rest unknown: the posterior is that given the known columns alone. The curves are the densities of the ${model.classes.length > MOST_CURVES ? "three most probable " : ""}classes; the mark on a bar is the prior.`,
      el("div", { class: "what-if" }, this.controls.node, el("div", { class: "beside" }, answer, this.sum?.node)),
    );
    this.asked = section(
      "questions",
      "Next best question",
      `How much the answer to one more column is expected to lower the entropy of the class (mutual information, nats)${this.measure ? ", or the expected cost of the decision, which falls only if an answer can change the decision" : ""}.`,
      this.measure ? el("p", {}, el("label", { for: "measure" }, "Lower the ", this.measure)) : null,
      this.questions,
    );
    this.memberSection = model.pool
      ? section(
          "members",
          "Members of the pool",
          "What each model of the pool answers, and its weight. The pool multiplies their answers, each to the power of its weight; where less is known, other weights count more, and where nothing is known the answer is the prior.",
          this.members,
        )
      : null;
    const sections = [
      this.whatIf,
      this.nomogram?.node,
      this.asked,
      this.changes.node,
      this.memberSection,
      this.structure?.node,
      this.cases?.decisions,
      this.cases?.node,
      this.scatter?.node,
    ].filter(Boolean);
    const lead = `${model.name} of ${known} and ${model.classes.length} classes.`;
    return pageParts(this.title, lead, sections, this.verdict);
  }

  showPosterior(posterior) {
    this.bars.forEach(({ fill, shown, change }, y) => {
      setShare(fill, posterior[y]);
      shown.textContent = percent(posterior[y]);
      shown.dataset.value = String(posterior[y]);
      change.textContent = percent(this.prior[y]);
    });
    this.order(posterior);
    const y = posterior.indexOf(Math.max(...posterior));
    const levels = this.model.levelsAt(posterior, [0.5, 0.05, 0.95]);
    const between = levels ? `; median ${levels[0]}, 90 % from ${levels[1]} to ${levels[2]}` : "";
    this.summary.textContent = y < 0 ? "" : `${this.model.classes[y]}: ${percent(posterior[y])}${between}`;
    this.showShares();
    this.showDensity();
  }

  /** Show the shares of the classes among the rows with the same cells, where they are known. */
  showShares() {
    const found = this.shares.of(this.row);
    this.lines.parentNode.classList.toggle("counted", found !== null);
    this.bars.forEach(({ share }, y) => (share.textContent = found ? percent(found.shares[y]) : ""));
    this.counted.textContent = found ? `“Rows” are the shares among the ${found.words}.` : "";
  }

  showDensity() {
    if (!this.row.size) {
      this.density.textContent = "Nothing is known yet: these are the probabilities before any column, the prior.";
      return;
    }
    const density = this.model.logDensity(this.row);
    const rank = density !== null && this.drawn?.ranks(this.row) ? this.drawn.inWords(this.row) : null;
    const beside = rank === null ? "" : `, less probable than ${rank}${rank.endsWith("%") ? " of the" : ""} rows drawn from the model`;
    const sentences = rangeSentences(this.row, this.ranges, this.trained);
    if (density !== null) sentences.unshift(`log p(what is known) = ${nats(density)}${beside}.`);
    this.density.textContent = sentences.join(" ");
  }

  /** Look for a typical row of a class between frames, and load it. */
  loadTypical(y) {
    const values = (column) =>
      this.drawn && column.kind === "continuous" && this.ranges[column.name]
        ? this.drawn.numbersOf(column, this.ranges[column.name])
        : this.valuesOf(column);
    const found = (row) => this.load(this.cases ? nearestRow(row, this.cases.ofClass(y), this.ranges) : row);
    this.searchTypical(typicalSteps(this.model, y, values, this.drawn !== null, found), () => {}, [this.whatIf]);
  }

  /** Put many classes in the order of their probability, and hide those beyond the most probable. */
  order(posterior) {
    if (posterior.length <= MOST_IN_ORDER) return;
    const ranked = [...posterior.keys()].sort((a, b) => posterior[b] - posterior[a] || a - b);
    this.lines.append(...ranked.map((y) => this.bars[y].node));
    if (ranked.length > MOST_CURVES) this.controls.showCurvesOf(ranked.slice(0, CURVES_OF_MANY));
    const rest = ranked.slice(MOST_SHOWN);
    ranked.forEach((y, k) => (this.bars[y].node.hidden = !this.showsAll && k >= MOST_SHOWN));
    const together = rest.reduce((sum, y) => sum + posterior[y], 0);
    this.others.textContent = this.showsAll
      ? `Show the ${MOST_SHOWN} most probable classes`
      : `Show ${rest.length} more classes, together ${percent(together)}`;
  }

  showMembers() {
    const each = this.model.memberLogPosteriors(this.row);
    const few = this.model.classes.length <= MOST_CLASSES_OF_MEMBERS;
    const heads = few ? this.model.classes.map(String) : ["predicts"];
    const rows = this.model.models.map(({ name }, m) => {
      const p = each[m].map(Math.exp);
      const best = p.indexOf(Math.max(...p));
      const answers = few ? [...p].map(percent) : [`${this.model.classes[best]} ${percent(p[best])}`];
      return [name, this.model.pool.weight[m].toFixed(3), ...answers];
    });
    this.members.replaceChildren(table("Members", ["member", "weight", ...heads], rows));
  }

  valuesOf(column) {
    return valuesOf(column, this.ranges[column.name]);
  }

  /** Compute the value of each question and the smallest changes between frames. */
  askLater() {
    const [drops, turns] = [[], []];
    const measure = this.byCost ? this.cases.costs() : { loss: entropy, ratio: null };
    const steps = this.model.pool ? [() => this.showMembers()] : [];
    if (this.drawn) steps.push(...this.drawn.steps(this.row));
    for (const column of this.model.columns) {
      const values = this.valuesOf(column);
      if (!values.length) continue;
      if (this.row.has(column.name)) {
        steps.push(() =>
          turns.push([column, smallestChange(this.model, this.row, column, values, this.ranges[column.name]?.[2])]),
        );
      } else if (this.model.hasDensity) {
        steps.push(() => drops.push([column, expectedDrop(this.model, this.row, column, values, measure)]));
      }
    }
    const show = () => {
      this.showQuestions(drops);
      this.changes.show(this.row, turns);
      this.showDensity();
    };
    this.evaluateQuestions(steps, show, [this.asked, this.changes.node, this.memberSection]);
  }

  showQuestions(drops) {
    drops.sort((a, b) => b[1] - a[1]);
    const most = Math.max(...drops.map(([, drop]) => drop), 1e-9);
    const ask = (name) =>
      el(
        "button",
        {
          type: "button",
          onclick: () => {
            const { node } = this.controls.byName.get(name);
            node.scrollIntoView({ block: "center" });
            node.querySelector("input, select, textarea").focus({ preventScroll: true });
          },
        },
        nameOf(name),
      );
    const rows = drops.slice(0, 20).map(([{ name }, drop]) => [ask(name), drop.toFixed(4), bar(drop / most)]);
    this.questions.replaceChildren(
      rows.length
        ? table(
            `Expected drop of the ${this.byCost ? "cost" : "entropy"}`,
            ["ask", this.byCost ? "cost" : "nats", ""],
            rows,
          )
        : el(
            "p",
            { class: "note" },
            this.model.hasDensity
              ? "Everything is known."
              : "The model has scores and no density, so that no answer can be expected.",
          ),
    );
  }
}
