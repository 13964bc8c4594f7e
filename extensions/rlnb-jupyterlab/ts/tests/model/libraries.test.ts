import { Libraries } from '../../model/libraries';

const library = (name: string, exports: string[]) => ({ name, exports, multi_agent: false, distributed: false });

test('a library is assumed to export unless the server says otherwise, and the server gets one request', async () => {
  const load = jest.fn(async () => [library('echo', []), library('skrl', ['onnx'])]);
  const libraries = new Libraries(load);
  let signals = 0;
  libraries.changed.connect(() => (signals += 1));
  expect(libraries.exports('echo')).toBe(true);
  await Promise.all([libraries.ask(), libraries.ask()]);
  expect([libraries.exports('echo'), libraries.exports('skrl'), libraries.exports('other')]).toEqual([false, true, true]);
  expect([load.mock.calls.length, signals]).toEqual([1, 1]);
});

test('after a failed request every library is assumed to export', async () => {
  const warned = jest.spyOn(console, 'warn').mockImplementation();
  const libraries = new Libraries(() => Promise.reject(new Error('down')));
  await libraries.ask();
  expect(libraries.exports('echo')).toBe(true);
  expect(warned).toHaveBeenCalledTimes(1);
  warned.mockRestore();
});
