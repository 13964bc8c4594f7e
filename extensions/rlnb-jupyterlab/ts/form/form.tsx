import { HTMLSelect } from '@jupyterlab/ui-components';
import { type ReactElement, type ReactNode, useEffect, useId, useMemo, useState } from 'react';

import type { Desk } from '../model/desk';
import { Failure } from '../parts/failure';
import { runsIcon } from '../parts/icons';
import { useLoaded } from '../parts/loaded';
import { useSignal } from '../parts/signal';
import { useDesk, View } from '../parts/view';
import type { Field, Wish } from '../server/protocol';
import { refusalOf } from '../server/server';
import { Checker } from './checker';
import { BLANK, type Fields, wishOf, wrongWord } from './wish';

const NONE: readonly Field[] = [];
/** Milliseconds between two requests for the choices, until the server has found all tasks. */
const AGAIN = 5000;

/** The form for a new run, which writes the code that starts the run into a notebook. */
export class FormView extends View {
  constructor(desk: Desk) {
    super(desk);
    this.title.icon = runsIcon;
    this.title.label = desk.trans.__('New RL run');
  }

  protected override draw(): ReactElement {
    return <Form first={this._fields} onChange={fields => (this._fields = fields)} />;
  }

  private _fields: Fields = BLANK;
}

function Form({ first, onChange }: { first: Fields; onChange(fields: Fields): void }): ReactElement {
  const { server, commands, trans } = useDesk();
  const [fields, setFields] = useState(first);
  const [complete, setComplete] = useState(false);
  const { value: registry, failure } = useLoaded(() => server.registry(), [server], complete ? null : AGAIN);
  const checker = useMemo(() => new Checker(wish => server.check(wish)), [server]);
  const verdict = useSignal(checker.changed, () => checker.verdict);
  const declared = registry?.fields ?? NONE;
  const { wish, wrong } = useMemo(() => wishOf(fields, declared), [fields, declared]);

  useEffect(() => setComplete(registry?.complete ?? false), [registry]);
  useEffect(() => () => checker.dispose(), [checker]);
  useEffect(() => {
    if (registry && wish.task && wrong.length === 0) {
      checker.ask(wish);
    }
  }, [checker, registry, wish, wrong]);

  const set = (name: string) => (text: string) => {
    const changed = { ...fields, [name]: text };
    setFields(changed);
    onChange(changed);
  };
  const text = (name: string, first = '') => ({
    value: fields[name] ?? first,
    onChange: set(name),
    wrong: wrong.filter(({ field }) => field === name).map(one => wrongWord(one, declared, trans))
  });
  const current = verdict?.wish === wish ? verdict : null;
  const asking = wish.task !== '' && wrong.length === 0 && !current;
  const checked = current?.checked ?? null;
  const insert = (run: boolean) => void commands.execute('rlnb:insert', { code: checked?.code ?? '', run });
  const library = registry?.libraries.find(({ name }) => name === fields.library);

  return (
    <div className="rlnb-Scroll rlnb-Form">
      <form onSubmit={event => event.preventDefault()} aria-label={trans.__('New RL run')}>
        <Failure of={failure} />
        <Text label={trans.__('Task')} {...text('task')} choices={registry?.tasks ?? []} placeholder="Isaac-Cartpole-Direct" wide>
          {registry && !registry.complete && trans.__('Searching for more tasks …')}
        </Text>
        <label className="rlnb-Field">
          <span>{trans.__('Library')}</span>
          <HTMLSelect value={fields.library ?? ''} onChange={event => set('library')(event.target.value)}>
            {[...new Set(['', fields.library ?? '', ...(registry?.libraries.map(({ name }) => name) ?? [])])].map(name => (
              <option key={name} value={name}>
                {name || trans.__("the task's default")}
              </option>
            ))}
          </HTMLSelect>
        </label>
        {declared.map(({ name, label, whole, choices, default: first }) => (
          <Text
            key={name}
            label={trans.__(label)}
            {...text(name, first)}
            placeholder={trans.__('default')}
            {...(choices.length > 0 ? { choices } : {})}
            numeric={whole && choices.length === 0}
          >
            {name === 'nproc_per_node' && library && !library.distributed && trans.__('%1 trains in one process only.', library.name)}
          </Text>
        ))}
        <Text label={trans.__('Launcher')} {...text('launcher')} choices={registry?.launchers ?? []} placeholder="slurm(nodes=2)" wide />
        <Lines
          label={trans.__("Values of the task's config, one name=value per line")}
          {...text('overrides')}
          placeholder="sim.dt=0.005"
        />
        <Text
          label={trans.__('Agent config')}
          {...text('agent_config')}
          choices={checked?.agent.names ?? []}
          placeholder={trans.__("the task's own")}
          wide
        >
          {checked?.agent.source && trans.__('Agent config: %1', checked.agent.source)}
        </Text>
        <Lines
          label={trans.__("Values of the library's config, one name=value per line")}
          {...text('agent')}
          placeholder="algorithm.learning_rate=3e-4"
        />
      </form>
      <section className="rlnb-Form-said" aria-live="polite" aria-busy={asking}>
        <Said wish={wish} wrong={wrong.length > 0} asking={asking} verdict={current} />
        {checked?.code && <pre className="rlnb-Code">{checked.code}</pre>}
        <div className="rlnb-Buttons">
          <button className="jp-mod-styled jp-mod-accept" disabled={!checked?.code} onClick={() => insert(false)}>
            {trans.__('Insert code into notebook')}
          </button>
          <button className="jp-mod-styled" disabled={!checked?.code || checked.problems.length > 0} onClick={() => insert(true)}>
            {trans.__('Insert and run')}
          </button>
        </div>
      </section>
    </div>
  );
}

