// A generative model, and the posterior of one model or of a logarithmic opinion pool of several.

import { NumberCells, PredictiveDensity } from "./predictive.js";
import { logSum, numbersOf } from "./arrays.js";
import { FamilyTables } from "./elimination.js";
import { RandomTrees, SummedTrees } from "./forest.js";
import { MultivariateGaussian } from "./gaussian.js";
import { Hints } from "./hints.js";
import { Binned, Categorical, Gaussian, Missingness, Poisson, summed } from "./independent.js";
import { Schema, Tile, cellOf, isMissing } from "./rows.js";
import { AveragedOneDependence, FullJoint, Grouped } from "./tables.js";
import { Tree } from "./trees.js";
import { Complement, Compound, Multinomial, PoissonRate, Presence, ScaledMultinomial } from "./words.js";

const FLOOR = -700; // nats: no member of a pool can veto a class
const [MEAN_SHARE, HALF_DISAGREEMENT] = [0.15, 3]; // of the mean of the members outside of the training rows, and in nats

/** The densities by the names that the model file gives them. Each has logDensity(tile), (Z,), and logFactors(tile), (Z, d). */
const DENSITIES = {
  AveragedOneDependence,
  Binned,
  Categorical,
  Complement,
  Compound,
  FullJoint,
  Gaussian,
  Grouped,
  KDependence: FamilyTables,
  Missingness,
  Multinomial,
  MultivariateGaussian,
  Poisson,
  PoissonRate,
  Presence,
  RandomTrees,
  ScaledMultinomial,
  SummedTrees,
  Tree,
};

function densityOf({ density, parameters }, nComponents) {
  const make = (coarse) => densityOf(coarse, nComponents);
  if (!Object.hasOwn(DENSITIES, density)) throw new Error(`this evaluator does not know the density ${density}`);
  return new DENSITIES[density](parameters, nComponents, make);
}

/** log p(x, z) = log p(z) + Σ_b log p(x_b | z); the density of a class is the sum over its components. */
export class GenerativeModel {
  /** @param cutPoints the lists of cut points of all models, to which each column of a model refers */
  constructor(written, schema, cutPoints) {
    this.name = written.name;
    this.schema = schema;
    this.logPrior = numbersOf(written.log_prior); // of components, (Z,)
    this.nComponents = this.logPrior.length;
    this.ofClass = written.of_class.length ? written.of_class : null; // the class of each component, if some class has several
    this.given = written.given; // for each column, those on which its factor is conditional
    // The order of the columns in the chain rule of a mixture: there each column is given all columns before it.
    this.order = [...this.given.keys()].sort((i, j) => this.given[i].length - this.given[j].length);
    this.nClasses = this.ofClass ? this.ofClass.at(-1) + 1 : this.nComponents;
    this.weights = written.weights && {
      bias: numbersOf(written.weights.bias),
      weight: numbersOf(written.weights.weight),
      sharing: written.weights.sharing, // the columns that share what a bias adds to the log prior
      evident: new Set(written.weights.evident), // those of them that are never unknown
    };
    const cuts = written.cuts.map((place) => (place === null ? null : cutPoints[place]));
    this.blocks = written.blocks.map((block) => this.blockOf(block, cuts));
    this.classLogPrior = this.byClass(this.logPrior);
  }

  blockOf(written, cuts) {
    const density = densityOf(written, this.nComponents);
    // The density with the parameters of the posterior, if these were learned for it.
    const posterior = written.posterior ? densityOf(written.posterior, this.nComponents) : density;
    const kind = density.kind ?? density.constructor.kind;
    const tile = new Tile(
      written.columns.map((j) => this.schema.columns[j]),
      kind,
      cuts,
      written.exposure,
    );
    return { density, posterior, tile, columns: written.columns, shared: Boolean(density.constructor.shared) };
  }

  /** Whether the model has a log p(x): no block has scores that are not a density. */
  get hasDensity() {
    return this.blocks.every(({ density }) => density.constructor.normalised !== false);
  }

  /** Return log Σ exp over the components of each class, (C,) from (Z,). */
  byClass(values) {
    if (!this.ofClass) return values;
    const parts = Array.from({ length: this.nClasses }, () => []);
    values.forEach((value, z) => parts[this.ofClass[z]].push(value));
    return Float64Array.from(parts, logSum);
  }

