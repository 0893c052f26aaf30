// Densities of columns that are independent given the component. Each returns log p(x_j | z), (Z, d), in nats.

import { LOG_TWO_PI, binOf, logGamma, numbersOf, slotOffsets, studentPeaks, studentTail } from "./arrays.js";

/** Return the sums over columns of factors (Z, d): (Z,). */
export function summed(factors, nComponents) {
  const d = factors.length / nComponents;
  const out = new Float64Array(nComponents);
  for (let z = 0; z < nComponents; z++) for (let j = 0; j < d; j++) out[z] += factors[z * d + j];
  return out;
}

/** A density whose columns are independent, so that log p(x | z) is the sum of its factors. */
class Independent {
  ofOneColumn = true; // whether each factor depends on its own column alone

  logDensity(tile) {
    return summed(this.logFactors(tile), this.nComponents);
  }
}

/** N(x_j; mean_zj, variance_zj); with degrees of freedom a t with this centre and squared scale. */
export class Gaussian extends Independent {
  static kind = "continuous";

  constructor({ mean, variance, degrees }, nComponents) {
    super();
    this.nComponents = nComponents;
    this.mean = numbersOf(mean);
    this.variance = numbersOf(variance);
    this.degrees = degrees && numbersOf(degrees);
    this.logPeak = this.variance.map((variance, cell) => {
      const peak = this.degrees ? studentPeaks(this.degrees[cell], 1)[1] : -0.5 * LOG_TWO_PI;
      return peak - 0.5 * Math.log(variance);
    });
  }

  logFactors(tile) {
    const d = tile.numbers.length;
    return this.mean.map((mean, cell) => {
      const apart = tile.numbers[cell % d] - mean;
      const distance = (apart * apart) / this.variance[cell];
      const factor =
        this.logPeak[cell] + (this.degrees ? studentTail(distance, 1, this.degrees[cell]) : -0.5 * distance);
      return Number.isNaN(factor) ? 0 : factor;
    });
  }
}

/** rate^x·exp(−rate) / x!. */
export class Poisson extends Independent {
  static kind = "continuous";

  constructor({ rate }, nComponents) {
    super();
    this.nComponents = nComponents;
    this.rate = numbersOf(rate);
  }

  check(tile) {
    tile.numbers.forEach((x, p) => {
      if (x < 0 || (!Number.isNaN(x) && x !== Math.floor(x))) {
        throw new RangeError(
          `column ${JSON.stringify(tile.columns[p].name)} holds ${x}; give a whole number of events, 0 or more`,
        );
      }
    });
  }

  logFactors(tile) {
    const d = tile.numbers.length;
    return this.rate.map((rate, cell) => {
      const x = tile.numbers[cell % d];
      if (Number.isNaN(x)) return 0;
      return (x === 0 ? 0 : x * Math.log(rate)) - rate - logGamma(x + 1);
    });
  }
}

/** A table of log-probabilities, of categories or of bins. */
export class Categorical extends Independent {
  static kind = "categorical";

  constructor({ cardinalities, log_probability }, nComponents) {
    super();
    this.nComponents = nComponents;
    this.offsets = slotOffsets(cardinalities);
    this.table = numbersOf(log_probability);
  }

  logFactors(tile) {
    const d = tile.codes.length;
    const nSlots = this.offsets.at(-1);
    const factors = new Float64Array(this.nComponents * d);
    for (let z = 0; z < this.nComponents; z++) {
      for (let j = 0; j < d; j++) factors[z * d + j] = this.table[z * nSlots + this.offsets[j] + tile.codes[j]];
    }
    return factors;
  }
}

/** The distribution of a number within its bin, which all components share. */
export class Binned {
  static kind = "continuous";
  static shared = true;
  ofOneColumn = true;

  constructor({ mean, scale }, nComponents) {
    this.nComponents = nComponents;
    this.mean = numbersOf(mean);
    this.scale = numbersOf(scale); // (2, d)
  }

  logFactors(tile) {
    const d = this.mean.length;
    const factors = new Float64Array(this.nComponents * d);
    for (let j = 0; j < d; j++) {
      if (Number.isNaN(tile.numbers[j])) continue;
      const cuts = tile.cuts[tile.columns[j].position];
      const factor = logWithin(tile.numbers[j], cuts, this.mean[j], this.scale[j], this.scale[d + j]);
      for (let z = 0; z < this.nComponents; z++) factors[z * d + j] = factor;
    }
    return factors;
  }

  logDensity(tile) {
    return summed(this.logFactors(tile), this.nComponents);
  }
}

/** Return log q(x | bin): uniform between two cuts, exponential beyond an outer cut, Gaussian without cuts. */
function logWithin(x, cuts, mean, below, above) {
  if (!cuts.length) return -0.5 * LOG_TWO_PI - Math.log(below) - (0.5 * (x - mean) ** 2) / below ** 2;
  const bin = binOf(cuts, x);
  if (bin === 0) return -Math.log(below) - Math.abs(x - cuts[0]) / below;
  if (bin === cuts.length) return -Math.log(above) - Math.abs(x - cuts.at(-1)) / above;
  return -Math.log(cuts[bin] - cuts[bin - 1]);
}

/** p(the cell is missing | z), beside the density of the cells. */
export class Missingness extends Independent {
  static kind = "mixed";

  constructor({ log_missing, log_present }, nComponents) {
    super();
    this.nComponents = nComponents;
    this.logMissing = numbersOf(log_missing);
    this.logPresent = numbersOf(log_present);
  }

  logFactors(tile) {
    const d = tile.present.length;
    return this.logMissing.map((missing, cell) => (tile.present[cell % d] ? this.logPresent[cell] : missing));
  }
}
