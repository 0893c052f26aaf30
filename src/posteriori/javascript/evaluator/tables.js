// The average of one-dependence estimators, the full joint table, and categories in groups.

import { logSum, numbersOf, slotOffsets } from "./arrays.js";

/** p(x | z) = 1/d · Σ_i p(x_i | z)·Π_{j≠i} p(x_j | x_i, z), over columns of two categories or more. A missing parent is
 *  summed over. */
export class AveragedOneDependence {
  static kind = "categorical";

  constructor({ cardinalities, log_probability }, nComponents) {
    this.nComponents = nComponents;
    this.nColumns = cardinalities.length;
    this.varying = cardinalities.flatMap((k, j) => (k > 1 ? [j] : []));
    this.d = this.varying.length;
    this.offsets = slotOffsets(this.varying.map((j) => cardinalities[j]));
    this.nSlots = this.offsets[this.d];
    this.table = numbersOf(log_probability); // (slots of the parent, Z, slots of the child)
  }

  at(parentSlot, childSlot, z) {
    return this.table[(parentSlot * this.nComponents + z) * this.nSlots + childSlot];
  }

  /** Return the slots of the values of the ith column that varies. */
  slotsOf(i) {
    const first = this.offsets[i] + 1;
    return Array.from({ length: this.offsets[i + 1] - first }, (_, k) => first + k);
  }

  logDensity(tile) {
    if (!this.d) return new Float64Array(this.nComponents);
    const codes = this.varying.map((j) => tile.codes[j]);
    const children = this.offsets.slice(0, this.d).map((offset, j) => offset + codes[j]);
    return Float64Array.from({ length: this.nComponents }, (_, z) => {
      const terms = [];
      for (let i = 0; i < this.d; i++) {
        for (const slot of codes[i] > 0 ? [this.offsets[i] + codes[i]] : this.slotsOf(i)) {
          let term = this.at(slot, slot, z);
          for (let j = 0; j < this.d; j++) if (j !== i && codes[j] > 0) term += this.at(slot, children[j], z);
          terms.push(term);
        }
      }
      return logSum(terms) - Math.log(this.d);
    });
  }

  /** Return log p(x_j | the present ones of x_1 … x_{j−1}, z), (Z, d). */
  logFactors(tile) {
    const codes = this.varying.map((j) => tile.codes[j]);
    const factors = new Float64Array(this.nComponents * this.nColumns);
    for (let z = 0; z < this.nComponents; z++) {
      const terms = new Float64Array(this.nSlots).fill(-Infinity);
      for (let i = 0; i < this.d; i++) for (const slot of this.slotsOf(i)) terms[slot] = this.at(slot, slot, z);
      let before = Math.log(this.d);
      for (let j = 0; j < this.d; j++) {
        if (codes[j] === 0) continue;
        const child = this.offsets[j] + codes[j];
        for (let slot = 0; slot < this.nSlots; slot++) {
          if (slot < this.offsets[j] || slot >= this.offsets[j + 1]) terms[slot] += this.at(slot, child, z);
          else if (slot !== child) terms[slot] = -Infinity;
        }
        const after = logSum(terms);
        factors[z * this.nColumns + this.varying[j]] = before > -Infinity ? after - before : 0;
        before = after;
      }
    }
    return factors;
  }
}

/** One cell for each combination of categories; code 0 of a column is the sum over its categories. */
export class FullJoint {
  static kind = "categorical";

  constructor({ cardinalities, log_probability }, nComponents) {
    this.nComponents = nComponents;
    this.d = cardinalities.length;
    this.widths = cardinalities.map((k) => k + 1);
    this.table = numbersOf(log_probability); // (Z, K_1 + 1, …, K_d + 1)
  }

  /** Return log p of the first columns given z, (Z,). */
  logDensityUpto(codes, n) {
    return Float64Array.from({ length: this.nComponents }, (_, z) => {
      return this.table[this.widths.reduce((cell, width, j) => cell * width + (j < n ? codes[j] : 0), z)];
    });
  }

  logDensity(tile) {
    return this.logDensityUpto(tile.codes, this.d);
  }

  logFactors(tile) {
    const factors = new Float64Array(this.nComponents * this.d);
    let before = this.logDensityUpto(tile.codes, 0);
    for (let j = 0; j < this.d; j++) {
      const upto = this.logDensityUpto(tile.codes, j + 1);
      upto.forEach((after, z) => (factors[z * this.d + j] = before[z] === -Infinity ? 0 : after - before[z]));
      before = upto;
    }
    return factors;
  }
}

/** p(group of each category | z)·p(category | its group); all components share the second factor. */
export class Grouped {
  constructor({ groups, coded, cardinalities, log_within, coarse }, nComponents, make) {
    this.nComponents = nComponents;
    this.groups = groups; // of each category, of each column of codes; empty without groups
    this.coded = coded; // the positions of these columns in the block
    this.offsets = slotOffsets(cardinalities);
    this.logWithin = numbersOf(log_within);
    this.coarse = make(coarse);
    this.kind = this.coarse.constructor.kind;
  }

  coarseTile(tile) {
    const codes = Int32Array.from(tile.codes);
    this.coded.forEach((p, j) => {
      if (this.groups[j].length && codes[p] > 0) codes[p] = this.groups[j][codes[p] - 1] + 1;
    });
    return { ...tile, codes };
  }

  /** Return log p(x_j | group of x_j) of each column of codes that has groups. */
  within(tile) {
    return this.coded.map((p, j) => (this.groups[j].length ? this.logWithin[this.offsets[j] + tile.codes[p]] : 0));
  }

  logDensity(tile) {
    const within = this.within(tile).reduce((sum, factor) => sum + factor, 0);
    return this.coarse.logDensity(this.coarseTile(tile)).map((density) => density + within);
  }

  logFactors(tile) {
    const factors = this.coarse.logFactors(this.coarseTile(tile));
    const d = tile.codes.length;
    this.within(tile).forEach((factor, j) => {
      for (let z = 0; z < this.nComponents; z++) factors[z * d + this.coded[j]] += factor;
    });
    return factors;
  }
}
