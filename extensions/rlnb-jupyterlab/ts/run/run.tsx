import { type ReactElement, useEffect, useMemo, useReducer, useState } from 'react';

import type { Desk } from '../model/desk';
import { shortName } from '../model/names';
import { Connection } from '../parts/connection';
import { Failure } from '../parts/failure';
import { runsIcon } from '../parts/icons';
import { useLoaded } from '../parts/loaded';
import { useSignal } from '../parts/signal';
import { type Section, Tabs } from '../parts/tabs';
import { useDesk, View } from '../parts/view';
import { type ActionMessage, isActive } from '../server/protocol';
import { Refusal } from '../server/server';
import { Cameras } from './cameras';
import { Checkpoints } from './checkpoints';
import { Config } from './config';
import { CurvesView } from './curves';
import { Figures } from './figures';
import { Goodput } from './goodput';
import { Files } from './files';
import { Logs } from './logs';
import { Overview } from './overview';
import { Report } from './report';

/** Milliseconds between two requests for the details of an active run: no message announces checkpoints and files. */
const AGAIN = 10_000;

/** The tab of one run. */
export class RunView extends View {
  constructor(
    desk: Desk,
    readonly runKey: string
  ) {
    super(desk);
    this.addClass('rlnb-RunView');
    this.title.icon = runsIcon;
    this._entitle();
    desk.hub.runs.changed.connect(this._entitle, this);
  }

  protected override draw(): ReactElement {
    return <Run runKey={this.runKey} first={this._section} onSection={section => (this._section = section)} />;
  }

  private _entitle(): void {
    const row = this.desk.hub.runs.get(this.runKey);
    this.title.label = row ? shortName(row) : this.title.label || this.desk.trans.__('RL run');
    this.title.caption = row ? `${row.name || row.task}\n${row.id}` : this.title.caption || this.title.label;
  }

  /** Outlives the React tree, which is unmounted when the tab is moved. */
  private _section = 'overview';
}

/** Counts the ended actions on a run, since its details are stale after each. A deletion leaves no details. */
function useEndedActions(runKey: string): number {
  const { hub } = useDesk();
  const [count, end] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const note = (_: unknown, message: ActionMessage) => {
      if (message.keys.includes(runKey) && message.state !== 'running' && message.action !== 'delete') {
        end();
      }
    };
    hub.acted.connect(note);
    return () => void hub.acted.disconnect(note);
  }, [hub, runKey]);
  return count;
}

function Run({ runKey, first, onSection }: { runKey: string; first: string; onSection(name: string): void }): ReactElement {
  const { hub, server, trans } = useDesk();
  const [current, setCurrent] = useState(first);
  const known = useSignal(hub.runs.changed, () => hub.runs.get(runKey));
  const ended = useEndedActions(runKey);
  const active = known ? isActive(known) : false;
  const { value: detail, failure, reload } = useLoaded(
    () => server.detail(runKey),
    [server, runKey, known?.state, ended],
    active ? AGAIN : null
  );
  const keys = useMemo(() => [runKey], [runKey]);
  const row = known ?? detail?.row;
  if (!row || !detail) {
    return failure ? <Failure of={failure} /> : <p className="rlnb-Empty">{trans.__('Loading the run …')}</p>;
  }
  const live = row.state === 'running' && detail.live_cameras;
  const sections: Section[] = [
    { name: 'overview', label: trans.__('Overview'), draw: () => <Overview row={row} detail={detail} onWritten={reload} /> },
    { name: 'curves', label: trans.__('Curves'), draw: () => <CurvesView keys={keys} names={[row.id]} /> },
    { name: 'figures', label: trans.__('Figures'), draw: () => <Figures runKey={runKey} iteration={row.iteration} /> },
    { name: 'cameras', label: trans.__('Cameras'), draw: () => <Cameras detail={detail} live={live} /> },
    { name: 'logs', label: trans.__('Logs'), draw: () => <Logs detail={detail} /> },
    { name: 'config', label: trans.__('Config'), draw: () => <Config runKey={runKey} config={detail.config} /> },
    { name: 'checkpoints', label: trans.__('Checkpoints'), draw: () => <Checkpoints row={row} detail={detail} /> },
    { name: 'files', label: trans.__('Files'), draw: () => <Files detail={detail} /> },
    { name: 'goodput', label: trans.__('Goodput'), draw: () => <Goodput keys={keys} /> },
    { name: 'report', label: trans.__('Report'), draw: () => <Report detail={detail} version={ended} /> }
  ];
  return (
    <>
      <Connection />
      <Failure of={failure} />
      {hub.runs.known && !known && <Failure of={new Refusal(trans.__('This run is not listed any more: it was archived, moved or deleted.'), '')} />}
      <Tabs
        label={trans.__('Sections of the run')}
        sections={sections}
        current={current}
        onChange={name => {
          setCurrent(name);
          onSection(name);
        }}
      />
    </>
  );
}
