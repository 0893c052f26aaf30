// Arrays of numbers as the model file writes them, and sums of exponentials.

export const LOG_TWO_PI = Math.log(2 * Math.PI);

/** Numbers that JSON cannot write, by the strings that stand for them. */
const UNWRITTEN = { inf: Infinity, "-inf": -Infinity, nan: NaN };

/**
 * Return the numbers of an array of the file, last axis fastest.
 * @param {{shape: number[], values: (number|string)[]}} written
 * @returns {Float64Array}
 */
export function numbersOf(written) {
  return Float64Array.from(written.values, (value) => (typeof value === "string" ? UNWRITTEN[value] : value));
}

/** Return log Σ exp of some numbers, −Infinity for none. */
export function logSum(values) {
  let peak = -Infinity;
  for (const value of values) if (value > peak) peak = value;
  if (peak === -Infinity || peak === Infinity) return peak;
  let total = 0;
  for (const value of values) total += Math.exp(value - peak);
  return peak + Math.log(total);
}

/** Return the position of the first cut that is greater than x, as NumPy's searchsorted from the right. */
export function binOf(cuts, x) {
  let low = 0;
  let high = cuts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cuts[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Return the position of the first slot of each column whose codes 0 … K lie side by side. */
export function slotOffsets(cardinalities) {
  const offsets = [0];
  for (const k of cardinalities) offsets.push(offsets.at(-1) + k + 1);
  return offsets;
}

/**
 * Return log Γ(x) for x > 0: Stirling's series (Abramowitz & Stegun 6.1.41) at x + n ≥ 15, reduced by the recurrence
 * Γ(x + 1) = x·Γ(x). The error is below 1e-14 times the result, or 1e-14.
 */
export function logGamma(x) {
  let shift = 0;
  let product = 1;
  while (x < 15) {
    product *= x;
    x += 1;
    if (product > 1e250) {
      shift += Math.log(product);
      product = 1;
    }
  }
  const y = 1 / (x * x);
  const series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * (691 / 360360)))))) / x;
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - shift - Math.log(product);
}

const SHIFT = 16;
const SERIES = [-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432];

/** Return log Γ(x + ½) − log Γ(x) − ½·log x, 0 at infinity: by recurrence from a series in 1 / (x + 16). */
function logHalfStep(x) {
  let total = 0.5 * Math.log1p(SHIFT / x);
  for (let k = 0; k < SHIFT; k++) total -= Math.log1p(0.5 / (x + k));
  SERIES.forEach((coefficient, power) => (total += coefficient * (x + SHIFT) ** -(2 * power + 1)));
  return total;
}

/** Return the log density of a standard t at 0, of 0, 1, … d columns. */
export function studentPeaks(degrees, d) {
  const x = degrees / 2;
  const found = [0, logHalfStep(x)];
  for (let p = 2; p <= d; p++) found.push(found[p - 2] + Math.log1p((p / 2 - 1) / x));
  return found.map((log, p) => log - 0.5 * p * LOG_TWO_PI);
}

/** Return −(ν + p)/2·log(1 + distance/ν), for a squared distance of p columns in units of the scale. */
export function studentTail(distance, p, degrees) {
  return -0.5 * (degrees + p) * Math.log1p(distance / degrees);
}

/** Return the lower triangle L of A = L·Lᵀ, both row by row in arrays of m·m numbers (Cholesky). */
export function cholesky(matrix, m) {
  const lower = new Float64Array(m * m);
  for (let a = 0; a < m; a++) {
    for (let b = 0; b <= a; b++) {
      let sum = matrix[a * m + b];
      for (let k = 0; k < b; k++) sum -= lower[a * m + k] * lower[b * m + k];
      lower[a * m + b] = a === b ? Math.sqrt(sum) : sum / lower[b * m + b];
    }
  }
  return lower;
}

/** Return the matrix of some places, row by row, given its entries by two places. */
export function submatrix(places, entry) {
  const m = places.length;
  const matrix = new Float64Array(m * m);
  places.forEach((i, a) => places.forEach((j, b) => (matrix[a * m + b] = entry(i, j))));
  return matrix;
}

/** Return L⁻¹ x of a lower triangle L. */
export function triangleSolved(lower, x) {
  const m = x.length;
  const out = new Float64Array(m);
  for (let a = 0; a < m; a++) {
    let sum = x[a];
    for (let b = 0; b < a; b++) sum -= lower[a * m + b] * out[b];
    out[a] = sum / lower[a * m + a];
  }
  return out;
}

/** Return (Lᵀ)⁻¹ x of a lower triangle L. */
export function triangleTransposedSolved(lower, x) {
  const m = x.length;
  const out = Float64Array.from(x);
  for (let a = m - 1; a >= 0; a--) {
    out[a] /= lower[a * m + a];
    for (let b = 0; b < a; b++) out[b] -= lower[a * m + b] * out[a];
  }
  return out;
}

/** Return a function of lists of places that keeps its last results. */
export function kept(most, make) {
  const results = new Map();
  return (places) => {
    const key = places.join();
    if (!results.has(key)) {
      if (results.size >= most) results.clear();
      results.set(key, make(places));
    }
    return results.get(key);
  };
}
