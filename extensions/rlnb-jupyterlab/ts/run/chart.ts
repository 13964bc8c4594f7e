import type { Plotly, Trace } from 'plotly.js-basic-dist-min';

import type { Curve } from '../model/curves';
import { lineStyle, paletteOf } from '../parts/palette';

export interface Line {
  readonly name: string;
  readonly curve: Curve;
  /** Index of the run among the compared runs, which gives it the same colour in every chart. */
  readonly place: number;
}

interface Drawn {
  readonly curve: Curve;
  readonly epoch: number;
  length: number;
}

const CONFIG = {
  displaylogo: false,
  displayModeBar: 'hover',
  // Nothing is ever sent to Plotly's servers.
  plotlyServerURL: '',
  showSendToCloud: false,
  modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d']
};

/** One metric's curves in a node of the page. Plotly gets only the new points of curves that are drawn already. */
export class Chart {
  constructor(
    private readonly _plotly: Plotly,
    private readonly _node: HTMLElement,
    private readonly _horizontal: string
  ) {}

  draw(lines: readonly Line[]): void {
    const grown = lines.length === this._drawn.length && lines.every(({ curve }, i) => continues(this._drawn[i]!, curve));
    if (grown && flatRange(lines)?.join() === this._flat?.join()) {
      this._extend(lines);
    } else {
      this._redraw(lines);
    }
  }

  /** Makes the next `draw` redraw everything, such as in the colours of a new theme. */
  forget(): void {
    this._drawn = [];
  }

  resize(): void {
    if (this._drawn.length > 0 && this._node.offsetParent !== null) {
      void this._plotly.Plots.resize(this._node);
    }
  }

  dispose(): void {
    this._plotly.purge(this._node);
    this._drawn = [];
  }

  private _extend(lines: readonly Line[]): void {
    const grown = lines.flatMap(({ curve }, i) => (curve.length > this._drawn[i]!.length ? [i] : []));
    if (grown.length === 0) {
      return;
    }
    const fresh = (pick: 'x' | 'y') => grown.map(i => lines[i]!.curve[pick].slice(this._drawn[i]!.length));
    void this._plotly.extendTraces(this._node, { x: fresh('x') as number[][], y: fresh('y') }, grown);
    for (const i of grown) {
      this._drawn[i]!.length = lines[i]!.curve.length;
    }
  }

  private _redraw(lines: readonly Line[]): void {
    this._flat = flatRange(lines);
    const palette = paletteOf(this._node);
    const traces = lines.map(({ name, curve, place }): Trace => {
      const { color, dash } = lineStyle(palette, place);
      return {
        type: 'scatter',
        // A single point makes no line, so it needs a marker.
        mode: curve.length > 1 ? 'lines' : 'lines+markers',
        name: escaped(name),
        x: curve.x.slice(),
        y: curve.y.slice(),
        line: { color, dash, width: 1.6 }
      };
    });
    const axis = { gridcolor: palette.grid, zerolinecolor: palette.grid, linecolor: palette.grid, automargin: true };
    const spike = { spikecolor: palette.faint, spikethickness: 1, spikedash: 'solid' };
    const layout = {
      autosize: true,
      height: 200,
      margin: { l: 44, r: 10, t: 6, b: 34 },
      // Plotly draws a halo in the background's colour around a spike; for a transparent background the halo is white.
      paper_bgcolor: palette.background,
      plot_bgcolor: palette.background,
      font: { family: palette.font, size: 11, color: palette.text },
      showlegend: false,
      hovermode: 'x unified',
      hoverlabel: { bgcolor: getComputedStyle(this._node).getPropertyValue('--jp-layout-color2').trim(), namelength: -1 },
      // A constant `uirevision` keeps the zoom when new points arrive.
      uirevision: 'kept',
      xaxis: { ...axis, ...spike, title: { text: this._horizontal, standoff: 4 }, exponentformat: 'SI' },
      yaxis: { ...axis, exponentformat: 'e', ...(this._flat ? { range: this._flat } : { autorange: true }) }
    };
    void this._plotly.react(this._node, traces, layout, CONFIG);
    this._drawn = lines.map(({ curve }) => ({ curve, epoch: curve.epoch, length: curve.length }));
  }

  private _drawn: Drawn[] = [];
  private _flat: readonly number[] | null = null;
}

/** Returns a range for constant curves. Plotly's own is 2 wide, in which a learning rate of 3e-4 looks like 0. */
function flatRange(lines: readonly Line[]): readonly number[] | null {
  const low = Math.min(...lines.map(({ curve }) => curve.low));
  const high = Math.max(...lines.map(({ curve }) => curve.high));
  return low === high && low !== 0 ? [low - Math.abs(low) / 10, low + Math.abs(low) / 10] : null;
}

/** Whether new points can be appended to a drawn curve. A curve drawn as a single marker has to be redrawn as a line. */
function continues(drawn: Drawn, curve: Curve): boolean {
  return drawn.curve === curve && drawn.epoch === curve.epoch && drawn.length > 1;
}

/** Escapes the name of a trace, the only text here in which Plotly interprets markup. */
function escaped(name: string): string {
  return name.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}
