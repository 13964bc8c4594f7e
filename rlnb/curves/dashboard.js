import {Chart, Curve, DASHES} from "./chart.js";
// The page side of the live dashboard. It keeps the curves and draws a chart for each metric.

// All dashboards of a page share one plotly.js, from the first kernel that sends it.
const plotly = globalThis.__rlnb_plotly ??= (() => {
  const made = {loaded: false};
  made.promise = new Promise((resolve) => { made.resolve = (value) => { made.loaded = true; resolve(value); }; });
  return made;
})();

const load = async (model) => {
  if (plotly.loaded) return plotly.promise;
  const heard = async (message, buffers) => {
    if (message.kind !== "plotly.js" || plotly.loaded) return;
    const unpacked = new Blob([buffers[0]]).stream().pipeThrough(new DecompressionStream("gzip"));
    const code = await new Response(unpacked).text();
    const module = {exports: {}};
    // Pass own module, exports and define, so that the page's require.js does not register plotly.js.
    new Function("module", "exports", "define", code)(module, module.exports, undefined);
    plotly.resolve(module.exports);
  };
  model.on("msg:custom", heard);
  model.send({ask: "plotly.js"});
  const found = await plotly.promise;
  model.off("msg:custom", heard);
  return found;
};

const element = (tag, properties = {}, style = "") => {
  const made = Object.assign(document.createElement(tag), properties);
  made.style.cssText = style;
  return made;
};

const SURE_MS = 4000;
// The kernel sends a message at least every 5 s to a page that is visible.
const SILENCE_MS = 15000;

// A button for each line, which hides and shows it in all charts.
class Legend {
  constructor(redraw) {
    this.element = element("div", {role: "group", ariaLabel: "lines shown"}, "display:flex;flex-wrap:wrap;gap:.3em");
    this.redraw = redraw;
    this.hidden = new Set();
  }

  show(lines) {
    const buttons = lines.length < 2 ? [] : lines.map((line) => {
      const button = element("button", {}, "display:inline-flex;align-items:center;gap:.4em;cursor:pointer");
      button.append(sample(line), line.name);
      const press = () => {
        button.ariaPressed = String(!this.hidden.has(line.name));
        button.style.opacity = this.hidden.has(line.name) ? "0.5" : "";
      };
      button.onclick = () => {
        if (!this.hidden.delete(line.name)) this.hidden.add(line.name);
        press();
        this.redraw();
      };
      press();
      return button;
    });
    this.element.replaceChildren(...buttons);
  }
}

const sample = (line) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
  const set = (node, values) => Object.entries(values).forEach(([name, value]) => node.setAttribute(name, value));
  set(made, {width: 20, height: 8, "aria-hidden": "true"});
  set(stroke, {x2: 20, y1: 4, y2: 4, stroke: line.color, "stroke-width": 2, "stroke-dasharray": DASHES[line.dash] ?? "none"});
  made.append(stroke);
  return made;
};

// The chart of one metric, with its title and its newest value.
class Panel {
  constructor(plotly, metric, panel) {
    this.metric = metric;
    this.panel = panel;
    this.element = element("figure", {hidden: true}, "margin:0;min-width:0");
    this.newest = element("span", {}, "opacity:.7;margin-left:.5em");
    const caption = element("figcaption", {title: panel.help}, "overflow:hidden;text-overflow:ellipsis;white-space:nowrap");
    this.place = element("div", {role: "img", ariaLabel: `Curves of ${panel.title}`}, "height:230px");
    caption.append(panel.title, this.newest);
    this.element.append(caption, this.place);
    this.chart = new Chart(plotly, this.place);
    this.size = new ResizeObserver(() => this.chart.resize());
    this.size.observe(this.place);
  }

  draw(lines, look, hidden) {
    const logged = lines.filter(({curve}) => curve.length);
    if (!logged.length) return;  // the old curves stay until those of a new layout arrive
    this.element.hidden = false;
    const last = lines.length === 1 ? lines[0].curve.y[lines[0].curve.length - 1] : null;
    this.newest.textContent = typeof last === "number" ? last.toPrecision(4) : "";
    const shown = logged.filter(({name}) => !hidden.has(name));
    this.chart.draw(shown, {...look, vertical: this.panel.unit, range: this.panel.range ?? undefined});
  }

  dispose() {
    this.size.disconnect();
    this.chart.dispose();
    this.element.remove();
  }
}

class Row {
  constructor(run, cancel) {
    this.element = element("div", {}, "display:flex;gap:.6em;align-items:center;flex-wrap:wrap");
    this.state = element("span");
    this.track = element("span", {role: "progressbar", ariaLabel: run.name},
      "display:inline-block;width:10em;height:.6em;background:#8884");
    this.done = element("span", {}, `display:block;height:.6em;width:0;background:${run.colour}`);
    this.track.append(this.done);
    this.facts = element("small");
    this.button = element("button", {textContent: "Cancel", title: "Ends the training. Checkpoints are kept."});
    this.button.onclick = () => this.click(cancel);
    this.log = element("details", {open: true, hidden: true});
    this.lines = element("pre", {}, "max-height:14em;overflow:auto;font-size:smaller");
    this.log.append(element("summary", {textContent: "end of the log"}), this.lines);
    this.element.append(element("b", {textContent: run.name}), this.state, this.track, this.facts, this.button, this.log);
  }

