import { linesOf } from '../../model/lineage';
import type { Lineage, LineageLine, Row } from '../../server/protocol';
import { row } from '../rows';

const line = (key: string, changes: Partial<LineageLine> = {}): LineageLine => ({
  key,
  id: `id-${key}`,
  title: `id-${key}`,
  depth: 0,
  facts: [],
  state: 'completed',
  reward: null,
  ...changes
});
const lineage = (...lines: LineageLine[]): Lineage => ({ lines, older: false, hidden: 0 });
const reward = (value: string) => `reward ${value}`;

test('a line says how its run has come about, in what it differs, and its reward', () => {
  const lines = linesOf(lineage(line('a'), line('b', { depth: 1, facts: ['repeat', 'seed 2'], reward: 3.14159 })), 'b', () => undefined, reward);
  expect(lines.map(({ own, depth, facts }) => [own, depth, facts])).toEqual([
    [false, 0, ''],
    [true, 1, 'repeat · seed 2 · reward 3.14']
  ]);
});

test('the name, the state and the reward of a run in the list are live', () => {
  const rows = new Map<string, Row>([['a', row('a', { name: 'walk', state: 'running', reward: 5 })]]);
  const [a, b] = linesOf(lineage(line('a', { reward: 1 }), line('b', { reward: 1 })), 'b', key => rows.get(key), reward);
  expect(a).toMatchObject({ title: 'walk', state: 'running', facts: 'reward 5', listed: true });
  expect(b).toMatchObject({ title: 'id-b', state: 'completed', facts: 'reward 1', listed: false });
});

test('a run that is gone has no state and cannot be opened', () => {
  const [gone] = linesOf(lineage(line('', { id: 'old', title: 'old', state: '' })), 'b', () => row('x'), reward);
  expect(gone).toEqual({ key: '', id: 'old', title: 'old', depth: 0, own: false, listed: false, state: null, facts: '' });
});
