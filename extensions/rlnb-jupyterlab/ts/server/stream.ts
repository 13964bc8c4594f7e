import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';

import type { Incoming, Outgoing } from './protocol';

/** The part of WebSocket that is used here. */
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

/** A connection to the server that is reopened after every break, after waits of 1, 2, 4 ... 30 seconds. */
export class Stream implements IDisposable {
  /**
   * @param connect - Opens a socket; called for each attempt, since the token may have changed.
   * @param greeting - Returns the messages that a new connection starts with.
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

  /** Opens the connection; a second call has no effect. */
  open(): void {
    if (this._status === 'closed' && !this._isDisposed) {
      this._setStatus('connecting');
      this._dial();
    }
  }

  /** Sends a message, or drops it without a connection: the next greeting contains the current state. */
  send(message: Outgoing): void {
    if (this._status === 'open') {
      this._socket?.send(JSON.stringify(message));
    }
  }

  /** Connects now instead of at the end of the wait. */
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

  /** Opens a socket. After a break the status stays "waiting" until it is open, so that the page's warning does not flicker. */
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
      // Only a message resets the wait: a server that accepts and then closes at once is retried ever less often.
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
