import { LogBuffer } from '../../model/log';

describe('LogBuffer', () => {
  it('joins pieces', () => {
    const log = new LogBuffer();
    log.append('one\ntw');
    log.append('o\nthree\n');
    expect(log.text).toBe('one\ntwo\nthree\n');
  });

  it('keeps the last lines only', () => {
    const log = new LogBuffer(5000);
    for (let i = 0; i < 200; i++) {
      log.append(Array.from({ length: 100 }, (_, j) => `line ${100 * i + j}\n`).join(''));
    }
    expect(log.lines).toBeGreaterThanOrEqual(5000);
    expect(log.lines).toBeLessThan(5300);
    expect(log.cut).toBe(true);
    expect(log.text.endsWith('line 19999\n')).toBe(true);
  });

  it('limits the length of lines and of escape sequences', () => {
    const log = new LogBuffer();
    for (let i = 0; i < 50; i++) {
      log.append('.'.repeat(1000));
    }
    expect(log.text.length).toBe(10_000);
    log.append('\n\u001b]0;a title that never ends ');
    for (let i = 0; i < 50; i++) {
      log.append('y'.repeat(100));
    }
    expect(log.text.endsWith('yyy')).toBe(true);
  });

  it('keeps the blocks that did not change', () => {
    const log = new LogBuffer();
    log.append('x\n'.repeat(600));
    const before = log.blocks;
    log.append('y\n');
    const after = log.blocks;
    expect(after[0]).toBe(before[0]);
    expect(after[after.length - 1]).not.toBe(before[before.length - 1]);
  });

  it('shows the last state of a progress bar, even if it arrives in pieces', () => {
    const log = new LogBuffer();
    log.append('10%\r20%\r');
    expect(log.text).toBe('20%');
    log.append('30');
    log.append('%\r\ndone');
    expect(log.text).toBe('30%\ndone');
  });

  it('drops escape sequences, even one that is cut in two', () => {
    const log = new LogBuffer();
    log.append('\u001b[1;32mgreen\u001b[0m \u001b[3');
    log.append('1mred\u001b[0m');
    expect(log.text).toBe('green red');
  });

  it('starts over', () => {
    const log = new LogBuffer();
    log.append('a\nb');
    log.clear();
    log.append('c');
    expect(log.text).toBe('c');
    expect(log.cut).toBe(false);
  });
});
