import { Alerts } from '../../model/alerts';
import { Runs } from '../../model/runs';
import type { Row } from '../../server/protocol';
import { row } from '../rows';

const BEFORE = { time: '2026-11-26T01:59:59.000+00:00', what: 'old' };
const FIRST = { time: '2026-11-26T02:00:01.000+00:00', what: 'reward < 5: reward is 3' };
const SECOND = { time: '2026-11-26T02:00:02.000+00:00', what: 'failed' };

function told(...messages: Row[][]): string[] {
  const texts: string[] = [];
  const runs = new Runs(tell => tell());
  new Alerts(runs, '2026-11-26T02:00:00.000Z', (of, alert) => texts.push(`${of.id}: ${alert.what}`));
  for (const rows of messages) {
    runs.apply({ type: 'runs', reset: false, rows, gone: [] });
  }
  return texts;
}

describe('Alerts', () => {
  it('are reported once, however often their run changes', () => {
    expect(told([row('a', { alerts: [FIRST] })], [row('a', { alerts: [FIRST], iteration: 11 })])).toEqual([`a: ${FIRST.what}`]);
  });

  it('are reported in order, for each run', () => {
    const rows = [row('a', { alerts: [FIRST, SECOND] }), row('b', { alerts: [FIRST] })];
    expect(told(rows)).toEqual([`a: ${FIRST.what}`, 'a: failed', `b: ${FIRST.what}`]);
    expect(told([row('a', { alerts: [FIRST] })], [row('a', { alerts: [FIRST, SECOND] })])).toEqual([`a: ${FIRST.what}`, 'a: failed']);
  });

  it('that are older than the page are not reported', () => {
    expect(told([row('a', { alerts: [BEFORE] }), row('b')])).toEqual([]);
  });
});
