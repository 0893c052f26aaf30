// The cards of the columns of a joint model: bars of categories, or a histogram of numbers, which a click makes known.

import { standardError } from "./counting.js";
import { button, el, percent, setShare, short, shownCell } from "./dom.js";
import { axisNumbers, scaleOf, shownOn } from "./scale.js";

const SHOWN = 8; // categories of a card, before "more"
const BARS = 16; // of a histogram
const NUDGE = 1e-3; // of a bar: how far an edge is moved from a number that has a probability of its own

/** Return a finding about a column in words, as they follow its name: "= a or b", "from 3 to 5". */
export function findingInWords(column, finding) {
  if (!column.cells) return `= ${finding.map((one) => shownCell(one)).join(" or ")}`;
  const [low, high] = finding.map((end) => (end === null ? null : String(end).replace("-", "−")));
  if (low !== null && low === high) return `= ${low}`;
  if (high === null) return `≥ ${low}`;
  return low === null ? `≤ ${high}` : `from ${low} to ${high}`;
}

/** Return a probability with its standard error: "79.0 % ± 6.3"; without one if the model keeps no rows. */
function withError(p, rows) {
  const error = rows === null ? NaN : 100 * standardError(p, rows);
  return error > 0 ? `${percent(p)} ± ${short(error, 2)}` : percent(p);
}

/** What cards have in common: a title, how far the distribution moved, and a button that makes the column unknown. */
class ColumnCard {
  /**
   * @param before the answers about the column where nothing is known: `distribution`, `rows` and `codes`
   * @param known called with the finding, or null for unknown
   */
  constructor(column, at, before, known) {
    Object.assign(this, { column, before, known, finding: undefined });
    const moved = "The share of the probability that is elsewhere than where nothing is known (total variation), by the model alone";
    this.moved = el("span", { class: "moved", title: moved });
    this.unknown = button("unknown", () => known(null));
    this.unknown.className = "unknown";
    this.unknown.setAttribute("aria-label", `${column.name}: unknown`);
    this.body = el("div");
    const title = el("h3", { id: `card-${at}`, title: column.name }, column.name);
    const head = el("div", { class: "name" }, title, this.moved, this.unknown);
    this.node = el("section", { class: "card", "aria-labelledby": `card-${at}` }, head, this.body);
  }

  /** Show the answers given what is known, and the finding about the column itself; null if that is impossible. */
  show(answers, finding) {
    this.finding = finding;
    this.node.classList.toggle("known", finding !== undefined);
    this.unknown.setAttribute("aria-pressed", String(finding === undefined));
    const { codes } = this.before;
    this.shift = answers ? answers.codes.reduce((sum, p, k) => sum + Math.abs(p - codes[k]), 0) / 2 : 0;
    this.moved.textContent = finding !== undefined ? "known" : this.shift < 0.005 ? "" : `moved ${Math.round(100 * this.shift)} %`;
    this.node.dataset.shift = String(this.shift);
    this.draw(answers);
  }
}

/** Categories, the most probable ones first in sight. Several can be known: the cell is one of them. */
export class CategoryCard extends ColumnCard {
  constructor(column, at, before, known) {
    super(column, at, before, known);
    this.prior = before.distribution;
    this.lines = column.categories.map((category, k) => this.line(category, k));
    this.all = false;
    this.more = button("", () => {
      this.all = !this.all;
      this.draw(this.answers);
    });
    this.more.className = "link more";
    this.body.className = "states";
    const order = [...this.prior.keys()];
    if (order.length > SHOWN) order.sort((a, b) => this.prior[b] - this.prior[a]);
    this.body.append(...order.map((k) => this.lines[k].button), this.more);
  }

  line(category, k) {
    const [fill, mark, p] = [el("i"), el("b"), el("span", { class: "p" })];
    mark.style.left = `${100 * this.prior[k]}%`;
    const text = shownCell(category);
    const track = el("span", { class: "bar", "aria-hidden": "true" }, fill, mark);
    const attributes = { type: "button", class: "state", title: text, onclick: () => this.toggle(category) };
    return { category, fill, p, text, button: el("button", attributes, el("span", {}, text), track, p) };
  }

  toggle(category) {
    const now = this.finding ?? [];
    const next = now.includes(category) ? now.filter((one) => one !== category) : [...now, category];
    this.known(next.length ? next : null);
  }

  draw(answers) {
    this.answers = answers;
    const isKnown = ({ category }) => Boolean(this.finding?.includes(category));
    const now = answers?.distribution ?? this.prior;
    const order = [...this.lines.keys()].sort((a, b) => now[b] - now[a] || this.prior[b] - this.prior[a]);
    const inSight = new Set(this.all ? order : order.slice(0, SHOWN));
    let hidden = 0;
    this.lines.forEach((line, k) => {
      const p = answers ? now[k] : NaN;
      const shown = withError(p, answers && answers.rows);
      setShare(line.fill, p);
      line.p.textContent = percent(p);
      line.p.title = shown;
      line.button.dataset.value = String(p);
      line.button.setAttribute("aria-pressed", String(isKnown(line)));
      line.button.setAttribute("aria-label", `${line.text}: ${shown}, where nothing is known ${percent(this.prior[k])}`);
      line.button.hidden = !inSight.has(k) && !isKnown(line);
      if (line.button.hidden) hidden += p;
    });
    const others = this.lines.filter(({ button }) => button.hidden).length;
    this.more.hidden = this.lines.length <= SHOWN;
    this.more.textContent = this.all ? "fewer" : `${others} more: ${percent(hidden)}`;
  }
}

