// The prediction as a sum of log factors, drawn as a waterfall and written as a table.

import { el, oddsBar, saveDrawing, section, shownCell, signed, svg, table } from "./dom.js";

const MOST_TERMS = 24;
const SHARED =
  "The pool corrects each class by a constant that was fitted to held-out rows, the bias of the class. The known columns share it by how much the prediction depends on each, so that the sum begins at the prior.";
const BIAS =
  "Bias of the class: what the pool adds whatever the columns hold. It is the log prior of each member, times the weight of the member, and a correction for each class that was fitted to held-out rows.";
const PAIRS = "A bar of two columns is what both add together, beyond what each adds alone. ";
const LINE = 22;
const LABELS = 150; // width of the labels of a drawing
const PLOT = 280;
// The colours of the classes in explorer.css, for drawings that are saved.
const HUES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#7a5195", "#6b6b6b"];

/** Return the colour of a class. */
const hue = (y) => `var(--hue${y % 8}, ${HUES[y % 8]})`;

/** The section with the sum of one class against another. */
export class BayesSum {
  constructor(model) {
    this.model = model;
    this.label = this.choice("class-for", "for");
    this.against = this.choice("class-against", "against");
    this.figure = el("figure", { class: "scroll", tabindex: 0, role: "img" });
    this.rows = el("details", { ontoggle: () => this.writeTable() }, el("summary", {}, "As a table"));
    this.name = el("output", { class: "note" });
    this.bias = el("p", { class: "note", id: "bias", hidden: true });
    const save = (kind) =>
      el(
        "button",
        { type: "button", onclick: () => saveDrawing(this.drawing, "sum", kind) },
        `Save as ${kind.toUpperCase()}`,
      );
    this.node = section(
      "sum",
      "Bayes’ rule as a sum",
      `Each bar is what one column adds to the log-odds of the two classes, in nats: 0.69 doubles the odds. ${model.pairs.length ? PAIRS : ""}The bars begin at the prior and end at the posterior.`,
      el("p", {}, this.label, " ", this.against),
      this.figure,
      this.name,
      this.bias,
      this.rows,
      el("p", { class: "buttons" }, save("svg"), save("png")),
    );
  }

  choice(id, word) {
    const select = el(
      "select",
      { id, onchange: () => this.onchoice() },
      el("option", { value: "" }, word === "for" ? "most probable" : "second most probable"),
      this.model.classes.map((label, y) => el("option", { value: String(y) }, String(label))),
    );
    return el("label", { for: id }, `${word} `, select);
  }

  get chosen() {
    const of = (label) => label.querySelector("select").value;
    return [of(this.label), of(this.against)];
  }

  set chosen([label, against]) {
    this.label.querySelector("select").value = label ?? "";
    this.against.querySelector("select").value = against ?? "";
  }

  /** Show the sum of a row. */
  show(row, posterior) {
    const ranked = [...posterior.keys()].sort((a, b) => posterior[b] - posterior[a]);
    const [first, second] = this.chosen;
    const y = first === "" ? ranked.find((k) => String(k) !== second) : Number(first);
    const other = second === "" ? ranked.find((k) => k !== y) : Number(second);
    if (y === undefined || other === undefined) return;
    this.pair = [y, other];
    const { weighted, fromPrior, bias, factors } = this.model.explain(row);
    const names = [this.model.classes[y], this.model.classes[other]].map(String);
    const terms = this.termsOf(row, factors, y, other);
    const constant = { name: fromPrior ? "prior" : "bias of the class", value: bias[y] - bias[other] };
    const total = terms.reduce((sum, { value }) => sum + value, constant.value);
    this.drawing = waterfall([constant, ...terms], total, names, this.pair.map(hue));
    this.figure.replaceChildren(this.drawing);
    this.figure.setAttribute(
      "aria-label",
      `Sum of the log-odds of ${names[0]} against ${names[1]}; the table has its terms`,
    );
    this.name.textContent = `log p(${names[0]}) − log p(${names[1]}) = ${signed(total)} nats${weighted ? "; factors are weighted" : ""}`;
    const shared = Boolean(this.model.pool) && fromPrior && row.size > 0;
    this.bias.hidden = fromPrior && !shared;
    this.bias.textContent = shared ? SHARED : fromPrior ? "" : BIAS;
    this.shown = { terms: [constant, ...terms], total, names };
    this.writeTable();
  }

