// Forests: of randomised trees, each a joint distribution over its leaves, the classes and the cells; and sums of trees.

import { logSum, numbersOf, slotOffsets } from "./arrays.js";

/** The posterior is a mean of trees: geometric of p_t(x | y), or arithmetic of p_t(y | x). p(x | y) is their mixture. */
export class RandomTrees {
  static kind = "categorical";

  constructor(written, nComponents) {
    this.nComponents = nComponents;
    this.d = written.cardinalities.length;
    this.offsets = slotOffsets(written.cardinalities);
    this.setMasses(written);
    this.roots = written.roots.values.slice(0, -1);
    this.ordered = written.ordered.values; // whether a cut splits a column; others split by sets of categories
    this.sides = written.sides.values; // of each code of a split of categories: 1 is left, 2 is right, 0 is both
    this.isArithmetic = written.combine === "arithmetic";
    this.setNodes(written);
    this.setDistributions(numbersOf(written.given_leaf));
    this.setEdges();
  }

  setMasses({ mass, prior }) {
    this.mass = numbersOf(mass); // p(x_j) of each code
    this.prior = numbersOf(prior);
  }

  /** Fill the column of each node, −1 for a leaf; its cut, or the start of its sides; its left child; and its share. */
  setNodes({ column, cut, step, share }) {
    this.column = Int32Array.from(column.values);
    const n = this.column.length;
    [this.cut, this.child, this.share] = [new Int32Array(n), new Int32Array(n), new Float64Array(n)];
    const shares = numbersOf(share); // of the rows of a node that goes left
    let inner = 0;
    for (let v = 0; v < n; v++) {
      if (this.column[v] < 0) continue;
      this.cut[v] = cut.values[inner];
      this.child[v] = v + step.values[inner];
      this.share[v] = shares[inner++];
    }
  }

  /** Fill log p(y | node) − log p(y), (nodes, Z): that of a node above leaves is the mean with their shares. */
  setDistributions(ofLeaves) {
    const Z = this.nComponents;
    this.givenNode = new Float64Array(this.column.length * Z);
    let leaf = ofLeaves.length / Z;
    for (let v = this.column.length - 1; v >= 0; v--) {
      if (this.column[v] < 0) leaf--;
      for (let z = 0; z < Z; z++) {
        const sides = [this.givenNode[this.child[v] * Z + z], this.givenNode[(this.child[v] + 1) * Z + z]];
        this.givenNode[v * Z + z] =
          this.column[v] < 0 ? ofLeaves[leaf * Z + z] : this.mean([this.share[v], 1 - this.share[v]], sides);
      }
    }
  }

  /**
   * Fill what the edge into a node multiplies p(x) by if the cell of the split is present, as a logarithm: the share of
   * its side, divided by that of its codes under p(x_j) within the codes that the splits above leave.
   */
  setEdges() {
    const n = this.column.length;
    this.logEdge = new Float64Array(n);
    const cells = new Array(n); // of each node, the least and the greatest code of the columns of numbers that are split
    for (const root of this.roots) cells[root] = new Map();
    for (let v = 0; v < n; v++) {
      const [j, child] = [this.column[v], this.child[v]];
      if (j < 0) continue;
      const [low, high] = cells[v].get(j) ?? [1, this.offsets[j + 1] - this.offsets[j] - 1];
      const mass = [0, 0, 0];
      for (let code = low; code <= high; code++) {
        const side = this.ordered[j] ? (code <= this.cut[v] ? 1 : 2) : this.sides[this.cut[v] + code];
        mass[side] += this.mass[this.offsets[j] + code];
      }
      for (const side of [1, 2]) {
        const share = side === 1 ? this.share[v] : 1 - this.share[v];
        this.logEdge[child + side - 1] = Math.log(share) - Math.log(mass[side]) + Math.log(mass[1] + mass[2]);
        const cell = side === 1 ? [low, Math.min(high, this.cut[v])] : [Math.max(low, this.cut[v] + 1), high];
        cells[child + side - 1] = this.ordered[j] ? new Map(cells[v]).set(j, cell) : cells[v];
      }
      cells[v] = null;
    }
  }

  /** Return the side to which a row goes at a node: 1 left, 2 right, 0 both. */
  side(codes, node) {
    const column = this.column[node];
    const code = codes[column];
    if (code === 0 || code > 65535) return 0;
    const cut = this.cut[node];
    return this.ordered[column] ? (code <= cut ? 1 : 2) : this.sides[cut + code];
  }

  /** Return the mean of the nodes that a row reaches, with their shares. */
  mean(shares, values) {
    return Math.log(values.reduce((sum, value, k) => sum + shares[k] * Math.exp(value), 0));
  }

  /** Return which nodes have a split below them whose cell the row has; only these need to be descended. */
  openNodes(codes) {
    const open = new Uint8Array(this.share.length);
    for (let v = open.length - 1; v >= 0; v--) {
      const [column, child] = [this.column[v], this.child[v]];
      if (column >= 0 && (open[child] || open[child + 1] || this.side(codes, v) > 0)) open[v] = 1;
    }
    return open;
  }

