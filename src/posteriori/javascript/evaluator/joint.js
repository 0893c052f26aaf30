// One distribution of all columns: a mixture of forests of tables, of which any column may be known in part, and
// counted training rows beside it.

import { kept, logSum, numbersOf } from "./arrays.js";
import { CountedRows } from "./counting.js";
import { NumberCells, PredictiveDensity } from "./predictive.js";

const LOG_LEAST = Math.log(2 ** -1022);
const MOST_KEPT = 4000; // counted rows whose gaps stay filled in

/** Divide numbers by the largest one, and return the log of it. */
function scaleToPeak(values) {
  let peak = values[0];
  for (let k = 1; k < values.length; k++) if (values[k] > peak) peak = values[k];
  if (peak > 0) for (let k = 0; k < values.length; k++) values[k] /= peak;
  return Math.log(peak);
}

function dividedBySum(values) {
  const total = values.reduce((sum, one) => sum + one, 0);
  return values.map((one) => one / total);
}

/** Return the probabilities of a table, whose lines are mixed with a little of equal ones. */
function tableOf(written, floor) {
  const equal = floor / written.shape.at(-1);
  return numbersOf(written).map((one) => (1 - floor) * (one / written.divisor) + equal);
}

/** p(z) Π p(column | its parent, z), over the codes of columns; parents come before their children. */
class Forest {
  constructor({ columns, parents, log_prior: logPrior, tables }, logWeight, sizes, floor) {
    this.columns = columns; // by their places in the model
    this.parents = parents; // places among these columns, −1 for none
    this.sizes = columns.map((column) => sizes[column]);
    this.logPrior = numbersOf(logPrior).map((one) => one + logWeight);
    this.tables = tables.map((one) => tableOf(one, floor)); // by component, code of the parent, code
  }

  /**
   * Return log p(z, what is known) of one component, and a function that returns p(column | z, what is known) of each
   * column: two sweeps of messages, to the roots and back (Pearl 1988, chapter 4).
   */
  ofComponent(z, likelihoods) {
    const own = this.columns.map((column) => likelihoods[column]);
    const below = this.sizes.map((size) => new Float64Array(size).fill(1));
    const sent = [];
    let log = this.logPrior[z];
    for (let j = own.length - 1; j >= 0; j--) {
      const parent = this.parents[j];
      const message = new Float64Array(parent < 0 ? 1 : this.sizes[parent]);
      const [size, table] = [this.sizes[j], this.tables[j]];
      for (let l = 0; l < size; l++) {
        const weight = own[j][l] * below[j][l];
        if (weight === 0) continue; // of a known cell all codes but one
        const start = z * message.length * size + l;
        for (let k = 0; k < message.length; k++) message[k] += table[start + k * size] * weight;
      }
      log += scaleToPeak(message);
      sent[j] = message;
      if (parent < 0) continue;
      for (let k = 0; k < message.length; k++) below[parent][k] *= message[k];
      log += scaleToPeak(below[parent]);
    }
    return { log, marginals: () => this.marginals(z, own, below, sent) };
  }

  marginals(z, own, below, sent) {
    const above = []; // p(code, what is known outside of the subtree), up to a factor
    this.parents.forEach((parent, j) => {
      const size = this.sizes[j];
      const start = z * sent[j].length * size;
      if (parent < 0) {
        above.push(this.tables[j].slice(start, start + size));
        return;
      }
      const reached = new Float64Array(size);
      for (let k = 0; k < sent[j].length; k++) {
        if (own[parent][k] === 0) continue;
        const around = above[parent][k] * own[parent][k] * this.ofSiblings(j, k, below, sent);
        for (let l = 0; l < size; l++) reached[l] += around * this.tables[j][start + k * size + l];
      }
      scaleToPeak(reached);
      above.push(reached);
    });
    return above.map((one, j) => dividedBySum(one.map((p, k) => p * own[j][k] * below[j][k])));
  }

