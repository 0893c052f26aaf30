// The page of a joint model: a card for each column, of which any may be known, and the others follow.

import { button, el, pageParts, percent, section, stateOfAddress, writeAddress } from "./dom.js";
import { CategoryCard, NumberCard, findingInWords } from "./joint_cards.js";

const MANY = 12; // columns, from which on one can be searched for
const FEW = 20; // training rows, below which a sentence says so

/** Return how many rows are like what is known: "1 in 230 rows (0.43 %)". */
export function rarityInWords(logP) {
  const p = Math.exp(logP);
  if (p > 0.9995) return "Nearly all rows are like that";
  if (p < 1e-6) return `1 in 10^${Math.round(-logP / Math.LN10)} rows is like that`;
  const one = p > 0.1 ? (1 / p).toFixed(1) : Number((1 / p).toPrecision(3)).toLocaleString("en");
  return `1 in ${one} rows is like that (${percent(p)})`;
}

/** Return how many training rows are like what is known; "" of a model that keeps none. */
export function rowsInWords(weight) {
  if (weight === null) return "";
  const rows = Math.round(weight);
  if (rows === 0) return "No training row is like that; the answers are the model's alone.";
  const words = `${rows.toLocaleString("en")} training ${rows === 1 ? "row is" : "rows are"} like that`;
  return weight < FEW ? `Only ${words}; the answers lean on the model.` : `${words}.`;
}

/** The page: what is known, how rare that is, and the distribution of every column given it. */
export class JointPage {
  constructor(model, { title, axes }) {
    Object.assign(this, { model, title });
    this.evidence = new Map(); // by name: categories, or [low, high] with null for no end
    const before = this.answers();
    this.cards = model.columns.map((column, at) => {
      const known = (finding) => this.set(column.name, finding);
      return new (column.cells ? NumberCard : CategoryCard)(column, at, before.ofColumns[at], known, axes[column.name]);
    });
    this.node = this.build();
    this.read(stateOfAddress());
    this.update();
    window.addEventListener("hashchange", () => {
      this.read(stateOfAddress());
      this.update();
    });
  }

  /**
   * Return log p(what is known), and of each column its `distribution`, with the training `rows` that it rests on, and
   * `codes`, p(code) by the law alone, in which few rows make no noise. Null if what is known is impossible.
   */
  answers() {
    const { logEvidence, marginals } = this.model.query(this.evidence);
    if (logEvidence === -Infinity) return null;
    const isSingle = ([name, one]) => this.model.byName.get(name).hasNoProbability(one);
    const p = [...this.evidence].some(isSingle) ? 0 : this.model.probability(this.evidence);
    const distributions = this.model.marginals(this.evidence);
    const ofColumns = this.model.columns.map(({ name }, at) => ({
      codes: marginals[at],
      distribution: distributions[name],
      rows: this.model.rowsGiven(this.evidence, [name]),
    }));
    return { logP: p > 0 ? Math.log(p) : logEvidence, rows: this.model.rowsGiven(this.evidence), ofColumns };
  }

  /** Take the findings of a link; those that the model does not know are left out. */
  read(state) {
    if (!state?.known) return;
    const valid = ([name, finding]) => {
      try {
        return Array.isArray(finding) && this.model.findings(new Map([[name, finding]]));
      } catch {
        return false; // an unknown column or value
      }
    };
    this.evidence = new Map(Object.entries(state.known).filter(valid));
  }

  /** Make a finding about a column known; null for unknown. */
  set(name, finding) {
    if (finding === null) this.evidence.delete(name);
    else this.evidence.set(name, finding);
    this.update();
  }

  build() {
    this.rarity = el("output", { id: "rarity", "aria-live": "polite" });
    this.rows = el("p", { id: "training-rows", "aria-live": "polite" });
    this.findings = el("ul", { id: "findings", "aria-label": "What is known" });
    this.problem = el("p", { class: "problem", role: "alert" });
    this.note = el("p", { class: "note", id: "of-density" });
    this.filter = el("input", { type: "search", id: "find-column", oninput: () => this.find() });
    const find = el("label", { class: "find", for: "find-column" }, "Find a column ", this.filter);
    const reset = () => {
      this.evidence.clear();
      this.update();
    };
    this.reset = button("Reset", reset);
    this.list = el("div", { class: "joint" }, this.cards.map(({ node }) => node));
    const bar = el(
      "div",
      { class: "known-bar" },
      el("div", { class: "line" }, this.rarity, this.reset),
      this.rows,
      this.findings,
      this.problem,
      this.note,
    );
    const tools = el(
      "p",
      { class: "buttons" },
      this.cards.length > MANY ? find : null,
      button("Moved most first", () => this.arrange(true)),
      button("As in the table", () => this.arrange(false)),
    );
    const columns = section(
      "columns",
      "Columns",
      "Click a bar to make it known, and again to take it back. Of categories several can be known: the cell is one of them. Of numbers another bar widens the range, and fields take both ends; an empty one is no end. A bar is the probability given all that is known, its mark the probability where nothing is known."
        + (this.model.counted ? " Training rows that are like what is known are counted, and the model counts as ten rows more." : ""),
      bar,
      tools,
      this.list,
    );
    const { length } = this.cards;
    const lead = `One distribution of ${length === 1 ? "1 column" : `${length} columns`}: state what you know of a row, and every other column follows.`;
    return pageParts(this.title, lead, [columns]);
  }

  /** Compute and show everything. */
  update() {
    let found = null;
    try {
      found = this.answers();
      this.problem.textContent = found ? "" : "What is known is impossible; take a finding back.";
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.problem.textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
    }
    this.cards.forEach((card, at) => card.show(found && found.ofColumns[at], this.evidence.get(card.column.name)));
    this.showKnown(found);
    writeAddress({ known: Object.fromEntries(this.evidence) });
  }

  showKnown(found) {
    const isKnown = this.evidence.size > 0;
    this.rarity.textContent = !found ? "No row is like that" : isKnown ? rarityInWords(found.logP) : "Nothing is known yet";
    this.rarity.dataset.value = String(found ? found.logP : -Infinity);
    this.rows.textContent = found && isKnown ? rowsInWords(found.rows) : "";
    this.rows.dataset.rows = String(found ? found.rows : 0);
    this.reset.disabled = !isKnown;
    this.findings.replaceChildren(
      ...[...this.evidence].map(([name, finding]) => {
        const words = `${name} ${findingInWords(this.model.byName.get(name), finding)}`;
        const remove = button(`${words} ×`, () => this.set(name, null));
        remove.title = words;
        remove.setAttribute("aria-label", `${words}: take back`);
        return el("li", {}, remove);
      }),
    );
    const single = !found ? [] : [...this.evidence].filter(([name, one]) => this.model.byName.get(name).hasNoProbability(one));
    this.note.textContent = single.length
      ? `A single number of ${single.map(([name]) => name).join(", ")} has no probability; it counts by its bin. State a range for a share of rows, and for training rows.`
      : "";
  }

  /** Show the cards whose names hold what was typed. */
  find() {
    const wanted = this.filter.value.toLowerCase();
    for (const { node, column } of this.cards) node.hidden = !column.name.toLowerCase().includes(wanted);
  }

  /** Order the cards once: a card that jumps away at each click could not be clicked again. What is known stands last. */
  arrange(byShift) {
    const key = ({ finding, shift }) => (finding === undefined ? shift : -1);
    const cards = byShift ? [...this.cards].sort((a, b) => key(b) - key(a)) : this.cards;
    this.list.append(...cards.map(({ node }) => node));
  }
}
