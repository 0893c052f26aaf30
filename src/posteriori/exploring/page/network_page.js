// The page of a Bayesian network: all variables with bars, evidence by click, and what follows from it.

import {
  bar,
  button,
  csv,
  download,
  el,
  inParts,
  nameOf,
  nats,
  pageParts,
  percent,
  saveButtons,
  section,
  stateOfAddress,
  table,
  writeAddress,
} from "./dom.js";
import { Graph } from "./graph.js";

/** The page: evidence, and the marginals given it. */
export class NetworkPage {
  constructor(network, { title }) {
    this.network = network;
    this.title = title;
    this.evidence = new Map(); // by name: a state, a Map of likelihoods, or a number
    this.settings = new Map(); // by name: the state or number to which an intervention sets a variable
    this.isHybrid = network.discrete.length < network.variables.length;
    this.evaluateSensitivity = inParts();
    this.graph = new Graph(network, (name, state) => this.toggle(name, state));
    this.node = this.build();
    const state = stateOfAddress();
    this.read(state);
    if (network.byName.get(state?.target)?.states) this.target.value = state.target;
    this.update();
    window.addEventListener("hashchange", () => {
      const state = stateOfAddress();
      if (state?.evidence) {
        this.read(state);
        this.update();
      }
    });
  }

  /** Take the evidence and the settings of a link; those that the network does not know are left out. */
  read(state) {
    const { network } = this;
    const accepted = (values, check) =>
      Object.entries(values ?? {}).flatMap(([name, value]) => {
        try {
          const read = Array.isArray(value) ? new Map(value) : value;
          check(new Map([[name, read]]));
          return [[name, read]];
        } catch {
          return []; // an unknown name or state
        }
      });
    this.settings = new Map(accepted(state?.set, (setting) => network.do(setting)));
    const evidence = accepted(state?.evidence, (finding) => network.findings(finding));
    this.evidence = new Map(evidence.filter(([name]) => !this.settings.has(name)));
  }

  /** Observe a state or number or set it, as the reader chose, or take it back; null is unknown. */
  toggle(name, state) {
    const [mine, others] = this.sets.checked ? [this.settings, this.evidence] : [this.evidence, this.settings];
    others.delete(name);
    if (state === null || mine.get(name) === state) mine.delete(name);
    else mine.set(name, state);
    this.update();
  }

  /** Return whether a variable is observed or set. */
  isKnown(name) {
    return this.evidence.has(name) || this.settings.has(name);
  }

  build() {
    const { network } = this;
    this.summary = el("p", { class: "note", "aria-live": "polite", id: "answer" });
    this.problem = el("p", { class: "problem", role: "alert" });
    this.most = el("div");
    this.sensitivity = el("div");
    this.trails = el("div");
    this.soft = el("div", { class: "soft" });
    const menu = (id, title, onchange, variables = network.discrete, first = 0) => {
      const select = el(
        "select",
        { id, onchange },
        variables.map(({ name }) => el("option", { value: name, title: name }, name)),
      );
      select.selectedIndex = Math.min(first, variables.length - 1);
      return { select, label: el("label", { for: id }, `${title} `, select) };
    };
    const target = menu("target", "Variable", () => this.update());
    const ends = ["From", "to"];
    const [from, to] = ends.map((title, k) => {
      return menu(title.toLowerCase(), title, () => this.showTrails(), network.variables, k);
    });
    const soft = menu("soft", "Variable", () => this.showSoft());
    [this.target, this.from, this.to, this.softVariable] = [target.select, from.select, to.select, soft.select];
    const [hasStates, isDiscrete] = [network.discrete.length > 0, !this.isHybrid];
    const sections = [
      section(
        "network",
        "Network",
        "Click a state to observe it or to set it, and again to take it back. Zoom by the buttons, or by the wheel with Ctrl. A bar is the probability given the evidence, its mark the probability without evidence. The thicker an arrow, the more information it carries (mutual information of parent and child)." +
          (this.isHybrid
            ? " A continuous variable has its mean ± standard deviation and its density (dashed: without evidence); type its number. Arrows at these have one width."
            : ""),
        this.clickChoice(),
        this.summary,
        this.problem,
        el(
          "p",
          { class: "buttons" },
          button("No evidence", () => {
            this.evidence.clear();
            this.settings.clear();
            this.update();
          }),
          this.graph.zoomButtons,
          saveButtons("network", () => this.graph.drawing()),
          button("Save the case (CSV)", () => download("case.csv", "text/csv", csv(this.caseRows()))),
        ),
        this.graph.node,
      ),
      hasStates && section(
        "soft-evidence",
        "Soft evidence",
        "A finding that may be wrong: a likelihood for each state, p(finding | state). Only their ratios matter for the probabilities.",
        el("p", {}, soft.label),
        this.soft,
      ),
      isDiscrete && section(
        "most-probable",
        "Most probable states",
        "The most probable states of all variables together, given the evidence (MPE). They may differ from the most probable states of single variables.",
        this.most,
      ),
      hasStates && section(
        "sensitivity",
        "Best evidence",
        "For one variable: how much the state of each other variable is expected to lower its entropy (mutual information given the evidence), and the lowest and highest probability of its most probable state." +
          (this.isHybrid ? " Continuous variables are not compared." : ""),
        el("p", {}, target.label),
        this.sensitivity,
      ),
      section(
        "trails",
        "Trails",
        "Which trails between two variables are active given the evidence. A trail is blocked by a known variable, or where arrows meet at a variable without known descendants.",
        el("p", {}, from.label, " ", to.label),
        this.trails,
      ),
    ].filter(Boolean);
    const nEdges = network.variables.reduce((sum, { parents }) => sum + parents.length, 0);
    return pageParts(
      this.title,
      `Bayesian network of ${network.variables.length} variables and ${nEdges} edges.`,
      sections,
    );
  }

