import type { ReactElement } from 'react';

import type { Desk } from '../model/desk';
import { Failure } from '../parts/failure';
import { clusterIcon } from '../parts/icons';
import { useLoaded } from '../parts/loaded';
import { Table } from '../parts/table';
import { useDesk, View } from '../parts/view';
import type { Cluster } from '../server/protocol';
import { Refusal, refusalOf } from '../server/server';

/** Milliseconds between two requests for the queues. */
const AGAIN = 10_000;

/** The tab with the queues and links to the pages that are open. */
export class ClusterView extends View {
  constructor(desk: Desk) {
    super(desk);
    this.title.icon = clusterIcon;
    this.title.label = desk.trans.__('RL cluster');
  }

  protected override draw(): ReactElement {
    return <Queues />;
  }
}

function Queues(): ReactElement {
  const { server, commands, trans } = useDesk();
  const { value: cluster, failure, reload } = useLoaded(() => server.cluster(), [server], AGAIN);
  return (
    <div className="rlnb-Scroll">
      <Failure of={failure} />
      {!cluster && !failure && <p className="rlnb-Empty">{trans.__('Reading the queues …')}</p>}
      {cluster && cluster.queues.length === 0 && <p className="rlnb-Empty">{trans.__('This machine has no queue.')}</p>}
      {cluster?.queues.map((queue, i) => <Queue key={i} queue={queue} />)}
      {cluster && cluster.links.length > 0 && (
        <section>
          <h3>{trans.__('Pages')}</h3>
          <ul>
            {cluster.links.map((link, i) => (
              <li key={i}>
                <Link {...link} />{' '}
                {link.name !== undefined && (
                  <button
                    className="jp-mod-styled jp-mod-minimal"
                    aria-label={trans.__('Close %1', link.title)}
                    onClick={() => void commands.execute('rlnb:close', { name: link.name!, url: link.url }).then(reload)}
                  >
                    {trans.__('Close')}
                  </button>
                )}
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function Queue({ queue }: { queue: Cluster['queues'][number] }): ReactElement {
  const { trans } = useDesk();
  const title = [queue.launcher, queue.title].filter(Boolean).join(': ');
  return (
    <section>
      <h3>{title}</h3>
      {queue.error ? (
        <>
          <Failure of={new Refusal(queue.error, '')} />
          {queue.detail && (
            <details>
              <summary>{trans.__('Output')}</summary>
              <pre className="rlnb-Code">{queue.detail}</pre>
            </details>
          )}
        </>
      ) : queue.rows.length > 0 ? (
        <Table caption={title} columns={queue.columns} rows={queue.rows} />
      ) : (
        <p className="rlnb-Empty">{trans.__('No entries.')}</p>
      )}
    </section>
  );
}

function Link({ title, url }: { title: string; url: string }): ReactElement {
  const { server } = useDesk();
  try {
    return (
      <a href={server.link(url)} target="_blank" rel="noopener noreferrer">
        {title}
      </a>
    );
  } catch (reason) {
    return <span title={refusalOf(reason).message}>{title}</span>;
  }
}
