import {Curve} from "./chart.js";
// What a page knows of the watched runs, and how it gets it. Nothing here waits for an answer of the kernel, which may
// be busy for hours: plotly.js comes unasked, and a page that was opened meanwhile is sent the widget and all curves.

// All widgets of a page share one plotly.js, from the first kernel that sends it.
const plotly = globalThis.__rlnb_plotly ??= (() => {
  const made = {loaded: false};
  made.promise = new Promise((resolve) => { made.resolve = (value) => { made.loaded = true; resolve(value); }; });
  return made;
})();

const loadPlotly = async (packed) => {
  if (plotly.loaded || plotly.loading) return;
  plotly.loading = true;
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const code = await new Response(unpacked).text();
  const module = {exports: {}};
  // Pass own module, exports and define, so that the page's require.js does not register plotly.js.
  new Function("module", "exports", "define", code)(module, module.exports, undefined);
  plotly.resolve(module.exports);
};

const WIDGET = "application/vnd.jupyter.widget-view+json";
// A page draws the widget by itself if it knows the widget within this time.
const PLACE_MS = 3000;
const LONGEST_MS = 30000;

// The curves of one call of watch. The kernel opens a widget again for new pages, so a page may have several models of
// the same widget. Only the newest one gets messages.
class Feed {
  constructor() {
    this.views = new Set();
    this.curves = new Map();
    this.rows = [];
    this.layout = null;
    this.shown = false;
    this.news = false;
  }

  attach(model) {
    this.model = model;
    model.on("msg:custom", (message, buffers) => {
      if (this.model === model) this.hear(message, buffers);
    });
    this.ask(1000);
    if (model.get("again")) setTimeout(() => this.place(), PLACE_MS);
  }

  // A page asks too, for it may have missed the message, and repeats this: a request may wait behind a running cell.
  ask(wait) {
    clearTimeout(this.asking);
    if (plotly.loaded) return;
    this.asking = setTimeout(() => {
      if (!plotly.loaded && !plotly.loading) this.tell({ask: "plotly.js"});
      this.ask(Math.min(2 * wait, LONGEST_MS));
    }, wait);
  }

  hear(message, buffers) {
    if (message.kind === "plotly.js") return void loadPlotly(buffers[0]);
    if (message.kind === "ended") return this.end(message.bundle);
    if (message.kind === "whole") {
      // Messages since the last one show that this page gets all curves anyway.
      const known = this.layout && this.news;
      this.news = false;
      if (known) message = {kind: "alive"};
      else {
        this.begin(message.layout);
        this.take(message, buffers[0]);
      }
    } else {
      this.news = true;
      if (message.kind === "layout") this.begin(message);
      if (message.kind === "curves") this.take(message, buffers[0]);
    }
    for (const view of this.views) view.hear(message);
  }

  begin(layout) {
    this.curves.clear();
    this.layout = layout;
  }

  take({changes, runs}, buffer) {
    this.rows = runs ?? this.rows;
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

  // A page outlives its kernel. After a kernel restart, sending fails.
  tell(message) {
    try {
      this.model.send(message);
    } catch (error) {
      console.debug("the kernel of the curves is gone", error);
    }
  }

  // The outputs of the notebook that show the widget, in JupyterLab and Notebook 7.
  *places() {
    for (const cell of this.notebook?.cells ?? []) {
      for (let i = 0; i < (cell.outputs?.length ?? 0); i++)
        if (cell.outputs.get(i).data[WIDGET]?.model_id === this.model.get("model")) yield [cell.outputs, i];
    }
  }

  get notebook() {
    return this.model.widget_manager?.context?.model;
  }

  // Show the curves where the page has not drawn them: the widget was unknown when the page drew the output, or the
  // page has no output, because it has not seen the cell run and the notebook was not saved meanwhile.
  place() {
    if (this.shown || !this.notebook) return;
    const view = {version_major: 2, version_minor: 0, model_id: this.model.get("model")};
    const output = {output_type: "display_data", metadata: {}, data: {[WIDGET]: view, "text/plain": "Curves"}};
    this.change(() => {
      const [found] = [...this.places()];
      if (found) return found[0].set(found[1], output);
      for (const cell of this.notebook.cells) if (cell.id === this.model.get("cell")) cell.outputs?.add(output);
    });
  }

  // The page that runs the cell gets the last picture as an update of its output. Other pages get no such update.
  end(bundle) {
    feeds.delete(this.model.get("watch"));
    clearTimeout(this.asking);
    if (!this.notebook) return;
    this.change(() => {
      for (const [outputs, i] of [...this.places()])
        outputs.set(i, {output_type: "display_data", metadata: {}, data: bundle});
    });
  }

  // Do not ask the user to save what only this page shows: the file may belong to another page.
  change(act) {
    const {dirty} = this.notebook;
    act();
    this.notebook.dirty = dirty;
  }
}

const feeds = globalThis.__rlnb_feeds ??= new Map();

const feedOf = (model) => {
  const id = model.get("watch");
  if (!feeds.has(id)) feeds.set(id, new Feed());
  return feeds.get(id);
};
