import { found, prefixOf, sectionsOf } from '../../model/metrics';

test('metrics are grouped by the begin of their names, those of the reward first and those without one last', () => {
  const sections = sectionsOf(['loose', 'Loss/b', 'Loss/a10', 'Loss/a9', 'Episode_Reward/alive', 'deep/er/x']);
  expect(sections.map(({ name, metrics }) => [name, ...metrics])).toEqual([
    ['Episode_Reward', 'Episode_Reward/alive'],
    ['deep/er', 'deep/er/x'],
    ['Loss', 'Loss/a9', 'Loss/a10', 'Loss/b'],
    ['', 'loose']
  ]);
  expect(prefixOf('loose')).toBe('');
});

test('a filter finds names that contain each of its words', () => {
  expect(found(['Episode_Reward/alive', 'Episode_Reward/reach'], 'reward REACH')).toEqual(['Episode_Reward/reach']);
  expect(found(['a'], '')).toEqual(['a']);
});
