// The density of a number, constant within each of a few cells.

import { binOf, numbersOf } from "./arrays.js";

const NEAR_POINT = 1e-6; // of a step: a number that near to a point is this point
const EPSILON = 2 ** -52;
const SUM_ROUNDING = 1e-13; // relative; sums of a few hundred probabilities are that precise
const LEAST_LEVEL = 2 ** -1022;

function inside(x, low, high) {
  return Math.min(Math.max(x, low), high);
}

/** Cells of a range of numbers: intervals, atoms, and, with a step, points that are a step apart. */
export class NumberCells {
  constructor({ low, high, step }) {
    this.low = numbersOf(low);
    this.high = numbersOf(high);
    this.step = step; // 0: numbers are continuous
    const width = this.low.map((one, g) => this.high[g] - one);
    this.width = width;
    this.count = width.map((one) => (step ? Math.round(one / step) + 1 : 1)); // of points
    this.size = width.map((one, g) => (step ? this.count[g] : one > 0 ? one : 1)); // by which a probability is a density
    this.variance = width.map((one, g) => (step ? (step ** 2 * (this.count[g] ** 2 - 1)) / 12 : one ** 2 / 12));
    const largest = Math.max(Math.abs(this.low[0]), Math.abs(this.high.at(-1)));
    this.tolerance = step ? NEAR_POINT + (4 * EPSILON * largest) / step : 0; // in steps
  }

  /** Return the share of a cell that is at or below a number, or strictly below it. */
  shareBelow(y, g, strictly) {
    const above = y - this.low[g];
    if (this.step) {
      const steps = above / this.step;
      const points = strictly ? Math.ceil(steps - this.tolerance) : Math.floor(steps + this.tolerance) + 1;
      return inside(points, 0, this.count[g]) / this.count[g];
    }
    if (this.width[g] > 0) return inside(above, 0, this.width[g]) / this.width[g];
    return Number(strictly ? above > 0 : above >= 0);
  }

  /** Return the share of a cell that is between two numbers, both included. */
  shareBetween(low, high, g) {
    return Math.max(this.shareBelow(high, g, false) - this.shareBelow(low, g, true), 0);
  }

  /** Return the ends of the part of a cell that is between two numbers, both included, if there is one. */
  within(low, high, g) {
    const begin = this.low[g];
    if (!this.step) return [Math.max(low, begin), Math.min(high, this.high[g])];
    const first = Math.max(Math.ceil((low - begin) / this.step - this.tolerance), 0);
    const last = Math.min(Math.floor((high - begin) / this.step + this.tolerance), this.count[g] - 1);
    return [first, last].map((steps) => this.decimals(begin + steps * this.step));
  }

  /** Return the cell that holds a number, or the nearest one, the lower of two; of two that touch, an atom or the upper. */
  nearest(y) {
    const last = Math.max(binOf(this.low.map((one) => one - this.step / 2), y) - 1, 0);
    if (y >= this.low[last] && y <= this.high[last]) {
      return last > 0 && this.high[last - 1] === y && this.width[last - 1] === 0 ? last - 1 : last;
    }
    const above = Math.min(last + 1, this.low.length - 1);
    return this.low[above] - y < y - this.high[last] ? above : last;
  }

  /** Return the smallest number of which a share of its cell is at or below it. */
  numberAt(g, share) {
    if (!this.step) return Math.min(this.low[g] + inside(share, 0, 1) * this.width[g], this.high[g]);
    const steps = inside(Math.ceil(share * this.count[g]) - 1, 0, this.count[g] - 1);
    return this.decimals(this.low[g] + steps * this.step);
  }

  /** Return a point without its rounding where a step is a part of 1: 0.7, and not 0.4 + 3 · 0.1. */
  decimals(y) {
    const parts = Math.round(1 / this.step);
    if (Math.abs(parts * this.step - 1) > 1e-12) return y;
    const exact = Math.round(y * parts) / parts;
    return Math.abs(exact - y) <= this.tolerance * this.step ? exact : y;
  }
}

/** p(y | x) of one row. `cells` has `low`, `high` and `step`, and `probabilities` that of each cell, (G,). */
export class PredictiveDensity {
  constructor(cells, probabilities) {
    this.cells = cells;
    this.probabilities = probabilities;
    let below = 0;
    this.upper = probabilities.map((p) => (below += p)); // P(Y in the cell or below)
    this.total = below;
    this.upper = this.upper.map((one) => one / below);
  }

  /** The density within each cell, (G,): per unit of y, or of each point; of an atom its probability. */
  get densities() {
    return this.probabilities.map((p, g) => p / this.cells.size[g]);
  }

  get heaviest() {
    return this.probabilities.indexOf(Math.max(...this.probabilities));
  }

  /** The centres of the cells minus that of the most probable one: differences, so that an offset takes no digits. */
  get deviations() {
    const { low, width } = this.cells;
    const first = this.heaviest;
    return low.map((one, g) => one - low[first] + (width[g] / 2 - width[first] / 2));
  }

  get mean() {
    const { low, width } = this.cells;
    const [first, deviations] = [this.heaviest, this.deviations];
    return low[first] + width[first] / 2 + this.probabilities.reduce((sum, p, g) => sum + p * deviations[g], 0);
  }

  get variance() {
    const deviations = this.deviations;
    const mean = this.probabilities.reduce((sum, p, g) => sum + p * deviations[g], 0);
    const of = (p, g) => p * ((deviations[g] - mean) ** 2 + this.cells.variance[g]);
    return this.probabilities.reduce((sum, p, g) => sum + of(p, g), 0);
  }

  /** The standard deviation. */
  get sd() {
    return Math.sqrt(this.variance);
  }

  get median() {
    return this.quantile(0.5);
  }

  /** Return the smallest y with P(Y ≤ y | x) ≥ q; for q = 0 the smallest possible one. */
  quantile(q) {
    if (!(q >= 0 && q <= 1)) throw new RangeError(`q is ${q}; give a number from 0 to 1, such as 0.5 for the median`);
    // A level counts as reached by a sum that is less by rounding only: else a quantile leaps over a gap or a point.
    const reached = Math.max(q * (1 - SUM_ROUNDING), LEAST_LEVEL);
    const g = this.upper.findIndex((one) => one >= reached);
    const below = g > 0 ? this.upper[g - 1] : 0;
    return this.cells.numberAt(g, ((this.cells.step ? reached : q) - below) / (this.upper[g] - below));
  }

  /** Return the central interval: its ends are the quantiles (1 − coverage)/2 and (1 + coverage)/2. */
  interval(coverage = 0.9) {
    if (!(coverage >= 0 && coverage <= 1)) {
      throw new RangeError(`coverage is ${coverage}; give one number from 0 to 1, such as 0.9`);
    }
    return [this.quantile((1 - coverage) / 2), this.quantile((1 + coverage) / 2)];
  }

  /** Return P(low ≤ Y ≤ high | x): both ends are included. */
  probability(low = -Infinity, high = Infinity) {
    return this.probabilities.reduce((sum, p, g) => sum + p * this.cells.shareBetween(low, high, g), 0) / this.total;
  }
}
