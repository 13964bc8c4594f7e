import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useEffect, useMemo, useState } from 'react';

import type { Desk } from '../model/desk';
import { pieces, sum } from '../model/goodput';
import { Connection } from '../parts/connection';
import { Failure } from '../parts/failure';
import { brief } from '../model/format';
import { goodputIcon } from '../parts/icons';
import { useLoaded } from '../parts/loaded';
import { useSignal } from '../parts/signal';
import { Table } from '../parts/table';
import { useDesk, View } from '../parts/view';
import { type Costs, isActive } from '../server/protocol';

/** Milliseconds between two requests for the costs of runs that still train. */
const AGAIN = 30_000;
/** Milliseconds for which the list has to stay the same before its costs are requested. */
const STEADY = 600;

/** The tab that shows what the selected runs cost, or all runs in the list if none is selected. */
export class GoodputView extends View {
  constructor(desk: Desk) {
    super(desk);
    this.title.icon = goodputIcon;
    this.title.label = desk.trans.__('Goodput');
  }

  protected override draw(): ReactElement {
    return <OfList />;
  }
}

function OfList(): ReactElement {
  const { hub, listing, trans } = useDesk();
  useSignal(hub.runs.changed, () => hub.runs.version);
  useSignal(listing.changed, () => listing.version);
  // Joined into a string, which compares equal as long as the runs stay the same.
  const joined = useSteady(listing.rowsOrAll(hub.runs).map(({ key }) => key).join());
  const keys = useMemo(() => joined.split(',').filter(Boolean), [joined]);
  return (
    <>
      <Connection />
      {keys.length > 0 ? <Goodput keys={keys} /> : <p className="rlnb-Empty">{trans.__('There are no runs in the list.')}</p>}
    </>
  );
}

/** Returns a value once it has stayed the same for a moment: a sweep adds runs to the list one by one. */
function useSteady<T>(value: T): T {
  const [steady, setSteady] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSteady(value), STEADY);
    return () => clearTimeout(timer);
  }, [value]);
  return steady;
}

/** Where the time of runs went, what interrupted them, and what they cost. */
export function Goodput({ keys }: { keys: readonly string[] }): ReactElement {
  const { hub, server, trans } = useDesk();
  const active = useSignal(hub.runs.changed, () => keys.some(key => {
    const row = hub.runs.get(key);
    return row !== undefined && isActive(row);
  }));
  const { value: costs, failure } = useLoaded(() => server.goodput(keys), [server, keys, active], active ? AGAIN : null);
  return (
    <div className="rlnb-Scroll rlnb-Goodput">
      <Failure of={failure} />
      {!costs && !failure && <p className="rlnb-Empty">{trans.__('Reading the records of the runs …')}</p>}
      {costs?.count === 0 && <p className="rlnb-Empty">{trans.__('These runs have no training.')}</p>}
      {costs && costs.count > 0 && <Shown costs={costs} />}
    </div>
  );
}

function Shown({ costs }: { costs: Costs }): ReactElement {
  const { commands, trans } = useDesk();
  const { count, facts, parts, seconds, keys, bars, runs, interruptions } = costs;
  const total = sum(seconds);
  const longest = Math.max(...bars.map(sum));
  const open = (i: number) => (
    <button className="rlnb-Link" onClick={() => void commands.execute('rlnb:open', { key: keys[i]! })}>
      {runs.rows[i]![0]}
    </button>
  );
  return (
    <>
      <h2>{trans._n('Goodput of %1 run', 'Goodput of %1 runs', count)}</h2>
      <dl className="rlnb-Facts">
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{factWord(label, trans)}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <ul className="rlnb-Legend" aria-label={trans.__('Parts of the wall time')}>
        {pieces(parts, seconds, total).map(piece => (
          <li key={piece.part}>
            <span className="rlnb-Part" data-part={piece.part} />
            {`${partWord(piece.part, trans)}: ${brief(piece.seconds)} (${Math.round(piece.percent)} %)`}
          </li>
        ))}
      </ul>
      <PartsBar parts={parts} seconds={seconds} longest={total} />
      {count > runs.rows.length && <p>{trans.__('The table shows the first %1 runs.', runs.rows.length)}</p>}
      <Table
        caption={trans.__('Goodput of each run')}
        columns={[runs.columns[0]!, trans.__('time'), ...runs.columns.slice(1)]}
        rows={runs.rows.map((row, i) => [
          open(i),
          <PartsBar key="bar" parts={parts} seconds={bars[i]!} longest={longest} />,
          ...row.slice(1)
        ])}
      />
      {interruptions.rows.length > 0 && (
        <section className="rlnb-Interruptions">
          <h3>{trans.__('Interruptions')}</h3>
          <Table caption={trans.__('Interruptions')} columns={interruptions.columns} rows={interruptions.rows} />
        </section>
      )}
    </>
  );
}

interface BarProps {
  readonly parts: readonly string[];
  readonly seconds: readonly number[];
  readonly longest: number;
}

/** A bar with a piece for each part of the wall time, in proportion to the longest bar. */
function PartsBar({ parts, seconds, longest }: BarProps): ReactElement {
  const { trans } = useDesk();
  const of = pieces(parts, seconds, longest);
  const label = of.map(({ part, seconds }) => `${partWord(part, trans)} ${brief(seconds)}`).join(', ');
  return (
    <div className="rlnb-Parts" role="img" aria-label={label} title={label}>
      {of.map(({ part, percent }) => (
        <span key={part} className="rlnb-Part" data-part={part} style={{ width: `${percent}%` }} />
      ))}
    </div>
  );
}

function partWord(part: string, trans: TranslationBundle): string {
  const words: Record<string, string> = {
    waiting: trans.__('waiting'),
    starting: trans.__('starting'),
    useful: trans.__('useful'),
    lost: trans.__('lost'),
    checkpointing: trans.__('checkpointing'),
    restarting: trans.__('restarting'),
    idle: trans.__('idle')
  };
  return words[part] ?? part;
}

function factWord(label: string, trans: TranslationBundle): string {
  const words: Record<string, string> = {
    'wall time': trans.__('wall time'),
    goodput: trans.__('goodput'),
    interruptions: trans.__('interruptions'),
    lost: trans.__('lost'),
    'node-hours': trans.__('node-hours'),
    'GPU-hours': trans.__('GPU-hours'),
    'frames per GPU-hour': trans.__('frames per GPU-hour')
  };
  return words[label] ?? label;
}
