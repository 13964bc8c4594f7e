import type { TranslationBundle } from '@jupyterlab/translation';

import { BLANK, wishOf, wrongWord } from '../../form/wish';

const trans = { __: (text: string, ...values: string[]) => text.replace(/%(\d)/g, (_, n) => values[n - 1]!) } as TranslationBundle;

describe('wishOf', () => {
  it('leaves empty fields to the task', () => {
    const { wish, wrong } = wishOf({ ...BLANK, task: ' Isaac-Ant-Direct ' });
    expect(wish).toEqual({
      task: 'Isaac-Ant-Direct', library: '', num_envs: null, max_iterations: null, seed: 42, device: 'auto',
      nproc_per_node: null, launcher: 'local', overrides: {}, agent_config: '', agent: {}
    });
    expect(wrong).toEqual([]);
  });

  it('reads numbers and lines', () => {
    const { wish } = wishOf({ ...BLANK, num_envs: ' 512 ', nproc_per_node: 'auto', overrides: 'sim.dt=0.005', agent: 'algorithm.lr=3e-4' });
    expect([wish.num_envs, wish.nproc_per_node]).toEqual([512, 'auto']);
    expect([wish.overrides, wish.agent]).toEqual([{ 'sim.dt': 0.005 }, { 'algorithm.lr': 0.0003 }]);
  });

  it('leaves a negative number to the server, which knows its fix', () => {
    expect(wishOf({ ...BLANK, num_envs: '-4' })).toMatchObject({ wish: { num_envs: -4 }, wrong: [] });
  });

  it('returns the fields that are not a number or not name=value', () => {
    expect(wishOf({ ...BLANK, num_envs: '12.5', seed: 'x', agent: 'nothing' }).wrong).toEqual([
      { field: 'num_envs', text: '12.5' },
      { field: 'seed', text: 'x' },
      { field: 'agent', text: '1: nothing' }
    ]);
  });

  it.each([
    ['seed', 'x is not a whole number.'],
    ['nproc_per_node', 'x is neither a whole number nor "auto".'],
    ['agent', 'Not name=value: line 1: x']
  ] as const)('returns the error of the field %p', (field, error) => {
    const { wrong } = wishOf({ ...BLANK, [field]: 'x' });
    expect(wrong.map(one => wrongWord(one, trans))).toEqual([error]);
  });
});
