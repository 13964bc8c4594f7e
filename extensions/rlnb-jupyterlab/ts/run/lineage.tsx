import type { ReactElement } from 'react';

import { type Line, linesOf } from '../model/lineage';
import { Dot, stateWord } from '../parts/dot';
import { useLoaded } from '../parts/loaded';
import { useSignal } from '../parts/signal';
import { useDesk } from '../parts/view';

/** The runs that a run comes from and those that come from it, as a tree. Nothing if there are none. */
export function Lineage({ runKey }: { runKey: string }): ReactElement | null {
  const { hub, server, trans } = useDesk();
  useSignal(hub.runs.changed, () => hub.runs.version);
  // A new run may come from this one. A resumption changes the state.
  const { value: lineage } = useLoaded(() => server.lineage(runKey), [server, runKey, hub.runs.size, hub.runs.get(runKey)?.state]);
  if (!lineage || lineage.lines.length === 0) {
    return null;
  }
  const lines = linesOf(
    lineage,
    runKey,
    key => hub.runs.get(key),
    value => trans.__('reward %1', value)
  );
  return (
    <section>
      <h3>{trans.__('Lineage')}</h3>
      <ul className="rlnb-Lineage" aria-label={trans.__('Lineage')}>
        {lineage.older && <li>{trans.__('Older runs are not shown.')}</li>}
        {lines.map(line => (
          <Relative key={line.id} line={line} />
        ))}
        {lineage.hidden > 0 && <li>{trans.__('%1 later runs are not shown.', lineage.hidden)}</li>}
      </ul>
    </section>
  );
}

function Relative({ line }: { line: Line }): ReactElement {
  const { commands, trans } = useDesk();
  const { key, id, title, depth, own, listed, state, facts } = line;
  const gone = key ? trans.__('cannot be read') : trans.__('deleted or moved');
  return (
    <li style={{ paddingLeft: `${1.5 * depth}em` }} aria-current={own ? 'true' : undefined}>
      <Dot state={state ?? ''} />
      {listed && !own ? (
        <button className="rlnb-Lineage-run" title={id} onClick={() => void commands.execute('rlnb:open', { key })}>
          {title}
        </button>
      ) : (
        <span className="rlnb-Lineage-run" title={id}>
          {title}
        </span>
      )}{' '}
      <span>{[state ? stateWord(state, trans) : gone, facts].filter(Boolean).join(' · ')}</span>
    </li>
  );
}
