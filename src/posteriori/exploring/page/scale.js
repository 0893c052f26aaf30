// The axis of a column of numbers: linear, or logarithmic beyond a width for a column with a heavy tail.

import { el, short } from "./dom.js";

/** Return the axis of a range [lowest, highest, whole, width]: a number x is at x, or at arsinh(x / width). */
export function scaleOf(range) {
  const [low, high, whole, width] = range ?? [0, 1, false, null];
  const position = width ? (x) => Math.asinh(x / width) : (x) => x;
  const number = width ? (u) => width * Math.sinh(u) : (u) => u;
  const step = whole && !width ? 1 : (position(high) - position(low) || 1) / 200;
  const inside = (x) => Math.min(Math.max(x, low), high);
  const rounded = (x) => inside(whole ? Math.round(x) : Number(x.toPrecision(6)));
  return {
    low,
    high,
    logarithmic: Boolean(width),
    position,
    exactAt: (u) => inside(number(u)),
    /** Return the number at a position, with six digits, or whole. */
    numberAt: (u) => rounded(number(u)),
    /** Return the number some steps of the axis beyond another; a whole number moves by one at least. */
    moved(x, steps) {
      const next = rounded(number(position(x) + steps * step));
      return whole && next === x ? inside(x + Math.sign(steps)) : next;
    },
    /** Return a density per unit of the axis, so that areas are probabilities. */
    perUnit: (x, density) => (width ? density * Math.hypot(x, width) : density),
    /** Return n numbers that are evenly spaced along the axis. */
    grid(n) {
      const [from, to] = [position(low), position(high)];
      const values = Array.from({ length: n }, (_, k) => inside(number(from + ((to - from) * k) / (n - 1))));
      return whole ? [...new Set(values.map(Math.round))] : values;
    },
  };
}

/** Return a number with the digits that tell it from others of its axis. */
export function shownOn({ low, high }, x) {
  const digits = Math.ceil(Math.log10(Math.abs(x) / (high - low || Math.abs(x) || 1))) + 3;
  return digits > 4 ? String(Number(x.toPrecision(Math.min(digits, 17)))).replace("-", "−") : short(x);
}

/** Return the numbers below an axis: both ends, as `shown` writes them, and the middle. */
export function axisNumbers(scale, shown) {
  const { low, high, position, logarithmic } = scale;
  const middle = shownOn(scale, scale.exactAt((position(low) + position(high)) / 2));
  const title = logarithmic ? "Linear near 0, logarithmic beyond." : null;
  const texts = [shown(low), logarithmic ? `${middle} (log)` : middle, shown(high)];
  return el("div", { class: "ends", title, "aria-hidden": "true" }, texts.map((text) => el("span", {}, text)));
}