  /** Return the product of the messages of the other children of a parent for one of its codes, up to a factor. */
  ofSiblings(j, k, below, sent) {
    const parent = this.parents[j];
    if (sent[j][k] > 0) return below[parent][k] / sent[j][k];
    return this.parents.reduce((product, one, i) => (one === parent && i !== j ? product * sent[i][k] : product), 1);
  }
}

/** A column of the model: categories, or numbers in cells, of which each bin has some. */
class JointColumn {
  constructor({ name, kind, categories, grid }) {
    this.name = name;
    this.kind = kind;
    if (!grid) {
      this.categories = categories;
      this.size = categories.length;
      this.nCells = this.size;
      return;
    }
    this.cells = new NumberCells(grid);
    this.code = grid.code; // the bin of each cell
    this.share = numbersOf(grid.share); // p(cell | bin)
    this.size = grid.code.at(-1) + 1;
    this.nCells = this.share.length;
  }

  /** Return p(finding | code) of each code; an error that says what to do if no cell can be that. */
  likelihood(finding) {
    const found = this.cells ? this.ofRange(finding) : this.ofCategories(finding);
    if (found.some((one) => one > 0)) return found;
    throw new RangeError(`no cell of "${this.name}" can be ${this.inWords(finding)}; state another value or range`);
  }

  /** Return the code of a cell, from 1; 0 where missing. */
  codeOf(cell) {
    return this.cells && cell ? this.code[cell - 1] + 1 : cell;
  }

  /** Return the likelihood of a code, from 1; of an unknown cell, whose code is 0, it is 1 of all. */
  ofCode(code) {
    const found = new Float64Array(this.size).fill(code ? 0 : 1);
    if (code) found[code - 1] = 1;
    return found;
  }

  ofCategories(finding) {
    const values = Array.isArray(finding) ? finding : [finding];
    const unknown = values.find((value) => !this.categories.includes(value));
    if (unknown !== undefined) throw new RangeError(`"${this.name}" is never ${unknown}; state one of its values`);
    if (!values.length) throw new RangeError(`the values of "${this.name}" are none; give one at least`);
    return Float64Array.from(this.categories, (one) => Number(values.includes(one)));
  }

  ofRange(finding) {
    const [low, high] = this.ends(finding);
    const found = new Float64Array(this.size);
    this.share.forEach((share, g) => (found[this.code[g]] += share * this.cells.shareBetween(low, high, g)));
    if (low === high && !this.cells.step && !found.some((one) => one > 0)) {
      // One number has no probability. It counts by its bin: its density there is a factor that no answer depends on.
      const g = this.cells.nearest(low);
      const logDensity = Math.log(this.share[g] / this.cells.size[g]);
      found[this.code[g]] = Math.exp(logDensity - Math.max(logDensity, LOG_LEAST));
    }
    return found;
  }

  /** Return the ends of a range, [low, high] with null for none, or of one number. */
  ends(finding) {
    const pair = Array.isArray(finding) ? finding : [finding, finding];
    const ends = [pair[0] ?? -Infinity, pair[1] ?? Infinity];
    if (pair.length !== 2 || ends.some((end) => typeof end !== "number" || Number.isNaN(end))) {
      throw new RangeError(`"${this.name}" holds numbers; give a number or a range`);
    }
    if (ends[0] > ends[1]) {
      throw new RangeError(`the range of "${this.name}" is from ${ends[0]} to ${ends[1]}; exchange its ends`);
    }
    return ends;
  }

  inWords(finding) {
    if (!this.cells) return String(finding);
    const [low, high] = this.ends(finding);
    if (low === high) return String(low);
    if (high === Infinity) return `${low} or more`;
    return low === -Infinity ? `${high} or less` : `from ${low} to ${high}`;
  }

  /** Return whether a finding is one number of a continuous column, which has no probability. */
  hasNoProbability(finding) {
    if (!this.cells || this.cells.step) return false;
    const [low, high] = this.ends(finding);
    return low === high && ![...this.code.keys()].some((g) => this.cells.shareBetween(low, high, g) > 0);
  }

