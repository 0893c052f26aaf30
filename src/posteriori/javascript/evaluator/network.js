// Exact inference in a Bayesian network by a junction tree (Koller & Friedman 2009, chapter 10).

import { numbersOf } from "./arrays.js";

const MOST_CLIQUE_CELLS = 1 << 22; // of all cliques together

/** A table over some variables, the last fastest. */
class Table {
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

/** A Bayesian network: p(x) = Π_v p(x_v | parents). */
export class Network {
  /** @param {object} written the model file, as `load` parses it */
  constructor(written) {
    this.name = written.name;
    this.variables = written.variables.map((variable, v) => ({ ...variable, index: v }));
    this.byName = new Map(this.variables.map((variable) => [variable.name, variable]));
    this.sizes = this.variables.map((variable) => variable.states.length);
    this.tables = this.variables.map((variable, v) => {
      return new Table([...variable.parents, v], this.sizes, numbersOf(variable.probabilities));
    });
    this.tree = junctionTree(this.tables, this.sizes);
  }

  variable(name) {
    const found = this.byName.get(name);
    if (!found) throw new RangeError(`the network has no variable ${JSON.stringify(name)}`);
    return found;
  }

  /**
   * Return the likelihood of each state of the variables with a finding.
   * @param {object} evidence by the names of variables: a state; a list of states, one of which it has; or a Map or
   *   object from every state to its likelihood; null is unknown
   */
  likelihoods(evidence) {
    const found = new Map();
    for (const [name, finding] of evidence instanceof Map ? evidence : Object.entries(evidence)) {
      if (finding === null || finding === undefined) continue;
      const { states, index } = this.variable(name);
      const weighs = typeof finding === "object" && !Array.isArray(finding);
      const weightOf = finding instanceof Map ? (state) => finding.get(state) : (state) => finding[String(state)];
      const likelihood = Float64Array.from(states, (state) => {
        if (weighs) return Number(weightOf(state) ?? NaN);
        return Number([finding].flat().includes(state));
      });
      const named = weighs || [finding].flat().every((state) => states.includes(state));
      if (!named || likelihood.some((weight) => !(weight >= 0 && weight < Infinity)) || !likelihood.some(Boolean)) {
        throw new RangeError(`the finding on ${JSON.stringify(name)} is none of its states ${JSON.stringify(states)}`);
      }
      found.set(index, likelihood);
    }
    return found;
  }

  /**
   * Return p(variable | evidence) of every variable, and log p(evidence) in nats.
   * @returns {{marginals: Float64Array[], logEvidence: number}} NaN marginals if the evidence is impossible
   */
  query(evidence = {}) {
    const { beliefs, logEvidence } = this.tree.propagate(this.likelihoods(evidence), sumInto);
    return { marginals: this.tree.marginals(beliefs), logEvidence };
  }

  /** Return p(variable | evidence) by the names of variables, each as an array in the order of its states. */
  marginals(evidence = {}) {
    const { marginals } = this.query(evidence);
    return Object.fromEntries(this.variables.map(({ name }, v) => [name, marginals[v]]));
  }

  /** Return the mutual information of the ends of each edge given evidence, in nats: {parent, child, nats} by index. */
  edgeInformation(evidence = {}) {
    const { beliefs } = this.tree.propagate(this.likelihoods(evidence), sumInto);
    return this.variables.flatMap(({ index, parents }) =>
      parents.map((parent) => ({ parent, child: index, nats: this.tree.information(parent, index, beliefs) })),
    );
  }

  /** Return log p(evidence) in nats; −Infinity if it is impossible. */
  logEvidence(evidence = {}) {
    return this.query(evidence).logEvidence;
  }

  /**
   * Return the most probable states of all variables together given evidence.
   * @returns {{states: number[], logProbability: number}} indices of states; log p(states, evidence) in nats
   */
  mostProbable(evidence = {}) {
    return this.tree.mostProbable(this.likelihoods(evidence));
  }

  /** Return whether given variables block every trail between two others. */
  dSeparated(from, to, given = []) {
    const observed = new Set(given.map((name) => this.variable(name).index));
    return !reachable(this.variables, this.variable(from).index, observed).has(this.variable(to).index);
  }

