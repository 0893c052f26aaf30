// Continuous variables of a network, which are eliminated before the discrete ones (Lauritzen & Jensen 2001): given the
// states of their discrete parents they are jointly normal.

import { LOG_TWO_PI, numbersOf } from "./arrays.js";
import { Table } from "./junction_tree.js";

const ROUNDING = 2 ** -49; // of a conditional variance beside the variance, per observed variable

/** A density p(x) = Σ_m w_m·N(x; μ_m, σ²_m). */
export class NormalMixture {
  constructor(weights, means, variances) {
    Object.assign(this, { weights, means, variances });
  }

  get mean() {
    return this.weights.reduce((sum, weight, m) => sum + weight * this.means[m], 0);
  }

  get deviation() {
    const { mean } = this;
    return Math.sqrt(
      this.weights.reduce((sum, weight, m) => sum + weight * (this.variances[m] + (this.means[m] - mean) ** 2), 0),
    );
  }

  /** Return p(x), without the components of variance 0. */
  density(x) {
    return this.weights.reduce((sum, weight, m) => {
      const variance = this.variances[m];
      if (!(weight > 0 && variance > 0)) return sum;
      return sum + weight * Math.exp(-0.5 * ((x - this.means[m]) ** 2 / variance + Math.log(variance) + LOG_TWO_PI));
    }, 0);
  }
}

/** Variables that are jointly normal given each of the Q configurations of their discrete parents. */
export class Component {
  /** @param {{scope: number[], members: number[]}} written the discrete parents, and the variables, parents first */
  constructor({ scope, members }, variables, sizes) {
    this.scope = scope;
    this.members = members;
    this.names = members.map((v) => variables[v].name);
    const table = new Table(scope, sizes);
    this.size = table.values.length;
    const n = members.length;
    this.mean = new Float64Array(this.size * n);
    this.covariance = new Float64Array(this.size * n * n);
    members.forEach((v, k) => {
      const { discrete, continuous, ...written } = variables[v];
      const [intercept, coefficients, variance] = ["intercept", "coefficients", "variance"].map((one) =>
        numbersOf(written[one]),
      );
      const cells = table.cellsOf(discrete.filter((u) => sizes[u] > 1));
      const above = continuous.map((u) => members.indexOf(u));
      for (let q = 0; q < this.size; q++) {
        const mean = this.mean.subarray(q * n, (q + 1) * n);
        const covariance = this.covariance.subarray(q * n * n, (q + 1) * n * n);
        const slopes = coefficients.subarray(cells[q] * above.length, (cells[q] + 1) * above.length);
        mean[k] = above.reduce((sum, u, j) => sum + slopes[j] * mean[u], intercept[cells[q]]);
        for (let i = 0; i < k; i++) {
          covariance[k * n + i] = above.reduce((sum, u, j) => sum + slopes[j] * covariance[u * n + i], 0);
          covariance[i * n + k] = covariance[k * n + i];
        }
        covariance[k * n + k] = above.reduce((sum, u, j) => sum + slopes[j] * covariance[k * n + u], variance[cells[q]]);
      }
    });
  }

  /**
   * Return the mean (Q, n) and the variance (Q, n) of each variable given numbers by index, and log p(numbers) (Q,).
   * The variables are observed one after the other.
   */
  given(numbers) {
    const n = this.members.length;
    const seen = this.members.map((v, k) => k).filter((k) => numbers.has(this.members[k]));
    const mean = Float64Array.from(this.mean);
    const variance = new Float64Array(this.size * n);
    const logDensity = new Float64Array(this.size);
    for (let q = 0; q < this.size; q++) {
      const before = this.covariance.subarray(q * n * n, (q + 1) * n * n);
      const covariance = seen.length ? Float64Array.from(before) : before;
      for (const k of seen) {
        const ofSeen = Float64Array.from({ length: n }, (_, i) => covariance[i * n + k]);
        if (!(ofSeen[k] > ROUNDING * seen.length * before[k * n + k])) this.refuse(seen);
        const residual = numbers.get(this.members[k]) - mean[q * n + k];
        logDensity[q] -= 0.5 * (residual ** 2 / ofSeen[k] + Math.log(ofSeen[k]) + LOG_TWO_PI);
        for (let i = 0; i < n; i++) {
          mean[q * n + i] += (ofSeen[i] / ofSeen[k]) * residual;
          for (let j = 0; j < n; j++) covariance[i * n + j] -= (ofSeen[i] / ofSeen[k]) * ofSeen[j];
        }
      }
      for (let k = 0; k < n; k++) {
        const left = covariance[k * (n + 1)];
        variance[q * n + k] = left > ROUNDING * seen.length * before[k * (n + 1)] ? left : 0;
      }
    }
    return { mean, variance, logDensity };
  }

  refuse(seen) {
    const names = seen.map((k) => JSON.stringify(this.names[k])).join(", ");
    throw new RangeError(
      `the evidence about ${names} has no density: a variance of 0 makes one an exact function of others; leave it out`,
    );
  }

  /** Return the density of each variable given the weights of the configurations, by index. */
  densities({ mean, variance }, weights) {
    const n = this.members.length;
    return this.members.map((v, k) => {
      const ofVariable = (moments) => weights.map((_, q) => moments[q * n + k]);
      return [v, new NormalMixture(weights, ofVariable(mean), ofVariable(variance))];
    });
  }
}
