import { readFileSync } from "node:fs";
import { isJsonObject, parseJson } from "#shared/base/json.ts";
import { listAt } from "#shared/kube/kube-object.ts";
import { leftOutOnRealServers, leftOutSteps } from "#test/contract/local/apiserver/left-out-steps.ts";
import { isLoose } from "#test/contract/local/apiserver/replayer.ts";
import { readVectorFile, type VectorStep } from "#test/contract/local/apiserver/vector-file.ts";

/** The tables in docs/testing.md, counted from the recordings and the steps that are left out. */
export function replayTables(): string {
  const files = Object.keys(leftOutSteps);
  const rows = files.map((file) => ({ file, ...countsOf(file) }));
  const sum = (key: keyof ReturnType<typeof countsOf>) => rows.reduce((total, row) => total + row[key], 0);
  const cells = rows.map(({ file, recorded, compared, loose, leftOut, leftOutOnReal }) =>
    tableRow([file.replace(".json", ""), recorded, compared, loose, leftOut, leftOutOnReal]),
  );
  return [
    tableRow(["file", "recorded", "compared", "of them loosely", "left out", "left out on kube-apiserver"]),
    tableRow(["---", "---:", "---:", "---:", "---:", "---:"]),
    ...cells,
    tableRow(["all", ...(["recorded", "compared", "loose", "leftOut", "leftOutOnReal"] as const).map(sum)]),
    "",
    "Left out on the embedded API server:",
    "",
    ...reasons(leftOutSteps),
    ...unsent(files),
    "",
    "Left out on a real one, where the recording itself is the reason:",
    "",
    ...reasons(leftOutOnRealServers),
  ].join("\n");
}

function tableRow(cells: readonly (string | number)[]): string {
  return `| ${cells.join(" | ")} |`;
}

/** Counts the steps of a file, and separately those that are sent during another step. Unsendable exchanges are left out. */
function countsOf(file: string) {
  const steps = readVectorFile(file).map((step, index) => ({ step, index }));
  const sent = steps.filter(({ step }) => step.request !== undefined);
  const compared = (leftOut: Readonly<Record<number, string>> | undefined) =>
    sent.filter(({ index }) => leftOut?.[index] === undefined).flatMap(({ step }) => [step, ...(step.during ?? [])]);
  const recorded = recordedExchanges(file);
  const here = compared(leftOutSteps[file]);
  return {
    recorded,
    compared: here.length,
    loose: here.filter((step) => isLoose(file, step)).length,
    leftOut: recorded - here.length,
    leftOutOnReal: recorded - compared(leftOutOnRealServers[file]).length,
  };
}

function recordedExchanges(file: string): number {
  const url = new URL(`../../../fixtures/apiserver/${file}`, import.meta.url);
  const steps = listAt(parseJson(readFileSync(url, "utf8")), "steps") as unknown as readonly VectorStep[];
  const all = steps.flatMap((step) => step.requests ?? [step]).flatMap((step) => [step, ...(step.during ?? [])]);
  return all.filter(({ request }) => isJsonObject(request)).length;
}

function reasons(table: typeof leftOutSteps): string[] {
  return Object.entries(table).flatMap(([file, leftOut]) => {
    const byReason = new Map<string, string[]>();
    for (const [index, reason] of Object.entries(leftOut)) {
      byReason.set(reason, [...(byReason.get(reason) ?? []), index]);
    }
    return [...byReason].map(([reason, steps]) => `- ${file.slice(0, 2)}, ${steps.join(", ")}: ${reason}`);
  });
}

function unsent(files: readonly string[]): string[] {
  return files.flatMap((file) => {
    const sent = readVectorFile(file).flatMap((step) => [step, ...(step.during ?? [])]);
    const count = recordedExchanges(file) - sent.filter(({ request }) => request !== undefined).length;
    return count === 0
      ? []
      : [`- ${file.slice(0, 2)}, ${count} exchanges: in protobuf, or recorded without their bodies`];
  });
}
