// A typical row of a class, whose cells suit each other.

import { logSum } from "./arrays.js";
import { RandomTrees } from "./forest.js";
import { withCell } from "./questions.js";
import { scaleOf } from "./scale.js";

const SWEEPS = 4; // over the columns

/**
 * Return the steps that find a typical row of a class; the last one calls `found(row)`. Each column in turn takes its most
 * probable category given the others and the class, or the median of its numbers, until none changes (iterated
 * conditional modes, Besag 1986). Each model of a pool has a row of its own, because their mixture seldom leaves that of a
 * model without dependences; the most probable of them is taken. Forests are left out beside others: they take seconds.
 *
 * `valuesOfColumn` returns categories or numbers. Numbers that are `drawn` are equally probable without the class: each
 * weighs p(x_j | others, y) / p(x_j), so that a spike of a density weighs no more than its probability.
 */
export function typicalSteps(model, y, valuesOfColumn, drawn, found) {
  const columns = model.columns
    .map(({ name, kind }, j) => ({ name, isNumber: kind === "continuous", values: valuesOfColumn(model.columns[j]) }))
    .filter(({ values }) => values.length);
  const known = model.models.filter((of) => of.hasDensity);
  const quick = known.filter((of) => !of.blocks.some(isForest));
  const searches = (quick.length ? quick : known).map((of) => new Search(model.schema, of, y, columns, drawn));
  const score = (row) =>
    columns.reduce(
      (sum, { name, isNumber }) => sum - (isNumber ? model.logDensity(new Map([[name, row.get(name)]])) : 0),
      model.logConditional(row)[y],
    );
  const choose = () => found(searches.map(({ row }) => row).sort((a, b) => score(b) - score(a))[0]);
  return [...searches.flatMap((one) => one.steps()), choose];
}

function isForest({ density }) {
  return (density.coarse ?? density) instanceof RandomTrees;
}

/** The search by one model. */
class Search {
  constructor(schema, model, y, columns, drawn) {
    Object.assign(this, { schema, model, y, columns, drawn });
    this.row = new Map();
    this.unchanged = 0; // columns since the last change
    this.logs = [];
    this.alone = new Map(); // log p(x_j) of the values of a column
  }

  steps() {
    const ofColumn = (column) => [...column.values.map((_, k) => () => this.weigh(column, k)), () => this.choose(column)];
    return Array.from({ length: SWEEPS }, () => this.columns.flatMap(ofColumn)).flat();
  }

  get isDone() {
    return this.unchanged >= this.columns.length;
  }

  logJoint(row) {
    return this.model.logJoint(this.schema.readRow(row));
  }

  weigh({ name, isNumber, values }, k) {
    if (this.isDone) return;
    const log = this.logJoint(withCell(this.row, name, values[k]))[this.y];
    this.logs.push(isNumber && this.drawn ? log - this.logAlone(name, values[k]) : log);
  }

  logAlone(name, value) {
    const key = JSON.stringify([name, value]);
    if (!this.alone.has(key)) this.alone.set(key, logSum(this.logJoint(new Map([[name, value]]))));
    return this.alone.get(key);
  }

  choose({ name, isNumber, values }) {
    if (this.isDone) return;
    const value = isNumber ? median(values, this.logs) : values[this.logs.indexOf(Math.max(...this.logs))];
    this.unchanged = value === this.row.get(name) ? this.unchanged + 1 : 0;
    this.row = withCell(this.row, name, value);
    this.logs = [];
  }
}

/** Return the first value up to which half of the weight lies, given the logarithms of the weights. */
function median(values, logWeights) {
  const peak = Math.max(...logWeights);
  const weights = logWeights.map((log) => Math.exp(log - peak) || 0);
  const half = weights.reduce((sum, one) => sum + one, 0) / 2;
  let sum = 0;
  return values.find((_, k) => (sum += weights[k]) >= half) ?? values[0];
}

/** Return the row that is nearest to another: the fewest other categories, and the nearest numbers on their axes. */
export function nearestRow(row, rows, ranges) {
  const distance = (other) =>
    [...row].reduce((sum, [name, cell]) => {
      if (!other.has(name)) return sum + 1;
      if (typeof cell !== "number" || !ranges[name]) return sum + (other.get(name) === cell ? 0 : 1);
      const { low, high, position } = scaleOf(ranges[name]);
      const width = position(high) - position(low) || 1;
      return sum + Math.min(Math.abs(position(other.get(name)) - position(cell)) / width, 1);
    }, 0);
  const distances = rows.map(distance);
  return rows[distances.indexOf(Math.min(...distances))] ?? row;
}
