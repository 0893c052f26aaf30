// A multivariate Gaussian over the columns of a block; missing numbers are integrated out.

import { LOG_TWO_PI, cholesky, kept, numbersOf, studentPeaks, studentTail, submatrix } from "./arrays.js";
import { summed } from "./independent.js";

const MOST_PATTERNS = 64; // of missing cells whose triangles are kept

/**
 * N(x; mean_z, covariance_z), or with degrees of freedom ν_z a t of the scale matrix spread_z·covariance_z. A marginal of the present cells o has
 * mean_o and covariance_oo.
 */
export class MultivariateGaussian {
  static kind = "continuous";

  constructor({ mean, covariance, degrees, spread, constant }, nComponents) {
    this.nComponents = nComponents;
    this.d = mean.shape[1];
    this.mean = numbersOf(mean);
    this.covariance = numbersOf(covariance);
    this.nCovariances = covariance.shape[0];
    this.degrees = degrees && numbersOf(degrees);
    this.spread = spread && numbersOf(spread);
    this.peaks = this.degrees && Array.from(this.degrees, (one) => studentPeaks(one, this.d));
    this.constant = new Set(constant); // columns that are left out of a t
    // The Cholesky triangle of the covariance of the present columns, of each covariance.
    this.trianglesOf = kept(MOST_PATTERNS, (present) =>
      Array.from({ length: this.nCovariances }, (_, g) => {
        const entry = (i, j) => this.covariance[(g * this.d + i) * this.d + j];
        return cholesky(submatrix(present, entry), present.length);
      }),
    );
    this.ofOneColumn =
      !this.degrees &&
      this.covariance.every((value, cell) => {
        const [i, j] = [Math.floor(cell / this.d) % this.d, cell % this.d];
        return i === j || value === 0;
      });
  }

  /** Return log p of p whitened columns with this squared distance, without the log determinant. */
  logDensityAt(distance, p, z) {
    if (!this.degrees) return -0.5 * (distance + p * LOG_TWO_PI);
    const peak = this.peaks[z][p] - 0.5 * p * Math.log(this.spread[z]);
    return peak + studentTail(distance / this.spread[z], p, this.degrees[z]);
  }

  /** Return log p(x_j | x_1 … x_{j−1}, z), (Z, d), over the present cells: u = L⁻¹(x − mean) has unit covariance. */
  logFactors(tile) {
    const present = Array.from(tile.numbers.keys()).filter((j) => !Number.isNaN(tile.numbers[j]) && !this.constant.has(j));
    const m = present.length;
    const triangles = this.trianglesOf(present);
    const factors = new Float64Array(this.nComponents * this.d);
    const u = new Float64Array(m);
    for (let z = 0; z < this.nComponents; z++) {
      let [distance, before] = [0, 0];
      const lower = triangles[this.nCovariances === 1 ? 0 : z];
      present.forEach((j, a) => {
        let sum = tile.numbers[j] - this.mean[z * this.d + j];
        for (let b = 0; b < a; b++) sum -= lower[a * m + b] * u[b];
        u[a] = sum / lower[a * m + a];
        distance += u[a] * u[a];
        const upto = this.logDensityAt(distance, a + 1, z);
        factors[z * this.d + j] = upto - before - Math.log(lower[a * m + a]);
        before = upto;
      });
    }
    return factors;
  }

  logDensity(tile) {
    return summed(this.logFactors(tile), this.nComponents);
  }
}
