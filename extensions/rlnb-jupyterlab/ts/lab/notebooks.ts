import type { JupyterFrontEnd } from '@jupyterlab/application';
import { type INotebookTracker, NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';

/** Inserts code into notebooks. */
export class Notebooks {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _tracker: INotebookTracker | null
  ) {}

  /** Puts code into the active cell if that is empty, else into a new cell below it. Creates a notebook if none is open. */
  async insert(code: string, run: boolean): Promise<void> {
    const panel = this._tracker?.currentWidget ?? (await this._create());
    await panel.revealed;
    await panel.context.ready;
    const { content, sessionContext } = panel;
    if (content.activeCell?.model.sharedModel.getSource().trim() !== '') {
      NotebookActions.insertBelow(content);
    }
    content.deselectAll(); // `changeCellType` and `run` act on all selected cells
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
    // Without `kernelName`, JupyterLab would ask the user to choose a kernel.
    return (await this._app.commands.execute('notebook:create-new', {
      cwd: '',
      kernelName: kernelspecs.specs?.default ?? ''
    })) as NotebookPanel;
  }
}
