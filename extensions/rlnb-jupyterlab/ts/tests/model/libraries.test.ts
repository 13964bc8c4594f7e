import { Libraries } from '../../model/libraries';

const library = (name: string, exports: string[]) => ({ name, exports, multi_agent: false, distributed: false });

test('a library exports unless it is known not to; that is asked once', async () => {
  const load = jest.fn(async () => [library('echo', []), library('skrl', ['onnx'])]);
  const libraries = new Libraries(load);
  let told = 0;
  libraries.changed.connect(() => (told += 1));
  expect(libraries.exports('echo')).toBe(true);
  await Promise.all([libraries.ask(), libraries.ask()]);
  expect([libraries.exports('echo'), libraries.exports('skrl'), libraries.exports('other')]).toEqual([false, true, true]);
  expect([load.mock.calls.length, told]).toEqual([1, 1]);
});

test('what cannot be asked leaves all possible', async () => {
  const warned = jest.spyOn(console, 'warn').mockImplementation();
  const libraries = new Libraries(() => Promise.reject(new Error('down')));
  await libraries.ask();
  expect(libraries.exports('echo')).toBe(true);
  expect(warned).toHaveBeenCalledTimes(1);
  warned.mockRestore();
});
