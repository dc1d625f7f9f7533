import { StarlingError } from "#shared/base/errors.ts";
import { keyText, type RowKey } from "#shared/fleet/rows/row.ts";
import { largestAttributes, maxRowBytes, rowBytes } from "#shared/fleet/rows/row-size.ts";
import type { Write } from "#shared/ports.ts";

/** Checks the sizes before any write of a transaction. @throws StarlingError `RowTooLarge` */
export function refuseLargeRows(writes: readonly Write[]): void {
  for (const write of writes) {
    if ("put" in write) refuseLargeRow(write.put);
    else if ("update" in write) refuseLargeRow({ ...write.update, ...write.set });
  }
}

/** @throws StarlingError `RowTooLarge` */
export function refuseLargeRow(row: RowKey): void {
  const bytes = rowBytes(row);
  if (bytes > maxRowBytes) throw rowTooLarge(row, `has ${bytes} bytes, most of them in ${largestAttributes(row)}`);
}

export function rowTooLarge({ pk, sk }: RowKey, size: string): StarlingError {
  return new StarlingError(
    `row ${keyText({ pk, sk })} ${size}; a row may have at most ${maxRowBytes} bytes: make its content smaller`,
    { code: "RowTooLarge", retry: "permanent", data: { row: { pk, sk } } },
  );
}
