import { Dialog, type ICommandPalette, InputDialog, showDialog } from '@jupyterlab/apputils';
import { addIcon, copyIcon, deleteIcon, fileIcon, launcherIcon, type LabIcon, runIcon, stopIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { Announcer } from './announcer';
import type { Desk } from './desk';
import { clusterIcon, compareIcon, runsIcon } from './icons';
import type { Notebooks } from './notebooks';
import { type ActionName, isActive, type Row } from './protocol';
import { Text } from './text';
import type { Workspace } from './workspace';

type Args = ReadonlyPartialJSONObject;

/** So many runs the server takes at once. */
const AT_ONCE = 20;
/** So many runs a question names. */
const NAMED = 8;

interface Command {
  readonly id: string;
  readonly label: string;
  readonly caption: string;
  readonly icon?: LabIcon | ((args: Args) => LabIcon);
  /** Whether it can be given about these runs; without it, it is about none. */
  possible?(rows: readonly Row[]): boolean;
  execute(rows: readonly Row[], args: Args): unknown;
}

/** What can be done, by a click, a key or the palette. */
export class Commands {
  constructor(
    private readonly _desk: Desk,
    private readonly _workspace: Workspace,
    private readonly _notebooks: Notebooks,
    private readonly _announcer: Announcer,
    private readonly _showPanel: () => void
  ) {}

  register(palette: ICommandPalette | null): void {
    const { commands, hub, listing, trans } = this._desk;
    const all = this._all();
    for (const command of all) {
      const possible = command.possible?.bind(command);
      commands.addCommand(command.id, {
        // A palette has commands of all kinds.
        label: args => (possible && args['isPalette'] ? trans.__('RL run: %1', command.label) : command.label),
        caption: command.caption,
        ...(command.icon ? { icon: command.icon } : {}),
        describedBy: { args: DESCRIBED },
        isEnabled: args => !possible || possible(this._rows(args)),
        execute: args => {
          const rows = this._rows(args);
          // A key gives a command whether it is enabled or not.
          return !possible || possible(rows) ? this._told(() => command.execute(rows, args)) : undefined;
        }
      });
      palette?.addItem({ command: command.id, args: { isPalette: true }, category: trans.__('RL runs') });
    }
    this._registerInner();
    const dependent = all.filter(({ possible }) => possible);
    const tell = () => dependent.forEach(({ id }) => commands.notifyCommandChanged(id));
    hub.runs.changed.connect(tell);
    listing.changed.connect(tell);
  }

  private _all(): readonly Command[] {
    const { server, preferences, trans } = this._desk;
    const some = (rows: readonly Row[]) => rows.length > 0;
    const one = (rows: readonly Row[]) => rows.length === 1;
    const ended = (rows: readonly Row[]) => some(rows) && !rows.some(isActive);
    return [
      {
        id: 'rlnb:panel',
        label: trans.__('Show RL runs'),
        caption: trans.__('Show the runs at the side'),
        icon: runsIcon,
        execute: this._showPanel
      },
      {
        id: 'rlnb:new',
        label: trans.__('New RL run'),
        caption: trans.__('Fill in a form for a new run'),
        // A plus says enough among the runs; a launcher has cards of all kinds.
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
        id: 'rlnb:open',
        label: trans.__('Open'),
        caption: trans.__('Open the selected runs, each in a tab'),
        icon: launcherIcon,
        possible: rows => some(rows) && rows.length <= AT_ONCE,
        execute: rows => rows.forEach(({ key }) => this._workspace.run(key))
      },
      {
        id: 'rlnb:compare',
        label: trans.__('Compare'),
        caption: trans.__('Compare the selected runs: two to %1 of them', AT_ONCE),
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
        execute: rows => this._act('cancel', rows.filter(isActive))
      },
      {
        id: 'rlnb:resume',
        label: trans.__('Resume'),
        caption: trans.__('Go on from a checkpoint'),
        icon: runIcon,
        possible: rows => one(rows) && ended(rows),
        execute: ([row], args) => this._resume(row!, args)
      },
      {
        id: 'rlnb:evaluate',
        label: trans.__('Evaluate'),
        caption: trans.__('Play whole episodes with the policy, and measure them'),
        possible: some,
        execute: (rows, args) => this._act('evaluate', rows, checkpointOf(args))
      },
      {
        id: 'rlnb:export',
        label: trans.__('Export'),
        caption: trans.__('Write the policy in a form for other programs'),
        possible: some,
        execute: (rows, args) => this._act('export', rows, checkpointOf(args))
      },
      {
        id: 'rlnb:duplicate',
        label: trans.__('Duplicate into notebook'),
        caption: trans.__('Insert a cell that starts such a run again'),
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
        possible: rows => some(rows) && rows.length <= AT_ONCE,
        execute: async rows =>
          this._workspace.page(await server.tensorboard(rows.map(({ key }) => key)), trans.__('TensorBoard'))
      },
      {
        id: 'rlnb:scene',
        label: trans.__('View in 3D'),
        caption: trans.__('Play the newest checkpoint in 3D; a simulator is started for it'),
        possible: one,
        execute: async ([row]) => {
          const title = trans.__('%1 in 3D', row!.id);
          const url = await this._announcer.waiting(server.scene(row!.key), trans.__('%1: a simulator is started …', title));
          return this._workspace.page(url, title);
        }
      },
      {
        id: 'rlnb:delete',
        label: trans.__('Delete'),
        caption: trans.__('Delete the run and all of its files'),
        icon: deleteIcon,
        possible: ended,
        execute: async rows => {
          if (!preferences.confirmDelete || (await this._confirm(rows))) {
            await this._act('delete', rows);
          }
        }
      }
    ];
  }

  /** What only other parts of ours call. */
  private _registerInner(): void {
    const { commands, trans } = this._desk;
    commands.addCommand('rlnb:insert', {
      label: trans.__('Insert code into notebook'),
      describedBy: { args: { type: 'object', properties: { code: { type: 'string' }, run: { type: 'boolean' } } } },
      execute: args => this._told(() => this._notebooks.insert(String(args['code'] ?? ''), args['run'] === true))
    });
    commands.addCommand('rlnb:show', {
      label: trans.__('Show again what was open'),
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
          default:
            return this._workspace.form();
        }
      }
    });
  }

  /** Does it, and says so when it fails. */
  private async _told(work: () => unknown): Promise<unknown> {
    try {
      return await work();
    } catch (reason) {
      this._announcer.refuse(reason);
      return undefined;
    }
  }

  /** The runs that a command is about: those that are named; else the one whose tab is in front; else those selected. */
  private _rows(args: Args): readonly Row[] {
    const { hub, listing } = this._desk;
    const front = args['of'] === 'selection' ? null : this._workspace.current;
    const keys = typeof args['key'] === 'string' ? [args['key']] : front ? [front] : [...listing.selected];
    return keys.flatMap(key => hub.runs.get(key) ?? []);
  }

  private async _act(action: ActionName, rows: readonly Row[], options: Record<string, unknown> = {}): Promise<void> {
    for (let i = 0; i < rows.length; i += AT_ONCE) {
      const keys = rows.slice(i, i + AT_ONCE).map(({ key }) => key);
      await this._desk.server.act(action, keys, options);
    }
  }

  private async _resume(row: Row, args: Args): Promise<void> {
    const { trans } = this._desk;
    const { value, button } = await InputDialog.getNumber({
      title: trans.__('Resume %1', row.id),
      label: trans.__('Iteration to end at'),
      // What has reached its end needs a later one.
      value: row.state === 'completed' ? 2 * row.total : row.total,
      okLabel: trans.__('Resume')
    });
    if (button.accept && value !== null) {
      await this._act('resume', [row], { ...checkpointOf(args), max_iterations: value });
    }
  }

  private async _duplicate(row: Row): Promise<void> {
    const { code } = await this._desk.server.detail(row.key);
    await this._notebooks.insert(code, false);
  }

  private async _confirm(rows: readonly Row[]): Promise<boolean> {
    const { trans } = this._desk;
    const names = rows.slice(0, NAMED).map(({ id }) => id);
    if (rows.length > NAMED) {
      names.push(trans.__('and %1 more', rows.length - NAMED));
    }
    const { button } = await showDialog({
      title: rows.length === 1 ? trans.__('Delete the run?') : trans.__('Delete %1 runs?', rows.length),
      body: new Text([...names, '', trans.__('All files go, checkpoints too. This cannot be undone.')].join('\n')),
      buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: trans.__('Delete') })],
      defaultButton: 0
    });
    return button.accept;
  }
}

const DESCRIBED = {
  type: 'object',
  properties: {
    key: { type: 'string', description: 'The run that it is about' },
    of: { type: 'string', enum: ['selection'], description: 'About the runs selected in the list, whatever tab is in front' },
    checkpoint: { type: 'string', description: 'Name of a checkpoint of the run' }
  }
} as const;

function checkpointOf(args: Args): Record<string, unknown> {
  return typeof args['checkpoint'] === 'string' ? { checkpoint: args['checkpoint'] } : {};
}
