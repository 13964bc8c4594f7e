import type { ReactElement } from 'react';

import { useDesk } from '../parts/view';
import type { Detail } from '../server/protocol';

const REPORT = 'report.html';

/** The report of a run, if it exists. It contains text from the run, so its frame is sandboxed: no scripts, no origin. */
export function Report({ detail, version }: { detail: Detail; version: number }): ReactElement {
  const { server, commands, trans } = useDesk();
  const { key, id } = detail.row;
  const made = detail.files.some(file => file.path === REPORT);
  return (
    <div className="rlnb-Report">
      <div className="rlnb-Buttons">
        <button className="jp-mod-styled" onClick={() => void commands.execute('rlnb:report', { key })}>
          {made ? trans.__('Write the report again') : trans.__('Write the report')}
        </button>
        {made && (
          <a href={server.fileUrl(key, REPORT)} download={`${id}.html`}>
            {trans.__('Download')}
          </a>
        )}
      </div>
      {made ? (
        <iframe key={version} sandbox="" src={server.fileUrl(key, REPORT)} title={trans.__('Report of %1', id)} />
      ) : (
        <p className="rlnb-Empty">{trans.__('There is no report yet.')}</p>
      )}
    </div>
  );
}
