// A number as the answer: a sum of functions of single columns, with a density of Student's t around it.

import { binOf, cholesky, kept, numbersOf, submatrix, triangleSolved, triangleTransposedSolved } from "./arrays.js";
import { Hints } from "./hints.js";
import { NumberCells, PredictiveDensity } from "./predictive.js";
import { Schema, cellOf, isMissing } from "./rows.js";

const MOST_TRIANGLES = 4; // that are kept: of 1,000 features each has 8 MB
const SQRT_TWO_PI = Math.sqrt(2 * Math.PI);
const FROM_TAIL = 3; // from here on the continued fraction of the tail is shorter than the series
const TERMS = 120;

/** Return Φ(x) of the standard normal distribution (Abramowitz & Stegun 26.2.11 and 26.2.14). */
function normalBelow(x) {
  const density = Math.exp(-0.5 * x * x) / SQRT_TWO_PI;
  if (Math.abs(x) > FROM_TAIL) {
    let tail = Math.abs(x);
    for (let k = TERMS; k > 0; k--) tail = Math.abs(x) + k / tail;
    return x < 0 ? density / tail : 1 - density / tail;
  }
  let [sum, term] = [x, x];
  for (let k = 1; k < TERMS && sum + term !== sum; k++) sum += term *= (x * x) / (2 * k + 1);
  return 0.5 + density * sum;
}

/** Return the probability of Student's t up to x, by the normal deviate of Wallace (1959). */
function studentBelow(x, degrees) {
  const deviate = Math.sqrt(degrees * Math.log1p((x * x) / degrees));
  return normalBelow((Math.sign(x) * (8 * degrees + 1) * deviate) / (8 * degrees + 3));
}

/** Return probabilities whose sum is 1. */
function summingToOne(probabilities) {
  const total = probabilities.reduce((sum, p) => sum + p, 0);
  return probabilities.map((p) => p / total);
}

/** The map from rows to features, of which each has mean 0 in the training rows: lines and steps, indicators, marks. */
class Features {
  constructor({ numbers, categories, gaps, most_gaps: mostGaps }, schema) {
    const isMissing = (cells, { column }) =>
      schema.columns[column].kind === "continuous" ? Number.isNaN(cells.numbers[column]) : cells.codes[column] === 0;
    const tells = (cells) =>
      schema.knownColumns(cells).size > 0 && gaps.filter((one) => isMissing(cells, one)).length <= mostGaps;
    this.parts = [
      ...numbers.map((one) => this.ofNumber(one)),
      ...categories.map((one) => this.ofCategory(one)),
      ...gaps.map((one) => ({
        column: one.column,
        size: 1,
        known: tells,
        of: (cells) => [Number(isMissing(cells, one)) - one.share],
      })),
    ];
    let end = 0;
    for (const part of this.parts) part.begin = (end += part.size) - part.size;
    this.length = end;
    this.columns = this.parts.flatMap(({ column, size }) => Array.from({ length: size }, () => column));
  }

  ofNumber({ column, centre, scale, ends, cuts, usual }) {
    const [steps, means] = [numbersOf(cuts), numbersOf(usual)];
    const values = (x) => {
      const line = (Math.min(Math.max(x, ends[0]), ends[1]) - centre) / scale;
      const reached = binOf(steps, x);
      return means.map((mean, k) => (k === 0 ? line : Number(k <= reached)) - mean);
    };
    const known = ({ numbers }) => !Number.isNaN(numbers[column]);
    return { column, size: means.length, known, of: ({ numbers }) => values(numbers[column]) };
  }

  ofCategory({ column, codes, usual }) {
    const means = numbersOf(usual);
    const of = (cells) => means.map((mean, k) => Number(cells.codes[column] === codes[k]) - mean);
    return { column, size: means.length, known: (cells) => cells.codes[column] > 0, of };
  }

