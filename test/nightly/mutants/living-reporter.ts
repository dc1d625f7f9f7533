/** A reporter for Stryker, which loads it by its path: a part takes long, and who reads along can begin with its tests. */
import { relative } from "node:path";

interface TestedMutant {
  readonly status: string;
  readonly fileName: string;
  readonly replacement?: string;
  readonly location: { readonly start: { readonly line: number; readonly column: number } };
}

const told = new Set(["Survived", "NoCoverage", "Timeout"]);

function onMutantTested({ status, fileName, replacement, location: { start } }: TestedMutant): void {
  if (!told.has(status)) return;
  console.log(`${status} ${relative(process.cwd(), fileName)}:${start.line}:${start.column} ${replacement}`);
}

export const strykerPlugins = [{ kind: "Reporter", name: "living", value: { onMutantTested } }];
