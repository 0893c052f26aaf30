// A multivariate Gaussian over the columns of a block; missing numbers are integrated out.

import { LOG_TWO_PI, cholesky, numbersOf } from "./arrays.js";
import { summed } from "./independent.js";

const MOST_PATTERNS = 64; // of missing cells whose triangles are kept

/** N(x; mean_z, covariance_z). A marginal of the present cells o is N(x_o; mean_o, covariance_oo). */
export class MultivariateGaussian {
  static kind = "continuous";

  constructor({ mean, covariance }, nComponents) {
    this.nComponents = nComponents;
    this.d = mean.shape[1];
    this.mean = numbersOf(mean);
    this.covariance = numbersOf(covariance);
    this.nCovariances = covariance.shape[0];
    this.triangles = new Map();
  }

  /** Return the Cholesky triangle of the covariance of the present columns, of each covariance. */
  trianglesOf(present) {
    const key = present.join();
    let found = this.triangles.get(key);
    if (!found) {
      if (this.triangles.size >= MOST_PATTERNS) this.triangles.clear();
      found = Array.from({ length: this.nCovariances }, (_, g) => cholesky(this.among(present, g), present.length));
      this.triangles.set(key, found);
    }
    return found;
  }

  among(present, g) {
    const m = present.length;
    const matrix = new Float64Array(m * m);
    present.forEach((i, a) => present.forEach((j, b) => (matrix[a * m + b] = this.covariance[(g * this.d + i) * this.d + j])));
    return matrix;
  }

  /** Return log p(x_j | x_1 … x_{j−1}, z), (Z, d), over the present cells: u = L⁻¹(x − mean) has unit covariance. */
  logFactors(tile) {
    const present = Array.from(tile.numbers.keys()).filter((j) => !Number.isNaN(tile.numbers[j]));
    const m = present.length;
    const triangles = this.trianglesOf(present);
    const factors = new Float64Array(this.nComponents * this.d);
    const u = new Float64Array(m);
    for (let z = 0; z < this.nComponents; z++) {
      const lower = triangles[this.nCovariances === 1 ? 0 : z];
      present.forEach((j, a) => {
        let sum = tile.numbers[j] - this.mean[z * this.d + j];
        for (let b = 0; b < a; b++) sum -= lower[a * m + b] * u[b];
        u[a] = sum / lower[a * m + a];
        factors[z * this.d + j] = -0.5 * (u[a] * u[a] + LOG_TWO_PI) - Math.log(lower[a * m + a]);
      });
    }
    return factors;
  }

  logDensity(tile) {
    return summed(this.logFactors(tile), this.nComponents);
  }
}
