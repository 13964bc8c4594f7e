import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';

import type { Incoming, Outgoing } from './protocol';

/** What of a WebSocket is used here. */
export interface Socket {
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  send(text: string): void;
  close(): void;
}

export type Status = 'closed' | 'connecting' | 'open' | 'waiting';

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30_000;

/** A conversation with the server that goes on after every break, with waits of 1, 2, 4 ... 30 seconds. */
export class Stream implements IDisposable {
  /**
   * @param connect - Opens a socket; it is asked anew each time, since a token may have changed.
   * @param greeting - What a server that knows nothing of us has to be told.
   */
  constructor(
    private readonly _connect: () => Socket,
    private readonly _greeting: () => readonly Outgoing[]
  ) {}

  get received(): ISignal<this, Incoming> {
    return this._received;
  }

  get statusChanged(): ISignal<this, Status> {
    return this._statusChanged;
  }

  get status(): Status {
    return this._status;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Asked twice, it opens once. */
  open(): void {
    if (this._status === 'closed' && !this._isDisposed) {
      this._setStatus('connecting');
      this._dial();
    }
  }

  /** Dropped while there is no connection: the greeting says it all again. */
  send(message: Outgoing): void {
    if (this._status === 'open') {
      this._socket?.send(JSON.stringify(message));
    }
  }

  /** Does not wait any longer. */
  retry(): void {
    if (this._status === 'waiting' && !this._socket) {
      clearTimeout(this._timer);
      this._dial();
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    clearTimeout(this._timer);
    this._drop()?.close();
    this._setStatus('closed');
    Signal.clearData(this);
  }

  /** After a break the status stays waiting until there is a connection: what says so to people does not flicker. */
  private _dial(): void {
    let socket: Socket;
    try {
      socket = this._connect();
    } catch {
      this._wait();
      return;
    }
    this._socket = socket;
    socket.onopen = () => {
      this._setStatus('open');
      for (const message of this._greeting()) {
        this.send(message);
      }
    };
    socket.onmessage = event => {
      // Only a server that speaks is well: one that accepts and hangs up at once is left alone longer and longer.
      this._pause = FIRST_WAIT;
      const message = parse(event.data);
      if (message) {
        this._received.emit(message);
      }
    };
    // An error is always followed by a close.
    socket.onclose = () => {
      this._drop();
      this._wait();
    };
  }

  private _drop(): Socket | null {
    const socket = this._socket;
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
    }
    this._socket = null;
    return socket;
  }

  private _wait(): void {
    this._timer = setTimeout(() => this._dial(), this._pause);
    this._pause = Math.min(2 * this._pause, LONGEST_WAIT);
    this._setStatus('waiting');
  }

  private _setStatus(status: Status): void {
    this._status = status;
    this._statusChanged.emit(status);
  }

  private readonly _received = new Signal<this, Incoming>(this);
  private readonly _statusChanged = new Signal<this, Status>(this);
  private _socket: Socket | null = null;
  private _status: Status = 'closed';
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _pause = FIRST_WAIT;
  private _isDisposed = false;
}

function parse(data: unknown): Incoming | null {
  try {
    const message: unknown = JSON.parse(String(data));
    return message !== null && typeof message === 'object' && 'type' in message ? (message as Incoming) : null;
  } catch {
    return null;
  }
}
