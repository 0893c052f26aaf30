"""Engines of JavaScript: Node.js, and headless Chromium. Their tests are skipped where these are not installed."""

import html
import json
import os
import re
import shutil
import subprocess

import pytest

from posteriori.javascript import javascript_evaluator

# Evaluates every row by every model. Numbers that JSON cannot write become strings.
DRIVER = """
const plain = (value) => value === null ? null : Array.from(value, (x) => Number.isFinite(x) ? x : String(x));
const oneOf = (value) => plain([value])[0];
function evaluated({ file, rows }) {
  const model = load(JSON.stringify(file));
  return rows.map((row) => {
    const { weighted, bias, factors } = model.explain(row);
    const density = model.logDensity(row);
    return {
      log_posterior: plain(model.logPosterior(row)),
      log_density: density === null ? null : oneOf(density),
      weighted,
      bias: plain(bias),
      factors: factors.map(({ log }) => plain(log)),
      values: factors.map(({ value }) => value),
      names: factors.map(({ column }) => column),
      score: plain(Object.values(model.score(row))),
      unseen: model.unseen(row),
    };
  });
}
"""

_CHROMES = (r"Google\Chrome", "Chromium")  # folders of programs on Windows


def node():
    """Return the path of Node.js; skip the test if it is not installed."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node.js is not installed (Debian's package nodejs)")
    return found


def in_node(script, given, folder):
    """Run a module in Node.js with `load` of the evaluator and `given` in scope; return the value of `result`."""
    (folder / "posteriori.mjs").write_text(javascript_evaluator(), encoding="utf-8")
    (folder / "given.json").write_text(json.dumps(given), encoding="utf-8")
    main = f"""
import {{ readFileSync, writeFileSync }} from "node:fs";
import {{ load }} from "./posteriori.mjs";
const given = JSON.parse(readFileSync(new URL("given.json", import.meta.url)));
{script}
writeFileSync(new URL("result.json", import.meta.url), JSON.stringify(result));
"""
    (folder / "main.mjs").write_text(main, encoding="utf-8")
    done = subprocess.run([node(), "main.mjs"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))


def chromium():
    """Return the path of Chromium or Chrome; skip the test if neither is installed."""
    names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
    # On macOS and Windows browsers are not on PATH.
    names += [f"/Applications/{name}.app/Contents/MacOS/{name}" for name in ("Google Chrome", "Chromium")]
    programs = [os.environ.get(name) for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")]
    names += [rf"{folder}\{name}\Application\chrome.exe" for folder in programs if folder for name in _CHROMES]
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip("no Chromium is installed (Debian's package chromium has one)")
    return browser


def in_chromium(script, given, folder):
    """Run a module in a page of headless Chromium that has the evaluator; return the value of `result`."""
    text = json.dumps(given).replace("<", "\\u003c")
    page = folder / "page.html"
    module = f"{javascript_evaluator()}\nconst given = {text};\n{script}\n"
    module += 'document.getElementById("out").textContent = JSON.stringify(result);'
    page.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><pre id="out">nothing</pre><script type="module">{module}</script>',
        encoding="utf-8",
    )
    command = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}"]
    command += ["--virtual-time-budget=30000", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr
    return json.loads(html.unescape(found[1]))
