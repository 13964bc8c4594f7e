import { type ISignal, Signal } from '@lumino/signaling';

import type { Place, Row, RunsMessage } from '../server/protocol';

/** Defers a notification, such as to the next painted frame, so that many messages cause a single one. */
export type Schedule = (tell: () => void) => void;

const nextFrame: Schedule = tell => {
  // A page in the background paints no frames; the next one comes when the page is shown again.
  requestAnimationFrame(tell);
};

/** All runs on the server, newest first. */
export class Runs {
  constructor(private readonly _schedule: Schedule = nextFrame) {}

  /** Emitted at most once a frame. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Grows with each change: values derived from an older version are stale. */
  get version(): number {
    return this._version;
  }

  /** False until the server has sent the list. */
  get known(): boolean {
    return this._known;
  }

  get size(): number {
    return this._rows.size;
  }

  get(key: string): Row | undefined {
    return this._rows.get(key);
  }

  /** The latest row of a run, even if the run has been deleted since. */
  last(key: string): Row | undefined {
    return this._last.get(key);
  }

  /** The folders in which the server looks for runs. */
  get places(): readonly Place[] {
    return this._places;
  }

  lookIn(places: readonly Place[]): void {
    this._places = places;
    this._tell();
  }

  /** Sorted on access and not on change, so that a thousand changes in a second cost one sort. */
  get newestFirst(): readonly Row[] {
    this._sorted ??= [...this._rows.values()].sort((a, b) => compare(b.created, a.created) || compare(a.key, b.key));
    return this._sorted;
  }

  apply(message: RunsMessage): void {
    if (message.reset) {
      this._rows.clear();
    }
    for (const row of message.rows) {
      this._rows.set(row.key, row);
      this._last.set(row.key, row);
    }
    for (const key of message.gone) {
      this._rows.delete(key);
    }
    this._known = true;
    this._sorted = null;
    this._tell();
  }

  private _tell(): void {
    this._version += 1;
    if (!this._pending) {
      this._pending = true;
      this._schedule(() => {
        this._pending = false;
        this._changed.emit();
      });
    }
  }

  private readonly _rows = new Map<string, Row>();
  private readonly _last = new Map<string, Row>();
  private _places: readonly Place[] = [];
  private readonly _changed = new Signal<this, void>(this);
  private _sorted: Row[] | null = null;
  private _known = false;
  private _pending = false;
  private _version = 0;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
