// A Bayesian network: marginals given evidence, most probable states, and trails.

import { numbersOf } from "./arrays.js";
import { Component, NormalMixture } from "./continuous.js";
import { Table, junctionTree, maximiseInto, sumInto } from "./junction_tree.js";

/** A Bayesian network: p(x) = Π_v p(x_v | parents). Its continuous variables have no `states`. */
export class Network {
  /** @param {object} written the model file, as `load` parses it */
  constructor(written) {
    this.name = written.name;
    this.written = written;
    this.variables = written.variables.map((variable, v) => ({ ...variable, index: v }));
    this.byName = new Map(this.variables.map((variable) => [variable.name, variable]));
    this.discrete = this.variables.filter(({ states }) => states);
    this.sizes = this.variables.map(({ states }) => states?.length ?? 1);
    const varying = (scope) => scope.filter((v) => this.sizes[v] > 1); // a variable of one state is in a clique alone
    const tables = this.discrete
      .filter(({ index }) => this.sizes[index] > 1)
      .map(({ parents, index, probabilities }) => {
        return new Table([...varying(parents), index], this.sizes, numbersOf(probabilities));
      });
    this.tree = junctionTree(tables, this.sizes, written.cliques);
    this.components = (written.components ?? []).map(({ scope, members }) => {
      return new Component({ scope: varying(scope), members }, this.variables, this.sizes);
    });
  }

  variable(name) {
    const found = this.byName.get(name);
    if (!found) throw new RangeError(`the network has no variable ${JSON.stringify(name)}`);
    return found;
  }

  /**
   * Return the likelihood of each state of the discrete variables with a finding, and the numbers of continuous ones.
   * @param {object} evidence by the names of variables: a state; a list of states, one of which it has; or a Map or
   *   object from every state to its likelihood; the number of a continuous variable; null is unknown
   * @returns {{likelihoods: Map<number, Float64Array>, numbers: Map<number, number>}} by index
   */
  findings(evidence) {
    const [likelihoods, numbers] = [new Map(), new Map()];
    for (const [name, finding] of entriesOf(evidence)) {
      if (finding === null || finding === undefined) continue;
      const { states, index } = this.variable(name);
      if (!states) {
        numbers.set(index, finiteNumber(name, finding));
        continue;
      }
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
      likelihoods.set(index, likelihood);
    }
    return { likelihoods, numbers };
  }

  /** Pass the evidence through the tree; return also the moments of each component given the numbers. */
  propagate(evidence) {
    const { likelihoods, numbers } = this.findings(evidence);
    const factors = [...likelihoods].map(([v, likelihood]) => [[v], likelihood]);
    const moments = this.components.map((component) => component.given(numbers));
    let scale = 0;
    this.components.forEach(({ scope }, c) => {
      const { logDensity } = moments[c];
      const peak = logDensity.reduce((most, log) => Math.max(most, log), -Infinity);
      scale += peak;
      if (scope.length) factors.push([scope, logDensity.map((log) => (peak > -Infinity ? Math.exp(log - peak) : 0))]);
    });
    const { beliefs, logEvidence } = this.tree.propagate(factors, sumInto);
    return { beliefs, logEvidence: logEvidence + scale, moments, numbers };
  }

  /**
   * Return p(variable | evidence) of every variable, and log p(evidence) in nats, a log density if numbers are known.
   * @returns {{marginals: (Float64Array|NormalMixture)[], logEvidence: number}} NaN marginals if the evidence is
   *   impossible
   */
  query(evidence = {}) {
    const { beliefs, logEvidence, moments, numbers } = this.propagate(evidence);
    const marginals = this.tree.marginals(beliefs);
    this.components.forEach((component, c) => {
      const weights = component.scope.length ? this.tree.joint(component.scope, beliefs) : Float64Array.of(1);
      for (const [v, density] of component.densities(moments[c], weights)) marginals[v] = density;
    });
    for (const [v, number] of numbers) marginals[v] = new NormalMixture([1], [number], [0]);
    return { marginals, logEvidence };
  }

  /**
   * Return p(variable | evidence) by the names of variables: an array in the order of the states, or the mixture of
   * normal densities of a continuous variable.
   */
  marginals(evidence = {}) {
    const { marginals } = this.query(evidence);
    return Object.fromEntries(this.variables.map(({ name }, v) => [name, marginals[v]]));
  }

  /**
   * Return the mutual information of the ends of each edge given evidence, in nats: {parent, child, nats} by index; null
   * if an end is continuous.
   */
  edgeInformation(evidence = {}) {
    const { beliefs } = this.propagate(evidence);
    return this.variables.flatMap(({ index, parents, states }) =>
      parents.map((parent) => {
        if (!states || !this.variables[parent].states) return { parent, child: index, nats: null };
        const varies = Math.min(this.sizes[parent], this.sizes[index]) > 1;
        return { parent, child: index, nats: varies ? this.tree.information(parent, index, beliefs) : 0 };
      }),
    );
  }

  /**
   * Return the network after an intervention (Pearl 2009, section 3.2): the variables are set from outside, whatever
   * their causes are, so that no edge leads into them.
   * @param {object} settings the state, or the number, of each variable that is set, by name
   */
  do(settings) {
    const variables = [...this.written.variables];
    for (const [name, state] of entriesOf(settings)) {
      const { states, index } = this.variable(name);
      if (!states) {
        variables[index] = constant(name, finiteNumber(name, state));
        continue;
      }
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
    if (this.components.length) {
      throw new RangeError("the most probable states of a network with continuous variables are computed in Python only");
    }
    return this.tree.mostProbable([...this.findings(evidence).likelihoods].map(([v, one]) => [[v], one]));
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

function finiteNumber(name, value) {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new RangeError(`${JSON.stringify(name)} is continuous and is given ${JSON.stringify(value)}; give a number`);
  }
  return value;
}

/** Return a continuous variable that is set to a number, as the model file writes it. */
function constant(name, number) {
  const array = (...values) => ({ shape: [values.length], values });
  const parameters = { intercept: array(number), coefficients: array(), variance: array(0) };
  return { name, parents: [], discrete: [], continuous: [], ...parameters };
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
