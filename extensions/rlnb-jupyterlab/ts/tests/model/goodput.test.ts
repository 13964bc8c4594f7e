import { pieces, sum } from '../../model/goodput';

const PARTS = ['waiting', 'useful', 'lost'];

test('a bar has a piece for each part that took time, in proportion to the longest bar', () => {
  expect(pieces(PARTS, [10, 30, 0.04], 80)).toEqual([
    { part: 'waiting', seconds: 10, percent: 12.5 },
    { part: 'useful', seconds: 30, percent: 37.5 }
  ]);
});

test('runs that took no time have no bar', () => expect(pieces(PARTS, [0, 0, 0], 0)).toEqual([]));

test('the pieces of the longest bar fill it', () => {
  const seconds = [1, 2, 4];
  expect(sum(pieces(PARTS, seconds, sum(seconds)).map(({ percent }) => percent))).toBeCloseTo(100);
});
