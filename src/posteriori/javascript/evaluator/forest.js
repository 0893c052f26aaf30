// A forest of randomised trees, each a joint distribution over its leaves, the classes and the cells.

import { logSum, numbersOf, slotOffsets } from "./arrays.js";

/** The mean of trees: geometric of p_t(y | x) / p_t(y), or arithmetic of p_t(y | x). p(x) is the mean of p_t(x). */
export class RandomTrees {
  static kind = "categorical";

  constructor({ cardinalities, share, log_edge, given_node, mass, prior, nodes, roots, ordered, sides, combine }, nComponents) {
    this.nComponents = nComponents;
    this.d = cardinalities.length;
    this.offsets = slotOffsets(cardinalities);
    this.share = numbersOf(share); // of the rows of a node that goes left
    this.logEdge = numbersOf(log_edge);
    this.givenNode = numbersOf(given_node); // log p(y | node) − log p(y), (nodes, Z)
    this.mass = numbersOf(mass); // p(x_j) of each code
    this.prior = numbersOf(prior);
    this.nodes = Int32Array.from(nodes.values); // column or −1, cut or start of the sides, left child, of each node
    this.roots = roots.values.slice(0, -1);
    this.ordered = ordered.values;
    this.sides = sides.values; // of each code of a split of categories: 1 is left, 2 is right, 0 is both
    this.isGeometric = combine === "geometric";
  }

  /** Return the side to which a row goes at a node: 1 left, 2 right, 0 both. */
  side(codes, node) {
    const column = this.nodes[3 * node];
    const code = codes[column];
    if (code === 0 || code > 65535) return 0;
    const cut = this.nodes[3 * node + 1];
    return this.ordered[column] ? (code <= cut ? 1 : 2) : this.sides[cut + code];
  }

  /** Return which nodes have a split below them whose cell the row has; only these need to be descended. */
  openNodes(codes) {
    const open = new Uint8Array(this.share.length);
    for (let v = open.length - 1; v >= 0; v--) {
      const [column, child] = [this.nodes[3 * v], this.nodes[3 * v + 2]];
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
        const [side, child] = [this.side(codes, node), this.nodes[3 * node + 2]];
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
    const scores = new Float64Array(this.nComponents);
    for (let z = 0; z < this.nComponents; z++) {
      let sum = 0;
      leaves.forEach((node, k) => (sum += Math.exp(logs[k] - total + this.givenNode[node * this.nComponents + z])));
      scores[z] = Math.log(sum);
    }
    return { scores, log: total };
  }

  /** Return the mean of the trees, log p(z | x) − log p(z), and log p(x) relative to independent columns. */
  scored(codes) {
    const open = this.openNodes(codes);
    const mean = new Float64Array(this.nComponents);
    const logs = this.roots.map((root) => {
      const { scores, log } = this.scoreTree(root, codes, open);
      const evidence = this.isGeometric ? 1 : this.prior.reduce((sum, p, z) => sum + p * Math.exp(scores[z]), 0);
      scores.forEach((score, z) => (mean[z] += (this.isGeometric ? score : Math.exp(score) / evidence) / this.roots.length));
      return log;
    });
    return { scores: this.isGeometric ? mean : mean.map(Math.log), log: logSum(logs) - Math.log(this.roots.length) };
  }

  /** Return log p(x | z) up to a constant, (Z,). */
  logScores(tile) {
    return this.scored(tile.codes).scores;
  }

  /** Return log p(x_j) of each cell, 0 where missing. */
  logMasses(codes) {
    return Array.from(codes, (code, j) => (code > 0 ? Math.log(this.mass[this.offsets[j] + code]) : 0));
  }

  logDensity(tile) {
    const { scores, log } = this.scored(tile.codes);
    const evidence = logSum(scores.map((score, z) => score + Math.log(this.prior[z])));
    const independent = this.logMasses(tile.codes).reduce((sum, one) => sum + one, 0);
    return scores.map((score) => score + log + independent - evidence);
  }

  /** Return what each column adds to logDensity, (Z, d): along paths, and of sides of missing cells (Aumann & Shapley). */
  logFactors(tile) {
    if (!this.isGeometric) throw new Error("the arithmetic mean of trees is no sum of log factors");
    const { codes } = tile;
    const open = this.openNodes(codes);
    const factors = new Float64Array(this.nComponents * this.d);
    for (const root of this.roots) {
      const { parts } = this.explainNode(root, codes, open);
      for (let cell = 0; cell < factors.length; cell++) factors[cell] += parts[cell] / this.roots.length;
    }
    // The rest is the same for all classes: log p(x_j) of each cell, and equal parts of what log p(x) adds to these.
    const density = this.logDensity(tile);
    const alone = this.logMasses(codes);
    let rest = -alone.reduce((sum, one) => sum + one, 0);
    for (let z = 0; z < this.nComponents; z++) {
      let explained = 0;
      for (let j = 0; j < this.d; j++) explained += factors[z * this.d + j];
      rest += (density[z] - explained) / this.nComponents;
    }
    const nPresent = Math.max(codes.filter((code) => code > 0).length, 1);
    for (let cell = 0; cell < factors.length; cell++) {
      const j = cell % this.d;
      factors[cell] += alone[j] + (codes[j] > 0 ? rest / nPresent : 0);
    }
    return factors;
  }

  /** Return log p(x, y) / p(y) below a node, (Z,), and the part of each column in it, (Z, d). */
  explainNode(node, codes, open) {
    const Z = this.nComponents;
    if (!open[node]) {
      return { value: this.givenNode.slice(node * Z, (node + 1) * Z), parts: new Float64Array(Z * this.d) };
    }
    const [side, left] = [this.side(codes, node), this.nodes[3 * node + 2]];
    if (side > 0) {
      const child = left + side - 1;
      const { value, parts } = this.explainNode(child, codes, open);
      const column = this.nodes[3 * node];
      for (let z = 0; z < Z; z++) {
        value[z] += this.logEdge[child];
        parts[z * this.d + column] += this.logEdge[child] + this.givenNode[child * Z + z] - this.givenNode[node * Z + z];
      }
      return { value, parts };
    }
    const [a, b] = [this.explainNode(left, codes, open), this.explainNode(left + 1, codes, open)];
    const odds = Math.log(this.share[node]) - Math.log(1 - this.share[node]);
    for (let z = 0; z < Z; z++) {
      const before = odds + this.givenNode[left * Z + z] - this.givenNode[(left + 1) * Z + z];
      const after = odds + a.value[z] - b.value[z];
      const atLeft = meanSigmoid(before, after);
      a.value[z] = Math.log(1 - this.share[node]) + b.value[z] + softplus(after);
      for (let j = z * this.d; j < (z + 1) * this.d; j++) a.parts[j] = atLeft * a.parts[j] + (1 - atLeft) * b.parts[j];
    }
    return a;
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
