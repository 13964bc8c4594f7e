import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type { ActionName, Bundle, Checked, Cluster, Costs, Detail, Diff, FileLink, Lineage, LogFile, LogPiece, Registry, Wish } from './protocol';
import type { Socket } from './stream';

/** A request that failed: the reason and its fix. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly fix: string
  ) {
    super(message);
    this.name = 'Refusal';
  }
}

/** Returns any failure as a reason and a fix to show. */
export function refusalOf(reason: unknown): Refusal {
  return reason instanceof Refusal ? reason : new Refusal(reason instanceof Error ? reason.message : String(reason), '');
}

/** Sends requests to the extension's half in the Jupyter server. */
export class Server {
  constructor(readonly settings: ServerConnection.ISettings) {}

  registry(): Promise<Registry> {
    return this._json('registry');
  }

  async libraries(): Promise<Registry['libraries']> {
    return (await this._json<Pick<Registry, 'libraries'>>('libraries')).libraries;
  }

  detail(key: string): Promise<Detail> {
    return this._json(`runs/${encodeURIComponent(key)}`);
  }

  /** The runs that a run comes from, and those that come from it. */
  lineage(key: string): Promise<Lineage> {
    return this._json(`runs/${encodeURIComponent(key)}/lineage`);
  }

  /** The figures that plugins draw of a run. */
  async figures(key: string): Promise<readonly Bundle[]> {
    return (await this._json<{ figures: readonly Bundle[] }>(`runs/${encodeURIComponent(key)}/figures`)).figures;
  }

  /** Adds a note or a tag to a run, removes a tag, renames the run, or takes it out of the lists. */
  async write(key: string, entry: { readonly [kind in 'note' | 'tag' | 'untag' | 'name' | 'archive']?: string }): Promise<void> {
    await this._json(`runs/${encodeURIComponent(key)}/notes`, entry);
  }

  diff(keys: readonly string[]): Promise<Diff> {
    return this._json(`diff?keys=${keys.map(encodeURIComponent).join(',')}`);
  }

  /** What runs cost. */
  goodput(keys: readonly string[]): Promise<Costs> {
    return this._json('goodput', { keys });
  }

  cluster(): Promise<Cluster> {
    return this._json('cluster');
  }

  check(wish: Wish): Promise<Checked> {
    return this._json('check', wish);
  }

  act(action: ActionName, keys: readonly string[], options: Readonly<Record<string, unknown>> = {}): Promise<{ id: string }> {
    return this._json('actions', { action, keys, options });
  }

  async tensorboard(keys: readonly string[]): Promise<string> {
    const { url } = await this._json<{ url: string }>('tensorboard', { keys });
    return this.link(url);
  }

  /** Opens a 3D view of the run's policy, and returns its address. */
  async scene(key: string): Promise<string> {
    const { url } = await this._json<{ url: string }>(`runs/${encodeURIComponent(key)}/scene`, {});
    return this.link(url);
  }

  /** Closes a page that the server has opened, and ends the process behind it. */
  async close(name: string): Promise<void> {
    await this._json('close', { name });
  }

  /** The whole log, which the server sends in pieces. */
  async log({ key, job, name }: LogFile): Promise<Blob> {
    const pieces: string[] = [];
    let offset = 0;
    for (;;) {
      const path = `runs/${encodeURIComponent(key)}/logs/${job}/${encodeURIComponent(name)}?offset=${offset}`;
      const piece = await this._json<LogPiece>(path);
      pieces.push(piece.text);
      if (piece.next <= offset || piece.next >= piece.size) {
        return new Blob(pieces, { type: 'text/plain' });
      }
      offset = piece.next;
    }
  }

  /** The newest picture of the run's cameras, or null while there is none. */
  async frame(key: string): Promise<Blob | null> {
    const response = await this._ask(`runs/${encodeURIComponent(key)}/frame`);
    return response.status === 204 ? null : response.blob();
  }

  /** The address of a run's file, for elements that make the browser fetch it: images, films, downloads. */
  fileUrl(key: string, path: string): string {
    return this._url(`runs/${encodeURIComponent(key)}/files/${URLExt.encodeParts(path)}`);
  }

  /** The link to a file by its path; null if the server does not serve it. */
  async linkTo(path: string): Promise<FileLink | null> {
    const link = await this._json<FileLink>(`link?path=${encodeURIComponent(path)}`);
    return link.url ? { ...link, url: this.link(link.url) } : null;
  }

  /** Resolves an address that is relative to the server's base, and refuses any other host and any script. */
  link(url: string): string {
    const base = new URL(this.settings.baseUrl);
    const target = new URL(URLExt.join(base.href, url));
    if (target.origin !== base.origin || !target.pathname.startsWith(base.pathname)) {
      throw new Refusal(`${url} is not an address of this server.`, '');
    }
    return target.href;
  }

  socket(): Socket {
    const { wsUrl, token, appendToken, WebSocket } = this.settings;
    const url = URLExt.join(wsUrl, 'rlnb', 'stream');
    return new WebSocket(appendToken && token ? `${url}?token=${encodeURIComponent(token)}` : url);
  }

  private _url(path: string): string {
    return URLExt.join(this.settings.baseUrl, 'rlnb', path);
  }

  private async _ask(path: string, body?: unknown): Promise<Response> {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const response = await ServerConnection.makeRequest(this._url(path), init, this.settings);
    if (!response.ok) {
      const content: unknown = await response.json().catch(() => ({}));
      const { message, fix } = content as { message?: string; fix?: string };
      throw new Refusal(message || `${response.status} ${response.statusText}`, fix ?? '');
    }
    return response;
  }

  private async _json<T>(path: string, body?: unknown): Promise<T> {
    return (await (await this._ask(path, body)).json()) as T;
  }
}
