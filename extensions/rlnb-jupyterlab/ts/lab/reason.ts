/** Why a command failed: the last of its lines that is not indented, for tables and what belongs to an error are. */
export function reasonOf(output: string): string {
  const lines = output.split('\n').map(line => line.trimEnd());
  const heads = lines.filter(line => /^\S/.test(line));
  return (heads[heads.length - 1] ?? lines.find(Boolean) ?? '').trim();
}
