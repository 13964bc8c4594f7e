import type { ReactElement, ReactNode } from 'react';

interface Props {
  readonly caption: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly ReactNode[])[];
}

/** A table. The first cell of each row names it. */
export function Table({ caption, columns, rows }: Props): ReactElement {
  return (
    <table className="rlnb-Table" aria-label={caption}>
      <thead>
        <tr>
          {columns.map((column, i) => (
            <th key={i} scope="col">
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, i) => (
          <tr key={i}>
            {row.map((cell, j) =>
              j === 0 ? (
                <th key={j} scope="row">
                  {cell}
                </th>
              ) : (
                <td key={j}>{cell}</td>
              )
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
