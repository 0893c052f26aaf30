// Densities and scores of counts of words. The factors (Z, d) are per column of numbers, or of a whole bag of words.

import { logGamma, numbersOf } from "./arrays.js";
import { summed } from "./independent.js";

/** What densities of counts have in common: the factor of each stored word, added up per column. */
class OfWords {
  static kind = "counts";
  wholeCounts = false;

  constructor(nComponents, width) {
    this.nComponents = nComponents;
    this.width = width; // V
  }

  check(tile) {
    tile.checkCounts(this.wholeCounts);
  }

  logFactors(tile) {
    const { bag } = tile;
    const d = tile.columns.length;
    const factors = new Float64Array(this.nComponents * d);
    for (let z = 0; z < this.nComponents; z++) {
      const ofWord = this.wordFactors(bag, z);
      bag.words.forEach((_, k) => (factors[z * d + bag.ofColumn(k)] += ofWord[k]));
    }
    return factors;
  }

  logDensity(tile) {
    return summed(this.logFactors(tile), this.nComponents);
  }
}

/** Return Σ over present words of count·weight, where NaN counts are missing. */
function times(count, weight) {
  return Number.isNaN(count) || count === 0 ? 0 : count * weight;
}

/** Σ_j x_j·log θ_zj, given the sum of the counts; missing words are left out of the shares. */
export class Multinomial extends OfWords {
  constructor({ log_probability }, nComponents) {
    const table = numbersOf(log_probability);
    super(nComponents, table.length / nComponents);
    this.table = table;
  }

  wordFactors(bag, z) {
    const share = (k) => this.table[z * this.width + bag.words[k]];
    let missing = 0;
    bag.counts.forEach((count, k) => (missing += Number.isNaN(count) ? Math.exp(share(k)) : 0));
    const logPresent = missing > 0 ? Math.log(Math.max(1 - missing, 0)) : 0;
    return bag.counts.map((count, k) => times(count, share(k)) - times(count, logPresent));
  }
}

/** Multinomial scores of t_j = log(1 + x_j), scaled to length 1; not a density of the counts. */
export class ScaledMultinomial extends Multinomial {
  static normalised = false;

  wordFactors(bag, z) {
    const scaled = bag.counts.map((count) => Math.log1p(count));
    const length = Math.sqrt(scaled.reduce((sum, t) => sum + (Number.isNaN(t) ? 0 : t * t), 0));
    return super.wordFactors({ ...bag, counts: scaled.map((t) => (length > 0 ? t / length : t)) }, z);
  }
}

/** Σ_j x_j·w_zj with the weights of complement naive Bayes; not a density. */
export class Complement extends OfWords {
  static normalised = false;

  constructor({ score }, nComponents) {
    const table = numbersOf(score);
    super(nComponents, table.length / nComponents);
    this.table = table;
  }

  wordFactors(bag, z) {
    return bag.counts.map((count, k) => times(count, this.table[z * this.width + bag.words[k]]));
  }
}

/** log p that each word is present or absent; how often it occurs is ignored. */
export class Presence extends OfWords {
  constructor({ present, absent }, nComponents) {
    const table = numbersOf(present);
    super(nComponents, table.length / nComponents);
    this.present = table;
    this.absent = numbersOf(absent);
    this.ofNone = summed(this.absent, nComponents);
  }

  wordFactors(bag, z) {
    return bag.counts.map((count, k) => {
      const absent = this.absent[z * this.width + bag.words[k]];
      if (Number.isNaN(count)) return -absent;
      return count > 0 ? this.present[z * this.width + bag.words[k]] - absent : 0;
    });
  }

  logFactors(tile) {
    const factors = super.logFactors(tile);
    const d = tile.columns.length;
    const ofBag = tile.columns[0].kind === "counts";
    return factors.map((factor, cell) => {
      const z = Math.floor(cell / d);
      return factor + (ofBag ? this.ofNone[z] : this.absent[z * this.width + (cell % d)]);
    });
  }
}

/** The Dirichlet-multinomial distribution, given the sum of the counts. */
export class Compound extends OfWords {
  wholeCounts = true;

  constructor({ concentration }, nComponents) {
    const table = numbersOf(concentration);
    super(nComponents, table.length / nComponents);
    this.table = table;
    this.whole = summed(table, nComponents);
  }

  /** Return log Γ(A) − log Γ(A + N) divided among the words by their counts, plus log Γ(a + x) − log Γ(a) of each. */
  wordFactors(bag, z) {
    let total = 0;
    let missing = 0;
    bag.counts.forEach((count, k) => {
      if (Number.isNaN(count)) missing += this.table[z * this.width + bag.words[k]];
      else total += count;
    });
    const ofTotal = total > 0 ? -risingLog(Math.max(this.whole[z] - missing, 1e-300), total) : 0;
    return bag.counts.map((count, k) => {
      if (Number.isNaN(count) || count === 0) return 0;
      return (count / total) * ofTotal + risingLog(this.table[z * this.width + bag.words[k]], count);
    });
  }
}

/** Σ_j [x_j·log(λ_zj·ℓ) − λ_zj·ℓ − log x_j!] of a row of exposure ℓ; given the sum of the counts where ℓ is missing. */
export class PoissonRate extends OfWords {
  wholeCounts = true;

  constructor({ rate }, nComponents) {
    const table = numbersOf(rate);
    super(nComponents, table.length / nComponents);
    this.table = table;
    this.whole = summed(table, nComponents);
  }

  check(tile) {
    super.check(tile);
    if (tile.exposure <= 0) throw new RangeError(`the exposure of counts is ${tile.exposure}; give a number above 0`);
  }

  rateOf(bag, k, z) {
    return this.table[z * this.width + bag.words[k]];
  }

  /** Return the sum of the rates of the words that are not missing. */
  presentRate(bag, z) {
    const missing = bag.counts.reduce((sum, count, k) => sum + (Number.isNaN(count) ? this.rateOf(bag, k, z) : 0), 0);
    return Math.max(this.whole[z] - missing, 0);
  }

  wordFactors(bag, z) {
    const { exposure } = bag;
    const logTotal = exposure > 0 ? 0 : Math.log(this.presentRate(bag, z));
    return bag.counts.map((count, k) => {
      const ofRate = times(count, Math.log(this.rateOf(bag, k, z)));
      if (!(exposure > 0)) return ofRate - times(count, logTotal);
      return Number.isNaN(count) ? 0 : ofRate + times(count, Math.log(exposure)) - logGamma(count + 1);
    });
  }

  logFactors(tile) {
    tile.bag.exposure = tile.exposure;
    const factors = super.logFactors(tile);
    if (!(tile.exposure > 0)) return factors;
    const d = tile.columns.length;
    const ofBag = tile.columns[0].kind === "counts";
    return factors.map((factor, cell) => {
      const z = Math.floor(cell / d);
      if (ofBag) return factor - tile.exposure * this.presentRate(tile.bag, z);
      return Number.isNaN(tile.numbers[cell % d])
        ? factor
        : factor - tile.exposure * this.table[z * this.width + (cell % d)];
    });
  }
}

/** Return log Γ(a + x) − log Γ(a) of a whole number x. */
function risingLog(a, x) {
  if (x > 64) return logGamma(a + x) - logGamma(a);
  let sum = 0;
  for (let i = 0; i < x; i++) sum += Math.log(a + i);
  return sum;
}