  /** Return log p(x, y) in nats, (C,), or without the factors that all components share. */
  logJoint(cells, withShared = true) {
    const total = Float64Array.from(this.logPrior);
    for (const { density, tile, shared } of this.blocks) {
      tile.take(cells);
      density.check?.(tile);
      if (shared && !withShared) continue;
      const of = !withShared && density.logScores ? density.logScores(tile) : density.logDensity(tile);
      for (let z = 0; z < total.length; z++) total[z] += of[z];
    }
    return this.byClass(total);
  }

  /** Return the log factors of the posterior given the component in nats, (Z, d). */
  logFactors(cells, withShared) {
    const d = this.schema.columns.length;
    const factors = new Float64Array(this.nComponents * d);
    for (const { posterior, tile, columns, shared } of this.blocks) {
      tile.take(cells);
      posterior.check?.(tile);
      if (shared && !withShared) continue;
      const of = posterior.logFactors(tile);
      for (let z = 0; z < this.nComponents; z++) {
        columns.forEach((j, p) => (factors[z * d + j] += of[z * columns.length + p]));
      }
    }
    return factors;
  }

  /** Whether the log prior and the log factors add up to log p(x, y): without weights and ensembles. */
  get factorsAreJoint() {
    return !this.weights && !this.blocks.some(({ density }) => density.logScores);
  }

  /** Return log p(y | x) + constant in nats, (C,). */
  scores(cells) {
    if (!this.weights) return this.logJoint(cells, false);
    const factors = this.weighted(this.logFactors(cells, false));
    const ofColumns = summed(factors, this.nComponents);
    const n = this.sharingColumns(cells).length;
    const whole = n === this.weights.sharing.length;
    return this.weights.bias.map((bias, z) => {
      const start = whole ? bias : this.logPrior[z] + n * this.partOfOffset(z);
      return start + ofColumns[z];
    });
  }

  /** Return the known columns of those that share the offset, which is what the bias adds to the log prior. */
  sharingColumns(cells) {
    const known = this.schema.knownColumns(cells);
    return this.weights.sharing.filter((j) => known.has(j) || this.weights.evident.has(j));
  }

  /** Return the part of the offset that each known column has. */
  partOfOffset(z) {
    if (this.logPrior[z] === -Infinity) return 0; // a class of prior 0 stays impossible
    return (this.weights.bias[z] - this.logPrior[z]) / Math.max(this.weights.sharing.length, 1);
  }

  /** Return the factors times the weights of their columns; weight 0 gives 0, even for −Infinity. */
  weighted(factors) {
    if (!this.weights) return factors;
    const d = this.schema.columns.length;
    return factors.map((factor, cell) =>
      this.weights.weight[cell % d] > 0 ? this.weights.weight[cell % d] * factor : 0,
    );
  }

  /**
   * Return the terms of the sum of each class in nats, (C, d), weighted if the factors have weights: then a known column
   * also has its part of the offset.
   */
  terms(cells, withShared) {
    const factors = this.logFactors(cells, withShared);
    if (this.ofClass) return this.chained(factors);
    if (!this.weights) return factors;
    const weighted = this.weighted(factors);
    const d = this.schema.columns.length;
    const columns = this.sharingColumns(cells);
    for (let z = 0; z < this.nComponents; z++) for (const j of columns) weighted[z * d + j] += this.partOfOffset(z);
    return weighted;
  }

  /** Return log p(x_j | earlier columns, y), (C, d): quotients of mixtures of the columns up to j and before j. */
  chained(factors) {
    const d = this.schema.columns.length;
    const out = new Float64Array(this.nClasses * d);
    let joint = this.logPrior.map((prior, z) => {
      const ofClass = this.classLogPrior[this.ofClass[z]];
      return prior > -Infinity ? prior - (ofClass > -Infinity ? ofClass : 0) : -Infinity;
    });
    let before = new Float64Array(this.nClasses);
    for (const j of this.order) {
      joint = joint.map((value, z) => value + factors[z * d + j]);
      const after = this.byClass(joint);
      for (let y = 0; y < this.nClasses; y++) out[y * d + j] = before[y] > -Infinity ? after[y] - before[y] : 0;
      before = after;
    }
    return out;
  }
}

