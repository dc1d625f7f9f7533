import { expect, test } from "vitest";
import { groupSyncObject } from "#shared/fleet/api/objects.ts";
import { type Ask, Refusal } from "#shared/pages/ask.ts";
import { pageHost } from "#shared/pages/html-document.ts";
import { syncPage } from "#shared/pages/sync-page.ts";
import { textOf } from "#test/support/html-tables.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

const host = pageHost(new Date("2026-11-20T08:01:00.000Z"));

async function pageOf(phase: "Retrying" | "Verifying", nextAt: string): Promise<string> {
  const row = syncRow("c2", "shop.web", { phase, reason: "NoMatch", message: "no such kind" });
  if (row.observed === undefined) throw new Error("the fixture has an observation");
  const sync = groupSyncObject({ ...row, observed: { ...row.observed, nextAt } }, undefined);
  const ask: Ask = async <T>(path: string) => {
    if (path.includes("/rollouts/") || path.startsWith("/v1/clusters/")) throw new Refusal(404, "there is none");
    return (path.split("/").length === 6 ? sync : { items: [], metadata: {} }) as T;
  };
  const asked = { cluster: "c2", namespace: "payments", name: "shop.web", query: {} };
  return textOf((await syncPage(ask, asked, host)).main.toString());
}

test.each([
  ["2026-11-20T08:01:40.000Z", "in 40s, at 08:01:40Z"],
  ["2026-11-20T08:00:10.000Z", "due since 08:00:10Z"],
])("the page of a failed Sync says when the next try is: %s", async (nextAt, words) => {
  expect(await pageOf("Retrying", nextAt)).toContain(`Next try${words}`);
});

test("the page of a Sync that is not tried again has no next try", async () => {
  expect(await pageOf("Verifying", "2026-11-20T08:01:40.000Z")).not.toContain("Next try");
});
