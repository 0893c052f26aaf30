// Which columns a classifier lets depend on each other within a class: a drawing and a table of parents.

import { el, saveButtons, section, short, svg, table } from "./dom.js";
import { arrow, arrowHead, arrowWidth } from "./graph.js";
import { layered } from "./layout.js";

const BOX_WIDE = 132; // of a box
const BOX_HIGH = 26;
const MOST_DRAWN = 40; // columns; more are listed
const MOST_LETTERS = 18;

/** The section with the dependences of a model, of the members of a pool, or of each class. */
export class Structure {
  constructor(dependences) {
    this.dependences = dependences;
    this.menu = el(
      "select",
      { id: "tree", onchange: () => this.show() },
      dependences.map(({ member, given }, k) => el("option", { value: String(k) }, titleOf(member, given))),
    );
    this.figure = el("figure", { class: "scroll", tabindex: 0, role: "img" });
    this.list = el("div");
    this.note = el("p", { class: "note" });
    this.buttons = el(
      "p",
      { class: "buttons" },
      saveButtons("dependences", () => this.drawing),
    );
    this.node = section(
      "dependences",
      "Dependences between columns",
      "Within a class, each column depends on its parents; the class is a parent of all and is not drawn.",
      this.note,
      dependences.length > 1 || dependences[0].member !== null ? el("p", {}, el("label", { for: "tree" }, "Of ", this.menu)) : null,
      this.figure,
      this.buttons,
      el("details", {}, el("summary", {}, "As a table"), this.list),
    );
    this.show();
  }

  show() {
    const { member, given, parents } = this.dependences[Number(this.menu.value)];
    const names = Object.keys(parents);
    const isDrawn = names.length <= MOST_DRAWN;
    this.note.textContent = Object.values(parents).some((each) => each.some(([, nats]) => nats !== null))
      ? "The thicker an arrow, the more information it carries: nats per row, minus the penalty of the model."
      : "The model does not keep the information of its arrows.";
    this.figure.hidden = this.buttons.hidden = !isDrawn;
    this.list.parentNode.open ||= !isDrawn;
    this.drawing = isDrawn ? drawingOf(parents) : null;
    this.figure.replaceChildren(...(isDrawn ? [this.drawing] : []));
    this.figure.setAttribute("aria-label", `Dependences of ${titleOf(member, given)}; the table below has them all`);
    const rows = names.flatMap((child) =>
      parents[child].length
        ? parents[child].map(([parent, nats]) => [child, parent, nats === null ? "–" : short(nats)])
        : [[child, "only the class", "–"]],
    );
    this.list.replaceChildren(table("Parents of each column", ["column", "depends on", "nats"], rows, [0, 1]));
  }
}

function titleOf(member, given) {
  return [member, given === null ? null : `class ${given}`].filter((part) => part !== null).join(", ") || "all classes";
}

/** Return the drawing of columns, {name: [[parent, nats], …]}; its colours are those of the page, or fixed in a file. */
function drawingOf(parents) {
  const names = Object.keys(parents);
  const place = new Map(names.map((name, j) => [name, j]));
  const edges = names.flatMap((name, child) =>
    parents[name].map(([parent, nats]) => ({ parent: place.get(parent), child, nats })),
  );
  const above = names.map((name) => parents[name].map(([parent]) => place.get(parent)));
  const heights = names.map(() => BOX_HIGH);
  const { places, paths, width, height } = layered(above, BOX_WIDE, heights);
  const most = Math.max(...edges.map(({ nats }) => nats ?? 0), 1e-12);
  const arrows = edges.map(({ parent, child, nats }) => {
    const drawn = arrow(paths.get(`${parent},${child}`));
    drawn.setAttribute("stroke-width", nats === null ? "1.5" : arrowWidth(nats / most));
    return drawn;
  });
  const boxes = names.map((name, j) => {
    const { x, y } = places[j];
    const shown = name.length > MOST_LETTERS ? `${name.slice(0, MOST_LETTERS - 1)}…` : name;
    const box = { x, y, width: BOX_WIDE, height: BOX_HIGH, rx: 5 };
    const text = { x: x + BOX_WIDE / 2, y: y + 17, "text-anchor": "middle", "font-size": 12 };
    return svg(
      "g",
      {},
      svg("title", {}, name),
      svg("rect", { ...box, fill: "var(--paper, #fff)", stroke: "#9aa4af" }),
      svg("text", { ...text, "font-family": "system-ui, sans-serif", fill: "var(--ink, #1f2328)" }, shown),
    );
  });
  return svg(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", class: "dependences", width, height, viewBox: `0 0 ${width} ${height}` },
    arrowHead(),
    arrows,
    boxes,
  );
}
