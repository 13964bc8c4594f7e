// The page side of the live dashboard. It keeps the curves and draws them with plotly.js.

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

// Exponential smoothing with bias correction at the beginning, as in TensorBoard.
const smoothed = (values, weight) => {
  let last = 0, count = 0;
  return values.map((value) => {
    last = last * weight + (1 - weight) * value;
    count += 1;
    return last / (1 - weight ** count);
  });
};

const SURE_MS = 4000;

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
    this.id = crypto.randomUUID();
    this.curves = new Map();
    this.byRun = new Map();
    this.paused = false;
    this.smoothing = 0;
    this.log = false;
    this.seen = true;
    this.rows = element("div");
    this.controls = element("div", {}, "display:flex;flex-wrap:wrap;gap:.4em 1em;align-items:center;margin:.3em 0");
    this.place = element("div");
    el.append(this.rows, this.controls, this.place);
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
    this.themes = new MutationObserver(() => this.draw());
    this.themes.observe(document.body, {attributes: true, attributeFilter: ["data-jp-theme-name", "class"]});
    model.send({ask: "all", view: this.id});
  }

  tellWhetherSeen() {
    this.tell({view: this.id, visible: this.seen && !document.hidden && !this.paused});
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
    if (message.kind === "layout") {
      this.curves.clear();
      this.layout = message.layout;
      this.traces = message.traces;
      this.axis.value = message.axis;
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
      const old = this.curves.get(number);
      this.curves.set(number, how === "add" && old ? {x: old.x.concat(x), y: old.y.concat(y)} : {x, y});
    }
  }

  draw() {
    if (!this.layout) return;
    const style = getComputedStyle(this.place);
    const ink = style.getPropertyValue("--jp-ui-font-color1").trim() || style.color;
    const paper = style.getPropertyValue("--jp-layout-color0").trim() || "white";
    const lines = style.getPropertyValue("--jp-border-color2").trim() || "#ddd";
    const layout = structuredClone(this.layout);
    Object.assign(layout, {paper_bgcolor: paper, plot_bgcolor: paper, font: {...layout.font, color: ink}});
    for (const key of Object.keys(layout).filter((name) => /^[xy]axis/.test(name))) {
      Object.assign(layout[key], {gridcolor: lines, linecolor: ink, zerolinecolor: lines});
      if (this.log && key.startsWith("y")) { layout[key].type = "log"; delete layout[key].range; }
    }
    const data = [];
    for (const [number, trace] of this.traces.entries()) {
      const curve = this.curves.get(trace.curve ?? number);
      if (!curve || !curve.x.length) continue;
      const few = curve.x.length <= 30;
      const shown = {...trace, x: curve.x, y: curve.y, mode: few ? "lines+markers" : "lines"};
      if (this.smoothing && !trace.fill) {
        data.push({...shown, opacity: 0.25, showlegend: false, hoverinfo: "skip"});
        shown.y = smoothed(curve.y, this.smoothing);
      }
      data.push(shown);
    }
    this.plotly.react(this.place, data, layout, {displaylogo: false, responsive: true});
  }

  // Reuse the elements of rows, so that clicks, keyboard focus and open logs survive an update.
  showRuns(runs) {
    for (const run of runs ?? []) {
      if (!this.byRun.has(run.id)) {
        const row = new Row(run, () => this.model.send({ask: "cancel", run: run.id}));
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
    this.plotly.purge(this.place);
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
