import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import { Component, createContext, type ReactElement, type ReactNode, useContext, useEffect, useState } from 'react';

import type { Desk } from '../model/desk';
import { useSignal } from './signal';

const Desks = createContext<Desk | null>(null);
const Widgets = createContext<View | null>(null);

/** The base of the extension's widgets: drawn by React, and aware of whether it is visible. */
export abstract class View extends ReactWidget {
  constructor(protected readonly desk: Desk) {
    super();
    this.addClass('rlnb-View');
  }

  readonly shownChanged = new Signal<this, void>(this);

  get shown(): boolean {
    return this._shown;
  }

  protected abstract draw(): ReactElement;

  protected override render(): ReactElement {
    return (
      <Desks.Provider value={this.desk}>
        <Widgets.Provider value={this}>
          <Boundary text={this.desk.trans.__('This view failed:')}>{this.draw()}</Boundary>
        </Widgets.Provider>
      </Desks.Provider>
    );
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._show(this.isVisible);
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._show(true);
  }

  protected override onBeforeHide(message: Message): void {
    super.onBeforeHide(message);
    this._show(false);
  }

  protected override onBeforeDetach(message: Message): void {
    this._show(false);
    super.onBeforeDetach(message);
  }

  private _show(shown: boolean): void {
    if (shown) {
      // The page connects to the server when its first view becomes visible.
      this.desk.hub.stream.open();
    }
    this._shown = shown;
    this.shownChanged.emit();
  }

  private _shown = false;
}

/** Shows a view's error in place of the view, which React would otherwise remove without a trace. */
class Boundary extends Component<{ text: string; children: ReactNode }, { failed: string | null }> {
  override state: { failed: string | null } = { failed: null };

  static getDerivedStateFromError(reason: unknown): { failed: string } {
    return { failed: String(reason) };
  }

  override render(): ReactNode {
    const { failed } = this.state;
    return failed === null ? this.props.children : <p className="rlnb-Failure" role="alert">{`${this.props.text} ${failed}`}</p>;
  }
}

export function useDesk(): Desk {
  return useContext(Desks)!;
}

/** Whether the view is visible: its tab is in front, and so is the page. Costly work pauses while it is not. */
export function useShown(): boolean {
  const widget = useContext(Widgets)!;
  const inFront = useSignal(widget.shownChanged, () => widget.shown);
  const [page, setPage] = useState(() => !document.hidden);
  useEffect(() => {
    const look = () => setPage(!document.hidden);
    document.addEventListener('visibilitychange', look);
    return () => document.removeEventListener('visibilitychange', look);
  }, []);
  return inFront && page;
}
