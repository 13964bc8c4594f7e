import { moment, shortName, tail } from '../../model/names';
import { row } from '../rows';

const run = row('a', { id: '20261122-194056-cartpole-direct-71db', task: 'Isaac-Cartpole-Direct' });

test('the short name of a run has its task and the end of its id', () => {
  expect(tail(run)).toBe('71db');
  expect(shortName(run)).toBe('Cartpole-Direct 71db');
});

test.each([
  [new Date(2026, 10, 22, 9, 5), '09:05'],
  [new Date(2026, 10, 21, 23, 59), '2026-11-21 23:59'],
  [new Date(2025, 10, 22, 9, 5), '2025-11-22 09:05']
])('%p is shown as %p', (created, text) => {
  expect(moment(created.toISOString(), new Date(2026, 10, 22, 20, 0))).toBe(text);
});

test('an invalid time is shown as an empty string', () => expect(moment('yesterday')).toBe(''));
