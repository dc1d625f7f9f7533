import { accessChecks } from "#cli/doctor/access-checks.ts";
import { type CheckFinding, runChecks } from "#cli/doctor/checks.ts";
import { installationChecks } from "#cli/doctor/installation-checks.ts";
import { serialise } from "#cli/format/serialise.ts";
import { formatTable } from "#cli/format/table.ts";
import { isData } from "#cli/output/output.ts";
import type { ExitReason } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { plainLine } from "#shared/base/plain-text.ts";

const words = { ok: "ok", wrong: "WRONG", unchecked: "not checked" } as const;

/** Checks everything that this command needs from an installation, and prints the remedy for each problem. */
export async function doctor(session: Session): Promise<ExitReason> {
  const findings = await runChecks([...accessChecks(session), ...installationChecks(session)]);
  const wrong = findings.filter(({ state }) => state === "wrong").length;
  const unchecked = findings.filter(({ state }) => state === "unchecked").length;
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(
      serialise({ kind: "Doctor", healthy: wrong + unchecked === 0, wrong, unchecked, checks: findings }, output),
    );
  } else {
    print(session, findings);
    session.note(`${findings.length - wrong - unchecked} ok, ${wrong} wrong, ${unchecked} not checked`);
  }
  if (wrong > 0) return "no";
  return unchecked > 0 ? "unknown" : "done";
}

function print({ io, options }: Session, findings: readonly CheckFinding[]): void {
  const rows = findings.map((finding) => [words[finding.state], finding.check, foundBy(finding)]);
  const columns = ["STATE", "CHECK", "FOUND"];
  const [header = "", ...lines] = formatTable({ columns, rows }, { headers: "show" }).split("\n");
  if (options.headers !== false) io.out(`${header}\n`);
  for (const [index, finding] of findings.entries()) {
    io.out(`${lines[index]}\n`);
    if (finding.state !== "wrong") continue;
    io.out(`  problem: ${plainLine(finding.problem)}\n`);
    io.out(`  remedy:  ${plainLine(finding.remedy)}\n`);
  }
}

function foundBy(finding: CheckFinding): string {
  return finding.state === "unchecked" ? finding.because : finding.found;
}
