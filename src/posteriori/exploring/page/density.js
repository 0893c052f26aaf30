// The density of a number: a curve, with bars where one number has a probability of its own.

import { percent, short, svg } from "./dom.js";
import { scaleOf } from "./scale.js";

const WIDTH_OF_DENSITY = 480; // in its own units
const HEIGHT_OF_DENSITY = 190;
const BASE = HEIGHT_OF_DENSITY - 20; // of the curve, above the numbers of the axis
const ROOM = 14; // above the curve, for the probabilities of bars
const MARGIN = 12;
const MOST_BARS = 60; // of a number with a step, beyond which it has a curve
const LEAST_BAR = 0.002; // probability
const LEAST_NAMED = 0.02;
const REACH = 0.003; // the probability beyond each end of the axis
const PARTS = 80; // of the axis, of each of which a curve has one point
const MOST_OF_ALL = 1.6; // times the peak of the curve, up to which the other one is drawn
const TICKS_OF_AXIS = 4;

/** Draws densities of one target over one axis, which grows if a density leaves it. */
export class DensityDrawing {
  /** @param axis [lowest, highest, whole, width] of nearly all rows; @param all the density where nothing is known */
  constructor(axis, cells, atoms, all) {
    Object.assign(this, { axis, cells, all });
    const alone = [...cells.low.keys()].filter((g) => cells.width[g] === 0);
    this.single = new Set(cells.step ? atoms : alone); // cells of one number that is not a part of the curve
  }

  /** Return the drawing of a density. */
  drawing(density) {
    const scale = this.scaleWith(density);
    const [start, end] = [scale.low, scale.high].map(scale.position);
    const at = (y) => MARGIN + ((WIDTH_OF_DENSITY - 2 * MARGIN) * (scale.position(y) - start)) / (end - start);
    const { step } = this.cells;
    const ofPoints = step > 0 && (scale.high - scale.low) / step <= MOST_BARS;
    const drawing = svg("svg", {
      class: "chart density",
      viewBox: `0 0 ${WIDTH_OF_DENSITY} ${HEIGHT_OF_DENSITY}`,
      role: "img",
      "aria-label": "Density of the number; the table below it has its mean, median and interval",
    });
    const bars = ofPoints ? this.points(density, scale) : this.singleNumbers(density, scale);
    const most = ofPoints ? Math.max(...bars.map(({ p }) => p)) : 1;
    const wide = ofPoints ? Math.max(0.7 * (at(scale.low + step) - at(scale.low)), 2) : 5;
    const [low, high] = density.interval(0.9);
    const drawn = bars.flatMap((bar) => {
      const kind = ofPoints && (bar.y < low || bar.y > high) ? "atom outside" : "atom";
      return this.bar(bar, kind, at(bar.y), wide, bar.p / most, !ofPoints);
    });
    const all = ofPoints ? this.points(this.all, scale).map(({ y, p }) => ({ y, height: p / most })) : [];
    const curves = ofPoints ? [svg("polyline", { class: "all", points: this.path(all, 1, at) })] : this.curves(density, scale, at);
    drawing.append(...(ofPoints ? [drawn, curves] : [curves, drawn]).flat());
    for (const [kind, y] of [["mean", density.mean], ["median", density.median]]) {
      if (y >= scale.low && y <= scale.high) drawing.append(svg("path", { class: kind, d: `M${at(y)} ${BASE}V${ROOM}` }));
    }
    drawing.append(svg("path", { class: "axis", d: `M${MARGIN} ${BASE}H${WIDTH_OF_DENSITY - MARGIN}` }));
    drawing.append(...this.ticks(scale, at));
    return drawing;
  }

  /** Return the axis, wide enough for a density. */
  scaleWith(density) {
    const [low, high, whole, width] = this.axis;
    const [from, to] = [Math.min(low, density.quantile(REACH)), Math.max(high, density.quantile(1 - REACH))];
    const half = this.cells.step / 2; // so that the bars at both ends are inside
    return scaleOf([from - half, (to > from ? to : from + 1) + half, whole && !half, width]);
  }

