import { Dialog, type ICommandPalette, InputDialog, Notification, showDialog } from '@jupyterlab/apputils';
import {
  addIcon, copyIcon, deleteIcon, editIcon, fileIcon, launcherIcon, type LabIcon, runIcon, spreadsheetIcon, stopIcon
} from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { Desk } from '../model/desk';
import { doneBefore } from '../model/resumption';
import { clusterIcon, compareIcon, goodputIcon, runsIcon, sceneIcon, tensorboardIcon } from '../parts/icons';
import { type ActionName, isActive, type Row } from '../server/protocol';
import type { Announcer } from './announcer';
import { Ending } from './ending';
import type { Notebooks } from './notebooks';
import { Text } from './text';
import type { Workspace } from './workspace';

type Args = ReadonlyPartialJSONObject;

/** Maximum number of runs in one request to the server. */
const AT_ONCE = 20;
/** Maximum number of runs in one request to delete runs. */
const DELETED_AT_ONCE = 2000;
/** Maximum number of runs that a confirmation dialog lists by name. */
const NAMED = 8;

interface Command {
  readonly id: string;
  readonly label: string;
  readonly caption: string;
  readonly icon?: LabIcon | ((args: Args) => LabIcon);
  /** Whether the command applies to these runs; absent if the command concerns no run. */
  possible?(rows: readonly Row[]): boolean;
  execute(rows: readonly Row[], args: Args): unknown;
}

/** The extension's commands, for buttons, menus, keys and the palette. */
export class Commands {
  constructor(
    private readonly _desk: Desk,
    private readonly _workspace: Workspace,
    private readonly _notebooks: Notebooks,
    private readonly _announcer: Announcer,
    private readonly _showPanel: () => void
  ) {}

  register(palette: ICommandPalette | null): void {
    const { commands, hub, libraries, listing, trans } = this._desk;
    const all = this._all();
    for (const command of all) {
      const possible = command.possible?.bind(command);
      commands.addCommand(command.id, {
        // The palette lists the commands of all extensions, so these say what they act on.
        label: args => (possible && args['isPalette'] ? trans.__('RL run: %1', command.label) : command.label),
        caption: command.caption,
        ...(command.icon ? { icon: command.icon } : {}),
        describedBy: { args: DESCRIBED },
        isEnabled: args => !possible || possible(this._rows(args)),
        execute: args => {
          const rows = this._rows(args);
          // `CommandRegistry.execute`, which the list's keys call, does not check `isEnabled`.
          return !possible || possible(rows) ? this._told(() => command.execute(rows, args)) : undefined;
        }
      });
      palette?.addItem({ command: command.id, args: { isPalette: true }, category: trans.__('RL runs') });
    }
    this._registerInner();
    const dependent = all.filter(({ possible }) => possible);
    const tell = () => dependent.forEach(({ id }) => commands.notifyCommandChanged(id));
    hub.runs.changed.connect(() => {
      void libraries.ask();
      tell();
    });
    libraries.changed.connect(tell);
    listing.changed.connect(tell);
  }