/** p(y | x) of a model, or of a pool of several, with the names of classes and columns. */
export class Classifier {
  /** @param {object} written the model file, as `load` parses it */
  constructor(written) {
    this.name = written.name;
    this.target = written.target;
    this.classes = written.classes;
    this.levels = written.levels ?? null; // the positions of ordered classes, the lowest first
    this.schema = new Schema(written.columns);
    this.hints = new Hints(this.schema, written.target);
    this.models = written.models.map((model) => new GenerativeModel(model, this.schema, written.cuts));
    this.pool = written.pool && {
      weight: numbersOf(written.pool.weight),
      bias: numbersOf(written.pool.bias),
      partial: written.pool.partial && {
        ...written.pool.partial,
        weight: numbersOf(written.pool.partial.weight),
        bias: numbersOf(written.pool.partial.bias),
        nothing: {
          weight: numbersOf(written.pool.partial.nothing.weight),
          bias: numbersOf(written.pool.partial.nothing.bias),
        },
        columns: numbersOf(written.pool.partial.columns),
      },
      extrapolation: written.pool.extrapolation && {
        ...written.pool.extrapolation,
        lowest: numbersOf(written.pool.extrapolation.lowest),
        highest: numbersOf(written.pool.extrapolation.highest),
        logRatio: numbersOf(written.pool.extrapolation.log_ratio),
      },
    };
    this.givenLogPrior = written.class_log_prior && numbersOf(written.class_log_prior); // by the user of a pool
  }

  /** The columns that the model reads: name, kind, and categories or words. */
  get columns() {
    return this.schema.read;
  }

  /** log p(y) in nats, (C,). */
  get classLogPrior() {
    return this.givenLogPrior ?? this.models[0].classLogPrior;
  }

  /** Whether there is a log p(x). */
  get hasDensity() {
    const countsInPool = this.pool && this.schema.columns.some((column) => column.kind === "counts");
    return !countsInPool && this.models.some((model) => model.hasDensity);
  }

  /** The share of each model in the mixture that p(x) is, (M,): 0 of one that is no density. */
  get shares() {
    const share = (weights) => {
      const counted = Float64Array.from(weights, (weight, m) => (this.models[m].hasDensity ? weight : 0));
      const total = counted.reduce((sum, one) => sum + one, 0);
      return total > 0 ? counted.map((one) => one / total) : null;
    };
    return share(this.pool ? this.pool.weight : [1]) ?? share(this.models.map(() => 1));
  }

  /** Return the names of the columns in which a row holds a category that the model has not seen: it counts as missing. */
  unseen(row) {
    return this.schema.readRow(row).unseen;
  }

  /** Return log p(y | x) of each model in nats, M × (C,); NaN for a row that no class can produce. */
  memberLogPosteriors(row) {
    return this.ofMembers(this.schema.readRow(row));
  }

  ofMembers(cells) {
    return this.models.map((model) => normalised(model.scores(cells)));
  }

  /** Return log posteriors of the models that can be weighed: uniform in place of NaN, and none below the floor. */
  clippedOfMembers(cells) {
    const uniform = -Math.log(this.classes.length);
    return this.ofMembers(cells).map((one) => one.map((value) => Math.max(Number.isNaN(value) ? uniform : value, FLOOR)));
  }

  /** Return the parts of the pools of whole rows, of partial rows and of nothing in the weights of a row (`KnownCells`). */
  parts(cells) {
    if (!this.pool.partial || this.pool.partial.typical <= 0) return [1, 0, 0];
    const { columns, typical, typical_number: typicalNumber, patterns, power } = this.pool.partial;
    const known = this.schema.knownColumns(cells);
    const share = (weightOf, ofTypical) => {
      const total = (places) => places.reduce((sum, j) => sum + weightOf(j), 0);
      const shareOf = (places, size) => total(places.filter((j) => known.has(j))) / size;
      const shares = [shareOf([...columns.keys()], ofTypical), ...patterns.map((one) => shareOf(one, total(one)))];
      return Math.min(Math.max(...shares), 1);
    };
    const byWeight = share((j) => columns[j], typical);
    const nothing = (1 - Math.min(byWeight, share((j) => (columns[j] > 0 ? 1 : 0), typicalNumber))) ** 3;
    const whole = (1 - nothing) * (1 - (1 - byWeight ** power) ** 2);
    return [whole, 1 - nothing - whole, nothing];
  }

  /** Return the weights of the models of a pool, (M,), and its biases, (C,), by the parts of a row. */
  weighed(parts) {
    const { weight, bias, partial } = this.pool;
    if (parts[0] === 1) return { weight, bias };
    const mean = (...each) => each[0].map((_, k) => parts.reduce((sum, part, i) => sum + part * each[i][k], 0));
    return {
      weight: mean(weight, partial.weight, partial.nothing.weight),
      bias: mean(bias, partial.bias, partial.nothing.bias),
    };
  }

  /**
   * Return log p(y | x) in nats, (C,), in the order of `classes`; NaN for a row that no class can produce.
   * @param {object|Map} row cells by the names of columns; what it lacks is missing. Keys that are no columns, and
   *   unseen categories, which count as missing, are named by console.warn, once each.
   */
  logPosterior(row) {
    const cells = this.schema.readRow(row);
    this.hints.warnOf(row, cells);
    return this.pool ? this.pooled(cells).answer : this.ofMembers(cells)[0];
  }

