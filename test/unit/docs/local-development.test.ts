import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { withAwsSettings } from "#local/faults/aws-fault-settings.ts";
import { clusterKnobs, withClusterSettings } from "#local/faults/cluster-fault-settings.ts";
import { portFlags } from "#local/serve/choose-ports.ts";

const page = readFileSync(new URL("../../../docs/tasks/local-development.md", import.meta.url), "utf8");

describe("docs/tasks/local-development.md", () => {
  test.each(clusterKnobs.filter((knob) => !/\.(next|methods|path|share|phase|retryAfterSeconds)$/.test(knob)))(
    "the table of the page has the setting %s",
    (knob) => {
      expect(page).toMatch(new RegExp(`^\\| .*\`${knob.replace(".", "\\.")}\``, "m"));
    },
  );

  test("the local machine accepts every example of `local faults set` on the page", () => {
    const examples = [...page.matchAll(/^starling local faults set (\S+) ([^#\n]+?)(?: --seed \d+)? *(?:#.*)?$/gm)];
    expect(examples.length).toBeGreaterThan(3);
    for (const [, target = "", words = ""] of examples) {
      const settings = words.trim().split(" ");
      if (target === "aws") expect(withAwsSettings(quiet, settings)).not.toEqual(quiet);
      else expect(withClusterSettings({}, { target, settings })).not.toEqual({});
    }
  });

  test.each(Object.values(portFlags))("the page names the flag %s", (flag) => {
    expect(page).toContain(`\`${flag}\``);
  });
});
