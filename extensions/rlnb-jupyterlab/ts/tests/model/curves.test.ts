import { Curves } from '../../model/curves';
import type { Points } from '../../server/protocol';

const points = (from: number, to: number, y = (i: number) => i): Points => {
  const x = Array.from({ length: to - from }, (_, i) => from + i);
  return { x, y: x.map(y) };
};

describe('Curves', () => {
  it('appends to the run and the series that are named', () => {
    const curves = new Curves();
    const changedKeys: string[] = [];
    curves.changed.connect((_, key) => changedKeys.push(key));
    curves.apply({ type: 'curves', key: 'a', reset: true, series: { reward: points(0, 2) }, names: null });
    curves.apply({ type: 'curves', key: 'a', reset: false, series: { reward: points(2, 3), loss: points(0, 1) }, names: null });
    curves.apply({ type: 'curves', key: 'b', reset: true, series: {}, names: null });
    expect(curves.of('a').get('reward')?.x).toEqual([0, 1, 2]);
    expect(curves.of('a').get('loss')?.x).toEqual([0]);
    expect(curves.of('b').size).toBe(0);
    expect(changedKeys).toEqual(['a', 'a', 'b']);
  });

  it('drops at a reset the series that the reset does not name', () => {
    const curves = new Curves();
    curves.apply({ type: 'curves', key: 'a', reset: true, series: { reward: points(0, 2), loss: points(0, 2) }, names: null });
    curves.apply({ type: 'curves', key: 'a', reset: true, series: { reward: points(5, 6) }, names: null });
    expect([...curves.of('a').keys()]).toEqual(['reward']);
    expect(curves.of('a').get('reward')?.x).toEqual([5]);
  });

  it('forgets runs that no view watches', () => {
    const curves = new Curves();
    for (const key of ['a', 'b']) {
      curves.apply({ type: 'curves', key, reset: true, series: { reward: points(0, 2) }, names: null });
    }
    curves.keep(new Set(['b']));
    expect(curves.of('a').size).toBe(0);
    expect(curves.of('b').size).toBe(1);
  });
});
