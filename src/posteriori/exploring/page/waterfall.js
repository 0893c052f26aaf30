// A sum drawn as a waterfall and written as a table: each bar begins where the one above it ends.

import { el, oddsBar, saveButtons, svg, table } from "./dom.js";

const MOST_TERMS = 24;
const LINE = 22;
const WATERFALL = [330, 430]; // the least and the greatest width of a drawing
const LABEL_WIDTHS = [120, 250]; // of the labels, which take what the longest needs
const LABEL_SHARE = 0.58; // of the width of a drawing
const LETTER_WIDTH = 0.6; // width of a letter of the sans serif fonts in use, as a share of their size

/**
 * A sum of terms {name, value}. `show` takes {terms, total, last, shown, caption, label}: the name of the total, how
 * a value is written, the caption of the table and a label for readers of the screen.
 */
export class Waterfall {
  constructor(name) {
    this.figure = el("figure", { class: "scroll", tabindex: 0, role: "img" });
    this.rows = el("details", { ontoggle: () => this.writeTable() }, el("summary", {}, "As a table"));
    this.buttons = el("p", { class: "buttons" }, saveButtons(name, () => this.drawing));
    new ResizeObserver(() => this.draw()).observe(this.figure);
  }

  /** Show a sum, with the names of both directions and their colours. */
  show(sum, directions, colours) {
    Object.assign(this, { sum, directions, colours, width: null });
    this.draw();
    this.figure.setAttribute("aria-label", `${sum.label}; the table has its terms`);
    this.writeTable();
  }

  /** Draw the sum, as wide as there is room; again only if that has changed. */
  draw() {
    const width = Math.min(Math.max(this.figure.clientWidth || WATERFALL[1], WATERFALL[0]), WATERFALL[1]);
    if (!this.sum || width === this.width) return;
    this.width = width;
    this.drawing = waterfall(this.sum, this.directions, this.colours, width);
    this.figure.replaceChildren(this.drawing);
  }

  /** Write the table if it is open. */
  writeTable() {
    if (!this.rows.open || !this.sum) return;
    const { terms, total, last, shown, caption } = this.sum;
    const most = Math.max(...terms.map(({ value }) => Math.abs(value)).filter(Number.isFinite), 1e-9);
    const lines = terms.map(({ name, value }) => [name, shown(value), oddsBar(value / most)]);
    this.rows.replaceChildren(
      this.rows.firstChild,
      table(caption, ["term", "adds", ""], [...lines, [last, shown(total), ""]]),
    );
  }
}

/** Return terms with the largest first; those beyond the 24 largest are added up, under the word for many of them. */
export function largestFirst(terms, many) {
  const each = [...terms].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const rest = each.slice(MOST_TERMS);
  if (!rest.length) return each;
  const value = rest.reduce((sum, term) => sum + term.value, 0);
  return [...each.slice(0, MOST_TERMS), { name: `${rest.length} more ${many}`, value }];
}

/** Return the drawing: one line per term, from the sum before it to the sum after it. */
function waterfall({ terms, total, last, shown }, [label, against], [own, other], width) {
  const sums = [0];
  for (const { value } of terms) sums.push(sums.at(-1) + (Number.isFinite(value) ? value : 0));
  const low = Math.min(...sums, 0);
  const high = Math.max(...sums, 0);
  const most = Math.min(LABEL_WIDTHS[1], LABEL_SHARE * width);
  const labels = terms.map((term) => labelOf(term, most));
  const across = Math.max(...labels.map(({ lines, size }) => Math.max(...lines.map(({ length }) => length)) * LETTER_WIDTH * size));
  const left = Math.min(Math.max(across, LABEL_WIDTHS[0]), most);
  const at = (x) => left + 10 + ((width - left - 70) * (x - low)) / (high - low || 1);
  const height = LINE * (terms.length + 2) + 8;
  const drawing = svg("svg", {
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    class: "chart sum",
  });
  const text = (x, y, content, anchor, weight, size = 12) =>
    svg(
      "text",
      {
        x,
        y,
        "text-anchor": anchor,
        fill: "currentColor",
        "font-weight": weight,
        "font-family": "system-ui, sans-serif",
        "font-size": size,
      },
      content,
    );
  drawing.append(
    text(at(0) - 6, 14, `← ${clipped(against, lettersIn(at(0)))}`, "end"),
    text(at(0) + 6, 14, `${clipped(label, lettersIn(width - at(0)))} →`, "start"),
    svg("line", { x1: at(0), x2: at(0), y1: 18, y2: height - 4, stroke: "#9aa4af" }),
  );
  terms.forEach(({ name, value }, k) => {
    const y = LINE * (k + 1) + 4;
    const [from, to] = [at(sums[k]), at(sums[k + 1])];
    const { lines, size } = labels[k];
    const [first, step] = lines.length > 1 ? [y + 7, 10] : [y + 12, 0];
    const label = lines.map((line, i) => text(left, first + step * i, line, "end", null, size));
    drawing.append(
      svg("g", {}, svg("title", {}, name), ...label),
      svg("rect", {
        x: Math.min(from, to),
        y,
        width: Math.max(Math.abs(to - from), 1),
        height: LINE - 7,
        rx: 1.5,
        fill: value < 0 ? other : own,
      }),
      svg("line", { x1: to, x2: to, y1: y, y2: y + LINE, stroke: "#9aa4af", "stroke-dasharray": "2 2" }),
      text(Math.max(from, to) + 4, y + 12, shown(value), "start"),
    );
  });
  const y = LINE * (terms.length + 1) + 4;
  drawing.append(
    text(left, y + 12, last, "end", "600"),
    svg("rect", {
      x: Math.min(at(0), at(sums.at(-1))),
      y,
      width: Math.max(Math.abs(at(sums.at(-1)) - at(0)), 1),
      height: LINE - 7,
      rx: 1.5,
      fill: "#59636e",
    }),
    text(Math.max(at(0), at(sums.at(-1))) + 4, y + 12, shown(total), "start", "600"),
  );
  return drawing;
}

/** Return the lines of the label of a term and their size: smaller, then in two lines, where they are long. */
function labelOf({ name }, most) {
  const size = [12, 10.5].find((one) => name.length * LETTER_WIDTH * one <= most);
  if (size) return { lines: [name], size };
  const [column, ...cell] = name.split(" = ");
  const parts = cell.length ? [column, `= ${cell.join(" = ")}`] : [name];
  return { lines: parts.map((line) => clipped(line, Math.floor(most / (LETTER_WIDTH * 9.5)))), size: 9.5 };
}

/** Return how many letters of a direction, beside its arrow, have room. */
function lettersIn(room) {
  return Math.min(Math.floor(room / (LETTER_WIDTH * 12)) - 3, 20);
}

function clipped(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
