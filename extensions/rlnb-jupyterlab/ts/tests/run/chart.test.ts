import { Curve, smoothed } from '../../../../../rlnb/curves/chart.js';
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