  /** Return the features of a row, (p,), 0 where the cell is missing, and the places of those that are known. */
  ofRow(cells) {
    const values = new Float64Array(this.length);
    const known = [];
    for (const part of this.parts) {
      if (!part.known(cells)) continue;
      values.set(part.of(cells), part.begin);
      for (let k = 0; k < part.size; k++) known.push(part.begin + k);
    }
    return { values, known };
  }
}

/** The joint Gaussian of features and target, from its sums: the matrix is S + Λ. */
class LeastSquares {
  constructor(written) {
    this.weight = written.weight;
    this.mean = numbersOf(written.mean);
    this.coefficients = numbersOf(written.coefficients);
    this.targetMean = written.target_mean;
    this.matrix = numbersOf(written.matrix); // its lower triangle, row by row
    this.triangleOf = kept(MOST_TRIANGLES, (places) => {
      return cholesky(submatrix(places, (i, j) => this.entry(i, j)), places.length);
    });
  }

  entry(i, j) {
    return i < j ? this.matrix[(j * (j + 1)) / 2 + i] : this.matrix[(i * (i + 1)) / 2 + j];
  }

  deviations(values, places) {
    return Float64Array.from(places, (i) => values[i] - this.mean[i]);
  }

  /** Return vᵀ (S + Λ)⁻¹ v of the features' deviations v from their means. */
  distance(values) {
    const places = [...values.keys()];
    const half = triangleSolved(this.triangleOf(places), this.deviations(values, places));
    return half.reduce((sum, one) => sum + one * one, 0);
  }

  /** Return the features with expectations of the unknown ones given the known ones, and the variance of the target by them. */
  filled(values, known) {
    const isKnown = new Set(known);
    const unknown = [...values.keys()].filter((i) => !isKnown.has(i));
    if (!unknown.length) return { values, variance: 0 };
    const triangle = this.triangleOf(known);
    const solved = triangleTransposedSolved(triangle, triangleSolved(triangle, this.deviations(values, known)));
    const expected = values.slice();
    const beta = this.coefficients;
    for (const i of unknown) expected[i] = known.reduce((sum, j, b) => sum + this.entry(i, j) * solved[b], this.mean[i]);
    const mixed = Float64Array.from(known, (j) => unknown.reduce((sum, i) => sum + this.entry(i, j) * beta[i], 0));
    const explained = triangleSolved(triangle, mixed).reduce((sum, one) => sum + one * one, 0);
    let all = 0;
    for (const i of unknown) for (const j of unknown) all += beta[i] * this.entry(i, j) * beta[j];
    return { values: expected, variance: Math.max(all - explained, 0) / this.weight };
  }
}

/** t(y) = a + Σ_j f_j(x_j) + noise, on a scale t of the target; missing cells are integrated out. */
export class AdditiveRegressor {
  /** @param {object} written the model file, as `load` parses it */
  constructor(written) {
    this.name = written.name;
    this.target = written.target;
    this.schema = new Schema(written.columns);
    this.hints = new Hints(this.schema, written.target);
    this.features = new Features(written.features, this.schema);
    this.squares = new LeastSquares(written.squares);
    this.filler = written.filler ? new LeastSquares(written.filler) : this.squares; // what expects unknown features
    this.noise = written.noise; // its variance
    this.degrees = written.degrees; // of freedom of this estimate
    this.scale = written.scale;
    this.cells = new NumberCells(written.cells);
    this.edges = numbersOf(written.cells.edges); // where cells meet, on the scale
    this.atoms = written.cells.atoms; // cells of one frequent value, whose probability is that in all rows
    this.share = numbersOf(written.cells.share); // of cells in all rows
    this.floor = { ...written.cells.floor, probability: numbersOf(written.cells.floor.probability) };
  }

  /** The columns that the model reads: name, kind, and categories. */
  get columns() {
    const used = new Set(this.features.columns);
    return this.schema.read.filter(({ position }) => used.has(position));
  }