  /** Write the table if it is open. */
  writeTable() {
    if (!this.rows.open || !this.shown) return;
    const { terms, total, names } = this.shown;
    const most = Math.max(...terms.map(({ value }) => Math.abs(value)).filter(Number.isFinite), 1e-9);
    const lines = terms.map(({ name, value }) => [name, signed(value), oddsBar(value / most)]);
    const caption = `Log-odds of ${names[0]} against ${names[1]}, nats`;
    this.rows.replaceChildren(
      this.rows.firstChild,
      table(caption, ["term", "adds", ""], [...lines, ["posterior", signed(total), ""]]),
    );
  }

  /** Return the terms, the largest first; those beyond the 24 largest are added up. */
  termsOf(row, factors, y, other) {
    const each = factors
      .map(({ column, columns, value, log }) => {
        const cells = [value].flat().map((cell) => shownCell(cell)).join(", ");
        return {
          name: value === null ? `${column} unknown` : `${column} = ${cells}`,
          lines: columns && value !== null ? [column, `= ${cells}`] : null, // of the label of two columns
          value: log[y] - log[other] || 0,
          known: row.has(column),
        };
      })
      .filter(({ value, known }) => known || value !== 0);
    each.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const rest = each.slice(MOST_TERMS);
    if (!rest.length) return each;
    const value = rest.reduce((sum, term) => sum + term.value, 0);
    return [...each.slice(0, MOST_TERMS), { name: `${rest.length} more ${this.model.pairs.length ? "terms" : "columns"}`, value }];
  }
}

/** Return the drawing: one line per term, from the sum before it to the sum after it. */
function waterfall(terms, total, [label, against], [own, other]) {
  const sums = [0];
  for (const { value } of terms) sums.push(sums.at(-1) + (Number.isFinite(value) ? value : 0));
  const low = Math.min(...sums, 0);
  const high = Math.max(...sums, 0);
  const at = (x) => LABELS + 10 + ((PLOT - 70) * (x - low)) / (high - low || 1);
  const height = LINE * (terms.length + 2) + 8;
  const drawing = svg("svg", {
    xmlns: "http://www.w3.org/2000/svg",
    width: LABELS + PLOT,
    height,
    viewBox: `0 0 ${LABELS + PLOT} ${height}`,
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
    text(at(0) - 6, 14, `← ${clipped(against, 20)}`, "end"),
    text(at(0) + 6, 14, `${clipped(label, 20)} →`, "start"),
    svg("line", { x1: at(0), x2: at(0), y1: 18, y2: height - 4, stroke: "#9aa4af" }),
  );
  terms.forEach(({ name, lines, value }, k) => {
    const y = LINE * (k + 1) + 4;
    const [from, to] = [at(sums[k]), at(sums[k + 1])];
    const label = lines
      ? lines.map((line, i) => text(LABELS, y + 7 + 10 * i, clipped(line, 28), "end", null, 9.5))
      : [text(LABELS, y + 12, clipped(name, 23), "end")];
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
      text(Math.max(from, to) + 4, y + 12, signed(value), "start"),
    );
  });
  const y = LINE * (terms.length + 1) + 4;
  drawing.append(
    text(LABELS, y + 12, "posterior", "end", "600"),
    svg("rect", {
      x: Math.min(at(0), at(sums.at(-1))),
      y,
      width: Math.max(Math.abs(at(sums.at(-1)) - at(0)), 1),
      height: LINE - 7,
      rx: 1.5,
      fill: "#59636e",
    }),
    text(Math.max(at(0), at(sums.at(-1))) + 4, y + 12, signed(total), "start", "600"),
  );
  return drawing;
}

function clipped(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
