import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import { Component, createContext, type ReactElement, type ReactNode, useContext, useEffect, useState } from 'react';

import type { Desk } from '../model/desk';
import { useSignal } from './signal';

const Desks = createContext<Desk | null>(null);
const Widgets = createContext<View | null>(null);

/** A widget of ours, drawn by React, which knows whether somebody can see it. */
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
      // Nobody is asked for anything before the first view is seen.
      this.desk.hub.stream.open();
    }
    this._shown = shown;
    this.shownChanged.emit();
  }

  private _shown = false;
}

/** What goes wrong in a view is said in its place; nothing is left of it otherwise. */
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

/** Whether the view can be seen: its tab is in front, and so is the page. What costs something stops otherwise. */
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
