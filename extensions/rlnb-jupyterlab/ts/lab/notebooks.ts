import type { JupyterFrontEnd } from '@jupyterlab/application';
import { type INotebookTracker, NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';

/** Where code goes that was made by clicking. */
export class Notebooks {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _tracker: INotebookTracker | null
  ) {}

  /** Puts code into a new cell below the active one; into a new notebook where there is none. */
  async insert(code: string, run: boolean): Promise<void> {
    const panel = this._tracker?.currentWidget ?? (await this._create());
    await panel.revealed;
    await panel.context.ready;
    const { content, sessionContext } = panel;
    if (content.activeCell?.model.sharedModel.getSource().trim() !== '') {
      NotebookActions.insertBelow(content);
    }
    content.deselectAll(); // what else is selected is neither changed nor run
    NotebookActions.changeCellType(content, 'code');
    const cell = content.activeCell;
    if (!cell) {
      return;
    }
    cell.model.sharedModel.setSource(code.trimEnd());
    this._app.shell.activateById(panel.id);
    if (run) {
      await sessionContext.ready;
      await NotebookActions.run(content, sessionContext);
    }
  }

  private async _create(): Promise<NotebookPanel> {
    const { kernelspecs } = this._app.serviceManager;
    await kernelspecs.ready;
    // Without a kernel's name it would ask for one.
    return (await this._app.commands.execute('notebook:create-new', {
      cwd: '',
      kernelName: kernelspecs.specs?.default ?? ''
    })) as NotebookPanel;
  }
}
