import { number } from './format';
import type { Row } from '../server/protocol';
import { moment } from './names';

/** Names of the values that every row has. An argument of a run is named `arg:` and its name, a metric `metric:` and its name. */
export const FIELDS = ['name', 'task', 'library', 'launcher', 'device', 'state', 'iteration', 'reward', 'success', 'created', 'tags'] as const;
const ARGUMENT = 'arg:';
const METRIC = 'metric:';

export type Value = string | number | null;

/** The value of a row, by the name of a field. Null is a missing one. */
export function valueOf(row: Row, field: string): Value {
  if (field.startsWith(ARGUMENT)) {
    return row.arguments[field.slice(ARGUMENT.length)] ?? null;
  }
  if (field.startsWith(METRIC)) {
    return row.metrics[field.slice(METRIC.length)] ?? null;
  }
  switch (field as (typeof FIELDS)[number]) {
    case 'name':
      return row.name || null;
    case 'tags':
      return row.tags.join(', ') || null;
    case 'task':
    case 'library':
    case 'launcher':
    case 'device':
    case 'state':
    case 'iteration':
    case 'reward':
    case 'success':
    case 'created':
      return row[field as 'task'];
    default:
      return null;
  }
}

/** The value of a row as the text of a cell. */
export function cellOf(row: Row, field: string): string {
  const value = valueOf(row, field);
  return value === null ? '' : typeof value !== 'number' ? (field === 'created' ? moment(value) : value) : field === 'iteration' ? String(value) : number(value);
}

/** Compares two values: numbers by size, texts by the alphabet; missing ones come last in either direction. */
export function compare(a: Value, b: Value, descending: boolean): number {
  if (a === null || b === null) {
    return Number(a === null) - Number(b === null);
  }
  const order = typeof a === 'number' && typeof b === 'number' ? a - b : compareTexts(String(a), String(b));
  return descending ? -order : order;
}

/** Compares two texts: those of numbers by size, others by the alphabet and the whole numbers in them. */
export function compareTexts(a: string, b: string): number {
  const difference = Number(a) - Number(b);
  return Number.isNaN(difference) ? a.localeCompare(b, undefined, { numeric: true }) : difference;
}

/** The arguments in which rows differ and the metrics that any of them has, as names of fields; the most frequent first. */
export function fieldsOf(rows: readonly Row[]): readonly string[] {
  const values = new Map<string, Set<string | number>>();
  const counts = new Map<string, number>();
  const metrics = new Set<string>();
  for (const row of rows) {
    for (const [name, value] of Object.entries(row.arguments)) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
      const known = values.get(name);
      if (known) {
        known.add(value);
      } else {
        values.set(name, new Set([value]));
      }
    }
    Object.keys(row.metrics).forEach(name => metrics.add(name));
  }
  const differing = [...counts].filter(([name, count]) => count < rows.length || values.get(name)!.size > 1);
  const named = differing.sort((a, b) => b[1] - a[1]).map(([name]) => ARGUMENT + name);
  return [...named, ...[...metrics].sort().map(name => METRIC + name)];
}

/** A name of a field without its kind, such as `agent.algorithm.learning_rate`. */
export function longName(field: string): string {
  return field.slice(field.indexOf(':') + 1);
}

/** The last part of the name of an argument, such as `learning_rate`; the whole name of anything else. */
export function lastName(field: string): string {
  const name = longName(field);
  return field.startsWith(ARGUMENT) ? name.slice(name.lastIndexOf('.') + 1) : name;
}

/** Rows before and after a row that it is compared with. */
const NEIGHBOURS = 2;
/** Most differences that a row names. */
const NAMED = 4;

/** Returns in what each row differs from its neighbours of the same task, such as `seed 2 · skrl`. */
export function differences(rows: readonly Row[]): ReadonlyMap<string, string> {
  const ofTask = new Map<string, Row[]>();
  for (const row of rows) {
    const others = ofTask.get(row.task);
    if (others) {
      others.push(row);
    } else {
      ofTask.set(row.task, [row]);
    }
  }
  const texts = new Map<string, string>();
  for (const others of ofTask.values()) {
    others.forEach((row, i) => {
      const near = others.slice(Math.max(0, i - NEIGHBOURS), i + NEIGHBOURS + 1);
      const names = new Set(near.flatMap(other => Object.keys(other.arguments)));
      const parts = near.some(other => other.library !== row.library) ? [row.library] : [];
      for (const name of names) {
        const value = row.arguments[name];
        if (near.some(other => other.arguments[name] !== value)) {
          parts.push(`${lastName(ARGUMENT + name)} ${value === undefined ? '–' : typeof value === 'number' ? number(value) : value}`);
        }
      }
      if (parts.length > 0) {
        texts.set(row.key, parts.slice(0, NAMED).join(' · '));
      }
    });
  }
  return texts;
}
