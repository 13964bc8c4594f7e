import { CommandToolbarButton, Toolbar } from '@jupyterlab/ui-components';
import { Panel } from '@lumino/widgets';
import { type ReactElement, useDeferredValue, useMemo } from 'react';

import type { Desk } from '../model/desk';
import { arrange, select } from '../model/query';
import { Connection } from '../parts/connection';
import { Failure } from '../parts/failure';
import { runsIcon } from '../parts/icons';
import { useSignal } from '../parts/signal';
import { useDesk, View } from '../parts/view';
import { Refusal } from '../server/server';
import { Filters } from './filters';
import { List } from './list';

/** The side panel with the list of runs. */
export class RunsPanel extends Panel {
  constructor(desk: Desk) {
    super();
    const { commands, trans } = desk;
    this.id = 'rlnb-runs';
    this.addClass('rlnb-Panel');
    this.title.icon = runsIcon;
    this.title.caption = trans.__('RL runs');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('RL runs'));
    const toolbar = new Toolbar();
    toolbar.node.setAttribute('aria-label', trans.__('Actions on runs'));
    for (const name of ['new', 'open', 'compare', 'table', 'goodput', 'delete', 'cluster']) {
      toolbar.addItem(name, new CommandToolbarButton({ commands, id: `rlnb:${name}`, args: { of: 'selection' }, label: '' }));
    }
    this.addWidget(toolbar);
    this.addWidget(new RunsList(desk));
  }
}

class RunsList extends View {
  protected override draw(): ReactElement {
    return <Runs />;
  }
}

function Runs(): ReactElement {
  const { hub, listing, trans } = useDesk();
  const version = useSignal(hub.runs.changed, () => hub.runs.version);
  const query = useSignal(listing.changed, () => listing.query);
  const closed = useSignal(listing.changed, () => listing.closed);
  const selected = useSignal(listing.changed, () => listing.selected);
  // Typing has priority over drawing the list.
  const deferred = useDeferredValue(query);
  const rows = useMemo(() => hub.runs.newestFirst, [hub, version]);
  const matches = useMemo(() => select(rows, deferred), [rows, deferred]);
  const chosen = useMemo(() => listing.rows(hub.runs).length, [hub, listing, version, query, selected]);
  const lines = useMemo(() => arrange(matches, deferred.group, closed), [matches, deferred.group, closed]);
  const { places } = hub.runs;
  const folders = places.map(({ path }) => path).join('\n');
  return (
    <>
      <Connection />
      {places.map(({ path, trouble }) => (
        <Failure key={path} of={trouble ? new Refusal(trans.__('%1 cannot be read: %2', path, trouble), '') : null} />
      ))}
      <Filters rows={rows} />
      {lines.length > 0 ? (
        <List lines={lines} query={deferred} />
      ) : (
        <p className="rlnb-Empty">
          {!hub.runs.known
            ? trans.__('Looking for runs …')
            : rows.length > 0
              ? trans.__('No run matches.')
              : !places.some(({ trouble }) => trouble) &&
                trans.__('There are no runs in %1 yet. Runs started with rlnb.train() appear here.', folders)}
        </p>
      )}
      <div className="rlnb-Count" role="status" title={folders}>
        {trans.__('%1 of %2 runs', matches.length, rows.length)}
        {chosen > 0 && ` · ${trans.__('%1 selected', chosen)}`}
      </div>
    </>
  );
}
