import type { IThemeManager } from '@jupyterlab/apputils';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import type { Server } from '../server/server';
import type { Hub } from './hub';
import type { Libraries } from './libraries';
import type { Listing } from './listing';
import type { Preferences } from './preferences';

/** The objects that all views use. */
export interface Desk {
  readonly server: Server;
  readonly hub: Hub;
  readonly listing: Listing;
  readonly libraries: Libraries;
  readonly preferences: Preferences;
  readonly commands: CommandRegistry;
  readonly themes: IThemeManager | null;
  readonly rendermime: IRenderMimeRegistry;
  readonly trans: TranslationBundle;
}
