import { Hub } from '../../model/hub';
import { Runs } from '../../model/runs';
import type { Socket } from '../../server/stream';

function connected() {
  const sent: unknown[] = [];
  const sockets: Socket[] = [];
  const hub = new Hub(
    () => {
      const socket: Socket = { onopen: null, onmessage: null, onclose: null, send: text => sent.push(JSON.parse(text)), close: () => undefined };
      sockets.push(socket);
      return socket;
    },
    new Runs(() => undefined)
  );
  hub.stream.open();
  sockets[0]!.onopen!({});
  sent.length = 0;
  return { hub, sent, say: (message: object) => sockets[0]!.onmessage!({ data: JSON.stringify(message) }) };
}

const settled = () => new Promise<void>(resolve => queueMicrotask(resolve));
const LOG = { key: 'a', job: 1, name: 'train.log' };

describe('Hub', () => {
  it('requests each run once, until the last view stops watching it', async () => {
    const { hub, sent } = connected();
    const first = hub.watch(['b', 'a']);
    const second = hub.watch(['a']);
    await settled();
    expect(sent).toEqual([{ type: 'watch', keys: ['a', 'b'], metrics: [] }]);
    first.dispose();
    await settled();
    expect(sent[1]).toEqual({ type: 'watch', keys: ['a'], metrics: [] });
    second.dispose();
    second.dispose();
    await settled();
    expect(sent[2]).toEqual({ type: 'watch', keys: [], metrics: [] });
    expect(sent).toHaveLength(3);
  });

  it('sends nothing when one view hands over to another', async () => {
    const { hub, sent } = connected();
    const first = hub.watch(['a']);
    await settled();
    first.dispose();
    hub.watch(['a']);
    await settled();
    expect(sent).toHaveLength(1);
  });

  it('accepts curves of watched runs only', async () => {
    const { hub, say } = connected();
    hub.watch(['a']);
    await settled();
    for (const key of ['a', 'b']) {
      say({ type: 'curves', key, reset: true, series: { reward: { x: [1], y: [2] } }, names: null });
    }
    expect(hub.curves.of('a').size).toBe(1);
    expect(hub.curves.of('b').size).toBe(0);
  });

  it('follows every requested log, and sends the requests of one turn in one message', async () => {
    const { hub, sent } = connected();
    const first = hub.follow(LOG);
    const second = hub.follow({ ...LOG, job: 2 });
    await settled();
    second.dispose();
    await settled();
    first.dispose();
    hub.follow(LOG);
    await settled();
    expect(sent).toEqual([
      { type: 'follow', files: [LOG, { ...LOG, job: 2 }] },
      { type: 'follow', files: [LOG] }
    ]);
  });

  it('passes on rows, logs and actions', () => {
    const { hub, say } = connected();
    const received: string[] = [];
    hub.logged.connect((_, message) => received.push(message.text));
    hub.acted.connect((_, message) => received.push(message.state));
    say({ type: 'log', ...LOG, text: 'hello', reset: true });
    say({ type: 'action', id: '1', action: 'report', keys: ['a'], left: [], state: 'done', output: '' });
    say({ type: 'places', places: [{ path: '/data', trouble: '' }] });
    say({ type: 'runs', reset: true, rows: [], gone: [] });
    expect(received).toEqual(['hello', 'done']);
    expect(hub.runs.known).toBe(true);
    expect(hub.runs.places.map(({ path }) => path)).toEqual(['/data']);
  });
});
