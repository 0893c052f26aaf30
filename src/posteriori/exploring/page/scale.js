// The axis of a column of numbers: linear, or logarithmic beyond a width for a column with a heavy tail.

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
