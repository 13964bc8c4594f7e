import { DisposableDelegate, type IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';

import type { ActionMessage, LogFile, LogMessage, Outgoing } from '../server/protocol';
import { type Socket, Stream } from '../server/stream';
import { Curves } from './curves';
import { Runs } from './runs';

/** The state of the server's runs in this page, received over one stream that all its views share. */
export class Hub {
  constructor(connect: () => Socket, runs: Runs = new Runs()) {
    this.runs = runs;
    this.stream = new Stream(connect, () => [this._watchMessage(), this._followMessage()]);
    this.stream.received.connect((_, message) => {
      switch (message.type) {
        case 'places':
          this.runs.lookIn(message.places);
          break;
        case 'runs':
          this.runs.apply(message);
          break;
        case 'curves':
          // The server may have sent curves before it received that no view watches the run any more.
          if (this._watched.has(message.key)) {
            this.curves.apply(message);
          }
          break;
        case 'log':
          this._logged.emit(message);
          break;
        case 'action':
          this._acted.emit(message);
          break;
      }
    });
  }

  readonly runs: Runs;
  readonly curves = new Curves();
  readonly stream: Stream;

  get logged(): ISignal<this, LogMessage> {
    return this._logged;
  }

  get acted(): ISignal<this, ActionMessage> {
    return this._acted;
  }

  /**
   * Requests the curves of runs until the returned object is disposed of.
   *
   * @param metrics - Metrics besides those that rlnb names.
   */
  watch(keys: readonly string[], metrics: readonly string[] = []): IDisposable {
    add(this._watched, keys);
    add(this._metrics, metrics);
    this._tellWatched();
    return new DisposableDelegate(() => {
      remove(this._watched, keys);
      remove(this._metrics, metrics);
      this._tellWatched();
    });
  }

  /** Requests a log until the returned object is disposed of. */
  follow(file: LogFile): IDisposable {
    this._wanted.push(file);
    this._tellFollowed();
    return new DisposableDelegate(() => {
      this._wanted.splice(this._wanted.indexOf(file), 1);
      this._tellFollowed();
    });
  }

  private _watchMessage(): Outgoing {
    return { type: 'watch', keys: [...this._watched.keys()].sort(), metrics: [...this._metrics.keys()].sort() };
  }

  private _followMessage(): Outgoing {
    return { type: 'follow', files: [...this._wanted] };
  }

  /** Sends the watched runs in a microtask: a switch of tabs stops one view and starts another, which may cancel out. */
  private _tellWatched(): void {
    queueMicrotask(() => {
      const message = this._watchMessage();
      const text = JSON.stringify(message);
      if (text !== this._toldWatched) {
        this._toldWatched = text;
        this.curves.keep(new Set(this._watched.keys()));
        this.stream.send(message);
      }
    });
  }

  private _tellFollowed(): void {
    queueMicrotask(() => {
      const message = this._followMessage();
      const text = JSON.stringify(message);
      if (text !== this._toldFollowed) {
        this._toldFollowed = text;
        this.stream.send(message);
      }
    });
  }

  private readonly _watched = new Map<string, number>();
  private readonly _metrics = new Map<string, number>();
  private readonly _wanted: LogFile[] = [];
  private _toldWatched = '';
  private _toldFollowed = '';
  private readonly _logged = new Signal<this, LogMessage>(this);
  private readonly _acted = new Signal<this, ActionMessage>(this);
}

/** Counts those who want each name. */
function add(counts: Map<string, number>, names: readonly string[]): void {
  for (const name of names) {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
}

function remove(counts: Map<string, number>, names: readonly string[]): void {
  for (const name of names) {
    const left = (counts.get(name) ?? 0) - 1;
    if (left > 0) {
      counts.set(name, left);
    } else {
      counts.delete(name);
    }
  }
}
