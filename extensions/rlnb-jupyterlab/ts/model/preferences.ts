import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { type ISignal, Signal } from '@lumino/signaling';

import type { Grouping } from './query';

/** The user's settings, or their defaults where there is no setting registry. */
export class Preferences {
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Milliseconds between two camera pictures. */
  frameInterval = 1000;
  sparklines = true;
  grouping: Grouping = 'none';
  confirmDelete = true;
  confirmCancel = true;

  follow(settings: ISettingRegistry.ISettings): void {
    const read = () => {
      this.frameInterval = 1000 * (settings.composite['frameInterval'] as number);
      this.sparklines = settings.composite['sparklines'] as boolean;
      this.grouping = settings.composite['grouping'] as Grouping;
      this.confirmDelete = settings.composite['confirmDelete'] as boolean;
      this.confirmCancel = settings.composite['confirmCancel'] as boolean;
      this._changed.emit();
    };
    settings.changed.connect(read);
    read();
  }

  private readonly _changed = new Signal<this, void>(this);
}
