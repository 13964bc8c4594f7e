/** Formats numbers for narrow columns. Units are the same in every language, so they are not translated. */

import type { Row } from '../server/protocol';

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** A span of time in at most two units: 45 s, 3 min 20 s, 2 h 05 min, 4 d 03 h. */
export function span(seconds: number | null): string {
  if (seconds === null || !Number.isFinite(seconds) || seconds < 0) {
    return '';
  }
  const s = Math.round(seconds);
  const two = (n: number) => String(n).padStart(2, '0');
  if (s < 60) {
    return `${s} s`;
  }
  if (s < 3600) {
    return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  }
  const minutes = Math.round(s / 60);
  if (minutes < 24 * 60) {
    return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
  }
  const hours = Math.round(s / 3600);
  return `${Math.floor(hours / 24)} d ${two(hours % 24)} h`;
}

/** A span of time with a digit after the point below ten seconds: 0.3 s, 45 s, 3 min 20 s. */
export function brief(seconds: number): string {
  return seconds < 9.95 ? `${seconds.toFixed(1)} s` : span(seconds);
}

/** Why a run waits, and for how long once that is more than a minute: PENDING (Priority), 12 min 05 s. */
export function reason(row: Pick<Row, 'reason' | 'since'>, now: Date = new Date()): string {
  const seconds = (now.getTime() - Date.parse(row.since)) / 1000;
  return row.reason && seconds >= 60 ? `${row.reason}, ${span(seconds)}` : row.reason;
}

/** A reason for a line of the list: runs are named by the end of their id, as their own lines name them. */
export function shortReason(text: string): string {
  return text.replace(/\b\d{8}-\d{6}-[\w.-]*-(\w{4})\b/g, '$1');
}

/** Decimal units, as `ls --si` and file managers count. */
export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  // 999.5 would be shown as 1000, which is 1 in the next unit.
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 99.5 ? Math.round(value) : value.toPrecision(2)} ${UNITS[unit]}`;
}

/** A number with about three significant digits; a dash for a missing one. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) {
    return '–';
  }
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) {
    return value.toExponential(1).replace('e+', 'e');
  }
  if (size >= 1000) {
    return String(Math.round(value));
  }
  return String(Number(value.toPrecision(3)));
}

/** The part of a run that is done, 0 to 1; 0 if the total is unknown. */
export function progress(iteration: number, total: number): number {
  return total > 0 ? Math.min(1, Math.max(0, iteration / total)) : 0;
}

/** A config value as text: a string as it is, any other value as JSON. */
export function value(of: unknown): string {
  return typeof of === 'string' ? of : (JSON.stringify(of) ?? '');
}
