import type { ReactElement } from 'react';

import { bytes } from '../model/format';
import { useSignal } from '../parts/signal';
import { Table } from '../parts/table';
import { useDesk } from '../parts/view';
import type { Detail, Row } from '../server/protocol';
import { isActive } from '../server/protocol';

/** The checkpoints of a run, newest first, with the actions for each. */
export function Checkpoints({ row, detail }: { row: Row; detail: Detail }): ReactElement {
  const { commands, libraries, trans } = useDesk();
  const exports = useSignal(libraries.changed, () => libraries.exports(row.library));
  if (detail.checkpoints.length === 0) {
    return <p className="rlnb-Empty">{trans.__('There are no checkpoints yet.')}</p>;
  }
  const actions = [
    { id: 'rlnb:evaluate', label: trans.__('Evaluate'), possible: true },
    { id: 'rlnb:export', label: trans.__('Export'), possible: exports },
    { id: 'rlnb:resume', label: trans.__('Resume'), possible: !isActive(row) }
  ];
  return (
    <div className="rlnb-Scroll">
      <Table
        caption={trans.__('Checkpoints')}
        columns={[trans.__('name'), trans.__('iteration'), trans.__('size'), trans.__('actions')]}
        rows={[...detail.checkpoints].reverse().map(({ name, iteration, bytes: size, abandoned }) => [
          name,
          abandoned ? trans.__('abandoned') : iteration,
          bytes(size),
          <div className="rlnb-Buttons">
            {actions.map(({ id, label, possible }) => (
              <button
                key={id}
                className="jp-mod-styled jp-mod-minimal"
                disabled={!possible}
                aria-label={trans.__('%1: %2', label, name)}
                onClick={() => void commands.execute(id, { key: row.key, checkpoint: name })}
              >
                {label}
              </button>
            ))}
          </div>
        ])}
      />
    </div>
  );
}
