import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { CommandToolbarButton, IFrame } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';

import { ClusterView } from '../cluster/cluster';
import { FormView } from '../form/form';
import { TableView } from '../list/table';
import type { Desk } from '../model/desk';
import { runsIcon } from '../parts/icons';
import { CompareView } from '../run/compare';
import { GoodputView } from '../run/goodput';
import { RunView } from '../run/run';

const ACTIONS = ['cancel', 'resume', 'duplicate', 'report', 'tensorboard', 'scene', 'delete'];

/** The extension's tabs in the main area; each is open at most once. */
export class Workspace {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _desk: Desk
  ) {
    _desk.hub.acted.connect((_, { action, state, keys, left }) => {
      if (action === 'delete' && state !== 'running') {
        keys.filter(key => !left.includes(key)).forEach(key => this._tabs.get(runId(key))?.dispose());
      }
    });
  }

  /** Reopens the tabs that were open before the page was reloaded. */
  restore(restorer: ILayoutRestorer): void {
    void restorer.restore(this._tracker, {
      command: 'rlnb:show',
      args: ({ content }) => argumentsOf(content),
      name: ({ id }) => id
    });
  }

  /** The key of the run whose tab is in front. */
  get current(): string | null {
    const widget = this._app.shell.currentWidget;
    return widget instanceof MainAreaWidget && widget.content instanceof RunView ? widget.content.runKey : null;
  }

  run(key: string): Widget {
    return this._open(runId(key), () => {
      const widget = new MainAreaWidget({ content: new RunView(this._desk, key) });
      const { commands, trans } = this._desk;
      widget.toolbar.addClass('rlnb-Toolbar');
      widget.toolbar.node.setAttribute('aria-label', trans.__('Actions on the run'));
      for (const name of ACTIONS) {
        widget.toolbar.addItem(name, new CommandToolbarButton({ commands, id: `rlnb:${name}`, args: { key } }));
      }
      return widget;
    });
  }

  compare(keys: readonly string[]): Widget {
    const sorted = [...keys].sort();
    return this._open(`rlnb-compare-${sorted.join('-')}`, () => new MainAreaWidget({ content: new CompareView(this._desk, sorted) }));
  }

  form(): Widget {
    return this._open('rlnb-form', () => new MainAreaWidget({ content: new FormView(this._desk) }));
  }

  cluster(): Widget {
    return this._open('rlnb-cluster', () => new MainAreaWidget({ content: new ClusterView(this._desk) }));
  }

  table(): Widget {
    return this._open('rlnb-table', () => new MainAreaWidget({ content: new TableView(this._desk) }));
  }

  goodput(): Widget {
    return this._open('rlnb-goodput', () => new MainAreaWidget({ content: new GoodputView(this._desk) }));
  }

  /** Opens a page of this server in a frame. */
  page(url: string, title: string): Widget {
    return this._open(pageId(url), () => {
      // TensorBoard's page requests its data from this origin, which proxies TensorBoard's server.
      const content = new IFrame({ sandbox: ['allow-scripts', 'allow-same-origin', 'allow-downloads', 'allow-popups', 'allow-forms'] });
      content.url = url;
      content.title.label = title;
      content.title.icon = runsIcon;
      content.node.querySelector('iframe')?.setAttribute('title', title);
      return new MainAreaWidget({ content });
    });
  }

  closePage(url: string): void {
    this._tabs.get(pageId(url))?.dispose();
  }

  private _open(id: string, make: () => MainAreaWidget): Widget {
    let widget = this._tabs.get(id);
    if (!widget || widget.isDisposed) {
      widget = make();
      widget.id = id;
      widget.title.closable = true;
      if ([...widget.toolbar.names()].length === 0) {
        widget.toolbar.hide();
      }
      this._tabs.set(id, widget);
      if (!(widget.content instanceof IFrame)) {
        void this._tracker.add(widget);
      }
      widget.disposed.connect(() => this._tabs.delete(id));
    }
    if (!widget.isAttached) {
      this._app.shell.add(widget, 'main');
    }
    this._app.shell.activateById(id);
    return widget;
  }

  private readonly _tracker = new WidgetTracker<MainAreaWidget>({ namespace: 'rlnb' });
  private readonly _tabs = new Map<string, MainAreaWidget>();
}

const pageId = (url: string): string => `rlnb-page-${url}`;
const runId = (key: string): string => `rlnb-run-${key}`;

/** The arguments of `rlnb:show` that reopen a tab. */
function argumentsOf(content: Widget): ReadonlyPartialJSONObject {
  if (content instanceof RunView) {
    return { view: 'run', keys: [content.runKey] };
  }
  if (content instanceof CompareView) {
    return { view: 'compare', keys: [...content.keys] };
  }
  const views = [[ClusterView, 'cluster'], [GoodputView, 'goodput'], [TableView, 'table']] as const;
  return { view: views.find(([view]) => content instanceof view)?.[1] ?? 'form' };
}
