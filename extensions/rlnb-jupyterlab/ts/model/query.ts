import { type Row, STATES } from '../server/protocol';
import { cellOf, compare, compareTexts, valueOf } from './fields';

export const GROUPINGS = ['none', 'task', 'library', 'state', 'tag'] as const;
/** One of `GROUPINGS`, or the name of another field, see `valueOf`. */
export type Grouping = string;

/** The filters, the order and the grouping of the list; an empty string is no filter. */
export interface Query {
  readonly text: string;
  readonly state: string;
  readonly task: string;
  readonly library: string;
  readonly group: Grouping;
  /** Name of the field by which the runs are sorted, see `valueOf`. */
  readonly sort: string;
  readonly descending: boolean;
}

export const EVERYTHING: Query = { text: '', state: '', task: '', library: '', group: 'none', sort: 'created', descending: true };

/** A line of the list: a run, or the head of a group. */
export type Line =
  | { readonly kind: 'run'; readonly id: string; readonly row: Row; readonly group: string | null }
  | { readonly kind: 'group'; readonly id: string; readonly name: string; readonly count: number; readonly open: boolean };

/** The text that is searched in each row, built once per row: rows are replaced and never changed. */
const searched = new WeakMap<Row, string>();

function haystack(row: Row): string {
  let text = searched.get(row);
  if (text === undefined) {
    text = [row.id, row.name, row.task, row.library, ...row.tags, ...Object.entries(row.arguments).flat()].join('\n').toLowerCase();
    searched.set(row, text);
  }
  return text;
}

/** Returns the rows that match a query, in its order. Each word of its text has to occur in the row. The rows are newest first. */
export function select(rows: readonly Row[], query: Query): readonly Row[] {
  const words = query.text.toLowerCase().split(/\s+/).filter(Boolean);
  const matches =
    words.length === 0 && !query.state && !query.task && !query.library
      ? rows
      : rows.filter(
          row =>
            (!query.state || row.state === query.state) &&
            (!query.task || row.task === query.task) &&
            (!query.library || row.library === query.library) &&
            words.every(word => haystack(row).includes(word))
        );
  return query.sort === 'created' && query.descending ? matches : sorted(matches, query.sort, query.descending);
}

/** Sorts rows by a field. Rows of equal values keep their order. */
function sorted(rows: readonly Row[], field: string, descending: boolean): readonly Row[] {
  const values = new Map(rows.map(row => [row, valueOf(row, field)]));
  return [...rows].sort((a, b) => compare(values.get(a)!, values.get(b)!, descending));
}

function groupsOf(row: Row, grouping: Grouping): readonly string[] {
  switch (grouping) {
    case 'none':
      return [];
    case 'tag':
      return row.tags.length > 0 ? row.tags : [''];
    default:
      return [cellOf(row, grouping)];
  }
}

/** Returns the rows as lines. A run with two tags appears in both groups; a closed group shows its head only. */
export function arrange(rows: readonly Row[], grouping: Grouping, closed: ReadonlySet<string>): readonly Line[] {
  if (grouping === 'none') {
    return rows.map(row => ({ kind: 'run', id: row.key, row, group: null }));
  }
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    for (const name of groupsOf(row, grouping)) {
      const members = groups.get(name);
      if (members) {
        members.push(row);
      } else {
        groups.set(name, [row]);
      }
    }
  }
  const order = (name: string) => (grouping === 'state' ? (STATES as readonly string[]).indexOf(name) : 0);
  const names = [...groups.keys()].sort(
    // The group without a value comes last.
    (a, b) => order(a) - order(b) || Number(a === '') - Number(b === '') || compareTexts(a, b)
  );
  return names.flatMap(name => {
    const members = groups.get(name)!;
    const id = `${grouping}:${name}`;
    const open = !closed.has(id);
    const head: Line = { kind: 'group', id, name, count: members.length, open };
    return open ? [head, ...members.map((row): Line => ({ kind: 'run', id: `${id}/${row.key}`, row, group: name }))] : [head];
  });
}

/** Returns the values to filter by, each with the number of its rows. */
export function facet(rows: readonly Row[], field: 'state' | 'task' | 'library'): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const row of rows) {
    counts.set(row[field], (counts.get(row[field]) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => a[0].localeCompare(b[0]));
}