  /** Return log p(y | x) − log p(y), (Z,), and log p(x) relative to independent columns, of one tree. */
  scoreTree(root, codes, open) {
    const [leaves, logs] = [[], []];
    const waiting = [[root, 0]];
    while (waiting.length) {
      let [node, log] = waiting.pop();
      while (open[node]) {
        const [side, child] = [this.side(codes, node), this.child[node]];
        if (side === 0) {
          waiting.push([child + 1, log + Math.log(1 - this.share[node])]);
          log += Math.log(this.share[node]);
          node = child;
        } else {
          node = child + side - 1;
          log += this.logEdge[node];
        }
      }
      leaves.push(node);
      logs.push(log);
    }
    const total = logSum(logs);
    const shares = logs.map((log) => Math.exp(log - total));
    const of = (z) => leaves.map((node) => this.givenNode[node * this.nComponents + z]);
    return { scores: Float64Array.from({ length: this.nComponents }, (_, z) => this.mean(shares, of(z))), log: total };
  }

  /** Return log p(z | x) − log p(z) of the mean of the trees up to a constant, (Z,). */
  logScores({ codes }) {
    const open = this.openNodes(codes);
    const mean = new Float64Array(this.nComponents);
    for (const root of this.roots) {
      const { scores } = this.scoreTree(root, codes, open);
      const evidence = this.isArithmetic ? this.prior.reduce((sum, p, z) => sum + p * Math.exp(scores[z]), 0) : 1;
      scores.forEach(
        (score, z) => (mean[z] += (this.isArithmetic ? Math.exp(score) / evidence : score) / this.roots.length),
      );
    }
    return this.isArithmetic ? mean.map(Math.log) : mean;
  }

  /** Return log p(x_j) of each cell, 0 where missing. */
  logMasses(codes) {
    return Array.from(codes, (code, j) => (code > 0 ? Math.log(this.mass[this.offsets[j] + code]) : 0));
  }

  /** Return log (1/T)·Σ_t p_t(x | z), (Z,). */
  logDensity({ codes }) {
    const open = this.openNodes(codes);
    const trees = this.roots.map((root) => this.scoreTree(root, codes, open));
    const independent = this.logMasses(codes).reduce((sum, one) => sum + one, 0);
    return Float64Array.from(
      { length: this.nComponents },
      (_, z) => logSum(trees.map(({ scores, log }) => scores[z] + log)) - Math.log(trees.length) + independent,
    );
  }

  /**
   * Return what each column adds to the mean over the trees of log p_t(x | z), (Z, d): along paths, and of sides of
   * missing cells (Aumann & Shapley).
   */
  logFactors(tile) {
    if (this.isArithmetic) throw new Error("the arithmetic mean of trees is no sum of log factors");
    const { codes } = tile;
    const open = this.openNodes(codes);
    const factors = new Float64Array(this.nComponents * this.d);
    for (const root of this.roots) {
      const { parts } = this.explainNode(root, codes, open);
      for (let cell = 0; cell < factors.length; cell++) factors[cell] += parts[cell] / this.roots.length;
    }
    const alone = this.logMasses(codes);
    return factors.map((factor, cell) => factor + alone[cell % this.d]);
  }

  /** Return log p(x, y) / p(y) below a node, (Z,), and the part of each column in it, (Z, d). */
  explainNode(node, codes, open) {
    const Z = this.nComponents;
    if (!open[node]) {
      return { value: this.givenNode.slice(node * Z, (node + 1) * Z), parts: new Float64Array(Z * this.d) };
    }
    const [side, left] = [this.side(codes, node), this.child[node]];
    if (side > 0) {
      const child = left + side - 1;
      const { value, parts } = this.explainNode(child, codes, open);
      const column = this.column[node];
      for (let z = 0; z < Z; z++) {
        value[z] += this.logEdge[child];
        parts[z * this.d + column] +=
          this.logEdge[child] + this.givenNode[child * Z + z] - this.givenNode[node * Z + z];
      }
      return { value, parts };
    }
    const [a, b] = [this.explainNode(left, codes, open), this.explainNode(left + 1, codes, open)];
    const odds = Math.log(this.share[node]) - Math.log(1 - this.share[node]);
    for (let z = 0; z < Z; z++) {
      const before = odds + this.givenNode[left * Z + z] - this.givenNode[(left + 1) * Z + z];
      const after = odds + a.value[z] - b.value[z];
      const atLeft = this.partOfLeft(node, before, after);
      a.value[z] = Math.log(1 - this.share[node]) + b.value[z] + softplus(after);
      for (let j = z * this.d; j < (z + 1) * this.d; j++) a.parts[j] = atLeft * a.parts[j] + (1 - atLeft) * b.parts[j];
    }
    return a;
  }

  /** Return the part that the left side has in an explanation, where log odds of the sides change from before to after. */
  partOfLeft(node, before, after) {
    return meanSigmoid(before, after);
  }
}

/** Scores that are a sum over trees, so the mean of T times their values: no density. A missing cell takes both sides. */
export class SummedTrees extends RandomTrees {
  static normalised = false;

  setMasses() {
    this.mass = new Float64Array(this.offsets.at(-1)).fill(1); // a cell by itself adds nothing
  }

  setEdges() {
    this.logEdge = new Float64Array(this.column.length);
  }

  mean(shares, values) {
    return values.reduce((sum, value, k) => sum + shares[k] * value, 0);
  }

  partOfLeft(node) {
    return this.share[node];
  }

  logDensity(tile) {
    return this.logScores(tile);
  }
}

/** Return log(1 + exp(u)). */
function softplus(u) {
  return Math.max(u, 0) + Math.log1p(Math.exp(-Math.abs(u)));
}

/** Return the mean of 1 / (1 + exp(−u)) over u from a to b. */
function meanSigmoid(a, b) {
  if (Math.abs(b - a) < 1e-6) return 1 / (1 + Math.exp(-(a + b) / 2));
  return (softplus(b) - softplus(a)) / (b - a);
}
