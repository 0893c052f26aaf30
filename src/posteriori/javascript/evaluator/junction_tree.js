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
    this.pairs = new Map(); // of variables of one clique, with the cells of their joint table
    this.cliques = cliques; // {scope, parent, table, separator, own, above}
    this.homes = sizes.map((_, v) => {
      const containing = cliques.filter((clique) => clique.scope.includes(v));
      const smallest = containing.reduce((a, b) => (b.table.values.length < a.table.values.length ? b : a));
      return { clique: smallest, cells: smallest.table.cellsOf([v]), n: sizes[v] };
    });
    for (const table of tables) {
      const home = cliques.find((clique) => table.scope.every((v) => clique.scope.includes(v)));
      const cells = home.table.cellsOf(table.scope);
      for (let cell = 0; cell < cells.length; cell++) home.table.values[cell] *= table.values[cells[cell]];
    }
  }

  /** Pass messages to the root and back. Each message is scaled to sum 1; the scales make up log p(evidence). */
  propagate(likelihoods, into) {
    const beliefs = this.cliques.map((clique) => Float64Array.from(clique.table.values));
    for (const [v, likelihood] of likelihoods) {
      const { clique, cells } = this.homes[v];
      const values = beliefs[clique.index];
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
    const down = new Float64Array(Math.max(...this.cliques.map((clique) => clique.nSeparator)));
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
    return this.homes.map(({ clique, cells, n }) => {
      const marginal = new Float64Array(n);
      sumInto(marginal, cells, beliefs[clique.index]);
      const total = marginal.reduce((sum, p) => sum + p, 0);
      return marginal.map((p) => p / total);
    });
  }

  /** Return Σ p(u, v)·log(p(u, v) / (p(u)·p(v))) of two variables of one clique. */
  information(u, v, beliefs) {
    const clique = this.pairHome(u, v);
    const n = this.homes[v].n;
    const joint = new Float64Array(this.homes[u].n * n);
    sumInto(joint, clique.cells, beliefs[clique.index]);
    const total = joint.reduce((sum, p) => sum + p, 0);
    const [ofU, ofV] = [new Float64Array(this.homes[u].n), new Float64Array(n)];
    joint.forEach((p, cell) => {
      ofU[Math.floor(cell / n)] += p / total;
      ofV[cell % n] += p / total;
    });
    return joint.reduce((sum, p, cell) => {
      const share = p / total;
      return share > 0 ? sum + share * Math.log(share / (ofU[Math.floor(cell / n)] * ofV[cell % n])) : sum;
    }, 0);
  }

  pairHome(u, v) {
    const key = `${u},${v}`;
    if (!this.pairs.has(key)) {
      const containing = this.cliques.filter(({ scope }) => scope.includes(u) && scope.includes(v));
      const smallest = containing.reduce((a, b) => (b.table.values.length < a.table.values.length ? b : a));
      this.pairs.set(key, { index: smallest.index, cells: smallest.table.cellsOf([u, v]) });
    }
    return this.pairs.get(key);
  }

  mostProbable(likelihoods) {
    const { beliefs, logEvidence } = this.propagate(likelihoods, maximiseInto);
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
