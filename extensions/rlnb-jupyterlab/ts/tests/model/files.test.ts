import { filesOf } from '../../model/files';

test('an output names files', () => {
  const file = { path: '/srv/runs/a/report.html', name: 'report.html' };
  expect(filesOf({ files: [file] })).toEqual([file]);
});

test.each([null, undefined, 'text', [], {}, { files: 'all' }, { files: [null, 1, { path: '/a' }, { path: 1, name: 'a' }] }])(
  'of odd data (%j), no file is left',
  data => {
    expect(filesOf(data)).toEqual([]);
  }
);