  /** Return the choice of what a click does, with the difference in words. */
  clickChoice() {
    const choice = (id, checked) => el("input", { type: "radio", name: "click", id, checked });
    this.sets = choice("click-sets", false);
    return el(
      "fieldset",
      { class: "choice" },
      el("legend", {}, "A click"),
      el("label", {}, choice("click-observes", true), " observes"),
      el("label", {}, this.sets, " sets (do)"),
      el(
        "p",
        { class: "note" },
        "An observed state also changes how probable its causes are. A state that is set from outside, do(x), changes only what it causes: the arrows into it are cut.",
      ),
    );
  }

  /** Compute and show everything that follows. */
  update() {
    this.after = this.settings.size ? this.network.do(this.settings) : this.network;
    let found;
    try {
      found = this.after.query(this.evidence);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.problem.textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`; // a variance is 0
      return;
    }
    const impossible = found.logEvidence === -Infinity;
    this.problem.textContent = impossible ? "The evidence has probability 0; take a finding back." : "";
    this.graph.show(found.marginals, this.evidence, this.settings, this.target.value);
    this.summary.textContent = this.caseInWords(found.logEvidence);
    const likelihoods = [...this.evidence].map(([name, finding]) => [
      name,
      finding instanceof Map ? [...finding] : finding,
    ]);
    writeAddress({
      evidence: Object.fromEntries(likelihoods),
      set: this.settings.size ? Object.fromEntries(this.settings) : undefined,
      target: this.target.value,
    });
    if (this.network.discrete.length) this.showSoft();
    if (impossible) return;
    this.graph.showArrows(this.after, this.evidence);
    if (this.network.discrete.length) this.showSensitivity(found.marginals);
    else this.showTrails();
  }

  caseInWords(logEvidence) {
    const doing = [...this.settings].map(([name, state]) => `${name} = ${state}`).join(", ");
    const after = doing ? ` | do(${doing})` : "";
    if (this.evidence.size) return `${this.evidence.size} known; log p(evidence${after}) = ${nats(logEvidence)}`;
    return doing ? `No evidence; do(${doing}).` : "No evidence.";
  }

  showMost() {
    const { states, logProbability } = this.after.mostProbable(this.evidence);
    const rows = this.network.variables.map(({ name, states: all }, v) => [
      nameOf(name),
      nameOf(String(all[states[v]])),
      this.settings.has(name) ? "set" : this.evidence.has(name) ? "known" : "",
    ]);
    this.most.replaceChildren(
      el("p", { class: "note" }, `log p(these states and the evidence) = ${nats(logProbability)}`),
      el(
        "details",
        {},
        el("summary", {}, `${rows.length} variables`),
        table("Most probable states", ["variable", "state", ""], rows, [0, 1, 2]),
      ),
    );
  }

  /** Compute, between frames, what each open variable tells about the target. */
  showSensitivity(marginals) {
    const target = this.network.variable(this.target.value).index;
    const now = marginals[target];
    const state = now.indexOf(Math.max(...now));
    const found = [];
    const others = this.network.discrete.filter(({ name, index }) => index !== target && !this.isKnown(name));
    const steps = [
      () => this.isHybrid || this.showMost(),
      () => this.showTrails(),
      ...others.map((variable) => () => {
        const given = variable.states
          .map((one, k) => {
            const p = marginals[variable.index][k];
            return p > 0
              ? { p, of: this.after.query(new Map([...this.evidence, [variable.name, one]])).marginals[target] }
              : null;
          })
          .filter(Boolean);
        const nats = given.reduce(
          (sum, { p, of }) => sum + p * of.reduce((kl, q, k) => (q > 0 ? kl + q * Math.log(q / now[k]) : kl), 0),
          0,
        );
        const ends = given.map(({ of }) => of[state]);
        found.push({ variable, nats: Math.max(nats, 0), low: Math.min(...ends), high: Math.max(...ends) });
      }),
    ];
    this.graph.node.setAttribute("aria-busy", "true");
    this.evaluateSensitivity(steps, () => {
      this.graph.node.removeAttribute("aria-busy");
      found.sort((a, b) => b.nats - a.nats);
      const most = Math.max(...found.map(({ nats }) => nats), 1e-12);
      const event = () => nameOf(`p(${this.target.value} = ${this.network.variables[target].states[state]})`);
      const rows = found
        .slice(0, 15)
        .map(({ variable, nats, low, high }) => [
          nameOf(variable.name),
          nats.toFixed(4),
          bar(nats / most),
          percent(low),
          percent(high),
        ]);
      this.sensitivity.replaceChildren(
        this.isKnown(this.target.value)
          ? el("p", { class: "note" }, "The variable is known.")
          : !rows.length
          ? el("p", { class: "note" }, "No other variable with states is open.")
          : table(
              `Evidence about ${this.target.value}`,
              ["variable", "nats", "", ["lowest ", event()], ["highest ", event()]],
              rows,
            ),
      );
    });
  }

  showTrails() {
    const [from, to] = [this.from.value, this.to.value];
    if (from === to) return this.trails.replaceChildren(el("p", { class: "note" }, "Choose two variables."));
    const known = [...this.evidence.keys(), ...this.settings.keys()]; // what is set does not vary
    const given = known.filter((name) => name !== from && name !== to);
    const { variables } = this.after;
    const separated = this.after.dSeparated(from, to, given);
    const rows = this.after.trails(from, to, given).map(({ nodes, forward, active, blocks }) => {
      const written = nodes
        .map((v, s) => (s ? `${forward[s - 1] ? " → " : " ← "}${variables[v].name}` : variables[v].name))
        .join("");
      const why = blocks.map(
        ({ node, collider }) =>
          `${variables[node].name} ${collider ? "and its descendants are not known" : "is known"}`,
      );
      return [written, active ? "active" : "blocked", why.join("; ")];
    });
    const words = given.length ? `given ${given.join(", ")}` : "without evidence";
    return this.trails.replaceChildren(
      el(
        "p",
        {},
        `${from} and ${to} are ${separated ? "independent" : "dependent"} ${words}: ${separated ? "every trail is blocked" : "a trail is active"}.`,
      ),
      rows.length
        ? table("Shortest trails", ["trail", "", "blocked because"], rows, [0, 1, 2])
        : el("p", { class: "note" }, "No trail joins them."),
    );
  }

  showSoft() {
    const { name, states } = this.network.variable(this.softVariable.value);
    const finding = this.settings.get(name) ?? this.evidence.get(name);
    const inputs = states.map((state, k) => {
      const value = finding instanceof Map ? finding.get(state) : finding === undefined ? 1 : Number(finding === state);
      return el("input", { type: "number", min: 0, step: "any", id: `soft-${k}`, value });
    });
    const read = () => {
      const likelihood = new Map(states.map((state, k) => [state, Number(inputs[k].value)]));
      const weights = [...likelihood.values()];
      if (weights.some((weight) => !(weight >= 0)) || !weights.some(Boolean)) return;
      this.settings.delete(name);
      if (weights.every((weight) => weight === weights[0])) this.evidence.delete(name);
      else this.evidence.set(name, likelihood);
      this.update();
    };
    inputs.forEach((input) => input.addEventListener("change", read));
    if (this.soft.contains(document.activeElement)) return;
    this.soft.replaceChildren(
      ...states.flatMap((state, k) => [el("label", { for: `soft-${k}`, title: String(state) }, String(state)), inputs[k]]),
    );
  }

  caseRows() {
    const names = this.network.variables.map(({ name }) => name);
    const cells = names.map((name) => (this.evidence.get(name) instanceof Map ? "" : (this.evidence.get(name) ?? "")));
    return [names, cells];
  }
}
