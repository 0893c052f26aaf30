// What is known of other rows beside the answer: the classes of rows with the same cells, and how strange a row is.

import { short, shownCell } from "./dom.js";

const FEWEST_ALIKE = 5; // rows of which shares are shown

/** The shares of the classes among rows that have the same cells: counted ones, or else the labelled rows of the page. */
export class ClassShares {
  constructor(model, { cuts, scopes }, ranges, { rows, labels }) {
    this.ranges = ranges;
    this.columns = model.schema.columns;
    this.nClasses = model.classes.length;
    this.cuts = cuts;
    this.scopes = new Map(scopes.map((scope) => [scope.columns.join(), scope]));
    this.rows = labels ? rows.map((cells, i) => ({ cells, label: labels[i] })).filter(({ label }) => label >= 0) : [];
  }

  /** Return the shares of the classes among rows with the known cells of a row, and which rows these are; or null. */
  of(row) {
    if ([...row].some(([name, cell]) => rangeLeft(this.ranges[name], cell))) return null; // no row has such a cell
    const known = this.columns.map((_, j) => j).filter((j) => row.has(this.columns[j].name));
    if (!known.length || known.length < row.size) return null;
    const cells = known.map((j) => row.get(this.columns[j].name));
    const scope = this.scopes.get(known.join());
    const places = scope ? scope.cuts : known.map((j) => this.scopes.get(String(j))?.cuts[0] ?? null);
    const codes = known.map((j, k) => this.codeOf(cells[k], j, places[k]));
    const counted = scope ? this.counted(scope, codes) : this.amongRows(known, codes, places);
    const n = counted.reduce((sum, one) => sum + one, 0);
    if (n < FEWEST_ALIKE) return null;
    const kind = !scope ? "rows in this page" : scope.training ? "training rows" : "rows of the table";
    const words = known.map((j, k) => this.inWords(cells[k], j, places[k], codes[k])).join(" and ");
    return { shares: counted.map((one) => one / n), words: `${n.toLocaleString("en")} ${kind} with ${words}` };
  }

  /** Return the number of rows of each class that the page was written with; none of fewer than five rows. */
  counted({ cells }, codes) {
    const width = codes.length + this.nClasses;
    for (let at = 0; at < cells.length; at += width) {
      if (codes.every((code, k) => cells[at + k] === code)) return cells.slice(at + codes.length, at + width);
    }
    return [];
  }

  amongRows(known, codes, places) {
    const counted = Array.from({ length: this.nClasses }, () => 0);
    for (const { cells, label } of this.rows) {
      const isAlike = (j, k) => {
        const cell = cells.get(this.columns[j].name);
        return cell !== undefined && this.codeOf(cell, j, places[k]) === codes[k];
      };
      if (known.every(isAlike)) counted[label]++;
    }
    return counted;
  }

  /** Return the number of the bin of a cell, or the cell itself where there are no bins. */
  codeOf(cell, j, place) {
    const { categories } = this.columns[j];
    if (place === null) return categories ? categories.indexOf(cell) + 1 : cell;
    return this.cuts[place].filter((cut) => cut <= cell).length + 1;
  }

  inWords(cell, j, place, code) {
    const { name } = this.columns[j];
    if (place === null) return `${name} = ${shownCell(cell)}`;
    const whole = this.ranges[name]?.[2] && Number.isInteger(cell);
    const ends = [this.cuts[place][code - 2], this.cuts[place][code - 1]];
    const [low, high] = whole ? ends.map((end, k) => (end === undefined ? end : Math.ceil(end) - k)) : ends;
    const shown = (end) => shownCell(end, 6);
    if (low === undefined && high === undefined) return `${name} known`;
    if (low === high) return `${name} = ${shown(low)}`;
    const below = whole ? "to" : "to below";
    if (low === undefined) return `${name} ${whole ? "up to" : "below"} ${shown(high)}`;
    return high === undefined ? `${name} from ${shown(low)}` : `${name} from ${shown(low)} ${below} ${shown(high)}`;
  }
}

/** The rank of log p of the known cells of a row among that of rows drawn from the model. */
export class DrawnRows {
  constructor(model, { names, cells, masked }) {
    this.model = model;
    this.masked = masked;
    this.names = new Set(names);
    this.rows = cells.map((row) => new Map(names.flatMap((name, j) => (row[j] === null ? [] : [[name, row[j]]]))));
    this.key = null;
  }

  /** Return the steps of the work that the ranks of rows with the same known columns as this one need. */
  steps(row) {
    const known = [...row.keys()];
    const key = this.keyOf(row);
    if (key === this.key || !known.length) return [];
    this.key = null;
    const logs = [];
    const density = (drawn) => {
      const cells = this.masked ? known.filter((name) => drawn.has(name)).map((name) => [name, drawn.get(name)]) : drawn;
      logs.push(this.model.logDensity(new Map(cells)));
    };
    const finish = () => Object.assign(this, { key, logs: logs.sort((a, b) => a - b) });
    return [...this.rows.map((drawn) => () => density(drawn)), finish];
  }

  /** Return whether rows with the known columns of this one can be ranked: after its steps, if something is known. */
  ranks(row) {
    return row.size > 0 && this.key === this.keyOf(row);
  }

  /** Return how many of the drawn rows are less strange than a row: all of them, or a share, rounded down. */
  inWords(row) {
    const log = this.model.logDensity(row);
    const less = this.logs.filter((one) => one > log).length;
    return less === this.logs.length ? `all ${less}` : `${Math.floor((100 * less) / this.logs.length)} %`;
  }

  keyOf(row) {
    return JSON.stringify(this.masked ? [...row.keys()].sort() : []);
  }

  /** Return up to n numbers of a column within its range, ascending: each stands for as many of the drawn rows. */
  numbersOf({ name }, [low, high, whole], n = 25) {
    const drawn = this.rows.map((row) => row.get(name)).filter((x) => x !== undefined && x >= low && x <= high);
    const found = drawn.map((x) => (whole ? Math.round(x) : x)).sort((a, b) => a - b);
    const step = Math.max(found.length / n, 1);
    return Array.from({ length: Math.floor(found.length / step) }, (_, k) => found[Math.floor((k + 0.5) * step)]);
  }
}

/** Return the ends of a range if a number lies outside of it, else null. */
export function rangeLeft(range, cell) {
  return range && typeof cell === "number" && (cell < range[0] || cell > range[1]) ? [range[0], range[1]] : null;
}

/** Return sentences on the numbers of a row outside of the ranges of their columns; `trained` if these are of training rows. */
export function rangeSentences(row, ranges, trained) {
  const of = trained ? "of the training rows" : "of rows drawn from the model";
  return [...row].flatMap(([name, cell]) => {
    const left = rangeLeft(ranges[name], cell);
    if (!left) return [];
    return [`${name} = ${shownCell(cell)} is outside of the range ${of}, ${left.map((end) => short(end)).join(" to ")}.`];
  });
}
