import { Listing } from '../../model/listing';
import { arrange } from '../../model/query';
import { Runs } from '../../model/runs';
import { row } from '../rows';

const rows = ['a', 'b', 'c', 'd'].map(key => row(key, { task: key < 'c' ? 'one' : 'two' }));
const flat = arrange(rows, 'none', new Set());
const grouped = arrange(rows, 'task', new Set());
const chosen = (listing: Listing) => [...listing.selected].sort().join('');

describe('Listing', () => {
  it('selects one, toggles, and selects a range from the last one', () => {
    const listing = new Listing();
    listing.choose(flat, 'b', 'only');
    expect(chosen(listing)).toBe('b');
    listing.choose(flat, 'd', 'range');
    expect(chosen(listing)).toBe('bcd');
    listing.choose(flat, 'a', 'range');
    expect(chosen(listing)).toBe('ab');
    listing.choose(flat, 'd', 'toggle');
    expect(chosen(listing)).toBe('abd');
    listing.choose(flat, 'a', 'toggle');
    expect(chosen(listing)).toBe('bd');
    listing.choose(flat, 'c', 'only');
    expect(chosen(listing)).toBe('c');
  });

  it('takes the selected runs, or all that match the query if none is selected', () => {
    const listing = new Listing();
    const runs = new Runs(tell => tell());
    runs.apply({ type: 'runs', reset: true, rows, gone: [] });
    const keys = () => listing.rowsOrAll(runs).map(({ key }) => key).join('');
    expect(keys()).toBe('abcd');
    listing.ask({ task: 'two' });
    expect(keys()).toBe('cd');
    listing.choose(flat, 'd', 'only');
    expect(keys()).toBe('d');
    listing.choose(flat, 'a', 'only');
    expect(keys()).toBe('cd'); // the selected run is not in the list
  });

  it('selects a range across groups without their heads', () => {
    const listing = new Listing();
    listing.choose(grouped, 'task:one/b', 'only');
    listing.choose(grouped, 'task:two/c', 'range');
    expect(chosen(listing)).toBe('bc');
  });

  it('selects the line alone if the anchor is no longer shown', () => {
    const listing = new Listing();
    listing.choose(flat, 'a', 'only');
    listing.choose(flat.slice(2), 'd', 'range');
    expect(chosen(listing)).toBe('d');
  });

  it('returns the selected runs that exist and match the query', () => {
    const runs = new Runs(() => undefined);
    const listing = new Listing();
    const selectedKeys = () => listing.rows(runs).map(({ key }) => key).join('');
    runs.apply({ type: 'runs', reset: true, rows, gone: [] });
    listing.chooseAll(flat);
    expect(selectedKeys()).toBe('abcd');
    listing.ask({ task: 'two' });
    expect(selectedKeys()).toBe('cd');
    runs.apply({ type: 'runs', reset: false, rows: [], gone: ['c'] });
    expect(selectedKeys()).toBe('d');
    listing.ask({ text: 'nothing' });
    expect(selectedKeys()).toBe('');
    listing.ask({ text: '', task: '' });
    expect(selectedKeys()).toBe('abd');
  });

  it('moves by keys and stops at both ends', () => {
    const listing = new Listing();
    listing.move(flat, 1, 'only');
    expect(listing.active).toBe('a');
    listing.move(flat, 1, 'range');
    expect([listing.active, chosen(listing)]).toEqual(['b', 'ab']);
    listing.move(flat, 100, 'only');
    expect([listing.active, chosen(listing)]).toEqual(['d', 'd']);
    listing.move(flat, -100, 'only');
    expect(listing.active).toBe('a');
    listing.move([], 1, 'only');
    expect(listing.active).toBe('a');
  });

  it('comes back as it was saved', () => {
    const before = new Listing();
    before.ask({ text: 'ant', group: 'task' });
    before.fold('task:one');
    const after = new Listing();
    after.restore(JSON.parse(JSON.stringify(before)));
    expect(after.query).toEqual(before.query);
    expect([...after.closed]).toEqual(['task:one']);
  });

  it.each([[null], [{ group: 'nonsense', text: 3, closed: 'x' }], ['text']])('ignores %p as a saved state', saved => {
    const listing = new Listing();
    listing.restore(saved);
    expect(listing.query).toEqual(new Listing().query);
    expect(listing.closed.size).toBe(0);
  });

  it('signals each change', () => {
    const listing = new Listing();
    let signals = 0;
    listing.changed.connect(() => (signals += 1));
    listing.ask({ text: 'x' });
    listing.choose(flat, 'a', 'only');
    listing.chooseAll(flat);
    expect(chosen(listing)).toBe('abcd');
    listing.chooseNone();
    expect(signals).toBe(4);
  });
});
