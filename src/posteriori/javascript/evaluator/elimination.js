// Tables p(x_j | parents, z) of categories, and variable elimination: sums over the missing columns of a row.

import { logSum, numbersOf } from "./arrays.js";

const MOST_CELLS = 1 << 17; // of the tables that eliminate the missing columns of a row, over all components

/** p(x | z) = Π_j p(x_j | x_parents(j), z). Slot 0 of a parent holds the table given the other parents. */
export class FamilyTables {
  static kind = "categorical";

  constructor({ parents, cardinalities, order, offsets, log_probability }, nComponents) {
    this.nComponents = nComponents;
    this.d = parents.length;
    this.cardinalities = cardinalities;
    this.table = numbersOf(log_probability); // (slots, Z)
    this.mostEach = Math.max(1, Math.floor(MOST_CELLS / nComponents));
    this.families = parents.map((ofChild, j) => {
      const members = [...ofChild, j];
      const strides = members.map((_, t) => members.slice(t + 1).reduce((size, i) => size * (cardinalities[i] + 1), 1));
      return { child: j, parents: ofChild, members, strides, offset: offsets.values[j] };
    });
    this.order = order; // parents before children; which of several orders decides how a sum is shared among factors
  }

  logDensity(tile) {
    const { known, summed } = this.parts(tile.codes, this.order);
    return known.map((part, z) => part + summed[z]);
  }

  /** Return log p(x_j | the present columns before it, z), (Z, d), 0 where x_j is missing. */
  logFactors(tile) {
    const { codes } = tile;
    const factors = new Float64Array(this.nComponents * this.d);
    let before = new Float64Array(this.nComponents);
    const dropped = this.withoutCategories();
    this.plan(codes, this.order, dropped); // what is dropped is the same for all factors of a row
    this.order.forEach((j, step) => {
      if (codes[j] === 0) return;
      const { parents } = this.families[j];
      if (parents.every((i) => codes[i] > 0 || this.cardinalities[i] === 0)) {
        const slot = this.slotOf(this.families[j], codes);
        for (let z = 0; z < this.nComponents; z++) factors[z * this.d + j] = this.table[slot * this.nComponents + z];
        return;
      }
      const { summed } = this.parts(codes, this.order.slice(0, step + 1), dropped);
      for (let z = 0; z < this.nComponents; z++) {
        factors[z * this.d + j] = before[z] === -Infinity ? 0 : summed[z] - before[z];
      }
      before = summed;
    });
    return factors;
  }

  slotOf({ members, strides, offset }, codes) {
    return members.reduce((slot, i, t) => slot + codes[i] * strides[t], offset);
  }

  /** Return the factors of the first columns without hidden members, and the log sum of the others, (Z,) each. */
  parts(codes, columns, dropped = this.withoutCategories()) {
    const { hidden, open, closed, order } = this.plan(codes, columns, dropped);
    const known = new Float64Array(this.nComponents);
    for (const family of closed) {
      const slot = this.slotOf(family, codes);
      for (let z = 0; z < this.nComponents; z++) known[z] += this.table[slot * this.nComponents + z];
    }
    const summed = known.map((_, z) => this.eliminate(order, open, hidden, codes, z));
    return { known, summed };
  }

  /** Plan the elimination of the hidden columns; columns whose tables would be too large are added to `dropped`. */
  plan(codes, columns, dropped) {
    for (;;) {
      const hidden = this.hiddenColumns(codes, columns, dropped);
      const active = columns.filter((j) => codes[j] > 0 || hidden.has(j)).map((j) => this.families[j]);
      const [open, closed] = [[], []];
      for (const family of active) (family.members.some((i) => hidden.has(i)) ? open : closed).push(family);
      const { order, tooLarge } = planElimination(hidden, open, this.cardinalities, this.mostEach);
      if (tooLarge === undefined) return { hidden, open, closed, order };
      dropped.add(tooLarge); // its children take the tables given their other parents
    }
  }

  withoutCategories() {
    return new Set(this.cardinalities.flatMap((k, j) => (k === 0 ? [j] : [])));
  }

