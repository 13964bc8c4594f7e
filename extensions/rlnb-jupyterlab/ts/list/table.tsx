import { spreadsheetIcon } from '@jupyterlab/ui-components';
import { type ReactElement, useDeferredValue, useMemo } from 'react';

import type { Desk } from '../model/desk';
import { FIELDS, fieldsOf, longName } from '../model/fields';
import { arrange, select } from '../model/query';
import { Connection } from '../parts/connection';
import { useSignal } from '../parts/signal';
import { useDesk, View } from '../parts/view';
import { Filters } from './filters';
import { List } from './list';
import { fieldWord } from './words';

/** The tab with the runs as a table, whose columns the user chooses. It has the filters and the selection of the panel. */
export class TableView extends View {
  constructor(desk: Desk) {
    super(desk);
    this.addClass('rlnb-TableView');
    this.title.icon = spreadsheetIcon;
    this.title.label = desk.trans.__('RL runs');
  }

  protected override draw(): ReactElement {
    return <Runs />;
  }
}

function Runs(): ReactElement {
  const { hub, listing, trans } = useDesk();
  const version = useSignal(hub.runs.changed, () => hub.runs.version);
  const query = useDeferredValue(useSignal(listing.changed, () => listing.query));
  const closed = useSignal(listing.changed, () => listing.closed);
  const columns = useSignal(listing.changed, () => listing.columns);
  const rows = useMemo(() => hub.runs.newestFirst, [hub, version]);
  const fields = useMemo(() => fieldsOf(rows), [rows]);
  const matches = useMemo(() => select(rows, query), [rows, query]);
  const lines = useMemo(() => arrange(matches, query.group, closed), [matches, query.group, closed]);
  return (
    <>
      <Connection />
      <div className="rlnb-TableView-head">
        <Filters rows={rows} />
        <details className="rlnb-Columns">
          <summary>{trans.__('Columns')}</summary>
          <div>
            {[...new Set([...columns, ...FIELDS, ...fields])].map(field => (
              <label key={field} title={longName(field)}>
                <input type="checkbox" checked={columns.includes(field)} onChange={() => listing.toggle(field)} />
                {FIELDS.includes(field as 'name') ? fieldWord(field, trans) : longName(field)}
              </label>
            ))}
          </div>
        </details>
      </div>
      {lines.length > 0 ? <List lines={lines} query={query} columns={columns} /> : <p className="rlnb-Empty">{trans.__('No run matches.')}</p>}
      <div className="rlnb-Count" role="status">
        {trans.__('%1 of %2 runs', matches.length, rows.length)}
      </div>
    </>
  );
}
