import type { ReactElement } from 'react';

import type { Refusal } from '../server/server';

/** An error and its fix. */
export function Failure({ of }: { of: Refusal | null }): ReactElement | null {
  return of ? (
    <div className="rlnb-Failure" role="alert">
      <p>{of.message}</p>
      {of.fix && <p className="rlnb-Fix">{of.fix}</p>}
    </div>
  ) : null;
}
