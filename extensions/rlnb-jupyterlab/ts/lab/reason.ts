/** Returns why a command failed: its last line without indentation. Tables and the details of an error are indented. */
export function reasonOf(output: string): string {
  const lines = output.split('\n').map(line => line.trimEnd());
  const heads = lines.filter(line => /^\S/.test(line));
  return (heads[heads.length - 1] ?? lines.find(Boolean) ?? '').trim();
}