  private _all(): readonly Command[] {
    const { hub, server, libraries, preferences, trans } = this._desk;
    const some = (rows: readonly Row[]) => rows.length > 0;
    const one = (rows: readonly Row[]) => rows.length === 1;
    const ended = (rows: readonly Row[]) => some(rows) && !rows.some(isActive);
    return [
      {
        id: 'rlnb:panel',
        label: trans.__('Show RL runs'),
        caption: trans.__('Show the panel of runs'),
        icon: runsIcon,
        execute: this._showPanel
      },
      {
        id: 'rlnb:new',
        label: trans.__('New RL run'),
        caption: trans.__('Open the form for a new run'),
        // A plus is enough in the panel of runs; the launcher has cards of all extensions.
        icon: args => (args['card'] ? runsIcon : addIcon),
        execute: () => this._workspace.form()
      },
      {
        id: 'rlnb:cluster',
        label: trans.__('RL cluster'),
        caption: trans.__('Show the queues, TensorBoard and dashboards'),
        icon: clusterIcon,
        execute: () => this._workspace.cluster()
      },
      {
        id: 'rlnb:table',
        label: trans.__('Table of RL runs'),
        caption: trans.__('Show the runs in a tab as a table, with columns of your choice'),
        icon: spreadsheetIcon,
        execute: () => this._workspace.table()
      },
      {
        id: 'rlnb:goodput',
        label: trans.__('Goodput of RL runs'),
        caption: trans.__('Show what the selected runs cost, or all runs in the list if none is selected'),
        icon: goodputIcon,
        execute: () => this._workspace.goodput()
      },
      {
        id: 'rlnb:open',
        label: trans.__('Open'),
        caption: trans.__('Open the selected runs, each in a tab'),
        icon: launcherIcon,
        possible: rows => some(rows) && rows.length <= AT_ONCE,
        execute: rows => rows.forEach(({ key }) => this._workspace.run(key))
      },
      {
        id: 'rlnb:rename',
        label: trans.__('Rename'),
        caption: trans.__('Give the run a name'),
        icon: editIcon,
        possible: one,
        execute: async ([row]) => {
          const { button, value } = await InputDialog.getText({ title: trans.__('Name of the run'), text: row!.name, label: row!.id });
          if (button.accept && value !== null && value.trim() !== row!.name) {
            await server.write(row!.key, { name: value.trim() });
            // The server tells of the change as soon as it looks at the folder again.
            hub.runs.apply({ type: 'runs', reset: false, rows: [{ ...row!, name: value.trim() }], gone: [] });
          }
        }
      },
      {
        id: 'rlnb:compare',
        label: trans.__('Compare'),
        caption: trans.__('Compare the selected runs (2 to %1)', AT_ONCE),
        icon: compareIcon,
        possible: rows => rows.length > 1 && rows.length <= AT_ONCE,
        execute: rows => this._workspace.compare(rows.map(({ key }) => key))
      },
      {
        id: 'rlnb:cancel',
        label: trans.__('Cancel'),
        caption: trans.__('Cancel the run'),
        icon: stopIcon,
        possible: rows => rows.some(isActive),
        execute: async rows => {
          const active = rows.filter(isActive);
          if (!preferences.confirmCancel || (await this._confirmCancel(active))) {
            await this._act('cancel', active);
          }
        }
      },
      {
        id: 'rlnb:resume',
        label: trans.__('Resume'),
        caption: trans.__('Continue the training from a checkpoint'),
        icon: runIcon,
        possible: rows => one(rows) && ended(rows),
        execute: ([row], args) => this._resume(row!, args)
      },
      {
        id: 'rlnb:evaluate',
        label: trans.__('Evaluate'),
        caption: trans.__('Measure the policy over whole episodes'),
        possible: some,
        execute: (rows, args) => this._act('evaluate', rows, checkpointOf(args))
      },
      {
        id: 'rlnb:export',
        label: trans.__('Export'),
        caption: trans.__('Write the policy in a format that other programs can load'),
        possible: rows => some(rows) && rows.every(({ library }) => libraries.exports(library)),
        execute: (rows, args) => this._act('export', rows, checkpointOf(args))
      },
      {
        id: 'rlnb:duplicate',
        label: trans.__('Duplicate into notebook'),
        caption: trans.__('Insert a cell that starts a run with the same arguments'),
        icon: copyIcon,
        possible: one,
        execute: ([row]) => this._duplicate(row!)
      },
      {
        id: 'rlnb:report',
        label: trans.__('Report'),
        caption: trans.__('Write a report of the run'),
        icon: fileIcon,
        possible: some,
        execute: rows => this._act('report', rows)
      },
      {
        id: 'rlnb:tensorboard',
        label: trans.__('TensorBoard'),
        caption: trans.__('Show the runs in TensorBoard'),
        icon: tensorboardIcon,
        possible: rows => some(rows) && rows.length <= AT_ONCE,
        execute: async rows =>
          this._workspace.page(await server.tensorboard(rows.map(({ key }) => key)), trans.__('TensorBoard'))
      },
      {
        id: 'rlnb:scene',
        label: trans.__('View in 3D'),
        caption: trans.__('Play the newest checkpoint in 3D; this starts a simulator'),
        icon: sceneIcon,
        possible: one,
        execute: async ([row]) => {
          const title = trans.__('%1 in 3D', row!.id);
          const url = await this._announcer.waiting(server.scene(row!.key), trans.__('%1: starting a simulator …', title));
          return this._workspace.page(url, title);
        }
      },
      {
        id: 'rlnb:archive',
        label: trans.__('Archive'),
        caption: trans.__('Take the run out of the lists, and keep its files'),
        possible: ended,
        execute: async rows => {
          for (const { key } of rows) {
            await server.write(key, { archive: '' });
          }
          hub.runs.apply({ type: 'runs', reset: false, rows: [], gone: rows.map(({ key }) => key) });
          const again = trans.__('To put archived runs back: rlnb.runs(archived=True).restore().apply()');
          Notification.success(`${rows.length === 1 ? rows[0]!.name || rows[0]!.id : trans.__('%1 runs', rows.length)}: ${trans.__('archived')}. ${again}`);
        }
      },
      {
        id: 'rlnb:delete',
        label: trans.__('Delete'),
        caption: trans.__('Delete the run and all of its files'),
        icon: deleteIcon,
        possible: ended,
        execute: async rows => {
          if (!preferences.confirmDelete || (await this._confirmDelete(rows))) {
            await this._act('delete', rows);
          }
        }
      }
    ];
  }

