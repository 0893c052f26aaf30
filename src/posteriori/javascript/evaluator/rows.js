// The columns of a model, and rows as the densities read them: numbers, codes of categories, and counts of words.

import { binOf } from "./arrays.js";

const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const DAY = 86400000; // milliseconds
const LARGEST_COUNT = 1e15; // larger numbers are not all whole numbers

/** Return whether a cell is missing: undefined, null or NaN. */
export function isMissing(cell) {
  return cell === undefined || cell === null || (typeof cell === "number" && Number.isNaN(cell));
}

/** Return the key of a category: true and 1 are the same category, as in Python; 1 and "1" are two. */
function keyOf(cell) {
  return typeof cell === "boolean" ? Number(cell) : cell;
}

/** Return the cell of a row by the name of its column; undefined if the row does not have it. */
export function cellOf(row, name) {
  if (row instanceof Map) return row.get(name);
  return Object.hasOwn(row, name) ? row[name] : undefined;
}

/** The columns of a model, in the order in which the model numbers them. */
export class Schema {
  /** @param {object[]} columns as the model file lists them */
  constructor(columns) {
    this.columns = columns.map((column, position) => ({ ...column, position }));
    for (const column of this.columns) {
      if (column.kind === "categorical") {
        column.lookup = new Map(column.categories.map((category, k) => [keyOf(category), k + 1]));
      }
      if (column.kind === "counts" && column.words) {
        column.lookup = new Map(column.words.map((word, k) => [word, k]));
      }
    }
  }

  /** The columns that the model reads, without those that it ignores. */
  get read() {
    return this.columns.filter((column) => column.kind !== "ignored");
  }

  /** Return the columns whose cells are known: those of counts are, and texts with a word of the vocabulary. */
  knownColumns(cells) {
    const isKnown = ({ kind, position, text }) => {
      if (kind === "counts") return !text || cells.bags[position]?.words.length > 0;
      return kind === "continuous" ? !Number.isNaN(cells.numbers[position]) : cells.codes[position] > 0;
    };
    return new Set(this.columns.filter(isKnown).map(({ position }) => position));
  }

  /**
   * Read a row.
   * @param {object|Map} row cells by the names of columns; undefined, null and NaN are missing
   * @returns {{numbers: Float64Array, codes: Int32Array, bags: object[], unseen: string[]}} NaN and code 0 are missing
   */
  readRow(row) {
    const d = this.columns.length;
    const cells = { numbers: new Float64Array(d).fill(NaN), codes: new Int32Array(d), bags: [], unseen: [] };
    for (const column of this.columns) this.readCell(row, column, cells);
    return cells;
  }

  readCell(row, column, cells) {
    if (column.kind === "ignored" || column.valueless) return;
    let cell = cellOf(row, column.name);
    if (column.part && isMissing(cell)) cell = partOf(cellOf(row, column.part.of), column);
    if (column.kind === "counts") {
      cells.bags[column.position] = bagOf(cell, column);
      return;
    }
    if (isMissing(cell)) return;
    if (column.kind === "continuous") {
      cells.numbers[column.position] = numberOf(cell, column);
      return;
    }
    const code = column.lookup.get(keyOf(cell));
    if (code === undefined) cells.unseen.push(column.name);
    else cells.codes[column.position] = code;
  }
}

function numberOf(cell, column) {
  if (typeof cell === "boolean") return Number(cell);
  if (typeof cell !== "number") {
    throw new TypeError(`column ${JSON.stringify(column.name)} holds ${JSON.stringify(cell)}; give a number, or null`);
  }
  if (!Number.isFinite(cell)) {
    throw new RangeError(`column ${JSON.stringify(column.name)} holds ${cell}; give a finite number, or null`);
  }
  return cell;
}

