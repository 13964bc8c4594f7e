import { HTMLSelect } from '@jupyterlab/ui-components';
import { memo, type ReactElement, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'react';

import { type Block, LogBuffer } from '../model/log';
import { kindWord } from '../parts/dot';
import { Failure } from '../parts/failure';
import { bytes } from '../model/format';
import { useDesk, useShown } from '../parts/view';
import type { Detail, LogFile, LogMessage } from '../server/protocol';
import { type Refusal, refusalOf } from '../server/server';

/** Pixels from the end of the log within which the view follows new lines. */
const NEAR = 24;

/** The logs of a run's jobs. */
export function Logs({ detail }: { detail: Detail }): ReactElement {
  const { trans } = useDesk();
  const [chosen, setChosen] = useState<string | null>(null);
  const files = detail.jobs.flatMap(job => job.logs.map(log => ({ ...log, job, id: `${job.number}/${log.name}` })));
  const newest = detail.jobs[detail.jobs.length - 1];
  const shown = files.find(file => file.id === chosen) ?? files.find(file => file.job === newest) ?? files[files.length - 1];
  if (!shown) {
    return <p className="rlnb-Empty">{trans.__('Nothing has been logged yet.')}</p>;
  }
  return (
    <div className="rlnb-Logs">
      <div className="rlnb-Buttons">
        <HTMLSelect aria-label={trans.__('Log')} value={shown.id} onChange={event => setChosen(event.target.value)}>
          {files.map(file => (
            <option key={file.id} value={file.id}>
              {`${file.job.number} ${kindWord(file.job.kind, trans)} · ${file.name} (${bytes(file.bytes)})`}
            </option>
          ))}
        </HTMLSelect>
        <Download file={{ key: detail.row.key, job: shown.job.number, name: shown.name }} id={detail.row.id} />
      </div>
      <Tail key={shown.id} runKey={detail.row.key} job={shown.job.number} name={shown.name} />
    </div>
  );
}

/** A button that downloads the whole log: the view holds only its end. */
function Download({ file, id }: { file: LogFile; id: string }): ReactElement {
  const { server, trans } = useDesk();
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Refusal | null>(null);
  const save = async () => {
    setBusy(true);
    setFailure(null);
    try {
      const address = URL.createObjectURL(await server.log(file));
      const link = document.createElement('a');
      link.href = address;
      link.download = `${id}-${file.job}-${file.name}`;
      link.click();
      URL.revokeObjectURL(address);
    } catch (reason) {
      setFailure(refusalOf(reason));
    }
    setBusy(false);
  };
  return (
    <>
      <button className="jp-mod-styled jp-mod-minimal" disabled={busy} onClick={() => void save()}>
        {trans.__('Download the whole log')}
      </button>
      <Failure of={failure} />
    </>
  );
}

/** The end of a log that may still grow. */
function Tail({ runKey, job, name }: { runKey: string; job: number; name: string }): ReactElement {
  const { hub, trans } = useDesk();
  const shown = useShown();
  const buffer = useMemo(() => new LogBuffer(), []);
  const [version, grow] = useReducer((n: number) => n + 1, 0);
  const [along, setAlong] = useState(true);
  const scrolled = useRef<HTMLDivElement>(null);

  useEffect(() => {
    if (!shown) {
      return;
    }
    const file: LogFile = { key: runKey, job, name };
    const read = (_: unknown, message: LogMessage) => {
      if (message.key === runKey && message.job === job && message.name === name) {
        if (message.reset) {
          buffer.clear();
        }
        buffer.append(message.text);
        grow();
      }
    };
    hub.logged.connect(read);
    const followed = hub.follow(file);
    return () => {
      followed.dispose();
      hub.logged.disconnect(read);
    };
  }, [hub, buffer, runKey, job, name, shown]);

  const toEnd = () => {
    const node = scrolled.current;
    if (node) {
      node.scrollTop = node.scrollHeight;
    }
  };

  useLayoutEffect(() => {
    if (along) {
      toEnd();
    }
  }, [version, along]);

  const onScroll = () => {
    const node = scrolled.current!;
    setAlong(node.scrollHeight - node.scrollTop - node.clientHeight < NEAR);
  };

  return (
    <>
      {/* Screen readers do not announce each new line: a training writes faster than they speak. */}
      <div ref={scrolled} className="rlnb-Log" role="log" aria-live="off" aria-label={name} tabIndex={0} onScroll={onScroll}>
        {buffer.cut && <p className="rlnb-Empty">{trans.__('Earlier lines are not shown.')}</p>}
        {buffer.blocks.map(block => (
          <BlockView key={block.id} block={block} />
        ))}
        {version === 0 && <p className="rlnb-Empty">{trans.__('Nothing has been logged yet.')}</p>}
      </div>
      {!along && (
        <button className="jp-mod-styled rlnb-Log-follow" onClick={() => setAlong(true)}>
          {trans.__('Follow')}
        </button>
      )}
    </>
  );
}

const BlockView = memo(function BlockView({ block }: { block: Block }): ReactElement {
  return <pre>{block.text}</pre>;
});
