/** A reporter for Stryker, which loads it by its path. It prints each mutant that lives at once, because a part takes long. */
import { relative } from "node:path";

interface TestedMutant {
  readonly status: string;
  readonly fileName: string;
  readonly replacement?: string;
  readonly location: { readonly start: { readonly line: number; readonly column: number } };
}

const reported = new Set(["Survived", "NoCoverage", "Timeout"]);

function onMutantTested({ status, fileName, replacement, location: { start } }: TestedMutant): void {
  if (!reported.has(status)) return;
  console.log(`${status} ${relative(process.cwd(), fileName)}:${start.line}:${start.column} ${replacement}`);
}

export const strykerPlugins = [{ kind: "Reporter", name: "living", value: { onMutantTested } }];
