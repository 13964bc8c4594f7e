/** The part of Plotly that is used here. Plotly's own types are a package ten times the size of this extension. */
declare module 'plotly.js-basic-dist-min' {
  export interface Trace {
    readonly x: readonly number[];
    readonly y: readonly (number | null)[];
    readonly name: string;
    readonly type: 'scatter';
    readonly mode: 'lines' | 'lines+markers';
    readonly line: { readonly color: string; readonly width: number; readonly dash: string };
  }

  export interface Plotly {
    react(node: HTMLElement, traces: readonly Trace[], layout: object, config: object): Promise<unknown>;
    extendTraces(node: HTMLElement, points: { x: number[][]; y: (number | null)[][] }, indices: number[]): Promise<unknown>;
    purge(node: HTMLElement): void;
    readonly Plots: { resize(node: HTMLElement): Promise<unknown> | undefined };
  }

  const plotly: Plotly;
  export default plotly;
}
