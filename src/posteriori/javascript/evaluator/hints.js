// Warnings of what a row holds and the model does not know, which counts as missing: each once per model.

import { isMissing } from "./rows.js";

/** Return how many characters have to be added, removed or replaced to make one text of another. */
function distance(a, b) {
  let above = Array.from({ length: b.length + 1 }, (_, k) => k);
  for (let i = 1; i <= a.length; i++) {
    const here = [i];
    for (let k = 1; k <= b.length; k++) {
      here[k] = Math.min(above[k] + 1, here[k - 1] + 1, above[k - 1] + (a[i - 1] === b[k - 1] ? 0 : 1));
    }
    above = here;
  }
  return above[b.length];
}

/** Return "; did you mean …?" with the most similar of some names, letter case ignored; "" if none is similar. */
function hintAt(name, names) {
  const text = String(name).toLowerCase();
  const apart = (other) => distance(text, String(other).toLowerCase());
  const near = names.filter((other) => 3 * apart(other) <= Math.max(text.length, String(other).length));
  if (!near.length) return "";
  return `; did you mean ${JSON.stringify(near.reduce((best, other) => (apart(other) < apart(best) ? other : best)))}?`;
}

/** What a model warns of. */
export class Hints {
  /** @param {string|null} target the column of the classes, which a row may hold */
  constructor(schema, target) {
    this.schema = schema;
    this.warned = new Set();
    this.names = new Set(schema.columns.flatMap(({ name, part }) => (part ? [name, part.of] : [name])));
    this.known = new Set([...this.names, target]);
  }

  /** Warn of the keys of a row that are no columns, and of its unseen categories. */
  warnOf(row, { unseen }) {
    for (const key of row instanceof Map ? row.keys() : Object.keys(row)) {
      if (this.known.has(key)) continue;
      const absent = [...this.names].filter((name) => !(row instanceof Map ? row.has(name) : Object.hasOwn(row, name)));
      this.once(`the row has ${JSON.stringify(key)}, which is no column of the model; ignored${hintAt(key, absent)}`);
    }
    for (const name of unseen) {
      const column = this.schema.columns.find((one) => one.name === name);
      const cell = row instanceof Map ? row.get(name) : row[name];
      if (isMissing(cell)) continue; // of a part of a date
      const hint = hintAt(cell, column.categories);
      const shown = JSON.stringify(cell);
      this.once(`${shown} of column ${JSON.stringify(name)} is unseen in training and counts as missing${hint}`);
    }
  }

  once(message) {
    if (this.warned.has(message) || this.warned.size >= MOST_WARNINGS) return;
    this.warned.add(message);
    console.warn(message);
  }
}

const MOST_WARNINGS = 100; // of one model: a column of identifiers would fill the console
