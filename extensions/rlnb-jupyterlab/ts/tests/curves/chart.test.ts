import { Chart, Curve, type Plotly, smoothed } from '../../../../../rlnb/curves/chart.js';
import type { Points } from '../../server/protocol';

const points = (from: number, to: number, y = (i: number) => i): Points => {
  const x = Array.from({ length: to - from }, (_, i) => from + i);
  return { x, y: x.map(y) };
};

describe('Curve', () => {
  it('appends without a new epoch', () => {
    const curve = new Curve(100);
    curve.append(points(0, 3));
    curve.append(points(3, 5));
    expect(curve.x).toEqual([0, 1, 2, 3, 4]);
    expect(curve.epoch).toBe(0);
  });

  it('begins a new epoch at a reset', () => {
    const curve = new Curve(100);
    curve.append(points(0, 3));
    curve.reset();
    curve.append(points(7, 8));
    expect(curve.x).toEqual([7]);
    expect(curve.epoch).toBe(1);
  });

  it('knows its least and greatest value since the last reset', () => {
    const curve = new Curve(100);
    curve.append({ x: [0, 1, 2], y: [3, null, -1] });
    expect([curve.low, curve.high]).toEqual([-1, 3]);
    curve.reset();
    curve.append({ x: [0], y: [7] });
    expect([curve.low, curve.high]).toEqual([7, 7]);
  });

  it('stays bounded over a million points, in order, with its newest points exact', () => {
    const curve = new Curve(1000);
    for (let i = 0; i < 1_000_000; i += 1000) {
      curve.append(points(i, i + 1000));
      expect(curve.length).toBeLessThanOrEqual(1000);
    }
    expect(curve.x.every((x, i) => i === 0 || x > curve.x[i - 1]!)).toBe(true);
    expect(curve.x[0]).toBe(0);
    expect(curve.x.slice(-100)).toEqual(points(999_900, 1_000_000).x);
    expect(curve.epoch).toBeGreaterThan(0);
  });

  it('keeps a peak', () => {
    const curve = new Curve(200);
    curve.append(points(0, 5000, i => (i === 17 ? 99 : i === 40 ? -99 : 0)));
    expect(Math.max(...(curve.y as number[]))).toBe(99);
    expect(Math.min(...(curve.y as number[]))).toBe(-99);
  });
});

describe('smoothed', () => {
  it('is the weighted mean of all values so far', () => {
    expect(smoothed([1, 2], 0.5)).toEqual([1, (0.25 * 1 + 0.5 * 2) / 0.75]);
  });

  it('leaves gaps where a value is not finite', () => {
    expect(smoothed([1, null, 1], 0.9)).toEqual([1, null, 1]);
  });
});

/** Plotly's calls, and a node of a page without colours: the colours are tested in a browser. */
function page(): { calls: [string, any][]; chart: Chart } {
  const calls: [string, any][] = [];
  const style = { color: 'black', backgroundColor: 'white', fontFamily: 'sans' };
  Object.assign(globalThis, {
    getComputedStyle: () => style,
    document: { createElement: () => ({ getContext: () => null }) }
  });
  const plotly: Plotly = {
    react: async (_, traces, layout) => void calls.push(['react', { traces, layout }]),
    extendTraces: async (_, fresh, traces) => void calls.push(['extend', { fresh, traces }]),
    purge: () => void calls.push(['purge', null]),
    Plots: { resize: async () => void calls.push(['resize', null]) }
  };
  return { calls, chart: new Chart(plotly, { clientHeight: 200, offsetParent: null, parentElement: null } as HTMLElement) };
}

describe('Chart', () => {
  const line = (curve: Curve, name = 'a') => ({ name, color: '#123456', dash: 'solid', curve });
  const look = { horizontal: 'frames' };

  it('sends only new points of a curve that is drawn already', () => {
    const { calls, chart } = page();
    const curve = new Curve();
    curve.append(points(0, 40));
    chart.draw([line(curve)], look);
    curve.append(points(40, 42));
    chart.draw([line(curve)], look);
    chart.draw([line(curve)], look);
    expect(calls.map(([name]) => name)).toEqual(['react', 'extend']);
    expect(calls[1]![1]).toEqual({ fresh: { x: [[40, 41]], y: [[40, 41]] }, traces: [0] });
  });

  it('draws anew when a curve loses its markers, is thinned or looks different', () => {
    const { calls, chart } = page();
    const curve = new Curve(100);
    curve.append(points(0, 20));
    chart.draw([line(curve)], look);
    curve.append(points(20, 40)); // no markers
    chart.draw([line(curve)], look);
    curve.append(points(40, 200)); // thinned
    chart.draw([line(curve)], look);
    chart.draw([line(curve)], { ...look, log: true });
    chart.forget(); // a new theme
    chart.draw([line(curve)], { ...look, log: true });
    expect(calls.map(([name]) => name)).toEqual(['react', 'react', 'react', 'react', 'react']);
    expect(calls.map(([, { traces }]) => traces[0].mode)).toEqual(['lines+markers', 'lines', 'lines', 'lines', 'lines']);
  });

  it('shows the raw curve behind the smoothed one', () => {
    const { calls, chart } = page();
    const curve = new Curve();
    curve.append({ x: [0, 1], y: [1, 2] });
    chart.draw([line(curve)], { ...look, smoothing: 0.5 });
    const [raw, smooth] = calls[0]![1].traces;
    expect([raw.y, raw.opacity, smooth.y]).toEqual([[1, 2], 0.25, smoothed([1, 2], 0.5)]);
  });

  it('draws a band between its edges, with the mean above', () => {
    const { calls, chart } = page();
    const [low, mean, high] = [0, 1, 2].map(value => {
      const curve = new Curve();
      curve.append({ x: [0], y: [value] });
      return curve;
    }) as [Curve, Curve, Curve];
    chart.draw([{ ...line(mean), low, high }], look);
    expect(calls[0]![1].traces.map((trace: any) => [trace.y, trace.fill])).toEqual([[[0], undefined], [[2], 'tonexty'], [[1], undefined]]);
  });

  it('escapes names, keeps the zoom of an axis, and shows a constant curve in a range of its size', () => {
    const { calls, chart } = page();
    const curve = new Curve();
    curve.append({ x: [0, 1], y: [3e-4, 3e-4] });
    chart.draw([line(curve, '<b>')], look);
    chart.draw([line(curve, '<b>')], { horizontal: 'wall time (s)' });
    expect(calls[0]![1].traces[0].name).toBe('&lt;b&gt;');
    expect(calls[0]![1].layout.yaxis.range.map((value: number) => value.toPrecision(3))).toEqual(['0.000270', '0.000330']);
    expect(calls[0]![1].layout.uirevision).not.toBe(calls[1]![1].layout.uirevision);
  });
});