/** Return the part of a date that a column holds, from an ISO string such as 2024-02-29 or 2024-02-29T13:30. */
function partOf(cell, column) {
  if (isMissing(cell)) return undefined;
  const { of, name, origin } = column.part;
  const found = /^(\d{4})-(\d{2})(?:-(\d{2}))?(?:[T ](\d{2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?)?$/.exec(String(cell));
  const [year, month, day, hour, minute, second] = (found ?? []).slice(1).map((part) => Number(part ?? NaN));
  const midnight = Date.UTC(year, month - 1, Number.isNaN(day) ? 1 : day);
  if (!found || new Date(midnight).getUTCMonth() !== month - 1) {
    throw new TypeError(`column ${JSON.stringify(of)} holds ${JSON.stringify(cell)}; give a date as 2024-02-29T13:30`);
  }
  if (name === "year") return year;
  if (name === "month") return month;
  if (name === "weekday") return WEEKDAYS[(((midnight / DAY + 3) % 7) + 7) % 7];
  if (name === "hour") return Number.isNaN(hour) ? 0 : hour;
  const seconds = (hour || 0) * 3600 + (minute || 0) * 60 + (second || 0);
  return midnight / DAY - origin + seconds / 86400;
}

/** Return the words of a cell and their counts. The cell is a text, or an object of counts by word. */
function bagOf(cell, column) {
  const counts = new Map();
  const quoted = JSON.stringify(column.name);
  if (isMissing(cell)) return { words: [], counts: [] };
  if (typeof cell === "string" && column.text) {
    for (const token of tokensOf(cell, column.text)) {
      const word = column.lookup.get(token);
      if (word !== undefined) counts.set(word, column.text.binary ? 1 : (counts.get(word) ?? 0) + 1);
    }
  } else {
    if (typeof cell !== "object") {
      throw new TypeError(
        `column ${quoted} holds ${JSON.stringify(cell)}; give ${column.text ? "a text" : "counts by word"}`,
      );
    }
    for (const [name, count] of cell instanceof Map ? cell : Object.entries(cell)) {
      const word = column.lookup ? column.lookup.get(name) : Number(/^x(\d+)$/.exec(name)?.[1] ?? NaN);
      if (word === undefined || !(word < column.width)) {
        throw new RangeError(`column ${quoted} has no word ${JSON.stringify(name)}`);
      }
      if (count !== 0) counts.set(word, isMissing(count) ? NaN : count);
    }
  }
  const words = [...counts.keys()].sort((a, b) => a - b);
  return { words, counts: words.map((word) => counts.get(word)) };
}

/** Return the words and n-grams of a text, as CountVectorizer of scikit-learn cuts it. */
function tokensOf(text, settings) {
  const stop = new Set(settings.stop_words ?? []);
  const folded = settings.lowercase ? text.toLowerCase() : text;
  const words = (folded.match(/[\p{L}\p{N}_]{2,}/gu) ?? []).filter((word) => !stop.has(word));
  const [least, most] = settings.ngram_range;
  const tokens = least === 1 ? [...words] : [];
  for (let n = Math.max(2, least); n <= most; n++) {
    for (let start = 0; start + n <= words.length; start++) tokens.push(words.slice(start, start + n).join(" "));
  }
  return tokens;
}

/** The cells of the columns of a block, by their positions in the block. */
export class Tile {
  constructor(columns, kind, cuts, exposure = null) {
    this.columns = columns;
    this.kind = kind; // of cells that the density reads: continuous, categorical, counts or mixed
    this.cuts = cuts; // of each column of the schema; null where it has none
    this.numbers = new Float64Array(columns.length);
    this.codes = new Int32Array(columns.length);
    this.present = new Array(columns.length);
    this.coded = columns.map((column) => column.kind === "categorical" || cuts[column.position] !== null);
    this.bag = null;
    this.exposureColumn = exposure; // by its position in the schema, of a density of counts
    this.exposure = NaN;
  }

  /** Take the cells of the block from those of a row. */
  take(cells) {
    this.columns.forEach((column, p) => {
      const j = column.position;
      const number = cells.numbers[j];
      const cuts = this.cuts[j];
      this.numbers[p] = number;
      this.codes[p] = column.kind === "categorical" ? cells.codes[j] : 0;
      if (cuts !== null && !Number.isNaN(number)) this.codes[p] = binOf(cuts, number) + 1;
      this.present[p] = column.kind === "categorical" ? cells.codes[j] > 0 : !Number.isNaN(number);
    });
    if (this.exposureColumn !== null) this.exposure = cells.numbers[this.exposureColumn];
    if (this.kind === "counts") this.bag = this.bagOfWords(cells);
    return this;
  }

  bagOfWords(cells) {
    const [first] = this.columns;
    if (first.kind === "counts") return { ...cells.bags[first.position], ofColumn: () => 0 };
    const counts = Array.from(this.numbers);
    return { words: counts.map((_, p) => p), counts, ofColumn: (k) => k };
  }

  /** Throw a RangeError for a count that is negative, too large, or a fraction where counts are whole. */
  checkCounts(whole) {
    this.bag.counts.forEach((count, k) => {
      if (count < 0 || count > LARGEST_COUNT || (whole && !Number.isNaN(count) && count !== Math.floor(count))) {
        const name = JSON.stringify(this.columns[this.bag.ofColumn(k)].name);
        throw new RangeError(
          `column ${name} holds ${count}; give ${whole ? "a whole number" : "a number"} of at least 0`,
        );
      }
    });
  }
}
