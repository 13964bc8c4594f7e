import type { ReactElement } from 'react';

import { useSignal } from './signal';
import { useDesk } from './view';

/** A warning while there is no connection to the server, since the views may be out of date. */
export function Connection(): ReactElement | null {
  const { hub, trans } = useDesk();
  const status = useSignal(hub.stream.statusChanged, () => hub.stream.status);
  if (status !== 'waiting') {
    return null;
  }
  return (
    <div className="rlnb-Connection" role="status">
      {trans.__('The server of RL runs is not responding.')}
      <button className="jp-mod-styled jp-mod-minimal" onClick={() => hub.stream.retry()}>
        {trans.__('Try now')}
      </button>
    </div>
  );
}
