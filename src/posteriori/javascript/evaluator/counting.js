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
   * @param lacking the places of some of the others, @param share their shares of the weight, @param lacks that of all
   */
  constructor(part, lacking, share, lacks) {
    Object.assign(this, { part, lacking, share, lacks });
    this.rows = part.reduce((sum, one) => sum + one, 0);
  }

  /**
   * Return a probability by the rows and by the law, which counts as ten rows. Rows that lack what is asked for are
   * filled in by the law given their other cells: those that know it may be no sample of all.
   */
  mixed(counted, ofLacking, ofLaw) {
    return (counted + this.lacks * ofLacking + WEIGHT * ofLaw) / (this.rows + this.lacks + WEIGHT);
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

  /** Return the rows that are as given, with those that know the columns that are asked for, and others. */
  given(parts, asked) {
    const part = this.part(parts);
    for (let i = 0; i < part.length; i++) part[i] *= this.weight[i];
    const found = [];
    const weight = [];
    let lacks = 0;
    for (const j of asked) {
      const cells = this.cells[j];
      for (let i = 0; i < part.length; i++) {
        if (cells[i] || !part[i]) continue;
        found.push(i);
        weight.push(part[i]);
        lacks += part[i];
        part[i] = 0;
      }
    }
    const order = [...found.keys()].sort((a, b) => found[a] - found[b]); // several columns may be asked for
    const n = Math.min(order.length, MOST_FILLED);
    const chosen = Array.from({ length: n }, (_, k) => order[Math.floor((k * order.length) / n)]);
    const total = chosen.reduce((sum, k) => sum + weight[k], 0);
    return new Counts(part, chosen.map((k) => found[k]), chosen.map((k) => weight[k] / total), lacks);
  }

  /** Return the weight of rows in each cell of a column. */
  shares({ part }, j, size) {
    const found = new Float64Array(size + 1);
    const cells = this.cells[j];
    for (let i = 0; i < part.length; i++) found[cells[i]] += part[i];
    return found.slice(1);
  }
}
