// The cards of the variables of a network: the states with their probabilities, or the density of a number.

import { el, percent, setShare, short, svg } from "./dom.js";

export const WIDTH = 158; // of a card
const TITLE = 23;
const STATE = 15.4;
const CURVE = 40; // height of a density
const FIELD = 42; // height of the line and the field below it
const BELOW = 8;
const POINTS = 61; // of a curve
const [BLUE, OUTLINE, SET] = ["#0072b2", "#9aa4af", "#d55e00"];

/** Return text of a drawing that stands alone. */
function drawnText(x, y, content, anchor = "start", weight = null) {
  const style = { "font-size": 11, "font-family": "system-ui, sans-serif", fill: "#1f2328" };
  return svg("text", { x, y, "text-anchor": anchor, "font-weight": weight, ...style }, content);
}

/** Return text cut to a number of letters. */
function cut(content, most) {
  return content.length > most ? `${content.slice(0, most - 1)}…` : content;
}

/** What cards have in common: a title, and the box of a drawing. */
class Card {
  constructor(variable, height, contents) {
    this.variable = variable;
    this.height = TITLE + height + BELOW;
    const title = el("h3", { title: variable.name }, el("span", {}, variable.name));
    this.node = el("div", { class: "node", role: "group", "aria-label": variable.name }, title, contents);
  }

  /** Mark the card as observed, set, or the target. */
  mark(finding, setting, isTarget) {
    this.isKnown = finding !== undefined;
    this.isSet = setting !== undefined;
    this.node.classList.toggle("known", this.isKnown);
    this.node.classList.toggle("set", this.isSet);
    this.node.classList.toggle("target", isTarget);
  }

  /** Return the card for a drawing that stands alone, with its upper left corner at a place. */
  drawing({ x, y }) {
    const box = svg("rect", {
      x,
      y,
      width: WIDTH,
      height: this.height,
      rx: 5,
      fill: this.isKnown ? "#eaf4fb" : "#fff",
      stroke: this.isSet ? SET : OUTLINE,
      "stroke-width": this.isSet ? 2 : 1,
    });
    return [box, drawnText(x + 6, y + 14, cut(this.variable.name, 24), "start", "600"), this.lines(x, y + TITLE)];
  }
}

/** The states of a discrete variable, each with a bar. `toggle(name, state)` is called when a state is clicked. */
export class StateCard extends Card {
  constructor(variable, prior, toggle) {
    const states = variable.states.map((state, k) => {
      const fill = el("i");
      const mark = el("b");
      mark.style.left = `${100 * prior[k]}%`;
      const p = el("span", { class: "p" });
      const onclick = () => toggle(variable.name, state);
      const button = el(
        "button",
        { type: "button", class: "state", "aria-pressed": "false", title: String(state), onclick },
        el("span", {}, String(state)),
        el("span", { class: "bar", "aria-hidden": "true" }, fill, mark),
        p,
      );
      return { button, fill, p };
    });
    super(
      variable,
      STATE * states.length,
      states.map(({ button }) => button),
    );
    this.states = states;
    this.prior = prior;
  }

  /** Show the probabilities, and the state that is known. */
  show(marginal, finding, setting) {
    const { name, states } = this.variable;
    this.marginal = marginal;
    this.states.forEach(({ button, fill, p }, k) => {
      const value = marginal[k];
      setShare(fill, value);
      p.textContent = percent(value).replace(" %", "");
      button.dataset.value = String(value);
      button.setAttribute("aria-pressed", String((setting ?? finding) === states[k]));
      button.setAttribute(
        "aria-label",
        `${name} = ${states[k]}${this.isSet ? " (set)" : ""}: ${percent(value)}, without evidence ${percent(this.prior[k])}`,
      );
    });
  }

  lines(x, y) {
    return this.variable.states.map((state, k) => {
      const p = this.marginal[k];
      const top = y + STATE * k;
      return [
        drawnText(x + 6, top + 9, cut(String(state), 12)),
        svg("rect", { x: x + 74, y: top + 1, width: 42, height: 9, fill: "#eceff2" }),
        svg("rect", { x: x + 74, y: top + 1, width: 42 * (p || 0), height: 9, fill: BLUE }),
        drawnText(x + WIDTH - 5, top + 9, percent(p).replace(" %", ""), "end"),
      ];
    });
  }
}

/** The density of a continuous variable, and a field for its number; `toggle(name, number)` is called when it changes. */
export class DensityCard extends Card {
  constructor(variable, prior, toggle) {
    const curve = svg("svg", { viewBox: `0 0 ${WIDTH} ${CURVE}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    const words = el("p", { class: "moments" });
    const field = el("input", { type: "number", step: "any", placeholder: "unknown", "aria-label": variable.name });
    field.addEventListener("change", () => toggle(variable.name, field.value === "" ? null : Number(field.value)));
    super(variable, CURVE + FIELD, [curve, words, field]);
    Object.assign(this, { curve, words, field, prior });
  }

  /** Show mean and standard deviation, the density above that without evidence, and the number that is known. */
  show(marginal, finding, setting) {
    this.marginal = marginal;
    const { mean, deviation } = marginal;
    this.node.dataset.mean = String(mean);
    this.node.dataset.deviation = String(deviation);
    this.words.textContent = this.inWords();
    this.words.title = `Without evidence: mean ${short(this.prior.mean)}, standard deviation ${short(this.prior.deviation)}`;
    this.field.value = setting ?? finding ?? "";
    this.curve.replaceChildren(...this.curves(0, 0));
  }

  inWords() {
    const { mean, deviation } = this.marginal;
    return deviation === 0 ? `= ${short(mean)}` : `mean ${short(mean)} ± ${short(deviation)}`;
  }

  /** Return both curves, each as high as the box; a number that is certain is a line. */
  curves(left, top) {
    const both = [this.prior, this.marginal].filter(({ mean }) => !Number.isNaN(mean));
    const ends = both.flatMap(({ mean, deviation }) => [mean - 3.5 * deviation, mean + 3.5 * deviation]);
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const width = high - low || 1;
    const place = (x) => (left + (WIDTH * (x - (high > low ? low : low - 0.5))) / width).toFixed(1);
    return both.map((density, k) => {
      const style =
        k === 0
          ? { fill: "none", stroke: OUTLINE, "stroke-dasharray": "3 2" }
          : { fill: BLUE, "fill-opacity": 0.25, stroke: BLUE };
      const { mean, deviation, means } = density;
      const grid = Array.from({ length: POINTS }, (_, i) => low + (width * i) / (POINTS - 1));
      const near = Array.from({ length: POINTS }, (_, i) => mean + deviation * ((8 * i) / (POINTS - 1) - 4));
      const xs = [...grid, ...near, ...means.slice(0, POINTS)].filter((x) => x >= low && x <= high);
      xs.sort((a, b) => a - b);
      const heights = xs.map((x) => density.density(x));
      const peak = Math.max(...heights);
      if (!(peak > 0)) {
        return svg("path", { d: `M${place(mean)} ${top + CURVE}V${top + 2}`, "stroke-width": 2, ...style });
      }
      const points = xs.map((x, i) => `${place(x)},${(top + CURVE - ((CURVE - 2) * heights[i]) / peak).toFixed(1)}`);
      return svg("polyline", { points: points.join(" "), ...style });
    });
  }

  lines(x, y) {
    return [this.curves(x, y), drawnText(x + 6, y + CURVE + 14, this.inWords())];
  }
}