  /** Return the names of the columns in which a row holds a category that the model has not seen: it counts as missing. */
  unseen(row) {
    return this.schema.readRow(row).unseen;
  }

  /** Return the features of a row, with the expectations of unknown ones, and what these add to the variance. */
  filledRow(cells) {
    const { values, known } = this.features.ofRow(cells);
    return this.filler.filled(values, known);
  }

  /** Return the mean, on the scale. */
  location(values) {
    const { mean, coefficients, targetMean } = this.squares;
    return values.reduce((sum, value, i) => sum + (value - mean[i]) * coefficients[i], 0) + targetMean;
  }

  /**
   * Return p(y | x), with mean, sd, median, quantile(q), interval(coverage), probability(low, high) and cells.
   * @param {object|Map} row cells by the names of columns; what it lacks is missing. Keys that are no columns, and
   *   unseen categories, which count as missing, are named by console.warn, once each.
   * @returns {PredictiveDensity}
   */
  predictDensity(row) {
    const cells = this.schema.readRow(row);
    this.hints.warnOf(row, cells);
    if (this.schema.knownColumns(cells).size === 0) {
      return new PredictiveDensity(this.cells, summingToOne(this.share));
    }
    const { values, variance } = this.filledRow(cells);
    const leverage = this.squares.distance(values) + 1 / this.squares.weight;
    const spread = Math.sqrt(this.noise * (1 + leverage) + variance);
    const location = this.location(values);
    const below = [0, ...Array.from(this.edges, (edge) => studentBelow((edge - location) / spread, this.degrees)), 1];
    return new PredictiveDensity(this.cells, this.withFloor(this.withAtoms(below.slice(1).map((p, g) => p - below[g]))));
  }

  /** Return the mean of p(y | x). */
  predict(row) {
    return this.predictDensity(row).mean;
  }

  /** Return probabilities of cells in which the atoms have their own, and the others the rest, (G,). */
  withAtoms(probabilities) {
    const found = Float64Array.from(probabilities);
    if (!this.atoms.length) return found;
    const sum = (values) => values.reduce((total, one) => total + one, 0);
    for (const g of this.atoms) found[g] = 0;
    const factor = Math.max(1 - sum(this.atoms.map((g) => this.share[g])), 0) / Math.max(sum(found), 2 ** -1022);
    const scaled = found.map((p) => p * factor);
    for (const g of this.atoms) scaled[g] = this.share[g];
    return scaled;
  }

  /** Return probabilities mixed with a little of those of all rows, so that no cell is impossible. */
  withFloor(probabilities) {
    const { weight, probability } = this.floor;
    return summingToOne(probabilities.map((p, g) => (1 - weight) * p + weight * probability[g]));
  }

  /**
   * Return the location of a row, the centre of the normal density, as a sum on the scale of the target.
   * @returns {{scale: object, base: number, location: number, parts: {column: string, value: *, part: number}[]}}
   *   `value` is null where it is missing: then the part is what the other columns make expect.
   */
  explain(row) {
    const cells = this.schema.readRow(row);
    const { values } = this.filledRow(cells);
    const parts = this.columns.map(({ name, position }) => {
      const cell = cellOf(row, name);
      return { column: name, value: isMissing(cell) ? null : cell, part: this.partOf(position, values) };
    });
    return { scale: this.scale, base: this.squares.targetMean, location: this.location(values), parts };
  }

  /** Return what the cell of one column adds to the location. */
  effect(name, cell) {
    const { position } = this.schema.columns.find((column) => column.name === name);
    return this.partOf(position, this.features.ofRow(this.schema.readRow(new Map([[name, cell]]))).values);
  }

  partOf(position, values) {
    const { mean, coefficients } = this.squares;
    return this.features.columns.reduce(
      (sum, column, i) => (column === position ? sum + (values[i] - mean[i]) * coefficients[i] : sum),
      0,
    );
  }
}
