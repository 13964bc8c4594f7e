import { type KeyboardEvent, type ReactElement, type ReactNode, useId, useRef } from 'react';

export interface Section {
  readonly name: string;
  readonly label: string;
  draw(): ReactNode;
}

interface Props {
  readonly label: string;
  readonly sections: readonly Section[];
  readonly current: string;
  onChange(name: string): void;
}

/** Tabs inside a JupyterLab tab. Only the current section is rendered, so that the others cost nothing. */
export function Tabs({ label, sections, current, onChange }: Props): ReactElement {
  const base = useId();
  const heads = useRef<HTMLDivElement>(null);
  const at = Math.max(0, sections.findIndex(section => section.name === current));
  const shown = sections[at]!;

  const onKeyDown = (event: KeyboardEvent) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: sections.length - 1 }[event.key];
    if (to === undefined) {
      return;
    }
    event.preventDefault();
    const index = (to + sections.length) % sections.length;
    onChange(sections[index]!.name);
    (heads.current?.children[index] as HTMLElement | undefined)?.focus();
  };

  return (
    <div className="rlnb-Tabs">
      <div ref={heads} className="rlnb-Tabs-heads" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {sections.map(section => (
          <button
            key={section.name}
            id={`${base}${section.name}`}
            role="tab"
            aria-selected={section === shown}
            aria-controls={`${base}panel`}
            tabIndex={section === shown ? 0 : -1}
            onClick={() => onChange(section.name)}
          >
            {section.label}
          </button>
        ))}
      </div>
      <div key={shown.name} id={`${base}panel`} className="rlnb-Tabs-panel" role="tabpanel" aria-labelledby={`${base}${shown.name}`}>
        {shown.draw()}
      </div>
    </div>
  );
}
