// What two columns say together, beyond what each says alone.

import { numbersOf, slotOffsets } from "./arrays.js";
import { Tile } from "./rows.js";

/** One number per pair of groups of cells and component, for pairs of columns that have codes. */
export class PairTables {
  /** @param cuts the cut points of each column of the schema; null where it has none */
  constructor({ columns, groups, places, numbers }, schema, cuts) {
    this.tile = new Tile(
      columns.map((j) => schema.columns[j]),
      "categorical",
      cuts,
    );
    this.groups = groups; // of each code of these columns, from 1 on; 0 of a missing cell
    this.places = places; // the columns of each pair, by their positions among these
    this.columns = places.map((pair) => pair.map((p) => columns[p])); // by their positions in the schema
    const sizes = groups.map((ofCodes) => ofCodes.reduce((most, group) => Math.max(most, group), 0));
    this.widths = places.map(([, second]) => sizes[second]);
    this.offsets = slotOffsets(places.map(([first, second]) => sizes[first] * sizes[second]));
    this.nComponents = numbers.shape[0];
    this.numbers = numbersOf(numbers);
  }

  /** Return what each pair adds to the score of each component in nats, (Z, P): 0 where a cell is missing. */
  logFactors(cells) {
    const { codes } = this.tile.take(cells);
    const group = this.groups.map((ofCodes, p) => ofCodes[codes[p]]);
    const slots = this.places.map(([first, second], pair) => {
      const isKnown = group[first] > 0 && group[second] > 0;
      return this.offsets[pair] + (isKnown ? (group[first] - 1) * this.widths[pair] + group[second] : 0);
    });
    const nSlots = this.offsets.at(-1);
    const factors = new Float64Array(this.nComponents * slots.length);
    for (let z = 0; z < this.nComponents; z++) {
      slots.forEach((slot, pair) => (factors[z * slots.length + pair] = this.numbers[z * nSlots + slot]));
    }
    return factors;
  }
}
