import { type IRenderMime, MimeModel } from '@jupyterlab/rendermime';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { Panel, Widget } from '@lumino/widgets';

import type { Desk } from '../model/desk';
import { filesOf } from '../model/files';
import type { FileLink } from '../server/protocol';

/** Type of the data with which rlnb's reports, exports and films name their files; see `rlnb/display/links.py`. */
const FILES = 'application/vnd.rlnb.files+json';
/** Rank before those of HTML and text, which the same output has for other front ends. */
const RANK = 10;

type Parts = Pick<Desk, 'rendermime' | 'server' | 'trans'>;

/** Shows outputs that name files. They have no script, so an untrusted notebook has links too. */
export function linksFactory(parts: Parts): IRenderMime.IRendererFactory {
  return { safe: true, mimeTypes: [FILES], defaultRank: RANK, createRenderer: () => new Links(parts) };
}

/** The other data of an output, such as a film or the path as text, and below it links to the files. */
class Links extends Panel implements IRenderMime.IRenderer {
  constructor(private readonly _parts: Parts) {
    super();
    this.addClass('rlnb-Links');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    for (const widget of [...this.widgets]) {
      widget.dispose();
    }
    const { [FILES]: named, ...data } = model.data;
    const row = new Widget();
    row.addClass('rlnb-Links-row');
    for (const { path, name } of filesOf(named)) {
      const place = row.node.appendChild(document.createElement('div'));
      this._parts.server.linkTo(path).then(
        link => link && place.append(...this._links(link, name)),
        () => undefined // the server's half is not there, so the path is all that can be shown
      );
    }
    await this._showRest(data, model);
    this.addWidget(row);
  }

  private async _showRest(data: ReadonlyPartialJSONObject, { metadata, trusted }: IRenderMime.IMimeModel): Promise<void> {
    const { rendermime } = this._parts;
    const type = rendermime.preferredMimeType(data, trusted ? 'any' : 'ensure');
    if (type) {
      const rest = rendermime.createRenderer(type);
      rest.addClass('jp-OutputArea-output'); // looks as it does without links
      this.addWidget(rest);
      await rest.renderModel(new MimeModel({ data: { ...data }, metadata, trusted }));
    }
  }

  private *_links({ url, opens }: FileLink, name: string): Iterable<HTMLElement> {
    const { trans } = this._parts;
    if (opens) {
      yield anchor(trans.__('Open %1', name), { href: url, target: '_blank', rel: 'noopener' });
    }
    yield anchor(trans.__('Download %1', name), { href: url, download: '' });
  }
}

function anchor(text: string, attributes: Partial<HTMLAnchorElement>): HTMLAnchorElement {
  return Object.assign(document.createElement('a'), attributes, { textContent: text });
}
