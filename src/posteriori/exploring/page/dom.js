// Elements of the page. Text is set as text, never as markup, so that no name or cell can become an element.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Return an element with attributes and children. A function in `on…` listens to an event; null and false attributes
 * are left out; strings and numbers among the children are text.
 */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Return an element of a drawing. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/**
 * Return the parts of a page: a header with sentences on the model, buttons that scroll to the sections, and these. In a
 * frame of another page it is the first section alone.
 */
export function pageParts(title, lead, sections, verdict = []) {
  if (document.body.classList.contains("embed")) return [el("main", {}, sections[0])];
  const links = sections.map((one) => {
    const heading = one.querySelector("h2");
    const scroll = () => heading.scrollIntoView({ behavior: "smooth" });
    return el("li", {}, el("button", { type: "button", class: "link", onclick: scroll }, heading.textContent));
  });
  return [
    el(
      "header",
      {},
      el("h1", {}, title),
      verdict.length ? el("p", { id: "verdict" }, verdict.join(" ")) : null,
      el("p", {}, lead, " Everything is computed in this page; nothing is sent."),
    ),
    links.length > 1 ? el("nav", { "aria-label": "Contents" }, el("ul", {}, links)) : null,
    el("main", {}, sections),
  ].filter(Boolean);
}

/** Return a name that is cut where there is no room for it; the whole name is its title. */
export function nameOf(text) {
  return el("span", { class: "name-cut", title: text }, text);
}

/** Return a button. */
export function button(title, onclick) {
  return el("button", { type: "button", onclick }, title);
}

/** Return a section with a heading and a lead paragraph, as the report has them. */
export function section(anchor, title, lead, ...contents) {
  return el(
    "section",
    { "aria-labelledby": anchor },
    el("h2", { id: anchor }, title),
    el("p", { class: "lead" }, lead),
    contents,
  );
}

/** Return a table in a box that scrolls; the first cell of each row is its header. */
export function table(caption, head, rows, text = [0]) {
  const cell = (content, at) =>
    el(
      at === 0 ? "th" : "td",
      { scope: at === 0 ? "row" : null, class: at > 0 && text.includes(at) ? "text" : null },
      content,
    );
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el(
      "table",
      {},
      el("caption", {}, caption),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          head.map((title, at) => el("th", { scope: "col", class: text.includes(at) ? "text" : null }, title)),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((row) => el("tr", {}, row.map(cell))),
      ),
    ),
  );
}

/** Return a bar that fills a share of its cell; screen readers read the number beside it. */
export function bar(share, kind = "") {
  const fill = el("i");
  setShare(fill, share);
  return el("span", { class: `bar ${kind}`.trim(), "aria-hidden": "true" }, fill);
}

/** Set the width of the fill of a bar. */
export function setShare(fill, share) {
  fill.style.width = `${100 * Math.min(Math.max(share || 0, 0), 1)}%`;
}

/** Return a bar from the middle: to the right for a positive share, to the left for a negative one. */
export function oddsBar(share) {
  const fill = el("i", { class: share < 0 ? "against" : null });
  const width = 50 * Math.min(Math.abs(share || 0), 1);
  fill.style.left = `${share < 0 ? 50 - width : 50}%`;
  fill.style.right = "auto";
  fill.style.width = `${width}%`;
  return el("span", { class: "bar odds", "aria-hidden": "true" }, fill);
}

/** Return a probability in percent, with digits that tell it from 0 and 1. */
export function percent(p) {
  if (Number.isNaN(p)) return "–";
  if (p > 0 && p < 0.0005) return p < 1e-5 ? `${p.toExponential(1)}` : `${(100 * p).toPrecision(1)} %`;
  if (p < 1 && p > 0.9995) return "> 99.9 %";
  return `${(100 * p).toFixed(1)} %`;
}

/** Return a number with about four digits, or as many as are wanted. */
export function short(x, digits = 4) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const magnitude = Math.abs(x);
  const written =
    magnitude !== 0 && (magnitude < 1e-3 || magnitude >= 1e6) ? x.toExponential(2) : String(Number(x.toPrecision(digits)));
  return written.replace("-", "−");
}

/** Return a log-probability in nats; that of a certain event is 0, whatever was lost by rounding. */
export function nats(x) {
  return `${short(Math.abs(x) < 1e-12 ? 0 : x)} nats`;
}

/** Return a number with its sign and two decimals. */
export function signed(x) {
  if (!Number.isFinite(x)) return short(x);
  return `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;
}

/** Return a cell as text. */
export function shownCell(cell, digits = 4) {
  if (cell === null || cell === undefined) return "unknown";
  if (typeof cell === "number") return Number.isSafeInteger(cell) ? String(cell).replace("-", "−") : short(cell, digits);
  return typeof cell === "object"
    ? Object.entries(cell)
        .map(([word, n]) => `${word} ${n}`)
        .join(", ")
    : String(cell);
}

/** Offer a file for download. */
export function download(name, type, content) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** Return a drawing as the text of an SVG file. */
export function drawingText(drawing) {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(drawing)}`;
}

/** Return buttons that save the drawing that a function returns. */
export function saveButtons(name, drawing) {
  const save = (kind) => () => saveDrawing(drawing(), name, kind);
  return ["svg", "png"].map((kind) => button(`Save as ${kind.toUpperCase()}`, save(kind)));
}

/** Download a drawing as SVG or, at twice its size, as PNG. */
function saveDrawing(drawing, name, kind) {
  const text = drawingText(drawing);
  if (kind === "svg") {
    download(`${name}.svg`, "image/svg+xml", text);
    return;
  }
  const picture = new Image();
  picture.onload = () => {
    const canvas = el("canvas", { width: 2 * picture.width, height: 2 * picture.height });
    const context = canvas.getContext("2d");
    context.fillStyle = "#fff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(`${name}.png`, "image/png", blob));
  };
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

/** Return rows of cells as CSV. */
export function csv(rows) {
  const quoted = (cell) => {
    const text = cell === null || cell === undefined ? "" : String(cell);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(quoted).join(",") + "\r\n").join("");
}

/** Return the state that the address holds, or null. */
export function stateOfAddress() {
  try {
    return JSON.parse(decodeURIComponent(location.hash.slice(1)));
  } catch {
    return null;
  }
}

let addressTimer = 0;

/** Write a state into the address soon, so that the page can be shared as a link with this case. */
export function writeAddress(state) {
  clearTimeout(addressTimer); // browsers refuse a page that changes its address for each step of a slider
  addressTimer = setTimeout(() => {
    const hash = `#${encodeURIComponent(JSON.stringify(state))}`;
    try {
      if (hash !== location.hash) history.replaceState(null, "", hash);
    } catch {
      // in a frame that may not change its history the link is lost, and nothing else
    }
  }, 150);
}

/**
 * Return a function that runs work in small parts between frames, and drops what an earlier call has not done. The
 * sections that wait for it say so until it is finished.
 */
export function inParts() {
  let [turn, waiting] = [0, []];
  const mark = (sections) => {
    waiting.forEach((one) => one.removeAttribute("aria-busy"));
    waiting = sections.filter(Boolean);
    waiting.forEach((one) => one.setAttribute("aria-busy", "true"));
  };
  return (steps, finished, sections = []) => {
    const mine = ++turn;
    mark(sections);
    const run = () => {
      if (mine !== turn) return;
      const until = performance.now() + 10;
      while (steps.length && performance.now() < until) steps.shift()();
      if (steps.length) {
        setTimeout(run, 0);
        return;
      }
      mark([]);
      finished();
    };
    setTimeout(run, 0);
  };
}
