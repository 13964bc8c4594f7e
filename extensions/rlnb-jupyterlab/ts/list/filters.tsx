import { HTMLSelect } from '@jupyterlab/ui-components';
import { type ReactElement, useMemo } from 'react';

import { facet, type Grouping, GROUPINGS } from '../model/query';
import { stateWord } from '../parts/dot';
import { useSignal } from '../parts/signal';
import { useDesk } from '../parts/view';
import type { Row } from '../server/protocol';

/** The search, the filters and the grouping of the list. */
export function Filters({ rows }: { rows: readonly Row[] }): ReactElement {
  const { listing, trans } = useDesk();
  const query = useSignal(listing.changed, () => listing.query);
  const groupings: Record<Grouping, string> = {
    none: trans.__('No groups'),
    task: trans.__('By task'),
    library: trans.__('By library'),
    state: trans.__('By state'),
    tag: trans.__('By tag')
  };
  return (
    <div className="rlnb-Filters" role="search">
      <input
        type="search"
        className="jp-mod-styled"
        placeholder={trans.__('Search id, task, library, tags')}
        aria-label={trans.__('Search runs')}
        value={query.text}
        onChange={event => listing.ask({ text: event.target.value })}
      />
      <Facet rows={rows} field="state" label={trans.__('State')} all={trans.__('All states')} word={state => stateWord(state, trans)} />
      <Facet rows={rows} field="task" label={trans.__('Task')} all={trans.__('All tasks')} />
      <Facet rows={rows} field="library" label={trans.__('Library')} all={trans.__('All libraries')} />
      <HTMLSelect
        aria-label={trans.__('Grouping')}
        value={query.group}
        onChange={event => listing.ask({ group: event.target.value as Grouping })}
      >
        {GROUPINGS.map(grouping => (
          <option key={grouping} value={grouping}>
            {groupings[grouping]}
          </option>
        ))}
      </HTMLSelect>
    </div>
  );
}

interface FacetProps {
  readonly rows: readonly Row[];
  readonly field: 'state' | 'task' | 'library';
  readonly label: string;
  readonly all: string;
  word?(value: string): string;
}

function Facet({ rows, field, label, all, word = value => value }: FacetProps): ReactElement {
  const { listing } = useDesk();
  const chosen = useSignal(listing.changed, () => listing.query[field]);
  const values = useMemo(() => facet(rows, field), [rows, field]);
  return (
    <HTMLSelect
      aria-label={label}
      value={chosen}
      data-chosen={chosen !== ''}
      onChange={event => listing.ask({ [field]: event.target.value })}
    >
      <option value="">{all}</option>
      {/* A saved filter that no run matches stays in the list, so that the user sees it and can clear it. */}
      {chosen && !values.some(([value]) => value === chosen) && <option value={chosen}>{`${word(chosen)} (0)`}</option>}
      {values.map(([value, count]) => (
        <option key={value} value={value}>
          {`${word(value)} (${count})`}
        </option>
      ))}
    </HTMLSelect>
  );
}
