// Read what the page shows, and build the page of its model.

import { load } from "./posteriori.js";
import { ClassifierPage } from "./classifier.js";
import { JointPage } from "./joint_page.js";
import { NetworkPage } from "./network_page.js";
import { NumberPage } from "./number_page.js";

/** Return what the page shows: JSON, or JSON that is compressed because it is long. */
async function shownOf(element) {
  if (element.type === "application/json") return JSON.parse(element.textContent);
  const packed = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(unpacked).text());
}

const shown = await shownOf(document.getElementById("shown"));
const model = load(shown.model);
const pages = { joint: JointPage, network: NetworkPage, regressor: NumberPage };
const page = new (pages[shown.model.kind] ?? ClassifierPage)(model, shown);
document.getElementById("page").append(...page.node);
