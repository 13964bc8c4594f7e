import { type ReactElement, useMemo, useState } from 'react';

import { Failure } from '../parts/failure';
import { value } from '../model/format';
import { useLoaded } from '../parts/loaded';
import { useSignal } from '../parts/signal';
import { Table } from '../parts/table';
import { useDesk } from '../parts/view';
import type { Value } from '../server/protocol';

/** The config of a run, or on request the values in which it differs from the other selected runs. */
export function Config({ runKey, config }: { runKey: string; config: Readonly<Record<string, Value>> }): ReactElement {
  const { hub, listing, trans } = useDesk();
  // Joined into a string, which compares equal as long as the selection stays the same.
  const chosen = useSignal(listing.changed, () => listing.rows(hub.runs).map(({ key }) => key).join());
  const [differing, setDiffering] = useState(false);
  const others = useMemo(() => chosen.split(',').filter(key => key && key !== runKey), [chosen, runKey]);
  const keys = useMemo(() => [runKey, ...others], [runKey, others]);
  return (
    <div className="rlnb-Config">
      {others.length > 0 && (
        <label className="rlnb-Check">
          <input type="checkbox" checked={differing} onChange={event => setDiffering(event.target.checked)} />
          {trans.__('Differences from the other selected runs (%1)', others.length)}
        </label>
      )}
      {differing && others.length > 0 ? (
        <Difference keys={keys} />
      ) : (
        <Values columns={[trans.__('name'), trans.__('value')]} rows={Object.entries(config)} />
      )}
    </div>
  );
}

/** The values in which runs differ. */
export function Difference({ keys }: { keys: readonly string[] }): ReactElement {
  const { server, trans } = useDesk();
  const { value: diff, failure } = useLoaded(() => server.diff(keys), [server, keys]);
  const rows = useMemo(() => (diff?.rows ?? []).filter(([, ...values]) => new Set(values.map(value)).size > 1), [diff]);
  return (
    <>
      <Failure of={failure} />
      {diff && rows.length > 0 && <Values columns={[trans.__('name'), ...diff.columns]} rows={rows} />}
      {diff && rows.length === 0 && <p className="rlnb-Empty">{trans.__('The configs are identical.')}</p>}
    </>
  );
}

/** How the sources of runs' tasks differ from that of the first run, as text. */
export function SourceDifference({ keys }: { keys: readonly string[] }): ReactElement {
  const { server, trans } = useDesk();
  const { value: diff, failure } = useLoaded(() => server.diff(keys), [server, keys]);
  return (
    <div className="rlnb-Scroll">
      <Failure of={failure} />
      {diff?.sources.length === 0 && <p className="rlnb-Empty">{trans.__('The sources are equal, or belong to packages.')}</p>}
      {diff?.sources.map((lines, i) => (
        <pre key={i} className="rlnb-Diff">
          {lines.map((line, j) => (
            <span key={j} data-change={/^[+-]/.test(line) ? line[0] : ''}>{`${line}\n`}</span>
          ))}
        </pre>
      ))}
    </div>
  );
}

interface ValuesProps {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly [string, ...Value[]])[];
}

function Values({ columns, rows }: ValuesProps): ReactElement {
  const { trans } = useDesk();
  const [filter, setFilter] = useState('');
  const texts = useMemo(() => rows.map(([name, ...values]) => [name, ...values.map(value)]), [rows]);
  const wanted = texts.filter(cells => cells.some(cell => cell.toLowerCase().includes(filter.toLowerCase())));
  return (
    <>
      <input
        type="search"
        className="jp-mod-styled"
        placeholder={trans.__('Filter names and values')}
        aria-label={trans.__('Filter names and values')}
        value={filter}
        onChange={event => setFilter(event.target.value)}
      />
      <div className="rlnb-Scroll rlnb-Mono">
        <Table caption={trans.__('Config')} columns={columns} rows={wanted} />
        {wanted.length === 0 && <p className="rlnb-Empty">{trans.__('Nothing matches.')}</p>}
      </div>
    </>
  );
}