  /** Return log p(y | x) by the product of the members of a pool, (C,), and as it is answered (`Extrapolation`). */
  pooled(cells) {
    const each = this.clippedOfMembers(cells);
    const { weight, bias } = this.weighed(this.parts(cells));
    const product = normalised(bias.map((one, y) => each.reduce((sum, of, m) => sum + weight[m] * of[y], one)));
    if (this.outside(cells).length === 0) return { product, answer: product };
    const { in_mean: inMean, logRatio } = this.pool.extrapolation;
    const counted = each.map((_, m) => (inMean[m] ? weight[m] : 0));
    const total = counted.reduce((sum, one) => sum + one, 0);
    const number = inMean.filter(Boolean).length;
    const share = counted.map((one, m) => (total > 0 ? one / total : Number(inMean[m]) / number));
    const score = (y) => logSum(each.map((of, m) => of[y] + Math.log(share[m]))) + logRatio[y];
    const mean = normalised(Float64Array.from(product, (_, y) => score(y)));
    const nats = mean.reduce((sum, log, y) => sum + (log > -Infinity ? Math.exp(log) * (log - product[y]) : 0), 0);
    const fourth = Math.max(nats, 0) ** 4;
    const part = MEAN_SHARE + ((1 - MEAN_SHARE) * fourth) / (fourth + HALF_DISAGREEMENT ** 4);
    const answer = product.map((log, y) => logSum([Math.log1p(-part) + log, Math.log(part) + mean[y]]));
    return { product, answer };
  }

  /** Return the positions of the columns with a number outside of the ranges of the training rows, or an unseen category. */
  outside({ numbers, unseen }) {
    if (!this.pool?.extrapolation) return [];
    const { columns, lowest, highest } = this.pool.extrapolation;
    const beyond = columns.filter((j, k) => numbers[j] < lowest[k] || numbers[j] > highest[k]);
    const isUnseen = ({ name, categories }) => unseen.includes(name) && categories.length > 0;
    return [...beyond, ...this.schema.columns.filter(isUnseen).map(({ position }) => position)];
  }

  /** Return the terms of a model, (C, d + P), that add up with its log prior to clipped log posteriors, as `clip_factors`. */
  clippedTerms(model, cells) {
    const terms = model.terms(cells, false);
    const d = terms.length / this.classes.length;
    const of = (y) => terms.subarray(y * d, (y + 1) * d);
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    const scores = model.classLogPrior.map((prior, y) => prior + sum(of(y)));
    const evidence = logSum(scores);
    const isPossible = evidence > -Infinity;
    const highest = Array.from({ length: d }, (_, j) => Math.max(...scores.map((_, y) => terms[y * d + j])));
    const clipped = Float64Array.from(terms);
    scores.forEach((score, y) => {
      if (model.classLogPrior[y] === -Infinity || (isPossible && score - evidence >= FLOOR)) return;
      const wanted = (isPossible ? FLOOR + evidence : -Math.log(scores.length)) - model.classLogPrior[y];
      const own = of(y);
      const rulesOut = own.some((value) => value === -Infinity);
      const against = highest.map((most, j) => (rulesOut ? Number(own[j] === -Infinity) : most - own[j]));
      const kept = own.map((value) => (value === -Infinity ? 0 : value));
      const perUnit = (wanted - sum(kept)) / Math.max(sum(against), Number.MIN_VALUE);
      kept.forEach((value, j) => (clipped[y * d + j] = value + perUnit * against[j]));
    });
    return clipped;
  }

  /** Add the bias of whole rows, relative to a row without cells, to the factors of known columns, by their weights. */
  shareBias(total, cells, whole, blank) {
    const width = total.length / this.classes.length;
    const known = this.schema.knownColumns(cells);
    const { columns } = this.pool.partial;
    const places = [...columns.keys()].filter((j) => known.has(j));
    const size = places.reduce((sum, j) => sum + columns[j], 0);
    if (size === 0) return;
    const alone = this.clippedOfMembers(blank);
    this.classLogPrior.forEach((logPrior, y) => {
      const ofAll = alone.reduce((sum, one, m) => sum + this.pool.weight[m] * one[y], this.pool.bias[y]);
      const perWeight = (whole * (ofAll - Math.max(logPrior, FLOOR))) / size;
      for (const j of places) total[y * width + j] += perWeight * columns[j];
    });
  }

