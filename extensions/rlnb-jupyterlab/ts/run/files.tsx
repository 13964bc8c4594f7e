import type { ReactElement } from 'react';

import { bytes } from '../model/format';
import { Table } from '../parts/table';
import { useDesk } from '../parts/view';
import type { Detail } from '../server/protocol';

/** The files of a run, to download. */
export function Files({ detail }: { detail: Detail }): ReactElement {
  const { server, trans } = useDesk();
  if (detail.files.length === 0) {
    return <p className="rlnb-Empty">{trans.__('There are no files yet.')}</p>;
  }
  return (
    <div className="rlnb-Scroll">
      <Table
        caption={trans.__('Files')}
        columns={[trans.__('file'), trans.__('size')]}
        rows={detail.files.map(({ path, bytes: size }) => [
          <a
            href={server.fileUrl(detail.row.key, path)}
            download={path.slice(path.lastIndexOf('/') + 1)}
            aria-label={trans.__('Download %1', path)}
          >
            {path}
          </a>,
          bytes(size)
        ])}
      />
    </div>
  );
}
