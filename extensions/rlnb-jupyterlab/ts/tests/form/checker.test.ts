import { Checker } from '../../form/checker';
import { BLANK, wishOf } from '../../form/wish';
import type { Checked, Wish } from '../../server/protocol';

describe('Checker', () => {
  const wish = (task: string): Wish => wishOf({ ...BLANK, task }, []).wish;

  function checker() {
    const requests: { task: string; answer: (checked: Checked) => void; fail: (reason: unknown) => void }[] = [];
    const made = new Checker(({ task }) => new Promise((answer, fail) => requests.push({ task, answer, fail })));
    return { made, requests, tasks: () => requests.map(({ task }) => task) };
  }

  const CHECKED: Checked = { problems: [], agent: { source: '', names: [] }, code: 'code' };
  const later = (ms: number) => jest.advanceTimersByTimeAsync(ms);

  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('waits for a pause in typing', async () => {
    const { made, tasks } = checker();
    made.ask(wish('a'));
    await later(400);
    made.ask(wish('b'));
    await later(499);
    expect(tasks()).toEqual([]);
    await later(1);
    expect(tasks()).toEqual(['b']);
  });

  it('checks one form at a time, then only the newest', async () => {
    const { made, requests, tasks } = checker();
    made.ask(wish('a'));
    await later(500);
    for (const task of ['b', 'c']) {
      made.ask(wish(task));
      await later(1000);
    }
    expect(tasks()).toEqual(['a']);
    requests[0]!.answer(CHECKED);
    await later(0);
    expect(tasks()).toEqual(['a', 'c']);
    expect(made.verdict?.wish.task).toBe('a');
    requests[1]!.answer(CHECKED);
    await later(10_000);
    expect(made.verdict).toEqual({ wish: wish('c'), checked: CHECKED, failure: null });
    expect(tasks()).toEqual(['a', 'c']);
  });

  it('checks again after a failure', async () => {
    const { made, requests, tasks } = checker();
    made.ask(wish('a'));
    await later(500);
    requests[0]!.fail('down');
    await later(0);
    expect(made.verdict).toMatchObject({ checked: null, failure: 'down' });
    made.ask(wish('b'));
    await later(500);
    expect(tasks()).toEqual(['a', 'b']);
  });

  it('checks nothing once disposed of', async () => {
    const { made, requests } = checker();
    made.ask(wish('a'));
    made.dispose();
    await later(1000);
    expect(requests).toEqual([]);
  });
});
