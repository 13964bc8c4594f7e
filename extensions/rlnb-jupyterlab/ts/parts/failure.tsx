import type { ReactElement } from 'react';

import type { Refusal } from '../server/server';

/** What went wrong, and its mend. */
export function Failure({ of }: { of: Refusal | null }): ReactElement | null {
  return of ? (
    <div className="rlnb-Failure" role="alert">
      <p>{of.message}</p>
      {of.mend && <p className="rlnb-Mend">{of.mend}</p>}
    </div>
  ) : null;
}
