import type { Dialog } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

/** Asks at which iteration a resumed run should end. The dialog accepts only iterations after those already done. */
export class Ending extends Widget implements Dialog.IBodyWidget<number> {
  constructor(label: string, hint: string, done: number, first: number) {
    const node = document.createElement('label');
    node.textContent = label;
    const input = node.appendChild(document.createElement('input'));
    node.appendChild(document.createElement('small')).textContent = hint;
    input.type = 'number';
    input.className = 'jp-mod-styled';
    input.required = true;
    input.min = String(done + 1);
    input.value = String(first);
    super({ node });
    this.addClass('rlnb-Ending');
    this._input = input;
  }

  getValue(): number {
    return this._input.valueAsNumber;
  }

  private readonly _input: HTMLInputElement;
}
