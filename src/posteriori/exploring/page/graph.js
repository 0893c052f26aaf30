// The graph of a network: a card for each variable, and arrows as thick as their information.

import { DensityCard, StateCard, WIDTH } from "./cards.js";
import { button, el, svg } from "./dom.js";
import { layered } from "./layout.js";

const ZOOM_STEP = 1.25;
const [LEAST_ZOOM, MOST_ZOOM] = [0.1, 3];
const ARROW = "#9aa4af";
const UNMEASURED = 1.2; // width of an arrow whose information is not known

/** Return the definition of the head of the arrows of a drawing. */
export function arrowHead() {
  const path = svg("path", { d: "M0 0L8 4L0 8z", fill: ARROW });
  const size = { viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7 };
  return svg("defs", {}, svg("marker", { id: "head", ...size, orient: "auto", markerUnits: "userSpaceOnUse" }, path));
}

/** Return an arrow along a path. */
export function arrow(path) {
  return svg("path", { d: path, fill: "none", stroke: ARROW, "marker-end": "url(#head)" });
}

/** Return the width of an arrow that carries a share of the most information. */
export function arrowWidth(share) {
  return (0.7 + 4 * Math.sqrt(Math.max(share, 0))).toFixed(2);
}

/** The cards and arrows. `toggle(name, value)` is called when a state is clicked or a number is typed. */
export class Graph {
  constructor(network, toggle) {
    this.network = network;
    const prior = network.query().marginals;
    this.cards = network.variables.map((variable, v) => {
      return variable.states ? new StateCard(variable, prior[v], toggle) : new DensityCard(variable, prior[v], toggle);
    });
    const { places, paths, width, height } = layered(
      network.variables.map(({ parents }) => parents),
      WIDTH,
      this.cards.map(({ height }) => height),
    );
    this.drawn = new Map([...paths].map(([edge, path]) => [edge, arrow(path)])); // by "parent,child"
    const size = { width, height, viewBox: `0 0 ${width} ${height}` };
    this.arrows = svg("svg", { class: "arrows", ...size, "aria-hidden": "true" }, arrowHead(), [...this.drawn.values()]);
    const plane = el(
      "div",
      { class: "plane" },
      this.arrows,
      this.cards.map(({ node }) => node),
    );
    plane.style.width = `${width}px`;
    plane.style.height = `${height}px`;
    this.cards.forEach(({ node }, v) => {
      node.style.left = `${places[v].x}px`;
      node.style.top = `${places[v].y}px`;
    });
    this.places = places;
    this.node = el("div", { class: "network", role: "region", "aria-label": "Variables with their states" }, plane);
    this.node.style.setProperty("--plane", `${width + 2}px`);
    this.plane = plane;
    this.width = width;
    this.level = null; // of the zoom; null while the network fits its box
    new ResizeObserver(() => this.level === null && this.fit()).observe(this.node);
    this.node.addEventListener("wheel", (event) => this.onwheel(event), { passive: false });
    this.zoomButtons = el(
      "span",
      { class: "zoom" },
      button("Zoom in", () => this.zoom(this.shownLevel * ZOOM_STEP)),
      button("Zoom out", () => this.zoom(this.shownLevel / ZOOM_STEP)),
      button("Fit", () => this.fit()),
    );
  }

  get shownLevel() {
    return Number(this.plane.style.zoom) || 1;
  }

  /** Show the whole width of the network, which is not enlarged. */
  fit() {
    this.level = null;
    this.plane.style.zoom = Math.max(Math.min(1, this.node.clientWidth / this.width), LEAST_ZOOM);
  }

  /** Show the network at a level of zoom; the point (x, y) of its box stays in its place, by default the middle. */
  zoom(level, x = this.node.clientWidth / 2, y = this.node.clientHeight / 2) {
    const before = this.shownLevel;
    this.level = Math.min(Math.max(level, LEAST_ZOOM), MOST_ZOOM);
    const [left, top] = [this.node.scrollLeft + x, this.node.scrollTop + y];
    this.plane.style.zoom = this.level;
    this.node.scrollLeft = (left * this.level) / before - x;
    this.node.scrollTop = (top * this.level) / before - y;
  }

  /** Zoom by the wheel with Ctrl, or by two fingers, which browsers report as that; without Ctrl the wheel scrolls. */
  onwheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const box = this.node.getBoundingClientRect();
    const factor = Math.exp(-Math.min(Math.max(event.deltaY, -100), 100) / 400);
    this.zoom(this.shownLevel * factor, event.clientX - box.left, event.clientY - box.top);
  }

  /** Show the marginals, what is known, and what is set. */
  show(marginals, evidence, settings, target) {
    this.network.variables.forEach(({ name }, v) => {
      const [finding, setting] = [evidence.get(name), settings.get(name)];
      this.cards[v].mark(finding, setting, name === target);
      this.cards[v].show(marginals[v], finding, setting);
    });
  }

  /** Give each arrow the width of its information in a network, and dash those that an intervention cut. */
  showArrows(after, evidence) {
    const information = new Map(
      after.edgeInformation(evidence).map(({ parent, child, nats }) => [`${parent},${child}`, nats]),
    );
    const most = Math.max(...information.values(), 1e-12);
    for (const [edge, drawn] of this.drawn) {
      const nats = information.get(edge) ?? null; // null if an end is continuous, or the arrow is cut
      drawn.setAttribute("stroke-width", nats === null ? UNMEASURED : arrowWidth(nats / most));
      if (information.has(edge)) drawn.removeAttribute("stroke-dasharray");
      else drawn.setAttribute("stroke-dasharray", "2 5");
    }
  }

  /** Return the network as a drawing that stands alone. */
  drawing() {
    const { width, height } = this.arrows.viewBox.baseVal;
    return svg(
      "svg",
      { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` },
      svg("rect", { width, height, fill: "#fff" }),
      [...this.arrows.childNodes].map((node) => node.cloneNode(true)),
      this.cards.map((card, v) => card.drawing(this.places[v])),
    );
  }
}
