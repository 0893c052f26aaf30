// Exact inference by a junction tree (Koller & Friedman 2009, chapter 10).

/** A table over some variables, the last fastest. */
export class Table {
  constructor(scope, sizes, values) {
    this.scope = scope;
    this.sizes = scope.map((v) => sizes[v]);
    this.values = values ?? new Float64Array(this.sizes.reduce((size, k) => size * k, 1)).fill(1);
  }

  /** Return, for each cell of this table, the cell of a table over part of its scope. */
  cellsOf(scope) {
    const strides = this.scope.map((v) => {
      const at = scope.indexOf(v);
      return at < 0 ? 0 : scope.slice(at + 1).reduce((size, u) => size * this.sizes[this.scope.indexOf(u)], 1);
    });
    const cells = new Int32Array(this.values.length);
    const state = new Int32Array(this.scope.length);
    for (let cell = 0, target = 0; cell < cells.length; cell++) {
      cells[cell] = target;
      for (let s = state.length - 1; s >= 0; s--) {
        target += strides[s];
        if (++state[s] < this.sizes[s]) break;
        target -= strides[s] * state[s];
        state[s] = 0;
      }
    }
    return cells;
  }
}

/** Fill a table with sums of values over the cells that each of its cells covers. */
export function sumInto(target, cells, values) {
  target.fill(0);
  for (let cell = 0; cell < cells.length; cell++) target[cells[cell]] += values[cell];
}

/** Do the same with the greatest values. */
export function maximiseInto(target, cells, values) {
  target.fill(0);
  for (let cell = 0; cell < cells.length; cell++) {
    if (values[cell] > target[cells[cell]]) target[cells[cell]] = values[cell];
  }
}

/** Cliques in an order in which every parent comes before its children, and the maps between their cells. */
class JunctionTree {
  constructor(cliques, tables, sizes) {
    this.joints = new Map(); // of variables of one clique, with the cells of their joint table
    this.cliques = cliques; // {scope, parent, table, separator, own, above}
    this.homes = sizes.map((_, v) => {
      const containing = cliques.filter((clique) => clique.scope.includes(v));
      if (!containing.length) return null; // a continuous variable
      const smallest = containing.reduce((a, b) => (b.table.values.length < a.table.values.length ? b : a));
      return { clique: smallest, cells: smallest.table.cellsOf([v]), n: sizes[v] };
    });
    for (const table of tables) {
      const home = cliques.find((clique) => table.scope.every((v) => clique.scope.includes(v)));
      const cells = home.table.cellsOf(table.scope);
      for (let cell = 0; cell < cells.length; cell++) home.table.values[cell] *= table.values[cells[cell]];
    }
  }

  /**
   * Pass messages to the root and back. Each message is scaled to sum 1; the scales make up log p(evidence).
   * @param {Iterable<[number[], Float64Array]>} factors likelihoods of variables of one clique together
   */
  propagate(factors, into) {
    const beliefs = this.cliques.map((clique) => Float64Array.from(clique.table.values));
    for (const [scope, likelihood] of factors) {
      const { index, cells } = this.homeOf(scope);
      const values = beliefs[index];
      for (let cell = 0; cell < cells.length; cell++) values[cell] *= likelihood[cells[cell]];
    }
    let logEvidence = 0;
    const messages = this.cliques.map((clique) => new Float64Array(clique.nSeparator));
    for (let c = this.cliques.length - 1; c >= 0; c--) {
      const { parent, own, above } = this.cliques[c];
      into(messages[c], own, beliefs[c]);
      logEvidence += Math.log(scaled(messages[c]));
      if (parent < 0) continue;
      for (let cell = 0; cell < above.length; cell++) beliefs[parent][cell] *= messages[c][above[cell]];
    }
    const down = new Float64Array(Math.max(0, ...this.cliques.map((clique) => clique.nSeparator)));
    for (const { index, parent, own, above, nSeparator } of this.cliques) {
      if (parent < 0) continue;
      const message = down.subarray(0, nSeparator);
      into(message, above, beliefs[parent]);
      for (let s = 0; s < nSeparator; s++) message[s] = messages[index][s] > 0 ? message[s] / messages[index][s] : 0;
      scaled(message);
      for (let cell = 0; cell < own.length; cell++) beliefs[index][cell] *= message[own[cell]];
    }
    return { beliefs, logEvidence };
  }

