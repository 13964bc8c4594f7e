import { doneBefore } from '../../model/resumption';
import { row } from '../rows';

const checkpoints = [
  { name: 'a', iteration: 10, bytes: 1, abandoned: false },
  { name: 'b', iteration: 40, bytes: 1, abandoned: false },
  { name: 'c', iteration: null, bytes: 1, abandoned: false }
];

test.each([
  ['completed', undefined, 50],
  ['completed', 'a', 10],
  ['cancelled', undefined, 40],
  ['failed', 'c', 0]
] as const)('a %p run resumes from checkpoint %p after iteration %p', (state, chosen, done) => {
  expect(doneBefore(row('r', { state, iteration: 50 }), checkpoints, chosen)).toBe(done);
});

test('a run without a checkpoint starts again', () => {
  expect(doneBefore(row('r', { state: 'lost', iteration: 5 }), [], undefined)).toBe(0);
});
