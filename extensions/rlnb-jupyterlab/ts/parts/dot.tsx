import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

import type { State } from '../server/protocol';

/** The word for a state. */
export function stateWord(state: string, trans: TranslationBundle): string {
  const words: Record<State, string> = {
    created: trans.__('created'),
    queued: trans.__('queued'),
    starting: trans.__('starting'),
    running: trans.__('running'),
    completed: trans.__('completed'),
    failed: trans.__('failed'),
    cancelled: trans.__('cancelled'),
    timeout: trans.__('out of time'),
    lost: trans.__('lost')
  };
  return words[state as State] ?? state;
}

/** The word for a kind of job. */
export function kindWord(kind: string, trans: TranslationBundle): string {
  const words: Record<string, string> = {
    train: trans.__('training'),
    evaluate: trans.__('evaluation'),
    play: trans.__('film'),
    export: trans.__('export')
  };
  return words[kind] ?? kind;
}

/** A state as a colour, with a word for screen readers unless that word is shown next to the dot. */
export function Dot({ state, word }: { state: string; word?: string }): ReactElement {
  const attributes = word ? { role: 'img', 'aria-label': word, title: word } : { 'aria-hidden': true };
  return <span className="rlnb-Dot" data-state={state} {...attributes} />;
}
