/** The messages between page and server, with their exact field names. All strings are data, shown as text and never as markup. */

export const ACTIVE = ['created', 'queued', 'starting', 'running'] as const;
export const ENDED = ['completed', 'failed', 'cancelled', 'timeout', 'lost'] as const;
export const STATES = [...ACTIVE, ...ENDED] as const;

export type State = (typeof STATES)[number];

export interface Row {
  readonly key: string;
  readonly id: string;
  /** The name that the user gave the run; empty without one. */
  readonly name: string;
  readonly task: string;
  readonly library: string;
  readonly launcher: string;
  readonly device: string;
  readonly state: State;
  readonly iteration: number;
  readonly total: number;
  readonly reward: number | null;
  readonly success: number | null;
  readonly spark: readonly number[];
  readonly eta_s: number | null;
  readonly created: string;
  readonly tags: readonly string[];
  /** The arguments of the run, such as `seed` and `agent.algorithm.learning_rate`, but for task and library. */
  readonly arguments: Readonly<Record<string, string | number>>;
  /** The last value of each metric that rlnb names, but for reward and success. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Why a run waits, stands still, goes on or has ended; empty for most runs. */
  readonly reason: string;
  /** Begin of the wait, UTC, in ISO 8601; empty if the run does not wait, or if it is unknown. */
  readonly since: string;
  /** The newest alerts, oldest first. */
  readonly alerts: readonly Alert[];
}

export interface Alert {
  /** Time, UTC, in ISO 8601. */
  readonly time: string;
  readonly what: string;
}

export interface Points {
  readonly x: readonly number[];
  readonly y: readonly (number | null)[];
}

export interface RunsMessage {
  readonly type: 'runs';
  readonly reset: boolean;
  readonly rows: readonly Row[];
  readonly gone: readonly string[];
}

export interface CurvesMessage {
  readonly type: 'curves';
  readonly key: string;
  readonly reset: boolean;
  readonly series: Readonly<Record<string, Points>>;
  /** Further metrics of the run, whose curves can be requested; null if they are those of an earlier message. */
  readonly names: readonly string[] | null;
}

/** One log file of one job of a run. */
export interface LogFile {
  readonly key: string;
  readonly job: number;
  readonly name: string;
}

export interface LogMessage extends LogFile {
  readonly type: 'log';
  readonly text: string;
  readonly reset: boolean;
}

export interface ActionMessage {
  readonly type: 'action';
  readonly id: string;
  readonly action: string;
  readonly keys: readonly string[];
  readonly state: 'running' | 'done' | 'failed';
  readonly output: string;
  /** Keys of the runs that still exist after a deletion. */
  readonly left: readonly string[];
  /** Whether the message repeats an earlier one, for a page that has just connected. */
  readonly again?: boolean;
}

/** A folder in which the server looks for runs, and why the folder cannot be read. */
export interface Place {
  readonly path: string;
  readonly trouble: string;
}

export interface PlacesMessage {
  readonly type: 'places';
  readonly places: readonly Place[];
}

export type Incoming = PlacesMessage | RunsMessage | CurvesMessage | LogMessage | ActionMessage;

export type Outgoing =
  | { readonly type: 'watch'; readonly keys: readonly string[]; readonly metrics: readonly string[] }
  | { readonly type: 'follow'; readonly files: readonly LogFile[] };

export interface Registry {
  readonly version: string;
  readonly root: string;
  readonly libraries: readonly {
    readonly name: string;
    readonly exports: readonly string[];
    readonly multi_agent: boolean;
    readonly distributed: boolean;
  }[];
  readonly launchers: readonly string[];
  readonly tasks: readonly string[];
  /** The fields of the form that need nothing but their description. */
  readonly fields: readonly Field[];
  /** False while the server is still searching for tasks. */
  readonly complete: boolean;
}

/** A field of the form, which is an argument of rlnb.train. */
export interface Field {
  readonly name: string;
  readonly label: string;
  /** Whether the field takes whole numbers, besides its choices. */
  readonly whole: boolean;
  /** Its first text; empty if that is left to the task or the library. */
  readonly default: string;
  readonly choices: readonly string[];
  /** Whether it takes several texts, with commas between them. */
  readonly several: boolean;
}

export type Value = string | number | boolean | null | readonly Value[] | { readonly [name: string]: Value };

export interface Job {
  readonly number: number;
  readonly kind: string;
  readonly state: string;
  readonly error: string;
  readonly logs: readonly { readonly name: string; readonly bytes: number }[];
}

/** A piece of a log; offsets are bytes. */
export interface LogPiece {
  readonly text: string;
  readonly offset: number;
  readonly next: number;
  readonly size: number;
}

