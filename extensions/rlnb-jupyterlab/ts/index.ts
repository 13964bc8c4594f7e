import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, IThemeManager } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';

import { Announcer } from './lab/announcer';
import { Commands } from './lab/commands';
import { linksFactory } from './lab/links';
import { Notebooks } from './lab/notebooks';
import { Workspace } from './lab/workspace';
import { RunsPanel } from './list/panel';
import { Alerts } from './model/alerts';
import type { Desk } from './model/desk';
import { Hub } from './model/hub';
import { Libraries } from './model/libraries';
import { Listing } from './model/listing';
import { Preferences } from './model/preferences';
import { Server } from './server/server';

const ID = 'rlnb-jupyterlab:plugin';
const LISTING = 'rlnb-jupyterlab:listing';
/** Milliseconds without a change before the list is saved, so that a search is not saved letter by letter. */
const SAVED_AFTER = 500;

/** Restores the list as it was saved, or else with the user's grouping, and saves it after each change. */
async function remember(listing: Listing, preferences: Preferences, states: IStateDB | null): Promise<void> {
  const saved = await states?.fetch(LISTING).catch(() => undefined);
  listing.restore(saved ?? { group: preferences.grouping });
  let timer: ReturnType<typeof setTimeout> | undefined;
  let last = JSON.stringify(listing);
  listing.changed.connect(() => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const text = JSON.stringify(listing);
      if (text !== last) {
        last = text;
        void states?.save(LISTING, JSON.parse(text) as ReadonlyPartialJSONValue);
      }
    }, SAVED_AFTER);
  });
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'rlnb runs: a panel, a tab for each run, and a form for new runs.',
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [ICommandPalette, ILauncher, ILayoutRestorer, INotebookTracker, ISettingRegistry, IStateDB, IThemeManager, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    restorer: ILayoutRestorer | null,
    notebooks: INotebookTracker | null,
    settings: ISettingRegistry | null,
    states: IStateDB | null,
    themes: IThemeManager | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('rlnb_jupyterlab');
    const server = new Server(app.serviceManager.serverSettings);
    const desk: Desk = {
      server,
      hub: new Hub(() => server.socket()),
      listing: new Listing(),
      libraries: new Libraries(() => server.libraries()),
      preferences: new Preferences(),
      commands: app.commands,
      themes,
      rendermime,
      trans
    };
    rendermime.addFactory(linksFactory(desk));
    const workspace = new Workspace(app, desk);
    const panel = new RunsPanel(desk);
    const announcer = new Announcer(desk.hub, trans);
    new Alerts(desk.hub.runs, new Date().toISOString(), (row, { what }) =>
      announcer.alert(row, what, () => void app.commands.execute('rlnb:open', { key: row.key }))
    );
    new Commands(desk, workspace, new Notebooks(app, notebooks), announcer, () => app.shell.activateById(panel.id)).register(palette);

    app.shell.add(panel, 'left', { rank: 600, type: 'RL runs' });
    restorer?.add(panel, panel.id);
    if (restorer) {
      workspace.restore(restorer);
    }
    launcher?.add({ command: 'rlnb:new', args: { card: true }, category: trans.__('RL'), rank: 1 });

    const loaded = settings?.load(ID).then(
      registered => desk.preferences.follow(registered),
      (reason: unknown) => console.error(`The settings of ${ID} cannot be read, so the defaults are used.`, reason)
    );
    void Promise.resolve(loaded).then(() => remember(desk.listing, desk.preferences, states));
  }
};

export default plugin;
