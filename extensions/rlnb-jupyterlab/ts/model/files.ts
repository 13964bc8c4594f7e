import type { NamedFile } from '../server/protocol';

/** The files that an output names, which may be data of any kind in a notebook from elsewhere. */
export function filesOf(data: unknown): readonly NamedFile[] {
  const { files } = (data ?? {}) as { files?: unknown };
  return Array.isArray(files) ? files.filter(isFile).slice(0, MOST) : [];
}

/** Maximum number of files that an output links. */
const MOST = 100;

function isFile(file: unknown): file is NamedFile {
  const { path, name } = (file ?? {}) as Partial<Record<keyof NamedFile, unknown>>;
  return typeof path === 'string' && typeof name === 'string';
}