  show(run) {
    this.state.textContent = run.state;
    this.track.ariaValueNow = String(run.share);
    this.done.style.width = `${100 * run.share}%`;
    this.facts.textContent = run.facts;
    this.button.hidden = !run.going;
    this.log.hidden = !run.log;
    if (this.lines.textContent !== run.log) this.lines.textContent = run.log;
  }

  click(cancel) {
    if (!this.sure) {
      this.sure = setTimeout(() => { this.sure = null; this.button.textContent = "Cancel"; }, SURE_MS);
      this.button.textContent = "Cancel: click again";
      return;
    }
    clearTimeout(this.sure);
    this.button.disabled = true;
    this.button.textContent = "Cancelling ...";
    cancel();
  }
}

class Dashboard {
  constructor(model, el, plotly) {
    this.model = model;
    this.plotly = plotly;
    this.id = `${Date.now()}-${Math.random()}`;  // crypto.randomUUID is missing in pages that come by plain http
    this.curves = new Map();
    this.byRun = new Map();
    this.paused = false;
    this.smoothing = 0;
    this.log = false;
    this.seen = true;
    this.panels = [];
    this.rows = element("div");
    this.silence = element("p", {hidden: true, role: "status"}, "margin:.3em 0;font-weight:bold");
    this.silence.textContent = "The kernel does not answer: it is busy or has ended. The runs continue. If the kernel has ended, run this cell again.";
    this.nothing = element("p", {textContent: "No curve has been logged yet."}, "margin:.3em 0");
    this.legend = new Legend(() => this.draw());
    this.controls = element("div", {}, "display:flex;flex-wrap:wrap;gap:.4em 1em;align-items:center;margin:.3em 0");
    this.place = element("div", {}, "display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,300px),1fr));gap:.5em");
    el.append(this.silence, this.rows, this.controls, this.legend.element, this.nothing, this.place);
    this.addControls();
    this.heard = (message, buffers) => this.hear(message, buffers);
    model.on("msg:custom", this.heard);
    this.watcher = new IntersectionObserver((entries) => {
      this.seen = entries[entries.length - 1].isIntersecting;
      this.tellWhetherSeen();
    });
    this.watcher.observe(el);
    this.hidden = () => this.tellWhetherSeen();
    document.addEventListener("visibilitychange", this.hidden);
    this.themes = new MutationObserver(() => this.redraw());
    const marks = {attributes: true, attributeFilter: ["data-jp-theme-name", "data-theme", "class"]};
    for (const marked of [document.documentElement, document.body]) this.themes.observe(marked, marks);
    this.heardMs = performance.now();
    this.listener = setInterval(() => this.listen(), 1000);
    model.send({ask: "all", view: this.id});
  }

  get isSeen() {
    return this.seen && !document.hidden && !this.paused;
  }

  tellWhetherSeen() {
    this.heardMs = performance.now();
    this.tell({view: this.id, visible: this.isSeen});
  }

  listen() {
    this.silence.hidden = !this.isSeen || performance.now() - this.heardMs < SILENCE_MS;
  }

  addControls() {
    const labelled = (text, input) => {
      const label = element("label", {}, "display:inline-flex;gap:.4em;align-items:center");
      label.append(text, input);
      this.controls.append(label);
      return input;
    };
    this.axis = labelled("x", element("select", {ariaLabel: "x axis"}));
    for (const [value, text] of [["frames", "frames"], ["iterations", "iterations"], ["wall_time", "wall time"]])
      this.axis.append(element("option", {value, textContent: text}));
    this.axis.onchange = () => this.model.send({ask: "axis", axis: this.axis.value});
    const range = labelled("smoothing", element("input", {type: "range", min: 0, max: 0.99, step: 0.01, value: 0}));
    range.oninput = () => { this.smoothing = Number(range.value); this.draw(); };
    const log = labelled("log scale", element("input", {type: "checkbox"}));
    log.onchange = () => { this.log = log.checked; this.draw(); };
    const band = labelled("mean over seeds", element("input", {type: "checkbox"}));
    band.onchange = () => this.model.send({ask: "band", band: band.checked});
    const pause = element("button", {textContent: "Pause", ariaPressed: "false"});
    pause.onclick = () => {
      this.paused = !this.paused;
      pause.textContent = this.paused ? "Resume" : "Pause";
      pause.ariaPressed = String(this.paused);
      this.tellWhetherSeen();
    };
    this.choice = element("details", {}, "flex-basis:100%");
    this.boxes = element("div", {}, "max-height:14em;overflow:auto;columns:16em");
    this.wanted = element("input", {type: "search", placeholder: "search", ariaLabel: "search metrics"});
    this.wanted.oninput = () => this.find();
    this.choice.append(element("summary", {textContent: "metrics"}), this.wanted, this.boxes);
    this.controls.append(pause, this.choice);
  }

