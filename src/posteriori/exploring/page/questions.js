// Questions about a case that take many evaluations: what to ask next, and which one change turns the prediction.

import { scaleOf } from "./scale.js";

const GRID = 25; // values of a number

/** Return the entropy of a distribution in nats. */
export function entropy(p) {
  return p.reduce((sum, one) => (one > 0 ? sum - one * Math.log(one) : sum), 0);
}

/** Return values of a column: its categories, or numbers from the lowest to the highest of the range, along its axis. */
export function valuesOf(column, range, n = GRID) {
  if (column.kind === "categorical") return column.categories;
  if (column.kind !== "continuous" || !range) return [];
  const [low, high, whole] = range;
  if (low === high) return [low];
  if (whole && high - low < n) return Array.from({ length: high - low + 1 }, (_, k) => low + k);
  return scaleOf(range).grid(n);
}

/** Return how many data units each number of a grid stands for; a category stands for itself. */
function widthsOf(column, values) {
  if (column.kind !== "continuous" || values.length < 2) return values.map(() => 1);
  const gaps = values.slice(1).map((value, k) => value - values[k]);
  return values.map((_, k) => ((gaps[k - 1] ?? gaps[k]) + (gaps[k] ?? gaps[k - 1])) / 2);
}

/** Return a row with another cell in one column. */
export function withCell(row, name, cell) {
  const changed = new Map(row);
  changed.set(name, cell);
  return changed;
}

/**
 * Return how much the answer to one unknown column is expected to lower a loss of the class probabilities: the loss of
 * the mean posterior minus the mean loss, over the answers. With the entropy it is the mutual information of the class
 * and the column given what is known, in nats; with the least expected cost, the value of the information (Howard 1966).
 * The mean posterior is p(y | x), except in a pool, which is not one density; there the difference from the mean keeps
 * the value from being negative. `ratio` is p'(y) / p(y) of another class prior: answers and posteriors follow it.
 */
export function expectedDrop(model, row, column, values, { loss, ratio } = { loss: entropy, ratio: null }) {
  const widths = widthsOf(column, values);
  const logs = values.map((value, k) => model.logDensity(withCell(row, column.name, value)) + Math.log(widths[k]));
  const peak = Math.max(...logs);
  if (peak === -Infinity) return 0;
  const joint = []; // by answer and class, proportional to p(answer, y | x)
  values.forEach((value, k) => {
    const weight = Math.exp(logs[k] - peak);
    if (weight < 1e-12) return;
    const posterior = model.posterior(withCell(row, column.name, value));
    joint.push(Array.from(posterior, (p, y) => weight * p * (ratio?.[y] ?? 1)));
  });
  const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);
  const total = sum(joint.map(sum));
  const mean = model.classes.map((_, y) => sum(joint.map((answer) => answer[y])) / total);
  const after = joint.map((answer) => {
    const share = sum(answer);
    return share > 0 ? (share / total) * loss(answer.map((p) => p / share)) : 0;
  });
  return Math.max(loss(mean) - sum(after), 0);
}

function mostProbable(p) {
  return p.indexOf(Math.max(...p));
}

/**
 * Return the smallest change of one column that changes the prediction: its value, the class then and its probability;
 * null if no value does. For a number it is the nearest such value, found on a grid and narrowed by bisection.
 */
export function smallestChange(model, row, column, values, whole = false) {
  const before = mostProbable(model.posterior(row));
  const outcome = (value) => {
    const p = model.posterior(withCell(row, column.name, value));
    const label = mostProbable(p);
    return { value, label, probability: p[label], turns: label !== before };
  };
  if (column.kind === "categorical") {
    const turning = values
      .filter((value) => value !== row.get(column.name))
      .map(outcome)
      .filter(({ turns }) => turns);
    return turning.sort((a, b) => b.probability - a.probability)[0] ?? null;
  }
  const now = row.get(column.name);
  const nearest = [...values].sort((a, b) => Math.abs(a - now) - Math.abs(b - now));
  const found = nearest.map((value) => () => outcome(value)).reduce((hit, next) => hit ?? turnedBy(next()), null);
  if (!found) return null;
  if (whole) return found;
  let [inside, outside] = [now, found];
  for (let step = 0; step < 30 && Math.abs(outside.value - inside) > 1e-6 * Math.abs(found.value - now); step++) {
    const middle = outcome((inside + outside.value) / 2);
    if (middle.turns) outside = middle;
    else inside = middle.value;
  }
  return outside;
}

function turnedBy(outcome) {
  return outcome.turns ? outcome : null;
}

/** Return posteriors (C,) under another class prior: p'(y | x) ∝ p(y | x)·p'(y) / p(y). */
export function underPrior(posterior, prior, other) {
  const moved = posterior.map((p, y) => (prior[y] > 0 ? (p * other[y]) / prior[y] : 0));
  const total = moved.reduce((sum, p) => sum + p, 0);
  return moved.map((p) => p / total);
}

/** Return the prior with another probability of one class; the others keep their proportions. */
export function priorWith(prior, y, probability) {
  const others = 1 - prior[y];
  return prior.map((p, k) => (k === y ? probability : others > 0 ? (p * (1 - probability)) / others : 0));
}