  /** Return the trails between two variables and which are active given others, at most `limit` of them. */
  trails(from, to, given = [], limit = 12) {
    const observed = new Set(given.map((name) => this.variable(name).index));
    return trailsBetween(this.variables, this.variable(from).index, this.variable(to).index, observed, limit);
  }
}

function sumInto(target, cells, values) {
  target.fill(0);
  for (let cell = 0; cell < cells.length; cell++) target[cells[cell]] += values[cell];
}

function maximiseInto(target, cells, values) {
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

/** Return the junction tree of tables: moral graph, greedy elimination, maximum-weight spanning tree of the cliques. */
function junctionTree(tables, sizes) {
  const scopes = eliminationCliques(tables, sizes);
  const nCells = scopes.reduce((sum, scope) => sum + scope.reduce((size, v) => size * sizes[v], 1), 0);
  if (nCells > MOST_CLIQUE_CELLS) {
    throw new RangeError(
      `exact inference needs ${nCells} cells, more than ${MOST_CLIQUE_CELLS}; the network is too large`,
    );
  }
  const parents = new Array(scopes.length).fill(-1);
  const order = [];
  const outside = new Set(scopes.keys());
  const nearest = new Array(scopes.length).fill(-1);
  const sets = scopes.map((scope) => new Set(scope));
  while (outside.size) {
    let next = -1;
    for (const c of outside) if (next < 0 || nearest[c] > nearest[next]) next = c;
    outside.delete(next);
    if (nearest[next] <= 0) parents[next] = -1;
    order.push(next);
    for (const c of outside) {
      const shared = scopes[c].filter((v) => sets[next].has(v)).length;
      if (shared > nearest[c]) [nearest[c], parents[c]] = [shared, next];
    }
  }
  const place = new Map(order.map((c, position) => [c, position]));
  const cliques = order.map((c, index) => {
    const parent = parents[c] < 0 ? -1 : place.get(parents[c]);
    return { index, parent, scope: scopes[c], table: new Table(scopes[c], sizes) };
  });
  for (const clique of cliques) {
    const above = clique.parent < 0 ? null : cliques[clique.parent];
    clique.separator = above ? clique.scope.filter((v) => above.scope.includes(v)) : [];
    clique.nSeparator = clique.separator.reduce((size, v) => size * sizes[v], 1);
    clique.own = clique.table.cellsOf(clique.separator);
    clique.above = above ? above.table.cellsOf(clique.separator) : new Int32Array(0);
  }
  return new JunctionTree(cliques, tables, sizes);
}

/** Return the maximal cliques of the moral graph, made chordal by eliminating the cheapest variable first. */
function eliminationCliques(tables, sizes) {
  const joined = sizes.map(() => new Set());
  for (const { scope } of tables) for (const a of scope) for (const b of scope) if (a !== b) joined[a].add(b);
  const left = new Set(sizes.keys());
  const cliques = [];
  const fillOf = (v) => {
    const neighbours = [...joined[v]];
    let fill = 0;
    neighbours.forEach((a, i) =>
      neighbours.slice(i + 1).forEach((b) => (fill += joined[a].has(b) ? 0 : sizes[a] * sizes[b])),
    );
    return fill;
  };
  const costs = sizes.map((_, v) => fillOf(v));
  while (left.size) {
    let best = -1;
    for (const v of left) if (best < 0 || costs[v] < costs[best]) best = v;
    const neighbours = [...joined[best]];
    cliques.push([...neighbours, best].sort((a, b) => a - b));
    left.delete(best);
    const touched = new Set(neighbours);
    for (const a of neighbours) {
      for (const b of neighbours) if (a !== b) joined[a].add(b);
      joined[a].delete(best);
      for (const b of joined[a]) touched.add(b);
    }
    for (const v of touched) costs[v] = fillOf(v);
  }
  const sets = cliques.map((clique) => new Set(clique));
  return cliques.filter((clique, c) => {
    return !sets.some(
      (other, o) => o !== c && (other.size > clique.length || o < c) && clique.every((v) => other.has(v)),
    );
  });
}

/** Return the children of each variable. */
function childrenOf(variables) {
  const children = variables.map(() => []);
  for (const { index, parents } of variables) for (const parent of parents) children[parent].push(index);
  return children;
}

/** Return the variables that are observed, or have an observed descendant: they do not block where arrows meet. */
function openedBy(observed, variables) {
  const opened = new Set();
  const open = (v) => {
    if (opened.has(v)) return;
    opened.add(v);
    variables[v].parents.forEach(open);
  };
  observed.forEach(open);
  return opened;
}

/** Return the variables with an active trail from one variable (Koller & Friedman, algorithm 3.1). */
function reachable(variables, from, observed) {
  const children = childrenOf(variables);
  const opened = openedBy(observed, variables);
  const found = new Set();
  const visited = new Set();
  const waiting = [[from, true]]; // a variable, and whether the trail came from a child of it
  while (waiting.length) {
    const [v, up] = waiting.pop();
    const key = 2 * v + Number(up);
    if (visited.has(key)) continue;
    visited.add(key);
    if (!observed.has(v)) found.add(v);
    if (up && !observed.has(v)) {
      variables[v].parents.forEach((parent) => waiting.push([parent, true]));
      children[v].forEach((child) => waiting.push([child, false]));
    }
    if (!up && !observed.has(v)) children[v].forEach((child) => waiting.push([child, false]));
    if (!up && opened.has(v)) variables[v].parents.forEach((parent) => waiting.push([parent, true]));
  }
  return found;
}

/**
 * Return the simple trails between two variables: their nodes, and what blocks each given the observed ones. A collider
 * blocks unless it or a descendant is observed; another node blocks if it is observed (Koller & Friedman, 3.3).
 */
function trailsBetween(variables, from, to, observed, limit) {
  const children = childrenOf(variables);
  const opened = openedBy(observed, variables);
  const found = [];
  const paths = [[from]];
  let steps = 0;
  for (let head = 0; head < paths.length && found.length < limit && steps < 20000; head++) {
    const path = paths[head];
    const last = path.at(-1);
    for (const next of [...variables[last].parents, ...children[last]]) {
      steps++;
      if (path.includes(next)) continue;
      if (next === to) found.push(trailOf([...path, next], variables, observed, opened));
      else if (paths.length < 20000) paths.push([...path, next]);
    }
  }
  return found.slice(0, limit);
}

function trailOf(nodes, variables, observed, opened) {
  const blocks = [];
  for (let s = 1; s + 1 < nodes.length; s++) {
    const [before, node, after] = [nodes[s - 1], nodes[s], nodes[s + 1]];
    const collider = variables[node].parents.includes(before) && variables[node].parents.includes(after);
    if (collider ? !opened.has(node) : observed.has(node)) blocks.push({ node, collider });
  }
  const forward = nodes.slice(1).map((node, s) => variables[node].parents.includes(nodes[s]));
  return { nodes, forward, active: !blocks.length, blocks };
}