  /** Registers the commands that only the extension itself executes. */
  private _registerInner(): void {
    const { commands, trans } = this._desk;
    commands.addCommand('rlnb:insert', {
      label: trans.__('Insert code into notebook'),
      describedBy: { args: { type: 'object', properties: { code: { type: 'string' }, run: { type: 'boolean' } } } },
      execute: args => this._told(() => this._notebooks.insert(String(args['code'] ?? ''), args['run'] === true))
    });
    commands.addCommand('rlnb:close', {
      label: trans.__('Close a page of this server'),
      describedBy: { args: { type: 'object', properties: { name: { type: 'string' }, url: { type: 'string' } } } },
      execute: args =>
        this._told(async () => {
          await this._desk.server.close(String(args['name'] ?? ''));
          this._workspace.closePage(this._desk.server.link(String(args['url'] ?? '')));
        })
    });
    commands.addCommand('rlnb:show', {
      label: trans.__('Reopen a tab of RL runs'),
      describedBy: { args: { type: 'object', properties: { view: { type: 'string' }, keys: { type: 'array', items: { type: 'string' } } } } },
      execute: args => {
        const keys = (args['keys'] ?? []) as string[];
        switch (args['view']) {
          case 'run':
            return keys[0] && this._workspace.run(keys[0]);
          case 'compare':
            return this._workspace.compare(keys);
          case 'cluster':
            return this._workspace.cluster();
          case 'goodput':
            return this._workspace.goodput();
          case 'table':
            return this._workspace.table();
          default:
            return this._workspace.form();
        }
      }
    });
  }

  /** Does the work, and shows its error if it fails. */
  private async _told(work: () => unknown): Promise<unknown> {
    try {
      return await work();
    } catch (reason) {
      this._announcer.refuse(reason);
      return undefined;
    }
  }

