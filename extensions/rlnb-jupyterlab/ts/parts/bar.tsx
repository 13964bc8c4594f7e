import type { ReactElement } from 'react';

import type { Row } from '../server/protocol';
import { progress } from '../model/format';

/** The progress of a run. */
export function Bar({ row, label }: { row: Row; label: string }): ReactElement {
  const percent = Math.round(100 * progress(row.iteration, row.total));
  return (
    <div
      className="rlnb-Bar"
      data-state={row.state}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent}
    >
      <div style={{ width: `${percent}%` }} />
    </div>
  );
}