  /** Return the missing columns with a present descendant: the others sum to 1. */
  hiddenColumns(codes, columns, dropped) {
    const hidden = new Set();
    for (const j of [...columns].reverse()) {
      if (codes[j] === 0 && !hidden.has(j)) continue;
      for (const i of this.families[j].parents) if (codes[i] === 0 && !dropped.has(i)) hidden.add(i);
    }
    return hidden;
  }

  eliminate(order, open, hidden, codes, z) {
    let factors = open.map((family) => this.factorOf(family, hidden, codes, z));
    let total = 0;
    for (const v of order) {
      const mine = factors.filter((factor) => factor.scope.includes(v));
      const message = sumOut(v, mine, this.cardinalities);
      factors = factors.filter((factor) => !factor.scope.includes(v));
      if (message.scope.length) factors.push(message);
      else total += message.values[0];
    }
    return total;
  }

  /** Return a family as a table of logarithms over its hidden members, its last member fastest. */
  factorOf(family, hidden, codes, z) {
    const scope = family.members.filter((i) => hidden.has(i));
    const values = new Float64Array(scope.reduce((size, i) => size * this.cardinalities[i], 1));
    const value = Int32Array.from(codes);
    for (let cell = 0; cell < values.length; cell++) {
      let rest = cell;
      for (let s = scope.length - 1; s >= 0; s--) {
        value[scope[s]] = 1 + (rest % this.cardinalities[scope[s]]);
        rest = Math.floor(rest / this.cardinalities[scope[s]]);
      }
      values[cell] = this.table[this.slotOf(family, value) * this.nComponents + z];
    }
    return { scope, values };
  }
}

/** Return log Σ_v exp Σ_f of some factors, as a factor over their other columns. */
function sumOut(v, factors, cardinalities) {
  const scope = [...new Set(factors.flatMap((factor) => factor.scope))].filter((i) => i !== v);
  const sizes = scope.map((i) => cardinalities[i]);
  const values = new Float64Array(sizes.reduce((size, k) => size * k, 1));
  const value = new Map();
  for (let cell = 0; cell < values.length; cell++) {
    let rest = cell;
    for (let s = scope.length - 1; s >= 0; s--) {
      value.set(scope[s], rest % sizes[s]);
      rest = Math.floor(rest / sizes[s]);
    }
    const terms = [];
    for (let k = 0; k < cardinalities[v]; k++) {
      value.set(v, k);
      let term = 0;
      for (const factor of factors) {
        term += factor.values[factor.scope.reduce((at, i) => at * cardinalities[i] + value.get(i), 0)];
      }
      terms.push(term);
    }
    values[cell] = logSum(terms);
  }
  return { scope, values };
}

/** Return the order of elimination, least table first, or the column to drop if the tables have too many cells. */
function planElimination(hidden, open, cardinalities, most) {
  const joined = new Map([...hidden].map((v) => [v, new Set()]));
  for (const { members } of open) {
    const scope = members.filter((i) => hidden.has(i));
    for (const a of scope) for (const b of scope) if (a !== b) joined.get(a).add(b);
  }
  const cellsOf = (v) => [...joined.get(v)].reduce((size, i) => size * cardinalities[i], cardinalities[v]);
  const weight = new Map([...hidden].map((v) => [v, cellsOf(v)]));
  const left = new Set(hidden);
  const order = [];
  let total = 0;
  while (left.size) {
    let best;
    for (const v of left) if (best === undefined || weight.get(v) < weight.get(best)) best = v;
    total += weight.get(best);
    if (total > most) {
      for (const v of left) if (weight.get(v) > weight.get(best)) best = v;
      return { tooLarge: best };
    }
    order.push(best);
    left.delete(best);
    const neighbours = [...joined.get(best)];
    for (const a of neighbours) {
      for (const b of neighbours) if (a !== b) joined.get(a).add(b);
      joined.get(a).delete(best);
    }
    for (const a of neighbours) weight.set(a, cellsOf(a));
  }
  return { order };
}
