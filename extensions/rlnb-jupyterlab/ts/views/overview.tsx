import type { ReactElement } from 'react';

import { bytes, number, span } from '../format';
import { type Detail, isActive, type Row } from '../protocol';
import { Bar } from './bar';
import { Dot, stateWord } from './dot';
import { Table } from './table';
import { useDesk } from './view';

/** What a run is, how far it is, and what became of its jobs. */
export function Overview({ row, detail }: { row: Row; detail: Detail }): ReactElement {
  const { trans } = useDesk();
  const left = isActive(row) ? span(row.eta_s) : '';
  return (
    <div className="rlnb-Scroll rlnb-Overview">
      <header>
        <h2>{row.task}</h2>
        <p className="rlnb-Overview-state">
          <Dot state={row.state} />
          <span>{stateWord(row.state, trans)}</span>
          <Bar row={row} label={trans.__('Progress')} />
          <span>{row.total > 0 ? trans.__('iteration %1 of %2', row.iteration, row.total) : trans.__('iteration %1', row.iteration)}</span>
          {left && <span>{trans.__('%1 left', left)}</span>}
          {row.reward !== null && <span>{trans.__('reward %1', number(row.reward))}</span>}
          {row.success !== null && <span>{trans.__('success %1', number(row.success))}</span>}
        </p>
        {row.error && <pre className="rlnb-Failure">{row.error}</pre>}
      </header>
      <dl className="rlnb-Facts">
        {detail.overview.map(([label, value], i) => (
          <div key={i}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {detail.notes.length > 0 && (
        <section>
          <h3>{trans.__('Notes')}</h3>
          {detail.notes.map((note, i) => (
            <p key={i} className="rlnb-Note">
              {note}
            </p>
          ))}
        </section>
      )}
      {detail.evaluations.map((evaluation, i) => (
        <section key={i}>
          <h3>{trans.__('Evaluation of %1', evaluation.title)}</h3>
          <Table
            caption={trans.__('Evaluation of %1', evaluation.title)}
            columns={[trans.__('measure'), trans.__('value'), trans.__('interval')]}
            rows={evaluation.rows}
          />
        </section>
      ))}
      <section>
        <h3>{trans.__('Jobs')}</h3>
        <Table
          caption={trans.__('Jobs')}
          columns={[trans.__('number'), trans.__('kind'), trans.__('state'), trans.__('logs'), trans.__('error')]}
          rows={detail.jobs.map(job => [
            job.number,
            job.kind,
            job.state,
            job.logs.map(log => `${log.name} (${bytes(log.bytes)})`).join(', '),
            job.error
          ])}
        />
      </section>
      {detail.command && (
        <section>
          <h3>{trans.__('Command')}</h3>
          <pre className="rlnb-Code">{detail.command}</pre>
        </section>
      )}
    </div>
  );
}
