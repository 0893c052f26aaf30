// A Bayesian network: marginals given evidence, most probable states, and trails.

import { numbersOf } from "./arrays.js";
import { Table, junctionTree, maximiseInto, sumInto } from "./junction_tree.js";

/** A Bayesian network: p(x) = Π_v p(x_v | parents). */
export class Network {
  /** @param {object} written the model file, as `load` parses it */
  constructor(written) {
    this.name = written.name;
    this.written = written;
    this.variables = written.variables.map((variable, v) => ({ ...variable, index: v }));
    this.byName = new Map(this.variables.map((variable) => [variable.name, variable]));
    this.sizes = this.variables.map((variable) => variable.states.length);
    this.tables = this.variables.map((variable, v) => {
      return new Table([...variable.parents, v], this.sizes, numbersOf(variable.probabilities));
    });
    this.tree = junctionTree(this.tables, this.sizes, written.cliques);
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
    for (const [name, finding] of entriesOf(evidence)) {
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

  /**
   * Return the network after an intervention (Pearl 2009, section 3.2): the variables are set from outside, whatever
   * their causes are, so that no edge leads into them.
   * @param {object} settings the state of each variable that is set, by name
   */
  do(settings) {
    const variables = [...this.written.variables];
    for (const [name, state] of entriesOf(settings)) {
      const { states, index } = this.variable(name);
      if (!states.includes(state)) {
        throw new RangeError(`${JSON.stringify(name)} is set to none of its states ${JSON.stringify(states)}`);
      }
      const values = states.map((one) => Number(one === state));
      variables[index] = { name, states, parents: [], probabilities: { shape: [states.length], values } };
    }
    return new Network({ ...this.written, variables });
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

/** Return the names and values of a Map or an object. */
function entriesOf(named) {
  return named instanceof Map ? [...named] : Object.entries(named);
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
