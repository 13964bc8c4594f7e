// One chart of metric curves. Both the dashboard in a notebook's cell and the JupyterLab extension draw with it.
// This ES module has no imports. The extension bundles it; for a cell, live.py puts it in front of dashboard.js.

/**
 * The part of plotly.js that is used here.
 * @typedef {object} Plotly
 * @property {(node: HTMLElement, traces: readonly object[], layout: object, config: object) => Promise<unknown>} react
 * @property {(node: HTMLElement, points: {x: number[][], y: (number | null)[][]}, traces: number[]) => Promise<unknown>} extendTraces
 * @property {(node: HTMLElement) => void} purge
 * @property {{resize(node: HTMLElement): Promise<unknown> | undefined}} Plots
 */

/**
 * @typedef {object} Points
 * @property {readonly number[]} x
 * @property {readonly (number | null)[]} y null where a value is not finite
 */

/**
 * A line of a chart: the curve of a run, or the mean over several runs with its band.
 * @typedef {object} Line
 * @property {string} name
 * @property {string} color any colour of CSS
 * @property {string} dash Plotly's name of a dash: "solid", "dash", "dot" or "dashdot"
 * @property {Curve} curve
 * @property {Curve} [low] lower edge of the band
 * @property {Curve} [high] upper edge of the band
 */

/**
 * What a chart shows beside its lines.
 * @typedef {object} Look
 * @property {string} horizontal title of the x axis
 * @property {string} [vertical] title of the y axis
 * @property {readonly number[]} [range] limits of the y axis; by default those of the values
 * @property {boolean} [log] whether the y axis is logarithmic
 * @property {number} [smoothing] weight of the older values, 0 to 0.99
 */

/**
 * SVG's dash arrays by Plotly's names of dashes.
 * @type {Readonly<Record<string, string>>}
 */
export const DASHES = { dash: '6 3', dot: '2 2', dashdot: '6 2 2 2' };

/** Maximum number of points of a curve, about twice as many as a chart has pixels. */
const LIMIT = 4000;
/** The points of a shorter curve are marked, since a few points make hardly a line. */
const FEW = 30;
const CONFIG = {
  displaylogo: false,
  displayModeBar: 'hover',
  // Nothing is ever sent to Plotly's servers.
  plotlyServerURL: '',
  showSendToCloud: false,
  modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d']
};

/** One growing curve. Within an epoch points are only appended; after a new epoch the whole curve has to be redrawn. */
export class Curve {
  /** @param {number} limit maximum number of points */
  constructor(limit = LIMIT) {
    this.limit = limit;
    /** @type {number[]} */
    this.x = [];
    /** @type {(number | null)[]} */
    this.y = [];
    this.epoch = 0;
    /** The least and the greatest value since the last reset, including points that were thinned out. */
    this.low = Infinity;
    this.high = -Infinity;
  }

  get length() {
    return this.x.length;
  }

  reset() {
    this.x = [];
    this.y = [];
    this.low = Infinity;
    this.high = -Infinity;
    this.epoch += 1;
  }

  /** @param {Points} points */
  append({ x, y }) {
    const count = Math.min(x.length, y.length);
    for (let i = 0; i < count; i++) {
      const value = y[i] ?? null;
      this.x.push(x[i] ?? NaN);
      this.y.push(value);
      if (value !== null) {
        this.low = Math.min(this.low, value);
        this.high = Math.max(this.high, value);
      }
    }
    while (this.length > this.limit) {
      this.thin();
    }
  }

  /** Keeps of each four points in the older half the least and the greatest: peaks remain, and the newer half is exact. */
  thin() {
    const half = Math.floor(this.length / 2);
    /** @type {number[]} */
    const kept = [];
    for (let i = 0; i < half; i += 4) {
      kept.push(...this.extremes(i, Math.min(i + 4, half)));
    }
    this.x = [...kept.map(i => this.x[i] ?? NaN), ...this.x.slice(half)];
    this.y = [...kept.map(i => this.y[i] ?? null), ...this.y.slice(half)];
    this.epoch += 1;
  }

  /**
   * @param {number} from
   * @param {number} to
   * @returns {number[]} the places of the least and the greatest value, in order
   */
  extremes(from, to) {
    let low = from;
    let high = from;
    for (let i = from + 1; i < to; i++) {
      const value = this.y[i] ?? NaN;
      if (!(value >= (this.y[low] ?? NaN))) {
        low = i;
      }
      if (!(value <= (this.y[high] ?? NaN))) {
        high = i;
      }
    }
    return low === high ? [low] : [Math.min(low, high), Math.max(low, high)];
  }
}