  /** The runs that a command acts on: the named run, else the run whose tab is in front, else the selected runs. */
  private _rows(args: Args): readonly Row[] {
    const { hub, listing } = this._desk;
    const front = args['of'] === 'selection' ? null : this._workspace.current;
    const key = typeof args['key'] === 'string' ? args['key'] : front;
    if (key === null) {
      return listing.rows(hub.runs);
    }
    const row = hub.runs.get(key);
    return row ? [row] : [];
  }

  private async _act(action: ActionName, rows: readonly Row[], options: Record<string, unknown> = {}): Promise<void> {
    const most = action === 'delete' ? DELETED_AT_ONCE : AT_ONCE;
    for (let i = 0; i < rows.length; i += most) {
      const keys = rows.slice(i, i + most).map(({ key }) => key);
      await this._desk.server.act(action, keys, options);
    }
  }

  private async _resume(row: Row, args: Args): Promise<void> {
    const { server, trans } = this._desk;
    const checkpoint = checkpointOf(args);
    const { checkpoints } = await server.detail(row.key);
    const done = doneBefore(row, checkpoints, checkpoint.checkpoint);
    // A run that has reached its last iteration needs a later one.
    const first = done < row.total ? row.total : 2 * row.total;
    const hint = trans.__('The run continues after iteration %1, so the last iteration has to be later.', done);
    const { value, button } = await showDialog({
      title: trans.__('Resume %1', row.id),
      body: new Ending(trans.__('Last iteration'), hint, done, first),
      buttons: [Dialog.cancelButton(), Dialog.okButton({ label: trans.__('Resume') })],
      focusNodeSelector: 'input'
    });
    if (button.accept && value !== null) {
      await this._act('resume', [row], { ...checkpoint, max_iterations: value });
    }
  }

  private async _duplicate(row: Row): Promise<void> {
    const { code } = await this._desk.server.detail(row.key);
    await this._notebooks.insert(code, false);
  }

  private _confirmDelete(rows: readonly Row[]): Promise<boolean> {
    const { trans } = this._desk;
    return this._confirm(rows, {
      title: rows.length === 1 ? trans.__('Delete the run?') : trans.__('Delete %1 runs?', rows.length),
      warning: trans.__('All files are deleted, including checkpoints. This cannot be undone.'),
      no: trans.__('Cancel'),
      yes: trans.__('Delete')
    });
  }

  private _confirmCancel(rows: readonly Row[]): Promise<boolean> {
    const { trans } = this._desk;
    return this._confirm(rows, {
      title: rows.length === 1 ? trans.__('Cancel the run?') : trans.__('Cancel %1 runs?', rows.length),
      warning: trans.__('Cancelled runs keep their checkpoints and can be resumed from them.'),
      no: trans.__('Keep running'),
      yes: rows.length === 1 ? trans.__('Cancel the run') : trans.__('Cancel the runs')
    });
  }

  private async _confirm(
    rows: readonly Row[],
    { title, warning, no, yes }: Record<'title' | 'warning' | 'no' | 'yes', string>
  ): Promise<boolean> {
    const { trans } = this._desk;
    const names = rows.slice(0, NAMED).map(({ id }) => id);
    if (rows.length > NAMED) {
      names.push(trans.__('and %1 more', rows.length - NAMED));
    }
    const { button } = await showDialog({
      title,
      body: new Text([...names, '', warning].join('\n')),
      buttons: [Dialog.cancelButton({ label: no }), Dialog.warnButton({ label: yes })],
      defaultButton: 0
    });
    return button.accept;
  }
}

const DESCRIBED = {
  type: 'object',
  properties: {
    key: { type: 'string', description: 'Key of the run to act on' },
    of: { type: 'string', enum: ['selection'], description: 'Act on the runs selected in the list, whichever tab is in front' },
    checkpoint: { type: 'string', description: 'Name of a checkpoint of the run' }
  }
} as const;

function checkpointOf(args: Args): { readonly checkpoint?: string } {
  return typeof args['checkpoint'] === 'string' ? { checkpoint: args['checkpoint'] } : {};
}
