// The graph of a network: a card with bars for each variable, and arrows as thick as their information.

import { button, el, percent, setShare, svg } from "./dom.js";
import { layered } from "./layout.js";

const WIDTH = 158; // of a card
const TITLE = 23;
const STATE = 15.4;
const ZOOM_STEP = 1.25;
const [LEAST_ZOOM, MOST_ZOOM] = [0.1, 3];
const GREY = "#9aa4af";
const SET = "#d55e00"; // the border of a variable that is set

/** Return the definition of the head of the arrows of a drawing. */
export function arrowHead() {
  const path = svg("path", { d: "M0 0L8 4L0 8z", fill: GREY });
  const size = { viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7 };
  return svg("defs", {}, svg("marker", { id: "head", ...size, orient: "auto", markerUnits: "userSpaceOnUse" }, path));
}

/** Return an arrow along a path. */
export function arrow(path) {
  return svg("path", { d: path, fill: "none", stroke: GREY, "marker-end": "url(#head)" });
}

/** Return the width of an arrow that carries a share of the most information. */
export function arrowWidth(share) {
  return (0.7 + 4 * Math.sqrt(Math.max(share, 0))).toFixed(2);
}

/** The cards and arrows. `toggle(name, state)` is called when a state is clicked. */
export class Graph {
  constructor(network, toggle) {
    this.network = network;
    this.toggle = toggle;
    this.prior = network.query().marginals;
    this.cards = network.variables.map((variable, v) => this.card(variable, v));
    const heights = network.variables.map(({ states }) => TITLE + STATE * states.length + 8);
    const { places, paths, width, height } = layered(
      network.variables.map(({ parents }) => parents),
      WIDTH,
      heights,
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
    this.heights = heights;
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

  card(variable, v) {
    const states = variable.states.map((state, k) => {
      const fill = el("i");
      const mark = el("b");
      mark.style.left = `${100 * this.prior[v][k]}%`;
      const p = el("span", { class: "p" });
      const button = el(
        "button",
        {
          type: "button",
          class: "state",
          "aria-pressed": "false",
          title: String(state),
          onclick: () => this.toggle(variable.name, state),
        },
        el("span", {}, String(state)),
        el("span", { class: "bar", "aria-hidden": "true" }, fill, mark),
        p,
      );
      return { button, fill, p };
    });
    const node = el(
      "div",
      { class: "node", role: "group", "aria-label": variable.name },
      el("h3", { title: variable.name }, variable.name),
      states.map(({ button }) => button),
    );
    return { node, states };
  }

  /** Show the marginals, what is known, and what is set. */
  show(marginals, evidence, settings, target) {
    this.network.variables.forEach(({ name, states }, v) => {
      const finding = settings.get(name) ?? evidence.get(name);
      const { node, states: shown } = this.cards[v];
      node.classList.toggle("known", evidence.has(name));
      node.classList.toggle("set", settings.has(name));
      node.classList.toggle("target", name === target);
      shown.forEach(({ button, fill, p }, k) => {
        const value = marginals[v][k];
        setShare(fill, value);
        p.textContent = percent(value).replace(" %", "");
        button.dataset.value = String(value);
        button.setAttribute("aria-pressed", String(finding === states[k]));
        button.setAttribute(
          "aria-label",
          `${name} = ${states[k]}${settings.has(name) ? " (set)" : ""}: ${percent(value)}, without evidence ${percent(this.prior[v][k])}`,
        );
      });
    });
  }

  /** Give each arrow the width of its information in a network, and dash those that an intervention cut. */
  showArrows(after, evidence) {
    const information = new Map(
      after.edgeInformation(evidence).map(({ parent, child, nats }) => [`${parent},${child}`, nats]),
    );
    const most = Math.max(...information.values(), 1e-12);
    for (const [edge, drawn] of this.drawn) {
      drawn.setAttribute("stroke-width", arrowWidth((information.get(edge) ?? 0) / most));
      if (information.has(edge)) drawn.removeAttribute("stroke-dasharray");
      else drawn.setAttribute("stroke-dasharray", "2 5");
    }
  }

  /** Return the network as a drawing that stands alone. */
  drawing(evidence, settings) {
    const { width, height } = this.arrows.viewBox.baseVal;
    const text = (x, y, content, anchor, weight) =>
      svg(
        "text",
        {
          x,
          y,
          "text-anchor": anchor,
          "font-weight": weight,
          "font-size": 11,
          "font-family": "system-ui, sans-serif",
          fill: "#1f2328",
        },
        content,
      );
    const boxes = this.network.variables.map(({ name, states }, v) => {
      const { x, y } = this.places[v];
      const lines = states.flatMap((state, k) => {
        const p = Number(this.cards[v].states[k].button.dataset.value);
        const top = y + TITLE + STATE * k;
        return [
          text(x + 6, top + 9, String(state).slice(0, 12), "start"),
          svg("rect", { x: x + 74, y: top + 1, width: 42, height: 9, fill: "#eceff2" }),
          svg("rect", { x: x + 74, y: top + 1, width: 42 * p, height: 9, fill: "#0072b2" }),
          text(x + WIDTH - 5, top + 9, percent(p).replace(" %", ""), "end"),
        ];
      });
      return [
        svg("rect", {
          x,
          y,
          width: WIDTH,
          height: this.heights[v],
          rx: 5,
          fill: evidence.has(name) ? "#eaf4fb" : "#fff",
          stroke: settings.has(name) ? SET : GREY,
          "stroke-width": settings.has(name) ? 2 : 1,
        }),
        text(x + 6, y + 14, name.slice(0, 24), "start", "600"),
        lines,
      ];
    });
    return svg(
      "svg",
      { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` },
      svg("rect", { width, height, fill: "#fff" }),
      [...this.arrows.childNodes].map((node) => node.cloneNode(true)),
      boxes,
    );
  }
}
