/** A group of metrics with the same begin of their names, such as `Episode_Reward`. */
export interface Section {
  readonly name: string;
  readonly metrics: readonly string[];
}

/** Most charts of metrics that a filter finds. */
export const MOST_FOUND = 60;

/** The groups that most users look at first. */
const FIRST = ['Episode_Reward', 'Metrics', 'Episode_Termination', 'Curriculum'];

/** The begin of a metric's name: the part before the last slash; empty without one. */
export function prefixOf(metric: string): string {
  return metric.slice(0, Math.max(0, metric.lastIndexOf('/')));
}

/** Returns metrics in groups by the begin of their names. */
export function sectionsOf(metrics: readonly string[]): readonly Section[] {
  const groups = new Map<string, string[]>();
  for (const metric of metrics) {
    const name = prefixOf(metric);
    const members = groups.get(name);
    if (members) {
      members.push(metric);
    } else {
      groups.set(name, [metric]);
    }
  }
  const place = (name: string) => (FIRST.indexOf(name) + FIRST.length + 1) % (FIRST.length + 1);
  return [...groups]
    .sort(([a], [b]) => place(a) - place(b) || Number(a === '') - Number(b === '') || a.localeCompare(b))
    .map(([name, members]) => ({ name, metrics: members.sort((a, b) => a.localeCompare(b, undefined, { numeric: true })) }));
}

/** Returns the metrics whose names contain a text. */
export function found(metrics: readonly string[], text: string): readonly string[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return metrics.filter(metric => words.every(word => metric.toLowerCase().includes(word)));
}