  /** Return the curves of a density and of the one where nothing is known, and the area of the interval. */
  curves(density, scale, at) {
    const [own, all] = [this.curve(density, scale), this.curve(this.all, scale)];
    const most = (line) => Math.max(...line.map(({ height }) => height), 1e-300);
    const peak = Math.max(most(own), Math.min(most(all), MOST_OF_ALL * most(own)));
    const path = (line) => this.path(line, peak, at);
    const [low, high] = density.interval(0.9);
    const inside = own.filter(({ y }) => y >= low && y <= high);
    const area = inside.length > 1 ? [{ y: inside[0].y, height: 0 }, ...inside, { y: inside.at(-1).y, height: 0 }] : [];
    return [
      svg("polygon", { class: "within", points: path(area) }),
      svg("polyline", { class: "all", points: path(all) }),
      svg("polyline", { class: "curve", points: path(own) }),
    ];
  }

  /** Return points as the text of a polyline, cut above the peak. */
  path(line, peak, at) {
    const top = (height) => BASE - (BASE - ROOM) * Math.min(height / peak, 1);
    return line.map(({ y, height }) => `${at(y).toFixed(1)},${top(height).toFixed(1)}`).join(" ");
  }

  /** Return points of a curve: the probability of narrow parts of the axis, per unit of the axis, without single numbers. */
  curve({ probabilities }, scale) {
    const [start, end] = [scale.low, scale.high].map(scale.position);
    const edge = (k) => scale.exactAt(start + ((end - start) * k) / PARTS);
    const places = [...probabilities.keys()].filter((g) => !this.single.has(g));
    const below = (y) => places.reduce((sum, g) => sum + probabilities[g] * this.shareBelow(y, g), 0);
    const reached = Array.from({ length: PARTS + 1 }, (_, k) => below(edge(k)));
    return reached.slice(1).map((upper, k) => ({ y: edge(k + 0.5), height: upper - reached[k] }));
  }

  /** Return the share of a cell below a number, where the points of a cell are spread over its width. */
  shareBelow(y, g) {
    const { low, width, step } = this.cells;
    return Math.min(Math.max((y - low[g] + step / 2) / (width[g] + step), 0), 1);
  }

  /** Return all points of cells on the axis, of a number with a step. */
  points({ densities }, scale) {
    const { low, count, step } = this.cells;
    const all = [...low.keys()].flatMap((g) =>
      Array.from({ length: Math.min(count[g], MOST_BARS) }, (_, k) => ({ y: low[g] + k * step, p: densities[g] })),
    );
    return all.filter(({ y }) => y >= scale.low && y <= scale.high);
  }

  /** Return the numbers on the axis that have a probability of their own. */
  singleNumbers({ probabilities }, scale) {
    const all = [...this.single].map((g) => ({ y: this.cells.low[g], p: probabilities[g] }));
    return all.filter(({ y, p }) => p >= LEAST_BAR && y >= scale.low && y <= scale.high);
  }

  /** Return a bar with its probability as title, or beside it. */
  bar({ y, p }, kind, x, wide, share, isAlone) {
    const height = (BASE - ROOM) * share;
    const title = svg("title", {}, `${short(y)}: ${percent(p)}`);
    const drawn = svg("rect", { class: kind, x: x - wide / 2, y: BASE - height, width: wide, height }, title);
    if (!isAlone || p < LEAST_NAMED) return [drawn];
    const side = x < WIDTH_OF_DENSITY / 2 ? "start" : "end";
    return [drawn, svg("text", { class: "halo", x: x + (side === "start" ? 4 : -4), y: BASE - height - 3, "text-anchor": side }, percent(p))];
  }

  ticks(scale, at) {
    const [start, end] = [scale.low, scale.high].map(scale.position);
    const texts = Array.from({ length: TICKS_OF_AXIS }, (_, k) => {
      const place = scale.numberAt(start + ((end - start) * k) / (TICKS_OF_AXIS - 1));
      const y = this.cells.step === 1 ? Math.min(Math.round(place), Math.floor(scale.high)) : place;
      const anchor = k === 0 ? "start" : k === TICKS_OF_AXIS - 1 ? "end" : "middle";
      return svg("text", { x: at(y), y: HEIGHT_OF_DENSITY - 5, "text-anchor": anchor }, short(y, 3));
    });
    return texts;
  }
}