  hear(message, buffers) {
    this.heardMs = performance.now();
    this.listen();
    if (message.kind === "stopped") {
      clearInterval(this.listener);
    } else if (message.kind === "layout") {
      this.curves.clear();
      this.layout = message;
      this.axis.value = message.axis;
      this.showPanels(message);
      this.legend.show(message.lines);
      this.showChoice(message.metrics, message.selection);
      this.draw();
    } else if (message.kind === "curves") {
      this.take(message.changes, buffers[0]);
      this.showRuns(message.runs);
      this.draw();
      requestAnimationFrame(() => this.tell({view: this.id, painted: message.number}));
    }
  }

  take(changes, buffer) {
    if (!changes.length) return;
    const bytes = new Uint8Array(buffer.buffer ?? buffer, buffer.byteOffset ?? 0, buffer.byteLength).slice().buffer;
    const total = changes.reduce((sum, [, , count]) => sum + count, 0);
    const xs = new Float64Array(bytes, 0, total), ys = new Float32Array(bytes, 8 * total, total);
    let at = 0;
    for (const [number, how, count] of changes) {
      const x = Array.from(xs.subarray(at, at + count)), y = Array.from(ys.subarray(at, at + count));
      at += count;
      if (!this.curves.has(number)) this.curves.set(number, new Curve());
      const curve = this.curves.get(number);
      if (how === "set") curve.reset();
      curve.append({x, y});
    }
  }

  // Keep the charts of metrics that stay, with their zoom and their place in the page.
  showPanels({selection, panels}) {
    const kept = new Map(this.panels.map((panel) => [panel.metric, panel]));
    this.panels = panels.map((panel, number) => {
      const old = kept.get(selection[number]);
      kept.delete(selection[number]);
      return old ?? new Panel(this.plotly, selection[number], panel);
    });
    for (const panel of kept.values()) panel.dispose();
    for (const [number, {element}] of this.panels.entries())
      if (this.place.children[number] !== element) this.place.insertBefore(element, this.place.children[number] ?? null);
  }

  redraw() {
    for (const panel of this.panels) panel.chart.forget();
    this.draw();
  }

  draw() {
    if (!this.layout) return;
    const look = {horizontal: this.layout.horizontal, log: this.log, smoothing: this.smoothing};
    for (const [number, panel] of this.panels.entries()) panel.draw(this.linesOf(number), look, this.legend.hidden);
    this.nothing.hidden = this.panels.some((panel) => !panel.element.hidden);
  }

  // The numbers of the curves are those of rlnb.curves.stream: a curve for each line, or its band's two edges and its mean.
  linesOf(panel) {
    const {lines, band} = this.layout;
    const curve = (number) => this.curves.get(number) ?? new Curve();
    return lines.map((line, number) => {
      const place = panel * lines.length + number;
      if (!band) return {...line, curve: curve(place)};
      return {...line, low: curve(3 * place), high: curve(3 * place + 1), curve: curve(3 * place + 2)};
    });
  }

  // Reuse the elements of rows, so that clicks, keyboard focus and open logs survive an update.
  showRuns(runs) {
    for (const run of runs ?? []) {
      if (!this.byRun.has(run.id)) {
        const row = new Row(run, () => this.tell({ask: "cancel", run: run.id}));
        this.byRun.set(run.id, row);
        this.rows.append(row.element);
      }
      this.byRun.get(run.id).show(run);
    }
  }

  showChoice(metrics, selection) {
    const boxes = metrics.map((name) => {
      const label = element("label");
      const box = element("input", {type: "checkbox", checked: selection.includes(name), value: name});
      box.onchange = () => {
        const wanted = [...this.boxes.querySelectorAll("input:checked")].map((input) => input.value);
        this.model.send({ask: "metrics", metrics: wanted});
      };
      label.append(box, ` ${name}`);
      return label;
    });
    this.boxes.replaceChildren(...boxes);
    this.find();
  }

  find() {
    for (const label of this.boxes.children)
      label.style.display = label.textContent.toLowerCase().includes(this.wanted.value.toLowerCase()) ? "block" : "none";
  }

  // A page outlives its kernel. After a kernel restart, sending fails.
  tell(message) {
    try {
      this.model.send(message);
    } catch (error) {
      console.debug("the kernel of the curves is gone", error);
    }
  }

  dispose() {
    this.model.off("msg:custom", this.heard);
    document.removeEventListener("visibilitychange", this.hidden);
    this.watcher.disconnect();
    this.themes.disconnect();
    clearInterval(this.listener);
    this.panels.forEach((panel) => panel.dispose());
    this.tell({view: this.id, ask: "close"});
  }
}

export default {
  render({model, el}) {
    const waiting = element("div", {textContent: "The curves appear as soon as the kernel is free."});
    el.append(waiting);
    let dashboard = null, gone = false;
    load(model).then((drawing) => {
      waiting.remove();
      if (!gone) dashboard = new Dashboard(model, el, drawing);
    });
    return () => { gone = true; dashboard?.dispose(); };
  },
};
