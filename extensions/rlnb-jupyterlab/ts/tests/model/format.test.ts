import { brief, bytes, number, progress, reason, shortReason, span, value } from '../../model/format';

test.each([
  [null, ''], [-1, ''], [NaN, ''], [0, '0 s'], [59.4, '59 s'], [59.6, '1 min 00 s'], [200, '3 min 20 s'],
  [3600, '1 h 00 min'], [7499, '2 h 05 min'], [86_399, '1 d 00 h'], [4 * 86_400 + 3 * 3600, '4 d 03 h']
])('span(%p) is %p', (seconds, text) => expect(span(seconds)).toBe(text));

test.each([[0.31, '0.3 s'], [9.94, '9.9 s'], [9.96, '10 s'], [200, '3 min 20 s']])('brief(%p) is %p', (seconds, text) =>
  expect(brief(seconds)).toBe(text));

test.each([
  [0, '0 B'], [999, '999 B'], [1000, '1.0 kB'], [999_499, '999 kB'], [999_500, '1.0 MB'], [99_600, '100 kB'],
  [12_345_678, '12 MB'], [5e15, '5000 TB']
])('bytes(%p) is %p', (count, text) => expect(bytes(count)).toBe(text));

test.each([
  [null, '–'], [undefined, '–'], [Infinity, '–'], [0, '0'], [0.12345, '0.123'], [-12.345, '-12.3'], [100, '100'],
  [1234.6, '1235'], [1_234_567, '1.2e6'], [0.00012, '1.2e-4']
])('number(%p) is %p', (given, text) => expect(number(given)).toBe(text));

test.each([
  [0, 0, 0], [5, 0, 0], [5, 10, 0.5], [12, 10, 1]
])('progress(%p, %p) is %p', (iteration, total, share) => expect(progress(iteration, total)).toBe(share));

test.each([
  ['text', 'text'], [0.5, '0.5'], [null, 'null'], [[1, 'a'], '[1,"a"]'], [undefined, '']
])('value(%p) is %p', (given, text) => expect(value(given)).toBe(text));

test.each([
  ['', '', ''], ['', '2026-11-26T08:00:00+00:00', ''], ['PENDING (<b>)', '', 'PENDING (<b>)'], ['x', 'yesterday', 'x'],
  ['x', '2026-11-26T08:11:30+00:00', 'x'], ['x', '2026-11-26T09:00:00+00:00', 'x'],
  ['PENDING (JobHeldAdmin)', '2026-11-26T08:00:00.000+00:00', 'PENDING (JobHeldAdmin), 12 min 00 s']
])('the reason %p since %p is %p', (why, since, text) =>
  expect(reason({ reason: why, since }, new Date('2026-11-26T08:12:00Z'))).toBe(text));

test.each([
  ['waits for 20261126-123803-cartpole-direct-8123', 'waits for 8123'],
  ['waits for 20261126-123803-echo-echo-8123, 20261126-123804-echo-echo-915b', 'waits for 8123, 915b'],
  ['PENDING (Priority)', 'PENDING (Priority)']
])('a line of the list shows the reason %p as %p', (text, short) => expect(shortReason(text)).toBe(short));
