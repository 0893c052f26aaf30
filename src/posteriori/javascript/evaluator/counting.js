// Counts of training rows beside the law: how many are as given, and what they share.

import { numbersOf } from "./arrays.js";

const WEIGHT = 10; // rows that the law counts as beside the rows that are counted

/**
 * Return √(p (1 − p) / (rows + 11)): the standard deviation of a share under a beta distribution with the weight of
 * these rows and of the ten that the law counts as.
 */
export function standardError(p, rows) {
  return Math.sqrt(Math.max(p * (1 - p), 0) / (rows + WEIGHT + 1));
}

/** Rows that are as given: those that know what is asked for, and those that do not. */
class Counts {
  /**
   * @param part the weight of each row that is as given and knows what is asked for
   * @param unknowing the weight of those that do not know it
   */
  constructor(part, unknowing) {
    this.part = part;
    this.rows = part.reduce((sum, one) => sum + one, 0);
    this.law = WEIGHT + unknowing;
  }

  /** Return a probability by the rows and by the law, which counts as ten rows and as those that do not know. */
  mixed(counted, ofLaw) {
    return (counted + this.law * ofLaw) / (this.rows + this.law);
  }
}

/** Training rows in the cells of their columns, from 1; 0 where missing. Equal rows are one of their weight. */
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

  /** Return the rows that are as given, with those that know the columns that are asked for. */
  given(parts, asked) {
    const part = this.part(parts);
    let unknowing = 0;
    for (let i = 0; i < part.length; i++) part[i] *= this.weight[i];
    for (const j of asked) {
      const cells = this.cells[j];
      for (let i = 0; i < part.length; i++) {
        if (cells[i]) continue;
        unknowing += part[i];
        part[i] = 0;
      }
    }
    return new Counts(part, unknowing);
  }

  /** Return the weight of rows in each cell of a column. */
  shares({ part }, j, size) {
    const found = new Float64Array(size + 1);
    const cells = this.cells[j];
    for (let i = 0; i < part.length; i++) found[cells[i]] += part[i];
    return found.slice(1);
  }
}
