// Evaluate a model of posteriori without Python: p(y | x), log p(x) and every factor of the sum, with any cells missing.
// Of a number, p(y | x) is a density: model.predictDensity(row). Of a joint model, any column: model.marginals(known).
//
//     import { load } from "./posteriori.mjs";
//     const model = load(await (await fetch("model.json")).text());
//     model.score({ bill_length_mm: 50 });   // a column that the row lacks is missing
//
// The model file is written by posteriori.javascript.to_javascript(model) or `posteriori export MODEL --to js`.

import { standardError } from "./counting.js";
import { JointModel } from "./joint.js";
import { Classifier } from "./model.js";
import { Network } from "./network.js";
import { AdditiveRegressor } from "./numbers.js";

export { standardError };

const FORMAT = 1;

/**
 * Return the model of a file.
 * @param {string|object} file the text of the file, or what JSON.parse made of it
 * @returns {Classifier|AdditiveRegressor|JointModel|Network}
 */
export function load(file) {
  const written = typeof file === "string" ? JSON.parse(file) : file;
  if (written.format !== FORMAT) {
    throw new Error(
      `the model file has format ${written.format}, and this evaluator reads ${FORMAT}; take both from one version`,
    );
  }
  if (written.kind === "joint") return new JointModel(written);
  if (written.kind === "regressor") return new AdditiveRegressor(written);
  return written.kind === "network" ? new Network(written) : new Classifier(written);
}
