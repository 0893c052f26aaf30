// The prediction as a sum of log factors, drawn as a waterfall and written as a table.

import { el, section, shownCell, signed } from "./dom.js";
import { Waterfall, largestFirst } from "./waterfall.js";

const SHARED =
  "The pool corrects each class by a constant that was fitted to held-out rows, the bias of the class. The known columns share it by how much the prediction depends on each, so that the sum begins at the prior.";
const BIAS =
  "Bias of the class: what the pool adds whatever the columns hold. It is the log prior of each member, times the weight of the member, and a correction for each class that was fitted to held-out rows.";
// The colours of the classes in explorer.css, for drawings that are saved.
const HUES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#7a5195", "#6b6b6b"];

/** Return the colour of a class. */
const hue = (y) => `var(--hue${y % 8}, ${HUES[y % 8]})`;

/** The section with the sum of one class against another. */
export class BayesSum {
  constructor(model) {
    this.model = model;
    this.label = this.choice("class-for", "for");
    this.against = this.choice("class-against", "against");
    this.waterfall = new Waterfall("sum");
    this.name = el("output", { class: "note" });
    this.bias = el("p", { class: "note", id: "bias", hidden: true });
    this.node = section(
      "sum",
      "Bayes’ rule as a sum",
      "Each bar is what one column adds to the log-odds of the two classes, in nats: 0.69 doubles the odds. The bars begin at the prior and end at the posterior.",
      el("p", {}, this.label, " ", this.against),
      this.waterfall.figure,
      this.name,
      this.bias,
      this.waterfall.rows,
      this.waterfall.buttons,
    );
  }

  choice(id, word) {
    const select = el(
      "select",
      { id, onchange: () => this.onchoice() },
      el("option", { value: "" }, word === "for" ? "most probable" : "second most probable"),
      this.model.classes.map((label, y) => el("option", { value: String(y) }, String(label))),
    );
    return el("label", { for: id }, `${word} `, select);
  }

  get chosen() {
    const of = (label) => label.querySelector("select").value;
    return [of(this.label), of(this.against)];
  }

  set chosen([label, against]) {
    this.label.querySelector("select").value = label ?? "";
    this.against.querySelector("select").value = against ?? "";
  }

  /** Show the sum of a row. */
  show(row, posterior) {
    const ranked = [...posterior.keys()].sort((a, b) => posterior[b] - posterior[a]);
    const [first, second] = this.chosen;
    const y = first === "" ? ranked.find((k) => String(k) !== second) : Number(first);
    const other = second === "" ? ranked.find((k) => k !== y) : Number(second);
    if (y === undefined || other === undefined) return;
    this.pair = [y, other];
    const { weighted, fromPrior, bias, factors } = this.model.explain(row);
    const names = [this.model.classes[y], this.model.classes[other]].map(String);
    const terms = this.termsOf(row, factors, y, other);
    const constant = { name: fromPrior ? "prior" : "bias of the class", value: bias[y] - bias[other] };
    const total = terms.reduce((sum, { value }) => sum + value, constant.value);
    const sum = {
      terms: [constant, ...terms],
      total,
      last: "posterior",
      shown: signed,
      caption: `Log-odds of ${names[0]} against ${names[1]}, nats`,
      label: `Sum of the log-odds of ${names[0]} against ${names[1]}`,
    };
    this.waterfall.show(sum, names, this.pair.map(hue));
    this.name.textContent = `log p(${names[0]}) − log p(${names[1]}) = ${signed(total)} nats${weighted ? "; factors are weighted" : ""}`;
    const shared = Boolean(this.model.pool) && fromPrior && row.size > 0;
    this.bias.hidden = fromPrior && !shared;
    this.bias.textContent = shared ? SHARED : fromPrior ? "" : BIAS;
  }

  /** Return the terms, the largest first; those beyond the 24 largest are added up. */
  termsOf(row, factors, y, other) {
    const each = factors
      .map(({ column, value, log }) => ({
        name: value === null ? `${column} unknown` : `${column} = ${shownCell(value)}`,
        value: log[y] - log[other] || 0,
        known: row.has(column),
      }))
      .filter(({ value, known }) => known || value !== 0);
    return largestFirst(each, "columns");
  }
}
