/** `starling logs` prints each logged line once, in order, and with -f as it arrives. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type CliFixture, fleet, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

let cli: CliFixture;
beforeEach(async () => {
  cli = await startCliFixture();
  cli.write("fleet.yaml", fleet);
  expect(await cli.run("apply -f fleet.yaml -q")).toMatchObject({ code: 0 });
});
afterEach(() => cli.stop());

/** Lines that CloudWatch has now, and were written so many seconds ago. */
function logged(secondsAgo: number, ...messages: readonly string[]): void {
  const now = Date.now();
  for (const [index, message] of messages.entries()) {
    const at = new Date(now - secondsAgo * 1000 + index).toISOString();
    cli.logLines.push({ id: message, at, function: "rollout", fields: { level: "INFO", message } });
  }
  cli.logLines.sort((a, b) => (a.at < b.at ? -1 : 1));
}

const range = (first: number, count: number) => Array.from({ length: count }, (_, index) => `line-${first + index};`);
const loggedLines = (out: string) => out.match(/line-\d+;/g) ?? [];

/** `logs sg/shop -f`, until it has said so many lines. */
async function follow(flags: string, until: (lines: readonly string[]) => boolean) {
  const interrupt = new AbortController();
  const onOut = (out: string) => {
    if (until(loggedLines(out))) interrupt.abort();
  };
  return cli.run(`logs sg/shop -f ${flags}`, { interrupted: interrupt.signal, onOut });
}

test("logs -f prints new and late lines one by one, and none twice", { timeout: 60_000 }, async () => {
  logged(300, ...range(1, 2));
  const following = follow("--since 1h", (lines) => lines.length >= 7);
  const asked = cli.requests();
  await vi.waitFor(() => expect(cli.requests()).toBeGreaterThan(asked), { timeout: 10_000 });
  logged(0, ...range(3, 2));
  await vi.waitFor(() => expect(cli.requests()).toBeGreaterThan(asked + 2), { timeout: 20_000 });
  // CloudWatch receives this line after lines that were written later.
  logged(30, ...range(5, 1));
  logged(0, ...range(6, 2));
  const ran = await following;
  expect(ran).toMatchObject({ code: 130, err: "interrupted\n" });
  expect(loggedLines(ran.out)).toEqual(range(1, 7));
});

test.each([20, 1100])(
  "logs -f continues where the first %i lines ended, however many lines there are",
  async (limit) => {
    logged(1800, ...range(1, 2300));
    const ran = await follow(`--since 1h --limit ${limit}`, (lines) => lines.length >= 2300);
    expect(loggedLines(ran.out)).toEqual(range(1, 2300));
  },
);

describe("logs of an object that does not exist", () => {
  test.each([
    ["syncgroup/nope", "SyncGroup payments/nope does not exist", "starling get syncgroups -n payments"],
    ["syncgroup/nope --audit", "SyncGroup payments/nope does not exist", "starling get syncgroups -n payments"],
    ["syncgroup/nope -f", "SyncGroup payments/nope does not exist", "starling get syncgroups -n payments"],
    ["source/nope -o json", "Source payments/nope does not exist", "starling get sources -n payments"],
    ["cluster/nope", "Cluster nope does not exist", "starling get clusters"],
  ])("`logs %s` fails, and names the command that lists the objects", async (args, message, next) => {
    expect(await cli.run(`logs ${args} --timeout 10s`)).toMatchObject({
      code: 1,
      out: "",
      err: `error: ${message}\n  next: ${next}\n`,
    });
  });

  test("logs prints the lines of an object that was deleted meanwhile", async () => {
    logged(60, "line-1;");
    expect(loggedLines((await cli.run("logs syncgroup/nope")).out)).toEqual(["line-1;"]);
  });

  test("logs of an object without lines says how far back it searched, and succeeds", async () => {
    expect(await cli.run("logs syncgroup/shop --since 2h")).toMatchObject({
      code: 0,
      err: "no lines of the last 2h; try a longer --since\n",
    });
  });
});

test("logs without -f prints one answer, and where it continues", async () => {
  logged(1800, ...range(1, 30));
  const ran = await cli.run("logs sg/shop --since 1h --limit 20");
  expect(ran).toMatchObject({
    code: 0,
    err: expect.stringMatching(/there are more lines after .*; --limit N shows them/),
  });
  expect(loggedLines(ran.out)).toEqual(range(1, 20));
  expect((await cli.run("logs sg/shop --since 1h --limit 20 -f -o json")).code).toBe(2);
});

test("logs does not show the audit log, which has its own query", async () => {
  logged(60, "line-1;");
  const at = new Date(Date.now() - 30_000).toISOString();
  const fields = { level: "INFO", message: "line-2;", principal: "arn:aws:iam::000000000000:user/ana" };
  cli.logLines.push({ id: "line-2;", at, function: "api", fields });
  for (const object of ["sg/shop", "--id push-20261123T061254Z-1f8a90c2"]) {
    expect(loggedLines((await cli.run(`logs ${object}`)).out), object).toEqual(["line-1;"]);
    const audit = await cli.run(`logs ${object} --audit`);
    expect([audit.code, loggedLines(audit.out)], object).toEqual([0, ["line-2;"]]);
    expect(audit.out).toContain("user/ana");
  }
});
