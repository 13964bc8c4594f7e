import type { TranslationBundle } from '@jupyterlab/translation';

import { BLANK, wishOf, wrongWord } from '../../form/wish';
import type { Field } from '../../server/protocol';

const trans = { __: (text: string, ...values: string[]) => text.replace(/%(\d)/g, (_, n) => values[n - 1]!) } as TranslationBundle;

const field = (name: string, first = '', choices: string[] = [], whole = true, several = false): Field => ({
  name, label: name, whole, default: first, choices, several
});
const DECLARED = [
  field('max_iterations'),
  field('seed', '42'),
  field('num_envs'),
  field('device', 'auto', ['auto', 'cpu'], false),
  field('nproc_per_node', '', ['auto'])
];

describe('wishOf', () => {
  it('leaves empty fields to the task', () => {
    const { wish, wrong } = wishOf({ ...BLANK, task: ' Isaac-Ant-Direct ' }, DECLARED);
    expect(wish).toEqual({
      task: 'Isaac-Ant-Direct', library: '', num_envs: null, max_iterations: null, seed: 42, device: 'auto',
      nproc_per_node: null, launcher: 'local', overrides: {}, agent_config: '', agent: {}
    });
    expect(wrong).toEqual([]);
  });

  it('reads numbers, choices and lines', () => {
    const text = { ...BLANK, num_envs: ' 512 ', nproc_per_node: 'auto', device: 'cuda:1', overrides: 'sim.dt=0.005', agent: 'algorithm.lr=3e-4' };
    const { wish } = wishOf(text, DECLARED);
    expect([wish.num_envs, wish.nproc_per_node, wish.device]).toEqual([512, 'auto', 'cuda:1']);
    expect([wish.overrides, wish.agent]).toEqual([{ 'sim.dt': 0.005 }, { 'algorithm.lr': 0.0003 }]);
  });

  it('takes any field that the server describes', () => {
    expect(wishOf({ ...BLANK, keep: '3' }, [field('keep')]).wish.keep).toBe(3);
  });

  it('reads texts between commas', () => {
    const tags = [field('tags', '', [], false, true)];
    expect(wishOf({ ...BLANK, tags: ' paper, , seed 1 ' }, tags).wish.tags).toEqual(['paper', 'seed 1']);
    expect(wishOf(BLANK, tags).wish.tags).toEqual([]);
  });

  it('leaves a negative number to the server, which knows its fix', () => {
    expect(wishOf({ ...BLANK, num_envs: '-4' }, DECLARED)).toMatchObject({ wish: { num_envs: -4 }, wrong: [] });
  });

  it('returns the fields that are not a number or not name=value', () => {
    expect(wishOf({ ...BLANK, num_envs: '12.5', seed: 'x', agent: 'nothing' }, DECLARED).wrong).toEqual([
      { field: 'seed', text: 'x' },
      { field: 'num_envs', text: '12.5' },
      { field: 'agent', text: '1: nothing' }
    ]);
  });

  it.each([
    ['seed', 'x is not a whole number.'],
    ['nproc_per_node', 'x is neither a whole number nor "auto".'],
    ['agent', 'Not name=value: line 1: x']
  ] as const)('returns the error of the field %p', (name, error) => {
    const { wrong } = wishOf({ ...BLANK, [name]: 'x' }, DECLARED);
    expect(wrong.map(one => wrongWord(one, DECLARED, trans))).toEqual([error]);
  });
});
