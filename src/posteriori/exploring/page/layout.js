// A layered drawing of a directed graph: parents above their children, few crossings, arrows around no box.

const GAP_X = 22;
const GAP_Y = 46;

/**
 * Return the place of each node, {x, y}, and the size of the drawing.
 * @param {number[][]} parents of each node
 * @param {number} width of a node
 * @param {number[]} heights of the nodes
 */
export function layered(parents, width, heights) {
  const children = parents.map(() => []);
  parents.forEach((above, v) => above.forEach((u) => children[u].push(v)));
  const depth = depths(parents, children);
  const layers = [];
  depth.forEach((level, v) => (layers[level] ??= []).push(v));
  const x = new Array(parents.length).fill(0);
  for (const layer of layers) layer.forEach((v, at) => (x[v] = at * (width + GAP_X)));
  for (let sweep = 0; sweep < 24; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wanted = (v) => mean((down ? parents[v] : children[v]).map((u) => x[u])) ?? x[v];
      place(layer, wanted, x, width + GAP_X);
    }
  }
  const left = Math.min(...x);
  let top = 10;
  const places = [];
  for (const layer of layers) {
    const tallest = Math.max(...layer.map((v) => heights[v]));
    for (const v of layer) places[v] = { x: x[v] - left + 10, y: top };
    top += tallest + GAP_Y;
  }
  return { places, width: Math.max(...x) - left + width + 20, height: top - GAP_Y + 10 };
}

/** Return the layer of each node: below all its parents, and down to its highest child if it has more children. */
function depths(parents, children) {
  const depth = new Array(parents.length).fill(-1);
  const of = (v) => {
    if (depth[v] < 0) depth[v] = Math.max(-1, ...parents[v].map(of)) + 1;
    return depth[v];
  };
  parents.forEach((_, v) => of(v));
  for (let sweep = 0; sweep < parents.length; sweep++) {
    let moved = false;
    parents.forEach((above, v) => {
      if (children[v].length <= above.length) return;
      const lowest = Math.min(...children[v].map((u) => depth[u])) - 1;
      moved ||= lowest !== depth[v];
      depth[v] = lowest;
    });
    if (!moved) break;
  }
  return depth;
}

function mean(numbers) {
  return numbers.length ? numbers.reduce((sum, one) => sum + one, 0) / numbers.length : null;
}

/** Order a layer by where its nodes want to be, and put each there as closely as the others allow. */
function place(layer, wanted, x, step) {
  const goal = new Map(layer.map((v) => [v, wanted(v)]));
  layer.sort((a, b) => goal.get(a) - goal.get(b) || x[a] - x[b]);
  // Pool neighbours that would overlap, and centre each group on the mean of its goals (isotonic regression).
  const groups = [];
  layer.forEach((v, at) => {
    groups.push({ sum: goal.get(v) - at * step, n: 1 });
    while (groups.length > 1 && groups.at(-2).sum / groups.at(-2).n > groups.at(-1).sum / groups.at(-1).n) {
      const last = groups.pop();
      groups.at(-1).sum += last.sum;
      groups.at(-1).n += last.n;
    }
  });
  let at = 0;
  for (const { sum, n } of groups) for (let k = 0; k < n; k++, at++) x[layer[at]] = sum / n + at * step;
}
