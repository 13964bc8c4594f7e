import { type ISignal, Signal } from '@lumino/signaling';

import { Curve } from '../../../../rlnb/curves/chart.js';
import type { CurvesMessage } from '../server/protocol';

/** The curves of the runs that views watch. */
export class Curves {
  /** Emitted with the key of the run whose curves grew. */
  get changed(): ISignal<this, string> {
    return this._changed;
  }

  of(key: string): ReadonlyMap<string, Curve> {
    return this._runs.get(key) ?? NONE;
  }

  /** The further metrics of a run, whose curves can be requested. */
  names(key: string): readonly string[] {
    return this._names.get(key) ?? [];
  }

  apply(message: CurvesMessage): void {
    if (message.names) {
      this._names.set(message.key, message.names);
    }
    let run = this._runs.get(message.key);
    if (!run) {
      this._runs.set(message.key, (run = new Map<string, Curve>()));
    }
    if (message.reset) {
      for (const [name, curve] of run) {
        if (Object.hasOwn(message.series, name)) {
          curve.reset();
        } else {
          run.delete(name);
        }
      }
    }
    for (const [name, points] of Object.entries(message.series)) {
      let curve = run.get(name);
      if (!curve) {
        run.set(name, (curve = new Curve()));
      }
      curve.append(points);
    }
    this._changed.emit(message.key);
  }

  /** Forgets the curves of all other runs. If one of them is watched again, the server sends its curves from the start. */
  keep(keys: ReadonlySet<string>): void {
    for (const key of this._runs.keys()) {
      if (!keys.has(key)) {
        this._runs.delete(key);
        this._names.delete(key);
      }
    }
  }

  private readonly _names = new Map<string, readonly string[]>();
  private readonly _runs = new Map<string, Map<string, Curve>>();
  private readonly _changed = new Signal<this, string>(this);
}

const NONE: ReadonlyMap<string, Curve> = new Map();
