import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

import { Bar } from '../parts/bar';
import { Dot, kindWord, stateWord } from '../parts/dot';
import { title } from '../model/names';
import { bytes, number, reason, span } from '../model/format';
import { Table } from '../parts/table';
import { useDesk } from '../parts/view';
import { type Detail, isActive, type Row } from '../server/protocol';
import { Lineage } from './lineage';
import { Notes } from './notes';

/** Translates the server's name of a fact; the name of a metric stays as it is. */
function factWord(label: string, trans: TranslationBundle): string {
  const words: Record<string, string> = {
    task: trans.__('task'),
    library: trans.__('library'),
    state: trans.__('state'),
    reason: trans.__('reason'),
    detail: trans.__('detail'),
    iteration: trans.__('iteration'),
    'time left': trans.__('time left'),
    diagnosis: trans.__('diagnosis'),
    fix: trans.__('fix'),
    alert: trans.__('alert'),
    created: trans.__('created on'),
    launcher: trans.__('launcher'),
    "queue's job": trans.__('job in the queue'),
    hosts: trans.__('hosts'),
    devices: trans.__('devices'),
    envs: trans.__('envs'),
    'asset root': trans.__('asset root'),
    versions: trans.__('versions'),
    folder: trans.__('folder')
  };
  return words[label] ?? label;
}

/** The facts about a run, its progress, and its jobs with their outcome. */
export function Overview({ row, detail, onWritten }: { row: Row; detail: Detail; onWritten(): void }): ReactElement {
  const { trans } = useDesk();
  const left = isActive(row) ? span(row.eta_s) : '';
  return (
    <div className="rlnb-Scroll rlnb-Overview">
      <header>
        <h2>{title(row)}</h2>
        <p className="rlnb-Overview-state">
          <Dot state={row.state} />
          <span>{stateWord(row.state, trans)}</span>
          {row.reason && isActive(row) && <span>{reason(row)}</span>}
          <Bar row={row} label={trans.__('Progress')} />
          <span>{row.total > 0 ? trans.__('iteration %1 of %2', row.iteration, row.total) : trans.__('iteration %1', row.iteration)}</span>
          {left && <span>{trans.__('%1 left', left)}</span>}
          {row.reward !== null && <span>{trans.__('reward %1', number(row.reward))}</span>}
          {row.success !== null && <span>{trans.__('success %1', number(row.success))}</span>}
        </p>
        {row.reason && !isActive(row) && <pre className="rlnb-Failure">{row.reason}</pre>}
      </header>
      <dl className="rlnb-Facts">
        {detail.overview.map(([label, value], i) => (
          <div key={i}>
            <dt>{factWord(label, trans)}</dt>
            <dd>{label === 'state' ? stateWord(value, trans) : value}</dd>
          </div>
        ))}
      </dl>
      <Lineage runKey={row.key} />
      <Notes detail={detail} onWritten={onWritten} />
      {detail.evaluations.map((evaluation, i) => (
        <section key={i}>
          <h3>{trans.__('Evaluation of %1', evaluation.title)}</h3>
          <Table
            caption={trans.__('Evaluation of %1', evaluation.title)}
            columns={[trans.__('metric'), trans.__('value'), trans.__('interval')]}
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
            kindWord(job.kind, trans),
            stateWord(job.state, trans),
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
