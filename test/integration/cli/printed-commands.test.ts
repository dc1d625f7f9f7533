/**
 * People type what they read in `starling rollout status`: each command below `next:` is run through the real
 * command and API as it is printed, and what it is about waits no longer.
 */
import { afterEach, describe, expect, test } from "vitest";
import type { Wait } from "#shared/fleet/waits/wait.ts";
import { clearCommand } from "#shared/words/rollout-words.ts";
import { type CliFixture, startCliFixtureOver } from "#test/integration/cli/cli-fixture.ts";
import { begin } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { beginning, type Story, stories } from "#test/support/wait-stories.ts";

let cli: CliFixture | undefined;
afterEach(() => cli?.stop());

async function open(story: Story): Promise<{ readonly made: PlannerWorld; readonly cli: CliFixture }> {
  const made = await beginning(story);
  cli = await startCliFixtureOver(made.table, made.blobs, { clock: made.clock });
  const principalArn = "arn:aws:sts::111122223333:assumed-role/sre/ana";
  cli.principals.add({ accessKeyId: "AKTEST", secretAccessKey: "not-a-secret", principalArn });
  return { made, cli };
}

/** The commands below `next:`, without what is said about them. */
async function printed(from: CliFixture): Promise<readonly string[]> {
  const { out, code } = await from.run("rollout status web -n shop", { columns: 400 });
  expect([0, 1]).toContain(code);
  return [...out.matchAll(/^ {2}(?:next:| {5}) (starling .*?)(?: {3}\(.*\))?$/gm)].map(([, command = ""]) => command);
}

async function waitsOn({ on }: Story, from: CliFixture): Promise<readonly Wait[]> {
  const { out, err } = await from.run("rollout status web -n shop -o json");
  // A deletion has ended with its last wait.
  if (out === "") expect(err).toContain("SyncGroup shop/web does not exist");
  if (out === "") return [];
  return (JSON.parse(out).status.waits as readonly Wait[]).filter(({ reason }) => reason === on);
}

/** Every wait is in one of these stories; what is edited in the spec, and waits that end by themselves, are elsewhere. */
const typed = stories.filter(({ clear }) => clear.some((words) => !/^(pace|optional)/.test(words)));

describe.each(typed)("the wait for $on, where $when", (story) => {
  test("every command is printed as it is typed, and clears the wait", async () => {
    const first = await open(story);
    const [wait] = await waitsOn(story, first.cli);
    const commands = (wait?.clear ?? []).filter(({ verb }) => verb !== "pace" && verb !== "optional");
    const lines = commands.map((one) => clearCommand(one, owner));
    expect(commands).toMatchObject(lines.map((command) => ({ command })));
    expect(await printed(first.cli)).toEqual(expect.arrayContaining(lines));
    await first.cli.stop();
    for (const [index, line] of lines.entries()) {
      const { made, cli: from } = await open(story);
      const { verb } = commands[index] ?? {};
      const isOne = !("of" in (commands[index] ?? {}));
      const together = isOne ? [line] : lines.filter((_line, other) => commands[other]?.verb === verb);
      made.advanceClock(5);
      for (const one of together) {
        const [program, ...words] = one.split(" ");
        const ran = await from.run(words, { answer: "yes" });
        expect({ program, one, ...ran }).toMatchObject({ program: "starling", code: 0 });
      }
      await begin(made);
      const left = (await waitsOn(story, from)).filter(({ stage }) => stage === wait?.stage);
      expect({ line, left }).toEqual({ line, left: [] });
      await from.stop();
    }
  });
});
