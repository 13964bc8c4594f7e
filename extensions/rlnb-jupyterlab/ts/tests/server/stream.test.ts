import type { Incoming, Outgoing } from '../../server/protocol';
import { type Socket, Stream } from '../../server/stream';

class FakeSocket implements Socket {
  onopen: ((event: unknown) => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: unknown) => void) | null = null;
  readonly sent: string[] = [];
  closed = false;

  send(text: string): void {
    this.sent.push(text);
  }

  close(): void {
    this.closed = true;
    this.onclose?.({});
  }
}

const HELLO: Outgoing = { type: 'watch', keys: ['a'], metrics: [] };
const RUNS = JSON.stringify({ type: 'runs', reset: true, rows: [], gone: [] });

function conversation() {
  const sockets: FakeSocket[] = [];
  const received: Incoming[] = [];
  const stream = new Stream(
    () => {
      const socket = new FakeSocket();
      sockets.push(socket);
      return socket;
    },
    () => [HELLO]
  );
  stream.received.connect((_, message) => received.push(message));
  return { stream, sockets, received, last: () => sockets[sockets.length - 1]! };
}

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

describe('Stream', () => {
  it('opens one socket, sends the greeting, and passes on messages', () => {
    const { stream, sockets, received, last } = conversation();
    stream.open();
    stream.open();
    expect(sockets).toHaveLength(1);
    expect(stream.status).toBe('connecting');
    last().onopen!({});
    expect(stream.status).toBe('open');
    expect(last().sent).toEqual([JSON.stringify(HELLO)]);
    last().onmessage!({ data: RUNS });
    expect(received).toEqual([JSON.parse(RUNS)]);
  });

  it('ignores messages that it cannot read', () => {
    const { stream, received, last } = conversation();
    stream.open();
    last().onopen!({});
    for (const data of ['no json', '3', 'null', '[]', '{}']) {
      last().onmessage!({ data });
    }
    expect(received).toEqual([]);
    expect(stream.status).toBe('open');
  });

  it('waits 1, 2, 4, 8, 16, 30, 30 seconds between attempts', () => {
    const { stream, sockets, last } = conversation();
    stream.open();
    for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
      const before = sockets.length;
      last().onclose!({});
      expect(stream.status).toBe('waiting');
      jest.advanceTimersByTime(1000 * seconds - 1);
      expect(sockets).toHaveLength(before);
      jest.advanceTimersByTime(1);
      expect(sockets).toHaveLength(before + 1);
      expect(stream.status).toBe('waiting');
    }
  });

  it('sends the greeting again after a break, and waits one second again after a message', () => {
    const { stream, sockets, last } = conversation();
    stream.open();
    last().onclose!({});
    jest.advanceTimersByTime(1000);
    last().onclose!({});
    jest.advanceTimersByTime(2000);
    last().onopen!({});
    expect(last().sent).toEqual([JSON.stringify(HELLO)]);
    last().onmessage!({ data: RUNS });
    last().onclose!({});
    jest.advanceTimersByTime(1000);
    expect(sockets).toHaveLength(4);
  });

  it('waits longer for a server that accepts and closes without a message', () => {
    const { stream, sockets, last } = conversation();
    stream.open();
    last().onopen!({});
    last().onclose!({});
    jest.advanceTimersByTime(1000);
    last().onopen!({});
    last().onclose!({});
    jest.advanceTimersByTime(1999);
    expect(sockets).toHaveLength(2);
    jest.advanceTimersByTime(1);
    expect(sockets).toHaveLength(3);
  });

  it('sends nothing while there is no connection', () => {
    const { stream, last } = conversation();
    stream.send(HELLO);
    stream.open();
    stream.send(HELLO);
    expect(last().sent).toEqual([]);
  });

  it('retries at once on request, and only once', () => {
    const { stream, sockets, last } = conversation();
    stream.open();
    last().onclose!({});
    stream.retry();
    stream.retry();
    expect(sockets).toHaveLength(2);
    jest.advanceTimersByTime(60_000);
    expect(sockets).toHaveLength(2);
  });

  it('survives a socket that cannot be created', () => {
    let attempts = 0;
    const stream = new Stream(
      () => {
        attempts += 1;
        throw new Error('refused');
      },
      () => []
    );
    stream.open();
    expect(stream.status).toBe('waiting');
    jest.advanceTimersByTime(1000);
    expect(attempts).toBe(2);
  });

  it('is silent once disposed of', () => {
    const { stream, sockets, last } = conversation();
    stream.open();
    last().onopen!({});
    stream.dispose();
    expect(last().closed).toBe(true);
    jest.advanceTimersByTime(60_000);
    expect(sockets).toHaveLength(1);
    stream.open();
    expect(sockets).toHaveLength(1);
  });
});