export interface Checkpoint {
  readonly name: string;
  readonly iteration: number | null;
  readonly bytes: number;
  /** Whether the run has trained its iterations again, from an older checkpoint. */
  readonly abandoned: boolean;
}

export interface RunFile {
  readonly path: string;
  readonly bytes: number;
}

export interface Detail {
  readonly row: Row;
  readonly overview: readonly (readonly [string, string])[];
  readonly jobs: readonly Job[];
  readonly checkpoints: readonly Checkpoint[];
  readonly evaluations: readonly { readonly title: string; readonly rows: readonly (readonly string[])[] }[];
  readonly files: readonly RunFile[];
  readonly config: Readonly<Record<string, Value>>;
  readonly command: string;
  readonly notes: readonly string[];
  readonly tags: readonly string[];
  readonly live_cameras: boolean;
  /** Python code that starts such a run again. */
  readonly code: string;
}

/** A run in the lineage of a run. */
export interface LineageLine {
  /** Key of the run; empty if it was deleted or moved. */
  readonly key: string;
  readonly title: string;
  readonly id: string;
  /** Generations between the run and the oldest one shown. */
  readonly depth: number;
  /** How the run has come about, and in what it differs from the run that it is shown below. */
  readonly facts: readonly string[];
  /** State of the run; empty if it is gone or cannot be read. */
  readonly state: string;
  readonly reward: number | null;
}

/** The runs that a run comes from, and those that come from it, as the lines of a tree; no lines if there are none. */
export interface Lineage {
  readonly lines: readonly LineageLine[];
  /** Whether there are generations before the oldest one shown. */
  readonly older: boolean;
  /** Number of later runs that are not shown. */
  readonly hidden: number;
}

/** A Jupyter mime bundle. */
export type Bundle = Readonly<Record<string, Value>>;

export interface Diff {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly [string, ...Value[]])[];
  /** How the source of each further run's task differs from that of the first, as lines of a unified diff. */
  readonly sources: readonly (readonly string[])[];
}

/** A table of text. */
export interface Sheet {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** What some runs cost. */
export interface Costs {
  /** Number of runs with a training, of which `runs` may show only the first. */
  readonly count: number;
  readonly facts: readonly (readonly [string, string])[];
  /** Names of the parts of the wall time. */
  readonly parts: readonly string[];
  /** Seconds of each part over all runs. */
  readonly seconds: readonly number[];
  /** Key of the run in each row. */
  readonly keys: readonly string[];
  /** Seconds of each part of the run in each row. */
  readonly bars: readonly (readonly number[])[];
  readonly runs: Sheet;
  readonly interruptions: Sheet;
}

/** A file that the output of a cell names. */
export interface NamedFile {
  /** Its path, as the kernel sees it. */
  readonly path: string;
  readonly name: string;
}

/** The link to such a file. */
export interface FileLink {
  /** An address relative to the server's base; empty if the server does not serve the file. */
  readonly url: string;
  /** Whether a browser shows the file; others are only downloaded. */
  readonly opens: boolean;
}

export interface Cluster {
  readonly queues: readonly {
    readonly launcher: string;
    readonly title: string;
    readonly columns: readonly string[];
    readonly rows: readonly (readonly string[])[];
    readonly error: string;
    /** The output that belongs to the error. */
    readonly detail: string;
  }[];
  /** A page with a name can be closed by that name. */
  readonly links: readonly { readonly title: string; readonly url: string; readonly name?: string }[];
}

/** The arguments of a new run; null and an empty string leave a choice to the task or the library. */
export interface Wish {
  readonly task: string;
  readonly library: string;
  /** A call, such as slurm(nodes=2). */
  readonly launcher: string;
  readonly overrides: Readonly<Record<string, Value>>;
  /** The name of an agent config of the task; empty for the usual one. */
  readonly agent_config: string;
  readonly agent: Readonly<Record<string, Value>>;
  /** The values of the fields that the server describes. */
  readonly [name: string]: Value;
}

export interface Problem {
  readonly what: string;
  readonly fix: string;
}

/** The agent config that a run would use, and the names of the task's other ones. */
export interface AgentConfig {
  readonly source: string;
  readonly names: readonly string[];
}

export interface Checked {
  readonly problems: readonly Problem[];
  readonly agent: AgentConfig;
  readonly code: string;
}

export type ActionName = 'cancel' | 'resume' | 'evaluate' | 'export' | 'report' | 'delete';

export const isActive = (row: Row): boolean => (ACTIVE as readonly string[]).includes(row.state);