/**
 * Exponential smoothing with bias correction at the beginning, as in TensorBoard.
 * @param {readonly (number | null)[]} values
 * @param {number} weight weight of the older values, at least 0 and less than 1
 * @returns {(number | null)[]}
 */
export function smoothed(values, weight) {
  let last = 0;
  let count = 0;
  return values.map(value => {
    if (value === null) {
      return null;
    }
    last = last * weight + (1 - weight) * value;
    count += 1;
    return last / (1 - weight ** count);
  });
}

/** One metric's curves in a node of the page. Plotly gets only the new points of curves that are drawn already. */
export class Chart {
  /**
   * @param {Plotly} plotly
   * @param {HTMLElement} node
   */
  constructor(plotly, node) {
    this.plotly = plotly;
    this.node = node;
    /** @type {{curve: Curve, epoch: number, length: number}[]} the curves in the order of their traces */
    this.drawn = [];
    this.look = '';
  }

  /**
   * @param {readonly Line[]} lines
   * @param {Look} look
   */
  draw(lines, look) {
    const curves = lines.flatMap(curvesOf);
    const range = look.log ? null : (look.range ?? flatRange(curves));
    const now = JSON.stringify([look, range, lines.map(({ name, color, dash }) => [name, color, dash])]);
    const grown = curves.length === this.drawn.length && curves.every((curve, i) => continues(this.drawn[i], curve));
    if (grown && now === this.look && !look.smoothing) {
      this.extend(curves);
    } else {
      this.redraw(lines, look, range);
      this.drawn = curves.map(curve => ({ curve, epoch: curve.epoch, length: curve.length }));
      this.look = now;
    }
  }

  /** Makes the next `draw` redraw everything, for example in the colours of a new theme. */
  forget() {
    this.look = '';
  }

  resize() {
    if (this.look && this.node.offsetParent !== null) {
      void this.plotly.Plots.resize(this.node);
    }
  }

  dispose() {
    this.plotly.purge(this.node);
    this.drawn = [];
    this.look = '';
  }

  /** @param {readonly Curve[]} curves */
  extend(curves) {
    /** @type {number[]} */
    const traces = [];
    /** @type {{x: number[][], y: (number | null)[][]}} */
    const fresh = { x: [], y: [] };
    for (const [i, curve] of curves.entries()) {
      const drawn = this.drawn[i];
      if (drawn && curve.length > drawn.length) {
        traces.push(i);
        fresh.x.push(curve.x.slice(drawn.length));
        fresh.y.push(curve.y.slice(drawn.length));
        drawn.length = curve.length;
      }
    }
    if (traces.length > 0) {
      void this.plotly.extendTraces(this.node, fresh, traces);
    }
  }

  /**
   * @param {readonly Line[]} lines
   * @param {Look} look
   * @param {readonly number[] | null} range limits of the y axis; null for those of the values
   */
  redraw(lines, look, range) {
    const theme = themeOf(this.node);
    const axis = { gridcolor: theme.grid, zerolinecolor: theme.grid, linecolor: theme.grid, automargin: true };
    const spike = { spikecolor: theme.faint, spikethickness: 1, spikedash: 'solid' };
    const layout = {
      autosize: true,
      height: this.node.clientHeight || 200,
      margin: { l: 44, r: 10, t: 6, b: 34 },
      // Plotly draws a halo in the background's colour around a spike; for a transparent background the halo is white.
      paper_bgcolor: theme.paper,
      plot_bgcolor: theme.paper,
      font: { family: theme.font, size: 11, color: theme.ink },
      showlegend: false,
      hovermode: 'x unified',
      hoverlabel: { bgcolor: theme.paper, namelength: -1 },
      // As long as `uirevision` is the same, the zoom stays when new points arrive.
      uirevision: `${look.horizontal} ${look.log ? 'log' : 'linear'}`,
      xaxis: { ...axis, ...spike, title: title(look.horizontal), exponentformat: 'SI', rangemode: 'tozero' },
      yaxis: {
        ...axis,
        title: title(look.vertical ?? ''),
        exponentformat: 'e',
        type: look.log ? 'log' : 'linear',
        ...(range ? { range } : { autorange: true })
      }
    };
    const traces = lines.flatMap(line => tracesOf({ ...line, color: visible(line.color, theme) }, look.smoothing ?? 0));
    void this.plotly.react(this.node, traces, layout, CONFIG);
  }
}

/** @param {string} text */
function title(text) {
  return { text, standoff: 4 };
}