interface SaidProps {
  readonly wish: Wish;
  readonly wrong: boolean;
  readonly asking: boolean;
  readonly verdict: Checker['verdict'];
}

/** The server's verdict on the form. */
function Said({ wish, wrong, asking, verdict }: SaidProps): ReactElement {
  const { trans } = useDesk();
  if (!wish.task) {
    return <p className="rlnb-Empty">{trans.__('Choose a task.')}</p>;
  }
  if (wrong) {
    return <p className="rlnb-Empty">{trans.__('The form will be checked once the marked fields are fixed.')}</p>;
  }
  if (asking) {
    return <p className="rlnb-Empty">{trans.__('Checking …')}</p>;
  }
  const problems = verdict?.checked?.problems ?? [];
  return (
    <>
      <Failure of={verdict?.failure ? refusalOf(verdict.failure) : null} />
      {problems.length > 0 && (
        <ul className="rlnb-Problems">
          {problems.map(({ what, fix }, i) => (
            <li key={i}>
              <p>{what}</p>
              {fix && <p className="rlnb-Fix">{fix}</p>}
            </li>
          ))}
        </ul>
      )}
      {verdict?.checked && problems.length === 0 && <p className="rlnb-Fine">{trans.__('Ready to start.')}</p>}
    </>
  );
}

interface TextProps {
  readonly label: string;
  readonly value: string;
  readonly wrong: readonly string[];
  readonly placeholder?: string;
  readonly choices?: readonly string[];
  readonly numeric?: boolean;
  readonly wide?: boolean;
  readonly children?: ReactNode;
  onChange(text: string): void;
}

function Text({ label, value, wrong, placeholder, choices, numeric, wide, children, onChange }: TextProps): ReactElement {
  const id = useId();
  return (
    <label className="rlnb-Field" data-wide={wide}>
      <span>{label}</span>
      <input
        className="jp-mod-styled"
        value={value}
        placeholder={placeholder}
        list={choices ? id : undefined}
        inputMode={numeric ? 'numeric' : 'text'}
        spellCheck={false}
        aria-invalid={wrong.length > 0}
        onChange={event => onChange(event.target.value)}
      />
      {choices && (
        <datalist id={id}>
          {choices.map(choice => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      )}
      {children && <small>{children}</small>}
      <WrongText wrong={wrong} />
    </label>
  );
}

function Lines({ label, value, wrong, placeholder, onChange }: TextProps): ReactElement {
  return (
    <label className="rlnb-Field" data-wide="true">
      <span>{label}</span>
      <textarea
        className="jp-mod-styled"
        rows={3}
        value={value}
        placeholder={placeholder}
        spellCheck={false}
        aria-invalid={wrong.length > 0}
        onChange={event => onChange(event.target.value)}
      />
      <WrongText wrong={wrong} />
    </label>
  );
}

function WrongText({ wrong }: { wrong: readonly string[] }): ReactElement | null {
  return wrong.length > 0 ? (
    <small className="rlnb-Wrong" role="alert">
      {wrong.join('\n')}
    </small>
  ) : null;
}
