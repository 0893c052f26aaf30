// Read what the page shows, and build the page of its model.

import { load } from "./posteriori.js";
import { ClassifierPage } from "./classifier.js";
import { NetworkPage } from "./network_page.js";

const shown = JSON.parse(document.getElementById("shown").textContent);
const model = load(shown.model);
const page = shown.model.kind === "network" ? new NetworkPage(model, shown) : new ClassifierPage(model, shown);
document.getElementById("page").append(...page.node);
page.ready?.();