  /** Return the part of each cell that is as found: of categories 1 or 0. */
  parts(finding) {
    if (!this.cells) return this.ofCategories(finding);
    const [low, high] = this.ends(finding);
    return this.share.map((_, g) => this.cells.shareBetween(low, high, g));
  }

  /** Return p(cell) by the probabilities of the codes. */
  ofCells(ofCodes) {
    return this.cells ? this.share.map((share, g) => ofCodes[this.code[g]] * share) : ofCodes;
  }

  /** Return the distribution of probabilities of cells: themselves, or the density of numbers. */
  distribution(ofCells) {
    return this.cells ? new PredictiveDensity(this.cells, ofCells) : ofCells;
  }

  /** Return the distribution within a finding. */
  within(finding, ofCells) {
    const parts = this.parts(finding).map((part, g) => part * ofCells[g]);
    if (!this.cells) return dividedBySum(parts);
    const [low, high] = this.ends(finding);
    if (low === high) return new PredictiveDensity(new NumberCells({ low: { values: [low] }, high: { values: [low] }, step: 0 }), [1]);
    const inside = [...parts.keys()].filter((g) => parts[g] > 0);
    const ends = inside.map((g) => this.cells.within(low, high, g));
    const values = (k) => ({ values: ends.map((one) => one[k]) });
    const cells = new NumberCells({ low: values(0), high: values(1), step: this.cells.step });
    return new PredictiveDensity(cells, dividedBySum(inside.map((g) => parts[g])));
  }
}

/** p(x) of all columns. A finding is a category, an array of them, a number, or a range [low, high] of numbers. */
export class JointModel {
  /** @param {object} written the model file, as `load` parses it */
  constructor(written) {
    this.name = written.name;
    this.columns = written.columns.map((column) => new JointColumn(column));
    this.byName = new Map(this.columns.map((column) => [column.name, column]));
    const sizes = this.columns.map(({ size }) => size);
    this.members = written.members.map((one) => new Forest(one, Math.log(one.weight), sizes, written.floor));
    this.counted = written.rows && new CountedRows(written.rows); // null if the model keeps no rows
    this.filled = kept(MOST_KEPT, ([i]) => this.believe(this.likelihoodsOfRow(i)));
  }

  /** Return the place of a column; an error if there is none. */
  place(name) {
    if (!this.byName.has(name)) throw new RangeError(`there is no column "${name}"`);
    return this.columns.indexOf(this.byName.get(name));
  }

  /** Return the findings of an object or a Map as a Map; an error if one names no column, or cannot be. */
  findings(given) {
    const found = new Map(given instanceof Map ? given : Object.entries(given));
    for (const [name, finding] of found) {
      this.columns[this.place(name)].likelihood(finding);
    }
    return found;
  }

  /** Return of each column that is stated, by its place, the part of each of its cells that is as found. */
  parts(findings) {
    return new Map([...findings].map(([name, one]) => [this.place(name), this.columns[this.place(name)].parts(one)]));
  }

  /**
   * Return by the law alone, without counted rows, log p(what is known), and of each column the probabilities of its
   * codes given it: of categories in their order, of numbers those of bins.
   */
  query(given = {}) {
    const known = this.findings(given);
    return this.believe(
      this.columns.map((column) => {
        return known.has(column.name) ? column.likelihood(known.get(column.name)) : column.ofCode(0);
      }),
    );
  }

  /** Return the same of the likelihoods of the codes of each column. */
  believe(likelihoods) {
    const found = this.ofComponents(likelihoods);
    const logEvidence = logSum(found.map(({ log }) => log));
    const marginals = this.columns.map(({ size }) => new Float64Array(size));
    for (const { forest, log, marginals: given } of found) {
      const share = Math.exp(log - logEvidence);
      if (!(share > 0)) continue;
      given().forEach((one, j) => one.forEach((p, k) => (marginals[forest.columns[j]][k] += share * p)));
    }
    return { logEvidence, marginals };
  }

  ofComponents(likelihoods) {
    return this.members.flatMap((forest) => {
      return Array.from(forest.logPrior, (_, z) => ({ forest, ...forest.ofComponent(z, likelihoods) }));
    });
  }

