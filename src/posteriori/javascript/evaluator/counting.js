// Counts of training rows beside the law: how many are as given, and what they share.

import { numbersOf } from "./arrays.js";

const WEIGHT = 10; // rows that the law counts as beside the rows that are counted
const MOST_FILLED = 300; // rows

/**
 * Return √(p (1 − p) / (rows + 11)): the standard deviation of a share under a beta distribution with the weight of
 * these rows and of the ten that the law counts as.
 */
export function standardError(p, rows) {
  return Math.sqrt(Math.max(p * (1 - p), 0) / (rows + WEIGHT + 1));
}

/** Rows that are as given: those that know what is asked for, and those that lack it. */
class Counts {
  /**
   * @param part the weight of each row that is as given and knows what is asked for
   * @param lacking the places of some of the others, @param share their shares of the weight, @param lacks that of all,
   * @param filled that of all as far as what they know is as asked
   */
  constructor(part, lacking, share, lacks, filled) {
    Object.assign(this, { part, lacking, share, lacks, filled });
    this.rows = part.reduce((sum, one) => sum + one, 0);
  }

  /**
   * Return a probability by the rows and by the law, which counts as ten rows. Rows that lack what is asked for are
   * filled in by the law given their other cells: those that know it may be no sample of all.
   */
  mixed(counted, ofLacking, ofLaw) {
    return (counted + this.filled * ofLacking + WEIGHT * ofLaw) / (this.rows + this.lacks + WEIGHT);
  }
}

/** Training rows in the cells of their columns, from 1; 0 where missing. */
export class CountedRows {
  constructor({ cells, weight }) {
    this.cells = cells.map((one) => Uint16Array.from(one));
    this.weight = numbersOf(weight);
  }

  /** Return how far each row is as stated: the product of the parts of its cells, by column; 0 if one is missing. */
  part(parts) {
    const found = new Float64Array(this.weight.length).fill(1);
    for (const [j, ofCells] of parts) {
      const cells = this.cells[j];
      for (let i = 0; i < found.length; i++) found[i] *= cells[i] ? ofCells[cells[i] - 1] : 0;
    }
    return found;
  }

  /**
   * Return the rows that are as given, with those that know what is asked for, and others.
   * @param asked the columns that are asked for; an event maps them to the part of each cell that is as it states
   */
  given(parts, asked) {
    const part = this.part(parts);
    for (let i = 0; i < part.length; i++) part[i] *= this.weight[i];
    const lacksSome = new Uint8Array(part.length);
    const asAsked = part.slice(); // as far as what the row knows of the event is so
    for (const [j, ofCells] of asked) {
      const cells = this.cells[j];
      for (let i = 0; i < part.length; i++) {
        if (!cells[i]) lacksSome[i] = 1;
        else if (ofCells) asAsked[i] *= ofCells[cells[i] - 1];
      }
    }
    const found = [];
    let [lacks, filled] = [0, 0];
    for (let i = 0; i < part.length; i++) {
      if (!lacksSome[i]) continue;
      lacks += part[i];
      filled += asAsked[i];
      part[i] = 0;
      if (asAsked[i] > 0) found.push(i);
    }
    const n = Math.min(found.length, MOST_FILLED);
    const chosen = Array.from({ length: n }, (_, k) => found[Math.floor((k * found.length) / n)]);
    const total = chosen.reduce((sum, i) => sum + asAsked[i], 0);
    return new Counts(part, chosen, chosen.map((i) => asAsked[i] / total), lacks, filled);
  }

  /** Return the weight of rows in each cell of a column. */
  shares({ part }, j, size) {
    const found = new Float64Array(size + 1);
    const cells = this.cells[j];
    for (let i = 0; i < part.length; i++) found[cells[i]] += part[i];
    return found.slice(1);
  }
}
