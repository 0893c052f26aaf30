// The section with the smallest changes of one column that turn the prediction, and how strange the changed row is.

import { rangeLeft } from "./compared.js";
import { el, nameOf, percent, section, short, shownCell, table } from "./dom.js";
import { withCell } from "./questions.js";

const LISTED_CHANGES = 40;

/** The section. `drawn` are rows to rank by, or null; `ranges` those of the columns. */
export class Changes {
  constructor(model, ranges, drawn) {
    Object.assign(this, { model, ranges, drawn });
    this.list = el("div");
    const strange = drawn
      ? " “Less probable than” compares p(x) of the changed row with that of rows drawn from the model, with the same columns known."
      : "";
    this.node = section(
      "changes",
      "Smallest change",
      `The nearest change of one known column that changes the prediction; the other columns stay.${strange}`,
      this.list,
    );
  }

  /** Show the changes of a row: for each column what `smallestChange` returns. */
  show(row, turns) {
    const found = turns.filter(([, change]) => change);
    const ranks = Boolean(this.drawn?.ranks(row));
    const rows = found.slice(0, LISTED_CHANGES).map(([{ name }, { value, label, probability }]) => [
      nameOf(name),
      nameOf(shownCell(row.get(name))),
      this.changed(name, value),
      nameOf(String(this.model.classes[label])),
      ranks
        ? [percent(probability), el("small", {}, ` less probable than ${this.drawn.inWords(withCell(row, name, value))}`)]
        : percent(probability),
    ]);
    const none = row.size ? "No change of one column within its range changes the prediction." : "Nothing is known yet.";
    const heads = ["column", "now", "change to", "prediction", "probability"];
    this.list.replaceChildren(
      rows.length ? table("One column changed", heads, rows, [0, 1, 2, 3]) : el("p", { class: "note" }, none),
    );
  }

  changed(name, value) {
    const left = rangeLeft(this.ranges[name], value);
    const shown = nameOf(shownCell(value));
    return left ? el("span", {}, shown, ` outside of the range ${left.map((end) => short(end)).join(" to ")}`) : shown;
  }
}
