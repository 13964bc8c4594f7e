import { Runs } from '../../model/runs';
import type { RunsMessage } from '../../server/protocol';
import { row } from '../rows';

const message = (changes: Partial<RunsMessage>): RunsMessage => ({ type: 'runs', reset: false, rows: [], gone: [], ...changes });

function store(): { runs: Runs; frames: (() => void)[]; versions: number[] } {
  const frames: (() => void)[] = [];
  const versions: number[] = [];
  const runs = new Runs(tell => frames.push(tell));
  runs.changed.connect(() => versions.push(runs.version));
  return { runs, frames, versions };
}

describe('Runs', () => {
  it('knows no runs until the server has sent the list', () => {
    const { runs } = store();
    expect(runs.known).toBe(false);
    runs.apply(message({ reset: true }));
    expect(runs.known).toBe(true);
  });

  it('replaces changed rows and leaves the others as they are', () => {
    const { runs } = store();
    runs.apply(message({ reset: true, rows: [row('a'), row('b')] }));
    const b = runs.get('b');
    runs.apply(message({ rows: [row('a', { state: 'failed' })] }));
    expect(runs.get('a')?.state).toBe('failed');
    expect(runs.get('b')).toBe(b);
    expect(runs.size).toBe(2);
  });

  it('forgets deleted runs, and all runs at a reset', () => {
    const { runs } = store();
    runs.apply(message({ reset: true, rows: [row('a'), row('b'), row('c')] }));
    runs.apply(message({ gone: ['b'] }));
    expect(runs.newestFirst.map(r => r.key)).toEqual(['a', 'c']);
    runs.apply(message({ reset: true, rows: [row('d')] }));
    expect(runs.newestFirst.map(r => r.key)).toEqual(['d']);
  });

  it('keeps the last row of a deleted run', () => {
    const { runs } = store();
    runs.apply(message({ reset: true, rows: [row('a', { task: 'Ant' })] }));
    runs.apply(message({ gone: ['a'] }));
    runs.apply(message({ reset: true }));
    expect([runs.get('a'), runs.last('a')?.task, runs.last('b')]).toEqual([undefined, 'Ant', undefined]);
  });

  it('returns the folders with runs', () => {
    const { runs, frames } = store();
    runs.lookIn([{ path: '/data', trouble: 'Permission denied' }]);
    expect(frames).toHaveLength(1);
    expect([runs.known, runs.places[0]?.trouble]).toEqual([false, 'Permission denied']);
  });

  it('signals once per frame, however many messages arrive', () => {
    const { runs, frames, versions } = store();
    for (let i = 0; i < 50; i++) {
      runs.apply(message({ rows: [row(`r${i}`)] }));
    }
    expect(frames).toHaveLength(1);
    expect(versions).toEqual([]);
    frames[0]!();
    expect(versions).toEqual([50]);
    runs.apply(message({ rows: [row('next')] }));
    expect(frames).toHaveLength(2);
  });

  it('puts the newest first', () => {
    const { runs } = store();
    runs.apply(message({ rows: [row('old', { created: '2026-01-01T00:00:00Z' }), row('new', { created: '2026-02-01T00:00:00Z' })] }));
    expect(runs.newestFirst.map(r => r.key)).toEqual(['new', 'old']);
  });
});
