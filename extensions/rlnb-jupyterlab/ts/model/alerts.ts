import type { Alert, Row } from '../server/protocol';
import type { Runs } from './runs';

/** Reports each alert of a run once: those that are newer than the page. */
export class Alerts {
  /**
   * @param since Time of the page's start, UTC, in ISO 8601. Older alerts are not reported.
   * @param tell Reports an alert.
   */
  constructor(
    private readonly _runs: Runs,
    private readonly _since: string,
    private readonly _tell: (row: Row, alert: Alert) => void
  ) {
    _runs.changed.connect(() => this._look());
  }

  private _look(): void {
    for (const row of this._runs.newestFirst) {
      for (const alert of row.alerts) {
        const id = `${row.key} ${alert.time} ${alert.what}`;
        if (Date.parse(alert.time) >= Date.parse(this._since) && !this._told.has(id)) {
          this._told.add(id);
          this._tell(row, alert);
        }
      }
    }
  }

  private readonly _told = new Set<string>();
}