  /** Return the levels of ordered classes at shares of a posterior, such as 0.5; null of classes without an order. */
  levelsAt(posterior, shares) {
    if (!this.levels || Number.isNaN(posterior[0])) return null;
    const level = this.levels.map((_, k) => k);
    const cells = new NumberCells({ low: level, high: level, step: 1 });
    const answer = new PredictiveDensity(cells, this.levels.map((y) => posterior[y]));
    return shares.map((q) => this.classes[this.levels[answer.quantile(q)]]);
  }

  /** Return p(y | x), (C,), in the order of `classes`. */
  posterior(row) {
    return this.logPosterior(row).map(Math.exp);
  }

  /** Return p(y | x) as an object, by the classes as strings. */
  score(row) {
    const posterior = this.posterior(row);
    return Object.fromEntries(this.classes.map((label, y) => [String(label), posterior[y]]));
  }

  /** Return log p(x | y) in nats, (C,), of the mixture of the models; null if there is no density. */
  logConditional(row) {
    if (!this.hasDensity) return null;
    const cells = this.schema.readRow(row);
    const shares = this.shares;
    const each = this.models.map((model) => model.logJoint(cells).map((joint, y) => joint - model.classLogPrior[y]));
    return Float64Array.from(this.classes, (_, y) => logSum(each.map((one, m) => one[y] + Math.log(shares[m]))));
  }

  /** Return log p(x) in nats, of the mixture of the models; null if there is no density. */
  logDensity(row) {
    if (!this.hasDensity) return null;
    const cells = this.schema.readRow(row);
    const shares = this.shares;
    const jointOf = (model) => {
      const joint = model.logJoint(cells);
      if (!this.givenLogPrior) return joint;
      return joint.map((value, y) => value - model.classLogPrior[y] + this.givenLogPrior[y]);
    };
    return logSum(this.models.map((model, m) => Math.log(shares[m]) + logSum(jointOf(model))));
  }

  /**
   * Return log p(y | x) + constant as a sum: a bias and one factor per column.
   * @returns {{weighted: boolean, fromPrior: boolean, bias: Float64Array, factors: {column: string, value: *, log: Float64Array}[]}}
   *   `bias` (C,) is log p(y) if `fromPrior`, else the bias of the class; `log` (C,) is log p(x_j | earlier columns, y),
   *   times its weight if `weighted`; so are those of a forest, 1/T of each tree. Without weights the sum is
   *   log p(x, y). `value` is null where it is missing.
   */
  explain(row) {
    const cells = this.schema.readRow(row);
    const d = this.schema.columns.length;
    const weighted = Boolean(this.pool) || !this.models[0].factorsAreJoint;
    const partial = this.pool?.partial;
    const bias = Float64Array.from(partial ? this.classLogPrior : this.pool ? this.pool.bias : this.models[0].classLogPrior);
    const total = new Float64Array(this.classes.length * d);
    const parts = this.pool ? this.parts(cells) : [1, 0, 0];
    const weights = this.pool ? this.weighed(parts).weight : [1];
    const blank = partial && this.schema.readRow({});
    this.models.forEach((model, m) => {
      const terms = this.pool ? this.clippedTerms(model, cells) : model.terms(cells, true);
      const without = partial && this.clippedTerms(model, blank); // a factor is relative to that of a row without cells
      terms.forEach((term, cell) => (total[cell] += weights[m] * (term - (partial ? without[cell] : 0))));
      if (this.pool && !partial) model.classLogPrior.forEach((one, y) => (bias[y] += weights[m] * one));
    });
    if (partial) this.shareBias(total, cells, parts[0], blank);
    const outside = this.outside(cells);
    if (outside.length > 0) {
      const { product, answer } = this.pooled(cells);
      answer.forEach((log, y) => outside.forEach((j) => (total[y * d + j] += (log - product[y]) / outside.length)));
    }
    const factors = this.schema.columns.map(({ name }, j) => ({
      column: name,
      value: isMissing(cellOf(row, name)) ? null : cellOf(row, name),
      log: Float64Array.from(this.classes, (_, y) => total[y * d + j]),
    }));
    return { weighted, fromPrior: !this.pool || Boolean(partial), bias, factors };
  }
}

/** Return log probabilities from scores; NaN if all are −Infinity. */
export function normalised(scores) {
  const peak = Math.max(...scores); // subtracted first: the logarithm of the sum would be lost in scores of 1e17 nats
  const shifted = scores.map((score) => score - peak);
  const total = logSum(shifted);
  return shifted.map((score) => score - total);
}
