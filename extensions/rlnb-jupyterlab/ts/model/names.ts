import type { Row } from '../server/protocol';

/** Characters at the end of an id that tell runs apart. */
const TAIL = 4;

/** The end of a run's id. */
export function tail(row: Row): string {
  return row.id.slice(-TAIL);
}

/** The name of a run, or its task without one. */
export function title(row: Row): string {
  return row.name || row.task;
}

/** A short name for a run, where there is no room for its id. */
export function shortName(row: Row): string {
  return row.name || `${row.task.replace(/^Isaac-/, '')} ${tail(row)}`;
}

/** Returns when a run was created: the time, after the date unless that is today; empty for an invalid time. */
export function moment(created: string, now: Date = new Date()): string {
  const then = new Date(created);
  if (Number.isNaN(then.getTime())) {
    return '';
  }
  const two = (n: number) => String(n).padStart(2, '0');
  const time = `${two(then.getHours())}:${two(then.getMinutes())}`;
  const day = `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())}`;
  return then.toDateString() === now.toDateString() ? time : `${day} ${time}`;
}
