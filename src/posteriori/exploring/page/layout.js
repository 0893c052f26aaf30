// A layered drawing of a directed graph (Sugiyama, Tagawa & Toda 1981): parents above their children, and arrows that
// pass between the boxes of the layers that they cross.

const GAP_X = 20;
const GAP_Y = 44;
const LANE = 10; // width of an arrow that passes a layer
const MOST_IN_LAYER = 10; // nodes without children: more go to the next layer, so that the drawing is not too wide

/**
 * Return the place of each node, {x, y}, the path of each arrow, and the size of the drawing.
 * @param {number[][]} parents of each node
 * @param {number} width of a node
 * @param {number[]} heights of the nodes
 * @returns {{places: {x: number, y: number}[], paths: Map<string, string>, width: number, height: number}} paths are by
 *   "parent,child"
 */
export function layered(parents, width, heights) {
  const depth = depths(parents);
  const nodes = parents.map((_, v) => ({ depth: depth[v], width, height: heights[v], above: [], below: [], x: 0 }));
  const chains = new Map();
  parents.forEach((ofChild, child) =>
    ofChild.forEach((parent) => {
      const chain = [parent];
      for (let level = depth[parent] + 1; level < depth[child]; level++) {
        nodes.push({ depth: level, width: LANE, height: 0, above: [], below: [], x: 0 });
        chain.push(nodes.length - 1);
      }
      chain.push(child);
      chain.slice(1).forEach((lower, k) => {
        nodes[lower].above.push(nodes[chain[k]]);
        nodes[chain[k]].below.push(nodes[lower]);
      });
      chains.set(
        `${parent},${child}`,
        chain.map((v) => nodes[v]),
      );
    }),
  );
  const layers = [];
  for (const node of nodes) (layers[node.depth] ??= []).push(node);
  order(layers);
  let top = 10;
  for (const layer of layers) {
    const tallest = Math.max(...layer.map((node) => node.height));
    for (const node of layer) Object.assign(node, { top, bottom: top + (node.width === LANE ? tallest : node.height) });
    top += tallest + GAP_Y;
  }
  const left = Math.min(...nodes.map((node) => node.x - node.width / 2)) - 10;
  for (const node of nodes) node.x -= left;
  return {
    places: parents.map((_, v) => ({ x: nodes[v].x - width / 2, y: nodes[v].top })),
    paths: new Map([...chains].map(([edge, chain]) => [edge, pathOf(chain)])),
    width: Math.max(...nodes.map((node) => node.x + node.width / 2)) + 10,
    height: top - GAP_Y + 10,
  };
}

/** Return the layer of each node: below all its parents, and down to its highest child if it has more children. */
function depths(parents) {
  const children = parents.map(() => []);
  parents.forEach((above, v) => above.forEach((u) => children[u].push(v)));
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
  for (let level = 0; level <= Math.max(...depth); level++) {
    const leaves = depth.flatMap((at, v) => (at === level && parents[v].length && !children[v].length ? [v] : []));
    const n = depth.filter((at) => at === level).length;
    const kept = Math.max(MOST_IN_LAYER - (n - leaves.length), 1);
    leaves.slice(kept).forEach((v) => depth[v]++);
  }
  return depth;
}

/** Order each layer by the mean place of its neighbours in the layer above or below, in turns. */
function order(layers) {
  for (const layer of layers)
    spread(
      layer,
      layer.map(() => 0),
    );
  for (let sweep = 0; sweep < 24; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const goals = new Map(
        layer.map((node) => [node, mean((down ? node.above : node.below).map(({ x }) => x)) ?? node.x]),
      );
      layer.sort((a, b) => goals.get(a) - goals.get(b) || a.x - b.x);
      spread(
        layer,
        layer.map((node) => goals.get(node)),
      );
    }
  }
}

function mean(numbers) {
  return numbers.length ? numbers.reduce((sum, one) => sum + one, 0) / numbers.length : null;
}

/** Put each node of a layer as close to its goal as the nodes beside it allow: an isotonic regression of the goals. */
function spread(layer, goals) {
  const offsets = [0];
  layer.slice(1).forEach((node, k) => offsets.push(offsets[k] + (layer[k].width + node.width) / 2 + GAP_X));
  const groups = [];
  goals.forEach((goal, k) => {
    groups.push({ sum: goal - offsets[k], n: 1 });
    while (groups.length > 1 && groups.at(-2).sum / groups.at(-2).n > groups.at(-1).sum / groups.at(-1).n) {
      const last = groups.pop();
      groups.at(-1).sum += last.sum;
      groups.at(-1).n += last.n;
    }
  });
  let k = 0;
  for (const { sum, n } of groups) for (let i = 0; i < n; i++, k++) layer[k].x = sum / n + offsets[k];
}

/** Return the path of an arrow: curves between layers, straight lines beside the boxes of those it passes. */
function pathOf(chain) {
  let [x, y] = [chain[0].x, chain[0].bottom];
  let path = `M${x.toFixed(1)} ${y.toFixed(1)}`;
  for (const node of chain.slice(1)) {
    const bend = Math.max((node.top - y) / 2, 12);
    path += `C${x.toFixed(1)} ${(y + bend).toFixed(1)} ${node.x.toFixed(1)} ${(node.top - bend).toFixed(1)} ${node.x.toFixed(1)} ${node.top.toFixed(1)}`;
    if (node.width === LANE) path += `V${node.bottom.toFixed(1)}`;
    [x, y] = [node.x, node.bottom];
  }
  return path;
}
