import { Widget } from '@lumino/widgets';

/** Lines of text as the body of a dialog. They are shown as text, never as markup. */
export class Text extends Widget {
  constructor(text: string) {
    const node = document.createElement('div');
    node.appendChild(document.createElement('pre')).textContent = text;
    super({ node });
    this.addClass('rlnb-Text');
  }
}
