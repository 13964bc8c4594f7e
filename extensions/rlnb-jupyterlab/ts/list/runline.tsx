import type { TranslationBundle } from '@jupyterlab/translation';
import { memo, type ReactElement } from 'react';

import { moment, tail, title } from '../model/names';
import { Bar } from '../parts/bar';
import { Dot, stateWord } from '../parts/dot';
import { number, progress, reason, shortReason, span } from '../model/format';
import { Sparkline } from '../parts/sparkline';
import { isActive, type Row } from '../server/protocol';

interface Props {
  readonly row: Row;
  /** In what the run differs from its neighbours; empty if it is like them. */
  readonly differing: string;
  readonly selected: boolean;
  readonly sparkline: boolean;
  readonly trans: TranslationBundle;
}

/** Returns the text with which a screen reader describes a run. */
export function spoken(row: Row, trans: TranslationBundle): string {
  const percent = Math.round(100 * progress(row.iteration, row.total));
  const parts = [...new Set([title(row), row.task]), stateWord(row.state, trans), row.library, row.device, `${percent} %`];
  if (row.reward !== null) {
    parts.push(trans.__('reward %1', number(row.reward)));
  }
  if (row.reason) {
    parts.push(reason(row));
  }
  return [...parts, row.id].join(', ');
}

/** A run in two lines, drawn again only when the run has changed. The list handles its clicks. */
export const RunLine = memo(function RunLine({ row, differing, selected, sparkline, trans }: Props): ReactElement {
  return (
    <>
      <input type="checkbox" tabIndex={-1} checked={selected} readOnly aria-label={trans.__('Select %1', row.id)} />
      <div className="rlnb-Run-text">
        <div className="rlnb-Run-top">
          <Dot state={row.state} word={stateWord(row.state, trans)} />
          <span className="rlnb-Run-task" title={`${title(row)}\n${row.task}\n${row.id}`}>
            {title(row)}
          </span>
          {sparkline && <Sparkline values={row.spark} />}
          <span className="rlnb-Run-reward" title={trans.__('Last reward')}>
            {number(row.reward)}
          </span>
        </div>
        <div className="rlnb-Run-bottom">
          <span className="rlnb-Run-facts" title={[reason(row), row.library, row.device, differing, ...row.tags].filter(Boolean).join(' · ')}>
            {[shortReason(row.reason), differing, moment(row.created), tail(row), ...row.tags].filter(Boolean).join(' · ')}
          </span>
          {row.state !== 'completed' && (row.iteration > 0 || !row.reason || !isActive(row)) && <Bar row={row} label={trans.__('Progress')} />}
          <span className="rlnb-Run-eta" title={isActive(row) ? trans.__('Time left') : ''}>
            {(isActive(row) && span(row.eta_s)) || stateWord(row.state, trans)}
          </span>
        </div>
      </div>
    </>
  );
});
