import type { Checkpoint, Row } from '../server/protocol';

/** Returns the iteration after which a run resumes: a run that did not complete goes back to its last checkpoint. */
export function doneBefore(row: Row, checkpoints: readonly Checkpoint[], chosen: string | undefined): number {
  if (chosen === undefined && row.state === 'completed') {
    return row.iteration;
  }
  const from = checkpoints.filter(({ name }) => chosen === undefined || name === chosen);
  return Math.max(0, ...from.map(({ iteration }) => iteration ?? 0));
}