/**
 * @param {Line} line
 * @returns {Curve[]} the curves of the line in the order of its traces
 */
function curvesOf({ low, high, curve }) {
  return low && high ? [low, high, curve] : [curve];
}

/**
 * @param {Line} line
 * @param {number} smoothing
 * @returns {object[]} Plotly's traces of the line
 */
function tracesOf({ name, color, dash, curve, low, high }, smoothing) {
  const base = { type: 'scatter', mode: curve.length > FEW ? 'lines' : 'lines+markers', marker: { size: 4 } };
  const style = { ...base, name: escaped(name), line: { color, dash, width: 1.8 }, hovertemplate: '%{y:.4g}' };
  const quiet = { hoverinfo: 'skip', hovertemplate: null };
  const edge = { ...style, ...quiet, mode: 'lines', line: { color, width: 0 } };
  const traces = [];
  if (low && high) {
    traces.push({ ...edge, ...points(low) }, { ...edge, ...points(high), fill: 'tonexty' });
  }
  if (smoothing) {
    traces.push({ ...style, ...quiet, ...points(curve), opacity: 0.25 });
  }
  traces.push({ ...style, ...points(curve), ...(smoothing ? { y: smoothed(curve.y, smoothing) } : {}) });
  return traces;
}

/** @param {Curve} curve a copy of its points, since Plotly appends to the arrays that it gets */
function points({ x, y }) {
  return { x: x.slice(), y: y.slice() };
}

/**
 * Returns limits for constant curves. Plotly's own are 2 apart, so that a learning rate of 3e-4 looks like 0.
 * @param {readonly Curve[]} curves
 * @returns {readonly number[] | null}
 */
function flatRange(curves) {
  const low = Math.min(...curves.map(curve => curve.low));
  const high = Math.max(...curves.map(curve => curve.high));
  return low === high && low !== 0 ? [low - Math.abs(low) / 10, low + Math.abs(low) / 10] : null;
}

/**
 * Whether new points can be appended to a drawn curve, which keeps its markers or its lack of them.
 * @param {{curve: Curve, epoch: number, length: number} | undefined} drawn
 * @param {Curve} curve
 */
function continues(drawn, curve) {
  const same = drawn !== undefined && drawn.curve === curve && drawn.epoch === curve.epoch;
  return same && drawn.length > 0 && drawn.length > FEW === curve.length > FEW;
}

/**
 * Escapes the name of a trace, in which Plotly interprets markup. The titles of the axes are rlnb's own texts.
 * @param {string} name
 */
function escaped(name) {
  return name.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

/**
 * The colours and the font of the page around a node, in any front end.
 * @param {HTMLElement} node
 */
export function themeOf(node) {
  const style = getComputedStyle(node);
  const [red, green, blue] = components(style.color);
  /** @param {number} opacity */
  const ink = opacity => `rgba(${red}, ${green}, ${blue}, ${opacity})`;
  return { ink: ink(1), faint: ink(0.5), grid: ink(0.15), paper: backgroundOf(node), font: style.fontFamily };
}

/**
 * @param {HTMLElement} node
 * @returns {string} the colour behind the node: that of the nearest ancestor whose background is opaque
 */
function backgroundOf(node) {
  for (let at = /** @type {HTMLElement | null} */ (node); at; at = at.parentElement) {
    const [red, green, blue, opacity] = components(getComputedStyle(at).backgroundColor);
    if (opacity === 255) {
      return `rgb(${red}, ${green}, ${blue})`;
    }
  }
  return 'white';
}

/**
 * Returns the colour of a line, or that of the text if the line would have the colour of the background.
 * @param {string} color
 * @param {{ink: string, paper: string}} theme
 */
function visible(color, theme) {
  const [line, paper] = [components(color), components(theme.paper)];
  return line.every((value, i) => Math.abs(value - (paper[i] ?? 0)) < 32) ? theme.ink : color;
}

/** @type {CanvasRenderingContext2D | null} */
let pixel = null;

/**
 * @param {string} color any colour of CSS, such as `oklch(...)`, which Plotly does not read
 * @returns {number[]} red, green, blue and opacity, 0 to 255
 */
function components(color) {
  pixel ??= Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', {
    willReadFrequently: true
  });
  if (!pixel) {
    return [0, 0, 0, 255];
  }
  pixel.clearRect(0, 0, 1, 1);
  pixel.fillStyle = color;
  pixel.fillRect(0, 0, 1, 1);
  return [...pixel.getImageData(0, 0, 1, 1).data];
}
