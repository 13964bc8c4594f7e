import { memo, type ReactElement } from 'react';

import { cellOf, longName } from '../model/fields';
import { tail } from '../model/names';
import { Dot, stateWord } from '../parts/dot';
import { useSignal } from '../parts/signal';
import { useDesk } from '../parts/view';
import type { Row } from '../server/protocol';
import { fieldWord } from './words';

/** Pixels of a column, and of the check box before the first. */
const WIDTHS: Record<string, number> = { name: 180, task: 190, tags: 160, created: 136, state: 100 };
const USUAL = 92;
const BOX = 28;

const tracks = (columns: readonly string[]): number[] => [BOX, ...columns.map(field => WIDTHS[field] ?? USUAL)];
const template = (columns: readonly string[]): string => tracks(columns).map(width => `${width}px`).join(' ');

/** Pixels of a line of the table. */
export function widthOf(columns: readonly string[]): number {
  return tracks(columns).reduce((sum, width) => sum + width, 0);
}

/** The head of the table. A click sorts by the column; another click turns the order round. */
export function Head({ columns }: { columns: readonly string[] }): ReactElement {
  const { listing, trans } = useDesk();
  const { sort, descending } = useSignal(listing.changed, () => listing.query);
  return (
    <div className="rlnb-RunTable-head" role="presentation" style={{ gridTemplateColumns: template(columns), width: widthOf(columns) }}>
      <span />
      {columns.map(field => (
        <button
          key={field}
          title={longName(field)}
          data-sorted={sort === field}
          aria-label={trans.__('Sort by %1', longName(field))}
          onClick={() => listing.sortBy(field)}
        >
          {fieldWord(field, trans)}
          {sort === field && <span aria-hidden="true">{descending ? ' ▼' : ' ▲'}</span>}
        </button>
      ))}
    </div>
  );
}

/** A run as a line of the table, drawn again only when the run or the columns have changed. */
export const Cells = memo(function Cells({ row, selected, columns }: { row: Row; selected: boolean; columns: readonly string[] }): ReactElement {
  const { trans } = useDesk();
  return (
    <div className="rlnb-RunTable-cells" style={{ gridTemplateColumns: template(columns) }}>
      <input type="checkbox" tabIndex={-1} checked={selected} readOnly aria-label={trans.__('Select %1', row.id)} />
      {columns.map(field =>
        field === 'state' ? (
          <span key={field} title={row.reason}>
            <Dot state={row.state} /> {stateWord(row.state, trans)}
          </span>
        ) : field === 'name' ? (
          <span key={field} title={row.id} data-unnamed={row.name === ''}>
            {row.name || tail(row)}
          </span>
        ) : (
          <span key={field} title={cellOf(row, field)}>
            {cellOf(row, field)}
          </span>
        )
      )}
    </div>
  );
});
