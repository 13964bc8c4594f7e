import type { Row } from '../server/protocol';

/** So much of the end of an id tells runs apart. */
const TAIL = 4;

/** The end of a run's id. */
export function tail(row: Row): string {
  return row.id.slice(-TAIL);
}

/** A run where there is no room for its id. */
export function shortName(row: Row): string {
  return `${row.task.replace(/^Isaac-/, '')} ${tail(row)}`;
}

/** When a run was asked for: the time of today, else the date too. Without a time where its record has none. */
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