/** Return the bars of the histogram of a column: [low, high], both included, null beyond the ends of the axis. */
function barsOf({ cells }, axis) {
  const { step } = cells;
  const scale = scaleOf(axis);
  const [start, end] = [scale.low, scale.high].map(scale.position);
  const pointOf = (y) => Math.round((y - cells.low[0]) / step); // the number of steps from the first point
  const atPoint = (k) => cells.decimals(cells.low[0] + k * step);
  if (!(end > start)) return [[null, null]];
  if (step) {
    const [first, last] = [scale.low, scale.high].map(pointOf);
    const n = Math.min(BARS, last - first + 1);
    const begin = (k) => (n < BARS ? first + k : pointOf(scale.exactAt(start + ((end - start) * k) / n)));
    const begins = [...new Set(Array.from({ length: n }, (_, k) => begin(k)))];
    return begins.map((one, k) => [k ? atPoint(one) : null, k + 1 < begins.length ? atPoint(begins[k + 1] - 1) : null]);
  }
  const alone = new Set(cells.low.filter((_, g) => cells.width[g] === 0));
  const edge = (k) => {
    const at = (place) => scale.exactAt(start + ((end - start) * place) / BARS);
    const digits = Math.ceil(Math.log10(Math.max(Math.abs(at(k)), 1e-300) / Math.abs(at(k + 0.5) - at(k - 0.5)))) + 2;
    const rounded = Number(at(k).toPrecision(Math.min(Math.max(digits, 2), 17)));
    return alone.has(rounded) ? rounded + NUDGE * (at(k + 0.5) - at(k)) : rounded;
  };
  return Array.from({ length: BARS }, (_, k) => [k ? edge(k) : null, k + 1 < BARS ? edge(k + 1) : null]);
}

/** A histogram with the mean and the central 80 %, and two fields for a range. */
export class NumberCard extends ColumnCard {
  constructor(column, at, before, known, axis) {
    super(column, at, before, known);
    this.bars = barsOf(column, axis).map((range, k) => this.bar(range, k));
    this.marks = this.bars.map(({ range }) => this.probability(before.distribution, range));
    this.words = el("p", { class: "moments" });
    this.fields = ["from", "to"].map((end) =>
      el("input", { type: "number", step: "any", placeholder: end, "aria-label": `${column.name}, ${end}`, onchange: () => this.take() }),
    );
    this.shown = (x) => shownOn(scaleOf(axis), x);
    const histogram = el("div", { class: "histogram", role: "group", "aria-label": `${column.name}, histogram`, onkeydown: (event) => this.move(event) });
    histogram.append(...this.bars.map(({ button }) => button));
    this.body.append(histogram, axisNumbers(scaleOf(axis), this.shown), this.words, el("div", { class: "range" }, this.fields[0], "to", this.fields[1]));
  }

  probability(density, [low, high]) {
    return density.probability(low ?? -Infinity, high ?? Infinity);
  }

  bar(range, k) {
    const [fill, mark] = [el("i"), el("b")];
    const attributes = { type: "button", tabindex: k ? -1 : 0, onclick: () => this.toggle(range) };
    return { range, fill, mark, button: el("button", attributes, fill, mark) };
  }

  /** Make the range of a bar known: wider by a bar outside of what is known, narrower by one inside, and back by its own. */
  toggle([low, high]) {
    const [from, to] = this.ends(this.finding ?? [low, high]);
    const [begin, end] = this.ends([low, high]);
    const inside = begin >= from && end <= to;
    if (this.finding && begin === from && end === to) this.known(null);
    else if (inside) this.known([low, high]);
    else this.known([Math.min(begin, from), Math.max(end, to)].map((one) => (Number.isFinite(one) ? one : null)));
  }

  ends([low, high]) {
    return [low ?? -Infinity, high ?? Infinity];
  }

  /** Take the range of the fields; an empty one has no end. */
  take() {
    const ends = this.fields.map(({ value }) => (value === "" ? null : Number(value)));
    this.known(ends.every((end) => end === null) ? null : ends);
  }

  /** Move the focus from bar to bar by arrow keys: a histogram is one stop of the tab key. */
  move(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const now = this.bars.findIndex(({ button }) => button === document.activeElement);
    const next = this.bars[now + steps]?.button;
    if (!next) return;
    event.preventDefault();
    this.bars[now].button.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  draw(answers) {
    const density = answers && answers.distribution;
    const shares = this.bars.map(({ range }) => (density ? this.probability(density, range) : NaN));
    const most = Math.max(...this.marks, ...shares.filter((one) => one >= 0));
    const [from, to] = this.ends(this.finding ?? [1, 0]);
    this.bars.forEach(({ range, fill, mark, button }, k) => {
      const [low, high] = this.ends(range);
      fill.style.height = `${(100 * (shares[k] || 0)) / most}%`;
      mark.style.bottom = `${(100 * this.marks[k]) / most}%`;
      button.dataset.value = String(shares[k]);
      const place = range.every((end) => end === null) ? "all" : findingInWords(this.column, range);
      button.title = `${place}: ${withError(shares[k], answers && answers.rows)}`;
      button.setAttribute("aria-label", `${button.title}, where nothing is known ${percent(this.marks[k])}`);
      button.setAttribute("aria-pressed", String(this.finding !== undefined && low <= to && high >= from));
    });
    this.fields.forEach((field, k) => (field.value = this.finding?.[k] ?? ""));
    this.words.textContent = density ? this.inWords(density) : "–";
    if (density) Object.assign(this.words.dataset, { mean: density.mean, low: density.quantile(0.1), high: density.quantile(0.9) });
  }

  inWords(density) {
    const [low, high] = density.interval(0.8);
    return `mean ${this.shown(density.mean)}; 80 % from ${this.shown(low)} to ${this.shown(high)}`;
  }
}
