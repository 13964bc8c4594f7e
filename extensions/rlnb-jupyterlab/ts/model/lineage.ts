import type { Lineage, Row } from '../server/protocol';
import { number } from './format';

/** A run in the tree of a lineage. */
export interface Line {
  readonly key: string;
  readonly id: string;
  readonly title: string;
  readonly depth: number;
  /** Whether the tab shows this run. */
  readonly own: boolean;
  /** Whether the list has the run, so that its tab can be opened. */
  readonly listed: boolean;
  /** Null for a run that is gone or cannot be read. */
  readonly state: string | null;
  /** How the run has come about, in what it differs from the run above it, and its reward. */
  readonly facts: string;
}

/**
 * Returns the lines of a tree. The state, the reward and the name of a run in the list are those of the list, which is live.
 *
 * @param own - Key of the run whose tab it is.
 * @param rowOf - Returns the row of a run in the list.
 * @param reward - Returns a reward in words.
 */
export function linesOf(
  lineage: Lineage,
  own: string,
  rowOf: (key: string) => Row | undefined,
  reward: (value: string) => string
): readonly Line[] {
  return lineage.lines.map(({ key, id, title, depth, facts, state, reward: last }) => {
    const row = key ? rowOf(key) : undefined;
    const value = row ? row.reward : last;
    return {
      key,
      id,
      title: row?.name || title,
      depth,
      own: key === own,
      listed: row !== undefined,
      state: (row?.state ?? state) || null,
      facts: [...facts, ...(value === null ? [] : [reward(number(value))])].join(' · ')
    };
  });
}
