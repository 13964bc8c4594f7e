import {Chart, Curve, DASHES} from "./chart.js";
import {feedOf, plotly} from "./feed.js";
// The page side of the live dashboard. It draws a chart for each metric.

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
  constructor(feed, el, plotly) {
    this.feed = feed;
    this.plotly = plotly;
    this.id = `${Date.now()}-${Math.random()}`;  // crypto.randomUUID is missing in pages that come by plain http
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
    this.groups = element("div", {role: "group", ariaLabel: "groups of metrics"}, "display:flex;flex-wrap:wrap;gap:.4em;margin:.3em 0");
    el.append(this.silence, this.rows, this.controls, this.legend.element, this.nothing, this.place, this.groups);
    this.addControls();
    feed.views.add(this);
    this.watcher = new IntersectionObserver((entries) => {
      this.seen = entries[entries.length - 1].isIntersecting;
      this.tellWhetherSeen();
    });
    this.watcher.observe(el);
    this.hidden = () => this.tellWhetherSeen();
    document.addEventListener("visibilitychange", this.hidden);
    this.leave = () => {
      document.removeEventListener("visibilitychange", this.hidden);
      this.tell({view: this.id, ask: "leave"});
    };
    addEventListener("pagehide", this.leave);
    this.themes = new MutationObserver(() => this.redraw());
    const marks = {attributes: true, attributeFilter: ["data-jp-theme-name", "data-theme", "class"]};
    for (const marked of [document.documentElement, document.body]) this.themes.observe(marked, marks);
    this.attach(el);
    this.heardMs = performance.now();
    this.listener = setInterval(() => this.listen(), 1000);
    if (feed.layout) {
      this.begin(feed.layout);
      this.showRuns(feed.rows);
    } else {
      this.tell({ask: "all", view: this.id});
    }
  }

  // Charts take their colours, font and size from the page, so they are drawn once they are part of it.
  attach(el) {
    this.attached = el.isConnected;
    if (this.attached) this.draw();
    else if (!this.gone) requestAnimationFrame(() => this.attach(el));
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
    this.axis.onchange = () => this.tell({ask: "axis", axis: this.axis.value});
    const range = labelled("smoothing", element("input", {type: "range", min: 0, max: 0.99, step: 0.01, value: 0}));
    range.oninput = () => { this.smoothing = Number(range.value); this.draw(); };
    const log = labelled("log scale", element("input", {type: "checkbox"}));
    log.onchange = () => { this.log = log.checked; this.draw(); };
    const band = labelled("mean over seeds", element("input", {type: "checkbox"}));
    band.onchange = () => this.tell({ask: "band", band: band.checked});
    const pause = element("button", {textContent: "Pause", ariaPressed: "false"});
    pause.onclick = () => {
      this.paused = !this.paused;
      pause.textContent = this.paused ? "Resume" : "Pause";
      pause.ariaPressed = String(this.paused);
      this.tellWhetherSeen();
      if (!this.paused) this.draw();
    };
    this.choice = element("details", {}, "flex-basis:100%");
    this.boxes = element("div", {}, "max-height:14em;overflow:auto;columns:16em");
    this.wanted = element("input", {type: "search", placeholder: "search", ariaLabel: "search metrics"});
    this.wanted.oninput = () => this.find();
    this.choice.append(element("summary", {textContent: "metrics"}), this.wanted, this.boxes);
    this.controls.append(pause, this.choice);
  }

  hear(message) {
    this.heardMs = performance.now();
    this.listen();
    if (message.kind === "stopped") {
      clearInterval(this.listener);
    } else if (message.kind === "layout") {
      this.begin(message);
      this.draw();
    } else if (message.kind === "curves" || message.kind === "whole") {
      if (message.kind === "whole") this.begin(this.feed.layout);
      this.showRuns(message.runs);
      if (!this.paused) this.draw();
      if (message.number) requestAnimationFrame(() => this.tell({view: this.id, painted: message.number}));
    }
  }

  begin(layout) {
    this.layout = layout;
    this.axis.value = layout.axis;
    this.showPanels(layout);
    this.legend.show(layout.lines);
    this.showChoice(layout.metrics, layout.selection);
    this.showGroups(layout.groups, layout.selection);
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
    if (!this.layout || !this.attached) return;
    const look = {horizontal: this.layout.horizontal, log: this.log, smoothing: this.smoothing};
    for (const [number, panel] of this.panels.entries()) panel.draw(this.linesOf(number), look, this.legend.hidden);
    this.nothing.hidden = this.panels.some((panel) => !panel.element.hidden);
  }

  // The numbers of the curves are those of rlnb.curves.stream: a curve for each line, or its band's two edges and its mean.
  linesOf(panel) {
    const {lines, band} = this.layout;
    const curve = (number) => this.feed.curves.get(number) ?? new Curve();
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
        this.tell({ask: "metrics", metrics: wanted});
      };
      label.append(box, ` ${name}`);
      return label;
    });
    this.boxes.replaceChildren(...boxes);
    this.find();
  }

  // A button for each group of further metrics, such as the terms of the reward, which unfolds and folds its charts.
  showGroups(groups, selection) {
    const buttons = groups.map(([name, metrics]) => {
      const isOpen = metrics.every((metric) => selection.includes(metric));
      const text = `${isOpen ? "▾" : "▸"} ${name || "others"} (${metrics.length})`;
      const button = element("button", {textContent: text, ariaExpanded: String(isOpen)}, "cursor:pointer");
      button.onclick = () => {
        const others = selection.filter((metric) => !metrics.includes(metric));
        this.tell({ask: "metrics", metrics: isOpen ? others : [...others, ...metrics]});
      };
      return button;
    });
    this.groups.replaceChildren(...buttons);
  }

  find() {
    for (const label of this.boxes.children)
      label.style.display = label.textContent.toLowerCase().includes(this.wanted.value.toLowerCase()) ? "block" : "none";
  }

  tell(message) {
    this.feed.tell(message);
  }

  dispose() {
    this.gone = true;
    this.feed.views.delete(this);
    document.removeEventListener("visibilitychange", this.hidden);
    removeEventListener("pagehide", this.leave);
    this.watcher.disconnect();
    this.themes.disconnect();
    clearInterval(this.listener);
    this.panels.forEach((panel) => panel.dispose());
    this.tell({view: this.id, ask: "close"});
  }
}

export default {
  initialize({model}) {
    feedOf(model).attach(model);
  },

  render({model, el}) {
    const feed = feedOf(model);
    feed.shown = true;
    const waiting = element("div", {textContent: "The page loads what draws the curves."});
    el.append(waiting);
    let dashboard = null, gone = false;
    plotly.promise.then((drawing) => {
      waiting.remove();
      if (!gone) dashboard = new Dashboard(feed, el, drawing);
    });
    return () => { gone = true; dashboard?.dispose(); };
  },
};
