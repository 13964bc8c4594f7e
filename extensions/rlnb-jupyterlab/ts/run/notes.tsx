import { type FormEvent, type ReactElement, useEffect, useState } from 'react';

import { Failure } from '../parts/failure';
import { useDesk } from '../parts/view';
import type { Detail } from '../server/protocol';
import { type Refusal, refusalOf } from '../server/server';

type Entry = { note: string } | { tag: string } | { untag: string } | { name: string };

/** The name, the tags and the notes of a run, which can be changed whether or not the run has ended. */
export function Notes({ detail, onWritten }: { detail: Detail; onWritten(): void }): ReactElement {
  const { server, trans } = useDesk();
  const [failure, setFailure] = useState<Refusal | null>(null);

  const write = async (entry: Entry): Promise<boolean> => {
    try {
      await server.write(detail.row.key, entry);
    } catch (reason) {
      setFailure(refusalOf(reason));
      return false;
    }
    setFailure(null);
    onWritten();
    return true;
  };

  return (
    <section className="rlnb-Notes">
      <h3>{trans.__('Name, tags and notes')}</h3>
      <Failure of={failure} />
      <Name name={detail.row.name} onEnter={name => write({ name })} />
      <div className="rlnb-Tags">
        {detail.tags.map(tag => (
          <span key={tag} className="rlnb-Tag">
            {tag}
            <button title={trans.__('Remove this tag')} aria-label={trans.__('Remove tag %1', tag)} onClick={() => void write({ untag: tag })}>
              ×
            </button>
          </span>
        ))}
        <Entry label={trans.__('New tag')} onEnter={tag => write({ tag })} />
      </div>
      {detail.notes.map((note, i) => (
        <p key={i} className="rlnb-Note">
          {note}
        </p>
      ))}
      <Entry label={trans.__('New note')} onEnter={note => write({ note })} />
    </section>
  );
}

/** The name of a run. An empty one removes it. */
function Name({ name, onEnter }: { name: string; onEnter(name: string): Promise<boolean> }): ReactElement {
  const { trans } = useDesk();
  const [text, setText] = useState(name);
  // Another page, or a notebook, may rename the run.
  useEffect(() => setText(name), [name]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void onEnter(text.trim());
  };
  return (
    <form className="rlnb-Entry" onSubmit={submit}>
      <input
        className="jp-mod-styled"
        placeholder={trans.__('Name')}
        aria-label={trans.__('Name of the run')}
        value={text}
        onChange={event => setText(event.target.value)}
      />
      <button className="jp-mod-styled jp-mod-minimal" disabled={text.trim() === name}>
        {trans.__('Rename')}
      </button>
    </form>
  );
}

/** A line of text that is emptied once it has been written. */
function Entry({ label, onEnter }: { label: string; onEnter(text: string): Promise<boolean> }): ReactElement {
  const { trans } = useDesk();
  const [text, setText] = useState('');
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (await onEnter(text.trim())) {
      setText('');
    }
  };
  return (
    <form className="rlnb-Entry" onSubmit={event => void submit(event)}>
      <input
        className="jp-mod-styled"
        placeholder={label}
        aria-label={label}
        value={text}
        onChange={event => setText(event.target.value)}
      />
      <button className="jp-mod-styled jp-mod-minimal" disabled={!text.trim()}>
        {trans.__('Add')}
      </button>
    </form>
  );
}
