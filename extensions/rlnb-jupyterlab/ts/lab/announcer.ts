import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Hub } from '../model/hub';
import type { ActionMessage, Row } from '../server/protocol';
import { refusalOf } from '../server/server';
import { reasonOf } from './reason';
import { Text } from './text';

/** Milliseconds for which the notification of a success is shown. */
const SUCCESS = 6000;

/** Reports the progress of actions in JupyterLab's notifications. */
export class Announcer {
  constructor(
    private readonly _hub: Hub,
    private readonly _trans: TranslationBundle
  ) {
    _hub.acted.connect((_, message) => this._announce(message));
  }

  /** Shows an error, with its fix among the details. */
  refuse(reason: unknown): void {
    const { message, fix } = refusalOf(reason);
    const text = fix ? `${message}\n\n${fix}` : message;
    Notification.error(message, { autoClose: false, actions: this._details(message, fix ? text : '') });
  }

  /** Shows a text until the work has ended. */
  async waiting<T>(work: Promise<T>, text: string): Promise<T> {
    const id = Notification.emit(text, 'in-progress', { autoClose: false });
    try {
      return await work;
    } finally {
      Notification.dismiss(id);
    }
  }

  /** Shows an alert of a run until it is dismissed. */
  alert(row: Row, what: string, open: () => void): void {
    // JupyterLab shows the first 140 characters; the rest is among the details.
    const title = this._trans.__('Alert of %1', row.id);
    const actions = [{ label: this._trans.__('Open'), callback: open }, ...this._details(title, what)];
    Notification.warning(`${title}: ${what}`, { autoClose: false, actions });
  }

  private _announce(message: ActionMessage): void {
    const { id, state, output, again } = message;
    if (again && state !== 'running' && !this._shown.has(id)) {
      return; // the action ended before this page connected, or its end was shown already
    }
    const title = this._text(message);
    const reason = state === 'failed' ? reasonOf(output) : '';
    const text = reason ? `${title}\n\n${reason}` : title;
    const type = ({ running: 'in-progress', done: 'success', failed: 'error' } as const)[state];
    const options = { autoClose: state === 'done' ? SUCCESS : (false as const), actions: this._details(title, output) };
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

  private _text({ action, keys, left, state }: ActionMessage): string {
    const name = keys.length === 1 ? (this._hub.runs.last(keys[0]!)?.id ?? keys[0]!) : this._trans.__('%1 runs', keys.length);
    const titles: Record<string, string> = {
      cancel: this._trans.__('Cancellation'),
      resume: this._trans.__('Resumption'),
      evaluate: this._trans.__('Evaluation'),
      export: this._trans.__('Export'),
      report: this._trans.__('Report'),
      delete: this._trans.__('Deletion')
    };
    const title = titles[action] ?? action;
    switch (state) {
      case 'running':
        return this._trans.__('%1 of %2 …', title, name);
      case 'done':
        return this._trans.__('%1 of %2: done', title, name);
      case 'failed':
        if (keys.length > 1) {
          return this._trans.__('%1 of %2: %3 done, %4 left', title, name, keys.length - left.length, left.length);
        }
        return this._trans.__('%1 of %2 failed', title, name);
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

  /** Ids of notifications, by the ids of their actions. */
  private readonly _shown = new Map<string, string>();
}