  marginals(beliefs) {
    return this.homes.map((home) => {
      if (home === null) return null;
      const { clique, cells, n } = home;
      const marginal = new Float64Array(n);
      sumInto(marginal, cells, beliefs[clique.index]);
      const total = marginal.reduce((sum, p) => sum + p, 0);
      return marginal.map((p) => p / total);
    });
  }

  /** Return Σ p(u, v)·log(p(u, v) / (p(u)·p(v))) of two variables of one clique. */
  information(u, v, beliefs) {
    const n = this.homes[v].n;
    const joint = this.joint([u, v], beliefs);
    const [ofU, ofV] = [new Float64Array(this.homes[u].n), new Float64Array(n)];
    joint.forEach((p, cell) => {
      ofU[Math.floor(cell / n)] += p;
      ofV[cell % n] += p;
    });
    return joint.reduce(
      (sum, p, cell) => (p > 0 ? sum + p * Math.log(p / (ofU[Math.floor(cell / n)] * ofV[cell % n])) : sum),
      0,
    );
  }

  /** Return the joint distribution of variables of one clique, the last fastest. */
  joint(scope, beliefs) {
    const { index, cells } = this.homeOf(scope);
    const joint = new Float64Array(scope.reduce((size, v) => size * this.homes[v].n, 1));
    sumInto(joint, cells, beliefs[index]);
    const total = joint.reduce((sum, p) => sum + p, 0);
    return joint.map((p) => p / total);
  }

  /** Return the index of the smallest clique of some variables, and the cells of their joint table in it. */
  homeOf(scope) {
    const key = scope.join();
    if (!this.joints.has(key)) {
      const containing = this.cliques.filter((clique) => scope.every((v) => clique.scope.includes(v)));
      const smallest = containing.reduce((a, b) => (b.table.values.length < a.table.values.length ? b : a));
      this.joints.set(key, { index: smallest.index, cells: smallest.table.cellsOf(scope) });
    }
    return this.joints.get(key);
  }

  mostProbable(factors) {
    const { beliefs, logEvidence } = this.propagate(factors, maximiseInto);
    const states = new Array(this.homes.length).fill(-1);
    for (const { index, scope, table } of this.cliques) {
      let best = -1;
      const maps = scope.map((v) => table.cellsOf([v]));
      for (let cell = 0; cell < table.values.length; cell++) {
        if (maps.some((map, s) => states[scope[s]] >= 0 && map[cell] !== states[scope[s]])) continue;
        if (best < 0 || beliefs[index][cell] > beliefs[index][best]) best = cell;
      }
      scope.forEach((v, s) => (states[v] = maps[s][best]));
    }
    return { states, logProbability: logEvidence };
  }
}

/** Divide values by their greatest, unless it is 0, and return it. */
function scaled(values) {
  let peak = 0;
  for (const value of values) if (value > peak) peak = value;
  if (peak > 0) for (let s = 0; s < values.length; s++) values[s] /= peak;
  return peak;
}

/**
 * Return the junction tree of tables.
 * @param {Table[]} tables
 * @param {number[]} sizes of the variables
 * @param {{scope: number[], parent: number}[]} written the cliques, parents first, as the model file lists them
 */
export function junctionTree(tables, sizes, written) {
  const cliques = written.map(({ scope, parent }, index) => {
    const above = parent < 0 ? null : written[parent];
    const table = new Table(scope, sizes);
    const separator = above ? scope.filter((v) => above.scope.includes(v)) : [];
    const nSeparator = separator.reduce((size, v) => size * sizes[v], 1);
    return {
      index,
      parent,
      scope,
      table,
      separator,
      nSeparator,
      own: table.cellsOf(separator),
      above: new Int32Array(0),
    };
  });
  for (const clique of cliques) {
    if (clique.parent >= 0) clique.above = cliques[clique.parent].table.cellsOf(clique.separator);
  }
  return new JunctionTree(cliques, tables, sizes);
}
