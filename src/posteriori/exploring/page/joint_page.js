// The page of a joint model: a card for each column, of which any may be known, and the others follow.

import { button, el, pageParts, percent, section, stateOfAddress, writeAddress } from "./dom.js";
import { CategoryCard, NumberCard, findingInWords } from "./joint_cards.js";

const MANY = 12; // columns, from which on one can be searched for

/** Return how many rows are like what is known: "1 in 230 rows (0.43 %)". */
export function rarityInWords(logEvidence) {
  const p = Math.exp(logEvidence);
  if (p > 0.9995) return "Nearly all rows are like that";
  if (p < 1e-6) return `1 in 10^${Math.round(-logEvidence / Math.LN10)} rows is like that`;
  const one = p > 0.1 ? (1 / p).toFixed(1) : Number((1 / p).toPrecision(3)).toLocaleString("en");
  return `1 in ${one} rows is like that (${percent(p)})`;
}

/** The page: what is known, how rare that is, and the distribution of every column given it. */
export class JointPage {
  constructor(model, { title, axes }) {
    Object.assign(this, { model, title });
    this.evidence = new Map(); // by name: categories, or [low, high] with null for no end
    const { marginals } = model.query();
    this.cards = model.columns.map((column, at) => {
      const known = (finding) => this.set(column.name, finding);
      return new (column.cells ? NumberCard : CategoryCard)(column, at, marginals[at], known, axes[column.name]);
    });
    this.node = this.build();
    this.read(stateOfAddress());
    this.update();
    window.addEventListener("hashchange", () => {
      this.read(stateOfAddress());
      this.update();
    });
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
      "Click a bar to make it known, and again to take it back. Of categories several can be known: the cell is one of them. Of numbers another bar widens the range, and fields take both ends; an empty one is no end. A bar is the probability given all that is known, its mark the probability where nothing is known.",
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
      found = this.model.query(this.evidence);
      this.problem.textContent = found.logEvidence === -Infinity ? "What is known is impossible; take a finding back." : "";
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.problem.textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
    }
    const isPossible = found !== null && found.logEvidence > -Infinity;
    this.cards.forEach((card, at) => {
      card.show(isPossible ? found.marginals[at] : null, this.evidence.get(card.column.name));
    });
    this.showKnown(isPossible ? found.logEvidence : null);
    writeAddress({ known: Object.fromEntries(this.evidence) });
  }

  showKnown(logEvidence) {
    this.rarity.textContent =
      logEvidence === null ? "No row is like that" : this.evidence.size ? rarityInWords(logEvidence) : "Nothing is known yet";
    this.rarity.dataset.value = logEvidence === null ? "-Infinity" : String(logEvidence);
    this.reset.disabled = !this.evidence.size;
    this.findings.replaceChildren(
      ...[...this.evidence].map(([name, finding]) => {
        const words = `${name} ${findingInWords(this.model.byName.get(name), finding)}`;
        const remove = button(`${words} ×`, () => this.set(name, null));
        remove.title = words;
        remove.setAttribute("aria-label", `${words}: take back`);
        return el("li", {}, remove);
      }),
    );
    const single = logEvidence === null ? [] : [...this.evidence].filter(([name, one]) => this.model.byName.get(name).hasNoProbability(one));
    this.note.textContent = single.length
      ? `A single number of ${single.map(([name]) => name).join(", ")} has no probability; it counts by its bin. State a range for a share of rows.`
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
