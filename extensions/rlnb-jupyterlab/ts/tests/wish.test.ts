import type { TranslationBundle } from '@jupyterlab/translation';

import { Checker } from '../checker';
import type { Checked, Wish } from '../protocol';
import { BLANK, wishOf, wrongWord } from '../wish';

const trans = { __: (text: string, ...values: string[]) => text.replace(/%(\d)/g, (_, n) => values[n - 1]!) } as TranslationBundle;

describe('wishOf', () => {
  it('leaves to the task what is left empty', () => {
    const { wish, wrong } = wishOf({ ...BLANK, task: ' Isaac-Ant-Direct ' });
    expect(wish).toEqual({
      task: 'Isaac-Ant-Direct', library: 'rsl_rl', num_envs: null, max_iterations: null, seed: 42, device: 'auto',
      nproc_per_node: null, launcher: 'local', overrides: {}, agent: {}
    });
    expect(wrong).toEqual([]);
  });

  it('reads numbers and lines', () => {
    const { wish } = wishOf({ ...BLANK, num_envs: ' 512 ', nproc_per_node: 'auto', overrides: 'sim.dt=0.005', agent: 'algorithm.lr=3e-4' });
    expect([wish.num_envs, wish.nproc_per_node]).toEqual([512, 'auto']);
    expect([wish.overrides, wish.agent]).toEqual([{ 'sim.dt': 0.005 }, { 'algorithm.lr': 0.0003 }]);
  });

  it('leaves a negative number to the server, which knows its mend', () => {
    expect(wishOf({ ...BLANK, num_envs: '-4' })).toMatchObject({ wish: { num_envs: -4 }, wrong: [] });
  });

  it('names what is no number and no pair', () => {
    expect(wishOf({ ...BLANK, num_envs: '12.5', seed: 'x', agent: 'nothing' }).wrong).toEqual([
      { field: 'num_envs', text: '12.5' },
      { field: 'seed', text: 'x' },
      { field: 'agent', text: '1: nothing' }
    ]);
  });

  it.each([
    ['seed', 'x is not a whole number.'],
    ['nproc_per_node', 'x is neither a whole number nor "auto".'],
    ['agent', 'This is not name=value: line 1: x']
  ] as const)('says what %p is not', (field, said) => {
    const { wrong } = wishOf({ ...BLANK, [field]: 'x' });
    expect(wrong.map(one => wrongWord(one, trans))).toEqual([said]);
  });
});

describe('Checker', () => {
  const wish = (task: string): Wish => wishOf({ ...BLANK, task }).wish;

  function checker() {
    const asked: { task: string; answer: (checked: Checked) => void; fail: (reason: unknown) => void }[] = [];
    const made = new Checker(({ task }) => new Promise((answer, fail) => asked.push({ task, answer, fail })));
    return { made, asked, tasks: () => asked.map(({ task }) => task) };
  }

  const CHECKED: Checked = { problems: [], code: 'code' };
  const later = (ms: number) => jest.advanceTimersByTimeAsync(ms);

  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('waits until nobody types', async () => {
    const { made, tasks } = checker();
    made.ask(wish('a'));
    await later(400);
    made.ask(wish('b'));
    await later(499);
    expect(tasks()).toEqual([]);
    await later(1);
    expect(tasks()).toEqual(['b']);
  });

  it('asks one at a time, then the newest only', async () => {
    const { made, asked, tasks } = checker();
    made.ask(wish('a'));
    await later(500);
    for (const task of ['b', 'c']) {
      made.ask(wish(task));
      await later(1000);
    }
    expect(tasks()).toEqual(['a']);
    asked[0]!.answer(CHECKED);
    await later(0);
    expect(tasks()).toEqual(['a', 'c']);
    expect(made.verdict?.wish.task).toBe('a');
    asked[1]!.answer(CHECKED);
    await later(10_000);
    expect(made.verdict).toEqual({ wish: wish('c'), checked: CHECKED, failure: null });
    expect(tasks()).toEqual(['a', 'c']);
  });

  it('asks again after a failure', async () => {
    const { made, asked, tasks } = checker();
    made.ask(wish('a'));
    await later(500);
    asked[0]!.fail('down');
    await later(0);
    expect(made.verdict).toMatchObject({ checked: null, failure: 'down' });
    made.ask(wish('b'));
    await later(500);
    expect(tasks()).toEqual(['a', 'b']);
  });

  it('says nothing once disposed of', async () => {
    const { made, asked } = checker();
    made.ask(wish('a'));
    made.dispose();
    await later(1000);
    expect(asked).toEqual([]);
  });
});
