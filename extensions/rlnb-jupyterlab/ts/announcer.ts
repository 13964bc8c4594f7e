import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Hub } from './hub';
import type { ActionMessage } from './protocol';
import { refusalOf } from './server';
import { Text } from './text';

/** Milliseconds that a success is shown. */
const SUCCESS = 6000;

/** Says how actions go, in Lab's own notifications. */
export class Announcer {
  constructor(
    private readonly _hub: Hub,
    private readonly _trans: TranslationBundle
  ) {
    _hub.acted.connect((_, message) => this._announce(message));
  }

  /** Shows what failed at once, and its mend. */
  refuse(reason: unknown): void {
    const { message, mend } = refusalOf(reason);
    const text = mend ? `${message}\n\n${mend}` : message;
    Notification.error(message, { autoClose: false, actions: this._details(message, mend ? text : '') });
  }

  /** Says that something takes its time, until it is there. */
  async waiting<T>(work: Promise<T>, text: string): Promise<T> {
    const id = Notification.emit(text, 'in-progress', { autoClose: false });
    try {
      return await work;
    } finally {
      Notification.dismiss(id);
    }
  }

  private _announce({ id, action, key, state, output, again }: ActionMessage): void {
    if (again && state !== 'running' && !this._shown.has(id)) {
      return; // it ended before this page began, or was told of
    }
    const name = this._hub.runs.get(key)?.id ?? this._names.get(key) ?? key;
    this._names.set(key, name);
    const text = this._text(action, state, name);
    const type = ({ running: 'in-progress', done: 'success', failed: 'error' } as const)[state];
    const options = { autoClose: state === 'done' ? SUCCESS : (false as const), actions: this._details(text, output) };
    const shown = this._shown.get(id);
    if (shown !== undefined && Notification.manager.has(shown)) {
      Notification.update({ id: shown, message: text, type, ...options });
    } else {
      this._shown.set(id, Notification.emit(text, type, options));
    }
    if (state !== 'running') {
      this._shown.delete(id);
    }
  }

  private _text(action: string, state: ActionMessage['state'], name: string): string {
    const words: Record<string, string> = {
      cancel: this._trans.__('Cancelling'),
      resume: this._trans.__('Resuming'),
      evaluate: this._trans.__('Evaluation'),
      export: this._trans.__('Export'),
      report: this._trans.__('Report'),
      delete: this._trans.__('Deletion')
    };
    const word = words[action] ?? action;
    switch (state) {
      case 'running':
        return this._trans.__('%1 of %2 …', word, name);
      case 'done':
        return this._trans.__('%1 of %2: done', word, name);
      case 'failed':
        return this._trans.__('%1 of %2 failed', word, name);
    }
  }

  private _details(title: string, output: string): Notification.IAction[] {
    if (output.trim() === '') {
      return [];
    }
    const callback = () => {
      const buttons = [Dialog.okButton({ label: this._trans.__('Close') })];
      void showDialog({ title, body: new Text(output.trim()), buttons });
    };
    return [{ label: this._trans.__('Details'), callback }];
  }

  /** Notifications by the ids of their actions. */
  private readonly _shown = new Map<string, string>();
  /** A deleted run is not known any more when its deletion is told of. */
  private readonly _names = new Map<string, string>();
}
