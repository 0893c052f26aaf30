// Densities along a tree of categories and numbers. Messages run from the leaves to the roots (Pearl 1988): to a missing
// category one log-likelihood per value; to a missing number x a potential log λ(x) = g + h·x − ½·k·x² (Lauritzen 1992).

import { LOG_TWO_PI, logSum, numbersOf } from "./arrays.js";

/** Return the nodes of a forest, every parent before its children. */
export function parentsFirst(parents) {
  const children = new Map();
  parents.forEach((parent, j) => children.set(parent, [...(children.get(parent) ?? []), j]));
  const order = [...(children.get(-1) ?? [])];
  for (const node of order) order.push(...(children.get(node) ?? []));
  return order;
}

/** p(x | z) = Π_j p(x_j | x_parent(j), z), along one tree of all components or one tree of each. */
export class Tree {
  static kind = "mixed";

  constructor({ continuous, cardinalities, parents, start, table, centre, normal }, nComponents) {
    const d = continuous.length;
    this.nComponents = nComponents;
    this.d = d;
    this.continuous = continuous;
    this.trees = Array.from({ length: parents.shape[0] }, (_, t) => parents.values.slice(t * d, (t + 1) * d));
    this.orders = this.trees.map(parentsFirst);
    this.start = start.values; // (Z, d)
    this.table = numbersOf(table);
    this.normal = numbersOf(normal); // intercept, slope and variance of each line
    let [nNumbers, nCodes] = [0, 0];
    this.centre = new Float64Array(d);
    this.widths = continuous.map((isNumber) => (isNumber ? 1 : cardinalities[nCodes++] + 1));
    const centres = numbersOf(centre);
    continuous.forEach((isNumber, j) => (this.centre[j] = isNumber ? centres[nNumbers++] : 0));
  }

  logDensity(tile) {
    const shown = new Array(this.d).fill(true);
    return Float64Array.from({ length: this.nComponents }, (_, z) => this.logDensityOf(z, tile, shown));
  }

  /** Return the increase in log p(x | z) that each column adds to the columns before it in the tree, (Z, d). */
  logFactors(tile) {
    const factors = new Float64Array(this.nComponents * this.d);
    for (let z = 0; z < this.nComponents; z++) {
      const shown = new Array(this.d).fill(false);
      let before = 0;
      for (const j of this.orders[this.orders.length === 1 ? 0 : z]) {
        if (!tile.present[j]) continue;
        shown[j] = true;
        const upto = this.logDensityOf(z, tile, shown);
        factors[z * this.d + j] = before === -Infinity ? 0 : upto - before;
        before = upto;
      }
    }
    return factors;
  }

  logDensityOf(z, tile, shown) {
    const t = this.trees.length === 1 ? 0 : z;
    const messages = new Array(this.d).fill(null);
    const row = { z, tile, shown, messages, parents: this.trees[t] };
    let total = 0;
    for (let step = this.d - 1; step >= 0; step--) {
      const j = this.orders[t][step];
      total += this.continuous[j] ? this.numberToParent(j, row) : this.categoryToParent(j, row);
    }
    return total;
  }

  codeOf(j, { tile, shown }) {
    return shown[j] ? tile.codes[j] : 0;
  }

  numberOf(j, { tile, shown }) {
    return shown[j] ? tile.numbers[j] - this.centre[j] : NaN;
  }

  /** Add the message of category j to its missing parent, or return it if the parent is present or there is none. */
  categoryToParent(j, row) {
    const x = this.codeOf(j, row);
    const message = row.messages[j];
    if (x === 0 && !message) return 0;
    const [p, width, start] = [row.parents[j], this.widths[j], this.start[row.z * this.d + j]];
    const given = (a) => {
      const first = start + a * width;
      if (x !== 0) return this.table[first + x];
      return logSum(message.map((likelihood, k) => (k === 0 ? -Infinity : this.table[first + k] + likelihood)));
    };
    if (p < 0) return given(0);
    const a = this.codeOf(p, row);
    if (a > 0) return given(a);
    row.messages[p] ??= new Float64Array(this.widths[p]);
    for (let b = 1; b < this.widths[p]; b++) row.messages[p][b] += given(b);
    return 0;
  }

  /** Do the same for number j. */
  numberToParent(j, row) {
    const x = this.numberOf(j, row);
    const potential = row.messages[j] ?? [0, 0, 0];
    if (Number.isNaN(x) && !row.messages[j]) return 0;
    const [p, start] = [row.parents[j], this.start[row.z * this.d + j]];
    const line = (a) => this.normal.subarray(3 * (start + a), 3 * (start + a) + 3);
    if (p >= 0 && this.continuous[p]) {
      const [intercept, slope, variance] = line(0);
      const u = this.numberOf(p, row);
      if (!Number.isNaN(u)) return expectedMessage(x, intercept + slope * u, variance, potential);
      row.messages[p] ??= [0, 0, 0];
      addLine(row.messages[p], x, potential, intercept, slope, variance);
      return 0;
    }
    const a = p < 0 ? 0 : this.codeOf(p, row);
    if (p < 0 || a > 0) return expectedMessage(x, line(a)[0], line(a)[2], potential);
    row.messages[p] ??= new Float64Array(this.widths[p]);
    for (let b = 1; b < this.widths[p]; b++) {
      row.messages[p][b] += expectedMessage(x, line(b)[0], line(b)[2], potential);
    }
    return 0;
  }
}

/** Return log N(x; mean, variance), or log ∫ N(x; mean, variance)·λ(x) dx where x is missing. */
function expectedMessage(x, mean, variance, [g, h, k]) {
  if (!Number.isNaN(x)) return -0.5 * (LOG_TWO_PI + Math.log(variance) + (x - mean) ** 2 / variance);
  const spread = 1 + k * variance;
  return g - 0.5 * Math.log(spread) + (h * mean + 0.5 * h * h * variance - 0.5 * k * mean * mean) / spread;
}

/** Add the message of a number to its parent, a missing number: x given u is N(intercept + slope·u, variance). */
function addLine(toParent, x, [g, h, k], intercept, slope, variance) {
  if (Number.isNaN(x)) {
    const spread = 1 + k * variance;
    toParent[0] +=
      g - 0.5 * Math.log(spread) + (h * intercept + 0.5 * h * h * variance - 0.5 * k * intercept ** 2) / spread;
    toParent[1] += ((h - k * intercept) * slope) / spread;
    toParent[2] += (k * slope * slope) / spread;
    return;
  }
  const apart = x - intercept;
  toParent[0] -= 0.5 * (LOG_TWO_PI + Math.log(variance) + (apart * apart) / variance);
  toParent[1] += (slope * apart) / variance;
  toParent[2] += (slope * slope) / variance;
}
