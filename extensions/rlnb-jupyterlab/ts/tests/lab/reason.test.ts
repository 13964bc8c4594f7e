import { reasonOf } from '../../lab/reason';

test.each([
  ['', ''],
  ['echo exports nothing.\n', 'echo exports nothing.'],
  ['loading\nNo checkpoint named x.\n', 'No checkpoint named x.'],
  ['\n  run    what\n ──────\n  a      the whole run\nDeleted 1 item, 1 kB. Runs that have not ended stay as they are: 1.\n', 'Deleted 1 item, 1 kB. Runs that have not ended stay as they are: 1.'],
  ['Some items could not be removed:\n  a: is active again and was kept\n', 'Some items could not be removed:'],
  ['\n  indented only', 'indented only']
])('the reason in %p is %p', (output, reason) => expect(reasonOf(output)).toBe(reason));
