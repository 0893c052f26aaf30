// What pages of a model have in common: a row of known cells with its controls, which the address holds.

import { Controls } from "./controls.js";
import { button, csv, download, el, shownCell, stateOfAddress } from "./dom.js";

/** A page that follows a row. Its subclass has `answerTo(row)`, and `update()`, which shows the answer. */
export class WhatIf {
  /** @param shown what the controls show; that of a classifier if it is left out */
  constructor(model, title, ranges, shown) {
    Object.assign(this, { model, title, ranges });
    this.row = new Map();
    this.controls = new Controls(model, ranges, (name, cell) => this.set(name, cell), shown);
    this.summary = el("p", { class: "answer", "aria-live": "polite", id: "answer" });
    this.problem = el("p", { class: "problem", role: "alert" });
  }

  /** Return the answer to the row; if it cannot be read, null, and the page says why. */
  answer() {
    try {
      const found = this.answerTo(this.row);
      this.problem.textContent = "";
      return found;
    } catch (error) {
      this.problem.textContent = error.message;
      return null;
    }
  }

  /** Take the row of the address, now and when it changes; return what else it holds. */
  follow() {
    const state = stateOfAddress();
    if (state?.row) this.row = this.checked(state.row);
    window.addEventListener("hashchange", () => {
      const row = stateOfAddress()?.row;
      if (row) this.load(this.checked(row));
    });
    return state;
  }

  /** Return the cells of a link that the model can read; others are left out. */
  checked(cells) {
    const row = new Map();
    for (const [name, cell] of Object.entries(cells)) {
      try {
        if (this.model.columns.some((column) => column.name === name) && cell !== null) {
          this.answerTo(new Map([[name, cell]]));
          row.set(name, cell);
        }
      } catch {
        /* a cell that the model cannot read stays unknown */
      }
    }
    return row;
  }

  /** Set one cell, null for unknown. */
  set(name, cell) {
    if (cell === null) this.row.delete(name);
    else this.row.set(name, cell);
    this.update();
  }

  /** Set all cells. */
  load(row) {
    this.row = new Map(row);
    this.update();
  }

  /** Return the buttons of the row, with others between them. */
  buttons(...others) {
    return el(
      "p",
      { class: "buttons" },
      button("All unknown", () => this.load(new Map())),
      others,
      button("Save the case (CSV)", () => download("case.csv", "text/csv", csv(caseRows(this.model, this.row)))),
    );
  }
}

/** Return a case as rows of CSV: column and cell. */
function caseRows(model, row) {
  const names = model.columns.map(({ name }) => name);
  return [names, names.map((name) => (row.has(name) ? shownOrNumber(row.get(name)) : ""))];
}

function shownOrNumber(cell) {
  return typeof cell === "number" ? String(cell) : shownCell(cell);
}
