import { HTMLSelect } from '@jupyterlab/ui-components';
import { type ReactElement, useMemo } from 'react';

import { fieldsOf, longName } from '../model/fields';
import { facet, GROUPINGS } from '../model/query';
import { stateWord } from '../parts/dot';
import { useSignal } from '../parts/signal';
import { useDesk } from '../parts/view';
import type { Row } from '../server/protocol';
import { fieldWord } from './words';

/** The search, the filters and the grouping of the list. */
export function Filters({ rows }: { rows: readonly Row[] }): ReactElement {
  const { listing, trans } = useDesk();
  const query = useSignal(listing.changed, () => listing.query);
  const fields = useMemo(() => fieldsOf(rows), [rows]);
  const groupings: Record<string, string> = {
    none: trans.__('No groups'),
    task: trans.__('By task'),
    library: trans.__('By library'),
    state: trans.__('By state'),
    tag: trans.__('By tag')
  };
  // Metrics differ from run to run, so a group would have one run.
  const grouped = new Set([...GROUPINGS, ...fields.filter(field => field.startsWith('arg:')), query.group]);
  const sorts = new Set(['created', 'name', 'reward', 'success', 'iteration', ...fields, query.sort]);
  return (
    <div className="rlnb-Filters" role="search">
      <input
        type="search"
        className="jp-mod-styled"
        placeholder={trans.__('Search names, tasks, arguments, tags')}
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
        onChange={event => listing.ask({ group: event.target.value })}
      >
        {[...grouped].map(grouping => (
          <option key={grouping} value={grouping}>
            {groupings[grouping] ?? trans.__('By %1', longName(grouping))}
          </option>
        ))}
      </HTMLSelect>
      <HTMLSelect aria-label={trans.__('Order')} value={query.sort} onChange={event => listing.sortBy(event.target.value)}>
        {[...sorts].map(field => (
          <option key={field} value={field}>
            {field === 'created' ? trans.__('Newest first') : trans.__('Sorted by %1', field.includes(':') ? longName(field) : fieldWord(field, trans))}
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
