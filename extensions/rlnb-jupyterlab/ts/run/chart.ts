import type { Plotly, Trace } from 'plotly.js-basic-dist-min';

import type { Curve } from '../model/curves';
import { lineStyle, paletteOf } from '../parts/palette';

export interface Line {
  readonly name: string;
  readonly curve: Curve;
  /** Its place among the runs that are compared: its colour is the same in every chart. */
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

/** One metric's curves in a node of the page. Of what is drawn already only new points are handed over. */
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

  /** Draws all of it anew next time, such as in another theme's colours. */
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
        // A single point has no line.
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
      // Around a spike Plotly draws a halo of the background: white where that is transparent.
      paper_bgcolor: palette.background,
      plot_bgcolor: palette.background,
      font: { family: palette.font, size: 11, color: palette.text },
      showlegend: false,
      hovermode: 'x unified',
      hoverlabel: { bgcolor: getComputedStyle(this._node).getPropertyValue('--jp-layout-color2').trim(), namelength: -1 },
      // What was zoomed stays so when new points come.
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

/** Around what never changes Plotly shows a range of 2, in which a learning rate of 3e-4 looks like 0. */
function flatRange(lines: readonly Line[]): readonly number[] | null {
  const low = Math.min(...lines.map(({ curve }) => curve.low));
  const high = Math.max(...lines.map(({ curve }) => curve.high));
  return low === high && low !== 0 ? [low - Math.abs(low) / 10, low + Math.abs(low) / 10] : null;
}

/** A second point makes a line of a single one, which is another way of drawing. */
function continues(drawn: Drawn, curve: Curve): boolean {
  return drawn.curve === curve && drawn.epoch === curve.epoch && drawn.length > 1;
}

/** Plotly reads a little markup in names, and only in names. */
function escaped(name: string): string {
  return name.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}
