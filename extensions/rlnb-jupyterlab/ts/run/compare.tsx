import { type ReactElement, useState } from 'react';

import type { Desk } from '../model/desk';
import { shortName } from '../model/names';
import { Connection } from '../parts/connection';
import { compareIcon } from '../parts/icons';
import { useSignal } from '../parts/signal';
import { Tabs } from '../parts/tabs';
import { useDesk, View } from '../parts/view';
import { Difference, SourceDifference } from './config';
import { CurvesView } from './curves';
import { Goodput } from './goodput';

/** The tab that compares several runs. */
export class CompareView extends View {
  constructor(
    desk: Desk,
    readonly keys: readonly string[]
  ) {
    super(desk);
    this.title.icon = compareIcon;
    this.title.label = desk.trans.__('Comparison of %1 runs', keys.length);
  }

  protected override draw(): ReactElement {
    return <Comparison keys={this.keys} />;
  }
}

function Comparison({ keys }: { keys: readonly string[] }): ReactElement {
  const { hub, trans } = useDesk();
  const [current, setCurrent] = useState('curves');
  useSignal(hub.runs.changed, () => hub.runs.version);
  const names = keys.map(key => {
    const row = hub.runs.last(key);
    const name = row ? shortName(row) : trans.__('a run');
    return hub.runs.known && !hub.runs.get(key) ? trans.__('%1 (deleted)', name) : name;
  });
  return (
    <>
      <Connection />
      <Tabs
        label={trans.__('Sections of the comparison')}
        current={current}
        onChange={setCurrent}
        sections={[
          { name: 'curves', label: trans.__('Curves'), draw: () => <CurvesView keys={keys} names={names} /> },
          {
            name: 'config',
            label: trans.__('Config'),
            draw: () => (
              <div className="rlnb-Config">
                <Difference keys={keys} />
              </div>
            )
          },
          { name: 'code', label: trans.__('Code'), draw: () => <SourceDifference keys={keys} /> },
          { name: 'goodput', label: trans.__('Goodput'), draw: () => <Goodput keys={keys} /> }
        ]}
      />
    </>
  );
}