  logEvidence(likelihoods) {
    return logSum(this.ofComponents(likelihoods).map(({ log }) => log));
  }

  /** Return the likelihoods of what a counted row knows. */
  likelihoodsOfRow(i) {
    return this.columns.map((column, j) => column.ofCode(column.codeOf(this.counted.cells[j][i])));
  }

  /**
   * Return the weight of the training rows that are as given, and know some columns: on these an answer about the
   * columns rests, beside the law. `standardError(p, rows)` follows. Null if the model keeps no rows.
   */
  rowsGiven(given = {}, asked = []) {
    const places = asked.map((name) => [this.place(name), null]);
    return this.counted && this.counted.given(this.parts(this.findings(given)), new Map(places)).rows;
  }

  /** Return p(event | given), where both map columns to findings. */
  probability(event, given = {}) {
    const [known, stated] = [this.findings(given), this.findings(event)];
    for (const [name, finding] of stated) {
      if (known.has(name)) throw new RangeError(`"${name}" is in the event and given; state it once`);
      if (this.byName.get(name).hasNoProbability(finding)) {
        throw new RangeError(`no single number of "${name}" has a probability; ask for a range`);
      }
    }
    const logKnown = this.query(known).logEvidence;
    if (logKnown === -Infinity) throw new RangeError("what is given is impossible; state something else");
    const p = Math.min(Math.exp(this.query(new Map([...known, ...stated])).logEvidence - logKnown), 1);
    if (!this.counted) return p;
    const parts = this.parts(stated);
    const counts = this.counted.given(this.parts(known), parts);
    const ofEvent = this.counted.part(parts);
    const nBoth = counts.part.reduce((sum, one, i) => sum + one * ofEvent[i], 0);
    const ofCodes = new Map([...stated].map(([name, finding]) => [this.place(name), this.byName.get(name).likelihood(finding)]));
    const ofLacking = counts.lacking.reduce((sum, i, at) => sum + counts.share[at] * this.ofRow(i, ofCodes), 0);
    return counts.mixed(nBoth, ofLacking, p);
  }

  /** Return by the law p(event | what a counted row knows) of the cells that it lacks, of likelihoods by column. */
  ofRow(i, event) {
    const lacks = (j) => event.has(j) && !this.counted.cells[j][i];
    const both = this.likelihoodsOfRow(i).map((one, j) => (lacks(j) ? event.get(j) : one));
    return Math.min(Math.exp(this.logEvidence(both) - this.filled([i]).logEvidence), 1);
  }

  /**
   * Return of each column its distribution, by name: the probability of each category, or the density of numbers. That
   * of a column which is known itself is the one given the others, within what is known.
   */
  marginals(given = {}) {
    const known = this.findings(given);
    const ofAll = this.query(known).marginals;
    return Object.fromEntries(
      this.columns.map((column, j) => {
        if (!known.has(column.name)) return [column.name, column.distribution(this.mixed(j, ofAll[j], known))];
        const others = new Map([...known].filter(([name]) => name !== column.name));
        const ofCells = this.mixed(j, this.query(others).marginals[j], others);
        return [column.name, column.within(known.get(column.name), ofCells)];
      }),
    );
  }

  /** Return p(cell | known) of a column by the counted rows and by the probabilities of its codes. */
  mixed(j, ofCodes, known) {
    const column = this.columns[j];
    const ofLaw = column.ofCells(ofCodes);
    if (!this.counted) return ofLaw;
    const counts = this.counted.given(this.parts(known), new Map([[j, null]]));
    const filled = new Float64Array(column.size);
    counts.lacking.forEach((i, at) => {
      this.filled([i]).marginals[j].forEach((p, k) => (filled[k] += counts.share[at] * p));
    });
    const ofLacking = column.ofCells(filled);
    const shares = this.counted.shares(counts, j, column.nCells);
    return shares.map((one, g) => counts.mixed(one, ofLacking[g], ofLaw[g]));
  }
}
